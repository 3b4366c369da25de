"""What to do about one group: a pure function of its whole state and the time.

Owns: when a PodGroup is made, what its spec and status say, when it goes (rules A5, A6, A8). Does not own:
reading the state, or carrying the plan out.

A plan carried out leaves nothing to plan: nothing is written that would not change. Spec and status are
separate writes (case C45). Of PodGroups that others made only the status is ours.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from controller.members import Counts, GroupState, Member, count
from controller.owners import Owner, Prospect
from controller.sizes import Complaint, complaints, is_sound, min_member
from groups.contract import CREATED_BY_ANNOTATION, CREATED_BY_CONTROLLER, Phase, is_group_name
from groups.objects import OwnerReference, split_key
from groups.podgroup import PodGroup, PodGroupStatus
from groups.times import format_micro_time, parse_time

#: A group that is older than this when we first see it gets its real age, to the second, as creationTime.
_FRESH = dt.timedelta(seconds=5)


@dataclass(frozen=True)
class Wanted:
    """The parts of a PodGroup that are ours where we made it."""

    min_member: int
    owners: tuple[OwnerReference, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What to do: at most one of `create`, `delete` and the two updates. Nothing in it: nothing to do.

    `update` holds the whole wanted spec, `status` only the fields that change, by their names in the API.
    """

    create: Wanted | None = None
    update: Wanted | None = None
    status: Mapping[str, Any] | None = None
    delete: bool = False
    complaints: tuple[Complaint, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to write."""
        return not (self.create or self.update or self.status or self.delete)


def plan(state: GroupState, now: dt.datetime) -> Plan:
    """Decide what to do about a group."""
    told = tuple(complaints(state))
    group = state.group
    if group is None:
        return Plan(create=_new_group(state), complaints=told)
    if group.metadata.deletion_timestamp is not None:
        return Plan(complaints=told)
    if not is_ours(group):
        if _is_foreign_business(state, group):
            return Plan(complaints=told)
        return Plan(status=_status(state, group, group.spec.min_member, now), complaints=told)
    if is_over(state, group.spec.min_member):
        return Plan(delete=True, complaints=told)
    wanted = _wanted(state, group)
    return Plan(
        update=wanted if wanted != _present(group) else None,
        status=_status(state, group, wanted.min_member, now),
        complaints=told,
    )


def is_ours(group: PodGroup) -> bool:
    """Whether our controller made this PodGroup, and so may change its spec and delete it."""
    return group.metadata.annotation(CREATED_BY_ANNOTATION) == CREATED_BY_CONTROLLER


def is_over(state: GroupState, minimum: int) -> bool:
    """Whether a group of ours goes (rule A6)."""
    if not state.members:
        return not any(owner.prospect is Prospect.MORE for owner in state.all_owners)
    return count(state.members).done >= minimum and _has_ended(state)


def _has_ended(state: GroupState) -> bool:
    """Whether no member waits or runs, and no owner will make another one."""
    return not count(state.members).live and not any(
        _may_make_more(owner, state.members) for owner in state.all_owners
    )


def _has_failed_early(state: GroupState) -> bool:
    """Whether a group ended with fewer members than it needs: a Job gave up, for one.

    Only an owner of a known kind can tell; without one, the missing members may still come.
    """
    return _has_ended(state) and any(owner.is_counted for owner in state.all_owners)


def _may_make_more(owner: Owner, members: Iterable[Member]) -> bool:
    if owner.prospect not in (Prospect.MORE, Prospect.PAUSED):
        return False
    if owner.completions is None:
        return True
    # The pods tell it a moment before the Job's own status does.
    succeeded = sum(
        1
        for one in members
        if one.owner is not None and one.owner.uid == owner.uid and one.pod.status.phase == "Succeeded"
    )
    return succeeded < owner.completions


def _is_foreign_business(state: GroupState, group: PodGroup) -> bool:
    """Whether another controller keeps this group: it has a phase, and never had a pod of ours.

    Two controllers that correct each other's status would never stop.
    """
    return bool(group.status.phase) and not state.members and not state.had_members


def _new_group(state: GroupState) -> Wanted | None:
    """A group is made for members that can still be placed, never for leftovers (cases C15, C49)."""
    if not is_group_name(state.name):
        return None
    hopeful = [one for one in state.members if one.can_start and is_sound(one)]
    if not hopeful:
        return None
    minimum = min_member(state.members, None)
    return Wanted(minimum, _references(hopeful, minimum))


def _present(group: PodGroup) -> Wanted:
    return Wanted(group.spec.min_member, group.metadata.owner_references or ())


def _wanted(state: GroupState, group: PodGroup) -> Wanted:
    minimum = min_member(state.members, group)
    kept = [owner for owner in group.metadata.owner_references or () if minimum == 1 or not _is_pod(owner)]
    new = _references([one for one in state.members if one.can_start], minimum)
    known = {owner.uid for owner in kept}
    return Wanted(minimum, (*kept, *(owner for owner in new if owner.uid not in known)))


def _references(members: Iterable[Member], minimum: int) -> tuple[OwnerReference, ...]:
    """With which objects the group shall go: the owners of its members, each once.

    A bare pod is one only where it is a gang alone: else the group would vanish with its first pod.
    """
    found: dict[str, OwnerReference] = {}
    for one in members:
        if one.owner is not None:
            found.setdefault(one.owner.uid, one.owner.reference)
        elif minimum == 1:
            meta = one.pod.metadata
            found[meta.uid] = OwnerReference("Pod", meta.name, meta.uid, "v1")
    return tuple(found[uid] for uid in sorted(found))


def _is_pod(owner: OwnerReference) -> bool:
    return owner.kind == "Pod" and owner.api_version == "v1"


def phase_of(counts: Counts, minimum: int, *, ended: bool) -> Phase:
    """The phase that the counts tell; `ended` says that nothing more will happen (cases C46 to C50)."""
    if ended and counts.total:
        return Phase.FINISHED if counts.succeeded >= minimum else Phase.FAILED
    if counts.running and counts.running + counts.done >= minimum:
        return Phase.RUNNING
    return Phase.SCHEDULING if counts.total >= minimum else Phase.PENDING


def _status(state: GroupState, group: PodGroup, minimum: int, now: dt.datetime) -> Mapping[str, Any] | None:
    """The fields of the status that must change, None where there are none."""
    counts = count(state.members)
    is_complete = counts.total >= minimum
    created = group.status.creation_time or format_micro_time(_created(group, now))
    wanted = PodGroupStatus(
        phase=phase_of(counts, minimum, ended=is_over(state, minimum) or _has_failed_early(state)),
        occupied_by=_occupants(state),
        running=counts.running,
        succeeded=counts.succeeded,
        failed=counts.failed,
        creation_time=created,
        schedule_start_time=group.status.schedule_start_time
        or (_completed(state, created, now) if is_complete else None),
    )
    return _difference(group.status, wanted) or None


def _difference(old: PodGroupStatus, new: PodGroupStatus) -> dict[str, Any]:
    pairs = {
        "phase": (old.phase, str(new.phase)),
        "occupiedBy": (old.occupied_by, new.occupied_by),
        "running": (old.running, new.running),
        "succeeded": (old.succeeded, new.succeeded),
        "failed": (old.failed, new.failed),
        "creationTime": (old.creation_time, new.creation_time),
        "scheduleStartTime": (old.schedule_start_time, new.schedule_start_time),
    }
    # The first write also says that there are none of a kind: `kubectl get` then shows 0 and no gap.
    counts = {"running", "succeeded", "failed"} if not old.creation_time else set[str]()
    return {name: wanted for name, (present, wanted) in pairs.items() if wanted != present or name in counts}


def _created(group: PodGroup, now: dt.datetime) -> dt.datetime:
    """When the group was made: now, unless it is known to be older (a user's, or our stamp got lost)."""
    if not group.metadata.creation_timestamp:
        return now
    known = parse_time(group.metadata.creation_timestamp)
    return known if now - known > _FRESH else now


def _completed(state: GroupState, created: str, now: dt.datetime) -> str:
    """When the last member joined; status is written a little later, and a stamp tells the event."""
    joined = format_micro_time(min(state.joined or now, now))
    # Both have six digits and the same zone, so that text compares as time does.
    return max(joined, created)


def _occupants(state: GroupState) -> str:
    """The workloads whose pods fill the group, as scheduler-plugins writes them."""
    namespace, _ = split_key(state.key)
    names = {one.owner.reference.name for one in state.members if one.owner is not None}
    return ",".join(f"{namespace}/{name}" for name in sorted(names))
