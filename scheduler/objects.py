"""Pods, nodes and volumes as the API server sends them: only the fields that decide about scheduling.

Every hard rule that a pod can carry has a field here, also those that are not honoured yet: what is not
decoded cannot be refused aloud.
"""

from __future__ import annotations

from typing import Any

import msgspec

from groups.objects import Condition, ObjectMeta

Quantities = dict[str, str]


class _Struct(msgspec.Struct, frozen=True, rename="camel"):
    """Camel-case names as in the API, and values that never change."""


class Resources(_Struct, frozen=True):
    """Requests and limits; the server has filled in requests where only limits were given (rule R4)."""

    requests: dict[str, str | int | float] | None = None


class Port(_Struct, frozen=True):
    """A container's port."""

    host_port: int = 0


class Container(_Struct, frozen=True):
    """A container or init container."""

    name: str = ""
    resources: Resources = Resources()
    restart_policy: str = ""
    ports: tuple[Port, ...] | None = None


class ContainerStatus(_Struct, frozen=True):
    """What a container really holds while it is resized in place (rule R5)."""

    name: str = ""
    allocated_resources: dict[str, str | int | float] | None = None
    resources: Resources | None = None


class Toleration(_Struct, frozen=True):
    """A toleration."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Requirement(_Struct, frozen=True):
    """A requirement on a label or field."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(_Struct, frozen=True):
    """A term: all of its requirements must hold."""

    match_expressions: tuple[Requirement, ...] | None = None
    match_fields: tuple[Requirement, ...] | None = None


class NodeSelector(_Struct, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class NodeAffinity(_Struct, frozen=True):
    """The hard half of a node affinity."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class LabelSelector(_Struct, frozen=True):
    """A label selector; None where it is missing matters to its readers (rule IA5)."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = None


class PodAffinityTerm(_Struct, frozen=True):
    """A term of a pod affinity or anti-affinity."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None


class PodAffinity(_Struct, frozen=True):
    """The hard half of a pod affinity or anti-affinity."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None


class Affinity(_Struct, frozen=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(_Struct, frozen=True):
    """A topology spread constraint."""

    topology_key: str = ""
    when_unsatisfiable: str = ""


class ClaimSource(_Struct, frozen=True):
    """A volume from a claim."""

    claim_name: str = ""


class Volume(_Struct, frozen=True):
    """A volume; only the sources that can decide about a node."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Any = None
    gce_persistent_disk: Any = None
    aws_elastic_block_store: Any = None
    azure_disk: Any = None
    iscsi: Any = None
    rbd: Any = None


class SchedulingGroup(_Struct, frozen=True):
    """A native gang (Kubernetes 1.36 and later)."""

    pod_group_name: str = ""


class PodSpec(_Struct, frozen=True):
    """What a pod asks for."""

    scheduler_name: str = ""
    node_name: str = ""
    priority: int = 0
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] | None = None
    overhead: dict[str, str | int | float] | None = None
    resources: Resources | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[SpreadConstraint, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    resource_claims: tuple[Any, ...] | None = None
    scheduling_gates: tuple[Any, ...] | None = None
    scheduling_group: SchedulingGroup | None = None


class PodStatus(_Struct, frozen=True):
    """What has become of a pod."""

    phase: str = ""
    start_time: str = ""
    conditions: tuple[Condition, ...] | None = None
    nominated_node_name: str = ""
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    allocated_resources: dict[str, str | int | float] | None = None
    resources: Resources | None = None


class Pod(_Struct, frozen=True):
    """A pod of any scheduler."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_finished(self) -> bool:
        """Whether its containers have ended for good."""
        return self.status.phase in ("Succeeded", "Failed")

    def condition(self, type_: str) -> Condition | None:
        """The condition of that type."""
        return next((c for c in self.status.conditions or () if c.type == type_), None)


class Taint(_Struct, frozen=True):
    """A taint."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(_Struct, frozen=True):
    """What the administrator says about a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class NodeStatus(_Struct, frozen=True):
    """What the kubelet says about a node."""

    allocatable: dict[str, str | int | float] | None = None
    conditions: tuple[Condition, ...] | None = None


class Node(_Struct, frozen=True):
    """A node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ClaimSpec(_Struct, frozen=True):
    """What a claim asks for."""

    volume_name: str = ""
    access_modes: tuple[str, ...] | None = None


class ClaimStatus(_Struct, frozen=True):
    """Where a claim stands."""

    phase: str = ""


class VolumeClaim(_Struct, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: ObjectMeta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class ClaimReference(_Struct, frozen=True):
    """The claim that a volume is bound to."""

    name: str = ""
    namespace: str = ""


class VolumeSpec(_Struct, frozen=True):
    """Where a volume can be used."""

    claim_ref: ClaimReference | None = None
    node_affinity: Any = None
    csi: Any = None


class PersistentVolume(_Struct, frozen=True):
    """A PersistentVolume."""

    metadata: ObjectMeta
    spec: VolumeSpec = VolumeSpec()
