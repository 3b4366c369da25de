"""The processes of one cluster by name: start, stop, kill, start again.

Owns: which processes run, which should run, and restarting those that a kubelet would restart. Does not
own: their order at the start (`supervisor`).
"""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import aiohttp

from devcluster.child import Child
from devcluster.components import Component
from devcluster.errors import DevclusterError
from devcluster.paths import ClusterFolder

_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 10.0
#: Signals that do not end a process. After any other signal it is not restarted automatically.
_HARMLESS: Final = frozenset({signal.SIGSTOP, signal.SIGCONT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2})


class _Managed:
    """One name: the component, its process if there is one, and whether there should be one."""

    def __init__(self, component: Component) -> None:
        self.component = component
        self.child: Child | None = None
        self.wanted = False
        self.restarts = 0
        self.lock = asyncio.Lock()


class Processes:
    """All processes of one cluster."""

    def __init__(self, folder: ClusterFolder, http: aiohttp.ClientSession) -> None:
        self._folder = folder
        self._http = http
        self._managed: dict[str, _Managed] = {}
        self._watchers: set[asyncio.Task[None]] = set()

    def add(self, component: Component) -> None:
        """Add a component without starting it."""
        self._managed[component.name] = _Managed(component)

    async def start(
        self,
        name: str,
        *,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        ready: bool = True,
    ) -> None:
        """Start it unless it runs, with additional environment and arguments; wait until it is `ready`."""
        managed = self._find(name)
        async with managed.lock:
            if managed.child is None or managed.child.exit_code is not None:
                component = dataclasses.replace(
                    managed.component,
                    command=(*managed.component.command, *arguments),
                    environment={**managed.component.environment, **(environment or {})},
                )
                await self._launch(managed, component)
            child = managed.child
        if ready and child is not None:
            await child.until_ready(self._http)

    async def stop(self, name: str) -> None:
        """End it with SIGTERM first; it is not restarted."""
        managed = self._find(name)
        async with managed.lock:
            managed.wanted = False
            if managed.child is not None:
                await managed.child.stop()

    async def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a signal; after one that ends the process it is not restarted."""
        managed = self._find(name)
        async with managed.lock:
            if managed.child is None or managed.child.exit_code is not None:
                raise DevclusterError(f"{name} does not run: start it with `start {name}`")
            managed.wanted = managed.wanted and number in _HARMLESS
            managed.child.signal(number)
            if number == signal.SIGKILL:
                await managed.child.wait()

    async def restart(self, name: str, *, ready: bool = True) -> None:
        """Stop and start it."""
        await self.stop(name)
        await self.start(name, ready=ready)

    async def end_all(self) -> None:
        """Kill every process at once. The cluster is removed, so no process needs time to end."""
        children = [managed.child for managed in self._managed.values() if managed.child is not None]
        for managed in self._managed.values():
            managed.wanted = False
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*(child.kill() for child in children))
        await asyncio.gather(*self._watchers, return_exceptions=True)
        self._managed.clear()

    def status(self) -> list[dict[str, Any]]:
        """One row for each process."""
        return [_row(managed, self._folder) for managed in self._managed.values()]

    def _find(self, name: str) -> _Managed:
        try:
            return self._managed[name]
        except KeyError:
            raise DevclusterError(
                f'"{name}" is no process of this cluster: it has {", ".join(self._managed)}'
            ) from None

    async def _launch(self, managed: _Managed, component: Component) -> None:
        # Until the new child exists, the task that watches the previous one must not start another.
        managed.child = None
        child = await Child.start(component, self._folder.log(component.name))
        managed.child, managed.wanted = child, True
        task = asyncio.create_task(self._watch(managed, component, child), name=f"watch {component.name}")
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)

    async def _watch(self, managed: _Managed, component: Component, child: Child) -> None:
        """Restart the process, with growing pauses, if it ended by itself."""
        while True:
            begin_s = asyncio.get_running_loop().time()
            code = await child.wait()
            if not managed.wanted or managed.child is not child:
                return
            lived_s = asyncio.get_running_loop().time() - begin_s
            print(f"{component.name} ended by itself with exit code {code}", file=sys.stderr, flush=True)
            if not component.restart:
                return
            managed.restarts = 0 if lived_s > _LONGEST_PAUSE_S else managed.restarts + 1
            await asyncio.sleep(min(_FIRST_PAUSE_S * 2 ** max(managed.restarts - 1, 0), _LONGEST_PAUSE_S))
            async with managed.lock:
                # It may have been stopped, or started again, during the pause.
                if not managed.wanted or managed.child is not child:
                    return
                child = await Child.start(component, self._folder.log(component.name))
                managed.child = child


def _row(managed: _Managed, folder: ClusterFolder) -> dict[str, Any]:
    child = managed.child
    if child is None or (child.exit_code is not None and not managed.wanted):
        state = "stopped"
    else:
        state = "running" if child.exit_code is None else f"ended with exit code {child.exit_code}"
    return {
        "name": managed.component.name,
        "state": state,
        "pid": child.pid if child is not None and child.exit_code is None else None,
        "ready_url": managed.component.ready_url,
        "log": str(folder.log(managed.component.name)),
    }
