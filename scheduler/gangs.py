"""Where a gang stands before anybody looks for room: pure.

Owns: which pods are members of the present run, which have their place, how many must be placed now (A5), why
a gang cannot be tried yet, whether it is stranded (A5b), and the order of the queue. Does not own: room on
nodes, or what is done about a stranded gang (`scheduler.stranded`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from groups.contract import (
    GROUP_SCHEDULED_CONDITION,
    ON_STRANDED_ANNOTATION,
    OnStranded,
    Phase,
    Why,
)
from groups.membership import is_member, is_of_other_run
from groups.objects import Key, split_key
from groups.podgroup import PodGroup
from groups.times import format_micro_time, parse_time
from scheduler.pods import CachedPod

DEFAULT_TIMEOUT_S = 60.0
#: Phases that a group reaches only after its quorum.
_AFTER_QUORUM = frozenset({Phase.RUNNING, Phase.FINISHED, Phase.FAILED})


@dataclass(frozen=True, slots=True)
class GangState:
    """A gang as it stands: `why` is None when it may be tried now.

    `settled` members have their place: bound, running, succeeded, or being bound by us. `holding` are those
    of them that take room on a node. `seen` counts the settled members that the API server shows as such.
    """

    key: Key
    group: PodGroup | None
    minimum: int
    settled: tuple[CachedPod, ...]
    holding: tuple[CachedPod, ...]
    candidates: tuple[CachedPod, ...]
    seen: int
    why: Why | None = None
    message: str = ""

    @property
    def needed(self) -> int:
        """How many candidates must be placed together; 0 once the quorum is reached (A5)."""
        return max(0, self.minimum - len(self.settled))

    @property
    def is_stranded(self) -> bool:
        """Whether some members hold nodes and fewer than the group needs have their place (A5b)."""
        return bool(self.holding) and self.needed > 0

    @property
    def priority(self) -> int:
        """The group's priority: the highest of its members'."""
        return max((pod.priority for pod in (*self.candidates, *self.holding)), default=0)

    @property
    def had_quorum(self) -> bool:
        """Whether the group has reached its quorum at some time; the object tells, also after a restart."""
        if self.group is None:
            return False
        if self.group.status.phase in _AFTER_QUORUM:
            return True
        conditions = self.group.status.conditions or ()
        return any(one.type == GROUP_SCHEDULED_CONDITION and one.status == "True" for one in conditions)

    @property
    def is_released_when_stranded(self) -> bool:
        """Whether its members are given back when it cannot be completed in time (A5b)."""
        if not self.had_quorum:
            return True
        return self.group is not None and (
            self.group.metadata.annotation(ON_STRANDED_ANNOTATION) == OnStranded.RELEASE
        )

    @property
    def timeout_s(self) -> float:
        """How long it may stay stranded."""
        wanted = self.group.spec.schedule_timeout_seconds if self.group is not None else None
        return float(wanted) if wanted and wanted > 0 else DEFAULT_TIMEOUT_S

    @property
    def order(self) -> tuple[int, bool, str, str]:
        """Sort key of the queue: priority, stranded first, then creation, then name (PR1, A5b, case C111)."""
        return (-self.priority, not self.is_stranded, created(self.group), self.key)


def examine(
    key: Key,
    group: PodGroup | None,
    pods: Iterable[CachedPod],
    is_assumed: Callable[[str], bool] = lambda _: False,
) -> GangState:
    """Say where the gang stands: ready to be tried, or why not.

    `pods` carry the group's label. `is_assumed` tells of a uid whether its binding is under way.
    """
    run_uid = group.metadata.uid if group is not None else ""
    references = (group.metadata.owner_references or ()) if group is not None else ()
    owners = {ref.uid for ref in references}
    settled, holding, candidates, strangers, gated, seen = [], [], [], [], 0, 0
    for pod in pods:
        if not is_member(pod, run_uid, owners, references):
            if not pod.is_finished and not pod.node_name and is_of_other_run(pod, references):
                strangers.append(pod)
            continue
        if pod.phase == "Failed":
            continue
        if pod.node_name or pod.is_finished:
            settled.append(pod)
            seen += 1
            if not pod.is_finished:
                holding.append(pod)
        elif is_assumed(pod.metadata.uid):
            settled.append(pod)
            holding.append(pod)
        elif pod.is_gated:
            gated += 1
        else:
            candidates.append(pod)
    minimum = group.spec.min_member if group is not None else 0
    why, message = _waits(key, group, minimum, len(settled), len(candidates), gated)
    if strangers and not candidates and not settled:
        # They wait until their own PodGroup takes the place of this one, and are not silent meanwhile.
        candidates, why = strangers, Why.WAITING_FOR_GROUP
        message = f"waiting for a PodGroup of their own: {split_key(key)[1]} belongs to an owner made anew"
    candidates.sort(key=lambda pod: pod.metadata.name)
    return GangState(
        key, group, minimum, tuple(settled), tuple(holding), tuple(candidates), seen, why, message
    )


def _waits(
    key: Key, group: PodGroup | None, minimum: int, settled: int, candidates: int, gated: int
) -> tuple[Why | None, str]:
    """Why the gang cannot be tried, and the sentence that says so."""
    _, name = split_key(key)
    if group is None or group.metadata.deletion_timestamp is not None:
        return Why.WAITING_FOR_GROUP, f"waiting for PodGroup {name}: it does not exist yet"
    if settled < minimum and gated:
        members = "1 member has" if gated == 1 else f"{gated} members have"
        return (
            Why.SCHEDULING_GATED,
            f"waiting: {members} scheduling gates in group {name}; the group starts whole",
        )
    exist = settled + candidates
    if exist < minimum:
        verb = "exists" if minimum == 1 else "exist"
        return Why.WAITING_FOR_MEMBERS, f"waiting: {exist} of {minimum} members of group {name} {verb}"
    return None, ""


def created(group: PodGroup | None) -> str:
    """When the group was made, as text that sorts like time.

    A group that has no stamp yet is ordered by its creationTimestamp, which has no fraction.
    """
    if group is None:
        return ""
    stamp = group.status.creation_time or group.metadata.creation_timestamp
    try:
        return format_micro_time(parse_time(stamp))
    except ValueError:
        return stamp
