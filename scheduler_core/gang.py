"""What goes into a match and what comes out when it succeeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from scheduler_core.constraints import Shape

_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})


class Member(NamedTuple):
    """One pod that waits. `labels` matter only where a placed pod repels others (rule IA4)."""

    uid: str
    shape: Shape
    labels: Mapping[str, str] = _NO_LABELS


@dataclass(frozen=True, slots=True)
class Gang:
    """The members of one group that wait for a node.

    `needed` is how many must be placed now or none is: max(0, minMember - already bound, running or
    succeeded), rule A5. `counted` is the number of those already there, for the message alone.
    The order of `members` decides who goes first where not all fit.
    """

    key: str
    members: Sequence[Member]
    needed: int
    namespace: str = ""
    counted: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """Which node each placed member goes to, by pod uid. Members that are not in it go on waiting."""

    key: str
    nodes: Mapping[str, str]
    shapes: Mapping[str, Shape]

    def __len__(self) -> int:
        return len(self.nodes)
