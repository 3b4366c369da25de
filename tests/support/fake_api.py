"""A scripted API server for faults only: it sends the answers that a test gives it, over HTTP on loopback.

Ordinary behaviour is tested on the real control plane; this server is for rare faults.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

from aiohttp import web
from kubernetes_asyncio.client import Configuration

from kube.credentials import Credentials
from kube.session import Kube

Script = Callable[[web.Request], Any]


def pod(name: str, version: int, *, uid: str = "", **labels: str) -> dict[str, Any]:
    """The smallest possible pod."""
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "labels": labels,
        }
    }


def event(kind: str, thing: dict[str, Any]) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"


def gone() -> bytes:
    """The watch event for a version that is too old."""
    return event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})


def bookmark(version: int) -> bytes:
    """A watch event that only raises the version."""
    return event("BOOKMARK", {"metadata": {"name": "", "resourceVersion": str(version)}})


class FakeApi:
    """Lists are answered with `items`; each watch sends the next script of lines, then stays open or ends."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.version = 10
        #: The state after the next list has been answered: (items, version).
        self.later: deque[tuple[list[Any], int]] = deque()
        self.watches: deque[list[bytes] | web.Response] = deque()
        self.hold_open = True
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.scripts: dict[tuple[str, str], Script] = {}
        self.happened = asyncio.Condition()
        self.url = ""

    def count(self, what: str) -> int:
        """How many requests of a kind arrived: "LIST", "WATCH" or "METHOD path"."""
        return sum(1 for name, *_ in self.requests if name == what)

    def script(self, method: str, path: str, answer: Script) -> None:
        """Answer this method and path with what `answer` returns."""
        self.scripts[(method, path)] = answer

    async def until(self, condition: Callable[[], bool], deadline_s: float = 10.0) -> None:
        """Wait until `condition` holds; it is checked after every request and a few times a second."""
        async with asyncio.timeout(deadline_s):
            while not condition():
                await asyncio.sleep(0.01)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        scripted = self.scripts.get((request.method, request.path))
        watch = request.query.get("watch") == "1"
        listing = request.method == "GET" and scripted is None
        name = ("WATCH" if watch else "LIST") if listing else f"{request.method} {request.path}"
        self.requests.append((name, request.path, dict(request.query), body))
        if scripted is not None:
            answer = scripted(request)
            if asyncio.iscoroutine(answer):
                answer = await answer
            return answer if isinstance(answer, web.StreamResponse) else web.json_response(answer)
        if not listing:
            return web.json_response({"code": 404, "message": f"nothing at {request.path}"}, status=404)
        return await self._watch(request) if watch else self._list()

    def _list(self) -> web.Response:
        answer = {"metadata": {"resourceVersion": str(self.version)}, "items": self.items}
        if self.later:
            self.items, self.version = self.later.popleft()
        return web.json_response(answer)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        script = self.watches.popleft() if self.watches else None
        if isinstance(script, web.Response):
            return script
        response = web.StreamResponse()
        await response.prepare(request)
        for line in script or []:
            await response.write(line)
        if self.hold_open and not self.watches:
            await asyncio.sleep(3600)
        return response


class Answering(Protocol):
    """The request handler of a fake server."""

    url: str

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""


@asynccontextmanager
async def served(api: Answering) -> AsyncIterator[Kube]:
    """Serve `api` on loopback; a session with it."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"

    async def load() -> Configuration:
        return Configuration(host=api.url)

    kube = Kube(Credentials(load, await load()), "test")
    try:
        yield kube
    finally:
        await kube.close()
        await runner.cleanup()


@asynccontextmanager
async def fake_api() -> AsyncIterator[tuple[FakeApi, Kube]]:
    """A running fake API server and a session with it."""
    api = FakeApi()
    async with served(api) as kube:
        yield api, kube
