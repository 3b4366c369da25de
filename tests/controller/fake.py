"""A scripted API server with a list for each collection, and the controller running against it."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Final

from aiohttp import web

from controller.process import ControllerProcess
from controller.settings import ControllerSettings
from groups.contract import (
    CREATED_BY_ANNOTATION,
    CREATED_BY_CONTROLLER,
    GROUP_LABEL,
    MIN_MEMBER_ANNOTATION,
    SIZE_LABEL,
)
from kube.session import Kube
from tests.support.fake_api import FakeApi, served

Object = dict[str, Any]

PODS: Final = "/api/v1/pods"
JOBS: Final = "/apis/batch/v1/jobs"
GROUPS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
IN_NS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ns/podgroups"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/fluence-system/leases"


def pod(name: str, phase: str = "Pending", *, group: str = "g", size: str = "2", **meta: Any) -> Object:
    """A pod of ours."""
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": "5",
            "labels": {GROUP_LABEL: group, SIZE_LABEL: size},
            **meta,
        },
        "spec": {"schedulerName": "fluence"},
        "status": {"phase": phase},
    }


def pod_group(name: str = "g", minimum: int = 2, *, version: int = 6, **status: Any) -> Object:
    """A PodGroup that the controller made."""
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "annotations": {
                CREATED_BY_ANNOTATION: CREATED_BY_CONTROLLER,
                MIN_MEMBER_ANNOTATION: str(minimum),
            },
        },
        "spec": {"minMember": minimum},
        "status": status,
    }


def failure(status: int, message: str, reason: str = "") -> web.Response:
    """An error answer."""
    return web.json_response({"code": status, "message": message, "reason": reason}, status=status)


class FakeCluster(FakeApi):
    """Lists by path; one lease that may be taken; everything else as scripted."""

    def __init__(self) -> None:
        super().__init__()
        self.lists: dict[str, list[Object]] = {}
        self.lease: Object | None = None
        #: Lines for the watch of a collection, sent as they come.
        self.lines: dict[str, asyncio.Queue[bytes]] = {}
        #: Answers to a request, in their order; the last one stays.
        self.answers: dict[tuple[str, str], deque[Any]] = {}

    def answer(self, method: str, path: str, *answers: Any) -> None:
        """Answer the first such request with the first of `answers`, and so on."""
        self.answers[method, path] = deque(answers)

    def writes(self) -> list[str]:
        """What was asked for, apart from reading and the lease."""
        reading = ("LIST", "WATCH", "GET ")
        return [
            name for name, path, *_ in self.requests if not name.startswith(reading) and LEASES not in path
        ]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if request.path.startswith(LEASES):
            self.requests.append((f"{request.method} lease", request.path, {}, body))
            return self._lease(request)
        answers = self.answers.get((request.method, request.path))
        if answers is None and request.method == "GET" and not request.path.startswith(f"{IN_NS}/"):
            watching = request.query.get("watch") == "1"
            self.requests.append(("WATCH" if watching else "LIST", request.path, {}, body))
            return await (self._stream(request) if watching else self._items(request))
        self.requests.append((f"{request.method} {request.path}", request.path, {}, body))
        if answers is None:
            return failure(404, f"nothing at {request.path}")
        found = answers.popleft() if len(answers) > 1 else answers[0]
        # A pair stands for a failure, since a response can be sent but once.
        return failure(*found) if isinstance(found, tuple) else web.json_response(found)

    async def _items(self, request: web.Request) -> web.Response:
        items = self.lists.get(request.path, [])
        return web.json_response({"metadata": {"resourceVersion": "10"}, "items": items})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        lines = self.lines.setdefault(request.path, asyncio.Queue())
        while True:
            await response.write(await lines.get())

    def _lease(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.json_response(self.lease) if self.lease else failure(404, "no lease")
        self.lease = {
            "metadata": {"resourceVersion": str(len(self.requests))},
            "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15},
        }
        return web.json_response(self.lease)


@contextlib.asynccontextmanager
async def fake_cluster() -> AsyncIterator[tuple[FakeCluster, Kube]]:
    """A running fake API server and a session with it."""
    api = FakeCluster()
    async with served(api) as kube:
        yield api, kube


@contextlib.asynccontextmanager
async def controller_at(kube: Kube) -> AsyncIterator[ControllerProcess]:
    """The controller, running for as long as the block lasts."""
    process = ControllerProcess(kube, ControllerSettings(identity="me"))
    running = asyncio.create_task(process.run())
    try:
        yield process
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
