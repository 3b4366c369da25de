"""What a workload asks for and what may still come from it: pure.

Owns: how many members it counts (rules A7 and A8), whether it will make more pods, and how it ended (rule
A6). Does not own: finding the object.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from controller.objects import BuiltInWorkload, CustomWorkload
from groups.contract import GROUP_LABEL, SIZE_LABEL, parse_group_size
from groups.errors import ContractError
from groups.objects import ObjectMeta, OwnerReference
from groups.workloads.rules import Rule
from groups.workloads.shapes import lookup
from groups.workloads.sizing import count_members, has_counted_size, members_by_group


class OwnerState(enum.StrEnum):
    """Whether an owner makes pods."""

    ACTIVE = "Active"
    """It may make more pods."""
    SUSPENDED = "Suspended"
    """It makes none now, but may later."""
    FINISHED = "Finished"
    """It exists and will make no more."""
    DELETED = "Deleted"
    """It is deleted, or being deleted."""
    UNKNOWN = "Unknown"
    """No rule counts its kind, so that it is not looked up."""


class Workload(msgspec.Struct, frozen=True, gc=False):
    """What is kept of an object that a rule counts.

    `members` is the size that it asks for; `sizes` are those of the groups that its templates are labelled
    with. `completions` is the number of successes after which a Job is over. `has_succeeded` says that its
    own status tells of success.
    """

    metadata: ObjectMeta
    state: OwnerState
    members: int
    sizes: dict[str, int]
    completions: int | None = None
    has_succeeded: bool = False
    group_label: str = ""
    size_label: str = ""


@dataclass(frozen=True)
class Owner:
    """The object behind a pod. For a Deployment's pod that is the Deployment, not its ReplicaSet.

    `members` is the size that it asks for, None where no rule counts its kind; the other fields are those of
    `Workload`.
    """

    reference: OwnerReference
    state: OwnerState
    members: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    completions: int | None = None
    has_succeeded: bool = False
    group_label: str = ""
    size_label: str = ""

    @property
    def uid(self) -> str:
        """The uid of the object."""
        return self.reference.uid

    def members_of(self, group: str) -> int | None:
        """The size that it asks for in one of its groups, None where no rule counts its kind."""
        return self.sizes.get(group, self.members)

    @property
    def is_counted(self) -> bool:
        """Whether a rule counts the members of such owners (rule A8)."""
        return self.state is not OwnerState.UNKNOWN

    @property
    def is_deleted(self) -> bool:
        """Whether it is known to be deleted, or about to be."""
        return self.state is OwnerState.DELETED


def unknown_owner(reference: OwnerReference) -> Owner:
    """An owner of a kind that no rule counts."""
    return Owner(reference, OwnerState.UNKNOWN)


def deleted_owner(reference: OwnerReference) -> Owner:
    """An owner of a known kind that no longer exists."""
    return Owner(reference, OwnerState.DELETED)


def owner_of(reference: OwnerReference, workload: Workload) -> Owner:
    """The owner that `workload` is for the pods that name it by `reference`."""
    return Owner(
        reference,
        workload.state,
        workload.members,
        workload.sizes,
        workload.completions,
        workload.has_succeeded,
        workload.group_label,
        workload.size_label,
    )


def read_workload(
    rule: Rule, wire: BuiltInWorkload | CustomWorkload, scheduler_name: str | None = None
) -> Workload:
    """What is kept of `wire`, an object of the kind of `rule`.

    The templates of a custom kind say whose pods it makes: those of `scheduler_name` count.
    """
    meta = wire.metadata
    raw = msgspec.to_builtins(wire)
    size_label = "" if has_counted_size(rule, raw) else meta.label(SIZE_LABEL)
    is_custom = isinstance(wire, CustomWorkload)
    stated = _stated_size(size_label)
    controller = meta.controller
    return Workload(
        ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            owner_references=(controller,) if controller is not None else None,
        ),
        _state_of(rule, wire),
        members=stated or count_members(rule, raw, scheduler_name if is_custom else None),
        sizes=members_by_group(rule, raw, scheduler_name, stated=stated) if is_custom else {},
        completions=None if isinstance(wire, CustomWorkload) else wire.spec.completions,
        has_succeeded=_has_succeeded(rule, wire),
        group_label=meta.label(GROUP_LABEL),
        size_label=size_label,
    )


def _stated_size(label: str) -> int | None:
    """The size that the user wrote on the object itself (A3); `controller.adoption` reports a bad one."""
    try:
        return parse_group_size(label) if label else None
    except ContractError:
        return None


def _state_of(rule: Rule, wire: BuiltInWorkload | CustomWorkload) -> OwnerState:
    if wire.metadata.deletion_timestamp is not None:
        return OwnerState.DELETED
    if isinstance(wire, CustomWorkload):
        return OwnerState.FINISHED if _final_words(rule, wire) else OwnerState.ACTIVE
    if rule.kind == "Job":
        return _state_of_job(wire)
    return OwnerState.FINISHED if wire.spec.replicas == 0 else OwnerState.ACTIVE


def _state_of_job(job: BuiltInWorkload) -> OwnerState:
    wanted = job.spec.completions
    if job.has_condition("Complete", "Failed") or (
        wanted is not None and (job.status.succeeded or 0) >= wanted
    ):
        return OwnerState.FINISHED
    is_suspended = job.spec.suspend or job.spec.parallelism == 0
    return OwnerState.SUSPENDED if is_suspended else OwnerState.ACTIVE


def _has_succeeded(rule: Rule, wire: BuiltInWorkload | CustomWorkload) -> bool:
    if isinstance(wire, BuiltInWorkload):
        return wire.has_condition(*rule.finished.succeeded)
    return bool(_final_words(rule, wire) & set(rule.finished.succeeded))


def _final_words(rule: Rule, wire: CustomWorkload) -> set[str]:
    """The conditions and the phase by which the status says that no more pods will come."""
    status = wire.status or {}
    conditions = status.get("conditions")
    found = {
        one["type"]
        for one in (conditions if isinstance(conditions, list) else ())
        if isinstance(one, dict)
        and one.get("type") in rule.finished.conditions
        and one.get("status") == "True"
    }
    if rule.finished.phase is not None:
        phase = lookup({"status": status}, rule.finished.phase)
        found |= {phase} if phase in rule.finished.phases else set()
    return found
