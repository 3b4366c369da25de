"""Carry out what is decided about stranded gangs: hold room, give members back, say so (A5b).

Owns: the order of these steps. Does not own: the decisions (`scheduler.stranded`) or the calls
(`scheduler.release`).
"""

from __future__ import annotations

from typing import Final

import structlog

from groups.objects import Key
from scheduler import metrics
from scheduler.cache import ClusterCache
from scheduler.gangs import GangState
from scheduler.pods import CachedPod
from scheduler.release import Releaser
from scheduler.report import Reporter
from scheduler.stranded import (
    PAUSE_S,
    Fate,
    StrandedGangs,
    missing_members,
    stand_ins,
    to_be_released,
    waiting_members,
)
from scheduler_core.gang import Placement
from scheduler_core.kinds import PodKind
from scheduler_core.match import match

log = structlog.get_logger(__name__)

#: A gang that stays stranded beyond its time is logged so often.
_LOG_EVERY_S: Final = 60.0


class Holding:
    """Held room and given-back members of stranded gangs."""

    def __init__(self, cache: ClusterCache, releaser: Releaser, reporter: Reporter) -> None:
        self._cache = cache
        self._releaser = releaser
        self._reporter = reporter
        self._gangs = StrandedGangs()
        self._logged_s: dict[Key, float] = {}
        #: Kinds of members that were certainly not bound, by gang and uid of the pod.
        self._lost: dict[Key, dict[str, PodKind]] = {}

    def fate(self, state: GangState, now_s: float) -> Fate:
        """What becomes of a stranded gang if it is considered alone."""
        return self._gangs.fate(state, now_s)

    def note(self, state: GangState, now_s: float) -> None:
        """The gang was looked at: a gang that is not stranded holds no room."""
        self._gangs.note(state, now_s)
        if not state.is_stranded:
            self._cache.ledger.release(state.key)
            self._logged_s.pop(state.key, None)
            self._lost.pop(state.key, None)

    def lost(self, key: Key, pod: CachedPod) -> None:
        """A member was certainly not bound: until the gang is complete, room of its kind is held."""
        if pod.kind is not None:
            self._lost.setdefault(key, {})[pod.metadata.uid] = pod.kind

    def forget(self, key: Key) -> None:
        """The gang has no pods any more."""
        self._gangs.forget(key)
        self._logged_s.pop(key, None)
        self._lost.pop(key, None)
        self._cache.ledger.release(key)

    def next_look_s(self, state: GangState, now_s: float) -> float:
        """In how many seconds the gang is to be looked at again: when its time is over, then now and then."""
        left_s = self._gangs.left_s(state, now_s)
        return left_s if left_s > 0 else PAUSE_S

    def hold(self, state: GangState, now_s: float) -> bool:
        """Hold room for the missing members of a stranded gang; whether there is room for all of them.

        Once its time is over, room is held only for members that exist.
        """
        self.note(state, now_s)
        if not state.is_stranded:
            return True
        ledger = self._cache.ledger
        if self.fate(state, now_s) is Fate.WAIT:
            kinds = waiting_members(state)
        else:
            kinds = missing_members(state, self._lost.get(state.key, {}))
        if not kinds:
            ledger.release(state.key)
            return True
        found = match(ledger.view().without(ledger.held(state.key)), stand_ins(state, kinds))
        if isinstance(found, Placement):
            ledger.hold(state.key, found)
            return len(found) == min(state.needed, len(kinds))
        ledger.release(state.key)
        return False

    def release_one(self, now_s: float) -> None:
        """Give back the members of one stranded gang whose time is over, the youngest first."""
        states = [state for key in self._gangs.since_s if (state := self._state(key)) is not None]
        metrics.STRANDED.set(len(states))
        for state in states:
            self._log_if_late(state, now_s)
        self._gangs.note_usage(lambda uid: self._cache.ledger.placed(uid) is not None, now_s)
        chosen = self._gangs.next_to_release(states, now_s)
        if chosen is None:
            return
        members = to_be_released(chosen)
        self._gangs.note_release([pod.metadata.uid for pod in members], now_s)
        self._cache.ledger.release(chosen.key)
        pods = self._releaser.release(members)
        if pods:
            log.warning("members of a stranded gang are given back", group=chosen.key, members=len(pods))
            self._reporter.released(chosen, pods)

    def _state(self, key: Key) -> GangState | None:
        """Where a gang stands; None where this fails, which the look at it reports."""
        try:
            return self._cache.state(key)
        except Exception:
            log.exception("a stranded group cannot be examined", group=key)
            return None

    def _log_if_late(self, state: GangState, now_s: float) -> None:
        if not state.is_stranded or self._gangs.left_s(state, now_s) > 0:
            return
        if now_s - self._logged_s.get(state.key, float("-inf")) >= _LOG_EVERY_S:
            self._logged_s[state.key] = now_s
            log.error(
                "a group is half bound for longer than its deadline",
                group=state.key,
                on_nodes=len(state.holding),
                minimum=state.minimum,
                deadline_s=state.timeout_s,
                fate=self.fate(state, now_s).value,
            )
