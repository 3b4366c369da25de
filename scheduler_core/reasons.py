"""Why a gang is not placed: the numbers, and the one place that makes a sentence of them."""

from __future__ import annotations

from dataclasses import dataclass

from fluence.contract import Why
from scheduler_core.constraints import Requests


@dataclass(frozen=True, slots=True)
class Lack:
    """A resource that is short: what each member asks, and what the eligible nodes have."""

    resource: str
    asks: int
    free: int
    room: int
    nodes_without: int


@dataclass(frozen=True, slots=True)
class ShapeReport:
    """The numbers of one shape: its members, the nodes it may use, and how many fit there alone."""

    members: int
    requests: Requests
    eligible_nodes: int
    room: int
    lacks: tuple[Lack, ...] = ()
    excluded: tuple[tuple[str, int], ...] = ()
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing of the gang is placed now. `room` is how many of its members would fit together.

    `proven` is False where the search for a mixed gang ended at its step budget.
    """

    key: str
    why: Why
    needed: int
    members: int
    room: int
    nodes: int
    shapes: tuple[ShapeReport, ...] = ()
    counted: int = 0
    proven: bool = True

    @property
    def message(self) -> str:
        """The sentence for condition, event and log: at most 1024 bytes, equal for equal numbers."""
        return sentence(self)


def sentence(refusal: Refusal) -> str:
    """Begin with the head that people grep for (rule F3), then needed, room and the lacking resources."""
    raise NotImplementedError
