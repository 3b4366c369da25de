"""At most one leads, and a leader that cannot renew knows it before anybody else takes over."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from aiohttp import web

from kube.lease import Lease, LeaseLost
from kube.session import Kube
from tests.support.fake_api import FakeApi

Both = tuple[FakeApi, Kube]
PATH = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"


class Store:
    """One lease with optimistic locking, as the API server keeps it."""

    def __init__(self, api: FakeApi) -> None:
        self.lease: dict[str, dict[str, object]] | None = None
        self.version = 0
        self.up = True
        api.script("GET", f"{PATH}/l", self._get)
        api.script("POST", PATH, self._write)
        api.script("PUT", f"{PATH}/l", self._write)

    @property
    def holder(self) -> object:
        return self.lease and self.lease["spec"]["holderIdentity"]

    def _down(self) -> web.Response:
        return web.json_response({"code": 503}, status=503)

    def _get(self, _: web.Request) -> object:
        if not self.up:
            return self._down()
        return self.lease or web.json_response({"code": 404}, status=404)

    async def _write(self, request: web.Request) -> object:
        if not self.up:
            return self._down()
        body = json.loads(await request.read())
        if self.lease and body["metadata"].get("resourceVersion") != str(self.version):
            return web.json_response({"code": 409}, status=409)
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.lease = body
        return body


async def forever() -> None:
    await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def leading(lease: Lease):  # type: ignore[no-untyped-def]
    task = asyncio.create_task(lease.lead(forever))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_only_one_of_two_leads_and_the_other_follows_when_it_ends(scripted: Both) -> None:
    api, kube = scripted
    store = Store(api)
    first, second = (Lease(kube, "ns", "l", name, duration_s=1) for name in ("one", "two"))
    async with leading(first) as one:
        await api.until(first.held)
        async with leading(second):
            seen = api.count(f"GET {PATH}/l")
            await api.until(lambda: api.count(f"GET {PATH}/l") > seen + 6)
            assert first.held()
            assert not second.held()
            one.cancel()
            await api.until(second.held)
            assert store.holder == "two"
            assert not first.held()


async def test_a_released_lease_names_nobody_and_counts_the_next_transition(scripted: Both) -> None:
    api, kube = scripted
    store = Store(api)
    lease = Lease(kube, "ns", "l", "one", duration_s=1)
    async with leading(lease):
        await api.until(lease.held)
    assert store.holder == ""
    async with leading(lease):
        await api.until(lambda: store.holder == "one")
    assert store.lease is not None
    assert store.lease["spec"]["leaseTransitions"] == 1


async def test_a_leader_that_cannot_renew_stops_its_work_in_time(scripted: Both) -> None:
    """style.md 4.1, fault 8: the leading task must not go on."""
    api, kube = scripted
    store = Store(api)
    lease = Lease(kube, "ns", "l", "one", duration_s=1)
    stopped = asyncio.Event()

    async def work() -> None:
        try:
            await forever()
        finally:
            stopped.set()

    leader = asyncio.create_task(lease.lead(work))
    await api.until(lease.held)
    store.up = False
    with pytest.raises(LeaseLost, match="lease ns/l is lost"):
        await asyncio.wait_for(leader, 10)
    assert stopped.is_set()
    assert not lease.held()


async def test_a_frozen_leader_finds_itself_out_of_office(scripted: Both) -> None:
    """Case C79: time passes for a stopped process too, and it asks before each write."""
    api, kube = scripted
    Store(api)
    clock = [0.0]
    lease = Lease(kube, "ns", "l", "one", duration_s=15, now_s=lambda: clock[0])
    async with leading(lease):
        await api.until(lease.held)
        clock[0] = 14.9
        assert lease.held()
        clock[0] = 15.0
        assert not lease.held()


async def test_times_are_utc_with_six_digits(scripted: Both) -> None:
    api, kube = scripted
    store = Store(api)
    lease = Lease(kube, "ns", "l", "one", duration_s=1)
    async with leading(lease):
        await api.until(lease.held)
        assert store.lease is not None
        assert str(store.lease["spec"]["renewTime"]).endswith("Z")
        assert len(str(store.lease["spec"]["renewTime"])) == len("2026-01-01T00:00:00.000000Z")


async def test_work_that_fails_ends_the_leadership_with_its_error(scripted: Both) -> None:
    api, kube = scripted
    Store(api)

    async def work() -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await Lease(kube, "ns", "l", "one", duration_s=1).lead(work)
