"""The one process that owns all others of a cluster.

It starts them in order, answers requests on the control socket, and ends on request or when its owner
ends. Its children end with it, even after kill -9 (`child.dies_with_parent`), so no process is left
behind. It holds the lock of the cluster's folder while it runs.

Started by `devcluster.cluster.start`, which reads its reports from a pipe, one line each: {"say": ...} for
progress, {"begun": true} once name and ports are taken, {"ready": true}, or {"error": ...}.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO, Final

import aiohttp
import msgspec

from devcluster import binaries, control, folders
from devcluster.bringup import BringUp
from devcluster.errors import DevclusterError, PortTaken
from devcluster.locks import try_lock
from devcluster.paths import ClusterFolder
from devcluster.processes import Processes
from devcluster.spec import ClusterSpec
from groups.errors import FluenceError

_PORT_ATTEMPTS: Final = 3
_PROBE_TIMEOUT_S: Final = 2.0


class Reporter:
    """The pipe to the process that started this cluster and waits for it."""

    def __init__(self, pipe: BinaryIO, gone: Callable[[], None]) -> None:
        self._pipe = pipe
        self._gone = gone

    def __call__(self, **report: Any) -> None:
        """Send one report. If the reader has ended, the cluster is not needed any more."""
        if self._pipe.closed:
            return
        try:
            self._pipe.write(msgspec.json.encode(report) + b"\n")
            self._pipe.flush()
        except BrokenPipeError:
            self._gone()

    def close(self) -> None:
        """Nothing more will be reported."""
        with contextlib.suppress(BrokenPipeError):
            self._pipe.close()


class Supervisor:
    """Owner of one cluster."""

    def __init__(
        self, spec: ClusterSpec, folder: ClusterFolder, report: Reporter, end: asyncio.Event,
        http: aiohttp.ClientSession,
    ) -> None:  # fmt: skip
        self._spec = spec
        self._folder = folder
        self._report = report
        self._end = end
        self._processes = Processes(folder, http)

    async def run(self) -> bool:
        """Start the cluster and serve it until its end; returns whether it was ever ready."""
        server = await control.serve(control.listen(self._folder.socket), self._handle)
        end = asyncio.create_task(self._end.wait())
        up = asyncio.create_task(self._bring_up())
        try:
            await asyncio.wait({up, end}, return_when=asyncio.FIRST_COMPLETED)
            if not up.done():
                return False
            up.result()
            self._report(ready=True)
            self._report.close()
            await end
            return True
        finally:
            for task in (up, end):
                task.cancel()
            await asyncio.gather(up, end, return_exceptions=True)
            server.close()
            await self._processes.end_all()

    async def _bring_up(self) -> None:
        found = binaries.ensure(self._spec.kubernetes, lambda line: self._report(say=line))
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            ports = folders.take_ports(self._folder, self._spec)
            self._report(begun=True)
            try:
                await BringUp(
                    self._spec, self._folder, ports, found, self._processes,
                    lambda line: self._report(say=line),
                ).run()  # fmt: skip
            except* PortTaken:
                if attempt == _PORT_ATTEMPTS:
                    raise
                await self._processes.end_all()
                self._report(say="another program took one of our ports: choosing others")
            else:
                return

    async def _handle(self, request: control.Request) -> Any:
        """Carry out one request from the control socket."""
        match request:
            case {"do": "status"}:
                return self._processes.status()
            case {"do": "down"}:
                self._end.set()
                return None
            case {"do": "start", "name": str(name)}:
                return await self._processes.start(
                    name,
                    environment=request.get("environment"),
                    arguments=request.get("arguments") or (),
                    ready=request.get("ready", True),
                )
            case {"do": "stop", "name": str(name)}:
                return await self._processes.stop(name)
            case {"do": "kill", "name": str(name), "signal": int(number)}:
                return await self._processes.kill(name, number)
            case {"do": "restart", "name": str(name)}:
                return await self._processes.restart(name, ready=request.get("ready", True))
            case _:
                raise DevclusterError(f"the supervisor does not know the request {request}")


def _first(error: BaseException) -> BaseException:
    """The first error of a group that is no consequence of another; the log has all of them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _supervise(spec: ClusterSpec, folder: ClusterFolder, pipe: BinaryIO, starter_pid: int) -> None:
    loop = asyncio.get_running_loop()
    end = asyncio.Event()
    report = Reporter(pipe, end.set)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, end.set)
    keep = False
    try:
        if spec.owner_pid is not None:
            _when_gone(spec.owner_pid, end.set)
        # Until the cluster is ready, it ends with the process that waits for it.
        _when_gone(starter_pid, lambda: None if pipe.closed else end.set())
        timeout = aiohttp.ClientTimeout(total=_PROBE_TIMEOUT_S)
        # The probes go to our own children on loopback, so their certificates need not be verified.
        async with aiohttp.ClientSession(
            timeout=timeout, connector=aiohttp.TCPConnector(ssl=False, force_close=True)
        ) as http:
            await Supervisor(spec, folder, report, end, http).run()
    except BaseException as error:
        traceback.print_exc()
        # The logs are kept while the process that started the cluster can still read them.
        keep = not end.is_set()
        first = _first(error)
        known = isinstance(first, FluenceError)
        report(
            error=str(first) if known else f"the supervisor failed: {first!r}; see {folder.log('supervisor')}"
        )
    finally:
        if not keep:
            folders.remove(folder)
        report.close()


def _when_gone(pid: int, act: Callable[[], None]) -> None:
    """Call `act` as soon as the process has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        act()
        return
    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(descriptor)
        act()

    loop.add_reader(descriptor, gone)


def main() -> None:
    """Run as `python -m devcluster.supervisor SPEC REPORT-DESCRIPTOR STARTER-PID` in the background."""
    spec = msgspec.json.decode(sys.argv[1], type=ClusterSpec)
    pipe = os.fdopen(int(sys.argv[2]), "wb")
    starter_pid = int(sys.argv[3])
    # The starter waits for the parent only. The child is adopted by init and leaves no zombie.
    if os.fork():
        os._exit(0)
    # Settings in the environment of the user, or of a test run, must not apply to this cluster.
    for variable in [name for name in os.environ if name.startswith("FLUENCE_")]:
        del os.environ[variable]
    folder = ClusterFolder.of(spec.name)
    folder.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = try_lock(folder.lock)
    if lock is None:
        Reporter(pipe, lambda: None)(error=f'a cluster called "{spec.name}" is just being started')
        return
    with folder.log("supervisor").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    asyncio.run(_supervise(spec, folder, pipe, starter_pid))


if __name__ == "__main__":
    main()
