"""The nodes of a cluster for the matcher: one column each, labels and taints interned.

Owns: name <-> column, growth and reuse of columns, label columns, taint sets. Does not own: amounts (the
ledger keeps those in columns of the same number), or who may use a node (`eligibility`).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from scheduler_core.constraints import Taint

Mask = npt.NDArray[np.bool_]
Ids = npt.NDArray[np.int32]
Taints = tuple[Taint, ...]

#: Taints that a field or condition of the node implies (rules T5, T6). The node controller sets the real
#: taint a moment later. A toleration of it admits the pod, as in Kubernetes.
CORDONED: Final = Taint("node.kubernetes.io/unschedulable")
NOT_READY: Final = Taint("node.kubernetes.io/not-ready")
NETWORK_UNAVAILABLE: Final = Taint("node.kubernetes.io/network-unavailable")
#: The implied taint of each node condition.
PRESSURES: Final[Mapping[str, Taint]] = {
    "MemoryPressure": Taint("node.kubernetes.io/memory-pressure"),
    "DiskPressure": Taint("node.kubernetes.io/disk-pressure"),
    "PIDPressure": Taint("node.kubernetes.io/pid-pressure"),
}

NO_ID: Final = -1
#: Every state of every table has its own version, so answers can be kept by version.
_versions = itertools.count(1)
_T = TypeVar("_T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Node:
    """One node: `allocatable` in whole numbers (`requests.capacity`), never `capacity` (rule R6).

    `pressures` are the conditions in `PRESSURES` that are true.
    """

    name: str
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Taints = ()
    unschedulable: bool = False
    ready: bool = True
    network_unavailable: bool = False
    deleting: bool = False
    uid: str = ""
    pressures: tuple[str, ...] = ()

    def effective_taints(self) -> Taints:
        """The taints that exclude pods, implied ones first."""
        implied = (
            (CORDONED, self.unschedulable),
            (NOT_READY, not self.ready),
            (NETWORK_UNAVAILABLE, self.network_unavailable),
        )
        effective = [taint for taint, holds in implied if holds]
        effective += [PRESSURES[name] for name in self.pressures]
        # The node controller sets the same taints: one is enough.
        effective += [one for one in self.taints if one.blocks and one not in effective]
        return tuple(effective)


class Interner(Generic[_T]):
    """Values as small numbers, with a count of users, so that values of removed nodes are dropped."""

    def __init__(self) -> None:
        self.ids: dict[_T, int] = {}
        self.values: list[_T | None] = []
        self._users: list[int] = []
        self._unused: list[int] = []

    def copy(self) -> Interner[_T]:
        """A copy that changes apart from this one."""
        other: Interner[_T] = Interner()
        other.ids, other.values = dict(self.ids), list(self.values)
        other._users, other._unused = list(self._users), list(self._unused)
        return other

    def take(self, value: _T) -> int:
        """The number of this value; adds one user."""
        number = self.ids.get(value)
        if number is None:
            if self._unused:
                number = self._unused.pop()
                self.values[number] = value
            else:
                number = len(self.values)
                self.values.append(value)
                self._users.append(0)
            self.ids[value] = number
        self._users[number] += 1
        return number

    def drop(self, number: int) -> None:
        """Remove one user; without users the number is free again."""
        self._users[number] -= 1
        if self._users[number] == 0:
            value = self.values[number]
            assert value is not None
            del self.ids[value]
            self.values[number] = None
            self._unused.append(number)


class LabelColumn:
    """One label key over all nodes: the number of its value on each, NO_ID where it is missing."""

    def __init__(self, width: int) -> None:
        self.ids: Ids = np.full(width, NO_ID, dtype=np.int32)
        self.interner: Interner[str] = Interner()

    def copy(self) -> LabelColumn:
        """A copy that changes apart from this one."""
        other = LabelColumn(0)
        other.ids, other.interner = self.ids.copy(), self.interner.copy()
        return other

    def put(self, column: int, value: str | None) -> None:
        """Set or remove the label of one node."""
        before = int(self.ids[column])
        self.ids[column] = NO_ID if value is None else self.interner.take(value)
        if before != NO_ID:
            self.interner.drop(before)


class NodeTable:
    """Every known node by name and by column. Columns of removed nodes are used again, lowest first."""

    def __init__(self, width: int) -> None:
        self.version = next(_versions)  # another one after everything that may change a mask
        self.count = 0
        self.width = width
        self.used_width = 0  # no node has this column or a higher one
        self.columns: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        self.present: Mask = np.zeros(width, dtype=np.bool_)
        self.deleting: Mask = np.zeros(width, dtype=np.bool_)
        self.taint_ids: Ids = np.full(width, NO_ID, dtype=np.int32)
        self.taint_sets: Interner[Taints] = Interner()
        self.labels: dict[str, LabelColumn] = {}
        self._unused: list[int] = []
        #: By node: uids and names of the pods that close it because their requests cannot be read.
        self.unreadable: dict[str, dict[str, str]] = {}

    def copy(self) -> NodeTable:
        """A copy that changes apart from this one."""
        other = NodeTable(0)
        other.version, other.count = self.version, self.count
        other.width, other.used_width = self.width, self.used_width
        other.columns, other.nodes = dict(self.columns), list(self.nodes)
        other.present, other.deleting = self.present.copy(), self.deleting.copy()
        other.taint_ids, other.taint_sets = self.taint_ids.copy(), self.taint_sets.copy()
        other.labels = {key: label.copy() for key, label in self.labels.items()}
        other._unused = list(self._unused)
        other.unreadable = dict(self.unreadable)
        return other

    def set_unreadable(self, node: str, uid: str, pod: str | None) -> None:
        """Close a node for a pod whose requests cannot be read; `pod` is its name, None once it is gone."""
        pods = {key: name for key, name in self.unreadable.get(node, {}).items() if key != uid}
        if pod is not None:
            pods[uid] = pod
        if pods == self.unreadable.get(node, {}):
            return
        self.version = next(_versions)
        if pods:
            self.unreadable[node] = pods
        else:
            del self.unreadable[node]

    def get(self, name: str) -> Node | None:
        """The node as last put."""
        column = self.columns.get(name)
        return None if column is None else self.nodes[column]

    def node_at(self, column: int) -> Node:
        """The node in this column, which holds one."""
        node = self.nodes[column]
        assert node is not None
        return node

    def put(self, node: Node) -> int:
        """Add or replace a node and return its column. If the table is full (`is_full`), grow it first."""
        column = self.columns.get(node.name)
        before = None if column is None else self.nodes[column]
        if column is None:
            column = self._new_column()
            self.columns[node.name] = column
            self.count += 1
            self.present[column] = True
        if before is None or _selection(before) != _selection(node):
            self.version = next(_versions)
            self._put_labels(column, before.labels if before else {}, node.labels)
            self._put_taints(column, node.effective_taints())
            self.deleting[column] = node.deleting
        self.nodes[column] = node
        return column

    def remove(self, name: str) -> int | None:
        """Forget a node and return the column that it had."""
        column = self.columns.pop(name, None)
        if column is None:
            return None
        node = self.nodes[column]
        assert node is not None
        self.version = next(_versions)
        self.count -= 1
        self._put_labels(column, node.labels, {})
        self.taint_sets.drop(int(self.taint_ids[column]))
        self.taint_ids[column] = NO_ID
        self.present[column] = self.deleting[column] = False
        self.nodes[column] = None
        heapq.heappush(self._unused, column)
        return column

    def is_full(self, name: str) -> bool:
        """Whether a node of this name needs a new column."""
        return name not in self.columns and not self._unused and len(self.nodes) == self.width

    def grow(self, width: int) -> None:
        """Widen every column array; existing columns keep their place."""
        more = width - self.width
        no_ids = np.full(more, NO_ID, dtype=np.int32)
        no_bits = np.zeros(more, dtype=np.bool_)
        self.present = np.concatenate((self.present, no_bits))
        self.deleting = np.concatenate((self.deleting, no_bits))
        self.taint_ids = np.concatenate((self.taint_ids, no_ids))
        for label in self.labels.values():
            label.ids = np.concatenate((label.ids, no_ids))
        self.width = width

    def _new_column(self) -> int:
        if self._unused:
            return heapq.heappop(self._unused)
        self.nodes.append(None)
        self.used_width = len(self.nodes)
        return len(self.nodes) - 1

    def _put_labels(self, column: int, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        for key, value in new.items():
            if old.get(key) != value:
                if key not in self.labels:
                    self.labels[key] = LabelColumn(self.width)
                self.labels[key].put(column, value)
        for key in old.keys() - new.keys():
            label = self.labels[key]
            label.put(column, None)
            if not label.interner.ids:
                del self.labels[key]

    def _put_taints(self, column: int, taints: Taints) -> None:
        before = int(self.taint_ids[column])
        self.taint_ids[column] = self.taint_sets.take(taints)
        if before != NO_ID:
            self.taint_sets.drop(before)


def _selection(node: Node) -> tuple[object, ...]:
    """Everything about a node that decides which pods may use it."""
    return (node.labels, node.effective_taints(), node.deleting)


def may_admit_more(before: Node, after: Node) -> bool:
    """Whether `after` may accept a pod that `before` did not: more room, or other labels or taints."""
    if after.deleting:
        return False
    if before.deleting or before.labels != after.labels:
        return True
    if set(before.effective_taints()) - set(after.effective_taints()):
        return True
    return any(amount > before.allocatable.get(name, 0) for name, amount in after.allocatable.items())
