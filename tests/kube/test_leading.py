"""Caches outlive a lost lease, and the work of each term begins anew on caches that have caught up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from groups.objects import ObjectMeta
from kube.errors import LeaseLost
from kube.leading import not_listed, watch_and_lead
from kube.lease import Lease
from kube.reflector import Collection, Reflector
from kube.term import LeaseTimes, Term
from tests.kube.test_lease import D, now_s, until
from tests.support.scripted_kube import LeaseServer, ScriptedKube

pytestmark = pytest.mark.looptime

AWAY_S = 300


class Thing(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


class Leader:
    """A process that notes what its caches showed at the start of each term."""

    def __init__(self, server: LeaseServer, identity: str = "one") -> None:
        self.kube = ScriptedKube(server)
        self.things: Reflector[Thing] = Reflector(self.kube, Collection("/things"), Thing)
        self.lease = Lease(self.kube, "ns", "l", identity, duration_s=D, now_s=now_s)
        self.terms: list[Term] = []
        self.shown: list[set[str]] = []
        self.ended = 0

    async def run(self) -> None:
        await watch_and_lead([self.things], self.lease, self._work)

    async def _work(self, term: Term) -> None:
        self.terms.append(term)
        self.shown.append({key.partition("/")[2] for key in self.things.items})
        try:
            await asyncio.Event().wait()
        finally:
            self.ended += 1


@asynccontextmanager
async def running(leader: Leader) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(leader.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_api_server_that_is_away_for_five_minutes_costs_no_list_and_no_process() -> None:
    """Case C77: the watch is resumed, the work begins anew, and the process lives."""
    server = LeaseServer()
    server.put("before")
    leader = Leader(server)
    async with running(leader) as process:
        await until(lambda: len(leader.terms) == 1)
        watches = server.watches
        server.up = False
        server.cut_watches()
        await asyncio.sleep(AWAY_S)
        assert not process.done()
        assert leader.ended == 1
        assert not leader.lease.held()
        assert not not_listed([leader.things])
        assert set(leader.things.items) == {"ns/before"}
        server.put("while it was away")
        server.up, back_s = True, now_s()
        await until(lambda: len(leader.terms) == 2)
        assert now_s() - back_s < D
        assert leader.shown == [{"before"}, {"before", "while it was away"}]
        assert server.lists == 1
        assert server.watches == watches + 1


async def test_a_term_begins_only_when_the_caches_show_what_another_leader_wrote() -> None:
    """The stream of the one that waits is broken without a sign, so that it has missed everything."""
    server = LeaseServer()
    first, second = Leader(server, "one"), Leader(server, "two")
    async with running(first) as one:
        await until(lambda: len(first.terms) == 1)
        async with running(second):
            await until(lambda: second.things.is_synced)
            await asyncio.sleep(1)
            server.deaf = {second.kube}
            server.put("written by the first")
            await asyncio.sleep(5)
            assert not second.things.items
            one.cancel()
            server.deaf = set()  # new watches work; the old one stays silent
            await until(lambda: len(second.terms) == 1)
            assert second.shown == [{"written by the first"}]
            assert server.lists == 2


async def test_work_of_an_old_term_cannot_write_in_a_later_one() -> None:
    server = LeaseServer()
    leader = Leader(server)
    async with running(leader):
        await until(lambda: len(leader.terms) == 1)
        await leader.terms[0].kube.post("/things", {"term": 1})
        server.touch_lease(holderIdentity="")
        await until(lambda: len(leader.terms) == 2)
        with pytest.raises(LeaseLost):
            await leader.terms[0].kube.post("/things", {"term": 1})
        await leader.terms[1].kube.post("/things", {"term": 2})
    assert [body["term"] for _, body in server.writes] == [1, 2]


async def test_no_term_begins_while_a_write_of_the_last_one_may_still_arrive() -> None:
    """Neither one of this process nor, by releasing the lease, one of another."""
    server = LeaseServer()
    leader, other = Leader(server), Leader(server, "two")
    async with running(leader) as process:
        await until(lambda: len(leader.terms) == 1)
        async with running(other):
            await asyncio.sleep(1)
            server.after = lambda method, path: "lost" if method == "POST" else ""
            writing = asyncio.create_task(leader.terms[0].kube.post("/things", {}))
            await until(lambda: bool(server.writes))
            writing.cancel()
            process.cancel()
            cancelled_s = now_s()
            await until(lambda: len(other.terms) == 1)
            assert D > now_s() - cancelled_s >= LeaseTimes(D).margin_s


async def test_a_write_of_a_leader_has_a_deadline_within_the_lease() -> None:
    server = LeaseServer()
    leader = Leader(server)
    async with running(leader):
        await until(lambda: len(leader.terms) == 1)
        server.after = lambda method, path: "lost" if method == "POST" else ""
        started_s = now_s()
        with pytest.raises(Exception, match="no answer"):
            await leader.terms[0].kube.post("/things", {}, timeout_s=100)
        assert now_s() - started_s == pytest.approx(LeaseTimes(D).write_timeout_s, abs=0.1)


async def test_a_fault_of_the_work_ends_the_process() -> None:
    leader = Leader(LeaseServer())

    async def work(_: Term) -> None:
        raise RuntimeError("broken")

    leader._work = work  # type: ignore[method-assign]
    with pytest.raises(ExceptionGroup) as raised:
        await leader.run()
    assert raised.group_contains(RuntimeError, match="broken")
