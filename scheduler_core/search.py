"""Place several parts at once: greedy plans in a few orders, bounds that prove a refusal, the exact search.

Owns: how the parts of one gang share the nodes. Does not own: one part alone (`packing`), the exact search
itself (`exact`), or what the answer means for the gang (`match`).

For one part the answer is exact. Several parts are a packing problem. The greedy orders solve usual gangs (a
leader and its workers). If they fail and the cluster is small, a search with a step limit follows.
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

#: With more parts x nodes than this, the other greedy orders take too long for what they find.
_MAX_ATTEMPT_CELLS: Final = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """For each part, in order, the nodes that take its members."""

    fills: tuple[Fill, ...]
    proven: bool = True  # all are placed, or no plan with as many members as are needed exists
    ceiling: int | None = None  # no plan places more; None: as many as this one

    @property
    def size(self) -> int:
        """How many members are placed."""
        return sum(int(counts.sum()) for _, counts in self.fills)

    @property
    def most(self) -> int:
        """How many members any plan places at most, if this is `proven`."""
        return self.size if self.ceiling is None else self.ceiling


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The parts, the room that they share, and the slots of every column for each part alone."""

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
        """How many members of a part would fit if no other part were placed."""
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
    # If the bounds prove that there is no plan, one greedy plan is enough to say how many would fit.
    for order in _orders(problem)[: None if ceiling >= least else 1]:
        tried = _greedy(problem, order)
        if best is None or tried.size > best.size:
            best = tried
        if best.size >= ceiling:
            return Plan(best.fills)
    assert best is not None
    if ceiling < least:
        return Plan(best.fills, ceiling=ceiling)
    shares = [problem.share(index) for index in range(len(problem.parts))]
    search = ExactSearch.over(problem.room, problem.parts, problem.alone, shares)
    if search is None:
        return Plan(best.fills, proven=False)
    return _improve(search, best, least, ceiling)


def _improve(search: ExactSearch, best: Plan, least: int, ceiling: int) -> Plan:
    """First search what the gang needs, then everything, then one member more while that succeeds."""
    if best.size < least:
        found = search.fills(least)
        if found is None:
            return Plan(best.fills, proven=not search.exhausted, ceiling=least - 1)
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
    """One part after another, each packed as tightly as the remaining room allows."""
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
    """An upper bound of what any plan places: each part alone, and all parts for each resource alone."""
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
    """Orders of parts to try. Smallest first places the most members; the others keep room for large ones."""
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
