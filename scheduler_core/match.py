"""Place a gang whole, or say with numbers why not.

Owns: the flow from (ledger, gang) to a placement or a refusal; the numbers of the refusal. Does not own: the
choice of nodes (`packing`, `search`), the sentence (`reasons`), the booking (`Ledger.assume`).

Pure: the same ledger and gang give the same answer, and neither is changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from groups.contract import Why
from scheduler_core.constraints import Repulsion, Shape
from scheduler_core.eligibility import Eligibility
from scheduler_core.gang import Gang, Member, Placement
from scheduler_core.ledger import Amounts, Ledger
from scheduler_core.packing import Room
from scheduler_core.reasons import Lack, Refusal, ShapeReport
from scheduler_core.search import Part, Plan, plan


@dataclass(frozen=True, slots=True)
class _Alike:
    """Members that no rule tells apart: one shape, kept away by the same pods."""

    shape: Shape
    repelled_by: frozenset[Repulsion]
    uids: list[str]


def match(ledger: Ledger, gang: Gang) -> Placement | Refusal:
    """Place all members if they fit, else as many as fit but never fewer than needed (A5).

    With `needed` 0 the group has its quorum: what fits is placed, and only if nothing does is it refused.
    """
    if len(gang.members) < gang.needed:
        return _refusal(ledger, gang, Why.WAITING_FOR_MEMBERS)
    least = min(max(gang.needed, 1), len(gang.members))
    groups = _alike(ledger, gang)
    honoured = [group for group in groups if not group.shape.unsupported]
    if sum(len(group.uids) for group in honoured) < least:
        return _refusal(ledger, gang, Why.UNSUPPORTED_RULE, shapes=_unsupported(groups))
    room = Room(ledger)
    parts = [_part(ledger, room, group) for group in honoured]
    if not parts:
        return Placement(gang.key, {}, {})
    found = plan(room, parts, least)
    if found.size >= least:
        return _placement(ledger, gang, honoured, found)
    reachable = sum(part.size for part in parts if part.eligible.count)
    return _refusal(
        ledger,
        gang,
        Why.NOT_ENOUGH_ROOM if reachable >= least else Why.NO_NODE_MATCHES,
        room=found.size,
        shapes=tuple(_report(room, part, least) for part in parts) + _unsupported(groups),
        proven=found.proven,
    )


def _alike(ledger: Ledger, gang: Gang) -> list[_Alike]:
    """Members by shape, in the order in which the gang names them."""
    repulsions = ledger.repulsions_for(gang.namespace)
    if repulsions:
        return _alike_apart(gang.members, repulsions)
    groups: dict[Shape, list[str]] = {}
    shape: Shape | None = None
    uids: list[str] = []
    for member in gang.members:
        # Members mostly resemble the one before, and a comparison is far cheaper than a hash: hashing a
        # thousand shapes field by field would take longer than the match.
        if member.shape is not shape and member.shape != shape:
            shape = member.shape
            uids = groups.setdefault(shape, [])
        uids.append(member.uid)
    return [_Alike(shape, frozenset(), uids) for shape, uids in groups.items()]


def _alike_apart(members: Iterable[Member], repulsions: Sequence[Repulsion]) -> list[_Alike]:
    """Members by shape and by the placed pods' anti-affinity terms that select them (rule IA4)."""
    # Only labels that some term reads can tell members apart; most (a job's index) are read by none.
    read = sorted({one.key for term in repulsions for one in term.selector or ()})
    seen: dict[tuple[int, tuple[str | None, ...]], list[str]] = {}
    groups: dict[tuple[Shape, frozenset[Repulsion]], list[str]] = {}
    for uid, shape, labels in members:
        like = (id(shape), tuple([labels.get(key) for key in read]))
        uids = seen.get(like)
        if uids is None:
            terms = frozenset(one for one in repulsions if one.selects(labels))
            uids = seen[like] = groups.setdefault((shape, terms), [])
        uids.append(uid)
    return [_Alike(shape, terms, uids) for (shape, terms), uids in groups.items()]


def _part(ledger: Ledger, room: Room, group: _Alike) -> Part:
    """The numbers that the plan works on."""
    eligible = ledger.eligibility.of(group.shape.constraints)
    if group.repelled_by:
        eligible = eligible.without(ledger.closed_by(group.repelled_by))
    size = len(group.uids)
    requests = group.shape.requests
    return Part(size, requests, eligible, room.slots(requests, eligible.mask, size))


def _placement(ledger: Ledger, gang: Gang, groups: Sequence[_Alike], found: Plan) -> Placement:
    """Name the nodes; members of a group go in their order to the columns of its fill."""
    nodes: dict[str, str] = {}
    shapes: dict[str, Shape] = {}
    for group, (columns, counts) in zip(groups, found.fills, strict=True):
        names: list[str] = []
        for column, count in zip(columns.tolist(), counts.tolist(), strict=True):
            names.extend(itertools.repeat(ledger.table.name(column), count))
        placed = group.uids[: len(names)]
        nodes.update(zip(placed, names, strict=True))
        shapes.update(dict.fromkeys(placed, group.shape))
    return Placement(gang.key, nodes, shapes)


def _refusal(
    ledger: Ledger,
    gang: Gang,
    why: Why,
    *,
    room: int = 0,
    shapes: tuple[ShapeReport, ...] = (),
    proven: bool = True,
) -> Refusal:
    return Refusal(
        key=gang.key,
        why=why,
        needed=gang.needed,
        members=len(gang.members),
        room=room,
        nodes=ledger.node_count,
        shapes=shapes,
        counted=gang.counted,
        proven=proven,
    )


def _unsupported(groups: Iterable[_Alike]) -> tuple[ShapeReport, ...]:
    """The members that are refused aloud, with the names of their rules."""
    return tuple(
        ShapeReport(
            members=len(group.uids),
            requests=group.shape.requests,
            eligible_nodes=0,
            room=0,
            unsupported=group.shape.unsupported,
        )
        for group in groups
        if group.shape.unsupported
    )


def _report(room: Room, part: Part, least: int) -> ShapeReport:
    """What a reader needs in order to make the gang fit."""
    return ShapeReport(
        members=part.size,
        requests=part.requests,
        eligible_nodes=part.eligible.count,
        room=part.room_alone,
        lacks=_lacks(room, part, min(part.size, least)) if part.eligible.count else (),
        excluded=part.eligible.excluded,
    )


def _lacks(room: Room, part: Part, wanted: int) -> tuple[Lack, ...]:
    """The resources that alone leave too little room; if only several together do, the tightest."""
    if part.room_alone >= wanted:
        return ()
    lacks = [_lack(resource, ask, room, part.eligible) for resource, ask in part.requests]
    tightest = min(lack.room for lack in lacks)
    return tuple(lack for lack in lacks if lack.room < wanted or lack.room == tightest)


def _lack(resource: str, ask: int, room: Room, eligible: Eligibility) -> Lack:
    free: Amounts = np.maximum(room.free(resource)[eligible.mask], 0)
    return Lack(
        resource=resource,
        asks=ask,
        # Python's numbers do not overflow, whatever a node claims to have.
        free=sum(free.tolist()),
        room=sum((free // ask).tolist()),
        nodes_without=int(np.count_nonzero(free < ask)),
    )
