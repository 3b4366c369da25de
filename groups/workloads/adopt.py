"""Which group a pod or workload belongs to when its user named none (rules A1 and A8). Pure.

The webhook asks at admission, when a pod may have no name yet; the controller asks for pods that the
webhook did not see. Both must come to the same group. Labels that are there already are for the caller:
they win over what is said here (rule A3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groups.contract import parse_group_size
from groups.errors import ContractError
from groups.names import generated_group_name, pod_group_name, whole_group_name, workload_group_name
from groups.objects import OwnerReference
from groups.workloads.rules import Rule, Rules, builtin_rules
from groups.workloads.schema import Team
from groups.workloads.shapes import controller_of, mapping, text


@dataclass(frozen=True)
class PodIdentity:
    """What a pod's group may depend on. `name` is empty while there is only a generateName."""

    namespace: str
    name: str = ""
    generate_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner: OwnerReference | None = None


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
    """The default group of a pod: one of its own, its team's, or its owner's, which is to be counted."""

    group_name: str
    owner: CountedOwner | None = None
    members: int = 1

    @property
    def size(self) -> int | None:
        """The size where it is known from the pod alone; None where the owner has to be counted."""
        return None if self.owner is not None else self.members


def adopt(pod: PodIdentity, *, request_uid: str = "", rules: Rules | None = None) -> Adoption:
    """The default group of `pod`; `request_uid` (of the admission request) makes up for a missing name."""
    table = rules or builtin_rules()
    if (team := _team(pod, table)) is not None:
        return team
    owner = _counted_owner(pod, table)
    if owner is not None:
        name = whole_group_name if owner.rule.has_parts else workload_group_name
        return Adoption(name(pod.namespace, owner.rule.word, owner.name), owner)
    if pod.name:
        return Adoption(pod_group_name(pod.namespace, pod.name))
    return Adoption(generated_group_name(pod.generate_name, request_uid))


def identify(pod: Mapping[str, Any], namespace: str) -> PodIdentity:
    """The identity of a pod that comes as plain JSON; `namespace` is the request's (case C02)."""
    metadata = mapping(pod.get("metadata"))
    return PodIdentity(
        namespace=namespace,
        name=text(metadata.get("name")),
        generate_name=text(metadata.get("generateName")),
        labels=_texts(metadata.get("labels")),
        annotations=_texts(metadata.get("annotations")),
        owner=controller_of(pod),
    )


def _texts(value: object) -> Mapping[str, str]:
    return {key: text for key, text in mapping(value).items() if isinstance(text, str)}


def _team(pod: PodIdentity, rules: Rules) -> Adoption | None:
    """The team that a pod's own labels put it into (case C23)."""
    rule = rules.of_kind("", "Pod")
    for team in rule.teams if rule is not None else ():
        name, number = pod.labels.get(team.name_label), _number(pod, team)
        if not name or not number:
            continue
        try:
            members = parse_group_size(pod.annotations.get(team.size_annotation, ""))
        except ContractError:
            # Without its size no team can be waited for.
            members = 1
            number = pod.name or number
        return Adoption(workload_group_name(pod.namespace, team.word, name, number), members=members)
    return None


def _number(pod: PodIdentity, team: Team) -> str:
    if number := pod.labels.get(team.number_label, ""):
        return number
    _, dash, last = pod.name.rpartition("-")
    return last if team.number_from_name and dash and last.isdecimal() else ""


def _counted_owner(pod: PodIdentity, rules: Rules) -> CountedOwner | None:
    if pod.owner is None or (rule := rules.counted_owner(pod.owner)) is None:
        return None
    direct = CountedOwner(rule, pod.owner.name, pod.owner.uid)
    for link in rule.belongs_to:
        target = rules.of_kind(link.group, link.kind)
        if target is None or not target.is_counted:
            continue
        if link.name_label is not None and (name := pod.labels.get(link.name_label, "")):
            return CountedOwner(target, name, through=direct)
        cut = pod.labels.get(link.cut_label, "") if link.cut_label is not None else ""
        # A label that is no part of the owner's name was not written by the kind behind it.
        name = pod.owner.name.removesuffix(f"-{cut}") if cut else ""
        if name and name != pod.owner.name:
            return CountedOwner(target, name, through=direct)
    return direct
