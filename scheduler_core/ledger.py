"""The cluster in whole numbers, kept up to date: what nodes have, and what each pod on them uses.

Owns: one int64 array (resource, column) of what is allocatable and one of what is used; which pod is placed
where, by uid; assume, hold and their undo. Does not own: which pods count (S5 and R13: the caller puts pods
that have a node and have not ended, and removes them later), or where a gang goes (`match`, on a `view`).
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np

from scheduler_core.eligibility import EligibilityCache
from scheduler_core.gang import Placement
from scheduler_core.growth import RoomGrowth
from scheduler_core.kinds import PodKind
from scheduler_core.nodes import Node, NodeTable, may_admit_more
from scheduler_core.placed import Placed, State
from scheduler_core.quantity import LIMIT
from scheduler_core.terms import Terms
from scheduler_core.view import Amounts, Pods, View

_FIRST_ROWS: Final = ("cpu", "memory", "pods", "ephemeral-storage")


class Ledger:
    """What every node has and what every pod on it uses.

    A pod is counted once, by its uid. The sums of each node are Python integers, which are then written into
    the array, so that an absurdly large request cannot make a column overflow.
    """

    def __init__(self, width: int = 64) -> None:
        self._table = NodeTable(max(1, width))
        self._eligibility = EligibilityCache()
        self._rows = {name: row for row, name in enumerate(_FIRST_ROWS)}
        self._allocatable: Amounts = np.zeros((len(_FIRST_ROWS), self._table.width), dtype=np.int64)
        self._used: Amounts = np.zeros_like(self._allocatable)
        self._placed: dict[str, Placed] = {}
        #: Sums by node and resource, also for nodes that are not known yet or were removed.
        self._sums: dict[str, dict[str, int]] = {}
        self._terms = Terms()
        self._held: dict[str, dict[str, None]] = {}
        self._view: View | None = None
        self._noted: weakref.ref[Pods] | None = None
        # Shared with the last view, and copied before the next change.
        self._shared: set[str] = set()
        self._growth = RoomGrowth()

    @property
    def room_version(self) -> int:
        """Rises whenever room or eligibility may have grown. Refused gangs can then be tried again."""
        return self._growth.version

    # Nodes

    def upsert_node(self, node: Node) -> None:
        """Add or update the node; known usage of its pods counts from now on."""
        before = self._table.get(node.name)
        if before == node:
            return
        table = self._own_table()
        if table.is_full(node.name):
            self._widen()
        column = table.put(node)
        vector = self._vector(node.allocatable)
        self._own_allocatable()[:, column] = vector
        if before is None:
            sums = self._vector(self._sums.get(node.name, {}))
            self._own_used()[:, column] = sums
        if self._terms and before is not None and before.labels != node.labels:
            # Labels say which topology domains the anti-affinity of pods on this node closes.
            self._growth.everywhere()
        elif before is None or may_admit_more(before, node):
            self._growth.on(node.name)

    def remove_node(self, name: str) -> None:
        """Remove the node. The usage of its pods is kept, in case the node is added again."""
        if name not in self._table.columns:
            return
        column = self._own_table().remove(name)
        self._own_allocatable()[:, column] = 0
        self._own_used()[:, column] = 0
        self._growth.forget(name)
        if self._terms:
            # Pods on this node close no topology domain any more.
            self._growth.everywhere()

    def node(self, name: str) -> Node | None:
        """The node as last passed to `upsert_node`."""
        return self._table.get(name)

    def is_open(self, name: str, uid: str = "") -> bool:
        """Whether the node with this uid exists and is not being deleted; checked just before binding (T7).

        An empty `uid` matches any node of that name.
        """
        node = self._table.get(name)
        return node is not None and not node.deleting and uid in ("", node.uid)

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return self._table.count

    # Pods

    def put(self, uid: str, pod: Placed) -> None:
        """Count a pod on its node, once. It replaces an assumption, or an earlier record of the pod."""
        before = self._placed.get(uid)
        if before == pod:
            return
        if before is not None and before.node == pod.node and before.kind is pod.kind:
            self._note(uid)
            self._unhold(uid, before)
            self._placed[uid] = pod
            return
        if before is not None:
            self._release(uid)
        self._note(uid)
        self._placed[uid] = pod
        if pod.kind is not None:
            self._count(pod.node, pod.kind, 1)
            for term in pod.kind.repulsions:
                self._own_terms().add(term, pod.node)

    def put_unreadable(self, uid: str, node: str, pod: str) -> None:
        """Close a node because the requests of a pod cannot be read; `pod` is its name for messages."""
        self.put(uid, Placed(None, node))
        self._own_table().set_unreadable(node, uid, pod)

    def remove(self, uid: str) -> None:
        """Remove a pod that is gone or has ended, in any state, and free its room."""
        if uid in self._placed:
            self._release(uid)

    def placed(self, uid: str) -> Placed | None:
        """The record of this pod, None if it is not counted."""
        return self._placed.get(uid)

    def assume(self, placement: Placement, *, gang_priority: int = 0) -> None:
        """Count a placement before the API server shows it. Undo: `forget` for each pod.

        A pod that the API server already showed on a node is not changed.
        """
        self._put_all(placement.key, placement, State.ASSUMED, gang_priority)

    def forget(self, uid: str) -> bool:
        """Undo an assumption; False if there is none (the pod was seen bound, or is gone)."""
        found = self._placed.get(uid)
        if found is None or found.state is not State.ASSUMED:
            return False
        self._release(uid)
        return True

    # Held room

    def hold(self, gang: str, placement: Placement) -> None:
        """Hold this room for members of a gang: others see it as used. Replaces what was held for it.

        The uids in `placement` identify the room, not pods; they must differ from the uids of pods.
        """
        if {uid: (one.node, one.kind) for uid in self._held.get(gang, ()) if (one := self._placed[uid])} == {
            uid: (node, placement.kinds[uid]) for uid, node in placement.nodes.items()
        }:
            return
        self.release(gang)
        if placement.nodes:
            self._put_all(gang, placement, State.HELD, 0)
            self._held[gang] = dict.fromkeys(placement.nodes)

    def release(self, gang: str) -> None:
        """Free the room that is held for a gang."""
        for uid in self._held.pop(gang, ()):
            self._release(uid)

    def holding_gangs(self) -> tuple[str, ...]:
        """The gangs for which room is held."""
        return tuple(self._held)

    def holding_on(self, node: str) -> list[str]:
        """The gangs for which room is held on this node."""
        placed = self._placed
        return [gang for gang, uids in self._held.items() if any(placed[uid].node == node for uid in uids)]

    def held(self, gang: str) -> tuple[str, ...]:
        """The uids that identify the room held for a gang."""
        return tuple(self._held.get(gang, ()))

    # The picture

    def view(self) -> View:
        """An immutable snapshot of the cluster. The same object is returned until something changes."""
        if self._view is None:
            pods = Pods(self._placed)
            if self._noted is not None and (last := self._noted()) is not None:
                last.newer = pods
            self._noted = weakref.ref(pods)
            self._view = View(
                self._table,
                self._rows,
                self._allocatable,
                self._used,
                pods,
                self._terms,
                self._eligibility,
            )
            self._shared = {"table", "rows", "allocatable", "used", "terms"}
        return self._view

    def grown_since(self, room_version: int) -> frozenset[str]:
        """The nodes whose room may have grown, or that may accept more pods, since that version."""
        return self._growth.since(room_version, self._table.columns)

    # Inside

    def _put_all(self, gang: str, placement: Placement, state: State, priority: int) -> None:
        sums: Counter[tuple[str, PodKind]] = Counter()
        for uid, node in placement.nodes.items():
            before = self._placed.get(uid)
            if before is not None:
                if before.state is State.SEEN:
                    continue
                self._release(uid)
            kind = placement.kinds[uid]
            self._note(uid)
            self._placed[uid] = Placed(kind, node, gang, priority, "", state)
            sums[node, kind] += 1
        for (node, kind), times in sums.items():
            self._count(node, kind, times)
            for term in kind.repulsions:
                self._own_terms().add(term, node, times)

    def _release(self, uid: str) -> None:
        self._note(uid)
        pod = self._placed.pop(uid)
        self._unhold(uid, pod)
        if pod.kind is None:
            self._own_table().set_unreadable(pod.node, uid, None)
        else:
            self._count(pod.node, pod.kind, -1)
            for term in pod.kind.repulsions:
                self._own_terms().remove(term, pod.node)
        if pod.kind is not None and pod.kind.repulsions:
            # The term may have closed a whole topology domain.
            self._growth.everywhere()
        elif pod.node in self._table.columns:
            self._growth.on(pod.node)

    def _unhold(self, uid: str, pod: Placed) -> None:
        if pod.state is State.HELD and uid in self._held.get(pod.gang, {}):
            del self._held[pod.gang][uid]
            if not self._held[pod.gang]:
                del self._held[pod.gang]

    def _note(self, uid: str) -> None:
        """Before the record of a pod changes: views that are still in use keep the old one."""
        self._view = None
        if self._noted is not None and (pods := self._noted()) is not None:
            pods.note(uid, self._placed.get(uid))

    def _count(self, node: str, kind: PodKind, times: int) -> None:
        sums = self._sums.setdefault(node, {})
        column = self._table.columns.get(node)
        for resource, amount in kind.shape.requests:
            total = sums.get(resource, 0) + amount * times
            if total:
                sums[resource] = total
            else:
                sums.pop(resource, None)
            if column is not None:
                row = self._row(resource)
                self._own_used()[row, column] = min(total, LIMIT)
        if not sums:
            del self._sums[node]

    def _vector(self, amounts: Mapping[str, int]) -> Amounts:
        """The amounts as a column of the arrays, which grow first if a resource is new."""
        cells = [(self._row(resource), min(amount, LIMIT)) for resource, amount in amounts.items()]
        vector = np.zeros(len(self._allocatable), dtype=np.int64)
        for row, amount in cells:
            vector[row] = amount
        return vector

    def _row(self, resource: str) -> int:
        row = self._rows.get(resource)
        if row is None:
            self._view = None
            if "rows" in self._shared:
                self._rows = dict(self._rows)
                self._shared.discard("rows")
            row = self._rows[resource] = len(self._rows)
            if row == len(self._allocatable):
                self._allocatable = np.concatenate((self._allocatable, self._allocatable * 0))
                self._used = np.concatenate((self._used, self._used * 0))
                self._shared -= {"allocatable", "used"}
        return row

    def _widen(self) -> None:
        table = self._own_table()
        table.grow(2 * table.width)
        more = ((0, 0), (0, table.width - self._used.shape[1]))
        self._allocatable, self._used = np.pad(self._allocatable, more), np.pad(self._used, more)
        self._shared -= {"allocatable", "used"}

    def _own_table(self) -> NodeTable:
        self._view = None
        if "table" in self._shared:
            self._table = self._table.copy()
            self._shared.discard("table")
        return self._table

    def _own_allocatable(self) -> Amounts:
        self._view = None
        if "allocatable" in self._shared:
            self._allocatable = self._allocatable.copy()
            self._shared.discard("allocatable")
        return self._allocatable

    def _own_used(self) -> Amounts:
        self._view = None
        if "used" in self._shared:
            self._used = self._used.copy()
            self._shared.discard("used")
        return self._used

    def _own_terms(self) -> Terms:
        self._view = None
        if "terms" in self._shared:
            self._terms = self._terms.copy()
            self._shared.discard("terms")
        return self._terms
