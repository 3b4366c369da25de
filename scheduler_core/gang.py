"""Input of a match, and its result if it succeeds."""

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

    `needed` is how many must be placed now, or none: minMember less the members that are bound, running or
    succeeded, at least 0 (rule A5). `counted` is the number of those members, for the message only.
    If not all fit, earlier `members` come first.
    """

    key: str
    members: Sequence[Member]
    needed: int
    counted: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """The node of each placed member, by pod uid. Members that are not in it continue to wait.

    `node_uids` are the uids of these nodes, by name: a node that is created again under its name is another.
    """

    key: str
    nodes: Mapping[str, str]
    kinds: Mapping[str, PodKind]
    node_uids: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.nodes)
