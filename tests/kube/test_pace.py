"""Entries wait for more urgent calls, and each level gets its share meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from kube.pace import PacedQueue


@pytest.fixture
def busy() -> list[bool]:
    return [True]


@pytest.mark.looptime
async def test_each_level_gets_its_share_while_others_are_busy(busy: list[bool]) -> None:
    loop = asyncio.get_running_loop()
    queue: PacedQueue[str] = PacedQueue((10.0, 2.0), is_busy=lambda: busy[0], now_s=loop.time)
    for number in range(100):
        queue.put(f"first {number}", 0)
        queue.put(f"second {number}", 1)
    taken = []
    start_s = loop.time()
    while loop.time() - start_s < 5.0:
        taken.append(await queue.get())
    first = [one for one in taken if one.startswith("first")]
    second = [one for one in taken if one.startswith("second")]
    assert first == [f"first {number}" for number in range(len(first))]
    assert 45 <= len(first) <= 55
    assert 9 <= len(second) <= 12


@pytest.mark.looptime
async def test_an_entry_that_comes_does_not_wait_for_the_share_of_a_lower_level(busy: list[bool]) -> None:
    loop = asyncio.get_running_loop()
    queue: PacedQueue[str] = PacedQueue((10.0, 0.1), is_busy=lambda: busy[0], now_s=loop.time)
    queue.put("second", 1)
    queue.put("second", 1)
    assert await queue.get() == "second"
    start_s = loop.time()
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    assert not waiting.done()
    queue.put("first", 0)
    assert await waiting == "first"
    assert loop.time() - start_s < 1.2


@pytest.mark.looptime
async def test_nothing_waits_once_nobody_is_busy(busy: list[bool]) -> None:
    loop = asyncio.get_running_loop()
    queue: PacedQueue[int] = PacedQueue((0.01,), is_busy=lambda: busy[0], now_s=loop.time)
    for number in range(50):
        queue.put(number)
    assert await queue.get() == 0
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    busy[0] = False
    start_s = loop.time()
    assert await waiting == 1
    assert [await queue.get() for _ in range(48)] == list(range(2, 50))
    assert loop.time() - start_s < 0.2


def test_a_full_level_takes_no_more() -> None:
    queue: PacedQueue[int] = PacedQueue((1.0, 1.0), capacity=2)
    assert [queue.put(number) for number in range(3)] == [True, True, False]
    assert queue.put(3, 1)
    assert len(queue) == 3
