"""Record events.k8s.io/v1 events: bounded, after the writes that matter, repeats counted and not repeated.

Owns: names, times, series and the pace of events. Does not own: their words. An event that cannot be written
is dropped and counted; it never fails the work that it describes (rule E8).
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec
import structlog

from groups.times import format_micro_time, utc_now
from kube import metrics
from kube.backoff import persist
from kube.errors import Conflict, KubeError, NotFound
from kube.pace import PacedQueue
from kube.session import Kube

log = structlog.get_logger(__name__)

MAX_NOTE_BYTES: Final = 1024
_REPEAT_AFTER_S: Final = 60.0
#: Events live for an hour on the server; a series that was silent for longer begins anew.
_FORGET_AFTER_S: Final = 1800.0
_REMEMBERED: Final = 20_000
_DEADLINE_S: Final = 30.0
#: Events a second while more urgent calls are under way: problems, and routine.
_RATES_PER_S: Final = (50.0, 10.0)
_PROBLEM, _ROUTINE = 0, 1

_Key = tuple[str, str]


class ObjectReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The object that an event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class _Event:
    regarding: ObjectReference
    reason: str
    action: str
    note: str
    kind: str
    at: dt.datetime

    @property
    def key(self) -> _Key:
        """Events with the same key are repeats of one another."""
        return (self.regarding.uid or self.regarding.name, self.reason)


@dataclass(slots=True)
class _Series:
    path: str
    count: int
    written_s: float


def cut_note(note: str, ending: str = "") -> str:
    """The note, cut so that with its ending it has the 1024 bytes that the server takes (rule E4)."""
    raw, room = note.encode(), MAX_NOTE_BYTES - len(ending.encode())
    if len(raw) > room:
        note = raw[: room - 4].decode(errors="ignore") + " ..."
    return note + ending


class EventRecorder:
    """A bounded queue of events and the workers that write them.

    While `is_busy` says that more urgent calls are under way, events get a small share of the calls. When
    the queue is full, new events are dropped.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        controller: str,
        instance: str,
        capacity: int = 40_000,
        workers: int = 4,
        is_busy: Callable[[], bool] = lambda: False,
        utc_now: Callable[[], dt.datetime] = utc_now,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._controller = controller
        self._instance = instance[:128]
        self._is_stopping = False
        self._order: PacedQueue[_Key] = PacedQueue(
            _RATES_PER_S,
            is_busy=lambda: is_busy() and not self._is_stopping,
            capacity=capacity,
            now_s=now_s,
        )
        self._queued: dict[_Key, _Event] = {}
        self._unwritten = 0
        self._all_written = asyncio.Event()
        self._all_written.set()
        self._workers = workers
        self._utc_now = utc_now
        self._now_s = now_s
        self._series: OrderedDict[_Key, _Series] = OrderedDict()

    def record(
        self,
        regarding: ObjectReference,
        *,
        reason: str,
        action: str,
        note: str,
        kind: Literal["Normal", "Warning"] = "Normal",
        routine: bool = False,
    ) -> None:
        """Queue an event; returns at once. Repeats (same object and reason) are written once a minute.

        Events that are `routine`, since all goes well, are written after the others.
        """
        event = _Event(regarding, reason, action, cut_note(note), kind, self._utc_now())
        if event.key in self._queued:
            self._queued[event.key] = event
        elif self._is_due(event.key):
            if not self._order.put(event.key, _ROUTINE if routine else _PROBLEM):
                metrics.EVENTS_WRITTEN.labels("dropped").inc()
                return
            self._queued[event.key] = event
            self._unwritten += 1
            self._all_written.clear()

    def _is_due(self, key: _Key) -> bool:
        series = self._series.get(key)
        return series is None or self._now_s() - series.written_s >= _REPEAT_AFTER_S

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"events {number}")

    @contextlib.asynccontextmanager
    async def running(self, drain_s: float) -> AsyncIterator[None]:
        """Write events while the body runs, and for at most `drain_s` seconds after it what is left."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.run(), name="events")
            try:
                yield
            finally:
                await self.drain(drain_s)
                task.cancel()

    async def drain(self, deadline_s: float) -> None:
        """Wait until what is queued has been written, at most `deadline_s` seconds."""
        self._is_stopping = True
        try:
            async with asyncio.timeout(deadline_s):
                await self._all_written.wait()
        except TimeoutError:
            log.info("events left unwritten at the end", count=self._unwritten)
        finally:
            self._is_stopping = False

    async def _work(self) -> None:
        while True:
            event = self._queued.pop(await self._order.get())
            try:
                await self._write(event)
                metrics.EVENTS_WRITTEN.labels("written").inc()
            except KubeError as error:
                metrics.EVENTS_WRITTEN.labels("failed").inc()
                log.info(
                    "event not written", reason=event.reason, about=event.regarding.name, error=str(error)
                )
            finally:
                self._unwritten -= 1
                if not self._unwritten:
                    self._all_written.set()

    async def _write(self, event: _Event) -> None:
        series = self._series.get(event.key)
        if series is not None and self._now_s() - series.written_s < _FORGET_AFTER_S:
            if self._now_s() - series.written_s < _REPEAT_AFTER_S:
                return
            series.count += 1
            series.written_s = self._now_s()
            if await self._continue(series, event):
                return
        namespace = event.regarding.namespace or "default"
        body = self._body(event, namespace)
        collection = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        # Remembered before the write, so that a second worker cannot make the same event meanwhile.
        self._remember(event.key, _Series(f"{collection}/{body['metadata']['name']}", 1, self._now_s()))
        with contextlib.suppress(Conflict):  # an earlier attempt arrived, though its answer did not
            await persist(lambda: self._kube.post(collection, body), deadline_s=_DEADLINE_S)

    async def _continue(self, series: _Series, event: _Event) -> bool:
        change = {"series": {"count": series.count, "lastObservedTime": format_micro_time(event.at)}}
        try:
            await persist(lambda: self._kube.patch(series.path, change), deadline_s=_DEADLINE_S)
        except NotFound:
            # The server keeps events for an hour only: write a new one.
            return False
        return True

    def _remember(self, key: _Key, series: _Series) -> None:
        self._series[key] = series
        self._series.move_to_end(key)
        while len(self._series) > _REMEMBERED:
            self._series.popitem(last=False)

    def _body(self, event: _Event, namespace: str) -> dict[str, Any]:
        about = event.regarding
        stamp = f"{int(event.at.timestamp() * 1_000_000):x}"
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            # A pod's name may be 253 characters long, and the event's must not be longer.
            "metadata": {"name": f"{about.name[:230].rstrip('-.')}.{stamp}", "namespace": namespace},
            "eventTime": format_micro_time(event.at),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": event.action,
            "reason": event.reason,
            "regarding": about,
            "note": event.note,
            "type": event.kind,
        }
