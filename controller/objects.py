"""Pods and the workloads that make them, as the API server sends them: only the fields in use."""

from __future__ import annotations

from typing import Any

import msgspec

from groups.objects import Condition, ObjectMeta


class _Struct(msgspec.Struct, frozen=True, rename="camel"):
    """Camel-case names as in the API, and values that never change."""


class PodSpec(_Struct, frozen=True):
    """Whose pod it is, and where it has gone."""

    scheduler_name: str = ""
    node_name: str = ""


class PodStatus(_Struct, frozen=True):
    """How far it has come."""

    phase: str = ""


class Pod(_Struct, frozen=True):
    """A pod, as far as its group is concerned."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_finished(self) -> bool:
        """Whether it will never run again."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_going(self) -> bool:
        """Whether somebody has deleted it; it may still run for a while."""
        return self.metadata.deletion_timestamp is not None


class WorkloadSpec(_Struct, frozen=True):
    """The fields of all counted kinds together; a kind has those that its API has."""

    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    pod_management_policy: str | None = None


class WorkloadStatus(_Struct, frozen=True):
    """What its own controller says about it."""

    succeeded: int | None = None
    conditions: tuple[Condition, ...] | None = None


class Workload(_Struct, frozen=True):
    """An object of one of the kinds of Kubernetes itself that are counted: they are many, so keep little."""

    metadata: ObjectMeta
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    def has_condition(self, *types: str) -> bool:
        """Whether one of the conditions is True."""
        return any(one.type in types and one.status == "True" for one in self.status.conditions or ())


class AnyWorkload(_Struct, frozen=True):
    """An object of any other kind that a rule counts, with whatever its spec holds."""

    metadata: ObjectMeta
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None
