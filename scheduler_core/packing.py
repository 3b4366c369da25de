"""How many members of one shape each node holds, and which nodes take them.

Owns: slots (one floor division over the array) and the choice of nodes. Does not own: who may use a node, or
several shapes at once (`search`).

The choice: as few nodes as possible, and among as few those that are fullest already, so that little is left
in pieces and empty nodes stay whole for the next big gang. Ties go by the order of the nodes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from scheduler_core.constraints import Requests
from scheduler_core.ledger import Amounts, Ledger
from scheduler_core.nodes import Mask

_MAX_UINT16: Final = 2**16 - 1
#: Columns, and how many members each of them takes.
Fill = tuple[npt.NDArray[np.intp], Amounts]


class Room:
    """What is free, as a working copy that a plan can take from without touching the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._free: dict[str, Amounts] = {}

    def free(self, resource: str) -> Amounts:
        """What is left of a resource in each column."""
        known = self._free.get(resource)
        if known is None:
            known = self._free[resource] = self._ledger.free(resource)
        return known

    def copy(self) -> Room:
        """The same room, to try something in."""
        other = Room(self._ledger)
        other._free = {resource: amounts.copy() for resource, amounts in self._free.items()}
        return other

    def slots(self, requests: Requests, mask: Mask, at_most: int) -> Amounts:
        """How many such members each node of the mask still holds, never more than `at_most`."""
        slots = np.where(mask, np.int64(at_most), np.int64(0))
        for resource, amount in requests:
            np.minimum(slots, self.free(resource) // amount, out=slots)
        # An over-committed node has less than nothing free, but takes no members away from others.
        return np.maximum(slots, 0, out=slots)

    def take(self, requests: Requests, fill: Fill) -> None:
        """Count the members of this plan."""
        columns, counts = fill
        for resource, amount in requests:
            self.free(resource)[columns] -= amount * counts


def pack(slots: Amounts, size: int) -> Fill:
    """Spread `size` members (at most the sum of the slots) over the fewest, fullest nodes."""
    if size == 0:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64)
    whole = np.flatnonzero(slots >= size)
    if len(whole):
        # One node holds them all: the one with the least room beyond that.
        best = whole[np.argmin(slots[whole])]
        return np.array([best], dtype=np.intp), np.array([size], dtype=np.int64)
    candidates = np.flatnonzero(slots)
    order = candidates[_ascending(slots[candidates])]
    sums = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(slots[order])))
    # The fewest nodes: as many of the roomiest as it takes. Then the fullest run of that many in the
    # order that holds the gang; by minimality it has less to spare than its smallest node holds.
    fewest = len(order) - int(np.searchsorted(sums, sums[-1] - size, side="right")) + 1
    first = int(np.argmax(sums[fewest:] - sums[:-fewest] >= size))
    columns = order[first : first + fewest]
    # The run may begin in the middle of equals: of those, the first ones in node order go.
    equals = order[slots[order] == slots[order[first]]]
    at_start = int(np.count_nonzero(slots[columns] == slots[order[first]]))
    columns = np.concatenate((equals[:at_start], columns[at_start:]))
    counts = slots[columns]
    counts[-1] -= int(counts.sum()) - size
    return columns, counts


def _ascending(slots: Amounts) -> npt.NDArray[np.intp]:
    """Stable order; numpy sorts 16-bit numbers by radix, several times as fast as 64-bit ones."""
    small = slots.astype(np.uint16) if int(slots.max()) <= _MAX_UINT16 else slots
    return np.argsort(small, kind="stable")
