"""A queue of keys that never contains a key twice and never gives one to two workers.

The semantics of client-go's work queue: a key that is added while a worker has it is queued again once it is
done; `add_after` adds it later; a failed key is queued again after a pause that grows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from kube.backoff import Backoff

K = TypeVar("K", bound=str)


class WorkQueue(Generic[K]):
    """Keys that wait for a worker, in the order in which they were added."""

    def __init__(self, backoff: Callable[[], Backoff] = lambda: Backoff(first_s=0.05, most_s=30.0)) -> None:
        self._order: deque[K] = deque()
        self._waiting: set[K] = set()
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._later: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, Backoff] = {}
        self._new_backoff = backoff
        self._some = asyncio.Event()

    def __len__(self) -> int:
        return len(self._order)

    def add(self, key: K) -> None:
        """Queue `key`; if it is queued already, nothing changes."""
        if (timer := self._later.pop(key, None)) is not None:
            timer.cancel()
        if key in self._working:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._order.append(key)
            self._some.set()

    def add_after(self, key: K, delay_s: float) -> None:
        """Add `key` in `delay_s` seconds; of several such calls the earliest time counts."""
        loop = asyncio.get_running_loop()
        due = loop.time() + delay_s
        pending = self._later.get(key)
        if pending is not None:
            if pending.when() <= due:
                return
            pending.cancel()
        self._later[key] = loop.call_at(due, self._due, key)

    def _due(self, key: K) -> None:
        self._later.pop(key, None)
        self.add(key)

    async def get(self) -> K:
        """Take the next key; call `done` or `failed` for it afterwards."""
        while not self._order:
            self._some.clear()
            await self._some.wait()
        key = self._order.popleft()
        self._waiting.discard(key)
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        """The work on `key` succeeded."""
        self._failures.pop(key, None)
        self._finish(key)

    def failed(self, key: K) -> float:
        """The work on `key` failed: queue it again after a growing pause, which is returned in seconds."""
        delay_s = self._failures.setdefault(key, self._new_backoff()).next_delay_s()
        self._working.discard(key)
        # A change in the meantime does not shorten the pause, or a failure could become a busy loop.
        self._again.discard(key)
        self.add_after(key, delay_s)
        return delay_s

    def _finish(self, key: K) -> None:
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Cancel the timers."""
        for timer in self._later.values():
            timer.cancel()
        self._later.clear()
