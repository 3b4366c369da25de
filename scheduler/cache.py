"""What the scheduler knows: pods by gang, PodGroups, and the ledger of nodes; fed by reflectors alone.

Owns: turning each change into the ledger and into keys of gangs worth another look. Does not own: what is
done about them, or any write. Truth stays in the API server: all of this is rebuilt from lists at start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from groups.errors import FluenceError
from groups.objects import Key
from groups.podgroup import PodGroup
from kube.reflector import Reflector
from scheduler.decode import constraints_of, node_of, repulsions_of, requests_of, unsupported_rules
from scheduler.objects import Node, PersistentVolume, Pod, VolumeClaim
from scheduler.standing import Standing, examine, group_of
from scheduler.volumes import unsupported_volumes
from scheduler_core.constraints import Shape, shape
from scheduler_core.gang import Gang, Member, Placement
from scheduler_core.kinds import pod_kind
from scheduler_core.ledger import Ledger
from scheduler_core.placed import Placed

log = structlog.get_logger(__name__)


class ClusterCache:
    """Pods by gang, PodGroups, and the ledger. `on_dirty` hears of gangs whose standing may have changed."""

    def __init__(
        self,
        scheduler_name: str,
        *,
        pods: Reflector[Pod],
        nodes: Reflector[Node],
        groups: Reflector[PodGroup],
        claims: Reflector[VolumeClaim],
        volumes: Reflector[PersistentVolume],
        on_dirty: Callable[[Key], None],
        on_room: Callable[[], None],
    ) -> None:
        self.ledger = Ledger()
        self._scheduler_name = scheduler_name
        self._members: dict[Key, dict[str, Pod]] = {}
        self._assumed: dict[str, str] = {}
        self._groups: Mapping[Key, PodGroup] = groups.items
        self._claims = claims.items
        self._volumes = volumes.items
        self._on_dirty = on_dirty
        self._on_room = on_room
        self._seen_gains = 0
        pods.subscribe(self._pod_changed)
        nodes.subscribe(self._node_changed)
        groups.subscribe(self._group_changed)
        claims.subscribe(self._volume_changed)
        volumes.subscribe(self._volume_changed)

    def gang_keys(self) -> list[Key]:
        """Every gang that has at least one pod."""
        return list(self._members)

    def group(self, key: Key) -> PodGroup | None:
        """The PodGroup of a gang."""
        return self._groups.get(key)

    def standing(self, key: Key) -> Standing:
        """Where a gang stands now."""
        members = self._members.get(key, {})
        return examine(key, self._groups.get(key), members.values(), self._assumed)

    def is_binding(self, key: Key) -> bool:
        """Whether a member's binding has not been seen in the API yet."""
        return any(uid in self._assumed for uid in self._members.get(key, ()))

    def node_is_open(self, name: str) -> bool:
        """Whether a node may still be bound to (rule T7)."""
        return self.ledger.is_open(name)

    def gang(self, standing: Standing) -> Gang:
        """The gang as the matching core wants it."""
        return Gang(
            standing.key,
            [self._member(pod) for pod in standing.candidates],
            needed=standing.needed,
            counted=standing.settled,
        )

    def _member(self, pod: Pod) -> Member:
        unsupported = unsupported_rules(pod.spec)
        unsupported += unsupported_volumes(pod, self._claims, self._volumes)
        same = shape(requests_of(pod), constraints_of(pod.spec), tuple(unsupported))
        return Member(pod.metadata.uid, pod_kind(pod.metadata.namespace, pod.metadata.labels, same))

    def assume(self, placement: Placement) -> None:
        """Count a decision before the API server knows of it. Undo: `forget` for each pod."""
        self.ledger.assume(placement)
        self._assumed.update(placement.nodes)

    def forget(self, uid: str) -> None:
        """Give back what was assumed for a pod that was not bound after all."""
        self._assumed.pop(uid, None)
        self.ledger.forget(uid)
        self._tell_room()

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        self._count(old, new)
        before = group_of(old, self._scheduler_name) if old is not None else None
        after = group_of(new, self._scheduler_name) if new is not None else None
        if before is not None and old is not None and before != after:
            self._leave(before, old.metadata.uid)
        if after is not None and new is not None:
            self._members.setdefault(after, {})[new.metadata.uid] = new
        for key in {before, after} - {None}:
            self._on_dirty(key)  # type: ignore[arg-type]  # None has been taken out
        self._tell_room()

    def _leave(self, key: Key, uid: str) -> None:
        members = self._members.get(key, {})
        members.pop(uid, None)
        if not members:
            self._members.pop(key, None)

    def _count(self, old: Pod | None, new: Pod | None) -> None:
        """Keep the ledger's usage true: every pod on a node that has not ended counts (rules S5, R13)."""
        if new is None:
            if old is not None:
                self._assumed.pop(old.metadata.uid, None)
                self.ledger.remove(old.metadata.uid)
            return
        uid = new.metadata.uid
        node = self._usage_node(new)
        if node and not new.is_finished:
            if old is not None and self._usage_node(old) == node and _asks_the_same(old, new):
                return
            self._assumed.pop(uid, None)
            self._add_usage(uid, node, new)
        elif new.is_finished or (old is not None and self._usage_node(old)):
            self._assumed.pop(uid, None)
            self.ledger.remove(uid)

    def _usage_node(self, pod: Pod) -> str:
        if pod.spec.node_name:
            return pod.spec.node_name
        # Room that another scheduler has made by preemption is spoken for (rule M2).
        foreign = pod.spec.scheduler_name != self._scheduler_name
        return pod.status.nominated_node_name if foreign else ""

    def _add_usage(self, uid: str, node: str, pod: Pod) -> None:
        try:
            kind = pod_kind(
                pod.metadata.namespace, pod.metadata.labels, Shape(requests_of(pod)), repulsions_of(pod)
            )
            self.ledger.put(uid, Placed(kind, node, priority=pod.spec.priority))
        except (FluenceError, ValueError) as error:
            self.ledger.put_unreadable(uid, node, pod.metadata.key)
            log.error("usage of a pod cannot be counted", pod=pod.metadata.key, error=str(error))

    def _node_changed(self, _old: Node | None, new: Node | None) -> None:
        if new is None:
            assert _old is not None
            self.ledger.remove_node(_old.metadata.name)
        elif _old is None or (_old.spec, _old.status, _old.metadata.labels) != (
            new.spec,
            new.status,
            new.metadata.labels,
        ):
            try:
                self.ledger.upsert_node(node_of(new))
            except (FluenceError, ValueError) as error:
                log.error(
                    "node left out: its capacity cannot be read", node=new.metadata.name, error=str(error)
                )
                self.ledger.remove_node(new.metadata.name)
        self._tell_room()

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        if (
            old is not None
            and new is not None
            and (old.spec, old.metadata.deletion_timestamp)
            == (
                new.spec,
                new.metadata.deletion_timestamp,
            )
        ):
            # Phases and counts change all the time and decide nothing here.
            return
        found = new or old
        assert found is not None
        if found.metadata.key in self._members:
            self._on_dirty(found.metadata.key)

    def _volume_changed(self, _old: object, _new: object) -> None:
        for key, members in self._members.items():
            if any(pod.spec.volumes and not pod.spec.node_name for pod in members.values()):
                self._on_dirty(key)

    def _tell_room(self) -> None:
        if self.ledger.room_version != self._seen_gains:
            self._seen_gains = self.ledger.room_version
            self._on_room()


def _asks_the_same(old: Pod, new: Pod) -> bool:
    """Whether nothing changed that its usage is made of; most changes of a running pod are of that kind."""
    if old.spec != new.spec or old.is_finished != new.is_finished:
        return False
    before, after = old.status, new.status
    return (
        before.container_statuses == after.container_statuses
        and before.init_container_statuses == after.init_container_statuses
        and (before.allocated_resources, before.resources) == (after.allocated_resources, after.resources)
        and old.condition("PodResizePending") == new.condition("PodResizePending")
    )
