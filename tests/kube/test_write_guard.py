"""A write that only a leader may make is checked on each attempt, when its bytes are handed over."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest
from aiohttp import web

from kube.errors import LeaseLost, Unreachable
from kube.session import Kube
from tests.support.fake_api import FakeApi

Both = tuple[FakeApi, Kube]
WRITES = ("POST", "PUT", "PATCH", "DELETE")


class Guard:
    """Allows the first `allowed` checks."""

    def __init__(self, allowed: float, write_timeout_s: float = 5.0) -> None:
        self.allowed = allowed
        self.write_timeout_s = write_timeout_s
        self.checks = 0
        self.lost = 0

    def check(self) -> None:
        self.checks += 1
        if self.checks > self.allowed:
            raise LeaseLost("lost")

    def unanswered(self) -> None:
        self.lost += 1


def answer_all(api: FakeApi, answer: Callable[[web.Request], object]) -> None:
    for method in (*WRITES, "GET"):
        api.script(method, "/x", answer)


async def write(kube: Kube, method: str) -> bytes:
    return await kube.request(method, "/x", body=b'{"a":1}')


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize("allowed", [0, 1])
async def test_nothing_is_sent_once_the_guard_refuses(scripted: Both, method: str, allowed: int) -> None:
    """Also when it agreed at first, and refuses when a connection is there."""
    api, kube = scripted
    answer_all(api, lambda _: {})
    guard = Guard(allowed)
    with pytest.raises(LeaseLost):
        await write(kube.guarded(guard), method)
    assert guard.lost == 0
    await kube.get("/x")  # the session goes on, and nothing that was held back is sent with this
    assert [name for name, *_ in api.requests] == ["GET /x"]


@pytest.mark.parametrize("method", WRITES)
async def test_a_write_that_is_allowed_arrives_whole(scripted: Both, method: str) -> None:
    api, kube = scripted
    answer_all(api, lambda _: {"ok": True})
    guard = Guard(2)
    assert await write(kube.guarded(guard), method) == b'{"ok": true}'
    assert api.requests[0][3] == b'{"a":1}'
    assert (guard.checks, guard.lost) == (2, 0)


async def test_reads_are_never_refused(scripted: Both) -> None:
    api, kube = scripted
    answer_all(api, lambda _: {})
    assert await kube.guarded(Guard(0)).get("/x") == b"{}"


async def test_a_write_that_is_repeated_with_fresh_credentials_is_checked_again(scripted: Both) -> None:
    api, kube = scripted
    answer_all(api, lambda _: web.json_response({"code": 401}, status=401))
    with pytest.raises(LeaseLost):
        await write(kube.guarded(Guard(2)), "POST")
    assert api.count("POST /x") == 1


async def test_a_write_that_waits_for_a_connection_is_checked_when_it_gets_one(scripted: Both) -> None:
    """Two requests hold the only two connections; the lease is lost before one of them is free."""
    api, _ = scripted
    release = asyncio.Event()

    async def held(_: web.Request) -> web.Response:
        await release.wait()
        return web.json_response({})

    answer_all(api, held)
    guard = Guard(float("inf"))
    kube = _with_connections(scripted[1], 2)
    try:
        under_way = [asyncio.create_task(kube.get("/x")) for _ in range(2)]
        await api.until(lambda: api.count("GET /x") == 2)
        waiting = asyncio.create_task(write(kube.guarded(guard), "POST"))
        await api.until(lambda: guard.checks == 1)
        guard.allowed = 1
        release.set()
        with pytest.raises(LeaseLost):
            await waiting
        await asyncio.gather(*under_way)
        assert api.count("POST /x") == 0
    finally:
        await kube.close()


def _with_connections(kube: Kube, connections: int) -> Kube:
    return Kube(kube._credentials, "test", connections)


async def test_a_write_has_the_timeout_of_its_guard_and_its_unknown_outcome_is_noted(scripted: Both) -> None:
    api, kube = scripted
    answer_all(api, lambda _: asyncio.sleep(3600))
    guard = Guard(2, write_timeout_s=0.05)
    with pytest.raises(Unreachable):
        await write(kube.guarded(guard), "POST")
    assert guard.lost == 1


async def test_a_write_that_is_cancelled_has_an_unknown_outcome(scripted: Both) -> None:
    api, kube = scripted
    answer_all(api, lambda _: asyncio.sleep(3600))
    guard = Guard(2)
    writing = asyncio.create_task(write(kube.guarded(guard), "POST"))
    await api.until(lambda: api.count("POST /x") == 1)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert guard.lost == 1


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the kernel has no such limit")
async def test_the_kernel_does_not_go_on_sending_what_was_given_up(
    scripted: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, kube = scripted
    answer_all(api, lambda _: {})
    made: list[socket.socket] = []
    real = socket.socket

    def note(*args: object, **more: object) -> socket.socket:
        made.append(real(*args, **more))  # type: ignore[arg-type]
        return made[-1]

    limited = Kube(kube._credentials, "test", unacknowledged_s=2.25)
    monkeypatch.setattr("kube.session.socket.socket", note)
    try:
        await limited.get("/x")
        assert made[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 2250
    finally:
        await limited.close()
