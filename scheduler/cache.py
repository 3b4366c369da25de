"""What the scheduler knows: pods by gang, PodGroups, and the ledger of nodes; fed by reflectors alone.

Owns: turning each change into the ledger and into keys of gangs worth another look. Does not own: what is
done about them, or any write. Truth stays in the API server: all of this is rebuilt from lists at start.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec
import structlog

from groups.errors import FluenceError
from groups.membership import group_key_of
from groups.objects import Key, key_of
from groups.podgroup import PodGroup
from kube.reflector import Reflector
from scheduler.claims import ClaimUsers
from scheduler.decode import node_of
from scheduler.gangs import GangState, examine
from scheduler.objects import Node, PersistentVolume, VolumeClaim
from scheduler.pods import CachedPod
from scheduler.volumes import unsupported_volumes
from scheduler_core.constraints import shape
from scheduler_core.gang import Gang, Member, Placement
from scheduler_core.kinds import PodKind, pod_kind
from scheduler_core.ledger import Ledger
from scheduler_core.placed import Placed, State

log = structlog.get_logger(__name__)


class Listener(Protocol):
    """What is to be done when the cache has changed. None of it may wait."""

    def gang_changed(self, key: Key) -> None:
        """A member or the PodGroup of a gang changed."""

    def gang_gone(self, key: Key) -> None:
        """The last pod of a gang has gone."""

    def room_grew(self) -> None:
        """A node may have more room, or admit more pods, than before."""

    def pod_observed(self, uid: str) -> None:
        """A pod whose binding was under way is bound, has ended or has gone."""


class ClusterCache:
    """Pods by gang, PodGroups, and the ledger. Set `listener` while somebody decides."""

    def __init__(
        self,
        scheduler_name: str,
        *,
        pods: Reflector[CachedPod],
        nodes: Reflector[Node],
        groups: Reflector[PodGroup],
        claims: Reflector[VolumeClaim],
        volumes: Reflector[PersistentVolume],
    ) -> None:
        self.ledger = Ledger()
        self.listener: Listener | None = None
        self._scheduler_name = scheduler_name
        self._members: dict[Key, dict[str, CachedPod]] = {}
        self._groups: Mapping[Key, PodGroup] = groups.items
        self._claims = claims.items
        self._volumes = volumes.items
        self._claim_users = ClaimUsers()
        self._assumed: set[str] = set()
        self._room_version = 0
        pods.subscribe(self._pod_changed)
        nodes.subscribe(self._node_changed)
        groups.subscribe(self._group_changed)
        claims.subscribe(self._claim_changed)
        volumes.subscribe(self._volume_changed)

    def gang_keys(self) -> list[Key]:
        """Every gang that has at least one pod."""
        return list(self._members)

    def members(self, key: Key) -> Iterable[CachedPod]:
        """The pods that carry the label of a group, of whatever run."""
        return self._members.get(key, {}).values()

    def group(self, key: Key) -> PodGroup | None:
        """The PodGroup of a gang."""
        return self._groups.get(key)

    def state(self, key: Key) -> GangState:
        """Where a gang stands now."""
        return examine(key, self._groups.get(key), self.members(key), self._assumed.__contains__)

    def node_is_open(self, name: str, uid: str = "") -> bool:
        """Whether this very node may still be bound to (rule T7)."""
        return self.ledger.is_open(name, uid)

    def run_is_current(self, key: Key, run_uid: str) -> bool:
        """Whether the PodGroup of a gang still is the one with this uid, and is not being deleted."""
        group = self._groups.get(key)
        return (
            group is not None and group.metadata.uid == run_uid and group.metadata.deletion_timestamp is None
        )

    def gang(self, state: GangState) -> Gang:
        """The gang as the matching core wants it; FluenceError for a member that cannot be read."""
        members = []
        for pod in state.candidates:
            if pod.kind is None:
                raise FluenceError(f"the requests of pod {pod.metadata.key} cannot be read: {pod.unreadable}")
            members.append(Member(pod.metadata.uid, self._kind(pod, pod.kind)))
        return Gang(state.key, members, needed=state.needed, counted=len(state.settled))

    def _kind(self, pod: CachedPod, kind: PodKind) -> PodKind:
        """The pod's kind with the rules that its volumes carry."""
        if not pod.volumes:
            return kind
        unsupported = unsupported_volumes(pod, self._claims, self._volumes)
        if not unsupported:
            return kind
        same = kind.shape
        odd = shape(same.requests, same.constraints, (*same.unsupported, *unsupported))
        return pod_kind(kind.namespace, dict(kind.labels), odd, kind.repulsions)

    # Decisions that the API server does not show yet

    def assume(self, placement: Placement) -> None:
        """Count a decision before the API server shows it. Undo: `forget` for each pod."""
        self.ledger.assume(placement)
        self._assumed.update(placement.nodes)

    def forget(self, uid: str) -> None:
        """Give back what was assumed for a pod that certainly was not bound."""
        self._assumed.discard(uid)
        self.ledger.forget(uid)
        self._note_room()

    def forget_all(self) -> None:
        """Give up every decision and every hold: somebody else may have decided meanwhile.

        What was really bound is counted as soon as the watch shows it. Call this only when the caches have
        caught up with what the calls of an earlier term did.
        """
        for uid in list(self._assumed):
            self.forget(uid)
        for key in self.ledger.holding_gangs():
            self.ledger.release(key)
        self._note_room()

    # What the reflectors show

    def _pod_changed(self, old: CachedPod | None, new: CachedPod | None) -> None:
        self._count(old, new)
        before = group_key_of(old, self._scheduler_name) if old is not None else None
        after = group_key_of(new, self._scheduler_name) if new is not None else None
        if old is not None and before is not None:
            self._leave(before, old, moved=before != after)
        if new is not None and after is not None:
            self._members.setdefault(after, {})[new.metadata.uid] = new
            if not new.node_name:
                self._claim_users.add(after, new)
        if old is not None and new is not None and _is_only_our_condition(old, new):
            self._note_room()
            return
        for key in dict.fromkeys((before, after)):
            if key is not None and self.listener is not None:
                if key in self._members:
                    self.listener.gang_changed(key)
                else:
                    self.listener.gang_gone(key)
        self._note_room()

    def _leave(self, key: Key, pod: CachedPod, *, moved: bool) -> None:
        if not pod.node_name:
            self._claim_users.remove(key, pod)
        if moved:
            members = self._members.get(key, {})
            members.pop(pod.metadata.uid, None)
            if not members:
                self._members.pop(key, None)
                self.ledger.release(key)

    def _count(self, old: CachedPod | None, new: CachedPod | None) -> None:
        """Keep the ledger true: every pod on a node that has not ended counts (rules S5, R13)."""
        if new is None:
            if old is not None:
                self._observed(old.metadata.uid)
                self.ledger.remove(old.metadata.uid)
            return
        uid, node = new.metadata.uid, self._usage_node(new)
        if node and not new.is_finished:
            self._observed(uid)
            self._put(uid, node, new)
        elif new.is_finished or (old is not None and self._usage_node(old)):
            self._observed(uid)
            self.ledger.remove(uid)

    def _observed(self, uid: str) -> None:
        if uid in self._assumed:
            self._assumed.discard(uid)
            if self.listener is not None:
                self.listener.pod_observed(uid)

    def _usage_node(self, pod: CachedPod) -> str:
        if pod.node_name:
            return pod.node_name
        # Room that another scheduler has made by preemption is taken (rule M2).
        foreign = pod.scheduler_name != self._scheduler_name
        return pod.nominated_node_name if foreign else ""

    def _put(self, uid: str, node: str, pod: CachedPod) -> None:
        before = self.ledger.placed(uid)
        if before is None or before.node != node:
            self._touch_holders(node)
        if pod.kind is None:
            log.error(
                "the requests of a pod cannot be read: its node takes no more pods",
                pod=pod.metadata.key,
                node=node,
                error=pod.unreadable,
            )
            self.ledger.put_unreadable(uid, node, pod.metadata.key)
            return
        # Members share one text.
        gang = sys.intern(group_key_of(pod, self._scheduler_name) or "")
        self.ledger.put(uid, Placed(pod.kind, node, gang, pod.priority, pod.started, State.SEEN))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        found = new or old
        assert found is not None
        if new is None:
            self.ledger.remove_node(found.metadata.name)
        else:
            try:
                self.ledger.upsert_node(node_of(new))
            except (FluenceError, ValueError) as error:
                log.error(
                    "node left out: its capacity cannot be read", node=new.metadata.name, error=str(error)
                )
                self.ledger.remove_node(new.metadata.name)
        self._touch_holders(found.metadata.name)
        self._note_room()

    def _touch_holders(self, node: str) -> None:
        """The room that is held on this node may not be there any more."""
        if self.listener is not None:
            for gang in self.ledger.holding_on(node):
                self.listener.gang_changed(Key(gang))

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        if old is not None and new is not None and _of_interest(old) == _of_interest(new):
            # Phases and counts change all the time and decide nothing here.
            return
        found = new or old
        assert found is not None
        key = found.metadata.key
        if key in self._members and self.listener is not None:
            self.listener.gang_changed(key)

    def _claim_changed(self, old: VolumeClaim | None, new: VolumeClaim | None) -> None:
        found = new or old
        assert found is not None
        self._claim_touched(found.metadata.key)

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        found = new or old
        assert found is not None
        if (claim := found.spec.claim_ref) is not None:
            self._claim_touched(key_of(claim.namespace, claim.name))

    def _claim_touched(self, claim: Key) -> None:
        if self.listener is not None:
            for key in self._claim_users.of(claim):
                self.listener.gang_changed(key)

    def _note_room(self) -> None:
        if self.ledger.room_version != self._room_version:
            self._room_version = self.ledger.room_version
            if self.listener is not None:
                self.listener.room_grew()


def _is_only_our_condition(old: CachedPod, new: CachedPod) -> bool:
    """Whether the pod changed in its condition PodScheduled alone, which is what we write ourselves.

    Without this a refused gang would be looked at again for each of its pods, because it was refused.
    """
    if old.scheduled == new.scheduled:
        return False
    meta = msgspec.structs.replace(old.metadata, resource_version=new.metadata.resource_version)
    return msgspec.structs.replace(old, metadata=meta, scheduled=new.scheduled) == new


def _of_interest(group: PodGroup) -> tuple[object, ...]:
    meta = group.metadata
    # The stamp decides about the order of the queue.
    stamp = group.status.creation_time
    return (meta.uid, meta.deletion_timestamp, meta.owner_references, meta.annotations, group.spec, stamp)
