"""A session with an API server of a few lines of Python, without sockets: for tests in virtual time.

`tests.support.fake_api` does the same over real HTTP, for what only real connections show.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kube.errors import Unreachable, error_of
from kube.session import Kube

#: What a server answers: a status and a body.
Answer = tuple[int, Any]


class LeaseServer:
    """One lease with optimistic locking, a collection that can be watched, and a record of other writes."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 100
        self.up = True
        #: The clients whose open watches bring nothing any more, though nobody closes them.
        self.deaf: set[ScriptedKube] = set()
        #: Called before a request is answered; it may change the server, or wait.
        self.before: Callable[[str, str], None] = lambda method, path: None
        #: Called when a request was carried out and is about to be answered; it may say "lost".
        self.after: Callable[[str, str], str] = lambda method, path: ""
        self.items: dict[str, dict[str, Any]] = {}
        self.lists = 0
        self.watches = 0
        self.writes: list[tuple[float, Any]] = []
        self._lines: list[tuple[int, bytes]] = []
        self._changed = asyncio.Event()

    @property
    def holder(self) -> str:
        """Who holds the lease."""
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""

    def touch_lease(self, **spec: Any) -> None:
        """Change the lease as another process would."""
        assert self.lease is not None
        self.version += 1
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        self.lease["spec"].update(spec)

    def put(self, name: str, **fields: Any) -> None:
        """Make or change an object of the collection."""
        self.version += 1
        known = name in self.items
        meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(self.version)}
        self.items[name] = {"metadata": meta, **fields}
        line = {"type": "MODIFIED" if known else "ADDED", "object": self.items[name]}
        self._lines.append((self.version, json.dumps(line).encode() + b"\n"))
        self.cut_watches()

    def cut_watches(self) -> None:
        """Wake every watch, which then sees what is new, or that the server is down."""
        self._changed.set()
        self._changed = asyncio.Event()

    def answer(self, method: str, path: str, params: Mapping[str, str], body: bytes) -> Answer:
        """Carry out one request."""
        if "leases" in path:
            return self._lease(method, json.loads(body) if body else None)
        if method == "GET":
            if params.get("limit") != "1":
                self.lists += 1
            items = list(self.items.values())
            return 200, {"metadata": {"resourceVersion": str(self.version)}, "items": items}
        self.version += 1
        self.writes.append((asyncio.get_running_loop().time(), json.loads(body)))
        return 201, {}

    def _lease(self, method: str, body: Any) -> Answer:
        if method == "GET":
            return (200, self.lease) if self.lease else (404, {"code": 404})
        if method == "PUT" and self.lease is None:
            return 404, {"code": 404}
        if (
            self.lease
            and body["metadata"].get("resourceVersion") != self.lease["metadata"]["resourceVersion"]
        ):
            return 409, {"code": 409}
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.lease = body
        return 200, body

    async def lines(self, version: int, client: ScriptedKube) -> AsyncIterator[bytes]:
        """What happened after `version`, as it happens; ends when the server goes down."""
        while self.up:
            changed = self._changed
            if client in self.deaf:
                await asyncio.sleep(3600)
            for at, line in [one for one in self._lines if one[0] > version]:
                version = at
                yield line
            await changed.wait()


class ScriptedKube(Kube):
    """A session whose requests are answered by a `LeaseServer`."""

    def __init__(self, server: LeaseServer) -> None:
        # Not that of Kube, which opens a real session.
        self._guard = None
        self.scripted = server
        self.latency_s = 0.001
        #: False while the network between this client and the server is broken.
        self.connected = True

    async def _send(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: Any,
        content_type: str,
        timeout_s: float,
    ) -> bytes:
        server = self.scripted
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.sleep(self.latency_s)
                if not (server.up and self.connected):
                    raise Unreachable(f"{method} {path}: connection refused")
                server.before(method, path)
                raw = body if isinstance(body, bytes | None) else body.decode().encode()
                status, answer = server.answer(method, path, params or {}, raw or b"")
                if server.after(method, path) == "lost":
                    await asyncio.sleep(3600)
        except TimeoutError as error:
            raise Unreachable(f"{method} {path}: no answer") from error
        content = json.dumps(answer).encode()
        if status >= 400:
            raise error_of(status, content, doing=f"{method} {path}")
        return content

    @asynccontextmanager
    async def lines(
        self, path: str, params: Mapping[str, str], *, silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        await asyncio.sleep(self.latency_s)
        if not (self.scripted.up and self.connected):
            raise Unreachable(f"GET {path}: connection refused")
        self.scripted.watches += 1
        yield self.scripted.lines(int(params["resourceVersion"]), self)
