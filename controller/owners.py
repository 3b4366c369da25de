"""What may still come from the object behind a group's pods: pure.

Owns: how many members it counts (rules A7 and A8), and whether it will make more pods (rule A6). Does not
own: finding the object.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import msgspec

from controller.objects import AnyWorkload, Workload
from groups.contract import GROUP_LABEL, SIZE_LABEL, parse_group_size
from groups.errors import ContractError
from groups.objects import OwnerReference
from groups.workloads.rules import Rule
from groups.workloads.shapes import lookup
from groups.workloads.sizing import count_members


class Prospect(enum.StrEnum):
    """What more an owner will do."""

    MORE = "it may make more pods"
    PAUSED = "it makes none now, but may later"
    OVER = "it is there and will make no more"
    GONE = "it is deleted, or being deleted"
    UNKNOWN = "its kind is not known: only its pods tell"


@dataclass(frozen=True)
class Owner:
    """The object behind a pod. For a Deployment's pod that is the Deployment, not its ReplicaSet.

    `members` is the size that it asks for, None where no rule counts its kind. `completions` is the number
    of successes after which a Job is over.
    """

    reference: OwnerReference
    prospect: Prospect
    members: int | None = None
    completions: int | None = None
    group_label: str = ""
    size_label: str = ""

    @property
    def uid(self) -> str:
        """The uid of the object."""
        return self.reference.uid

    @property
    def is_counted(self) -> bool:
        """Whether a rule counts the members of such owners (rule A8)."""
        return self.prospect is not Prospect.UNKNOWN


def unknown_owner(reference: OwnerReference) -> Owner:
    """An owner of a kind that no rule counts."""
    return Owner(reference, Prospect.UNKNOWN)


def gone_owner(reference: OwnerReference) -> Owner:
    """An owner of a known kind that no longer exists."""
    return Owner(reference, Prospect.GONE)


def describe(
    rule: Rule, reference: OwnerReference, workload: Workload | AnyWorkload, scheduler_name: str | None = None
) -> Owner:
    """The owner that `workload`, an object of the kind of `rule`, is for its pods.

    Where it was read as a whole, its templates tell whose pods it makes: those of `scheduler_name` count.
    """
    size_label = workload.metadata.label(SIZE_LABEL)
    is_whole = isinstance(workload, AnyWorkload)
    counted = count_members(rule, msgspec.to_builtins(workload), scheduler_name if is_whole else None)
    return Owner(
        reference,
        _prospect(rule, workload),
        members=_stated_size(size_label) or counted,
        completions=None if isinstance(workload, AnyWorkload) else workload.spec.completions,
        group_label=workload.metadata.label(GROUP_LABEL),
        size_label=size_label,
    )


def _stated_size(label: str) -> int | None:
    """The size that the user wrote on the object itself (A3); `controller.adoption` tells of a bad one."""
    try:
        return parse_group_size(label) if label else None
    except ContractError:
        return None


def _prospect(rule: Rule, workload: Workload | AnyWorkload) -> Prospect:
    if workload.metadata.deletion_timestamp is not None:
        return Prospect.GONE
    if isinstance(workload, AnyWorkload):
        return Prospect.OVER if _says_it_is_over(rule, workload) else Prospect.MORE
    if rule.kind == "Job":
        return _prospect_of_job(workload)
    return Prospect.OVER if workload.spec.replicas == 0 else Prospect.MORE


def _says_it_is_over(rule: Rule, workload: AnyWorkload) -> bool:
    """Whether the status of a custom resource tells that it will make no more pods."""
    status = workload.status or {}
    conditions = status.get("conditions")
    for one in conditions if isinstance(conditions, list) else ():
        if (
            isinstance(one, dict)
            and one.get("type") in rule.finished.conditions
            and one.get("status") == "True"
        ):
            return True
    if rule.finished.phase is None:
        return False
    return lookup({"status": status}, rule.finished.phase) in rule.finished.phases


def _prospect_of_job(job: Workload) -> Prospect:
    wanted = job.spec.completions
    if job.has_condition("Complete", "Failed") or (
        wanted is not None and (job.status.succeeded or 0) >= wanted
    ):
        return Prospect.OVER
    return Prospect.PAUSED if job.spec.suspend or job.spec.parallelism == 0 else Prospect.MORE
