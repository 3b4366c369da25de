"""A decision is carried out exactly, and room is given back only after a definite no (over real HTTP)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from groups.contract import RUN_ANNOTATION
from groups.objects import Key, ObjectMeta
from kube.errors import ApiError, Busy, Forbidden, Invalid, KubeError, NotFound, Unauthorized, Unreachable
from kube.session import Kube
from scheduler.bind import Binder, GangBinding
from scheduler.lanes import AT_ONCE
from scheduler.outcome import Verdict, outcome_of_error
from scheduler.pods import CachedPod
from tests.support.fake_api import FakeApi, fake_api

KEY = Key("ns/g")


def pods(count: int, namespace: str = "ns") -> list[CachedPod]:
    return [
        CachedPod(ObjectMeta(name=f"p{n}", namespace=namespace, uid=f"{namespace}-u{n}"), None)
        for n in range(count)
    ]


def path(name: str) -> str:
    return f"/api/v1/namespaces/ns/pods/{name}"


def failure(status: int, **headers: str) -> web.Response:
    return web.json_response({"code": status, "message": f"status {status}"}, status=status, headers=headers)


def stored(name: str, node: str = "", uid: str = "", **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": uid or f"ns-u{name[1:]}", **meta},
        "spec": {"nodeName": node},
    }


@dataclass
class Seen:
    """What the binder said, and what it is told of the cluster."""

    bound: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    settled: list[Key] = field(default_factory=list)
    leads: bool = True
    nodes: set[tuple[str, str]] = field(default_factory=lambda: {("a", "uid-a"), ("b", "uid-b")})
    run: str = "run-1"


@dataclass
class Rig:
    """A binder, the server that it talks to, and what it said."""

    api: FakeApi
    binder: Binder
    seen: Seen

    def start(self, gang: list[CachedPod], node: str = "a") -> None:
        nodes = {pod.metadata.uid: node for pod in gang}
        self.binder.bind(GangBinding(KEY, "run-1", gang, nodes, {node: f"uid-{node}"}))

    async def bind(self, gang: list[CachedPod], node: str = "a") -> None:
        self.start(gang, node)
        await self.api.until(lambda: self.seen.settled == [KEY])

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for name, _, _, body in self.api.requests if name.endswith("/binding")]


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with fake_api() as (api, kube), running(kube) as (binder, seen):
        yield Rig(api, binder, seen)


@contextlib.asynccontextmanager
async def running(
    kube: Kube, now_s: Callable[[], float] = time.monotonic
) -> AsyncIterator[tuple[Binder, Seen]]:
    seen = Seen()
    binder = Binder(
        kube,
        may_bind=lambda: seen.leads,
        node_is_open=lambda node, uid: (node, uid) in seen.nodes,
        on_bound=lambda _key, pod, node: seen.bound.update({pod.metadata.name: node}),
        on_refused=lambda _key, pod, why: seen.refused.update({pod.metadata.name: why}),
        on_settled=seen.settled.append,
        run_is_current=lambda _key, uid: uid == seen.run,
        now_s=now_s,
    )
    task = asyncio.create_task(binder.run())
    try:
        yield binder, seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def answers(rig: Rig, name: str, *statuses: int, retry_after: str = "") -> None:
    """Answer the bindings of a pod with these HTTP statuses, the last one for ever."""
    left = list(statuses)
    headers = {"Retry-After": retry_after} if retry_after else {}

    def answer(_: web.Request) -> web.Response:
        status = left.pop(0) if len(left) > 1 else left[0]
        return web.json_response({}) if status == 201 else failure(status, **headers)

    rig.api.script("POST", f"{path(name)}/binding", answer)


def shows(rig: Rig, name: str, **pod: Any) -> None:
    """What a read of the pod answers."""
    rig.api.script("GET", path(name), lambda _: stored(name, **pod))


async def test_each_member_is_bound_by_its_uid_and_with_the_mark_of_its_run(rig: Rig) -> None:
    """Rules B1, B2, B5: another pod of the same name is never bound by an old decision."""
    gang = pods(3)
    for pod in gang:
        answers(rig, pod.metadata.name, 201)
    await rig.bind(gang)
    assert rig.seen.bound == {"p0": "a", "p1": "a", "p2": "a"}
    assert [body["metadata"] for body in rig.bodies()] == [
        {"name": f"p{n}", "namespace": "ns", "uid": f"ns-u{n}", "annotations": {RUN_ANNOTATION: "run-1"}}
        for n in range(3)
    ]


@pytest.mark.parametrize("change", ["gone", "made again"])
async def test_a_node_that_went_after_the_decision_gets_no_binding(rig: Rig, change: str) -> None:
    """Case C103, rule T7; a node of the same name with another uid is another node."""
    rig.seen.nodes = {("a", "uid-a")} if change == "gone" else {("a", "uid-a"), ("b", "uid-new")}
    await rig.bind(pods(4), node="b")
    assert rig.bodies() == []
    assert set(rig.seen.refused) == {"p0", "p1", "p2", "p3"}
    assert "node b has gone" in rig.seen.refused["p0"]


async def test_members_of_a_run_that_has_ended_are_not_bound(rig: Rig) -> None:
    rig.seen.run = "run-2"
    await rig.bind(pods(1))
    assert rig.bodies() == []
    assert "PodGroup" in rig.seen.refused["p0"]


async def test_nothing_is_sent_and_no_room_given_back_without_the_lease(rig: Rig) -> None:
    """Case C79. A lease that was renewed late is held again, and then binding goes on."""
    rig.seen.leads = False
    answers(rig, "p0", 201)
    rig.start(pods(1))
    await asyncio.sleep(0.3)
    assert (rig.bodies(), rig.seen.bound, rig.seen.refused, rig.seen.settled) == ([], {}, {}, [])
    rig.seen.leads = True
    await rig.api.until(lambda: rig.seen.bound == {"p0": "a"})


async def test_a_definite_no_touches_that_member_only(rig: Rig) -> None:
    gang = pods(100)
    for pod in gang:
        answers(rig, pod.metadata.name, 201)
    answers(rig, "p0", 404)
    answers(rig, "p1", 403)
    answers(rig, "p2", 422)
    await rig.bind(gang)
    assert set(rig.seen.refused) == {"p0", "p1", "p2"}
    assert "the pod has gone" in rig.seen.refused["p0"]
    assert set(rig.seen.bound) == {f"p{n}" for n in range(3, 100)}
    assert rig.seen.settled == [KEY]


async def test_a_conflict_with_our_own_binding_is_a_success(rig: Rig) -> None:
    """Rule B6: the first call arrived though its answer did not."""
    answers(rig, "p0", 409)
    shows(rig, "p0", node="a")
    await rig.bind(pods(1))
    assert rig.seen.bound == {"p0": "a"}


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (stored("p0", node="b"), "bound to b by somebody else"),
        (stored("p0", uid="another"), "another pod has taken its name"),
        (stored("p0", deletionTimestamp="2026-01-01T00:00:00Z"), "is being deleted"),
        (stored("p0"), "status 409"),
        (None, "the pod has gone"),
    ],
)
async def test_any_other_conflict_is_a_definite_no(rig: Rig, found: Any, why: str) -> None:
    """Rules B2, B3."""
    answers(rig, "p0", 409)
    rig.api.script("GET", path("p0"), lambda _: failure(404) if found is None else found)
    await rig.bind(pods(1))
    assert why in rig.seen.refused["p0"]


async def cut(request: web.Request) -> web.Response:
    """The server closes the connection instead of answering."""
    assert request.transport is not None
    request.transport.close()
    return web.Response()


@pytest.mark.parametrize("fault", ["cut", 500, 503])
async def test_a_binding_that_arrived_without_an_answer_is_found_by_reading_the_pod(
    rig: Rig, fault: str | int
) -> None:
    """Rule B6: it is not sent again."""
    rig.api.script("POST", f"{path('p0')}/binding", cut if fault == "cut" else lambda _: failure(int(fault)))
    shows(rig, "p0", node="a")
    await rig.bind(pods(1))
    assert rig.seen.bound == {"p0": "a"}
    assert len(rig.bodies()) == 1


async def test_a_binding_without_an_answer_is_repeated_where_the_pod_still_waits(rig: Rig) -> None:
    answers(rig, "p0", 500, 504, 201)
    shows(rig, "p0")
    await rig.bind(pods(1))
    assert rig.seen.bound == {"p0": "a"}
    assert len(rig.bodies()) == 3


async def test_an_unknown_outcome_never_becomes_a_no(rig: Rig) -> None:
    """Neither a read that fails nor a refusal that leaves the pod as it is ends it."""
    answers(rig, "p0", 500, 403)
    reads = [failure(500), failure(500)]
    rig.api.script("GET", path("p0"), lambda _: reads.pop() if reads else stored("p0"))
    rig.start(pods(1))
    await rig.api.until(lambda: len(rig.bodies()) >= 3)
    assert (rig.seen.refused, rig.seen.settled) == ({}, [])
    shows(rig, "p0", node="a")
    await rig.api.until(lambda: rig.seen.bound == {"p0": "a"})


async def test_a_refusal_counts_once_an_earlier_attempt_cannot_be_on_its_way_any_more() -> None:
    now_s = [0.0]
    async with fake_api() as (api, kube), running(kube, lambda: now_s[0]) as (binder, seen):
        rig = Rig(api, binder, seen)
        answers(rig, "p0", 500, 403)
        shows(rig, "p0")
        rig.start(pods(1))
        await api.until(lambda: len(rig.bodies()) >= 3)
        assert seen.refused == {}
        now_s[0] = 61.0
        await api.until(lambda: seen.settled == [KEY])
        assert "status 403" in seen.refused["p0"]


async def test_a_server_that_asks_for_time_gets_it(rig: Rig) -> None:
    """Rule B6: Retry-After; a 429 says that the call was not carried out."""
    answers(rig, "p0", 429, 201, retry_after="1")
    started_s = time.monotonic()
    await rig.bind(pods(1))
    assert time.monotonic() - started_s >= 1.0
    assert rig.seen.bound == {"p0": "a"}
    assert rig.api.count(f"GET {path('p0')}") == 0


async def test_a_pod_that_the_watch_shows_is_asked_for_no_more(rig: Rig) -> None:
    """Its call ends without another write; the event about its binding is not lost."""
    answers(rig, "p0", 500)
    shows(rig, "p0")
    rig.start(pods(1))
    await rig.api.until(lambda: len(rig.bodies()) == 2)
    shows(rig, "p0", node="a")
    rig.binder.observed("ns-u0")
    await rig.api.until(lambda: rig.seen.settled == [KEY])
    assert rig.seen.bound == {"p0": "a"}
    assert len(rig.bodies()) <= 3


async def test_a_pod_that_has_gone_before_its_turn_is_not_bound(rig: Rig) -> None:
    hold = asyncio.Event()

    async def wait(_: web.Request) -> web.Response:
        await hold.wait()
        return web.json_response({})

    gang = pods(40)
    for pod in gang:
        rig.api.script("POST", f"{path(pod.metadata.name)}/binding", wait)
    rig.start(gang)
    rig.binder.observed("ns-u39")
    await rig.api.until(lambda: len(rig.bodies()) == 32)
    hold.set()
    await rig.api.until(lambda: rig.seen.settled == [KEY])
    assert set(rig.seen.bound) == {f"p{n}" for n in range(39)}
    assert rig.seen.refused == {}
    assert len(rig.bodies()) == 39


async def test_a_namespace_that_hangs_does_not_stop_the_others(rig: Rig) -> None:
    """100 pods of another namespace are bound within a second, while 100 calls wait for an answer."""
    release = asyncio.Event()
    times: list[float] = []

    async def hang(_: web.Request) -> web.Response:
        await release.wait()
        return web.json_response({})

    for pod in pods(100):
        rig.api.script("POST", f"{path(pod.metadata.name)}/binding", hang)
    other = pods(100, "other")
    for pod in other:
        rig.api.script(
            "POST",
            f"/api/v1/namespaces/other/pods/{pod.metadata.name}/binding",
            lambda _: (times.append(time.monotonic()), web.json_response({}))[1],
        )
    rig.start(pods(100))
    await rig.api.until(lambda: len(rig.bodies()) == AT_ONCE)
    started_s = time.monotonic()
    rig.start(other)
    await rig.api.until(lambda: len(times) == 100)
    assert times[-1] - started_s < 1.0
    assert rig.seen.refused == {}
    release.set()
    await rig.api.until(lambda: len(rig.seen.settled) == 2)
    assert len(rig.bodies()) == 200


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (Unreachable("cut"), Verdict.UNKNOWN),
        (Busy(500, "x"), Verdict.UNKNOWN),
        (Busy(503, "x"), Verdict.UNKNOWN),
        (Busy(429, "x"), Verdict.NOT_CARRIED_OUT),
        (Unauthorized(401, "x"), Verdict.NOT_CARRIED_OUT),
        (KubeError("the lease is lost"), Verdict.NOT_CARRIED_OUT),
        (NotFound(404, "x"), Verdict.IMPOSSIBLE),
        (Forbidden(403, "x"), Verdict.REFUSED),
        (Invalid(422, "x"), Verdict.REFUSED),
        (ApiError(405, "x"), Verdict.REFUSED),
    ],
)
def test_what_an_error_says_about_the_binding(error: KubeError, verdict: Verdict) -> None:
    assert outcome_of_error(error).verdict is verdict
