"""The exact search for several parts: depth first over parts and nodes, within a budget of steps.

Owns: the search. Does not own: when it is worth it (`search`), or what a node takes (`limits`).

Two rules keep it small. Of nodes that are equal at the start of a part, a later one never takes more than the
one before it. A state that failed once is not searched again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler_core.limits import Fill, Part, Room
from scheduler_core.view import Amounts

#: Limits of the search: parts x nodes (which is also the depth of the recursion), and steps.
MAX_CELLS: Final = 256
MAX_PARTS: Final = 64
MAX_STEPS: Final = 5_000


class _OutOfStepsError(Exception):
    """The search has used all its steps."""


@dataclass(frozen=True, slots=True)
class _Level:
    """One part: slots of each node, their sum over later nodes, and whether the previous node is equal."""

    part: int
    slots: list[int]
    beyond: list[int]
    like_before: list[bool]


class ExactSearch:
    """A search over `parts`, the most demanding first, on the columns that take any member."""

    def __init__(self, room: Room, parts: Sequence[Part], columns: list[int], order: list[int]) -> None:
        self._start = room
        self._room = room
        self._parts = [parts[index] for index in order]
        self._columns = columns
        self._order = order
        self._failed: set[tuple[object, ...]] = set()
        self._taken: list[list[int]] = []
        self._steps = 0
        #: Whether the last search ended at its step limit. Then a negative answer is not proven.
        self.exhausted = False

    @classmethod
    def over(
        cls, room: Room, parts: Sequence[Part], alone: Sequence[Amounts], shares: Sequence[float]
    ) -> ExactSearch | None:
        """The search over these parts, or None if it would be too large."""
        columns = np.flatnonzero(np.logical_or.reduce([slots > 0 for slots in alone])).tolist()
        if len(parts) > MAX_PARTS or len(columns) * len(parts) > MAX_CELLS:
            return None
        order = sorted(range(len(parts)), key=lambda index: (-shares[index], index))
        # Equal nodes are neighbours, as the first rule needs.
        columns.sort(key=lambda column: (*(int(alone[index][column]) for index in order), column))
        return cls(room, parts, columns, order)

    def fills(self, target: int) -> tuple[Fill, ...] | None:
        """A plan with at least `target` members, or None. None is a proof unless `exhausted` is set."""
        self._room = self._start.copy()
        self._taken = [[0] * len(self._columns) for _ in self._parts]
        self._steps, self.exhausted = 0, False
        # States that failed with other values of `spare` may succeed with this one.
        self._failed.clear()
        try:
            found = self._part(0, sum(part.size for part in self._parts) - target)
        except _OutOfStepsError:
            self.exhausted = True
            return None
        if not found:
            return None
        fills: dict[int, Fill] = {}
        for index, taken in zip(self._order, self._taken, strict=True):
            pairs = sorted((self._columns[node], count) for node, count in enumerate(taken) if count)
            fills[index] = (
                np.array([column for column, _ in pairs], dtype=np.intp),
                np.array([count for _, count in pairs], dtype=np.int64),
            )
        return tuple(fills[index] for index in range(len(fills)))

    def _part(self, part: int, spare: int) -> bool:
        """Place this part and the following ones, leaving out at most `spare` members."""
        if part == len(self._parts):
            return True
        states = [self._state(node) for node in range(len(self._columns))]
        state = (part, spare, frozenset(Counter(states).items()))
        if state in self._failed:
            return False
        self._steps += len(self._columns)
        if self._shortage(part) <= spare:
            level = self._level(part, states)
            if self._node(level, 0, self._parts[part].size, spare):
                return True
        self._failed.add(state)
        return False

    def _state(self, node: int) -> Hashable:
        column = self._columns[node]
        admits = tuple(bool(part.eligible.mask[column]) for part in self._parts)
        return (admits, self._room.state(column))

    def _level(self, part: int, states: list[Hashable]) -> _Level:
        slots = [self._slots(part, node) for node in range(len(self._columns))]
        beyond = [0]
        for count in reversed(slots[1:]):
            beyond.append(beyond[-1] + count)
        same = [False] + [states[node] == states[node - 1] for node in range(1, len(slots))]
        return _Level(part, slots, beyond[::-1], same)

    def _node(self, level: _Level, node: int, left: int, spare: int) -> bool:
        """Try how many of the `left` members of this part go to this node, the largest number first."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _OutOfStepsError
        if left == 0 or node == len(self._columns):
            return left <= spare and self._part(level.part + 1, spare - left)
        taken = self._taken[level.part]
        most = min(left, level.slots[node])
        if level.like_before[node]:
            most = min(most, taken[node - 1])
        least = max(0, left - spare - level.beyond[node])
        for count in range(most, least - 1, -1):
            self._take(level.part, node, count)
            if self._node(level, node + 1, left - count, spare):
                return True
            self._take(level.part, node, -count)
        return False

    def _shortage(self, first: int) -> int:
        """How many members of this and the following parts have no room, even if each part were alone."""
        short = 0
        for part in range(first, len(self._parts)):
            room = sum(self._slots(part, node) for node in range(len(self._columns)))
            short += max(0, self._parts[part].size - room)
        return short

    def _slots(self, part: int, node: int) -> int:
        return self._room.slots_on(self._parts[part], self._columns[node])

    def _take(self, part: int, node: int, count: int) -> None:
        self._taken[part][node] += count
        if count:
            self._room.take_on(self._parts[part], self._columns[node], count)
