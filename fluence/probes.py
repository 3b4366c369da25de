"""What looks after a process: /healthz, /readyz and /metrics on a plain HTTP port of its own.

Owns: the three answers and their port. Does not own: what makes a process ready; it is asked.
It runs in the event loop of the process, so that a loop that hangs fails /healthz.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from types import TracebackType

import structlog
from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from groups.errors import FluenceError

log = structlog.get_logger(__name__)


def _starting() -> Sequence[str]:
    return ["starting"]


class Probes:
    """A small HTTP server; use it with `async with`.

    `not_ready` tells what is still missing, as sentences; empty means ready. Whoever runs inside may
    replace it.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self.not_ready: Callable[[], Sequence[str]] = _starting
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    @property
    def port(self) -> int:
        """The port that is served; the one that was found, where 0 was asked for."""
        return int(self._runner.addresses[0][1])

    def stop_serving(self) -> None:
        """Be ready no more, so that nothing new is sent here while the process ends."""
        self.not_ready = lambda: ["stopping"]

    async def __aenter__(self) -> Probes:
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise FluenceError(self._why_not(error)) from error
        log.info("probes served", host=self._host, port=self.port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    def _why_not(self, error: OSError) -> str:
        if error.errno == errno.EADDRINUSE:
            why = "is taken by another process"
        elif error.errno in (errno.EACCES, errno.EPERM):
            why = "may not be used by this user"
        else:
            return (
                f'"{self._host}" port {self._port} cannot be listened on ({error.strerror}): '
                "correct --probe-host or --probe-port"
            )
        return f"port {self._port} on {self._host} {why}: choose another with --probe-port"

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        if missing := self.not_ready():
            return web.Response(status=503, text="".join(f"not ready: {one}\n" for one in missing))
        return web.Response(text="ok\n")

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})
