"""Choose the nodes for the members of one part, given how many each node can take.

Owns: the choice of nodes. Does not own: which pods may use a node (`eligibility`), how many it takes
(`limits`), or several parts at once (`search`).

Choices are compared by these whole numbers, in this order; the smallest is taken:

1. members on nodes with special hardware that they do not ask for, which is kept for pods that do;
2. the number of nodes;
3. room for members of this kind that is left on these nodes: full nodes are filled first, so that empty nodes
   stay free for the next big gang;
4. the order of the nodes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from scheduler_core.limits import Fill
from scheduler_core.nodes import Mask
from scheduler_core.view import Amounts

_MAX_UINT16: Final = 2**16 - 1


def nothing() -> Fill:
    """A fill of no members."""
    return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64)


def pack(slots: Amounts, size: int, special: Mask | None = None) -> Fill:
    """Distribute `size` members (at most the sum of the slots) over the nodes; see the text of the module.

    `slots` is how many members each column can take; it may be above `size`, and the rest decides between
    nodes. `special` are the columns with hardware that the members do not ask for.
    """
    if size == 0:
        return nothing()
    if special is None or not special.any():
        return _tightest(slots, size)
    ordinary = np.where(special, np.int64(0), slots)
    room = int(ordinary.sum())
    if room >= size:
        return _tightest(ordinary, size)
    first = np.flatnonzero(ordinary)
    columns, counts = _tightest(np.where(special, slots, np.int64(0)), size - room)
    return np.concatenate((first, columns)), np.concatenate((ordinary[first], counts))


def _tightest(slots: Amounts, size: int) -> Fill:
    """The fewest nodes, and among equally few the fullest."""
    whole = np.flatnonzero(slots >= size)
    if len(whole):
        # One node holds all of them: take the one with the least room left.
        best = whole[np.argmin(slots[whole])]
        return np.array([best], dtype=np.intp), np.array([size], dtype=np.int64)
    candidates = np.flatnonzero(slots)
    order = candidates[_ascending(slots[candidates])]
    sums = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(slots[order])))
    # How few nodes are enough follows from the nodes with the most room. Of all runs of that many nodes,
    # sorted by room, take the fullest that holds the gang. Its smallest node has more room than is spare.
    fewest = len(order) - int(np.searchsorted(sums, sums[-1] - size, side="right")) + 1
    first = int(np.argmax(sums[fewest:] - sums[:-fewest] >= size))
    columns = order[first : first + fewest]
    # If the run begins within a series of equal nodes, take the first of these in the order of nodes.
    equals = order[slots[order] == slots[order[first]]]
    at_start = int(np.count_nonzero(slots[columns] == slots[order[first]]))
    columns = np.concatenate((equals[:at_start], columns[at_start:]))
    counts = slots[columns]
    counts[-1] -= int(counts.sum()) - size
    return columns, counts


def _ascending(slots: Amounts) -> npt.NDArray[np.intp]:
    """Stable order. numpy sorts 16-bit numbers by radix, which is several times faster than 64-bit ones."""
    small = slots.astype(np.uint16) if int(slots.max()) <= _MAX_UINT16 else slots
    return np.argsort(small, kind="stable")
