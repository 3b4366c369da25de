"""The scheduling loop: look at gangs in their order, place them whole, hand them to the binder.

Owns: the rounds, and what a look at one gang leads to. Does not own: when a gang is due (`scheduler.queue`),
what becomes of stranded gangs (`scheduler.stranded`), how room is found (`scheduler_core`), how pods are
bound (`scheduler.bind`) or what users read (`scheduler.report`).

A gang is looked at when something about it changed (a member, its PodGroup), and a refused one again when
room may have grown. A gang that does not fit holds nothing and blocks no other: the next is tried at once. A
gang of which some members hold nodes comes first, and room is held for the members that it lacks (A5b).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from groups.contract import ConditionReason, Why
from groups.objects import Key
from scheduler import metrics
from scheduler.bind import GangBinding
from scheduler.cache import ClusterCache
from scheduler.gangs import GangState
from scheduler.holding import Holding
from scheduler.pods import CachedPod
from scheduler.queue import SWEEP_S, GangQueue, Order, Refused, State
from scheduler.refusals import Growth, remembered
from scheduler.report import Reporter
from scheduler_core.gang import Placement
from scheduler_core.match import match

log = structlog.get_logger(__name__)

#: Members of a gang arrive one watch event after another: look once for many.
_COALESCE_S: Final = 0.005
#: After fruitless matches of parked gangs these rest in proportion to the time that the matches took. Gangs
#: that changed do not rest.
_REST: Final = 2.0
_MOST_REST_S: Final = 1.0
#: Nothing else runs for so long while gangs are looked at; in between the cluster may change.
_SLICE_S: Final = 0.02
#: A round ends after so many passes, so that what stands at its end is done too.
_MOST_PASSES: Final = 8
#: Waiting for members or a PodGroup is normal for a moment; users read of it when it lasts longer (case C98).
_GRACE_S: Final = 3.0


class GangBinder(Protocol):
    """What the loop needs of the binder."""

    def bind(self, gang: GangBinding) -> None:
        """Queue a whole gang; returns at once."""

    def observed(self, uid: str) -> None:
        """The watch shows that a pod is bound, has ended or has gone."""


@dataclass(slots=True)
class _Pass:
    """One pass over the gangs that are due.

    `is_waited_for`: a parked gang was left out because it rests, though it may fit. `is_over`: stop here and
    begin a new pass.
    """

    growth: Growth
    is_waited_for: bool = False
    is_over: bool = False


class SchedulingLoop:
    """Decides, for as long as this process leads. It listens to the cache meanwhile."""

    def __init__(
        self,
        cache: ClusterCache,
        binder: GangBinder,
        reporter: Reporter,
        holding: Holding,
        *,
        queue: GangQueue | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cache = cache
        self._binder = binder
        self._reporter = reporter
        self._holding = holding
        self._now_s = now_s
        self.queue = queue if queue is not None else GangQueue(now_s)
        self._waiting_since_s: dict[Key, float] = {}
        #: The place in the queue of gangs that wait for their look, until something about them changes.
        self._orders: dict[Key, Order] = {}
        self._rest_until_s = float("-inf")
        self._slice_end_s = float("-inf")
        self._wake = asyncio.Event()

    # What the cache shows

    def gang_changed(self, key: Key) -> None:
        """Look at this gang soon."""
        self._orders.pop(key, None)
        self.queue.touch(key)
        self._wake.set()

    def gang_gone(self, key: Key) -> None:
        """The last pod of a gang has gone."""
        self._orders.pop(key, None)
        self.queue.forget(key)
        self._holding.forget(key)
        self._waiting_since_s.pop(key, None)

    def room_grew(self) -> None:
        """Look at the refused gangs soon."""
        self._wake.set()

    def pod_observed(self, uid: str) -> None:
        """The binder need not ask for this pod any more."""
        self._binder.observed(uid)

    # What the binder says

    def member_refused(self, key: Key, pod: CachedPod, why: str) -> None:
        """A member was certainly not bound. Its place is held for a replacement at once (A5b).

        The gang is tried again after a pause, although the calls for its other members go on.
        """
        self._orders.pop(key, None)
        self._cache.forget(pod.metadata.uid)
        self._reporter.bind_failed(pod, why)
        if self.queue.state(key) is not State.BACKING_OFF:
            self.queue.back_off(key)
        self._wake.set()
        try:
            self._holding.lost(key, pod)
            self._holding.hold(self._cache.state(key), self._now_s())
        except Exception as error:  # the binder must go on with the other members and gangs
            self._failed(key, error)

    def decision_settled(self, key: Key) -> None:
        """All calls of a decision have ended."""
        self.gang_changed(key)

    # The rounds

    async def run(self) -> None:
        """Decide until cancelled."""
        self.queue.touch_all(self._cache.gang_keys())
        while True:
            await self._until_due()
            await asyncio.sleep(_COALESCE_S)
            self._wake.clear()
            await self.round()

    async def _until_due(self) -> None:
        due_s = self.queue.next_due_s()
        rest_s = self._rest_until_s - self._now_s()
        if rest_s > 0 and self.queue.count(State.PARKED):
            due_s = rest_s if due_s is None else min(due_s, rest_s)
        try:
            async with asyncio.timeout(due_s):
                await self._wake.wait()
        except TimeoutError:
            return

    async def round(self) -> None:
        """Look at every gang that is due, in order, and give other work its turn in between.

        Room that appears while a younger gang is looked at belongs to the older ones (case C111): what has
        changed meanwhile is sorted in before the next look.
        """
        self._slice_end_s = self._now_s() + _SLICE_S
        fruitless_s = 0.0
        for _ in range(_MOST_PASSES):
            due = await self._due()
            if not due:
                break
            fruitless_s += await self._look_at_all(due)
        if fruitless_s:
            self._rest_until_s = self._now_s() + min(_REST * fruitless_s, _MOST_REST_S)
        self._holding.release_one(self._now_s())
        self._count()

    async def _give_way(self) -> bool:
        """Let other work of this process have its turn if the time for it has come; whether it had."""
        if self._now_s() < self._slice_end_s:
            return False
        await asyncio.sleep(0)
        self._slice_end_s = self._now_s() + _SLICE_S
        return True

    async def _due(self) -> list[tuple[Key, Refused | None]]:
        """Gangs that changed and parked ones that may fit now, in the order of the queue."""
        found: list[tuple[Order, Key, Refused | None]] = []
        for key in self.queue.take():
            order = self._orders.get(key)
            if order is None:
                await self._give_way()
                try:
                    order = self._orders[key] = self._cache.state(key).order
                except Exception as error:  # one gang that cannot be examined must not stop the others
                    self._failed(key, error)
                    continue
            found.append((order, key, None))
        if not found and self._now_s() < self._rest_until_s:
            return []
        parked = self.queue.stale(self._cache.ledger.room_version)
        found += [(refused.order, key, refused) for key, refused in parked]
        found.sort(key=lambda one: one[0])
        return [(key, refused) for _, key, refused in found]

    async def _look_at_all(self, due: list[tuple[Key, Refused | None]]) -> float:
        """One pass over these gangs; the seconds that fruitless matches took."""
        ledger, fruitless_s = self._cache.ledger, 0.0
        version = ledger.room_version
        current = _Pass(Growth(ledger.view(), version, ledger.grown_since))
        for key, refused in due:
            if await self._give_way() and ledger.room_version != version:
                break
            # It may have been given a pause since this pass began.
            if self.queue.state(key) not in (State.ACTIVE, State.PARKED):
                continue
            if refused is not None and self._stays_parked(key, refused, current):
                continue
            fruitless_s += self._look_safely_at(key, current)
            current.growth.see(ledger.view())
            if current.is_over:
                break
        return fruitless_s

    def _stays_parked(self, key: Key, refused: Refused, current: _Pass) -> bool:
        """Whether a parked gang needs no match now."""
        if (still := current.growth.still_refused(refused)) is not None:
            self.queue.still_refused(key, still)
            return True
        is_stranded = not refused.order[1]
        rests = self._now_s() < self._rest_until_s and not is_stranded
        current.is_waited_for |= rests
        return rests

    def _look_safely_at(self, key: Key, current: _Pass) -> float:
        """Look at one gang; the seconds that a fruitless match took."""
        self._orders.pop(key, None)
        try:
            return self._look_at(key, current)
        except Exception as error:  # one gang that cannot be judged must not stop all the others
            self._failed(key, error)
            return 0.0

    def _failed(self, key: Key, error: Exception) -> None:
        log.error("gang not looked at: a fault of the scheduler", group=key, exc_info=error)
        metrics.ATTEMPTS.labels(ConditionReason.SCHEDULER_ERROR).inc()
        pause_s = self.queue.back_off(key)
        text = f"the scheduler failed on this group and tries again in {pause_s:.0f} s: {error}"
        waiting = tuple(pod for pod in self._cache.members(key) if not pod.node_name and not pod.is_finished)
        group = self._cache.group(key)
        self._reporter.scheduler_error(GangState(key, group, 0, (), (), waiting, 0), group, text[:500])

    def _look_at(self, key: Key, current: _Pass) -> float:
        state = self._cache.state(key)
        self._holding.note(state, self._now_s())
        if state.group is not None and state.minimum and state.seen >= state.minimum:
            self._reporter.complete(state, state.group)
        if not state.candidates and not state.is_stranded:
            self._waiting_since_s.pop(key, None)
            self.queue.leave(key, healthy=state.seen == len(state.settled))
            return 0.0
        if state.why is not None:
            self._wait(state)
            return 0.0
        self._waiting_since_s.pop(key, None)
        return self._try_to_place(state, current)

    def _wait(self, state: GangState) -> None:
        now_s = self._now_s()
        since_s = self._waiting_since_s.setdefault(state.key, now_s)
        left_s = since_s + _GRACE_S - now_s
        if left_s <= 0:
            self._reporter.waiting(state, state.group)
        wait_s = left_s if left_s > 0 else SWEEP_S
        if state.is_stranded:
            wait_s = min(wait_s, self._holding.next_look_s(state, now_s))
            if not self._holding.hold(state, now_s):
                # Room is held for some of its missing members: for more of them once there is more room.
                self.queue.park(state.key, Refused(self._cache.ledger.room_version, state.order), wait_s)
                return
        self.queue.wait(state.key, wait_s)

    def _try_to_place(self, state: GangState, current: _Pass) -> float:
        started_s = self._now_s()
        gang = self._cache.gang(state)
        view = self._cache.ledger.view().without(self._cache.ledger.held(state.key))
        answer = match(view, gang)
        took_s = self._now_s() - started_s
        metrics.MATCH_SECONDS.observe(took_s)
        if isinstance(answer, Placement):
            if current.is_waited_for and not state.is_stranded:
                # Older gangs that rest may need this room, so they are looked at first (case C111).
                current.is_over, self._rest_until_s = True, float("-inf")
                return 0.0
            metrics.ATTEMPTS.labels(Why.SCHEDULED).inc()
            self._place(state, answer)
            return 0.0
        metrics.ATTEMPTS.labels(answer.why).inc()
        self._reporter.refused(state, answer, state.group)
        ledger, now_s = self._cache.ledger, self._now_s()
        if state.is_stranded:
            self._holding.hold(state, now_s)
            refused = Refused(ledger.room_version, state.order)
            self.queue.park(state.key, refused, self._holding.next_look_s(state, now_s))
        else:
            refused = remembered(gang, answer, view, ledger.room_version, state.order)
            current.growth.refuse(refused)
            self.queue.park(state.key, refused)
        return took_s

    def _place(self, state: GangState, placement: Placement) -> None:
        placed = [pod for pod in state.candidates if pod.metadata.uid in placement.nodes]
        self._cache.ledger.release(state.key)
        self._cache.assume(placement)
        self._reporter.placing(placed)
        run_uid = state.group.metadata.uid if state.group is not None else ""
        self._binder.bind(
            GangBinding(state.key, run_uid, placed, placement.nodes, placement.node_uids, self._now_s())
        )
        log.info(
            "gang placed",
            group=state.key,
            members=len(placed),
            of=len(state.candidates),
            minimum=state.minimum,
        )
        if len(placed) < len(state.candidates):
            # The quorum is reached; the rest are late members now, each with a reason of its own.
            self.queue.touch(state.key)
        else:
            self.queue.leave(state.key)

    def _count(self) -> None:
        metrics.WAITING.labels(Why.NOT_ENOUGH_ROOM).set(self.queue.count(State.PARKED))
        metrics.WAITING.labels(Why.WAITING_FOR_MEMBERS).set(self.queue.count(State.WAITING))
