"""What the controller knows: pods by group, PodGroups, and which groups an owner's change concerns.

Owns: turning each change into keys of groups and pods to reconcile, and assembling the whole state of one
group. Does not own: what is done about it. All of this is rebuilt from lists at start. The cost of a change
does not depend on how many pods there are.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Iterator
from typing import Final

from controller import metrics
from controller.adoption import needs_labels
from controller.links import Links
from controller.lookup import OwnerLookup
from controller.members import GroupState, Member
from controller.owners import Owner
from controller.pods import Pod
from controller.runs import is_pod
from groups.contract import RUN_ANNOTATION, Phase
from groups.membership import group_key_of
from groups.objects import Key, OwnerReference, split_key
from groups.podgroup import PodGroup
from groups.workloads.rules import Rules
from kube.reflector import Reflector

#: Counts change in bursts, when a gang is bound, runs, ends: one reconcile for many changes. A group that is
#: still to be made is reconciled without delay.
REFRESH_S: Final = 0.25
#: A write of ours that the watch has not shown by then is forgotten: the object may be gone again.
_TRUST_WRITES_S: Final = 30.0

#: Called with a group that is to be reconciled, and in how many seconds.
OnGroup = Callable[[Key, float], None]


class GroupCache:
    """Everything that decides about groups, kept true by reflectors."""

    def __init__(
        self,
        scheduler_name: str,
        rules: Rules,
        *,
        pods: Reflector[Pod],
        groups: Reflector[PodGroup],
        lookup: OwnerLookup,
        on_group: OnGroup,
        on_pod: Callable[[Key], None],
        utc_now: Callable[[], dt.datetime],
    ) -> None:
        self._scheduler_name = scheduler_name
        self._rules = rules
        self._pods = pods.items
        self._groups = groups.items
        self._lookup = lookup
        self._on_group = on_group
        self._on_pod = on_pod
        self._utc_now = utc_now
        self._labelled: dict[Key, dict[Key, Pod]] = {}
        self._unlabelled: set[Key] = set()
        self._joined: dict[Key, dt.datetime] = {}
        self._links = Links()
        self._written: dict[Key, PodGroup] = {}
        pods.subscribe(self._pod_changed)
        groups.subscribe(self._group_changed)

    def group_keys(self) -> list[Key]:
        """Every group that has a pod or a PodGroup."""
        return list({**self._labelled, **self._groups})

    def unlabelled(self) -> list[Key]:
        """Every pod of ours that still needs a group."""
        return list(self._unlabelled)

    def pod(self, key: Key) -> Pod | None:
        """A pod, if it is there and ours."""
        found = self._pods.get(key)
        return found if found is not None and self._is_ours(found) else None

    def group(self, key: Key) -> PodGroup | None:
        """The PodGroup as we know it: what we wrote last, until the watch has shown it."""
        return self._written.get(key) or self._groups.get(key)

    def remember(self, group: PodGroup) -> None:
        """Keep the answer to a write of ours until the watch shows it."""
        key = group.metadata.key
        if _is_seen(self._groups.get(key), group):
            return
        self._written[key] = group
        asyncio.get_running_loop().call_later(_TRUST_WRITES_S, self._doubt, key, group)

    def _doubt(self, key: Key, group: PodGroup) -> None:
        if self._written.get(key) is group:
            del self._written[key]
            self._on_group(key, 0.0)

    def forget(self, key: Key) -> None:
        """What we wrote last is not true any more."""
        self._written.pop(key, None)

    async def owner_of(self, pod: Pod) -> Owner | None:
        """The object behind a pod, None for a bare one."""
        reference = pod.metadata.controller
        if reference is None:
            return None
        return await self._lookup.find(pod.metadata.namespace, reference)

    async def state(self, key: Key) -> GroupState:
        """The whole state of one group, all of it read at the same moment.

        Owners may have to be asked for; whatever changes meanwhile is part of what is returned.
        """
        namespace, _ = split_key(key)
        found: dict[str, Owner] = {}
        while missing := {ref.uid: ref for ref in self._references(key) if ref.uid not in found}:
            for uid, reference in missing.items():
                found[uid] = await self._lookup.find(namespace, reference)
        group = self.group(key)
        references = group.metadata.owner_references or () if group is not None else ()
        return GroupState(
            key,
            group,
            labelled=tuple(_member(pod, found) for pod in self._labelled.get(key, {}).values()),
            owners={ref.uid: found[ref.uid] for ref in references if ref.uid in found},
            joined=self._joined.get(key),
            had_members=key in self._joined,
        )

    def _references(self, key: Key) -> Iterator[OwnerReference]:
        for pod in self._labelled.get(key, {}).values():
            if (reference := pod.metadata.controller) is not None:
                yield reference
        if (group := self.group(key)) is not None:
            # A pod that owns its group has its label, or is deleted.
            yield from (ref for ref in group.metadata.owner_references or () if not is_pod(ref))

    def owner_changed(self, uid: str) -> None:
        """Reconcile the groups whose pods an object controls or that it owns."""
        for key in self._links.of(uid):
            self._on_group(key, REFRESH_S)

    def _is_ours(self, pod: Pod) -> bool:
        return pod.scheduler_name == self._scheduler_name

    def _group_of(self, pod: Pod | None) -> Key | None:
        return group_key_of(pod, self._scheduler_name) if pod is not None else None

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        self._note_unlabelled(old, new)
        before, after = self._group_of(old), self._group_of(new)
        if old is not None and before is not None:
            self._leave(before, old, moved=before != after)
        if new is not None and after is not None:
            self._join(after, new, moved=before != after)
        if before == after and old is not None and new is not None and _plan_inputs(old) == _plan_inputs(new):
            return
        for key in {before, after}:
            if key is not None:
                self._on_group(key, REFRESH_S if self.group(key) is not None else 0.0)

    def _note_unlabelled(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and self._is_ours(new) and needs_labels(new, self._rules):
            self._unlabelled.add(new.metadata.key)
            self._on_pod(new.metadata.key)
        elif old is not None and self._unlabelled:
            self._unlabelled.discard(old.metadata.key)

    def _join(self, key: Key, pod: Pod, *, moved: bool) -> None:
        self._labelled.setdefault(key, {})[pod.metadata.key] = pod
        self._links.add(_owner_uid(pod), key)
        if moved:
            self._joined[key] = self._utc_now()

    def _leave(self, key: Key, pod: Pod, *, moved: bool) -> None:
        self._links.remove(_owner_uid(pod), key)
        if moved:
            members = self._labelled.get(key, {})
            members.pop(pod.metadata.key, None)
            if not members:
                self._labelled.pop(key, None)
                self._clean_up(key)

    def _clean_up(self, key: Key) -> None:
        """Keep no memory of a group that has neither pods nor a PodGroup (case C63)."""
        if key not in self._labelled and self.group(key) is None:
            self._joined.pop(key, None)

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        _count_phases(old, new)
        for group, change in ((old, self._links.remove), (new, self._links.add)):
            for reference in group.metadata.owner_references or () if group is not None else ():
                change(reference.uid, group.metadata.key)  # type: ignore[union-attr]
        key = (new or old).metadata.key  # type: ignore[union-attr]  # one of them is there
        written = self._written.get(key)
        if written is not None and (new is None or _is_seen(new, written)):
            del self._written[key]
            if new is not None and new.metadata.resource_version == written.metadata.resource_version:
                # Our own write comes back: what it left to do was known when it was made.
                return
        if new is None:
            self._clean_up(key)
            self._on_group(key, 0.0)
        elif old is None or _group_plan_inputs(old) != _group_plan_inputs(new):
            self._on_group(key, REFRESH_S)


def _member(pod: Pod, owners: dict[str, Owner]) -> Member:
    uid = _owner_uid(pod)
    return Member(pod, owners.get(uid) if uid else None)


def _owner_uid(pod: Pod) -> str:
    owner = pod.metadata.controller
    return owner.uid if owner is not None else ""


def _plan_inputs(pod: Pod) -> tuple[object, ...]:
    """What of a pod can change a plan; the many other changes in its life cannot."""
    meta = pod.metadata
    run = meta.annotation(RUN_ANNOTATION)
    return (meta.uid, meta.labels, run, pod.node_name, pod.phase, pod.is_deleting, meta.controller)


def _group_plan_inputs(group: PodGroup) -> tuple[object, ...]:
    """What of a PodGroup can change a plan; the scheduler's conditions cannot."""
    meta, status = group.metadata, group.status
    counts = (status.phase, status.occupied_by, status.running, status.succeeded, status.failed)
    times = (status.creation_time, status.schedule_start_time)
    return (
        meta.uid,
        meta.deletion_timestamp,
        meta.annotations,
        meta.owner_references,
        group.spec,
        counts,
        times,
    )


def _is_seen(shown: PodGroup | None, written: PodGroup) -> bool:
    """Whether the watch has come as far as a write of ours."""
    if shown is None:
        return False
    if shown.metadata.uid != written.metadata.uid:
        return True
    try:
        return int(shown.metadata.resource_version) >= int(written.metadata.resource_version)
    except ValueError:
        return True


def _count_phases(old: PodGroup | None, new: PodGroup | None) -> None:
    if old is not None:
        metrics.POD_GROUPS.labels(old.status.phase or Phase.UNKNOWN).dec()
    if new is not None:
        metrics.POD_GROUPS.labels(new.status.phase or Phase.UNKNOWN).inc()
