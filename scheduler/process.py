"""The scheduler process: reflectors into the cache, and for each term as leader a loop and a binder.

Everything that waits to be written when the process is killed is found again from the API server alone:
members that were bound count for their gang, all others are placed anew.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from groups.objects import Key
from groups.podgroup import CRD_MISSING, POD_GROUPS, PodGroup
from kube.events import EventRecorder
from kube.leading import not_listed, watch_and_lead
from kube.lease import Lease
from kube.reflector import Collection, Reflector
from kube.session import Kube
from kube.startup import require_collection
from kube.term import Term
from kube.watchdog import Watchdog
from scheduler.bind import Binder
from scheduler.cache import ClusterCache
from scheduler.conditions import StatusWriter
from scheduler.holding import Holding
from scheduler.loop import SchedulingLoop
from scheduler.objects import Node, PersistentVolume, Pod, VolumeClaim
from scheduler.pods import CachedPod, cached
from scheduler.release import Releaser
from scheduler.report import Reporter
from scheduler.settings import SchedulerSettings
from scheduler.slim import slim_group, slim_node

#: Events about what was done are still written for so long when the process stops in an orderly way.
_DRAIN_S: Final = 2.0


class SchedulerProcess:
    """All parts of the scheduler, wired; `run` is the process."""

    def __init__(self, kube: Kube, settings: SchedulerSettings, *, watchdog: Watchdog | None = None) -> None:
        self._kube = kube
        self._settings = settings
        self._lease = Lease(
            kube,
            settings.namespace,
            settings.lease_name,
            settings.identity,
            duration_s=settings.lease_duration_s,
            watchdog=watchdog,
        )
        pods: Reflector[CachedPod] = Reflector(kube, Collection("/api/v1/pods"), Pod, convert=cached)
        nodes: Reflector[Node] = Reflector(kube, Collection("/api/v1/nodes"), Node, convert=slim_node)
        groups: Reflector[PodGroup] = Reflector(kube, Collection(POD_GROUPS), PodGroup, convert=slim_group)
        claims: Reflector[VolumeClaim] = Reflector(
            kube, Collection("/api/v1/persistentvolumeclaims"), VolumeClaim
        )
        volumes: Reflector[PersistentVolume] = Reflector(
            kube, Collection("/api/v1/persistentvolumes"), PersistentVolume
        )
        self.reflectors: list[Reflector[Any]] = [nodes, groups, claims, volumes, pods]
        self.cache = ClusterCache(
            settings.scheduler_name, pods=pods, nodes=nodes, groups=groups, claims=claims, volumes=volumes
        )

    def not_ready(self) -> list[str]:
        """What is still missing before this process is of use; empty when it is ready."""
        return not_listed(self.reflectors)

    async def run(self) -> None:
        """Schedule until cancelled, in one term after another."""
        await require_collection(self._kube, POD_GROUPS, missing=CRD_MISSING)
        await watch_and_lead(self.reflectors, self._lease, self._lead)

    async def _lead(self, term: Term) -> None:
        await SchedulingTerm(term, self._settings, self.cache).run()


class SchedulingTerm:
    """The parts that decide and write, for one term as leader; nothing of them goes on in the next."""

    def __init__(
        self,
        term: Term,
        settings: SchedulerSettings,
        cache: ClusterCache,
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        kube = term.kube
        self._cache = cache
        self.binder = Binder(
            kube,
            may_bind=term.held,
            node_is_open=cache.node_is_open,
            on_bound=self._bound,
            on_refused=self._refused,
            on_settled=self._settled,
            run_is_current=cache.run_is_current,
            now_s=now_s,
        )
        self._recorder = EventRecorder(
            kube,
            controller=settings.scheduler_name,
            instance=f"{settings.scheduler_name}-{settings.identity}",
            is_busy=lambda: self.binder.is_busy,
            now_s=now_s,
        )
        self._writer = StatusWriter(kube, lambda: self.binder.is_busy, now_s=now_s)
        self._reporter = Reporter(self._writer, self._recorder)
        self._releaser = Releaser(kube, term.held)
        self.holding = Holding(cache, self._releaser, self._reporter)
        self.loop = SchedulingLoop(cache, self.binder, self._reporter, self.holding, now_s=now_s)

    # The parts form a circle (decide, bind, decide), so that some links are made late.

    def _bound(self, _gang: Key, pod: CachedPod, node: str) -> None:
        self._reporter.bound(pod, node)

    def _refused(self, gang: Key, pod: CachedPod, why: str) -> None:
        self.loop.member_refused(gang, pod, why)

    def _settled(self, gang: Key) -> None:
        self.loop.decision_settled(gang)

    async def run(self) -> None:
        """Schedule until cancelled."""
        self._cache.forget_all()
        self._cache.listener = self.loop
        try:
            async with self._recorder.running(_DRAIN_S), asyncio.TaskGroup() as group:
                group.create_task(self.binder.run(), name="binder")
                group.create_task(self._writer.run(), name="conditions")
                group.create_task(self._releaser.run(), name="release")
                group.create_task(self.loop.run(), name="scheduling loop")
        finally:
            self._cache.listener = None
