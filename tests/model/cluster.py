"""The whole model: an API server, actors, and one scheduler process, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Final

from tests.model.process import Process
from tests.model.server import ApiServer
from tests.model.workloads import NODE_CPUS, Workloads

_TICK_S: Final = 1.0
#: So long after its end the process is started again.
_RESTART_S: Final = 3.0


class Cluster:
    """Runs on an event loop whose time jumps from one timer to the next."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.server = ApiServer()
        self.workloads = Workloads(self.server)
        self.process: Process | None = None
        for name in NODE_CPUS:
            self.workloads.add_node(name)
        self._tasks = [loop.create_task(self._act()), loop.create_task(self._keep_running())]

    @property
    def now_s(self) -> float:
        """Virtual time in seconds."""
        return self._loop.time()

    def act(self) -> None:
        """Let the actors work now, not only at the next full second."""
        self.workloads.tick(self.now_s)

    def pass_time(self, seconds: float) -> None:
        """Let everybody work for so long."""
        self._loop.run_until_complete(asyncio.sleep(seconds))
        if self.process is not None:
            self.process.check()

    def silence(self, kind: str, seconds: float) -> None:
        """Let the watches of a collection show nothing for so long, though they stay open."""
        self.server.silent.add(kind)
        self._loop.call_later(seconds, self._end_silence, kind)

    def _end_silence(self, kind: str) -> None:
        self.server.silent.discard(kind)
        self.server.wake()

    def end(self) -> None:
        """End every task of the model."""
        self._loop.run_until_complete(self._end())

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.process is not None:
            await self.process.end()

    async def _act(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            if self.server.up:
                self.act()

    async def _keep_running(self) -> None:
        while True:
            self.process = Process(self.server)
            await self.process.is_over.wait()
            await self.process.end()
            await asyncio.sleep(_RESTART_S)
