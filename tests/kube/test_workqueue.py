"""A key is never queued twice, never with two workers, and never lost."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.backoff import Backoff
from kube.workqueue import WorkQueue


@given(st.lists(st.tuples(st.sampled_from(["add", "get", "done"]), st.sampled_from("abc"))))
def test_no_key_is_lost_doubled_or_given_to_two_workers(steps: list[tuple[str, str]]) -> None:
    async def play() -> None:
        queue: WorkQueue[str] = WorkQueue()
        working: set[str] = set()
        owed: set[str] = set()
        for step, key in steps:
            if step == "add":
                queue.add(key)
                owed.add(key)
            elif step == "get" and len(queue):
                taken = await queue.get()
                assert taken not in working
                working.add(taken)
                owed.discard(taken)
            elif step == "done" and key in working:
                working.discard(key)
                queue.done(key)
        for key in sorted(working):
            queue.done(key)
        left = {await queue.get() for _ in range(len(queue))}
        assert left == owed

    asyncio.run(play())


async def test_a_failed_key_comes_back_later_and_later() -> None:
    queue: WorkQueue[str] = WorkQueue(lambda: Backoff(0.01, 1.0, jitter=lambda: 1.0))
    queue.add("a")
    waits = []
    for _ in range(3):
        async with asyncio.timeout(5):
            waits.append(queue.failed(await queue.get()))
    assert waits == pytest.approx([0.01, 0.02, 0.04])
    queue.close()


async def test_the_earliest_of_two_wishes_counts() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 60)
    queue.add_after("a", 0.01)
    queue.add_after("a", 60)
    async with asyncio.timeout(5):
        assert await queue.get() == "a"
    queue.close()
