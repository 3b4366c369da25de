"""The process: certificate, socket, uvicorn, and shutdown.

`serve` runs until it is cancelled. Then it reports that it is not ready, continues to serve for a while
because the API server notices that with a delay, answers the last request of each connection, and raises
CancelledError. The caller handles signals. Nothing here runs during a request.
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

#: Above the 90 s after which the API server closes an idle connection. If we closed first, a review could be
#: sent into a socket that is just closing (rule W28).
KEEP_ALIVE_S = 120

_log = structlog.get_logger("fluence.webhook")


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def serve(
    settings: WebhookSettings,
    readiness: Readiness | None = None,
    *,
    bound: asyncio.Future[int] | None = None,
) -> None:
    """Serve reviews until cancelled. Raises FluenceError if it cannot start.

    `readiness` is kept up to date for the caller's probes; `bound` is called with the port, for port 0.
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
    """A listening socket. It is opened first, because a port in use is the most common mistake."""
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
    """With --cert-dir the administrator registers the certificate."""


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
        # Serve first: the API server calls as soon as the caBundle is published.
        await _started(server, running)
        state.why = "not registered yet"
        await register()
        state.ready, state.why = True, ""
        _log.info("serving reviews", port=port)
        if bound is not None and not bound.done():
            bound.set_result(port)
        # Shielded: a cancellation must not interrupt requests in flight.
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
        # uvicorn has no event for this; it takes one or a few iterations of the event loop.
        await asyncio.sleep(0.005)
