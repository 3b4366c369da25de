"""An HTTP proxy in front of the API server that notes every write, to see which process made it."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web

_HOP_HEADERS = {"host", "authorization", "content-length", "transfer-encoding", "connection"}


@dataclass
class RecordingProxy:
    """Forwards requests with one token. `writes` holds method and path of each write as it comes."""

    server: str
    token: str
    http: aiohttp.ClientSession
    url: str = ""
    writes: list[str] = field(default_factory=list)

    @classmethod
    @contextlib.asynccontextmanager
    async def before(cls, server: str, token: str, authority: Path) -> AsyncIterator[RecordingProxy]:
        """Serve on a free port of loopback, without TLS, until the block ends."""
        tls = ssl.create_default_context(cafile=str(authority))
        connector = aiohttp.TCPConnector(ssl=tls, limit=0)
        async with aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False
        ) as http:
            one = cls(server, token, http)
            app = web.Application(client_max_size=2**24)
            app.router.add_route("*", "/{path:.*}", one._forward)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            one.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            try:
                yield one
            finally:
                await runner.cleanup()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if request.method != "GET":
            self.writes.append(f"{request.method} {request.path}")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_HEADERS}
        headers["Authorization"] = f"Bearer {self.token}"
        async with self.http.request(
            request.method, self.server + str(request.rel_url), data=body or None, headers=headers
        ) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_HEADERS}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response
