"""An immutable snapshot of the cluster: all that a match reads.

Owns: what is free on each node, which pods are placed, which nodes a kind may use; and changed snapshots
(`without`, `with_nodes`, `at`), so that "what if" is a match on another view. Does not own: keeping the
cluster up to date (`Ledger.view` makes the snapshot), or where a gang goes.

A view shares its arrays with the ledger, which copies them before its next change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from scheduler_core.eligibility import Eligibility, EligibilityCache, domains_of
from scheduler_core.kinds import PodKind
from scheduler_core.nodes import Mask, Node, NodeTable
from scheduler_core.placed import Placed, State
from scheduler_core.quantity import LIMIT
from scheduler_core.terms import Terms

Amounts = npt.NDArray[np.int64]
_ORDINARY: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})


def is_extended(resource: str) -> bool:
    """Whether a resource is special hardware, such as a device, and not one that every node has."""
    return resource not in _ORDINARY and not resource.startswith("hugepages-")


class Pods:
    """The placed pods at the time of a view, although the ledger changes its own map afterwards.

    Before the ledger changes an entry, the old value is recorded here. `newer` is the same for the next view.
    """

    def __init__(self, live: Mapping[str, Placed]) -> None:
        self._live = live
        self._before: dict[str, Placed | None] = {}
        self.newer: Pods | None = None

    def note(self, uid: str, before: Placed | None) -> None:
        """Called by the ledger before it changes the entry of a pod."""
        self._before.setdefault(uid, before)

    def get(self, uid: str) -> Placed | None:
        """The entry of a pod, None where it had none."""
        pods: Pods | None = self
        while pods is not None:
            if uid in pods._before:
                return pods._before[uid]
            pods = pods.newer
        return self._live.get(uid)


class View:
    """What is free, which pods are placed, and which nodes may be used. Made by `Ledger.view`."""

    def __init__(
        self,
        table: NodeTable,
        rows: Mapping[str, int],
        allocatable: Amounts,
        used: Amounts,
        pods: Pods,
        terms: Terms,
        eligibility: EligibilityCache,
        gone: frozenset[str] = frozenset(),
    ) -> None:
        self.table = table
        self.terms = terms
        self._rows = rows
        self._allocatable = allocatable
        self._used = used
        self._pods = pods
        self._eligibility = eligibility
        self._gone = gone

    # What a match reads

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return self.table.count

    @property
    def width(self) -> int:
        """How many columns of the arrays can have a node."""
        return self.table.used_width

    def free(self, resource: str) -> Amounts:
        """What is left of a resource in each column, negative if over-committed; a new array."""
        row = self._rows.get(resource)
        if row is None:
            return np.zeros(self.width, dtype=np.int64)
        return np.subtract(self._allocatable[row, : self.width], self._used[row, : self.width])

    def free_on(self, name: str) -> dict[str, int]:
        """What is left on one node, by resource; empty for a node that is not known."""
        column = self.table.columns.get(name)
        if column is None:
            return {}
        left = self._allocatable[:, column] - self._used[:, column]
        return {resource: int(left[row]) for resource, row in self._rows.items()}

    def placed(self, uid: str) -> Placed | None:
        """The record of a placed pod."""
        return None if uid in self._gone else self._pods.get(uid)

    def eligible(self, kind: PodKind) -> Eligibility:
        """The nodes that a pod of this kind may use, apart from room."""
        return self._eligibility.of(self.table, kind.shape.constraints)

    def closed_by(self, kind: PodKind) -> Mask | None:
        """The nodes that the anti-affinity of placed pods closes for this kind, None for none (rule IA4)."""
        nodes: dict[str, set[str]] = {}
        for term in self.terms.selecting(kind):
            nodes.setdefault(term.topology_key, set()).update(self.terms.nodes_of(term))
        closed: Mask | None = None
        for key, names in nodes.items():
            mask = domains_of(self.table, key, names)
            closed = mask if closed is None else closed | mask
        return closed

    def special(self, kind: PodKind) -> Mask:
        """The nodes that have special hardware which a pod of this kind does not ask for (case N18)."""
        asked = {resource for resource, _ in kind.shape.requests}
        mask = np.zeros(self.width, dtype=np.bool_)
        for resource, row in self._rows.items():
            if resource not in asked and is_extended(resource):
                mask |= self._allocatable[row, : self.width] > 0
        return mask

    # Changed snapshots

    def without(self, uids: Iterable[str]) -> View:
        """The same cluster without these placed pods; unknown uids are ignored."""
        gone = {uid: found for uid in uids if (found := self.placed(uid)) is not None}
        if not gone:
            return self
        used, terms = self._used.copy(), self.terms
        if any(one.kind is not None and one.kind.repulsions for one in gone.values()):
            terms = terms.copy()
        table = self.table
        for uid, one in gone.items():
            if one.kind is None:
                table = table.copy() if table is self.table else table
                table.set_unreadable(one.node, uid, None)
                continue
            column = self.table.columns.get(one.node)
            if column is not None:
                _subtract(used, self._rows, column, one.kind)
            for term in one.kind.repulsions:
                terms.remove(term, one.node)
        return self._with(table=table, used=used, terms=terms, gone=self._gone | gone.keys())

    def at(self, releases: Iterable[str]) -> View:
        """The cluster after these pods have ended. Only pods that run can end; others are kept."""
        return self.without(
            uid for uid in releases if (one := self.placed(uid)) is not None and one.state is State.SEEN
        )

    def with_nodes(self, nodes: Iterable[Node]) -> View:
        """The same cluster with additional empty nodes. A node of a known name replaces it."""
        table, rows = self.table.copy(), dict(self._rows)
        allocatable, used = self._allocatable, self._used
        for node in nodes:
            if table.is_full(node.name):
                table.grow(2 * table.width)
            for resource in node.allocatable:
                rows.setdefault(resource, len(rows))
            more = ((0, max(0, len(rows) - len(used))), (0, table.width - used.shape[1]))
            allocatable, used = np.pad(allocatable, more), np.pad(used, more)
            known = node.name in table.columns
            column = table.put(node)
            allocatable[:, column] = 0
            for resource, amount in node.allocatable.items():
                allocatable[rows[resource], column] = min(amount, LIMIT)
            if not known:
                used[:, column] = 0
        return self._with(table=table, rows=rows, allocatable=allocatable, used=used)

    def _with(
        self,
        *,
        table: NodeTable | None = None,
        rows: Mapping[str, int] | None = None,
        allocatable: Amounts | None = None,
        used: Amounts | None = None,
        terms: Terms | None = None,
        gone: frozenset[str] | None = None,
    ) -> View:
        return View(
            self.table if table is None else table,
            self._rows if rows is None else rows,
            self._allocatable if allocatable is None else allocatable,
            self._used if used is None else used,
            self._pods,
            self.terms if terms is None else terms,
            self._eligibility,
            self._gone if gone is None else gone,
        )


def _subtract(used: Amounts, rows: Mapping[str, int], column: int, kind: PodKind) -> None:
    for resource, amount in kind.shape.requests:
        row = rows.get(resource)
        # A sum beyond the limit is not known exactly, so it is not changed.
        if row is not None and used[row, column] < LIMIT:
            used[row, column] -= amount
