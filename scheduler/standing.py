"""Where a gang stands before anybody looks for room: pure.

Owns: which pods are members, which are settled, how many must be placed now (A5), and why a gang cannot be
tried yet. Does not own: room on nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from groups.contract import GROUP_LABEL, Why
from groups.objects import Key, split_key
from groups.podgroup import PodGroup
from groups.times import format_micro_time, parse_time
from scheduler.objects import Pod


@dataclass(frozen=True, slots=True)
class Standing:
    """A gang as it stands: `why` is None when it may be tried now."""

    key: Key
    minimum: int
    settled: int
    candidates: tuple[Pod, ...]
    why: Why | None = None
    message: str = ""

    @property
    def needed(self) -> int:
        """How many candidates must be placed together; 0 once the quorum is reached (A5)."""
        return max(0, self.minimum - self.settled)


def group_of(pod: Pod, scheduler_name: str) -> Key | None:
    """The gang that a pod is a member of, if it is ours at all (rule S1, A2)."""
    if pod.spec.scheduler_name != scheduler_name:
        return None
    name = pod.metadata.label(GROUP_LABEL)
    return Key(f"{pod.metadata.namespace}/{name}") if name else None


def is_settled(pod: Pod, assumed: Collection[str]) -> bool:
    """Whether a member counts as placed: bound, Running or Succeeded, or being bound by us (A5).

    A pod that is being deleted has left the gang, and so has a failed one.
    """
    if pod.metadata.deletion_timestamp is not None or pod.status.phase == "Failed":
        return False
    return bool(pod.spec.node_name) or pod.status.phase == "Succeeded" or pod.metadata.uid in assumed


def is_candidate(pod: Pod) -> bool:
    """Whether a member that is not settled could be bound now (rules S1, S2)."""
    return (
        not pod.spec.node_name
        and pod.metadata.deletion_timestamp is None
        and not pod.is_finished
        and not pod.spec.scheduling_gates
    )


def examine(key: Key, group: PodGroup | None, members: Iterable[Pod], assumed: Collection[str]) -> Standing:
    """Say where the gang stands: ready to be tried, or why not.

    `assumed` holds the uids of pods whose binding is under way.
    """
    settled, gated, candidates = 0, 0, []
    for pod in members:
        if is_settled(pod, assumed):
            settled += 1
        elif is_candidate(pod):
            candidates.append(pod)
        elif pod.spec.scheduling_gates and pod.metadata.deletion_timestamp is None:
            gated += 1
    candidates.sort(key=lambda pod: pod.metadata.name)
    minimum = group.spec.min_member if group is not None else 0
    standing = Standing(key, minimum, settled, tuple(candidates))
    if not candidates:
        return standing
    _, name = split_key(key)
    if group is None or group.metadata.deletion_timestamp is not None:
        return _waits(standing, Why.WAITING_FOR_GROUP, f"waiting for PodGroup {name}: it does not exist yet")
    if standing.needed and gated:
        return _waits(
            standing,
            Why.SCHEDULING_GATED,
            f"waiting: {gated} members of group {name} have scheduling gates; the group starts whole",
        )
    exist = settled + len(candidates)
    if exist < minimum:
        return _waits(
            standing, Why.WAITING_FOR_MEMBERS, f"waiting: {exist} of {minimum} members of group {name} exist"
        )
    return standing


def _waits(standing: Standing, why: Why, message: str) -> Standing:
    return Standing(
        standing.key, standing.minimum, standing.settled, standing.candidates, why=why, message=message
    )


def queue_order(standing: Standing, group: PodGroup | None) -> tuple[int, str, str]:
    """Sort key of the queue: higher priority, then earlier creation, then name (PR1, case C111).

    A group that nobody has stamped yet is ordered by its creationTimestamp, which has no fraction.
    """
    priority = max((pod.spec.priority for pod in standing.candidates), default=0)
    created = ""
    if group is not None:
        created = group.status.creation_time or group.metadata.creation_timestamp
    return (-priority, _comparable(created), standing.key)


def _comparable(stamp: str) -> str:
    """The time with six digits, whatever precision and zone it came in; text then sorts as time does."""
    try:
        return format_micro_time(parse_time(stamp))
    except ValueError:
        return stamp
