"""What is short when a gang does not fit: the numbers of a refusal. It names only what is really short.

Owns: which resources are lacking, alone or only together, and which other limits close nodes. Does not own:
the text (`reasons`).
"""

from __future__ import annotations

import numpy as np

from scheduler_core.eligibility import Eligibility
from scheduler_core.limits import UNLIMITED, Part
from scheduler_core.reasons import Lack, ShapeReport
from scheduler_core.search import Problem
from scheduler_core.view import Amounts


def report(problem: Problem, index: int, least: int) -> ShapeReport:
    """What an administrator must know to make this part of the gang fit."""
    part, room = problem.parts[index], problem.room_alone(index)
    eligible = _eligible(problem, part)
    wanted = min(part.size, least)
    lacks: tuple[Lack, ...] = ()
    together: tuple[str, ...] = ()
    if eligible.count and room < wanted:
        lacks = _lacks(problem, part, eligible, wanted)
        if not lacks:
            together = _short_together(problem, part, eligible, room)
    return ShapeReport(
        members=part.size,
        requests=part.kind.shape.requests,
        eligible_nodes=eligible.count,
        room=room,
        lacks=lacks,
        together=together,
        excluded=eligible.excluded,
    )


def _eligible(problem: Problem, part: Part) -> Eligibility:
    """The nodes that no limit closes for the part, apart from the limit of resources."""
    eligible = part.eligible
    for limit in problem.room.limits:
        if limit is not problem.room.resources and limit.concerns(part):
            eligible = eligible.without(limit.slots(part) == 0, limit.reason)
    return eligible


def _lacks(problem: Problem, part: Part, eligible: Eligibility, wanted: int) -> tuple[Lack, ...]:
    """The resources that leave too little room by themselves."""
    lacks = []
    for resource, ask in part.kind.shape.requests:
        free: Amounts = np.maximum(problem.room.resources.free(resource)[eligible.mask], 0)
        fits = free // ask
        # Python's integers do not overflow, whatever a node reports.
        room = sum(fits.tolist())
        if room < wanted:
            lacks.append(
                Lack(
                    resource=resource,
                    asks=ask,
                    free=sum(free.tolist()),
                    room=room,
                    nodes_without=int(np.count_nonzero(fits == 0)),
                )
            )
    return tuple(lacks)


def _short_together(problem: Problem, part: Part, eligible: Eligibility, room: int) -> tuple[str, ...]:
    """Resources that are enough in sum, but not on the same nodes (case N19).

    Returned are those that, if they were ignored, would let more members fit.
    """
    resources = problem.room.resources
    fits = {
        name: np.maximum(resources.free(name)[eligible.mask], 0) // ask
        for name, ask in part.kind.shape.requests
    }
    found = []
    for left_out in fits:
        others = [slots for name, slots in fits.items() if name != left_out]
        rest = np.minimum.reduce(others) if others else np.full(eligible.count, UNLIMITED, dtype=np.int64)
        if min(part.size, sum(rest.tolist())) > room:
            found.append(left_out)
    if len(found) > 1:
        return tuple(found)
    # If ignoring a single one does not help, or only one does, name all that limit some node.
    tightest = np.minimum.reduce(list(fits.values()))
    return tuple(
        name
        for name, slots in fits.items()
        if name in found or np.any((slots == tightest) & (slots < part.size))
    )
