"""Several parts at once: greedy plans in a few orders, bounds that prove a no, then the exact search.

Owns: how the parts of one gang share the nodes. Does not own: one part alone (`packing`), the exact search
itself (`exact`), or what the answer means to the gang (`match`).

One part is exact by itself. Several are a packing problem: the greedy orders solve what real gangs look like
(a leader and its workers); where they fail and the cluster is small, a search with a step budget decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler_core.exact import ExactSearch
from scheduler_core.limits import Fill, Part, Room
from scheduler_core.packing import nothing, pack
from scheduler_core.view import Amounts, View

#: Beyond this many parts x nodes the alternative greedy orders would cost more than they find.
_MAX_ATTEMPT_CELLS: Final = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """For each part, in order, the nodes that take its members."""

    fills: tuple[Fill, ...]
    proven: bool = True  # nothing with more members exists, or all are placed

    @property
    def size(self) -> int:
        """How many members are placed."""
        return sum(int(counts.sum()) for _, counts in self.fills)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The parts, the room that they share, and how many of each part every column takes if it were alone."""

    view: View
    room: Room
    parts: Sequence[Part]
    alone: Sequence[Amounts]

    @classmethod
    def of(cls, view: View, parts: Sequence[Part]) -> Problem:
        """The problem of placing `parts` on `view`."""
        room = Room.of(view)
        return cls(view, room, parts, [room.slots(part) for part in parts])

    def room_alone(self, index: int) -> int:
        """How many members of a part fit if nothing else of the gang were placed."""
        return min(self.parts[index].size, int(self.alone[index].sum()))

    def share(self, index: int) -> float:
        """The largest part of any one resource of its nodes that a member takes."""
        part, share = self.parts[index], 0.0
        for resource, amount in part.kind.shape.requests:
            free = self.room.resources.free(resource)[part.eligible.mask]
            total = float(np.maximum(free, 0).sum(dtype=np.float64))
            share = max(share, amount / total if total > 0 else float("inf"))
        return share


def plan(problem: Problem, least: int) -> Plan:
    """Place as many members as possible; at least `least` if the bounded search finds a way."""
    if len(problem.parts) == 1:
        return _greedy(problem, (0,))
    ceiling = _ceiling(problem)
    best: Plan | None = None
    # Where the bounds say no, one plan is enough to tell how many would fit.
    for order in _orders(problem)[: None if ceiling >= least else 1]:
        tried = _greedy(problem, order)
        if best is None or tried.size > best.size:
            best = tried
        if best.size >= ceiling:
            return Plan(best.fills)
    assert best is not None
    if ceiling < least:
        return Plan(best.fills)
    shares = [problem.share(index) for index in range(len(problem.parts))]
    search = ExactSearch.over(problem.room, problem.parts, problem.alone, shares)
    if search is None:
        return Plan(best.fills, proven=False)
    return _improve(search, best, least, ceiling)


def _improve(search: ExactSearch, best: Plan, least: int, ceiling: int) -> Plan:
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


def _greedy(problem: Problem, order: Sequence[int]) -> Plan:
    """Part after part, each packed as tightly as what is left allows."""
    fills: list[Fill] = [nothing()] * len(problem.parts)
    left = problem.room.copy() if len(order) > 1 else problem.room
    for number, index in enumerate(order):
        part = problem.parts[index]
        slots = problem.alone[index] if number == 0 else left.slots(part)
        special = problem.view.special(part.kind)
        fills[index] = pack(slots, min(part.size, int(slots.sum())), special)
        if number < len(order) - 1:
            left.take(part, fills[index])
    return Plan(tuple(fills))


def _ceiling(problem: Problem) -> int:
    """No plan places more than this: each part alone, and all parts by each resource alone."""
    parts = problem.parts
    ceiling = sum(problem.room_alone(index) for index in range(len(parts)))
    somewhere = np.logical_or.reduce([part.eligible.mask for part in parts])
    asks = [(dict(part.kind.shape.requests), part.size) for part in parts]
    for resource in sorted({name for requests, _ in asks for name in requests}):
        free = problem.room.resources.free(resource)[somewhere]
        left = sum(np.maximum(free, 0).tolist())
        fits = 0
        for amount, size in sorted((requests.get(resource, 0), size) for requests, size in asks):
            count = size if amount == 0 else min(size, left // amount)
            fits += count
            left -= count * amount
            if count < size:
                break
        ceiling = min(ceiling, fits)
    return ceiling


def _orders(problem: Problem) -> list[tuple[int, ...]]:
    """Orders worth trying: smallest first places the most, the others leave the big ones their place."""
    parts = problem.parts
    indexes = range(len(parts))
    shares = [problem.share(index) for index in indexes]
    slots = [int(problem.alone[index].sum()) / parts[index].size for index in indexes]
    orders = [
        tuple(sorted(indexes, key=lambda i: (-shares[i], i))),
        tuple(sorted(indexes, key=lambda i: (parts[i].eligible.count, -shares[i], i))),
        tuple(sorted(indexes, key=lambda i: (slots[i], -shares[i], i))),
        tuple(sorted(indexes, key=lambda i: (shares[i], i))),
        tuple(indexes),
    ]
    # The first is the best guess for "all", the fourth for "as many as possible".
    if len(parts) * len(problem.alone[0]) > _MAX_ATTEMPT_CELLS:
        orders = [orders[0], orders[3]]
    return list(dict.fromkeys(orders))
