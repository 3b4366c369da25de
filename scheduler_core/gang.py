"""What goes into a match and what comes out when it succeeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler_core.kinds import PodKind


class Member(NamedTuple):
    """One pod that waits."""

    uid: str
    kind: PodKind


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
    counted: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """Which node each placed member goes to, by pod uid. Members that are not in it go on waiting.

    `node_uids` are the uids of the nodes in use, by name: a node that is made anew under its name is another.
    """

    key: str
    nodes: Mapping[str, str]
    kinds: Mapping[str, PodKind]
    node_uids: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.nodes)
