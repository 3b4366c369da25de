"""The controller process: reflectors into the cache, the reconciler, and the lease around it.

Every process keeps its caches warm; only the one that holds the lease writes. What was left undone when a
process is killed is found again from the API server alone.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Any

import structlog

from controller.cache import GroupCache
from controller.failures import FailureLog
from controller.lookup import OwnerLookup
from controller.objects import WirePod
from controller.pods import Pod, PodReader
from controller.reconciler import Reconciler
from controller.settings import ControllerSettings
from controller.writer import Writer
from groups.contract import CREATED_BY_CONTROLLER
from groups.objects import Key
from groups.podgroup import CRD_MISSING, POD_GROUPS, PodGroup
from groups.times import utc_now
from groups.workloads.rules import Rules, builtin_rules
from kube.events import EventRecorder
from kube.leading import not_listed, watch_and_lead
from kube.lease import Lease
from kube.reflector import Collection, Reflector
from kube.session import Kube
from kube.startup import require_collection
from kube.term import Term
from kube.watchdog import Watchdog

log = structlog.get_logger(__name__)


class ControllerProcess:
    """All parts of the controller, wired; `run` is the process."""

    def __init__(
        self,
        kube: Kube,
        settings: ControllerSettings,
        *,
        rules: Rules | None = None,
        watchdog: Watchdog | None = None,
        utc_now: Callable[[], dt.datetime] = utc_now,
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._failures = FailureLog()
        self._lease = Lease(
            kube,
            settings.namespace,
            settings.lease_name,
            settings.identity,
            duration_s=settings.lease_duration_s,
            watchdog=watchdog,
        )
        table = rules or builtin_rules()
        ours = Collection("/api/v1/pods", field_selector=f"spec.schedulerName={settings.scheduler_name}")
        pods: Reflector[Pod] = Reflector(kube, ours, WirePod, convert=PodReader(table))
        groups: Reflector[PodGroup] = Reflector(kube, Collection(POD_GROUPS), PodGroup)
        lookup = self._lookup = OwnerLookup(kube, table, self._owner_changed, settings.scheduler_name)
        self._reflectors: list[Reflector[Any]] = [*lookup.reflectors, groups, pods]
        self._cache = GroupCache(
            settings.scheduler_name,
            table,
            pods=pods,
            groups=groups,
            lookup=lookup,
            on_group=self._touch_group,
            on_pod=self._touch_pod,
            utc_now=utc_now,
        )
        self._rules = table
        self._utc_now = utc_now
        self._reconciler: Reconciler | None = None

    # The parts form a circle (see, decide, write, see), so that some links are made late.

    def _owner_changed(self, uid: str) -> None:
        self._cache.owner_changed(uid)

    def _touch_group(self, key: Key, delay_s: float) -> None:
        if self._reconciler is not None:
            self._reconciler.touch_group(key, delay_s)

    def _touch_pod(self, key: Key) -> None:
        if self._reconciler is not None:
            self._reconciler.touch_pod(key)

    def not_ready(self) -> list[str]:
        """What is still missing before this process is of use; empty when it is ready."""
        return not_listed(self._reflectors)

    async def run(self) -> None:
        """Keep PodGroups until cancelled, in one term after another."""
        await require_collection(self._kube, POD_GROUPS, missing=CRD_MISSING)
        await watch_and_lead(self._reflectors, self._lease, self._lead, self._lookup.run())

    async def _lead(self, term: Term) -> None:
        # Made anew for each term, so that nothing of an old one goes on.
        recorder = EventRecorder(
            term.kube,
            controller=CREATED_BY_CONTROLLER,
            instance=f"{CREATED_BY_CONTROLLER}-{self._settings.identity}",
        )
        reconciler = self._reconciler = Reconciler(
            self._cache,
            Writer(term.kube, term.held),
            recorder,
            self._rules,
            failures=self._failures,
            utc_now=self._utc_now,
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(recorder.run(), name="events")
                tasks.create_task(reconciler.run(self._settings.workers), name="reconciler")
        finally:
            self._reconciler = None
