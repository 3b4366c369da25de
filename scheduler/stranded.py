"""What is done about gangs of which some members hold nodes and others have no place (A5b): pure.

Owns: when the members of a stranded gang are given back, and of several gangs which one; for whom room is
held. Does not own: the calls (`scheduler.release`), or the room itself (`Ledger.hold`).

Two stranded gangs may each hold what the other needs. The younger one is given back first, and one at a time:
what it frees may complete the older one.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from groups.objects import Key
from scheduler.gangs import GangState, created
from scheduler.pods import CachedPod
from scheduler_core.gang import Gang, Member
from scheduler_core.kinds import PodKind

#: After a gang was given back, the others get this long before the next one is.
PAUSE_S: Final = 5.0


class Fate(enum.Enum):
    """What becomes of a stranded gang."""

    HOLD = "its missing members' room is held"
    RELEASE = "its members are given back"
    WAIT = "its time is over, and it waits"


@dataclass(slots=True)
class StrandedGangs:
    """Since when each gang has been stranded, and when one was last given back. The caller has the clock."""

    since_s: dict[Key, float] = field(default_factory=dict)
    released_s: float = float("-inf")

    def note(self, state: GangState, now_s: float) -> None:
        """The gang was looked at."""
        if state.is_stranded:
            self.since_s.setdefault(state.key, now_s)
        else:
            self.since_s.pop(state.key, None)

    def forget(self, key: Key) -> None:
        """The gang has no pods any more."""
        self.since_s.pop(key, None)

    def left_s(self, state: GangState, now_s: float) -> float:
        """How long the gang still has to become complete; zero or less when its time is over."""
        return self.since_s.get(state.key, now_s) + state.timeout_s - now_s

    def fate(self, state: GangState, now_s: float) -> Fate:
        """What becomes of this gang if it is considered alone."""
        if self.left_s(state, now_s) > 0:
            return Fate.HOLD
        if state.is_released_when_stranded and may_be_released(state):
            return Fate.RELEASE
        return Fate.WAIT

    def next_to_release(self, states: Iterable[GangState], now_s: float) -> GangState | None:
        """Of all stranded gangs whose time is over, the one whose members are given back now, if any."""
        if now_s < self.released_s + PAUSE_S:
            return None
        over = [one for one in states if one.is_stranded and self.fate(one, now_s) is Fate.RELEASE]
        return max(over, key=lambda one: (created(one.group), one.key), default=None)


def to_be_released(state: GangState) -> tuple[CachedPod, ...]:
    """The members that are given back: those on a node that their controller makes anew."""
    return tuple(pod for pod in state.holding if pod.metadata.controller is not None and pod.node_name)


def may_be_released(state: GangState) -> bool:
    """Whether giving back helps: nobody makes a bare pod anew, so a gang with one on a node waits instead."""
    return bool(state.holding) and all(pod.metadata.controller is not None for pod in state.holding)


def missing_members(state: GangState, lost: Sequence[PodKind] = ()) -> Gang:
    """A gang of stand-ins for the members that a stranded gang lacks; as many as fit are to be placed.

    Their kinds are those of the members that wait, then those that were lost, then that of a sibling.
    """
    kinds = [pod.kind for pod in state.candidates if pod.kind is not None]
    kinds += lost
    siblings = [pod.kind for pod in state.holding if pod.kind is not None]
    kinds += siblings[:1] * state.needed
    stand_ins = enumerate(kinds[: state.needed])
    members = [Member(f"held:{state.key}:{number}", kind) for number, kind in stand_ins]
    return Gang(state.key, members, needed=0)
