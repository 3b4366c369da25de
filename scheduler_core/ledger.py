"""The cluster as whole numbers: what nodes have, what pods use, and what we have assumed.

Owns: one int64 array (resource, column) of what is allocatable and one of what is used; who uses what, by pod
uid; assume and its undo. Does not own: which pods count (S5 and R13: the caller adds pods with a node that
are not terminal and removes them when they are), or where a gang goes (`match`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from scheduler_core.constraints import Repulsion, Requests
from scheduler_core.eligibility import EligibilityCache, closed_by
from scheduler_core.gang import Placement
from scheduler_core.nodes import Mask, Node, NodeTable, may_admit_more
from scheduler_core.quantity import LIMIT

Amounts = npt.NDArray[np.int64]
_FIRST_ROWS: Final = ("cpu", "memory", "pods", "ephemeral-storage")


class Usage(NamedTuple):
    """What one pod uses, and where. `assumed`: by our decision, not yet seen at the API server."""

    node: str
    requests: Requests
    repulsions: tuple[Repulsion, ...] = ()
    assumed: bool = False


class Ledger:
    """What every node has and what every pod on it uses.

    A pod is counted once, by its uid. Sums are kept as Python's own whole numbers for each node and written
    into the array from there, so that no absurd request can make a column overflow.
    """

    def __init__(self, width: int = 64) -> None:
        #: Rises whenever room or eligibility may have grown: refused gangs are worth another try then.
        self.gains = 0
        self.table = NodeTable(max(1, width))
        self.eligibility = EligibilityCache(self.table)
        self._rows = {name: row for row, name in enumerate(_FIRST_ROWS)}
        self._allocatable: Amounts = np.zeros((len(_FIRST_ROWS), self.table.width), dtype=np.int64)
        self._used: Amounts = np.zeros_like(self._allocatable)
        self._usage: dict[str, Usage] = {}
        #: Sums by node and resource, also for nodes that are not known (yet, or any more).
        self._sums: dict[str, dict[str, int]] = {}
        self._repulsions: dict[Repulsion, Counter[str]] = {}

    # -- nodes -------------------------------------------------------------------------------------

    def upsert_node(self, node: Node) -> None:
        """Add the node or take over what changed; usage that is known for it counts from now on."""
        before = self.table.get(node.name)
        if before == node:
            return
        if self.table.is_full(node.name):
            self._widen()
        column = self.table.put(node)
        self._allocatable[:, column] = self._vector(node.allocatable)
        if before is None:
            self._used[:, column] = self._vector(self._sums.get(node.name, {}))
        if before is None or may_admit_more(before, node):
            self.gains += 1

    def remove_node(self, name: str) -> None:
        """Forget the node; the usage of its pods is remembered in case it comes back."""
        column = self.table.remove(name)
        if column is not None:
            self._allocatable[:, column] = 0
            self._used[:, column] = 0

    def is_open(self, name: str) -> bool:
        """Whether the node exists and is not being deleted: to be checked just before binding (T7)."""
        node = self.table.get(name)
        return node is not None and not node.deleting

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return self.table.count

    # -- pods --------------------------------------------------------------------------------------

    def add_usage(
        self, uid: str, node: str, requests: Requests, repulsions: tuple[Repulsion, ...] = ()
    ) -> None:
        """Count a pod that the API server shows on a node, once; an assumption about it is confirmed.

        Telling it again changes nothing; telling another node or other requests counts it anew.
        """
        usage = Usage(node, requests, repulsions)
        before = self._usage.get(uid)
        if before is not None:
            if before[:3] == usage[:3]:
                self._usage[uid] = usage
                return
            self._release(uid)
        self._usage[uid] = usage
        self._count(node, requests, 1)
        for one in repulsions:
            self._repulsions.setdefault(one, Counter())[node] += 1

    def remove_usage(self, uid: str) -> None:
        """The pod is gone or terminal: give back what it used, be it bound or assumed."""
        if uid in self._usage:
            self._release(uid)

    def assume(self, placement: Placement) -> None:
        """Count a placement before the API server knows of it. Undo: `forget` for each pod.

        A pod that was seen on a node already is left as it is: the API server knows better than we do.
        """
        sums: Counter[tuple[str, Requests]] = Counter()
        for uid, node in placement.nodes.items():
            before = self._usage.get(uid)
            if before is not None:
                if not before.assumed:
                    continue
                self._release(uid)
            requests = placement.shapes[uid].requests
            self._usage[uid] = Usage(node, requests, (), True)
            sums[node, requests] += 1
        for (node, requests), times in sums.items():
            self._count(node, requests, times)

    def forget(self, uid: str) -> bool:
        """Undo an assumption; False if there is none any more (the pod was seen bound, or is gone)."""
        usage = self._usage.get(uid)
        if usage is None or not usage.assumed:
            return False
        self._release(uid)
        return True

    def usage(self, uid: str) -> Usage | None:
        """What is counted for this pod."""
        return self._usage.get(uid)

    # -- what the match reads ------------------------------------------------------------------------

    def free(self, resource: str) -> Amounts:
        """What is left of a resource in each column; below zero where a node is over-committed."""
        width = self.table.used_width
        row = self._rows.get(resource)
        if row is None:
            return np.zeros(width, dtype=np.int64)
        return np.subtract(self._allocatable[row, :width], self._used[row, :width])

    def free_on(self, name: str) -> dict[str, int]:
        """What is left on one node, by resource; empty for a node that is not known."""
        column = self.table.columns.get(name)
        if column is None:
            return {}
        left = self._allocatable[:, column] - self._used[:, column]
        return {resource: int(left[row]) for resource, row in self._rows.items()}

    def repulsions_for(self, namespace: str) -> tuple[Repulsion, ...]:
        """Required anti-affinity terms of placed pods that can see pods of this namespace (IA4)."""
        return tuple(one for one in self._repulsions if one.sees(namespace))

    def closed_by(self, repulsions: frozenset[Repulsion]) -> Mask:
        """The nodes that these terms close."""
        closed = np.zeros(self.table.used_width, dtype=np.bool_)
        for one in repulsions:
            closed |= closed_by(self.table, one, self._repulsions[one])
        return closed

    # -- inside ------------------------------------------------------------------------------------

    def _release(self, uid: str) -> None:
        usage = self._usage.pop(uid)
        self._count(usage.node, usage.requests, -1)
        for one in usage.repulsions:
            nodes = self._repulsions[one]
            nodes[usage.node] -= 1
            if nodes[usage.node] == 0:
                del nodes[usage.node]
            if not nodes:
                del self._repulsions[one]
        if usage.node in self.table.columns or usage.repulsions:
            self.gains += 1

    def _count(self, node: str, requests: Requests, times: int) -> None:
        sums = self._sums.setdefault(node, {})
        column = self.table.columns.get(node)
        for resource, amount in requests:
            total = sums.get(resource, 0) + amount * times
            if total:
                sums[resource] = total
            else:
                sums.pop(resource, None)
            if column is not None:
                row = self._row(resource)  # before the array is looked up: it may be replaced
                self._used[row, column] = min(total, LIMIT)
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
            row = self._rows[resource] = len(self._rows)
            if row == len(self._allocatable):
                self._allocatable = np.concatenate((self._allocatable, self._allocatable * 0))
                self._used = np.concatenate((self._used, self._used * 0))
        return row

    def _widen(self) -> None:
        self.table.grow(2 * self.table.width)
        more = ((0, 0), (0, self.table.width - self._used.shape[1]))
        self._allocatable = np.pad(self._allocatable, more)
        self._used = np.pad(self._used, more)
