"""The whole state of one group, as it is read before anything is decided about it: pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from controller.objects import Pod
from controller.owners import Owner, Prospect
from groups.objects import Key, split_key
from groups.podgroup import PodGroup


@dataclass(frozen=True)
class Member:
    """A pod with the group's label, and the object behind it (None for a bare pod)."""

    pod: Pod
    owner: Owner | None = None

    @property
    def can_start(self) -> bool:
        """Whether it waits or runs and will not be taken away: pods whose owner is gone are collected."""
        if self.pod.is_finished or self.pod.is_going:
            return False
        return self.owner is None or self.owner.prospect is not Prospect.GONE


@dataclass(frozen=True)
class GroupState:
    """A group with all that decides about it.

    `owners` are those that the PodGroup itself names, since its pods may be gone already. `joined` is when
    the latest member was seen. `had_members` says that pods of ours were in the group at some time.
    """

    key: Key
    group: PodGroup | None = None
    members: tuple[Member, ...] = ()
    owners: tuple[Owner, ...] = ()
    joined: dt.datetime | None = None
    had_members: bool = False

    @property
    def name(self) -> str:
        """The group's name, without its namespace."""
        return split_key(self.key)[1]

    @property
    def all_owners(self) -> tuple[Owner, ...]:
        """Owners of the members and of the group, each once."""
        found = {owner.uid: owner for owner in self.owners}
        found |= {one.owner.uid: one.owner for one in self.members if one.owner is not None}
        return tuple(found.values())


@dataclass(frozen=True)
class Counts:
    """How many members there are, by what became of them; always counted anew (case C46)."""

    total: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def done(self) -> int:
        """Members that will never run again."""
        return self.succeeded + self.failed

    @property
    def live(self) -> int:
        """Members that wait, run, or may do so."""
        return self.total - self.done


def count(members: Iterable[Member]) -> Counts:
    """Count the members by their phase."""
    total = 0
    by_phase = {"Running": 0, "Succeeded": 0, "Failed": 0}
    for one in members:
        total += 1
        if one.pod.status.phase in by_phase:
            by_phase[one.pod.status.phase] += 1
    return Counts(total, by_phase["Running"], by_phase["Succeeded"], by_phase["Failed"])
