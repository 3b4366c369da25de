"""Which group a pod or workload belongs to when its user named none (rules A1 and A8). Pure.

The webhook asks at admission, when a pod may have no name yet; the controller asks for pods that slipped
past the webhook. Both must come to the same group. Labels that are there already are for the caller:
they win over what is said here (rule A3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fluence.contract import generated_group_name, pod_group_name, workload_group_name
from fluence.workloads.rules import Rule, Rules, builtin_rules
from fluence.workloads.shapes import OwnerRef, controller_of, lookup, mapping, text


@dataclass(frozen=True)
class PodIdentity:
    """What a pod's group may depend on. `name` is empty while there is only a generateName."""

    namespace: str
    name: str = ""
    generate_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    owner: OwnerRef | None = None


@dataclass(frozen=True)
class CountedOwner:
    """An object whose members a rule counts; `count_members(owner.rule, object)` does it.

    `uid` is empty where only the name is known. `through` is the owner that the pod itself names, where
    that is another one: the ReplicaSet in front of a Deployment.
    """

    rule: Rule
    name: str
    uid: str = ""
    through: CountedOwner | None = None


@dataclass(frozen=True)
class Adoption:
    """The default group of a pod: one of its own with one member, or its owner's, to be counted."""

    group_name: str
    owner: CountedOwner | None = None

    @property
    def size(self) -> int | None:
        """The size where it is known from the pod alone; None where the owner has to be counted."""
        return None if self.owner is not None else 1


def adopt(pod: PodIdentity, *, request_uid: str = "", rules: Rules | None = None) -> Adoption:
    """The default group of `pod`; `request_uid` (of the admission request) makes up for a missing name."""
    owner = _counted_owner(pod, rules or builtin_rules())
    if owner is not None:
        return Adoption(workload_group_name(pod.namespace, owner.name), owner)
    if pod.name:
        return Adoption(pod_group_name(pod.name))
    return Adoption(generated_group_name(pod.generate_name, request_uid))


def identify(pod: Mapping[str, Any], namespace: str) -> PodIdentity:
    """The identity of a pod that comes as plain JSON; `namespace` is the request's (case C02)."""
    metadata = mapping(pod.get("metadata"))
    labels = mapping(metadata.get("labels"))
    return PodIdentity(
        namespace=namespace,
        name=text(metadata.get("name")),
        generate_name=text(metadata.get("generateName")),
        labels={key: value for key, value in labels.items() if isinstance(value, str)},
        owner=controller_of(pod),
    )


def workload_group(obj: Mapping[str, Any], namespace: str, request_uid: str) -> str:
    """The default group of a workload that comes as plain JSON (rule A1)."""
    if name := text(lookup(obj, ("metadata", "name"))):
        return workload_group_name(namespace, name)
    prefix = text(lookup(obj, ("metadata", "generateName")))
    return generated_group_name(prefix, request_uid, namespace)


def _counted_owner(pod: PodIdentity, rules: Rules) -> CountedOwner | None:
    if pod.owner is None or (rule := rules.counted_owner(pod.owner)) is None:
        return None
    direct = CountedOwner(rule, pod.owner.name, pod.owner.uid)
    behind = rule.pods_belong_to
    if behind is None:
        return direct
    cut = pod.labels.get(behind.cut_label, "")
    name = pod.owner.name.removesuffix(f"-{cut}") if cut else pod.owner.name
    target = rules.of_kind(rule.group, behind.kind)
    # A label that is no part of the owner's name was not written by the kind behind it.
    if target is None or not name or name == pod.owner.name:
        return direct
    return CountedOwner(target, name, through=direct)
