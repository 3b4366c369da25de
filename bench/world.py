"""The scheduler's own caches, queue and loop in this process, fed by real reflectors with bytes from memory.

What is left out are sockets and the API server: lists and watch lines are decoded, converted and applied as
in the real process. Decisions go to `World.decided` and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Final, cast

from bench import wire
from groups.contract import SCHEDULER_NAME
from groups.objects import Key
from groups.podgroup import POD_GROUPS, PodGroup
from kube.events import EventRecorder
from kube.reflector import Collection, Reflector
from kube.session import Kube
from scheduler.bind import GangBinding
from scheduler.cache import ClusterCache
from scheduler.conditions import StatusWriter
from scheduler.holding import Holding
from scheduler.loop import SchedulingLoop
from scheduler.objects import Node, PersistentVolume, Pod, VolumeClaim
from scheduler.pods import CachedPod, cached
from scheduler.release import Releaser
from scheduler.report import Reporter
from scheduler.slim import slim_group, slim_node

PODS: Final = "/api/v1/pods"
NODES: Final = "/api/v1/nodes"
CLAIMS: Final = "/api/v1/persistentvolumeclaims"
VOLUMES: Final = "/api/v1/persistentvolumes"
_DEADLINE_S: Final = 120.0

Objects = Callable[[], Iterable[Mapping[str, Any]]]


class Feed:
    """What reflectors need of a session: lists, each made page by page, and lines that are sent by hand."""

    def __init__(self, lists: Mapping[str, Objects]) -> None:
        self._lists = {path: iter(make()) for path, make in lists.items()}
        self._ahead: dict[str, Mapping[str, Any] | None] = {}
        self._lines: dict[str, asyncio.Queue[bytes]] = {}

    async def get(self, path: str, params: Mapping[str, str], *, timeout_s: float = 0) -> bytes:
        """The next page of a list."""
        limit, cursor = int(params["limit"]), int(params.get("continue", 0))
        items = self._lists.get(path, iter(()))
        first = self._ahead.pop(path, None) or next(items, None)
        found = [] if first is None else [first, *(one for _, one in zip(range(limit - 1), items))]  # noqa: B905
        ahead = self._ahead[path] = next(items, None)
        return wire.page(found, limit, cursor, is_last=ahead is None)

    @contextlib.asynccontextmanager
    async def lines(
        self, path: str, params: Mapping[str, str], *, silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines that are sent to this collection."""
        queue = self._lines.setdefault(path, asyncio.Queue())

        async def each() -> AsyncIterator[bytes]:
            while True:
                yield await queue.get()

        yield each()

    def send(self, path: str, line: bytes) -> None:
        """Send a line to a watch."""
        self._lines.setdefault(path, asyncio.Queue()).put_nowait(line)


class World:
    """A scheduler that has listed `lists` once `running` is entered."""

    def __init__(self, lists: Mapping[str, Objects]) -> None:
        self.feed = Feed(lists)
        kube = cast(Kube, self.feed)
        self.pods: Reflector[CachedPod] = Reflector(kube, Collection(PODS), Pod, convert=cached)
        self.nodes: Reflector[Node] = Reflector(kube, Collection(NODES), Node, convert=slim_node)
        self.groups: Reflector[PodGroup] = Reflector(
            kube, Collection(POD_GROUPS), PodGroup, convert=slim_group
        )
        self.claims: Reflector[VolumeClaim] = Reflector(kube, Collection(CLAIMS), VolumeClaim)
        self.volumes: Reflector[PersistentVolume] = Reflector(kube, Collection(VOLUMES), PersistentVolume)
        self.cache = ClusterCache(
            SCHEDULER_NAME,
            pods=self.pods,
            nodes=self.nodes,
            groups=self.groups,
            claims=self.claims,
            volumes=self.volumes,
        )
        #: When each gang was decided.
        self.decided: dict[Key, float] = {}
        reporter = Reporter(StatusWriter(kube), EventRecorder(kube, controller="bench", instance="bench"))
        holding = Holding(self.cache, Releaser(kube, lambda: True), reporter)
        self.loop = SchedulingLoop(self.cache, self, reporter, holding)

    @property
    def reflectors(self) -> list[Reflector[Any]]:
        """All of them, pods last."""
        return [self.nodes, self.groups, self.claims, self.volumes, self.pods]

    def bind(self, gang: GangBinding) -> None:
        """A decision (the loop's binder)."""
        self.decided[gang.key] = time.perf_counter()

    def observed(self, uid: str) -> None:
        """The watch shows a pod bound (the loop's binder)."""

    @contextlib.asynccontextmanager
    async def running(self, *, deciding: bool = False) -> AsyncIterator[World]:
        """List, and watch while the body runs; `deciding` runs the loop too."""
        tasks = [asyncio.create_task(one.run()) for one in self.reflectors]
        try:
            for one in self.reflectors:
                await one.wait_synced(_DEADLINE_S)
            if deciding:
                self.cache.listener = self.loop
                tasks.append(asyncio.create_task(self.loop.run()))
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def taken(self, reflector: Reflector[Any], lines: int) -> None:
        """Wait until the reflector has applied so many lines of its watch."""
        await self.until(lambda: reflector.lines >= lines, every_s=0)

    async def at_rest(self) -> None:
        """Wait until no gang is due: what changed is decided, and each refusal is newer than the room."""
        await self.until(lambda: not self.is_due())

    async def decision(self, key: Key) -> None:
        """Wait until this gang is decided and no other is due."""
        await self.until(lambda: key in self.decided and not self.is_due())

    async def until(self, holds: Callable[[], bool], every_s: float = 0.0005) -> None:
        """Wait until something holds, and let the tasks under measurement run meanwhile."""
        async with asyncio.timeout(_DEADLINE_S):
            while not holds():  # noqa: ASYNC110  (a poll costs less than events would)
                await asyncio.sleep(every_s)

    def is_due(self) -> bool:
        """Whether some gang is to be looked at now."""
        queue = self.loop.queue
        return queue.next_due_s() == 0.0 or bool(queue.stale(self.cache.ledger.room_version))
