"""The whole state of one group, as it is read before anything is decided about it: pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from controller.owners import Owner
from controller.pods import Pod
from groups.membership import is_member
from groups.objects import Key, split_key
from groups.podgroup import PodGroup


@dataclass(frozen=True)
class Member:
    """A pod with the group's label, and the object behind it (None for a bare pod)."""

    pod: Pod
    owner: Owner | None = None

    @property
    def is_live(self) -> bool:
        """Whether it waits or runs and will not be deleted: pods of a deleted owner are collected."""
        if self.pod.is_finished or self.pod.is_deleting:
            return False
        return self.owner is None or not self.owner.is_deleted


@dataclass(frozen=True)
class GroupState:
    """A group with all that decides about it.

    `labelled` are all pods with the group's label, of this run or of an earlier one. `owners` are those that
    the PodGroup itself names, by the uid in its references, since its pods may be gone already. `joined` is
    when the latest pod was seen. `had_members` says that pods of ours had the label at some time.
    """

    key: Key
    group: PodGroup | None = None
    labelled: tuple[Member, ...] = ()
    owners: Mapping[str, Owner] = field(default_factory=dict)
    joined: dt.datetime | None = None
    had_members: bool = False

    def with_group(self, group: PodGroup) -> GroupState:
        """The same state with this PodGroup, which was just written, and with its owners as far as known."""
        known = {one.owner.uid: one.owner for one in self.labelled if one.owner is not None} | dict(
            self.owners
        )
        named = {one.uid for one in group.metadata.owner_references or ()}
        owners = {uid: owner for uid, owner in known.items() if uid in named}
        return replace(self, group=group, owners=owners)

    @property
    def name(self) -> str:
        """The group's name, without its namespace."""
        return split_key(self.key)[1]

    @property
    def run_uid(self) -> str:
        """The uid of the PodGroup, empty where there is none."""
        return self.group.metadata.uid if self.group is not None else ""

    @cached_property
    def owner_uids(self) -> frozenset[str]:
        """The objects whose pods belong to this run: those that the PodGroup names, and what they control."""
        references = (self.group.metadata.owner_references or ()) if self.group is not None else ()
        named = {one.uid for one in references}
        between = {
            controller.uid
            for one in self.labelled
            if one.owner is not None and not one.owner.is_deleted and one.owner.uid in named
            if (controller := one.pod.metadata.controller) is not None
        }
        return frozenset(named | between)

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """The pods that count for this run (`groups.membership`)."""
        references = (self.group.metadata.owner_references or ()) if self.group is not None else ()
        return tuple(
            one for one in self.labelled if is_member(one.pod, self.run_uid, self.owner_uids, references)
        )

    @property
    def all_owners(self) -> tuple[Owner, ...]:
        """Owners of the members and of the group, each once."""
        found = {owner.uid: owner for owner in self.owners.values()}
        found |= {one.owner.uid: one.owner for one in self.members if one.owner is not None}
        return tuple(found.values())


@dataclass(frozen=True)
class Counts:
    """How many members there are, by phase; always counted anew (case C46)."""

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
        if one.pod.phase in by_phase:
            by_phase[one.pod.phase] += 1
    return Counts(total, by_phase["Running"], by_phase["Succeeded"], by_phase["Failed"])
