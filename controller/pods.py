"""The record of a pod that the controller keeps: what somebody reads, and each repeated value once.

Owns: which labels and annotations are kept. Does not own: what they mean. A cluster may have 100,000 pods of
ours, most of them in gangs whose members share labels and owner.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from controller.objects import WirePod
from groups.contract import GROUP_LABEL, RUN_ANNOTATION, SIZE_FROM_ANNOTATION, SIZE_LABEL
from groups.objects import ObjectMeta, OwnerReference
from groups.workloads.rules import Rules

#: What is read of every pod.
_LABELS: Final = frozenset({GROUP_LABEL, SIZE_LABEL})
_ANNOTATIONS: Final = frozenset({RUN_ANNOTATION, SIZE_FROM_ANNOTATION})
#: So many shared values are remembered; the table then starts anew, and later pods share new copies.
_MOST_SHARED: Final = 20_000


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod, as far as its group is concerned (meets `groups.membership.MemberPod`)."""

    metadata: ObjectMeta
    scheduler_name: str = ""
    node_name: str = ""
    phase: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether its phase is Succeeded or Failed."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def is_deleting(self) -> bool:
        """Whether somebody has deleted it; it may still run for a while."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_bound(self) -> bool:
        """Whether it has a node and has not finished."""
        return bool(self.node_name) and not self.is_finished

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a node."""
        return not self.node_name and not self.is_finished and not self.is_deleting


class PodReader:
    """Makes the record of a pod from what the API server sends."""

    def __init__(self, rules: Rules) -> None:
        self._keys = frozenset(_keys_of(rules))
        self._maps: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self._owners: dict[str, tuple[OwnerReference, ...]] = {}

    def __call__(self, wire: WirePod) -> Pod:
        """The record of `wire`."""
        meta = wire.metadata
        # A pod with a group of ours is never labelled anew, so that nothing else of it is read.
        more = frozenset[str]() if meta.label(GROUP_LABEL) else self._keys
        return Pod(
            ObjectMeta(
                name=meta.name,
                namespace=sys.intern(meta.namespace),
                uid=meta.uid,
                resource_version=meta.resource_version,
                labels=self._kept(meta.labels, _LABELS | more),
                annotations=self._kept(meta.annotations, _ANNOTATIONS | more),
                owner_references=self._owner(meta.controller),
                creation_timestamp=sys.intern(meta.creation_timestamp),
                deletion_timestamp=meta.deletion_timestamp,
            ),
            sys.intern(wire.spec.scheduler_name),
            sys.intern(wire.spec.node_name),
            sys.intern(wire.status.phase),
        )

    def _kept(self, found: Mapping[str, str] | None, keys: frozenset[str]) -> dict[str, str] | None:
        kept = tuple((sys.intern(key), value) for key, value in (found or {}).items() if key in keys)
        if not kept:
            return None
        if len(self._maps) >= _MOST_SHARED:
            self._maps.clear()
        shared = self._maps.get(kept)
        if shared is None:
            shared = self._maps[kept] = dict(kept)
        return shared

    def _owner(self, owner: OwnerReference | None) -> tuple[OwnerReference, ...] | None:
        if owner is None:
            return None
        if len(self._owners) >= _MOST_SHARED:
            self._owners.clear()
        shared = self._owners.get(owner.uid)
        if shared is None or shared[0] != owner:
            shared = self._owners[owner.uid] = (owner,)
        return shared


def _keys_of(rules: Rules) -> Iterator[str]:
    """The labels and annotations by which a pod without a group gets one (rule A8)."""
    for rule in rules.all:
        yield from (*rule.leave_alone.labels, *rule.leave_alone.annotations)
        for link in rule.belongs_to:
            yield from _given(link.name_label, link.cut_label)
        for team in rule.teams:
            yield from (team.name_label, team.number_label, team.size_annotation)
    for older in rules.older:
        yield from _given(older.group, older.size)


def _given(*keys: str | None) -> Iterable[str]:
    return (key for key in keys if key is not None)
