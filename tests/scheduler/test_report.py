"""What is told is true, told once, and told at last: faults scripted, over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from groups.contract import Why
from groups.objects import Key, ObjectMeta
from kube.events import EventRecorder
from kube.session import Kube
from scheduler.gangs import GangState
from scheduler.pods import CachedPod
from scheduler.report import Reporter, StatusWriter
from scheduler_core.reasons import Refusal
from tests.support.fake_api import FakeApi, fake_api

POD = CachedPod(ObjectMeta(name="p", namespace="ns", uid="u", resource_version="7"), None)
STANDING = GangState(Key("ns/g"), None, 1, (), (), (POD,), 0)
STATUS = "/api/v1/namespaces/ns/pods/p/status"


def refusal(room: int = 0) -> Refusal:
    return Refusal("ns/g", Why.NOT_ENOUGH_ROOM, needed=1, members=1, room=room, nodes=1)


@contextlib.asynccontextmanager
async def reporting() -> AsyncIterator[tuple[FakeApi, Reporter, asyncio.Event]]:
    async with fake_api() as (api, kube):
        turn = asyncio.Event()
        turn.set()

        async def my_turn() -> None:
            await turn.wait()

        async with running(kube, my_turn) as reporter:
            yield api, reporter, turn


@contextlib.asynccontextmanager
async def running(kube: Kube, my_turn: Any) -> AsyncIterator[Reporter]:
    writer = StatusWriter(kube, my_turn)
    # Its events are another matter: they are queued here and never sent.
    reporter = Reporter(writer, EventRecorder(kube, controller="fluence", instance="test"))
    task = asyncio.create_task(writer.run())
    try:
        yield reporter
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def sent(api: FakeApi) -> list[dict[str, Any]]:
    return [json.loads(body) for name, _, _, body in api.requests if name == f"PATCH {STATUS}"]


async def test_a_refusal_is_written_once_with_the_version_it_rests_on() -> None:
    """Rule F1: a write that a binding has overtaken is refused by the server instead of undoing it."""
    async with reporting() as (api, reporter, _):
        api.script("PATCH", STATUS, lambda _: {})
        for _number in range(3):
            reporter.refused(STANDING, refusal(), None)
        await api.until(lambda: len(sent(api)) == 1)
        (body,) = sent(api)
        assert body["metadata"] == {"uid": "u", "resourceVersion": "7"}
        (condition,) = body["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "PodScheduled",
            "False",
            "Unschedulable",
        )


async def test_a_refusal_that_could_not_be_written_is_told_again() -> None:
    """A right that is missing for a while, say: nobody may wait for ever without a reason."""
    async with reporting() as (api, reporter, _):
        replies = iter([web.json_response({"code": 403, "message": "no right"}, status=403)])
        api.script("PATCH", STATUS, lambda _: next(replies, None) or web.json_response({}))
        reporter.refused(STANDING, refusal(), None)
        await api.until(lambda: len(sent(api)) == 1)

        def told_again() -> bool:
            reporter.refused(STANDING, refusal(), None)
            return len(sent(api)) == 2

        await api.until(told_again)


async def test_a_refusal_that_still_waits_is_void_once_the_pod_is_placed() -> None:
    async with reporting() as (api, reporter, turn):
        api.script("PATCH", STATUS, lambda _: {})
        turn.clear()
        reporter.refused(STANDING, refusal(), None)
        reporter.placing([POD])
        turn.set()
        other = CachedPod(ObjectMeta(name="q", namespace="ns", uid="w"), None)
        api.script("PATCH", STATUS.replace("/p/", "/q/"), lambda _: {})
        reporter.refused(GangState(Key("ns/h"), None, 1, (), (), (other,), 0), refusal(), None)
        await api.until(lambda: api.count(f"PATCH {STATUS.replace('/p/', '/q/')}") == 1)
        assert sent(api) == []
