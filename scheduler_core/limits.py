"""Room on nodes: a `Limit` says how many members of a part each node takes, and counts those that it took.

A rule of Kubernetes that depends on placed pods is one limit, in one module. It reads the view once and then
counts what the plan takes. Greedy plans, bounds and the exact search use only limits.

Owns: the protocol, `Part`, `Room` (all limits of a plan together), and the limit of resources. Does not own:
rules that look at the node alone (`eligibility`), or which node takes how many (`packing`, `search`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from scheduler_core.eligibility import Eligibility
from scheduler_core.kinds import PodKind
from scheduler_core.nodes import Mask
from scheduler_core.view import Amounts, View

#: Columns, and how many members each of them takes.
Fill = tuple[npt.NDArray[np.intp], Amounts]
#: The number of slots where a limit does not restrict a node.
UNLIMITED: Final = 2**31


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Interchangeable members of a gang: how many, of which kind, and the nodes that they may use."""

    size: int
    kind: PodKind
    eligible: Eligibility


class Limit(Protocol):
    """One rule that depends on placed pods."""

    @property
    def reason(self) -> str:
        """Why a node takes no member by this rule, in the singular ("is cordoned")."""

    def slots(self, part: Part) -> Amounts:
        """How many members of `part` each column takes now, at least zero; a new array."""

    def slots_on(self, part: Part, column: int) -> int:
        """The same for one column."""

    def take(self, part: Part, fill: Fill) -> None:
        """Count the members of a fill; negative counts give them back."""

    def take_on(self, part: Part, column: int, count: int) -> None:
        """The same for one column."""

    def state(self, column: int) -> Hashable:
        """Columns with equal states take the same from now on; what the exact search remembers."""

    def copy(self) -> Limit:
        """The same limit, to try something with."""

    def concerns(self, part: Part) -> bool:
        """Whether the rule says anything about members of this part."""


class Resources:
    """The limit of resources: what is free on each node, and what each member asks for (rules R6, R7)."""

    reason: Final = "has too little room"

    def __init__(self, view: View, free: dict[str, Amounts] | None = None) -> None:
        self._view = view
        self._free: dict[str, Amounts] = {} if free is None else free

    def free(self, resource: str) -> Amounts:
        """What is left of a resource in each column."""
        known = self._free.get(resource)
        if known is None:
            known = self._free[resource] = self._view.free(resource)
        return known

    def slots(self, part: Part) -> Amounts:
        """The smallest quotient of what is free and what is asked for, over the resources."""
        slots: Amounts | None = None
        for resource, amount in part.kind.shape.requests:
            fits = self.free(resource) // amount
            slots = fits if slots is None else np.minimum(slots, fits, out=slots)
        if slots is None:
            return np.full(self._view.width, UNLIMITED, dtype=np.int64)
        # An over-committed node has less than nothing free, but takes no members away from others.
        return np.maximum(slots, 0, out=slots)

    def slots_on(self, part: Part, column: int) -> int:
        """The same for one column."""
        requests = part.kind.shape.requests
        fits = min((int(self.free(name)[column]) // amount for name, amount in requests), default=UNLIMITED)
        return max(0, fits)

    def take(self, part: Part, fill: Fill) -> None:
        """Count the members of a fill."""
        columns, counts = fill
        for resource, amount in part.kind.shape.requests:
            self.free(resource)[columns] -= amount * counts

    def take_on(self, part: Part, column: int, count: int) -> None:
        """The same for one column."""
        for resource, amount in part.kind.shape.requests:
            self.free(resource)[column] -= amount * count

    def state(self, column: int) -> Hashable:
        """What is left there of the resources in use."""
        return tuple(int(amounts[column]) for amounts in self._free.values())

    def copy(self) -> Resources:
        """The same amounts, apart from this object."""
        return Resources(self._view, {name: amounts.copy() for name, amounts in self._free.items()})

    def concerns(self, part: Part) -> bool:
        """Every pod takes at least its pod slot."""
        return True


class AntiAffinity:
    """The required anti-affinity of pods that are placed, which closes whole topology domains (rule IA4)."""

    reason: Final = "is closed by the anti-affinity of pods there"

    def __init__(self, view: View) -> None:
        self._view = view
        self._open: dict[PodKind, Mask | None] = {}

    def _open_for(self, part: Part) -> Mask | None:
        if part.kind not in self._open:
            closed = self._view.closed_by(part.kind)
            self._open[part.kind] = None if closed is None else ~closed
        return self._open[part.kind]

    def slots(self, part: Part) -> Amounts:
        """None on a closed node, as many as one likes elsewhere."""
        mask = self._open_for(part)
        if mask is None:
            return np.full(self._view.width, UNLIMITED, dtype=np.int64)
        return np.where(mask, np.int64(UNLIMITED), np.int64(0))

    def slots_on(self, part: Part, column: int) -> int:
        """The same for one column."""
        mask = self._open_for(part)
        return UNLIMITED if mask is None or mask[column] else 0

    def take(self, part: Part, fill: Fill) -> None:
        """Members with anti-affinity of their own are refused by name so far: nothing changes."""

    def take_on(self, part: Part, column: int, count: int) -> None:
        """Nothing changes, as with `take`."""

    def state(self, column: int) -> Hashable:
        """For which kinds the column is open; it never changes during a plan."""
        return tuple(mask is None or bool(mask[column]) for mask in self._open.values())

    def copy(self) -> AntiAffinity:
        """It never changes: the same object serves."""
        return self

    def concerns(self, part: Part) -> bool:
        """Whether placed pods close a node for it."""
        return self._open_for(part) is not None


class Room:
    """All limits of a plan together, as a working copy that a plan can take from."""

    def __init__(self, resources: Resources, others: Sequence[Limit]) -> None:
        #: The limit of resources, whose numbers a refusal tells.
        self.resources = resources
        self.others = tuple(others)
        self.limits: tuple[Limit, ...] = (resources, *others)

    @classmethod
    def of(cls, view: View) -> Room:
        """Every rule that there is. A new rule is one more entry here."""
        return cls(Resources(view), (AntiAffinity(view),))

    def slots(self, part: Part) -> Amounts:
        """How many members of the part each column takes, over all limits and eligible nodes."""
        slots = np.where(part.eligible.mask, np.int64(UNLIMITED), np.int64(0))
        for limit in self.limits:
            if limit.concerns(part):
                np.minimum(slots, limit.slots(part), out=slots)
        return slots

    def slots_on(self, part: Part, column: int) -> int:
        """The same for one column."""
        if not part.eligible.mask[column]:
            return 0
        return min(limit.slots_on(part, column) for limit in self.limits)

    def take(self, part: Part, fill: Fill) -> None:
        """Count the members of a fill; negative counts give them back."""
        for limit in self.limits:
            limit.take(part, fill)

    def take_on(self, part: Part, column: int, count: int) -> None:
        """The same for one column."""
        for limit in self.limits:
            limit.take_on(part, column, count)

    def state(self, column: int) -> Hashable:
        """Columns with equal states take the same from now on."""
        return tuple(limit.state(column) for limit in self.limits)

    def copy(self) -> Room:
        """The same room, to try something in."""
        return Room(self.resources.copy(), [limit.copy() for limit in self.others])
