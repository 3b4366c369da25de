"""Write conditions of pods and PodGroups in the background, each at most as often as it changes.

Owns: what was last written for an object, what still waits to be written, and the pace of the writes. Does
not own: the words (`scheduler.report`).

A write that changes nothing is not made. A new reason is written at once, new numbers in the same sentence at
most once a minute (rule F1, cases C116, C117). While pods are being bound the writes get a share of the
calls: first PodGroups that wait, then pods that wait, then what goes well.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import structlog

from groups.contract import GROUP_SCHEDULED_CONDITION
from groups.objects import Condition, ObjectMeta
from groups.podgroup import PodGroup, pod_groups_of
from groups.times import utc_now
from kube.backoff import persist
from kube.errors import Conflict, KubeError, NotFound
from kube.pace import PacedQueue
from kube.session import Kube, PatchType
from scheduler import metrics
from scheduler.pods import CachedPod

log = structlog.get_logger(__name__)

_REFRESH_S: Final = 60.0
_WORKERS: Final = 4
_DEADLINE_S: Final = 30.0
_REMEMBERED: Final = 50_000
_POD_SCHEDULED: Final = "PodScheduled"


class _Level(enum.IntEnum):
    """Which writes come first."""

    GROUP_WAITS = 0
    POD_WAITS = 1
    GROUP_RUNS = 2


#: Writes a second of each level while pods are being bound.
_RATES_PER_S: Final = (50.0, 40.0, 10.0)


@dataclass(frozen=True, slots=True)
class _Written:
    status: str
    reason: str
    message: str
    at_s: float


@dataclass(frozen=True, slots=True)
class _Write:
    kind: Literal["pod", "podgroup"]
    path: str
    body: dict[str, Any]


class StatusWriter:
    """Writes conditions in the background; of several for one object only the latest is written."""

    def __init__(
        self,
        kube: Kube,
        is_busy: Callable[[], bool] = lambda: False,
        *,
        utc_now: Callable[[], dt.datetime] = utc_now,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_busy` says whether pods are being bound."""
        self._kube = kube
        self._utc_now = utc_now
        self._now_s = now_s
        self._order: PacedQueue[str] = PacedQueue(_RATES_PER_S, is_busy=is_busy, now_s=now_s)
        self._pending: dict[str, _Write] = {}
        self._queued: dict[str, _Level] = {}
        #: What was last written or queued for each object, by uid; the oldest are forgotten.
        self._last: dict[str, _Written] = {}

    def pod_waits(self, pod: CachedPod, reason: str, message: str) -> None:
        """Set PodScheduled=False on a pod that is not bound; returns at once."""
        meta = pod.metadata
        condition = self._changed(meta, pod.scheduled, _POD_SCHEDULED, "False", reason, message)
        if condition is None:
            return
        path = f"/api/v1/namespaces/{meta.namespace}/pods/{meta.name}/status"
        # With the version, a write that comes after a binding is refused instead of undoing it.
        version = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"metadata": version, "status": {"conditions": [condition]}}
        self._queue(meta.uid, _Write("pod", path, body), _Level.POD_WAITS)

    def group(self, group: PodGroup, status: Literal["True", "False"], reason: str, message: str) -> None:
        """Set the condition Scheduled on a PodGroup; returns at once."""
        meta = group.metadata
        condition = self._changed(meta, _scheduled(group), GROUP_SCHEDULED_CONDITION, status, reason, message)
        if condition is None:
            return
        others = [one for one in group.status.conditions or () if one.type != GROUP_SCHEDULED_CONDITION]
        path = f"{pod_groups_of(meta.namespace)}/{meta.name}/status"
        body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [*others, condition]}}
        level = _Level.GROUP_RUNS if status == "True" else _Level.GROUP_WAITS
        self._queue(meta.uid, _Write("podgroup", path, body), level)

    def group_status(self, group: PodGroup) -> str:
        """The status of the condition Scheduled as last written, else as read; empty if it is missing."""
        last = self._last.get(group.metadata.uid)
        if last is not None:
            return last.status
        read = _scheduled(group)
        return read.status if read is not None else ""

    def forget(self, uid: str) -> None:
        """The object has changed: what waits is not written, and what comes next is written at once."""
        self._last.pop(uid, None)
        self._pending.pop(uid, None)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(_WORKERS):
                group.create_task(self._work(), name=f"conditions {number}")

    def _changed(
        self,
        meta: ObjectMeta,
        old: Condition | None,
        type_: str,
        status: str,
        reason: str,
        message: str,
    ) -> dict[str, Any] | None:
        """The condition to write, None where it is not worth a write now."""
        last = self._last.get(meta.uid)
        if last is not None and (last.status, last.reason) == (status, reason):
            recent = self._now_s() - last.at_s < _REFRESH_S
            if recent or last.message == message:
                return None
        # What was read may be older than what was last written, and counts only where nothing was.
        as_read = (old.status, old.reason, old.message) if last is None and old is not None else None
        if as_read == (status, reason, message):
            return None
        # The transition time changes with the status alone (case C116).
        kept = old.last_transition_time if old is not None and old.status == status else None
        self._last.pop(meta.uid, None)
        self._last[meta.uid] = _Written(status, reason, message, self._now_s())
        while len(self._last) > _REMEMBERED:
            del self._last[next(iter(self._last))]
        return {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": kept or self._utc_now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        }

    def _queue(self, uid: str, write: _Write, level: _Level) -> None:
        self._pending[uid] = write
        queued = self._queued.get(uid)
        if queued is None or level < queued:
            self._queued[uid] = level
            self._order.put(uid, level)

    async def _work(self) -> None:
        while True:
            uid = await self._order.get()
            self._queued.pop(uid, None)
            write = self._pending.pop(uid, None)
            if write is not None:
                await self._send(uid, write)

    async def _send(self, uid: str, write: _Write) -> None:
        patch: PatchType = "strategic" if write.kind == "pod" else "merge"
        try:
            await persist(lambda: self._kube.patch(write.path, write.body, patch), deadline_s=_DEADLINE_S)
            result = "written"
        except (NotFound, Conflict):
            # It has gone or has changed since (it was bound, perhaps): the next look at it decides anew.
            result = "gone"
        except KubeError as error:
            result = "failed"
            log.warning("condition not written", path=write.path, error=str(error))
        if result != "written" and uid not in self._pending:
            self._last.pop(uid, None)
        metrics.STATUS_WRITES.labels(write.kind, result).inc()


def _scheduled(group: PodGroup) -> Condition | None:
    return next((one for one in group.status.conditions or () if one.type == GROUP_SCHEDULED_CONDITION), None)
