"""The scheduling loop: look at gangs in their order, place them whole, hand them to the binder.

Owns: which gangs are looked at when. Does not own: how room is found (`scheduler_core`), how pods are bound
(`scheduler.bind`) or what is told (`scheduler.report`).

A gang is looked at when something about it changed (a member, its PodGroup), and a refused one again when
the ledger gained room or eligible nodes, never by a busy timer. A gang that does not fit holds nothing and
blocks nobody: the next in the queue is tried at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from typing import Final

import structlog

from groups.contract import ConditionReason, Why
from groups.objects import Key
from kube.backoff import Backoff
from scheduler import metrics
from scheduler.bind import Binder, GangBinding
from scheduler.cache import ClusterCache
from scheduler.objects import Pod
from scheduler.report import Reporter
from scheduler.standing import Standing, queue_order
from scheduler_core.gang import Placement
from scheduler_core.match import match
from scheduler_core.reasons import Refusal

log = structlog.get_logger(__name__)

#: Members of a gang arrive one watch event after another: look once for many.
_COALESCE_S: Final = 0.005
#: Tries that came to nothing are followed by a pause in proportion to what they took: a mixed gang whose
#: search is long must not eat the time of watches and writes. The pause is for all: order is sacred (C111).
_REST: Final = 2.0
_MOST_REST_S: Final = 1.0
#: Nothing else runs for so long while gangs are looked at; in between the world may change.
_SLICE_S: Final = 0.02
#: A round begins again at most so often, so that its last gangs are looked at too.
_MOST_RESTARTS: Final = 3
#: Waiting for members or a PodGroup is normal for a moment; said aloud when it lasts longer (case C98).
_GRACE_S: Final = 3.0
#: Refused gangs are looked at again at the latest after this time (rule F4), which also refreshes numbers.
_SWEEP_S: Final = 60.0


class SchedulingLoop:
    """Decides; call `touch` for gangs that changed and `wake` when room appeared."""

    def __init__(self, cache: ClusterCache, binder: Binder, reporter: Reporter) -> None:
        self._cache = cache
        self._binder = binder
        self._reporter = reporter
        self._dirty: set[Key] = set()
        self._parked: dict[Key, int] = {}
        self._fruitless_s = 0.0
        self._waiting_since_s: dict[Key, float] = {}
        self._backoffs: dict[Key, Backoff] = {}
        self._wake = asyncio.Event()

    def touch(self, key: Key) -> None:
        """Look at this gang soon."""
        self._dirty.add(key)
        self._wake.set()

    def wake(self) -> None:
        """Room may have appeared: look at the refused gangs soon."""
        self._wake.set()

    def released(self, pod: Pod, why: str) -> None:
        """A member was not bound after all: give back its room (rule B7)."""
        self._cache.forget(pod.metadata.uid)
        self._reporter.bind_failed(pod, why)

    def abandoned(self, key: Key) -> None:
        """A decision was given up, and all its calls have ended: try again after a growing pause."""
        delay_s = self._backoffs.setdefault(key, Backoff(first_s=0.5, most_s=10.0)).next_delay_s()
        asyncio.get_running_loop().call_later(delay_s, self.touch, key)

    async def run(self) -> None:
        """Decide until cancelled."""
        for key in self._cache.gang_keys():
            self.touch(key)
        rest_s = _COALESCE_S
        while True:
            try:
                async with asyncio.timeout(_SWEEP_S):
                    await self._wake.wait()
            except TimeoutError:
                self._dirty.update(self._parked)
            await asyncio.sleep(rest_s)
            self._wake.clear()
            self._fruitless_s = 0.0
            await self._round()
            rest_s = min(max(_COALESCE_S, _REST * self._fruitless_s), _MOST_REST_S)

    def _take(self) -> set[Key]:
        """The gangs to look at now: what changed, and the refused ones that the ledger's gains may help."""
        gains = self._cache.ledger.room_version
        keys = self._dirty | {key for key, seen in self._parked.items() if seen < gains}
        self._dirty = set()
        return keys

    async def _round(self) -> None:
        """Look at everything that is worth it, in order; begin again when room appears on the way.

        Room that appears while a younger gang is looked at belongs to the older ones (case C111).
        """
        for last in (*[False] * _MOST_RESTARTS, True):
            gains = self._cache.ledger.room_version
            queue = deque(self._in_order(self._take()))
            slice_end_s = time.monotonic() + _SLICE_S
            while queue:
                if time.monotonic() >= slice_end_s:
                    await asyncio.sleep(0)
                    if self._cache.ledger.room_version != gains and not last:
                        break
                    slice_end_s = time.monotonic() + _SLICE_S
                self._look_safely_at(queue.popleft())
            if not queue:
                break
            self._dirty.update(one.key for one in queue)
        metrics.WAITING.labels(Why.NOT_ENOUGH_ROOM).set(len(self._parked))
        metrics.WAITING.labels(Why.WAITING_FOR_MEMBERS).set(len(self._waiting_since_s))

    def _look_safely_at(self, standing: Standing) -> None:
        # Other work ran meanwhile: what changed since is looked at again, never decided upon.
        current = standing if standing.key not in self._dirty else self._cache.standing(standing.key)
        self._dirty.discard(standing.key)
        try:
            self._look_at(current)
        except Exception:  # one gang that cannot be judged must not stop all the others
            log.exception("gang not looked at", group=standing.key)
            metrics.ATTEMPTS.labels(ConditionReason.SCHEDULER_ERROR).inc()

    def _in_order(self, keys: Iterable[Key]) -> list[Standing]:
        standings = [self._cache.standing(key) for key in keys]
        return sorted(standings, key=lambda one: queue_order(one, self._cache.group(one.key)))

    def _look_at(self, standing: Standing) -> None:
        key = standing.key
        self._parked.pop(key, None)
        if not standing.candidates:
            self._waiting_since_s.pop(key, None)
            if self._cache.is_binding(key):
                return
            # All are bound, or the gang is gone: either way its failures are over.
            self._backoffs.pop(key, None)
            if standing.settled and standing.settled >= standing.minimum:
                self._reporter.complete(standing, self._cache.group(key))
        elif standing.why is not None:
            self._wait(standing)
        else:
            self._waiting_since_s.pop(key, None)
            self._try_to_place(standing)

    def _wait(self, standing: Standing) -> None:
        now_s = time.monotonic()
        if standing.key not in self._waiting_since_s:
            self._waiting_since_s[standing.key] = now_s
            asyncio.get_running_loop().call_later(_GRACE_S + 0.1, self.touch, standing.key)
        elif now_s - self._waiting_since_s[standing.key] >= _GRACE_S:
            self._reporter.waiting(standing, self._cache.group(standing.key))

    def _try_to_place(self, standing: Standing) -> None:
        started_s = time.monotonic()
        gang = self._cache.gang(standing)
        answer = match(self._cache.ledger.view(), gang)
        now_s = time.monotonic()
        metrics.MATCH_SECONDS.observe(now_s - started_s)
        if isinstance(answer, Refusal):
            metrics.ATTEMPTS.labels(answer.why).inc()
            self._fruitless_s += now_s - started_s
            self._parked[standing.key] = self._cache.ledger.room_version
            self._reporter.refused(standing, answer, self._cache.group(standing.key))
            return
        metrics.ATTEMPTS.labels(Why.SCHEDULED).inc()
        self._place(standing, answer)

    def _place(self, standing: Standing, placement: Placement) -> None:
        placed = [pod for pod in standing.candidates if pod.metadata.uid in placement.nodes]
        self._reporter.placing(placed)
        self._cache.assume(placement)
        self._binder.bind(GangBinding(standing.key, placed, placement.nodes))
        log.info(
            "gang placed",
            group=standing.key,
            members=len(placed),
            of=len(standing.candidates),
            minimum=standing.minimum,
        )
        if len(placed) < len(standing.candidates):
            # The quorum is reached; the rest are late members now, and say for themselves why they wait.
            self.touch(standing.key)
