"""At most one process leads, and a leader that cannot renew stops before another one may begin."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.errors import LeaseLost
from kube.lease import Lease
from kube.term import LeaseTimes, Term, boot_time_s
from tests.support.scripted_kube import LeaseServer, ScriptedKube

pytestmark = pytest.mark.looptime

D = 15
R = LeaseTimes(D).renew_deadline_s


def now_s() -> float:
    return asyncio.get_running_loop().time()


@pytest.fixture
def server() -> LeaseServer:
    return LeaseServer()


def lease_of(server: LeaseServer, identity: str, clock: Callable[[], float] = now_s, **more: Any) -> Lease:
    return Lease(ScriptedKube(server), "ns", "l", identity, duration_s=D, now_s=clock, **more)


async def forever(_: Term) -> None:
    await asyncio.Event().wait()


async def until(condition: Callable[[], bool], deadline_s: float = 60) -> None:
    async with asyncio.timeout(deadline_s):
        while not condition():
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def leading(
    lease: Lease, work: Callable[[Term], Awaitable[None]] = forever
) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(lease.lead(work))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@given(st.integers(3, 3600))
async def test_every_write_of_a_leader_is_over_before_another_may_take_the_lease(duration_s: int) -> None:
    times = LeaseTimes(duration_s)
    assert times.renew_deadline_s + times.write_timeout_s + times.margin_s < duration_s
    # At least two more renewals after one that was not answered.
    assert 3 * times.renew_every_s + times.margin_s < times.renew_deadline_s


async def test_only_one_of_two_leads_and_the_other_follows_when_it_ends(server: LeaseServer) -> None:
    first, second = lease_of(server, "one"), lease_of(server, "two")
    async with leading(first) as one:
        await until(first.held)
        async with leading(second):
            await asyncio.sleep(10 * D)
            assert first.held()
            assert not second.held()
            one.cancel()
            await until(second.held, 2)
            assert server.holder == "two"
            assert not first.held()


async def test_a_released_lease_names_no_holder_and_counts_the_next_term(server: LeaseServer) -> None:
    lease = lease_of(server, "one")
    async with leading(lease):
        await until(lease.held)
    assert server.holder == ""
    async with leading(lease):
        await until(lambda: server.holder == "one")
    assert server.lease is not None
    assert server.lease["spec"]["leaseTransitions"] == 1


async def test_a_leader_that_cannot_renew_stops_its_work_in_time(server: LeaseServer) -> None:
    lease = lease_of(server, "one")
    stopped_s: list[float] = []

    async def work(_: Term) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped_s.append(now_s())

    async with leading(lease, work) as leader:
        await until(lease.held)
        await asyncio.sleep(D)
        server.up, down_s = False, now_s()
        with pytest.raises(LeaseLost, match=r"lease ns/l is lost: not renewed for 7\.5 s"):
            await leader
    assert stopped_s[0] - down_s <= R
    assert not lease.held()


@pytest.mark.parametrize("status", [409, 429, 500, 503])
async def test_a_few_renewals_that_fail_do_not_end_a_term(
    server: LeaseServer, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = lease_of(server, "one")
    async with leading(lease) as leader:
        await until(lease.held)
        answer, failures = server.answer, iter(range(2))

        def flaky(method: str, path: str, params: Any, body: bytes) -> Any:
            if method == "PUT" and next(failures, None) is not None and status != 409:
                return status, {"code": status}
            return answer(method, path, params, body)

        monkeypatch.setattr(server, "answer", flaky)
        await asyncio.sleep(2 * D)
        assert lease.held()
        assert not leader.done()


async def test_a_renewal_whose_answer_was_lost_is_recognised(server: LeaseServer) -> None:
    """The object then has a version that this process wrote and has never read."""
    lease = lease_of(server, "one")
    async with leading(lease) as leader:
        await until(lease.held)
        lost = iter(["lost"])
        server.after = lambda method, path: next(lost, "") if method == "PUT" else ""
        await asyncio.sleep(2 * D)
        assert lease.held()
        assert not leader.done()
        assert server.lease is not None
        assert server.lease["spec"]["leaseTransitions"] == 0


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"holderIdentity": "two"}, id="taken"),
        pytest.param({"holderIdentity": ""}, id="taken and released"),
        pytest.param({"renewTime": "2020-01-01T00:00:00.000000Z"}, id="restored from a backup"),
    ],
)
async def test_a_lease_that_anybody_else_has_written_is_lost(server: LeaseServer, change: Any) -> None:
    """Case C79: a lease that is free again is not renewed, since another process may have led meanwhile."""
    lease = lease_of(server, "one")
    async with leading(lease) as leader:
        await until(lease.held)
        server.touch_lease(**change)
        with pytest.raises(LeaseLost, match="it was changed, and its holder is"):
            await leader
        assert not lease.held()


async def test_a_lease_that_was_deleted_is_lost(server: LeaseServer) -> None:
    lease = lease_of(server, "one")
    async with leading(lease) as leader:
        await until(lease.held)
        server.lease = None
        with pytest.raises(LeaseLost, match="it was deleted"):
            await leader


async def test_a_process_that_wakes_up_sends_no_renewal(server: LeaseServer) -> None:
    """Case C79: while it slept another process has taken the lease and released it."""
    asleep_s = [0.0]
    lease = lease_of(server, "one", lambda: now_s() + asleep_s[0])
    async with leading(lease) as leader:
        await until(lease.held)
        requests: list[str] = []
        server.before = lambda method, path: requests.append(method)
        asleep_s[0] = D + 5.0
        server.touch_lease(holderIdentity="")
        assert not lease.held()
        with pytest.raises(LeaseLost, match="not renewed"):
            await leader
        assert requests == []


async def test_time_in_which_the_machine_is_suspended_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.clock_gettime", lambda clock: {7: 1234.5}[clock])
    assert boot_time_s() == 1234.5


async def test_a_waiting_process_counts_from_after_the_answer(server: LeaseServer) -> None:
    """The holder may have renewed while the question was on its way."""
    one, two = ScriptedKube(server), ScriptedKube(server)
    first, second = (
        Lease(kube, "ns", "l", name, duration_s=D, now_s=now_s) for kube, name in ((one, "one"), (two, "two"))
    )
    renewed_s: list[float] = []
    async with leading(first):
        await until(first.held)
        two.latency_s = 2.0
        async with leading(second):
            server.after = lambda method, path: renewed_s.append(now_s()) or "" if method == "PUT" else ""
            # The first question of the second is on its way while the holder renews for the last time.
            await until(lambda: bool(renewed_s))
            one.connected = False
            two.latency_s = 0.001
            await until(second.held, 3 * D)
            # The last renewal but the one by which the second process took the lease.
            assert now_s() - renewed_s[-2] >= D


async def test_work_that_fails_ends_the_term_with_its_error(server: LeaseServer) -> None:
    async def work(_: Term) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await lease_of(server, "one").lead(work)
    assert server.holder == ""
