"""Place a whole gang, or say with numbers why it does not fit.

Owns: the flow from (view, gang) to a placement or a refusal. Does not own: the choice of nodes (`packing`,
`search`), the numbers of a refusal (`shortage`) and its message (`reasons`), or the ledger (`Ledger.assume`).

Pure: the same view and gang give the same answer, and neither is changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from groups.contract import Why
from scheduler_core.constraints import Repulsion, Shape
from scheduler_core.gang import Gang, Member, Placement
from scheduler_core.kinds import PodKind
from scheduler_core.limits import Part
from scheduler_core.reasons import Refusal, ShapeReport
from scheduler_core.search import Plan, Problem, plan
from scheduler_core.shortage import report
from scheduler_core.view import View


@dataclass(frozen=True, slots=True)
class _Alike:
    """Interchangeable members: one shape, kept away by the same pods."""

    kind: PodKind
    uids: list[str]


def match(view: View, gang: Gang) -> Placement | Refusal:
    """Place all members if they fit, otherwise as many as fit but never fewer than needed (A5).

    With `needed` 0 the group has its quorum: members that fit are placed; it is refused only if none fits.
    """
    if len(gang.members) < gang.needed:
        return _refusal(view, gang, Why.WAITING_FOR_MEMBERS)
    least = min(max(gang.needed, 1), len(gang.members))
    groups = _alike(view, gang.members)
    honoured = [group for group in groups if not group.kind.shape.unsupported]
    if sum(len(group.uids) for group in honoured) < least:
        return _refusal(view, gang, Why.UNSUPPORTED_RULE, shapes=_unsupported(groups))
    if not honoured:
        return Placement(gang.key, {}, {})
    parts = [Part(len(one.uids), one.kind, view.eligible(one.kind)) for one in honoured]
    problem = Problem.of(view, parts)
    found = plan(problem, least)
    if found.size >= least:
        return _placement(view, gang, honoured, found)
    shapes = tuple(report(problem, index, least) for index in range(len(parts)))
    reachable = sum(one.members for one in shapes if one.eligible_nodes)
    return _refusal(
        view,
        gang,
        Why.NOT_ENOUGH_ROOM if reachable >= least else Why.NO_NODE_MATCHES,
        room=found.size,
        shapes=shapes + _unsupported(groups),
        proven=found.proven,
        most=found.most,
    )


def signature(view: View, gang: Gang) -> Hashable:
    """What the answer depends on, apart from the view and from names.

    Gangs with equal signatures get the same answer, so a refusal is computed once for all of them.
    """
    groups = tuple(
        (one.kind.shape, view.terms.selecting(one.kind), len(one.uids)) for one in _alike(view, gang.members)
    )
    return (groups, gang.needed, gang.counted)


def _alike(view: View, members: Iterable[Member]) -> list[_Alike]:
    """Members by shape and by the anti-affinity terms that select them, in the order of the gang."""
    terms = view.terms
    groups: dict[tuple[Shape, frozenset[Repulsion]], _Alike] = {}
    known: dict[object, list[str]] = {}
    for uid, kind in members:
        # Only the shape matters, and the labels that some term reads: other labels do not tell members apart.
        like = (id(kind.shape), kind.namespace, terms.labels_read(kind)) if terms else id(kind.shape)
        uids = known.get(like)
        if uids is None:
            key = (kind.shape, terms.selecting(kind))
            uids = known[like] = groups.setdefault(key, _Alike(kind, [])).uids
        uids.append(uid)
    return list(groups.values())


def _placement(view: View, gang: Gang, groups: Sequence[_Alike], found: Plan) -> Placement:
    """Assign nodes: the members of a group go, in order, to the columns of its fill."""
    nodes: dict[str, str] = {}
    node_uids: dict[str, str] = {}
    for group, (columns, counts) in zip(groups, found.fills, strict=True):
        names: list[str] = []
        for column, count in zip(columns.tolist(), counts.tolist(), strict=True):
            node = view.table.node_at(column)
            node_uids[node.name] = node.uid
            names.extend(itertools.repeat(node.name, count))
        nodes.update(zip(group.uids[: len(names)], names, strict=True))
    kinds = {uid: kind for uid, kind in gang.members if uid in nodes}
    return Placement(gang.key, nodes, kinds, node_uids)


def _refusal(
    view: View,
    gang: Gang,
    why: Why,
    *,
    room: int = 0,
    shapes: tuple[ShapeReport, ...] = (),
    proven: bool = True,
    most: int = 0,
) -> Refusal:
    return Refusal(
        key=gang.key,
        why=why,
        needed=gang.needed,
        members=len(gang.members),
        room=room,
        nodes=view.node_count,
        shapes=shapes,
        counted=gang.counted,
        proven=proven,
        most=most,
    )


def _unsupported(groups: Iterable[_Alike]) -> tuple[ShapeReport, ...]:
    """The members with unsupported rules, and the names of these rules."""
    return tuple(
        ShapeReport(
            members=len(group.uids),
            requests=group.kind.shape.requests,
            eligible_nodes=0,
            room=0,
            unsupported=group.kind.shape.unsupported,
        )
        for group in groups
        if group.kind.shape.unsupported
    )
