"""Tell users what happens to their gangs: pod conditions, one condition on the PodGroup, events.

Owns: what is told to whom, and how often. Does not own: the decisions, or the sentences about room
(`scheduler_core.reasons`). All of this stands behind bindings, and a write that changes nothing is not made
(rules F1, E6; cases C116, C117).
"""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import structlog

from groups.contract import GROUP_SCHEDULED_CONDITION, ConditionReason, EventReason, Why
from groups.objects import Condition
from groups.podgroup import PodGroup, pod_groups_of
from groups.times import utc_now
from kube.backoff import persist
from kube.errors import Conflict, KubeError, NotFound
from kube.events import EventRecorder, ObjectReference
from kube.session import Kube
from scheduler import metrics
from scheduler.gangs import GangState
from scheduler.pods import CachedPod
from scheduler_core.reasons import Refusal

log = structlog.get_logger(__name__)

#: New numbers in a sentence are worth one write a minute; a new reason is told at once (case C117).
_REFRESH_S: Final = 60.0
_WORKERS: Final = 4
_DEADLINE_S: Final = 30.0
_REMEMBERED: Final = 50_000


class StatusWriter:
    """Writes conditions in the background; of several for one object only the latest is written."""

    def __init__(self, kube: Kube, my_turn: Callable[[], Awaitable[None]]) -> None:
        self._kube = kube
        self._my_turn = my_turn
        self._pending: dict[str, tuple[str, str, dict[str, Any]]] = {}
        self._told: dict[str, tuple[str, str, float]] = {}
        self._some = asyncio.Event()

    def is_news(self, uid: str, reason: str, message: str) -> bool:
        """Whether this differs from what was last told, or only in its numbers and a minute has passed."""
        told = self._told.get(uid)
        if told is None or told[0] != reason:
            return True
        return told[1] != message and time.monotonic() - told[2] >= _REFRESH_S

    def write(self, uid: str, kind: str, path: str, body: dict[str, Any], reason: str, message: str) -> None:
        """Queue a write and return at once. `kind` is "pod" or "podgroup"."""
        self._told.pop(uid, None)
        self._told[uid] = (reason, message, time.monotonic())
        while len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
        self._pending[uid] = (kind, path, body)
        self._some.set()

    def forget(self, uid: str) -> None:
        """The object is in another state now: whatever waits is untrue, whatever comes next is news."""
        self._told.pop(uid, None)
        self._pending.pop(uid, None)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(_WORKERS):
                group.create_task(self._work(), name=f"conditions {number}")

    async def _work(self) -> None:
        while True:
            while not self._pending:
                self._some.clear()
                await self._some.wait()
            await self._my_turn()
            if not self._pending:
                continue
            uid = next(iter(self._pending))
            await self._send(uid, *self._pending.pop(uid))

    async def _send(self, uid: str, kind: str, path: str, body: dict[str, Any]) -> None:
        try:
            patch = "strategic" if kind == "pod" else "merge"
            await persist(
                lambda: self._kube.patch(path, body, patch),  # type: ignore[arg-type]  # a literal of two
                deadline_s=_DEADLINE_S,
            )
            metrics.STATUS_WRITES.labels(kind, "written").inc()
        except (NotFound, Conflict):
            # It is gone, or has changed since (bound, perhaps): the next look at it decides anew.
            self._told.pop(uid, None)
            metrics.STATUS_WRITES.labels(kind, "gone").inc()
        except KubeError as error:
            # Not told after all: the next look at it tells it again.
            self._told.pop(uid, None)
            metrics.STATUS_WRITES.labels(kind, "failed").inc()
            log.warning("condition not written", path=path, error=str(error))


class Reporter:
    """Turns decisions into conditions and events."""

    def __init__(
        self, writer: StatusWriter, recorder: EventRecorder, utc_now: Callable[[], dt.datetime] = utc_now
    ) -> None:
        self._writer = writer
        self._recorder = recorder
        self._utc_now = utc_now

    def placing(self, pods: Iterable[CachedPod]) -> None:
        """These members are about to be bound: a refusal that still waits to be written is void."""
        for pod in pods:
            self._writer.forget(pod.metadata.uid)

    def bound(self, pod: CachedPod, node: str) -> None:
        """A member is bound: the event that `kubectl describe` shows (rule E5)."""
        self._recorder.record(
            _reference(pod),
            reason=EventReason.SCHEDULED,
            action="Binding",
            note=f"Successfully assigned {pod.metadata.key} to {node}",
        )

    def bind_failed(self, pod: CachedPod, why: str) -> None:
        """A binding did not come about; the gang is tried again."""
        self._recorder.record(
            _reference(pod),
            reason=EventReason.FAILED_SCHEDULING,
            action="Binding",
            note=f"{Why.BIND_FAILED}: {why}",
            kind="Warning",
        )

    def refused(self, standing: GangState, refusal: Refusal, group: PodGroup | None) -> None:
        """The gang is complete and does not fit: say so on every pod and on the group (F1, F2, C116)."""
        message = refusal.message
        for pod in standing.candidates:
            self._unschedulable(pod, message)
            self._recorder.record(
                _reference(pod),
                reason=EventReason.FAILED_SCHEDULING,
                action="Scheduling",
                note=message,
                kind="Warning",
            )
        self._group_condition(group, "False", refusal.why, message)

    def waiting(self, standing: GangState, group: PodGroup | None) -> None:
        """The gang cannot be tried: an event, and no Unschedulable, which would buy nodes in vain (F2)."""
        assert standing.why is not None
        for pod in standing.candidates:
            self._recorder.record(
                _reference(pod), reason=standing.why, action="Scheduling", note=standing.message
            )
        self._group_condition(group, "False", standing.why, standing.message)

    def complete(self, standing: GangState, group: PodGroup | None) -> None:
        """Every member that exists is placed."""
        message = f"{standing.seen} members are placed, {standing.minimum} are needed"
        self._group_condition(group, "True", Why.SCHEDULED, message)

    def scheduler_error(self, standing: GangState, group: PodGroup | None, text: str) -> None:
        """The scheduler failed on a gang: say so on its pods and on the group (F1)."""
        for pod in standing.candidates:
            self._unschedulable(pod, text, ConditionReason.SCHEDULER_ERROR)
        self._group_condition(group, "False", Why.SCHEDULER_ERROR, text)

    def released(self, standing: GangState, pods: Iterable[CachedPod]) -> None:
        """The members of a stranded gang are given back, so that it queues again as a whole (A5b)."""
        message = (
            f"{len(standing.holding)} of {standing.minimum} members had a node and the others found none in "
            f"{standing.timeout_s:.0f} s: these members are deleted, and the group queues again as a whole"
        )
        for pod in pods:
            self._recorder.record(
                _reference(pod), reason=Why.RELEASED, action="Releasing", note=message, kind="Warning"
            )
        self._group_condition(standing.group, "False", Why.RELEASED, message)

    def _unschedulable(
        self, pod: CachedPod, message: str, reason: ConditionReason = ConditionReason.UNSCHEDULABLE
    ) -> None:
        old = pod.scheduled
        same = old is not None and (old.status, old.reason, old.message) == ("False", reason, message)
        if same or not self._writer.is_news(pod.metadata.uid, reason, message):
            return
        condition = self._condition("PodScheduled", "False", reason, message, old)
        meta = pod.metadata
        self._writer.write(
            meta.uid,
            "pod",
            f"/api/v1/namespaces/{meta.namespace}/pods/{meta.name}/status",
            # With the version, a write that was overtaken by a binding is refused instead of undoing it.
            {
                "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
                "status": {"conditions": [condition]},
            },
            reason,
            message,
        )

    def _group_condition(self, group: PodGroup | None, status: str, why: Why, message: str) -> None:
        if group is None:
            return
        others = [c for c in group.status.conditions or () if c.type != GROUP_SCHEDULED_CONDITION]
        old = next((c for c in group.status.conditions or () if c.type == GROUP_SCHEDULED_CONDITION), None)
        same = old is not None and (old.status, old.reason, old.message) == (status, why, message)
        if same or not self._writer.is_news(group.metadata.uid, why, message):
            return
        condition = self._condition(GROUP_SCHEDULED_CONDITION, status, why, message, old)
        meta = group.metadata
        self._writer.write(
            meta.uid,
            "podgroup",
            f"{pod_groups_of(meta.namespace)}/{meta.name}/status",
            {"metadata": {"uid": meta.uid}, "status": {"conditions": [*others, condition]}},
            why,
            message,
        )

    def _condition(
        self, type_: str, status: str, reason: str, message: str, old: Condition | None
    ) -> dict[str, Any]:
        # The transition time changes with the status alone (case C116).
        kept = old.last_transition_time if old is not None and old.status == status else None
        return {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": kept or self._utc_now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        }


def _reference(pod: CachedPod) -> ObjectReference:
    meta = pod.metadata
    return ObjectReference("Pod", meta.name, meta.namespace, meta.uid)
