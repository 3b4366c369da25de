"""One scheduler process of the model test: the real caches and parts, in terms, until it is killed."""

from __future__ import annotations

import asyncio
from typing import Final

from kube.catchup import catch_up
from kube.reflector import all_synced
from kube.term import LeaseTimes, Term
from scheduler.process import SchedulerProcess, SchedulingTerm
from scheduler.settings import SchedulerSettings
from tests.model.server import ApiServer
from tests.model.session import ModelKube

_LEASE: Final = LeaseTimes(15.0)
_SETTINGS: Final = SchedulerSettings(identity="model")


class Process:
    """A process that leads from its start. The lease is that of `tests.kube`; here terms end by command."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._kube = ModelKube(server, self.kill)
        parts = SchedulerProcess(self._kube, _SETTINGS)
        self.cache, self._reflectors = parts.cache, parts.reflectors
        #: The work of the present term; None between terms and before the first list.
        self.working: SchedulingTerm | None = None
        self.is_killed = False
        #: Set when it was killed.
        self.is_over = asyncio.Event()
        self._lost = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def kill(self) -> None:
        """As kill -9 does: nothing is sent any more. What was sent before arrives now or never."""
        self.is_killed, self.working = True, None
        self.is_over.set()
        self._kube.die()
        self._server.settle()
        self._task.cancel()

    def lose_lease(self) -> None:
        """End the present term; another one begins when the lease would be over."""
        self._lost.set()

    def check(self) -> None:
        """Raise what ended the process, if anything but a kill did."""
        if self._task.done() and not self.is_killed:
            self._task.result()
            raise AssertionError("the process has ended")

    async def end(self) -> None:
        """Kill it, and wait until its tasks have ended."""
        self.kill()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for one in self._reflectors:
                tasks.create_task(one.run())
            await all_synced(self._reflectors)
            while True:
                await self._lead()

    async def _lead(self) -> None:
        for one in self._reflectors:
            await catch_up(one)
        clock = asyncio.get_running_loop().time
        term = Term(self._kube, _LEASE, clock)
        term.renewed(float("inf"))
        self._lost.clear()
        working = SchedulingTerm(term, _SETTINGS, self.cache, now_s=clock)
        work = asyncio.create_task(working.run())
        self.working = working
        lost = asyncio.create_task(self._lost.wait())
        try:
            await asyncio.wait((work, lost), return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        finally:
            self.working = None
            term.end()
            for one in (work, lost):
                one.cancel()
            await asyncio.gather(work, lost, return_exceptions=True)
        # Nobody may take the lease while a write of the old term can still arrive.
        await asyncio.sleep(_LEASE.duration_s)
        self._server.settle()
