"""Conditions and events are true, written once, and written in time: scripted answers, over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web

from groups.contract import Why
from groups.objects import Condition, Key, ObjectMeta
from groups.podgroup import PodGroup, PodGroupSpec, PodGroupStatus
from kube.events import EventRecorder
from scheduler.bind import Binder, GangBinding
from scheduler.conditions import StatusWriter
from scheduler.gangs import GangState
from scheduler.pods import CachedPod
from scheduler.report import Reporter
from scheduler_core.reasons import Refusal
from tests.support.fake_api import FakeApi, fake_api

GROUP_STATUS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ns/podgroups/g/status"
EVENTS = "/apis/events.k8s.io/v1/namespaces/ns/events"


def pod(name: str, **more: Any) -> CachedPod:
    meta = ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}", resource_version="7")
    return CachedPod(meta, None, **more)


def group(scheduled: str = "", reason: str = "", message: str = "", **status: Any) -> PodGroup:
    condition = Condition("Scheduled", scheduled, reason, message, "2026-01-01T00:00:00Z")
    return PodGroup(
        ObjectMeta(name="g", namespace="ns", uid="uid-group"),
        PodGroupSpec(2),
        PodGroupStatus(conditions=(condition,) if scheduled else None, **status),
    )


def state(*names: str, of: PodGroup | None = None, why: Why | None = None, message: str = "") -> GangState:
    waiting = tuple(pod(name) for name in names)
    return GangState(Key("ns/g"), of, 2, (), (), waiting, 0, why, message)


def refusal(room: int = 0) -> Refusal:
    return Refusal("ns/g", Why.NOT_ENOUGH_ROOM, needed=2, members=2, room=room, nodes=1)


@dataclass
class Rig:
    """A reporter and the server that it writes to."""

    api: FakeApi
    reporter: Reporter
    recorder: EventRecorder
    writer: StatusWriter
    now_s: list[float]
    busy: list[bool]

    def sent(self, path: str) -> list[dict[str, Any]]:
        return [json.loads(body) for _, to, _, body in self.api.requests if to == path]

    def conditions(self, path: str) -> list[tuple[str, str]]:
        """(status, reason) of each write of a status, which has one condition."""
        found = [one["status"]["conditions"] for one in self.sent(path)]
        return [(only["status"], only["reason"]) for (only,) in found]

    async def settle(self) -> None:
        """Wait until everything that was said so far has been written."""
        marker = pod(f"marker-{len(self.api.requests)}")
        path = status_of(marker.metadata.name)
        self.api.script("PATCH", path, lambda _: {})
        self.writer.pod_waits(marker, "Marker", "")
        await self.api.until(lambda: self.api.count(f"PATCH {path}") == 1)
        await self.recorder.drain(5)


def status_of(name: str) -> str:
    return f"/api/v1/namespaces/ns/pods/{name}/status"


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    now_s, busy = [0.0], [False]
    async with fake_api() as (api, kube):
        writer = StatusWriter(kube, lambda: busy[0], now_s=lambda: now_s[0])
        recorder = EventRecorder(
            kube, controller="fluence", instance="test", is_busy=lambda: busy[0], now_s=lambda: now_s[0]
        )
        for name in ("p", *(f"p{number}" for number in range(10))):
            api.script("PATCH", status_of(name), lambda _: {})
        api.script("PATCH", GROUP_STATUS, lambda _: {})
        api.script("POST", EVENTS, lambda _: {})
        tasks = [asyncio.create_task(one.run()) for one in (writer, recorder)]
        try:
            yield Rig(api, Reporter(writer, recorder), recorder, writer, now_s, busy)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_refusal_is_written_once_with_the_version_that_was_read(rig: Rig) -> None:
    """Rule F1: a write that comes after a binding is refused by the server instead of undoing it."""
    for _ in range(3):
        rig.reporter.refused(state("p"), refusal(), None)
    await rig.settle()
    (body,) = rig.sent(status_of("p"))
    assert body["metadata"] == {"uid": "uid-p", "resourceVersion": "7"}
    assert rig.conditions(status_of("p")) == [("False", "Unschedulable")]


async def test_new_numbers_are_written_once_a_minute_and_a_new_reason_at_once(rig: Rig) -> None:
    """Cases C116, C117."""
    for second in range(0, 121, 10):
        rig.now_s[0] = float(second)
        rig.reporter.refused(state("p"), refusal(room=second), None)
        await rig.settle()
    assert len(rig.sent(status_of("p"))) == 3
    rig.reporter.scheduler_error(state("p"), None, "a fault")
    await rig.settle()
    assert rig.conditions(status_of("p"))[-1] == ("False", "SchedulerError")


async def test_what_the_pod_says_already_is_not_written(rig: Rig) -> None:
    said = Condition("PodScheduled", "False", "Unschedulable", refusal().message)
    member = pod("p", scheduled=said)
    rig.reporter.refused(GangState(Key("ns/g"), None, 1, (), (), (member,), 0), refusal(), None)
    await rig.settle()
    assert rig.sent(status_of("p")) == []


async def test_a_refusal_that_could_not_be_written_is_written_at_the_next_look(rig: Rig) -> None:
    """A right that is missing for a while, say: no pod may wait for ever without a reason."""
    replies = [web.json_response({"code": 403, "message": "no right"}, status=403)]
    rig.api.script("PATCH", status_of("p"), lambda _: replies.pop() if replies else {})
    rig.reporter.refused(state("p"), refusal(), None)
    await rig.api.until(lambda: len(rig.sent(status_of("p"))) == 1)

    def is_written_again() -> bool:
        rig.reporter.refused(state("p"), refusal(), None)
        return len(rig.sent(status_of("p"))) == 2

    await rig.api.until(is_written_again)


async def test_a_refusal_that_waits_to_be_written_is_void_once_the_pod_is_placed(rig: Rig) -> None:
    rig.busy[0] = True
    others = state(*(f"p{number}" for number in range(3)))
    rig.reporter.refused(others, refusal(), None)
    rig.reporter.refused(state("p"), refusal(), None)
    rig.reporter.placing([pod("p")])
    rig.busy[0] = False
    await rig.settle()
    assert rig.sent(status_of("p")) == []
    assert all(len(rig.sent(status_of(f"p{number}"))) == 1 for number in range(3))


async def test_a_group_has_one_event_of_its_own_and_few_of_its_pods_have_one(rig: Rig) -> None:
    """Case C117: every pod has the condition with the reason; three have an event that counts the others."""
    names = [f"p{number}" for number in range(10)]
    for _ in range(5):
        rig.reporter.refused(state(*names), refusal(), group())
    await rig.settle()
    assert all(len(rig.sent(status_of(name))) == 1 for name in names)
    events = rig.sent(EVENTS)
    about = [(one["regarding"]["kind"], one["regarding"]["name"]) for one in events]
    assert sorted(about) == [("Pod", "p0"), ("Pod", "p1"), ("Pod", "p2"), ("PodGroup", "g")]
    assert {one["reason"] for one in events} == {"FailedScheduling"}
    assert all("7 more pods" in one["note"] for one in events if one["regarding"]["kind"] == "Pod")
    (own,) = [one for one in events if one["regarding"]["kind"] == "PodGroup"]
    assert own["note"] == refusal().message
    assert own["regarding"]["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"


async def test_a_group_that_cannot_be_tried_has_no_unschedulable_pods(rig: Rig) -> None:
    """Rule F2, case C98: an autoscaler would add nodes that do not help."""
    waits = state("p", why=Why.WAITING_FOR_MEMBERS, message="waiting: 1 of 2 members of group g exist")
    rig.reporter.waiting(waits, group())
    await rig.settle()
    assert rig.sent(status_of("p")) == []
    assert rig.conditions(GROUP_STATUS) == [("False", "WaitingForMembers")]
    assert {one["reason"] for one in rig.sent(EVENTS)} == {"WaitingForMembers"}


@pytest.mark.parametrize("evidence", ["read", "just written", "phase"])
async def test_a_late_member_that_waits_does_not_change_the_condition_of_its_group(
    rig: Rig, evidence: str
) -> None:
    """Once True, it stays True, whether the copy of the PodGroup shows that already or not."""
    one = {"read": group("True", "Scheduled"), "just written": group(), "phase": group(phase="Running")}[
        evidence
    ]
    if evidence == "just written":
        rig.reporter.complete(state(of=one), one)
    late = state("p", of=one)
    rig.reporter.refused(late, refusal(), one)
    rig.reporter.scheduler_error(late, one, "a fault")
    await rig.settle()
    assert "False" not in {status for status, _ in rig.conditions(GROUP_STATUS)}
    assert ("PodGroup", "FailedScheduling") in {
        (event["regarding"]["kind"], event["reason"]) for event in rig.sent(EVENTS)
    }


async def test_the_condition_turns_false_with_a_release_and_true_with_the_next_quorum(rig: Rig) -> None:
    one = group("True", "Scheduled")
    rig.reporter.released(state(of=one), [pod("p")])
    await rig.settle()
    rig.reporter.refused(state("p", of=one), refusal(), one)
    await rig.settle()
    rig.reporter.complete(state(of=one), one)
    await rig.settle()
    assert rig.conditions(GROUP_STATUS) == [
        ("False", "Released"),
        ("False", "NotEnoughRoom"),
        ("True", "Scheduled"),
    ]


async def test_the_transition_time_changes_with_the_status_alone(rig: Rig) -> None:
    """Case C116."""
    one = group("False", "WaitingForMembers", "waiting")
    rig.reporter.refused(state("p", of=one), refusal(), one)
    await rig.settle()
    (body,) = rig.sent(GROUP_STATUS)
    assert body["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"


async def test_a_group_that_waits_says_so_within_a_second_while_pods_are_bound() -> None:
    """Binds go on without a pause; the refusal comes after a thousand Scheduled events and others' writes."""
    async with fake_api() as (api, kube), contextlib.AsyncExitStack() as stack:
        binder = Binder(
            kube,
            may_bind=lambda: True,
            node_is_open=lambda _name, _uid: True,
            on_bound=lambda _key, one, node: (reporter.bound(one, node), feed())[1],
            on_refused=lambda _key, _pod, why: pytest.fail(why),
            on_settled=lambda _key: None,
        )
        writer = StatusWriter(kube, lambda: binder.is_busy)
        recorder = EventRecorder(kube, controller="fluence", instance="test", is_busy=lambda: binder.is_busy)
        reporter = Reporter(writer, recorder)
        number = 0

        def feed() -> None:
            nonlocal number
            number += 1
            one = CachedPod(ObjectMeta(name=f"b{number}", namespace="other", uid=f"uid-b{number}"), None)
            path = f"/api/v1/namespaces/other/pods/b{number}/binding"
            api.script("POST", path, lambda _: web.json_response({}))
            binder.bind(GangBinding(Key("other/b"), "run", [one], {one.metadata.uid: "a"}))

        for name in ("p0", "p1"):
            api.script("PATCH", status_of(name), lambda _: {})
        api.script("PATCH", GROUP_STATUS, lambda _: {})
        for path in (EVENTS, EVENTS.replace("/ns/", "/other/")):
            api.script("POST", path, lambda _: {})
        for one in (binder, writer, recorder):
            task = asyncio.create_task(one.run())
            stack.push_async_callback(asyncio.gather, task, return_exceptions=True)
            stack.callback(task.cancel)
        for _ in range(64):
            feed()
        await api.until(lambda: number > 1000, 30)
        said_s = time.monotonic()
        bound = number
        reporter.refused(state("p0", "p1", of=group()), refusal(), group())

        def is_said() -> bool:
            return (
                all(api.count(f"PATCH {path}") for path in (GROUP_STATUS, status_of("p0"), status_of("p1")))
                and api.count(f"POST {EVENTS}") == 3
            )

        await api.until(is_said)
        assert time.monotonic() - said_s < 1.0
        assert binder.is_busy
        # The share is small: nearly all calls are bindings still.
        await api.until(lambda: number > bound + 500, 30)
        others = sum(1 for what, *_ in api.requests if not what.endswith("/binding"))
        assert others < number / 4
