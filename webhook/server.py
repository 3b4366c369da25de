"""The process: certificate, socket, uvicorn, and an orderly end.

`serve` runs until it is cancelled; then readiness goes, it serves on for a while, since news of that takes
time to reach the API server, ends each connection with an answer, and returns by raising CancelledError.
Signals are the caller's. Nothing here is on the path of a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable, Generator

import structlog
import uvicorn

from groups.errors import FluenceError
from kube.session import Kube
from webhook import tls
from webhook.app import Readiness, create_app
from webhook.connection import ReviewConnection
from webhook.settings import WebhookSettings

#: Above the 90 s after which the API server closes an idle connection: whoever closes first must not be
#: us, or a review is sent into a socket that is just closing (rule W28).
KEEP_ALIVE_S = 120

_log = structlog.get_logger("fluence.webhook")


class _Server(uvicorn.Server):
    """uvicorn without its hands on the process's signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def serve(
    settings: WebhookSettings,
    readiness: Readiness | None = None,
    *,
    bound: asyncio.Future[int] | None = None,
) -> None:
    """Serve reviews until cancelled. Raises FluenceError where it cannot start.

    `readiness` is kept up to date for the caller's own probes; `bound` is told the port, for port 0.
    """
    state = readiness if readiness is not None else Readiness()
    with _listen(settings.host, settings.port) as listener:
        if settings.cert_dir is not None:
            server = _server(settings, state, tls.file_context(settings.cert_dir))
            await _run(server, listener, state, _nothing, bound, settings.drain_s)
            return
        async with await Kube.connect(settings.kubeconfig, user_agent="fluence-webhook") as kube:
            state.why = "no certificate yet"
            bundle = await tls.obtain(kube, settings)

            async def register() -> None:
                await tls.publish(kube, settings, bundle.ca)

            server = _server(settings, state, tls.server_context(bundle))
            await _run(server, listener, state, register, bound, settings.drain_s)


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket, before anything else is done: a port that is taken is the commonest mistake."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, number)
    except OSError as error:
        raise FluenceError(f'"{host}" is no address to listen on: {error.strerror}') from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        taken = error.errno == errno.EADDRINUSE
        why = "is taken by another process" if taken else f"cannot be used ({error.strerror})"
        raise FluenceError(f"port {port} on {host} {why}: choose another with --port") from error
    listener.setblocking(False)
    return listener


def _server(settings: WebhookSettings, state: Readiness, context: ssl.SSLContext) -> _Server:
    config = uvicorn.Config(
        create_app(settings.policy, state),
        http=ReviewConnection,
        ws="none",
        lifespan="off",
        ssl_context_factory=lambda _config, _default: context,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=settings.graceful_shutdown_s,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )
    return _Server(config)


async def _nothing() -> None:
    """With --cert-dir somebody else registers the certificate."""


async def _run(
    server: _Server,
    listener: socket.socket,
    state: Readiness,
    register: Callable[[], Awaitable[None]],
    bound: asyncio.Future[int] | None,
    drain_s: float,
) -> None:
    port = int(listener.getsockname()[1])
    running = asyncio.create_task(server.serve(sockets=[listener]), name="webhook server")
    try:
        # Serve first: once the caBundle is published, the API server calls.
        await _started(server, running)
        state.why = "not registered yet"
        await register()
        state.ready, state.why = True, ""
        _log.info("serving reviews", port=port)
        if bound is not None and not bound.done():
            bound.set_result(port)
        # Shielded: a cancellation must reach us, not cut off answers under way.
        await asyncio.shield(running)
    finally:
        served = state.ready
        state.ready, state.why, state.draining = False, "stopping", True
        try:
            if served and not running.done():
                _log.info("draining", port=port, seconds=drain_s)
                await asyncio.wait([running], timeout=drain_s)
        finally:
            server.should_exit = True
            await asyncio.wait([running])
            _log.info("stopped", port=port)


async def _started(server: _Server, running: asyncio.Task[None]) -> None:
    while not server.started:
        if running.done():
            try:
                await running
            except OSError as error:
                raise FluenceError(f"the webhook cannot listen: {error.strerror}") from error
            raise FluenceError("the webhook's server ended before it began to serve")
        # uvicorn has no event for it; it takes one turn of the loop, or a few.
        await asyncio.sleep(0.005)
