"""What to do about one group: a pure function of its whole state and the time.

Owns: when a PodGroup is made, what its spec says, when its work is over and when it is deleted (rules A5, A6,
A8). Does not own: reading the state, or carrying the plan out.

A plan carried out leaves nothing to plan: nothing is written that would not change. Spec and status are
separate writes (case C45). Of PodGroups that others made only the status is ours.
"""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from controller.members import GroupState, Member, count
from controller.mistakes import Mistake, mistake_of, mistakes
from controller.owners import Owner, OwnerState
from controller.pods import Pod
from controller.runs import founders, is_pod, is_replaced, recorded_owners, unmarked
from controller.sizes import min_member
from controller.status import status_changes
from groups.contract import CREATED_BY_ANNOTATION, CREATED_BY_CONTROLLER, Phase, is_group_name
from groups.objects import OwnerReference
from groups.podgroup import PodGroup


class DeleteReason(enum.StrEnum):
    """Why a PodGroup is deleted."""

    WORK_IS_OVER = "its work is over"
    OWNER_REPLACED = "another workload of its name has taken the place of its owner"


@dataclass(frozen=True)
class Wanted:
    """The parts of a PodGroup that are ours where we made it.

    `recorded` are the uids of the workloads among its owners, for `controller.runs`.
    """

    min_member: int
    owners: tuple[OwnerReference, ...] = ()
    recorded: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Plan:
    """What to do: at most one of `create`, `delete` and the two updates. Nothing in it: nothing to do.

    `update` holds the whole wanted spec, `status` only the fields that change, by their names in the API.
    `marks` are pods that get the run's mark.
    """

    create: Wanted | None = None
    update: Wanted | None = None
    status: Mapping[str, Any] | None = None
    delete: DeleteReason | None = None
    marks: tuple[Pod, ...] = ()
    mistakes: tuple[Mistake, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to write."""
        return not (self.create or self.update or self.status or self.delete or self.marks)


def plan(state: GroupState, now: dt.datetime) -> Plan:
    """Decide what to do about a group."""
    return replace(_writes(state, now), mistakes=tuple(mistakes(state)))


def _writes(state: GroupState, now: dt.datetime) -> Plan:
    group = state.group
    if group is None:
        return Plan(create=_new_group(state))
    if group.metadata.deletion_timestamp is not None:
        return Plan()
    minimum = group.spec.min_member
    if not is_ours(group):
        if _is_kept_by_others(state, group):
            return Plan()
        status = status_changes(state, group, minimum, end_of(state, minimum), now)
        return Plan(status=status, marks=unmarked(state, group))
    if is_replaced(state, group):
        return Plan(delete=DeleteReason.OWNER_REPLACED)
    if is_over(state, group):
        return Plan(delete=DeleteReason.WORK_IS_OVER)
    wanted = _wanted(state, group)
    minimum = wanted.min_member
    return Plan(
        update=wanted if wanted != _present(group) else None,
        status=status_changes(state, group, minimum, end_of(state, minimum), now),
        marks=unmarked(state, group),
    )


def is_ours(group: PodGroup) -> bool:
    """Whether our controller made this PodGroup, and so may change its spec and delete it."""
    return group.metadata.annotation(CREATED_BY_ANNOTATION) == CREATED_BY_CONTROLLER


def is_over(state: GroupState, group: PodGroup) -> bool:
    """Whether a group of ours is deleted (rule A6). While an owner was not looked up, it is not."""
    workloads = {one.uid for one in group.metadata.owner_references or () if not is_pod(one)}
    if not workloads <= state.owners.keys():
        return False
    if not state.members:
        return not any(owner.state is OwnerState.ACTIVE for owner in state.all_owners)
    counts = count(state.members)
    if counts.live:
        return False
    return _owners_succeeded(state) or (counts.done >= group.spec.min_member and _has_ended(state))


def end_of(state: GroupState, minimum: int) -> Phase | None:
    """The last phase of a group whose work is over, None while something may still happen.

    The owner's word counts first. A group that ends with fewer members than it needs has failed. Only an
    owner of a known kind can tell that: without one, the missing members may still come.
    """
    if not state.members:
        return None
    if _owners_succeeded(state):
        return Phase.FINISHED
    counts = count(state.members)
    is_known = any(owner.is_counted for owner in state.all_owners)
    if not _has_ended(state) or not (is_known or counts.done >= minimum):
        return None
    return Phase.FINISHED if counts.succeeded >= minimum else Phase.FAILED


def _owners_succeeded(state: GroupState) -> bool:
    """Whether every owner that is left says itself that it is over and went well.

    Such an owner may have deleted most of its pods: a Job with a success policy, an MPIJob whose workers are
    cleaned up.
    """
    owners = [owner for owner in state.all_owners if not owner.is_deleted]
    has_bare = any(one.owner is None and not one.pod.is_finished for one in state.members)
    return bool(owners) and not has_bare and all(owner.has_succeeded for owner in owners)


def _has_ended(state: GroupState) -> bool:
    """Whether no member waits or runs, and no owner will make another one."""
    return not count(state.members).live and not any(
        _may_make_more(owner, state.members) for owner in state.all_owners
    )


def _may_make_more(owner: Owner, members: Iterable[Member]) -> bool:
    if owner.state not in (OwnerState.ACTIVE, OwnerState.SUSPENDED):
        return False
    if owner.completions is None:
        return True
    # The pods show it a moment before the Job's own status does.
    succeeded = sum(
        1
        for one in members
        if one.owner is not None and one.owner.uid == owner.uid and one.pod.phase == "Succeeded"
    )
    return succeeded < owner.completions


def _is_kept_by_others(state: GroupState, group: PodGroup) -> bool:
    """Whether another controller keeps this group: it has a phase, and never had a pod of ours.

    Two controllers that correct each other's status would never stop.
    """
    return bool(group.status.phase) and not state.labelled and not state.had_members


def _new_group(state: GroupState) -> Wanted | None:
    """A group is made for members that can still be placed, never for left-overs (cases C15, C49)."""
    if not is_group_name(state.name):
        return None
    found = [one for one in founders(state) if mistake_of(one.pod) is None]
    if not found:
        return None
    minimum = min_member(found, None)
    owners = _references(found, minimum)
    return Wanted(minimum, owners, _workloads(owners))


def _present(group: PodGroup) -> Wanted:
    owners = group.metadata.owner_references or ()
    return Wanted(group.spec.min_member, owners, recorded_owners(group))


def _wanted(state: GroupState, group: PodGroup) -> Wanted:
    minimum = min_member(state.members, group)
    kept = [owner for owner in group.metadata.owner_references or () if minimum == 1 or not is_pod(owner)]
    new = _references([one for one in state.members if one.is_live], minimum)
    known = {owner.uid for owner in kept}
    owners = (*kept, *(owner for owner in new if owner.uid not in known))
    # Where the last owner was removed, its record tells a later workload of the same name from it.
    return Wanted(minimum, owners, _workloads(owners) or recorded_owners(group))


def _workloads(owners: Iterable[OwnerReference]) -> frozenset[str]:
    return frozenset(owner.uid for owner in owners if not is_pod(owner))


def _references(members: Iterable[Member], minimum: int) -> tuple[OwnerReference, ...]:
    """With which objects the group is deleted: the owners of its members, each once.

    A bare pod is one only where it is a gang alone: else the group would be deleted with its first pod.
    """
    found: dict[str, OwnerReference] = {}
    for one in members:
        if one.owner is not None:
            found.setdefault(one.owner.uid, one.owner.reference)
        elif minimum == 1:
            meta = one.pod.metadata
            found[meta.uid] = OwnerReference("Pod", meta.name, meta.uid, "v1")
    return tuple(found[uid] for uid in sorted(found))
