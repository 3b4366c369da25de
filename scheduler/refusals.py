"""Whether a refused gang can fit now, without a second match: pure.

A pod that ends frees room on one node. For a gang of known shapes, that node holds a few members more, and if
these are too few the gang is still refused: an upper bound of the members that fit, kept up to date. Room
that others take meanwhile makes the bound too high, so before a match it is counted anew. The bound reads
resources and eligible nodes only. Every other limit can only lower it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import replace
from typing import Final

from groups.contract import Why
from scheduler.queue import Order, Refused
from scheduler_core.gang import Gang
from scheduler_core.kinds import PodKind
from scheduler_core.limits import Part, Resources
from scheduler_core.match import signature
from scheduler_core.reasons import Refusal
from scheduler_core.view import View

#: Beyond so many nodes that have more room, it is cheaper to count all of them.
_MOST_NODES: Final = 64


def remembered(gang: Gang, refusal: Refusal, view: View, room_version: int, order: Order) -> Refused:
    """What to keep of a refusal."""
    by_shape = {one.kind.shape: one.kind for one in gang.members}
    is_bounded = refusal.proven and refusal.why is not Why.WAITING_FOR_MEMBERS
    return Refused(
        room_version,
        order,
        least=min(max(gang.needed, 1), len(gang.members)),
        most=refusal.most,
        signature=signature(view, gang),
        kinds=tuple(by_shape.values()) if is_bounded else None,
    )


class Growth:
    """The room that a view has gained, for as many questions as there are parked gangs.

    `grown_since(room_version)` names the nodes that may have more room than at that version.
    """

    def __init__(self, view: View, room_version: int, grown_since: Callable[[int], Collection[str]]) -> None:
        self._view = view
        self._room_version = room_version
        self._grown_since = functools.lru_cache(grown_since)
        self._resources = Resources(view)
        #: Members that fit, by shape (shapes are interned while they are used) and node, and by shape alone.
        self._by_node: dict[tuple[int, str], int] = {}
        self._totals: dict[int, int] = {}
        self._refused: dict[Hashable, Refused] = {}

    def see(self, view: View) -> None:
        """A later view of the same room, after a gang was placed; nothing happens if it is the same view."""
        if view is not self._view:
            self._view, self._resources = view, Resources(view)
            self._by_node.clear()
            self._totals.clear()

    def refuse(self, refused: Refused) -> None:
        """A gang of this signature does not fit, and no room has been gained since."""
        self._refused[refused.signature] = refused

    def still_refused(self, refused: Refused) -> Refused | None:
        """What to remember from now on, where the gang cannot fit; None where a match has to tell."""
        alike = self._refused.get(refused.signature)
        if alike is not None and not self._view.terms:  # with terms its signature may not be true any more
            return replace(refused, room_version=self._room_version, most=alike.most, kinds=alike.kinds)
        if refused.kinds is None:
            return None
        most = refused.most + self._gained(refused, refused.kinds)
        if most >= refused.least:
            most = self._counted(refused.kinds)
        return replace(refused, room_version=self._room_version, most=most) if most < refused.least else None

    def _gained(self, refused: Refused, kinds: Iterable[PodKind]) -> int:
        """How many members fit on the nodes that have more room."""
        grown = self._grown_since(refused.room_version)
        if len(grown) > _MOST_NODES:
            return refused.least
        return sum(self._slots_on(kind, node) for kind in kinds for node in grown)

    def _counted(self, kinds: Iterable[PodKind]) -> int:
        """How many members of these kinds fit on all nodes, each kind for itself."""
        return sum(self._slots(kind) for kind in kinds)

    def _slots(self, kind: PodKind) -> int:
        known = self._totals.get(id(kind.shape))
        if known is None:
            known = 0
            if not kind.shape.unsupported:
                part = Part(1, kind, self._view.eligible(kind))
                known = int(self._resources.slots(part)[part.eligible.mask].sum())
            self._totals[id(kind.shape)] = known
        return known

    def _slots_on(self, kind: PodKind, node: str) -> int:
        known = self._by_node.get((id(kind.shape), node))
        if known is None:
            column = self._view.table.columns.get(node)
            known = 0
            if column is not None and not kind.shape.unsupported:
                part = Part(1, kind, self._view.eligible(kind))
                known = self._resources.slots_on(part, column) if part.eligible.mask[column] else 0
            self._by_node[id(kind.shape), node] = known
        return known
