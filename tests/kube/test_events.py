"""Events are written once, repeats are counted, and more urgent calls come first."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from kube.events import MAX_NOTE_BYTES, EventRecorder, ObjectReference, cut_note
from kube.session import Kube
from tests.support.fake_api import FakeApi

Both = tuple[FakeApi, Kube]
PATH = "/apis/events.k8s.io/v1/namespaces/ns/events"
POD = ObjectReference("Pod", "p", "ns", "uid-p")


@contextlib.asynccontextmanager
async def recording(kube: Kube, **more: Any) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(kube, controller="fluence", instance="fluence-test", **more)
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def record(recorder: EventRecorder, note: str = "no room") -> None:
    recorder.record(POD, reason="FailedScheduling", action="Scheduling", note=note, kind="Warning")


async def test_an_event_has_every_field_that_the_server_requires(scripted: Both) -> None:
    """Rules E1 to E3."""
    api, kube = scripted
    api.script("POST", PATH, lambda _: {})
    async with recording(kube) as recorder:
        record(recorder)
        await recorder.drain(5)
    (body,) = [json.loads(sent) for name, _, _, sent in api.requests if name == f"POST {PATH}"]
    assert body["reportingController"] == "fluence"
    assert body["reportingInstance"] == "fluence-test"
    assert (body["type"], body["reason"], body["action"]) == ("Warning", "FailedScheduling", "Scheduling")
    assert body["regarding"]["uid"] == "uid-p"
    assert body["metadata"]["namespace"] == "ns"
    assert not {"deprecatedSource", "deprecatedCount", "series"} & body.keys()


async def test_repeats_are_counted_in_the_first_event_at_most_once_a_minute(scripted: Both) -> None:
    """Case C117, rule E6: one object, whose count grows."""
    api, kube = scripted
    now_s = [0.0]
    patches: list[dict[str, Any]] = []

    async def patch(request: web.Request) -> dict[str, Any]:
        patches.append(json.loads(await request.read()))
        return {}

    async def post(request: web.Request) -> dict[str, Any]:
        name = json.loads(await request.read())["metadata"]["name"]
        api.script("PATCH", f"{PATH}/{name}", patch)
        return {}

    api.script("POST", PATH, post)
    async with recording(kube, now_s=lambda: now_s[0]) as recorder:
        for _ in range(300):
            now_s[0] += 1.0
            record(recorder, f"room for {now_s[0]}")
            await recorder.drain(5)
    assert api.count(f"POST {PATH}") == 1
    assert [one["series"]["count"] for one in patches] == [2, 3, 4, 5]


async def test_an_event_that_the_server_has_deleted_is_written_anew(scripted: Both) -> None:
    api, kube = scripted
    now_s = [0.0]
    api.script("POST", PATH, lambda _: {})
    async with recording(kube, now_s=lambda: now_s[0]) as recorder:
        record(recorder)
        await recorder.drain(5)
        now_s[0] = 120.0
        record(recorder)
        await recorder.drain(5)
    assert api.count(f"POST {PATH}") == 2


async def test_a_namespace_that_goes_away_costs_one_attempt_and_no_error(scripted: Both) -> None:
    """Rule E8."""
    api, kube = scripted
    api.script("POST", PATH, lambda _: web.json_response({"code": 403}, status=403))
    async with recording(kube) as recorder:
        record(recorder)
        await recorder.drain(5)
    assert api.count(f"POST {PATH}") == 1


async def test_problems_are_written_while_others_are_busy_and_too_many_routine_events_are_dropped(
    scripted: Both,
) -> None:
    api, kube = scripted
    api.script("POST", PATH, lambda _: {})
    async with recording(kube, is_busy=lambda: True, capacity=100) as recorder:
        for number in range(200):
            about = ObjectReference("Pod", f"p{number}", "ns", f"u{number}")
            recorder.record(about, reason="Scheduled", action="Binding", note="n", routine=True)
        started_s = time.monotonic()
        record(recorder)

        def problem_is_written() -> bool:
            return any(b"FailedScheduling" in body for *_, body in api.requests)

        await api.until(problem_is_written)
        assert time.monotonic() - started_s < 1.0
        assert api.count(f"POST {PATH}") < 50
        await recorder.drain(5)
    assert api.count(f"POST {PATH}") == 101


async def test_what_is_queued_at_the_end_is_still_written(scripted: Both) -> None:
    api, kube = scripted
    api.script("POST", PATH, lambda _: {})
    recorder = EventRecorder(kube, controller="fluence", instance="test", is_busy=lambda: True)
    async with recorder.running(drain_s=5):
        for number in range(300):
            about = ObjectReference("Pod", f"p{number}", "ns", f"u{number}")
            recorder.record(about, reason="Scheduled", action="Binding", note="n", routine=True)
    assert api.count(f"POST {PATH}") == 300


async def test_the_end_does_not_wait_for_a_server_that_does_not_answer(scripted: Both) -> None:
    api, kube = scripted

    async def hang(_: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    api.script("POST", PATH, hang)
    recorder = EventRecorder(kube, controller="fluence", instance="test")
    started_s = time.monotonic()
    async with recorder.running(drain_s=0.2):
        record(recorder)
    assert time.monotonic() - started_s < 5.0


@given(st.text(max_size=3000))
def test_a_note_is_cut_to_what_the_server_takes(note: str) -> None:
    """Rule E4."""
    ending = " (and more)"
    assert len(cut_note(note, ending).encode()) <= MAX_NOTE_BYTES
    assert cut_note(note, ending).endswith(ending)
    cut = cut_note(note)
    assert len(cut.encode()) <= MAX_NOTE_BYTES
    assert cut == note or cut.endswith(" ...")
