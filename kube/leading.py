"""Run a process with leader election: caches for its whole life, and work while it leads.

Owns: the order of steps, from the first lists to the end. Does not own: what is cached, or the work.

Reflectors feed the caches and only read. They continue while the lease is lost, so an API server that is away
for minutes causes no new lists (case C77). The objects that do the work are created again for each term, once
the caches are up to date, so that nothing of an old term continues in the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import structlog

from kube import heap
from kube.backoff import Backoff
from kube.catchup import catch_up
from kube.errors import LeaseLost
from kube.lease import Lease
from kube.reflector import Reflector, all_synced
from kube.term import Term

log = structlog.get_logger(__name__)


def not_listed(reflectors: Sequence[Reflector[Any]]) -> list[str]:
    """Why a process is not ready; empty if it is.

    A process that waits for the lease is ready: it can become the leader at any moment.
    """
    return [f"{one.collection.path} is not listed yet" for one in reflectors if not one.is_synced]


async def watch_and_lead(
    reflectors: Sequence[Reflector[Any]],
    lease: Lease,
    make_term: Callable[[Term], Awaitable[None]],
    *beside: Coroutine[Any, Any, None],
) -> None:
    """Run `reflectors` and `beside` until cancelled, and the work of `make_term` in each term.

    `make_term(term)` is called once for each term, when all reflectors are up to date. It creates the parts
    of the work, on the caches, and runs them until it is cancelled. It writes only through `term.kube`.
    """
    # Modules and the like: they are never garbage.
    heap.exempt_new()
    async with asyncio.TaskGroup() as tasks:
        watching = [
            tasks.create_task(one.run(), name=f"reflector {one.collection.path}") for one in reflectors
        ]
        watching += [tasks.create_task(one) for one in beside]
        try:
            await all_synced(reflectors)
            heap.exempt_all()
            await _lead_again_and_again(reflectors, lease, make_term)
        finally:
            for task in watching:
                task.cancel()


async def _lead_again_and_again(
    reflectors: Sequence[Reflector[Any]], lease: Lease, make_term: Callable[[Term], Awaitable[None]]
) -> None:
    async def work(term: Term) -> None:
        async with asyncio.TaskGroup() as tasks:
            for one in reflectors:
                tasks.create_task(catch_up(one), name=f"catch up {one.collection.path}")
        backoff.reset()
        await make_term(term)

    backoff = Backoff(first_s=0.2, most_s=5.0)
    while True:
        lost = ""
        try:
            await lease.lead(work)
        except* LeaseLost as errors:
            lost = str(errors.exceptions[0])
        if not lost:
            return
        log.warning("this process is not the leader any more; it continues to watch", error=lost)
        await asyncio.sleep(backoff.next_delay_s())
