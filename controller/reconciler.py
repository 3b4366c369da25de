"""Carry plans out: keys come in, the whole state is read, a pure function decides, the result is written.

Owns: the queues, the workers, and what a failure means for a key. Does not own: decisions (`controller.plan`,
`controller.adoption`) or requests (`controller.writer`).
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from controller import metrics
from controller.adoption import label_pod
from controller.cache import GroupCache
from controller.failures import FailureLog
from controller.mistakes import Mistake
from controller.plan import Plan, plan
from controller.pods import Pod
from controller.writer import Writer
from groups.objects import Key
from groups.podgroup import PodGroup
from groups.times import utc_now
from groups.workloads.rules import Rules
from kube.errors import Conflict, KubeError, NotFound
from kube.events import EventRecorder, ObjectReference
from kube.workqueue import WorkQueue

log = structlog.get_logger(__name__)

#: Create, update, status, marks: a plan that is not done after so many rounds is tried again later.
_MOST_ROUNDS: Final = 5
_ADOPTERS: Final = 4
#: So many keys are added at start before other tasks run.
_SLICE: Final = 1000


class Reconciler:
    """Two queues of keys, groups and unlabelled pods, and the workers that empty them.

    Before `run`, and so in a process that does not lead, changes are not collected: `run` begins by looking
    at everything.
    """

    def __init__(
        self,
        cache: GroupCache,
        writer: Writer,
        recorder: EventRecorder,
        rules: Rules,
        *,
        failures: FailureLog | None = None,
        utc_now: Callable[[], dt.datetime] = utc_now,
    ) -> None:
        self._cache = cache
        self._writer = writer
        self._recorder = recorder
        self._rules = rules
        self._failures = failures or FailureLog()
        self._utc_now = utc_now
        self._groups: WorkQueue[Key] | None = None
        self._pods: WorkQueue[Key] | None = None

    def touch_group(self, key: Key, delay_s: float) -> None:
        """Reconcile a group in `delay_s` seconds; many calls before that are one."""
        if self._groups is None:
            return
        if delay_s:
            self._groups.add_after(key, delay_s)
        else:
            self._groups.add(key)

    def touch_pod(self, key: Key) -> None:
        """Reconcile a pod without a group."""
        if self._pods is not None:
            self._pods.add(key)

    async def run(self, workers: int) -> None:
        """Reconcile everything there is, then what changes, until cancelled."""
        groups, pods = self._groups, self._pods = WorkQueue[Key](), WorkQueue[Key]()
        try:
            async with asyncio.TaskGroup() as tasks:
                for number in range(workers):
                    tasks.create_task(self._work(groups, "group", self.reconcile), name=f"groups {number}")
                for number in range(_ADOPTERS):
                    tasks.create_task(self._work(pods, "pod", self.adopt), name=f"pods {number}")
                await _add_all(groups, self._cache.group_keys())
                await _add_all(pods, self._cache.unlabelled())
        finally:
            groups.close()
            pods.close()
            self._groups = self._pods = None

    async def reconcile(self, key: Key) -> None:
        """Bring one group to where it should be."""
        state = await self._cache.state(key)
        # One time for all rounds: a group's stamp tells when it was decided upon, not when it was written.
        now = self._utc_now()
        for _ in range(_MOST_ROUNDS):
            todo = plan(state, now)
            self._report(todo.mistakes)
            if todo.is_done:
                return
            if todo.delete:
                assert state.group is not None
                await self._writer.delete(state.group)
                self._cache.forget(key)
                log.info("PodGroup deleted", group=key, because=str(todo.delete))
                return
            if not (todo.create or todo.update or todo.status):
                # The marks change the pods, whose events bring the group back.
                await self._mark(todo.marks, state.run_uid)
                return
            state = state.with_group(await self._write(state.key, todo, state.group))
        self.touch_group(key, 1.0)

    async def _mark(self, pods: tuple[Pod, ...], run_uid: str) -> None:
        for pod in pods:
            # A pod that has changed meanwhile has an event under way, which brings the group back.
            with contextlib.suppress(Conflict, NotFound):
                await self._writer.mark(pod, run_uid)
        log.info("running pods marked as members of their PodGroup", pods=len(pods), uid=run_uid)

    async def _write(self, key: Key, todo: Plan, group: PodGroup | None) -> PodGroup:
        """Carry out the next write of a plan; the group afterwards."""
        try:
            if todo.create is not None:
                group = await self._writer.create(key, todo.create)
                log.info("PodGroup created", group=key, min_member=todo.create.min_member)
            elif group is not None and todo.update is not None:
                group = await self._writer.update(group, todo.update)
                log.info("PodGroup updated", group=key, min_member=todo.update.min_member)
            elif group is not None and todo.status is not None:
                group = await self._writer.write_status(group, todo.status)
        except KubeError:
            # The object is not what we took it for: the next try starts from what the watch shows.
            self._cache.forget(key)
            raise
        assert group is not None
        self._cache.remember(group)
        return group

    async def adopt(self, key: Key) -> None:
        """Give one pod the labels that it lacks (rule A8)."""
        pod = self._cache.pod(key)
        if pod is None:
            return
        todo = label_pod(pod, await self._cache.owner_of(pod), self._rules)
        if isinstance(todo, Mistake):
            self._report((todo,))
        elif todo is not None:
            await self._writer.label(pod, todo.labels)
            log.info("pod labelled: it came without a group", pod=key, labels=todo.labels)

    def _report(self, mistakes: tuple[Mistake, ...]) -> None:
        for one in mistakes:
            meta = one.pod.metadata
            self._recorder.record(
                ObjectReference("Pod", meta.name, meta.namespace, meta.uid),
                reason=one.reason,
                action="Grouping",
                note=one.note,
                kind="Warning",
            )

    async def _work(
        self, queue: WorkQueue[Key], kind: str, reconcile: Callable[[Key], Awaitable[None]]
    ) -> None:
        while True:
            key = await queue.get()
            try:
                await reconcile(key)
            except KubeError as error:
                metrics.RECONCILES.labels(kind, type(error).__name__).inc()
                self._failures.report(error, key, queue.failed(key))
            except Exception:  # a fault with one group must not stop all the others
                metrics.RECONCILES.labels(kind, "fault").inc()
                log.exception("not reconciled: a fault of the controller", kind=kind, key=key)
                queue.failed(key)
            else:
                metrics.RECONCILES.labels(kind, "ok").inc()
                queue.done(key)
            # Where there is nothing to write nothing is awaited: let other tasks run all the same.
            await asyncio.sleep(0)


async def _add_all(queue: WorkQueue[Key], keys: Sequence[Key]) -> None:
    for number, key in enumerate(keys):
        queue.add(key)
        if number % _SLICE == _SLICE - 1:
            await asyncio.sleep(0)
