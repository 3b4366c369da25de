"""The reflector's copy is true again after every fault, and no fault makes it a burden."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest
from aiohttp import web

from groups.objects import ObjectMeta
from kube.backoff import Backoff
from kube.reflector import Collection, Reflector
from kube.session import Kube
from tests.support.fake_api import FakeApi, bookmark, event, gone, pod


class Thing(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


Both = tuple[FakeApi, Kube]


@contextlib.asynccontextmanager
async def running(kube: Kube, **more: object) -> AsyncIterator[tuple[Reflector[Thing], list[str]]]:
    things = Reflector(kube, Collection("/api/v1/pods", **more), Thing, backoff=Backoff(0.01, 0.05))  # type: ignore[arg-type]
    told: list[str] = []

    def hear(old: Thing | None, new: Thing | None) -> None:
        sign = "~" if old and new else "+" if new else "-"
        told.append(sign + (new or old).metadata.name)  # type: ignore[union-attr]

    things.subscribe(hear)
    task = asyncio.create_task(things.run())
    try:
        yield things, told
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_what_is_listed_and_what_is_watched_is_kept(scripted: Both) -> None:
    api, kube = scripted
    api.items = [pod("a", 1), pod("b", 2)]
    api.watches.append([event("ADDED", pod("c", 11)), event("DELETED", pod("a", 12)), bookmark(15)])
    async with running(kube) as (things, told):
        await api.until(lambda: "-a" in told)
        assert set(things.items) == {"ns/b", "ns/c"}
        assert told == ["+a", "+b", "+c", "-a"]


async def test_a_410_in_the_stream_makes_it_list_again_and_tell_what_vanished(scripted: Both) -> None:
    """Case C71."""
    api, kube = scripted
    api.items = [pod("a", 1)]
    api.later.append(([pod("a", 1), pod("c", 12), pod("d", 13)], 14))
    api.watches.append([event("ADDED", pod("b", 11)), gone()])
    api.watches.append([])
    async with running(kube) as (things, told):
        await api.until(lambda: set(things.items) == {"ns/a", "ns/c", "ns/d"})
        assert {"+b", "-b"} <= set(told)
        assert api.count("LIST") == 2


async def test_a_410_on_connecting_makes_it_list_again(scripted: Both) -> None:
    """Case C71, second half."""
    api, kube = scripted
    api.watches.append(web.json_response({"code": 410, "message": "too old"}, status=410))
    async with running(kube):
        await api.until(lambda: api.count("LIST") == 2 and api.count("WATCH") == 2)


async def test_a_cut_stream_is_resumed_from_the_last_version_without_a_new_list(scripted: Both) -> None:
    api, kube = scripted
    api.watches.append([event("ADDED", pod("a", 11)), bookmark(17)])
    api.watches.append([event("ADDED", pod("b", 18))])
    async with running(kube) as (things, _):
        await api.until(lambda: "ns/b" in things.items)
        asked = [query["resourceVersion"] for name, _, query, _ in api.requests if name == "WATCH"]
        assert asked[:2] == ["10", "17"]
        assert api.count("LIST") == 1


async def test_a_line_cut_in_the_middle_is_no_event(scripted: Both) -> None:
    """style.md 4.1, fault 2: the library hands such a line out as a string."""
    api, kube = scripted
    whole = event("ADDED", pod("a", 11))
    api.watches.append([whole[: len(whole) // 2]])
    api.watches.append([whole])
    async with running(kube) as (things, told):
        await api.until(lambda: "ns/a" in things.items)
        assert told == ["+a"]


async def test_empty_watches_slow_down_and_lead_to_a_fresh_list(scripted: Both) -> None:
    """Case C73: a pod that shows up only in the list is found, and there is no busy loop."""
    api, kube = scripted
    api.hold_open = False
    async with running(kube) as (things, _):
        await api.until(lambda: api.count("WATCH") >= 3)
        api.items = [pod("late", 20)]
        await api.until(lambda: "ns/late" in things.items)
        assert api.count("WATCH") >= 5


async def test_an_object_of_an_odd_shape_does_not_hide_the_others(scripted: Both) -> None:
    api, kube = scripted
    odd = {"metadata": {"name": 7, "resourceVersion": "3"}}
    api.items = [pod("a", 1), odd]
    api.watches.append([event("ADDED", odd), event("ADDED", pod("b", 12))])
    async with running(kube) as (things, _):
        await api.until(lambda: set(things.items) == {"ns/a", "ns/b"})


async def test_another_object_of_the_same_name_is_told_as_vanished_and_appeared(scripted: Both) -> None:
    api, kube = scripted
    api.items = [pod("a", 1, uid="one")]
    api.watches.append([event("MODIFIED", pod("a", 12, uid="two"))])
    async with running(kube) as (_, told):
        await api.until(lambda: len(told) == 3)
        assert told == ["+a", "-a", "+a"]


async def test_an_expired_continue_token_starts_the_list_anew(scripted: Both) -> None:
    api, kube = scripted
    pages = iter(
        [
            {"metadata": {"resourceVersion": "5", "continue": "more"}, "items": [pod("a", 1)]},
            web.json_response({"code": 410, "message": "continue token expired"}, status=410),
            {"metadata": {"resourceVersion": "6", "continue": "more"}, "items": [pod("a", 1)]},
            {"metadata": {"resourceVersion": "6"}, "items": [pod("b", 2)]},
        ]
    )

    def answer(request: web.Request) -> object:
        return next(pages) if "watch" not in request.query else web.Response()

    api.script("GET", "/api/v1/pods", answer)
    async with running(kube) as (things, _):
        await things.wait_synced(5)
        assert set(things.items) == {"ns/a", "ns/b"}


async def test_a_server_that_says_when_to_come_back_is_heeded(scripted: Both) -> None:
    """Case C77: Retry-After is kept."""
    api, kube = scripted
    loop = asyncio.get_running_loop()
    times: list[float] = []

    def answer(request: web.Request) -> object:
        times.append(loop.time())
        if len(times) == 1:
            return web.json_response({"code": 429}, status=429, headers={"Retry-After": "1"})
        return {"metadata": {"resourceVersion": "1"}, "items": []}

    api.script("GET", "/api/v1/pods", answer)
    async with running(kube) as (things, _):
        await things.wait_synced(5)
        assert times[1] - times[0] >= 1.0


@pytest.mark.parametrize("selector", ["spec.schedulerName=fluence"])
async def test_the_field_selector_goes_with_list_and_watch(scripted: Both, selector: str) -> None:
    api, kube = scripted
    async with running(kube, field_selector=selector):
        await api.until(lambda: api.count("WATCH") == 1)
        assert all(query["fieldSelector"] == selector for _, _, query, _ in api.requests)
