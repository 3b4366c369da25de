"""What is done about gangs of which some members hold nodes and others have no place (A5b): pure.

Owns: when the members of a stranded gang are given back, and of several gangs which one; for whom room is
held. Does not own: the calls (`scheduler.release`), or the room itself (`Ledger.hold`).

Two stranded gangs may each hold what the other needs. The younger one is given back first, and one at a time:
what it frees may complete the older one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from groups.objects import Key
from scheduler.gangs import GangState, created
from scheduler.pods import CachedPod
from scheduler_core.gang import Gang, Member
from scheduler_core.kinds import PodKind

#: After the members of a gang have gone, the others get this long before the next gang is given back.
PAUSE_S: Final = 5.0
#: Members may take long to end. The next gang does not wait longer for them.
_MOST_PAUSE_S: Final = 120.0


class Fate(enum.Enum):
    """What becomes of a stranded gang."""

    HOLD = "its missing members' room is held"
    RELEASE = "its members are given back"
    WAIT = "its time is over, and it waits"


@dataclass(slots=True)
class StrandedGangs:
    """Since when each gang has been stranded, and which was last given back. The caller has the clock.

    `leaving` are the uids of its members that still use their nodes; `released_s` is when it was given back,
    and `freed_s` when one of them was last seen on its node.
    """

    since_s: dict[Key, float] = field(default_factory=dict)
    leaving: frozenset[str] = frozenset()
    released_s: float = float("-inf")
    freed_s: float = float("-inf")

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

    def note_release(self, uids: Iterable[str], now_s: float) -> None:
        """The members with these uids are given back."""
        self.leaving, self.released_s, self.freed_s = frozenset(uids), now_s, now_s

    def note_usage(self, uses_node: Callable[[str], bool], now_s: float) -> None:
        """Look which of the members that were given back last still use their nodes.

        A deletion may have failed: after a while the members that are still there count as staying.
        """
        if now_s >= self.released_s + _MOST_PAUSE_S:
            self.leaving = frozenset()
        elif self.leaving:
            self.leaving, self.freed_s = frozenset(filter(uses_node, self.leaving)), now_s

    def next_to_release(self, states: Iterable[GangState], now_s: float) -> GangState | None:
        """Of all stranded gangs whose time is over, the one whose members are given back now, if any.

        There is none while the room of the last one is not free yet, or was freed a moment ago.
        """
        if self.leaving or now_s < self.freed_s + PAUSE_S:
            return None
        over = [one for one in states if one.is_stranded and self.fate(one, now_s) is Fate.RELEASE]
        return max(over, key=lambda one: (created(one.group), one.key), default=None)


def to_be_released(state: GangState) -> tuple[CachedPod, ...]:
    """The members that are given back: those on a node that their controller makes anew."""
    return tuple(pod for pod in state.holding if pod.metadata.controller is not None and pod.node_name)


def may_be_released(state: GangState) -> bool:
    """Whether giving back helps: nobody makes a bare pod anew, so a gang with one on a node waits instead."""
    return bool(to_be_released(state)) and all(pod.metadata.controller is not None for pod in state.holding)


def waiting_members(state: GangState) -> list[PodKind]:
    """The kinds of the members that wait."""
    return [pod.kind for pod in state.candidates if pod.kind is not None]


def missing_members(state: GangState, lost: Mapping[str, PodKind]) -> list[PodKind]:
    """The kinds of the members that a stranded gang lacks, whether they exist or not.

    They are the kinds of the members that wait, then those of members that were `lost` (by uid), then that of
    a sibling. A member that waits replaces a lost one of its shape.
    """
    kinds = waiting_members(state)
    present = {pod.metadata.uid for pod in (*state.candidates, *state.settled)}
    shapes = [pod.kind.shape for pod in state.candidates if pod.kind and pod.metadata.uid not in lost]
    for uid, kind in lost.items():
        if uid in present:
            continue
        if kind.shape in shapes:
            shapes.remove(kind.shape)
        else:
            kinds.append(kind)
    siblings = [pod.kind for pod in state.holding if pod.kind is not None]
    return kinds + siblings[:1] * state.needed


def stand_ins(state: GangState, kinds: Sequence[PodKind]) -> Gang:
    """A gang of members that stand for those of these kinds, of which as many as fit are to be placed."""
    wanted = enumerate(kinds[: state.needed])
    members = [Member(f"held:{state.key}:{number}", kind) for number, kind in wanted]
    return Gang(state.key, members, needed=0)
