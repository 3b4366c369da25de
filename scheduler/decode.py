"""From what the API server sends to what the matching core reckons with: pure.

Owns: requests, constraints, repulsions and the names of the hard rules that are not honoured yet. Does not
own: claims and volumes, which need other objects (`scheduler.volumes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from groups.objects import Condition
from scheduler import objects as api
from scheduler_core.constraints import (
    NodeConstraints,
    Repulsion,
    Requests,
    Requirement,
    SelectorTerm,
    Taint,
    Toleration,
)
from scheduler_core.nodes import PRESSURES, Node
from scheduler_core.requests import ContainerRequest, capacity, pod_requests

_NONE: Final[Mapping[str, str]] = {}
#: Disks that one node at a time may write to (VolumeRestrictions); their field and the word for them.
_EXCLUSIVE_DISKS: Final = {
    "gce_persistent_disk": "gcePersistentDisk",
    "aws_elastic_block_store": "awsElasticBlockStore",
    "azure_disk": "azureDisk",
    "iscsi": "iscsi",
    "rbd": "rbd",
}


def _quantities(found: Mapping[str, str | int | float] | None) -> Mapping[str, str]:
    # The server writes quantities as strings; objects from elsewhere may hold bare numbers.
    return {name: str(amount) for name, amount in found.items()} if found else _NONE


def _containers(
    containers: Sequence[api.Container] | None, statuses: Sequence[api.ContainerStatus] | None
) -> list[ContainerRequest]:
    seen = {status.name: status for status in statuses or ()}
    return [
        _held(one.resources, seen.get(one.name), restartable=one.restart_policy == "Always")
        for one in containers or ()
    ]


def _held(
    wanted: api.Resources, status: api.ContainerStatus | api.PodStatus | None, *, restartable: bool = False
) -> ContainerRequest:
    """What is asked for, beside what is really held while it is resized in place (rule R5)."""
    actual = status.resources.requests if status is not None and status.resources else None
    allocated = status.allocated_resources if status is not None else None
    return ContainerRequest(
        _quantities(wanted.requests),
        restartable=restartable,
        actual=_quantities(actual) if actual is not None else None,
        allocated=_quantities(allocated) if allocated is not None else None,
    )


def requests_of(pod: api.Pod) -> Requests:
    """What the pod asks for, its pod slot included (rules R1 to R8)."""
    spec, status = pod.spec, pod.status
    resizing = pod.condition("PodResizePending")
    return pod_requests(
        _containers(spec.containers, status.container_statuses),
        _containers(spec.init_containers, status.init_container_statuses),
        _quantities(spec.overhead),
        _held(spec.resources, status) if spec.resources is not None else None,
        resize_infeasible=resizing is not None and resizing.reason == "Infeasible",
    )


def _requirements(found: Sequence[api.Requirement] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(one.key, one.operator, one.values or ()) for one in found or ())


def constraints_of(spec: api.PodSpec) -> NodeConstraints:
    """Which nodes the pod may use at all (rules NA1 to NA5, T1 to T4)."""
    required: tuple[SelectorTerm, ...] | None = None
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is not None:
        selector = affinity.required_during_scheduling_ignored_during_execution
        if selector is not None:
            required = tuple(
                SelectorTerm(_requirements(term.match_expressions), _requirements(term.match_fields))
                for term in selector.node_selector_terms or ()
            )
    return NodeConstraints(
        node_selector=tuple(sorted((spec.node_selector or {}).items())),
        required=required,
        tolerations=tuple(
            Toleration(one.key, one.operator or "Equal", one.value, one.effect)
            for one in spec.tolerations or ()
        ),
    )


def unsupported_rules(spec: api.PodSpec) -> list[str]:
    """The hard rules that a pod carries and that are not honoured yet, by the names that users know."""
    found = []
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        found.append(f"schedulingGroup {spec.scheduling_group.pod_group_name} (native pod groups)")
    if spec.affinity is not None:
        if _required(spec.affinity.pod_affinity):
            found.append("required pod affinity")
        if _required(spec.affinity.pod_anti_affinity):
            found.append("required pod anti-affinity")
    if any(one.when_unsatisfiable != "ScheduleAnyway" for one in spec.topology_spread_constraints or ()):
        found.append("topology spread DoNotSchedule")
    containers = (*spec.containers, *(spec.init_containers or ()))
    ports = sorted({p.host_port for one in containers for p in one.ports or () if p.host_port})
    if ports:
        found.append("host ports " + ", ".join(map(str, ports)))
    if spec.resource_claims:
        found.append("resource claims")
    for volume in spec.volumes or ():
        found += [
            f"{word} volume {volume.name}"
            for field, word in _EXCLUSIVE_DISKS.items()
            if getattr(volume, field) is not None
        ]
    return found


def _required(affinity: api.PodAffinity | None) -> Sequence[api.PodAffinityTerm]:
    return (affinity.required_during_scheduling_ignored_during_execution or ()) if affinity else ()


def repulsions_of(pod: api.Pod) -> tuple[Repulsion, ...]:
    """The required anti-affinity terms of a placed pod, which keep others away too (rule IA4)."""
    affinity = pod.spec.affinity
    terms = _required(affinity.pod_anti_affinity) if affinity is not None else ()
    return tuple(_repulsion(term, pod.metadata.namespace) for term in terms)


def _repulsion(term: api.PodAffinityTerm, own_namespace: str) -> Repulsion:
    # A namespaceSelector needs the labels of namespaces, which we do not keep: all of them are meant then.
    # That may keep a pod away from a node without need, and never places one where it must not be.
    namespaces: frozenset[str] | None = frozenset(term.namespaces or (own_namespace,))
    if term.namespace_selector is not None:
        namespaces = None
    return Repulsion(term.topology_key, namespaces, _selector(term.label_selector))


def _selector(found: api.LabelSelector | None) -> tuple[Requirement, ...] | None:
    if found is None:
        return None
    equal = tuple(Requirement(key, "In", (value,)) for key, value in (found.match_labels or {}).items())
    return (*equal, *_requirements(found.match_expressions))


def node_of(node: api.Node) -> Node:
    """A node as the matcher sees it. A node without a Ready condition is not ready."""
    conditions = {one.type: one for one in node.status.conditions or ()}
    return Node(
        name=node.metadata.name,
        allocatable=capacity(_quantities(node.status.allocatable)),
        labels=node.metadata.labels or {},
        taints=tuple(Taint(one.key, one.value, one.effect) for one in node.spec.taints or ()),
        unschedulable=node.spec.unschedulable,
        ready=_is_true(conditions.get("Ready")),
        network_unavailable=_is_true(conditions.get("NetworkUnavailable")),
        deleting=node.metadata.deletion_timestamp is not None,
        uid=node.metadata.uid,
        pressures=tuple(name for name in PRESSURES if _is_true(conditions.get(name))),
    )


def _is_true(condition: Condition | None) -> bool:
    return condition is not None and condition.status == "True"
