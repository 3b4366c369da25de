"""A queue whose entries wait while more urgent calls are under way, but never longer than their share allows.

Owns: the order of levels and the share of each. Does not own: what the entries are, or who is urgent.

While `is_busy` says that more urgent calls are under way, each level hands out so many entries a second as
its rate says. That takes little from the urgent calls, and no level waits for the end of a long burst.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

T = TypeVar("T")

#: How soon the end of the urgent calls is noticed.
_LOOK_EVERY_S: Final = 0.05
_SHORTEST_S: Final = 0.001


class PacedQueue(Generic[T]):
    """Entries of several levels; a lower level number comes first."""

    def __init__(
        self,
        rates_per_s: Sequence[float],
        *,
        is_busy: Callable[[], bool] = lambda: False,
        capacity: int | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`rates_per_s`: the share of each level while `is_busy` holds; `capacity`: entries of one level."""
        self._intervals_s = [1.0 / rate for rate in rates_per_s]
        self._waiting: list[deque[T]] = [deque() for _ in rates_per_s]
        self._next_s = [float("-inf") for _ in rates_per_s]
        self._is_busy = is_busy
        self._capacity = capacity
        self._now_s = now_s
        self._put = asyncio.Event()
        self._turn = asyncio.Lock()

    def __len__(self) -> int:
        return sum(map(len, self._waiting))

    def put(self, entry: T, level: int = 0) -> bool:
        """Queue an entry; False where its level is full, and then the entry is not in it."""
        if self._capacity is not None and len(self._waiting[level]) >= self._capacity:
            return False
        self._waiting[level].append(entry)
        self._put.set()
        return True

    async def get(self) -> T:
        """The next entry, once its turn has come."""
        async with self._turn:
            while True:
                self._put.clear()
                wait_s = None
                for level, waiting in enumerate(self._waiting):
                    if not waiting:
                        continue
                    if not self._is_busy():
                        return waiting.popleft()
                    now_s = self._now_s()
                    if self._next_s[level] <= now_s:
                        self._next_s[level] = now_s + self._intervals_s[level]
                        return waiting.popleft()
                    left_s = max(_SHORTEST_S, self._next_s[level] - now_s)
                    wait_s = min(wait_s or _LOOK_EVERY_S, left_s)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._put.wait()
