"""A decision is carried out exactly, or given up in an orderly way: faults scripted, over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from groups.objects import Key, ObjectMeta
from kube.session import Kube
from scheduler.bind import Binder, GangBinding
from scheduler.pods import CachedPod
from tests.support.fake_api import FakeApi, fake_api

KEY = Key("ns/g")


def pods(count: int) -> list[CachedPod]:
    return [CachedPod(ObjectMeta(name=f"p{n}", namespace="ns", uid=f"u{n}"), None) for n in range(count)]


def path(name: str) -> str:
    return f"/api/v1/namespaces/ns/pods/{name}"


def failure(status: int) -> web.Response:
    return web.json_response({"code": status, "message": f"status {status}"}, status=status)


def stored(name: str, node: str = "", uid: str = "") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": uid or f"u{name[1:]}"},
        "spec": {"nodeName": node},
    }


@dataclass
class Seen:
    """What the binder told."""

    bound: dict[str, str] = field(default_factory=dict)
    released: dict[str, str] = field(default_factory=dict)
    abandoned: list[Key] = field(default_factory=list)
    leads: bool = True
    nodes: set[str] = field(default_factory=lambda: {"a", "b"})


@dataclass
class Rig:
    """A binder, the server that it talks to, and what it told."""

    api: FakeApi
    binder: Binder
    seen: Seen

    async def bind(self, gang: list[CachedPod], node: str = "a") -> None:
        self.binder.bind(GangBinding(KEY, "run-1", gang, {pod.metadata.uid: node for pod in gang}))
        done = self.seen.bound, self.seen.released
        await self.api.until(lambda: sum(map(len, done)) == len(gang))

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for name, _, _, body in self.api.requests if name.endswith("/binding")]


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with fake_api() as (api, kube), running(kube) as (binder, seen):
        yield Rig(api, binder, seen)


@contextlib.asynccontextmanager
async def running(kube: Kube) -> AsyncIterator[tuple[Binder, Seen]]:
    seen = Seen()
    binder = Binder(
        kube,
        may_bind=lambda: seen.leads,
        node_is_open=lambda node, _uid: node in seen.nodes,
        on_bound=lambda _key, pod, node: seen.bound.update({pod.metadata.name: node}),
        on_refused=lambda _key, pod, why: seen.released.update({pod.metadata.name: why}),
        on_settled=seen.abandoned.append,
    )
    task = asyncio.create_task(binder.run())
    try:
        yield binder, seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def answers(rig: Rig, name: str, *replies: Any) -> None:
    left = iter(replies)
    rig.api.script("POST", f"{path(name)}/binding", lambda _: next(left))


async def test_each_member_is_bound_by_its_uid(rig: Rig) -> None:
    """Rules B1, B2: a namesake is never bound by an old decision."""
    gang = pods(3)
    for pod in gang:
        answers(rig, pod.metadata.name, {})
    await rig.bind(gang)
    assert rig.seen.bound == {"p0": "a", "p1": "a", "p2": "a"}
    assert {(b["metadata"]["name"], b["metadata"]["uid"]) for b in rig.bodies()} == {
        (f"p{n}", f"u{n}") for n in range(3)
    }
    assert rig.seen.abandoned == [KEY]


async def test_a_node_that_went_after_the_plan_gets_no_binding(rig: Rig) -> None:
    """Case C103, rule T7: none of four, and the room of each is given back once."""
    rig.seen.nodes = {"a"}
    await rig.bind(pods(4), node="b")
    assert rig.bodies() == []
    assert set(rig.seen.released) == {"p0", "p1", "p2", "p3"}
    assert "node b has gone" in rig.seen.released["p0"]


async def test_no_binding_is_sent_once_the_lease_is_lost(rig: Rig) -> None:
    """Case C79."""
    rig.seen.leads = False
    await rig.bind(pods(2))
    assert rig.bodies() == []
    assert rig.seen.bound == {}


async def test_one_failure_gives_up_the_rest_and_counts_once(rig: Rig) -> None:
    """Rule B7: what is bound stays bound; a gang of many is one failed decision, not many."""
    gang = pods(100)
    gone = asyncio.Event()

    async def refuse(_: web.Request) -> web.Response:
        gone.set()
        return failure(404)

    async def after(_: web.Request) -> web.Response:
        await gone.wait()
        return web.json_response({})

    rig.api.script("POST", f"{path('p0')}/binding", refuse)
    for pod in gang[1:]:
        rig.api.script("POST", f"{path(pod.metadata.name)}/binding", after)
    await rig.bind(gang)
    assert "the pod has gone" in rig.seen.released["p0"]
    assert len(rig.bodies()) < len(gang)
    assert set(rig.seen.bound) | set(rig.seen.released) == {f"p{n}" for n in range(100)}
    assert rig.seen.abandoned == [KEY]


async def test_a_conflict_with_our_own_binding_is_a_success(rig: Rig) -> None:
    """Rule B6: the first call arrived though its answer did not."""
    answers(rig, "p0", failure(409))
    rig.api.script("GET", path("p0"), lambda _: stored("p0", node="a"))
    await rig.bind(pods(1))
    assert rig.seen.bound == {"p0": "a"}


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (stored("p0", node="b"), "bound to b by somebody else"),
        (stored("p0", uid="another"), "another pod has taken its name"),
        (stored("p0"), "status 409"),
        (None, "the pod has gone"),
    ],
)
async def test_any_other_conflict_gives_the_room_back(rig: Rig, found: Any, why: str) -> None:
    """Rules B2, B3."""
    answers(rig, "p0", failure(409))
    rig.api.script("GET", path("p0"), lambda _: failure(404) if found is None else found)
    await rig.bind(pods(1))
    assert why in rig.seen.released["p0"]
    assert rig.seen.abandoned == [KEY]


async def test_a_busy_server_is_asked_again(rig: Rig) -> None:
    """Rule B6: 5xx and 429 are retried."""
    answers(rig, "p0", failure(500), failure(429), {})
    await rig.bind(pods(1))
    assert rig.seen.bound == {"p0": "a"}
    assert len(rig.bodies()) == 3
