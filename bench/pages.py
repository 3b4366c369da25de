"""A small API server over loopback for a process under measurement: lists in pages, watches, a lease.

`python -m bench.pages PORT PODS NODES` serves a cluster of gangs of eight that all run. Writes are answered
and change nothing, apart from the lease. It is a process of its own, so that what it costs is not measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any, Final

import uvloop
from aiohttp import web

from bench import wire
from kube.reflector import PAGE_SIZE

_WATCH_S: Final = 3600.0
_Make = Callable[[int], dict[str, Any]]


class Pages:
    """The lists of one cluster."""

    def __init__(self, pods: int, nodes: int) -> None:
        gangs = pods // wire.GANG
        self._lists: dict[str, tuple[int, _Make]] = {
            "pods": (pods, lambda number: wire.pod(number, node=wire.node_name(number % nodes))),
            "nodes": (nodes, wire.node),
            "podgroups": (gangs, wire.pod_group),
            "jobs": (gangs, wire.job),
        }
        self._leases: dict[str, dict[str, Any]] = {}
        self._version = int(wire.VERSION)

    def list(self, name: str, limit: int, cursor: int) -> bytes:
        """One page of a list; a collection that is not known is empty."""
        count, make = self._lists.get(name, (0, wire.node))
        return wire.page(map(make, range(cursor, count)), limit, cursor, is_last=cursor + limit >= count)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer any request."""
        if "/leases" in request.path:
            return await self._lease(request)
        if request.method != "GET":
            body = await request.read()
            return web.Response(body=body, content_type="application/json")
        if request.query.get("watch"):
            stream = web.StreamResponse()
            await stream.prepare(request)
            await asyncio.sleep(_WATCH_S)
            return stream
        name = request.path.rstrip("/").rpartition("/")[2]
        limit = int(request.query.get("limit", PAGE_SIZE))
        cursor = int(request.query.get("continue", 0))
        return web.Response(body=self.list(name, limit, cursor), content_type="application/json")

    async def _lease(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            found = self._leases.get(request.path)
            return web.json_response(found or {"code": 404}, status=200 if found else 404)
        lease = json.loads(await request.read())
        self._version += 1
        lease["metadata"]["resourceVersion"] = str(self._version)
        path = request.path
        if request.method == "POST":
            path = f"{path}/{lease['metadata']['name']}"
        self._leases[path] = lease
        return web.json_response(lease)


async def _serve(port: int, pods: int, nodes: int) -> None:
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", Pages(pods, nodes).answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(*(int(one) for one in sys.argv[1:4])))
