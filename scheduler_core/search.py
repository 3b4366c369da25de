"""Several shapes at once: greedy plans in a few orders, bounds that prove a no, a bounded exact search.

Owns: how the shapes of one gang share the nodes. Does not own: one shape alone (`packing`), or what the
answer means to the gang (`match`).

One shape is exact by itself. Several are a packing problem: the greedy orders solve what real gangs look
like (a leader and its workers); where they fail and the cluster is small, a search with a step budget
decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler_core.constraints import Requests
from scheduler_core.eligibility import Eligibility
from scheduler_core.ledger import Amounts
from scheduler_core.packing import Fill, Room, pack

#: The exact search looks at no more shapes x nodes than this (it recurses that deep), nor takes more steps.
MAX_CELLS: Final = 256
MAX_PARTS: Final = 64
MAX_STEPS: Final = 5_000
#: Beyond this many shapes x nodes the alternative greedy orders would cost more than they find.
_MAX_ATTEMPT_CELLS: Final = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The members of a gang that are alike: how many, what each asks, where they may go."""

    size: int
    requests: Requests
    eligible: Eligibility
    alone: Amounts  # slots of each node if nothing else of the gang were placed

    @property
    def room_alone(self) -> int:
        """How many of these members fit if nothing else of the gang were placed."""
        return min(self.size, int(self.alone.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """For each part, in order, the nodes that take its members."""

    fills: tuple[Fill, ...]
    proven: bool = True  # nothing with more members exists, or all are placed

    @property
    def size(self) -> int:
        """How many members are placed."""
        return sum(int(counts.sum()) for _, counts in self.fills)


def plan(room: Room, parts: Sequence[Part], least: int) -> Plan:
    """Place as many members as possible; at least `least` if the bounded search finds a way."""
    if len(parts) == 1:
        return _greedy(room, parts, (0,))
    ceiling = _ceiling(room, parts)
    best: Plan | None = None
    # Where the bounds say no, one plan is enough to tell how many would fit.
    for order in _orders(room, parts)[: None if ceiling >= least else 1]:
        tried = _greedy(room, parts, order)
        if best is None or tried.size > best.size:
            best = tried
        if best.size >= ceiling:
            return Plan(best.fills)
    assert best is not None
    if ceiling < least:
        return Plan(best.fills)
    search = _Search.over(room, parts)
    if search is None:
        return Plan(best.fills, proven=False)
    return _improve(search, best, least, ceiling)


def _improve(search: _Search, best: Plan, least: int, ceiling: int) -> Plan:
    """First what the gang needs, then everything, then one member more as long as that works."""
    if best.size < least:
        found = search.fills(least)
        if found is None:
            return Plan(best.fills, proven=not search.exhausted)
        best = Plan(found)
    target = ceiling
    while best.size < ceiling:
        found = search.fills(target)
        if found is not None:
            best = Plan(found)
        elif search.exhausted or target == best.size + 1:
            break
        target = best.size + 1
    return best


def _greedy(room: Room, parts: Sequence[Part], order: Sequence[int]) -> Plan:
    """Part after part, each packed as tightly as what is left allows."""
    nothing = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64)
    fills: list[Fill] = [nothing] * len(parts)
    left = room.copy() if len(parts) > 1 else room
    for number, index in enumerate(order):
        part = parts[index]
        slots = part.alone
        if number > 0:
            slots = left.slots(part.requests, part.eligible.mask, part.size)
        fills[index] = pack(slots, min(part.size, int(slots.sum())))
        if number < len(order) - 1:
            left.take(part.requests, fills[index])
    return Plan(tuple(fills))


def _ceiling(room: Room, parts: Sequence[Part]) -> int:
    """No plan places more than this: each part alone, and all parts by each resource alone."""
    ceiling = sum(part.room_alone for part in parts)
    somewhere = np.logical_or.reduce([part.eligible.mask for part in parts])
    for resource in sorted({name for part in parts for name, _ in part.requests}):
        free = room.free(resource)[somewhere]
        left = sum(np.maximum(free, 0).tolist())
        fits = 0
        asks = sorted((dict(part.requests).get(resource, 0), part.size) for part in parts)
        for amount, size in asks:
            count = size if amount == 0 else min(size, left // amount)
            fits += count
            left -= count * amount
            if count < size:
                break
        ceiling = min(ceiling, fits)
    return ceiling


def _orders(room: Room, parts: Sequence[Part]) -> list[tuple[int, ...]]:
    """Orders worth trying: smallest first places the most, the others leave the big ones their place."""
    shares = [_dominant_share(room, part) for part in parts]
    slots = [int(part.alone.sum()) / part.size for part in parts]
    indexes = range(len(parts))
    orders = [
        tuple(sorted(indexes, key=lambda i: (-shares[i], i))),
        tuple(sorted(indexes, key=lambda i: (parts[i].eligible.count, -shares[i], i))),
        tuple(sorted(indexes, key=lambda i: (slots[i], -shares[i], i))),
        tuple(sorted(indexes, key=lambda i: (shares[i], i))),
        tuple(indexes),
    ]
    # The first is the best guess for "all", the fourth for "as many as possible".
    if len(parts) * len(parts[0].alone) > _MAX_ATTEMPT_CELLS:
        orders = [orders[0], orders[3]]
    return list(dict.fromkeys(orders))


def _dominant_share(room: Room, part: Part) -> float:
    """The largest part of any one resource of its nodes that a member takes."""
    share = 0.0
    for resource, amount in part.requests:
        free = float(np.maximum(room.free(resource)[part.eligible.mask], 0).sum(dtype=np.float64))
        share = max(share, amount / free if free > 0 else float("inf"))
    return share


class _OutOfStepsError(Exception):
    """The budget of the exact search is spent."""


@dataclass(frozen=True, slots=True)
class _Level:
    """One part of the search: slots of each node, their sum beyond it, and if it is like the one before."""

    part: int
    slots: list[int]
    beyond: list[int]
    like_before: list[bool]


class _Search:
    """Depth first over parts and nodes, exact within its budget, on plain numbers.

    Two cuts keep it small: of nodes that are alike at the start of a part, a later one never takes more
    than the one before it; and a state that failed once is not entered again.
    """

    def __init__(
        self,
        free: list[list[int]],
        admits: list[list[bool]],
        asks: list[list[tuple[int, int]]],
        sizes: list[int],
    ) -> None:
        self._start = free  # by node, then resource
        self._admits = admits  # by part, then node
        self._asks = asks  # by part: (resource, amount)
        self._sizes = sizes
        self._kinds = [tuple(part[node] for part in admits) for node in range(len(free))]
        self._failed: set[tuple[object, ...]] = set()
        self._columns: list[int] = []
        self._order: list[int] = []
        self._reset()

    def _reset(self) -> None:
        self._free = [list(amounts) for amounts in self._start]
        self._taken = [[0] * len(self._free) for _ in self._sizes]
        self._steps = 0
        self.exhausted = False

    @classmethod
    def over(cls, room: Room, parts: Sequence[Part]) -> _Search | None:
        """The search over these parts, or None where it would not end within reason."""
        usable = np.logical_or.reduce([part.alone > 0 for part in parts])
        columns = np.flatnonzero(usable).tolist()
        if len(parts) > MAX_PARTS or len(columns) * len(parts) > MAX_CELLS:
            return None
        shares = [_dominant_share(room, part) for part in parts]
        order = sorted(range(len(parts)), key=lambda i: (-shares[i], i))
        names = sorted({name for part in parts for name, _ in part.requests})
        frees = [room.free(name) for name in names]
        free = {column: [int(amounts[column]) for amounts in frees] for column in columns}
        admits = {column: [bool(parts[i].alone[column]) for i in order] for column in columns}
        # Alike nodes stand side by side, so that the first cut sees them.
        columns.sort(key=lambda column: (free[column], admits[column], column))
        search = cls(
            [free[column] for column in columns],
            [[admits[column][part] for column in columns] for part in range(len(order))],
            [[(names.index(name), amount) for name, amount in parts[i].requests] for i in order],
            [parts[i].size for i in order],
        )
        search._columns, search._order = columns, order
        return search

    def fills(self, target: int) -> tuple[Fill, ...] | None:
        """A plan with at least `target` members, or None; `exhausted` tells whether that is proven."""
        self._reset()
        try:
            found = self._part(0, sum(self._sizes) - target)
        except _OutOfStepsError:
            self.exhausted = True
            return None
        if not found:
            return None
        fills: dict[int, Fill] = {}
        for index, taken in zip(self._order, self._taken, strict=True):
            nodes = [node for node, count in enumerate(taken) if count]
            columns = np.array([self._columns[node] for node in nodes], dtype=np.intp)
            counts = np.array([taken[node] for node in nodes], dtype=np.int64)
            by_column = np.argsort(columns)
            fills[index] = columns[by_column], counts[by_column]
        return tuple(fills[index] for index in range(len(fills)))

    def _part(self, part: int, spare: int) -> bool:
        """Place this part and the ones after it, leaving out `spare` members at most."""
        if part == len(self._sizes):
            return True
        state = (part, spare, *sorted(zip(map(tuple, self._free), self._kinds, strict=True)))
        if state in self._failed:
            return False
        self._steps += len(self._free)
        if self._shortage(part) <= spare and self._node(self._level(part), 0, self._sizes[part], spare):
            return True
        self._failed.add(state)
        return False

    def _level(self, part: int) -> _Level:
        """Nodes do not take from one another, so their slots hold for the whole part."""
        slots = [self._slots(part, node) for node in range(len(self._free))]
        beyond = [0]
        for count in reversed(slots[1:]):
            beyond.append(beyond[-1] + count)
        same = [False] + [
            self._free[node] == self._free[node - 1] and self._kinds[node] == self._kinds[node - 1]
            for node in range(1, len(slots))
        ]
        return _Level(part, slots, beyond[::-1], same)

    def _node(self, level: _Level, node: int, left: int, spare: int) -> bool:
        """Decide how many of the `left` members of this part go to this node, most first."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _OutOfStepsError
        if left == 0 or node == len(self._free):
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
        """How many members of the parts from here on have no room even if each part were alone."""
        short = 0
        for part in range(first, len(self._sizes)):
            room = sum(self._slots(part, node) for node in range(len(self._free)))
            short += max(0, self._sizes[part] - room)
        return short

    def _slots(self, part: int, node: int) -> int:
        if not self._admits[part][node]:
            return 0
        free = self._free[node]
        return min(free[resource] // amount for resource, amount in self._asks[part])

    def _take(self, part: int, node: int, count: int) -> None:
        self._taken[part][node] += count
        for resource, amount in self._asks[part]:
            self._free[node][resource] -= amount * count
