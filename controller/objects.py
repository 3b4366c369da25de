"""Pods and workloads as the API server sends them: only the fields that are read."""

from __future__ import annotations

from typing import Any

import msgspec

from groups.objects import Condition, ObjectMeta


class _Struct(msgspec.Struct, frozen=True, rename="camel"):
    """Camel-case names as in the API, and values that never change."""


class PodSpec(_Struct, frozen=True):
    """Which scheduler the pod asks for, and its node."""

    scheduler_name: str = ""
    node_name: str = ""


class PodStatus(_Struct, frozen=True):
    """The phase of the pod."""

    phase: str = ""


class WirePod(_Struct, frozen=True):
    """A pod with all of its labels and annotations; `controller.pods` keeps less."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class TemplateMeta(_Struct, frozen=True):
    """Labels and annotations of the pods that a workload makes."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class PodTemplate(_Struct, frozen=True):
    """What a workload makes its pods from."""

    metadata: TemplateMeta = TemplateMeta()


class WorkloadSpec(_Struct, frozen=True):
    """The counted fields of all built-in kinds together, and the template; a kind has those of its API."""

    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    pod_management_policy: str | None = None
    template: PodTemplate | None = None


class WorkloadStatus(_Struct, frozen=True):
    """What the workload's own controller says about it."""

    succeeded: int | None = None
    conditions: tuple[Condition, ...] | None = None


class BuiltInWorkload(_Struct, frozen=True):
    """An object of one of Kubernetes' own kinds that are counted."""

    metadata: ObjectMeta
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    def has_condition(self, *types: str) -> bool:
        """Whether one of the conditions is True."""
        return any(one.type in types and one.status == "True" for one in self.status.conditions or ())


class CustomWorkload(_Struct, frozen=True):
    """An object of any other kind that a rule counts, with its whole spec and status."""

    metadata: ObjectMeta
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None
