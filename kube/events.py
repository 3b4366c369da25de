"""Record events.k8s.io/v1 events: bounded, behind the writes that matter, repeats counted and not repeated.

Owns: names, times, series and the pace of events. Does not own: their words. An event that cannot be
written is dropped and counted; it never fails the work it tells about (rule E8).
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec
import structlog

from groups.times import format_micro_time, utc_now
from kube import metrics
from kube.backoff import persist
from kube.errors import Conflict, KubeError, NotFound
from kube.session import Kube

log = structlog.get_logger(__name__)

MAX_NOTE_BYTES: Final = 1024
_REPEAT_AFTER_S: Final = 60.0
#: Events live for an hour on the server; a series that was silent for longer begins anew.
_FORGET_AFTER_S: Final = 1800.0
_REMEMBERED: Final = 20_000
_DEADLINE_S: Final = 30.0


class ObjectReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The object that an event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class _Told:
    regarding: ObjectReference
    reason: str
    action: str
    note: str
    kind: str
    at: dt.datetime


@dataclass(slots=True)
class _Series:
    path: str
    count: int
    written_s: float


def cut_note(note: str) -> str:
    """The note, cut to the 1024 bytes that the server takes (rule E4)."""
    raw = note.encode()
    if len(raw) <= MAX_NOTE_BYTES:
        return note
    return raw[: MAX_NOTE_BYTES - 4].decode(errors="ignore") + " ..."


async def _at_once() -> None:
    """The default turn: nothing to wait for."""


class EventRecorder:
    """A bounded queue of events and the workers that write them.

    `my_turn` is awaited before each write, so that events stand behind more urgent writes. When the
    queue is full the oldest events are kept and new ones dropped: who tells less is better than who stops.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        controller: str,
        instance: str,
        capacity: int = 10_000,
        workers: int = 4,
        my_turn: Callable[[], Awaitable[None]] = _at_once,
        utc_now: Callable[[], dt.datetime] = utc_now,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._controller = controller
        self._instance = instance[:128]
        self._queue: asyncio.Queue[_Told] = asyncio.Queue(capacity)
        self._workers = workers
        self._my_turn = my_turn
        self._utc_now = utc_now
        self._now_s = now_s
        self._series: OrderedDict[tuple[str, str], _Series] = OrderedDict()

    def record(
        self,
        regarding: ObjectReference,
        *,
        reason: str,
        action: str,
        note: str,
        kind: Literal["Normal", "Warning"] = "Normal",
    ) -> None:
        """Queue an event; returns at once. Repeats (same object and reason) count once a minute."""
        if not self._is_news(regarding, reason):
            return
        try:
            self._queue.put_nowait(_Told(regarding, reason, action, cut_note(note), kind, self._utc_now()))
        except asyncio.QueueFull:
            metrics.EVENTS_WRITTEN.labels("dropped").inc()

    def _is_news(self, regarding: ObjectReference, reason: str) -> bool:
        series = self._series.get((regarding.uid or regarding.name, reason))
        return series is None or self._now_s() - series.written_s >= _REPEAT_AFTER_S

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"events {number}")

    async def drain(self, deadline_s: float) -> None:
        """Wait until what is queued has been written, at most `deadline_s` seconds."""
        try:
            async with asyncio.timeout(deadline_s):
                await self._queue.join()
        except TimeoutError:
            log.info("events left unwritten at the end", count=self._queue.qsize())

    async def _work(self) -> None:
        while True:
            told = await self._queue.get()
            try:
                await self._my_turn()
                await self._write(told)
                metrics.EVENTS_WRITTEN.labels("written").inc()
            except KubeError as error:
                metrics.EVENTS_WRITTEN.labels("failed").inc()
                log.info("event not written", reason=told.reason, about=told.regarding.name, error=str(error))
            finally:
                self._queue.task_done()

    async def _write(self, told: _Told) -> None:
        key = (told.regarding.uid or told.regarding.name, told.reason)
        series = self._series.get(key)
        if series is not None and self._now_s() - series.written_s < _FORGET_AFTER_S:
            if self._now_s() - series.written_s < _REPEAT_AFTER_S:
                return
            series.count += 1
            series.written_s = self._now_s()
            if await self._continue(series, told):
                return
        namespace = told.regarding.namespace or "default"
        body = self._body(told, namespace)
        collection = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        # Remembered before the write, so that a second worker cannot make the same event meanwhile.
        self._remember(key, _Series(f"{collection}/{body['metadata']['name']}", 1, self._now_s()))
        with contextlib.suppress(Conflict):  # an earlier attempt arrived, though its answer did not
            await persist(lambda: self._kube.post(collection, body), deadline_s=_DEADLINE_S)

    async def _continue(self, series: _Series, told: _Told) -> bool:
        change = {"series": {"count": series.count, "lastObservedTime": format_micro_time(told.at)}}
        try:
            await persist(lambda: self._kube.patch(series.path, change), deadline_s=_DEADLINE_S)
        except NotFound:
            # Its hour is over: tell it anew.
            return False
        return True

    def _remember(self, key: tuple[str, str], series: _Series) -> None:
        self._series[key] = series
        self._series.move_to_end(key)
        while len(self._series) > _REMEMBERED:
            self._series.popitem(last=False)

    def _body(self, told: _Told, namespace: str) -> dict[str, Any]:
        about = told.regarding
        stamp = f"{int(told.at.timestamp() * 1_000_000):x}"
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            # A pod's name may be 253 characters long, and the event's must not be longer.
            "metadata": {"name": f"{about.name[:230].rstrip('-.')}.{stamp}", "namespace": namespace},
            "eventTime": format_micro_time(told.at),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": told.action,
            "reason": told.reason,
            "regarding": about,
            "note": told.note,
            "type": told.kind,
        }
