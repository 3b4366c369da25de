"""What the status of a PodGroup says: phase, counts and times: pure.

Owns: phases (cases C46 to C50) and the two stamps. Does not own: when a group is made or deleted
(`controller.plan`), or the conditions, which are the scheduler's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from controller.members import Counts, GroupState, count
from groups.contract import Phase
from groups.objects import split_key
from groups.podgroup import PodGroup, PodGroupStatus
from groups.times import format_micro_time, parse_time

#: A group that is older than this when we first see it gets its real age, to the second, as creationTime.
_FRESH = dt.timedelta(seconds=5)


def phase_of(counts: Counts, minimum: int) -> Phase:
    """The phase of a group whose work is not over."""
    if counts.running and counts.running + counts.done >= minimum:
        return Phase.RUNNING
    return Phase.SCHEDULING if counts.total >= minimum else Phase.PENDING


def status_changes(
    state: GroupState, group: PodGroup, minimum: int, end: Phase | None, now: dt.datetime
) -> Mapping[str, Any] | None:
    """The fields of the status that must change, None where there are none.

    `end` is the phase of a group whose work is over, None before that.
    """
    counts = count(state.members)
    is_complete = counts.total >= minimum
    created = group.status.creation_time or format_micro_time(_created(group, now))
    wanted = PodGroupStatus(
        phase=end or phase_of(counts, minimum),
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
    """When the last member joined, which was a little before the status is written."""
    joined = format_micro_time(min(state.joined or now, now))
    # Both have six digits and the same zone, so that text compares as time does.
    return max(joined, created)


def _occupants(state: GroupState) -> str:
    """The workloads whose pods fill the group, as scheduler-plugins writes them."""
    namespace, _ = split_key(state.key)
    names = {one.owner.reference.name for one in state.members if one.owner is not None}
    return ",".join(f"{namespace}/{name}" for name in sorted(names))
