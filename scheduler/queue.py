"""Which gangs are looked at now, in which order, and when the others are: one structure, pure.

Owns: the state of each gang between deciding and binding, its pauses, and what is remembered of a refusal.
Does not own: where a gang stands (`scheduler.gangs`), or what is decided (`scheduler.loop`).

Each gang is in exactly one state:

    active        something about it changed: it is looked at in the next round
    parked        it was refused: it is looked at again when room may have grown, and once a minute
    waiting       it cannot be tried (members or its PodGroup are missing): it is looked at when that changes
    backing off   something went wrong: it is looked at after a pause that no event shortens
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final

from groups.objects import Key
from scheduler_core.kinds import PodKind

#: Refused gangs are looked at again at the latest after this time (rule F4), which also refreshes numbers.
SWEEP_S: Final = 60.0
_FIRST_PAUSE_S: Final = 0.5
_MOST_PAUSE_S: Final = 30.0

Order = tuple[int, bool, str, str]


class State(enum.Enum):
    """Where a gang is in the queue."""

    ACTIVE = "active"
    PARKED = "parked"
    WAITING = "waiting"
    BACKING_OFF = "backing off"


@dataclass(frozen=True, slots=True)
class Refused:
    """What is remembered of a refusal: with it most gangs need no second match (`scheduler.refusals`).

    `room_version` is that of the ledger at the refusal; `order` the gang's place in the queue. At most `most`
    members fitted then, and `least` are needed. `kinds` are those of the members, each once; None where the
    most that fit is not known.
    """

    room_version: int
    order: Order
    least: int = 1
    most: int = 0
    signature: Hashable = None
    kinds: tuple[PodKind, ...] | None = None


@dataclass(slots=True)
class _Entry:
    state: State = State.ACTIVE
    due_s: float = 0.0
    refused: Refused | None = None
    #: Something changed while it was backing off.
    changed: bool = True


@dataclass(slots=True)
class GangQueue:
    """All gangs that wait for something. A gang that is not in it has nothing to wait for."""

    now_s: Callable[[], float] = time.monotonic
    _entries: dict[Key, _Entry] = field(default_factory=dict)
    _active: dict[Key, None] = field(default_factory=dict)
    _failures: dict[Key, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def state(self, key: Key) -> State | None:
        """Where a gang is, None where it is not in the queue."""
        entry = self._entries.get(key)
        return entry.state if entry is not None else None

    def count(self, state: State) -> int:
        """How many gangs are in a state."""
        return sum(entry.state is state for entry in self._entries.values())

    def touch(self, key: Key) -> None:
        """Something about the gang changed. A pause goes on nevertheless."""
        entry = self._entries.get(key)
        if entry is not None and entry.state is State.BACKING_OFF:
            entry.changed = True
            return
        self._activate(key)

    def park(self, key: Key, refused: Refused, for_s: float = SWEEP_S) -> None:
        """It was refused: it is looked at when room may have grown, or after `for_s` seconds."""
        self._put(key, _Entry(State.PARKED, self.now_s() + for_s, refused))

    def wait(self, key: Key, for_s: float = SWEEP_S) -> None:
        """It cannot be tried now; it is looked at when it changes, or after `for_s` seconds."""
        self._put(key, _Entry(State.WAITING, self.now_s() + for_s))

    def back_off(self, key: Key) -> float:
        """Something went wrong: look at it after a growing pause, whose length in seconds is returned."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause_s = min(_MOST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(failures - 1, 16))
        self._put(key, _Entry(State.BACKING_OFF, self.now_s() + pause_s))
        return pause_s

    def leave(self, key: Key, *, healthy: bool = False) -> None:
        """It has nothing to wait for. `healthy`: all its members have their place, its failures are over."""
        self._entries.pop(key, None)
        self._active.pop(key, None)
        if healthy:
            self._failures.pop(key, None)

    def forget(self, key: Key) -> None:
        """It has no pods any more."""
        self.leave(key, healthy=True)

    def take(self) -> list[Key]:
        """The gangs that are to be looked at since something changed or their time has come.

        They stay active until they are parked, wait, back off or leave.
        """
        now_s = self.now_s()
        for key, entry in self._entries.items():
            if entry.state is not State.ACTIVE and entry.due_s <= now_s:
                entry.state, entry.refused = State.ACTIVE, None
                self._active[key] = None
        return list(self._active)

    def stale(self, room_version: int) -> list[tuple[Key, Refused]]:
        """The parked gangs whose refusal is older than the room there is, in the order of the queue."""
        found = [
            (key, entry.refused)
            for key, entry in self._entries.items()
            if entry.refused is not None and entry.refused.room_version < room_version
        ]
        return sorted(found, key=lambda one: one[1].order)

    def still_refused(self, key: Key, refused: Refused) -> None:
        """Room has grown and does not help it: it stays parked, and its minute goes on."""
        entry = self._entries.get(key)
        if entry is not None and entry.state is State.PARKED:
            entry.refused = refused

    def is_active(self, key: Key) -> bool:
        """Whether the gang is to be looked at now."""
        return key in self._active

    def next_due_s(self) -> float | None:
        """In how many seconds the next gang is to be looked at; None for an empty queue."""
        if self._active:
            return 0.0
        dues = [entry.due_s for entry in self._entries.values()]
        return max(0.0, min(dues) - self.now_s()) if dues else None

    def touch_all(self, keys: Iterable[Key]) -> None:
        """Look at all of these: a process begins to lead."""
        for key in keys:
            self.touch(key)

    def _activate(self, key: Key) -> None:
        self._entries[key] = _Entry()
        self._active[key] = None

    def _put(self, key: Key, entry: _Entry) -> None:
        self._entries[key] = entry
        self._active.pop(key, None)
