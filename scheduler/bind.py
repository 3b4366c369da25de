"""Bind the members of a gang: one call for each pod, many at once, each checked by uid.

Owns: the calls and their repetition until the outcome is known. Does not own: the decision, the order among
namespaces (`scheduler.lanes`), what an answer means (`scheduler.outcome`), or what users read of it.

Binding N pods is not atomic (rule B7). Each member's call goes its own way:

- bound: `on_bound`.
- certainly not bound (the pod or the node has gone, the server forbids it): `on_refused`, for this member
  only. The other members go on.
- not known (no answer, a 5xx): the pod stays assumed. It is read back and bound again after a growing pause,
  until the outcome is known or the watch shows it (`observed`).

Nothing is given up after a fixed time: the room of a pod that may be bound is never given to another pod.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import structlog

from groups.objects import Key
from kube.backoff import Backoff
from kube.errors import Conflict, KubeError, NotFound
from kube.session import Kube
from scheduler import metrics
from scheduler import objects as api
from scheduler.lanes import LIMITS, Lanes, Limits
from scheduler.outcome import Outcome, Verdict, binding_body, outcome_of_error, outcome_of_pod
from scheduler.pods import CachedPod

log = structlog.get_logger(__name__)

_TIMEOUT_S: Final = 10.0
#: A call that is open for longer does not count against the common limit any more.
_SLOW_AFTER_S: Final = 0.3
_MOST_PAUSE_S: Final = 5.0
#: An API server may carry out a request for so long after the client has given it up (its own default limit
#: for one request). A refusal that leaves the pod as it is proves nothing about such an earlier attempt.
_ON_ITS_WAY_S: Final = 60.0

_BOUND = metrics.BINDS.labels("bound")
_REFUSED = metrics.BINDS.labels("refused")
_RETRIED = metrics.BINDS.labels("retried")


@dataclass(slots=True)
class GangBinding:
    """One decision that is to be carried out: `nodes` by pod uid, `node_uids` by node name."""

    key: Key
    run_uid: str
    pods: Sequence[CachedPod]
    nodes: Mapping[str, str]
    node_uids: Mapping[str, str] = field(default_factory=dict)
    started_s: float = field(default_factory=time.monotonic)
    #: How many of its calls have not ended.
    open: int = field(init=False)

    def __post_init__(self) -> None:
        self.open = len(self.pods)

    def node_of(self, pod: CachedPod) -> str:
        """The node that was chosen for `pod`."""
        return self.nodes[pod.metadata.uid]


@dataclass(slots=True, eq=False)
class _Call:
    """One member's binding, from the decision until its outcome is known."""

    gang: GangBinding
    pod: CachedPod
    node: str
    backoff: Backoff
    is_slow: bool = False
    #: The watch shows that the pod is bound, has ended or has gone.
    is_observed: bool = False
    #: When the last attempt ended that may have been carried out.
    unanswered_s: float | None = None
    #: Marks the open call as slow.
    timer: asyncio.TimerHandle | None = None
    #: Ends the pause before the next attempt.
    pause: asyncio.TimerHandle | None = None

    @property
    def namespace(self) -> str:
        return self.pod.metadata.namespace

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.pod.metadata.name}"


class Binder:
    """Carries decisions out. `run` must be running for anything to happen."""

    def __init__(
        self,
        kube: Kube,
        *,
        may_bind: Callable[[], bool],
        node_is_open: Callable[[str, str], bool],
        on_bound: Callable[[Key, CachedPod, str], None],
        on_refused: Callable[[Key, CachedPod, str], None],
        on_settled: Callable[[Key], None],
        run_is_current: Callable[[Key, str], bool] = lambda _key, _uid: True,
        limits: Limits = LIMITS,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`may_bind`, `node_is_open` (name, uid) and `run_is_current` are asked before each write.

        `on_bound` (gang, pod, node) and `on_refused` (gang, pod, why) are called for each member; neither
        for one that the watch has shown to be gone. `on_settled` is called once all calls of a decision have
        ended. None of them may wait.
        """
        self._kube = kube
        self._may_bind = may_bind
        self._node_is_open = node_is_open
        self._run_is_current = run_is_current
        self._on_bound = on_bound
        self._on_refused = on_refused
        self._on_settled = on_settled
        self._now_s = now_s
        self._lanes: Lanes[_Call] = Lanes(limits)
        self._calls: dict[str, _Call] = {}
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def is_busy(self) -> bool:
        """Whether calls are under way that the API server answers at its usual speed."""
        return self._lanes.is_busy

    def is_binding(self, uid: str) -> bool:
        """Whether the outcome of a pod's binding is still open."""
        return uid in self._calls

    def bind(self, gang: GangBinding) -> None:
        """Queue a whole gang; returns at once. Within a namespace gangs are bound in this order."""
        for pod in gang.pods:
            backoff = Backoff(first_s=0.1, most_s=_MOST_PAUSE_S)
            call = self._calls[pod.metadata.uid] = _Call(gang, pod, gang.node_of(pod), backoff)
            self._lanes.add(call.namespace, call)
        self._start()

    def observed(self, uid: str) -> None:
        """The watch shows that a pod is bound, has ended or has gone: its call need not be repeated."""
        call = self._calls.get(uid)
        if call is None:
            return
        call.is_observed = True
        if call.pause is not None:
            self._resume(call)

    async def run(self) -> None:
        """Bind until cancelled. What has not been sent then is left to the next term."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                self._start()
                await asyncio.Event().wait()
        finally:
            self._tasks = None
            for call in self._calls.values():
                if call.pause is not None:
                    call.pause.cancel()

    def _start(self) -> None:
        """Send the calls that may be sent now."""
        while self._tasks is not None and (call := self._lanes.start()) is not None:
            self._tasks.create_task(self._send(call))

    async def _send(self, call: _Call) -> None:
        started_s = self._now_s()
        call.is_slow = False
        self._watch_time(call)
        outcome = Outcome(Verdict.UNKNOWN)
        try:
            outcome = await self._attempt(call)
        finally:
            if call.timer is not None:
                call.timer.cancel()
            took_s = self._now_s() - started_s
            hung = outcome.verdict is Verdict.UNKNOWN and took_s >= _SLOW_AFTER_S
            self._lanes.end(call.namespace, was_slow=call.is_slow, was_answered=not hung)
        if outcome.verdict is Verdict.BOUND:
            metrics.BIND_SECONDS.observe(took_s)
        self._act(call, outcome)
        self._start()

    def _watch_time(self, call: _Call) -> None:
        call.timer = asyncio.get_running_loop().call_later(_SLOW_AFTER_S, self._mark_slow, call)

    def _mark_slow(self, call: _Call) -> None:
        if self._lanes.mark_slow(call.namespace):
            call.is_slow = True
            self._start()
        else:
            self._watch_time(call)

    async def _attempt(self, call: _Call) -> Outcome:
        """One attempt; an earlier one without an answer is looked into first (rule B6)."""
        if call.unanswered_s is not None:
            found = await self._read_back(call)
            if found is not None:
                return found
        if call.is_observed:
            return Outcome(Verdict.IMPOSSIBLE, "the pod is bound, has ended or has gone")
        # Asked before each call, not once for each gang: a lease can end and a node can go in between.
        if not self._may_bind():
            return Outcome(Verdict.NOT_CARRIED_OUT, "this process does not lead")
        if not self._run_is_current(call.gang.key, call.gang.run_uid):
            return self._refused(call, "its PodGroup has been deleted or replaced")
        if not self._node_is_open(call.node, call.gang.node_uids.get(call.node, "")):
            return self._refused(call, f"node {call.node} has gone since it was chosen")
        return await self._post(call)

    async def _post(self, call: _Call) -> Outcome:
        body = binding_body(call.pod, call.node, call.gang.run_uid)
        try:
            await self._kube.post(f"{call.path}/binding", body, timeout_s=_TIMEOUT_S)
        except Conflict as error:
            return await self._read_back(call) or self._refused(call, str(error))
        except KubeError as error:
            outcome = outcome_of_error(error)
            if outcome.verdict is Verdict.REFUSED:
                return self._refused(call, outcome.why)
            return outcome
        return Outcome(Verdict.BOUND)

    async def _read_back(self, call: _Call) -> Outcome | None:
        """What the pod itself says; None where it still waits to be bound."""
        try:
            found = await self._kube.get_as(call.path, api.Pod)
        except NotFound:
            return Outcome(Verdict.IMPOSSIBLE, "the pod has gone")
        except (KubeError, msgspec.MsgspecError) as error:
            return Outcome(Verdict.UNKNOWN, f"it could not be read: {error}")
        return outcome_of_pod(found, call.pod, call.node)

    def _refused(self, call: _Call, why: str) -> Outcome:
        """This attempt failed for good, which says nothing about an earlier one that is still on its way."""
        may_arrive = call.unanswered_s is not None and self._now_s() - call.unanswered_s < _ON_ITS_WAY_S
        return Outcome(Verdict.NOT_CARRIED_OUT if may_arrive else Verdict.REFUSED, why)

    def _act(self, call: _Call, outcome: Outcome) -> None:
        """Report a known outcome, or try again later."""
        gang, pod = call.gang, call.pod
        match outcome.verdict:
            case Verdict.BOUND:
                _BOUND.inc()
                self._on_bound(gang.key, pod, call.node)
            case Verdict.IMPOSSIBLE if call.is_observed:
                pass  # the watch has told the cache already
            case Verdict.IMPOSSIBLE | Verdict.REFUSED:
                _REFUSED.inc()
                log.warning(
                    "member not bound",
                    group=gang.key,
                    pod=pod.metadata.key,
                    node=call.node,
                    error=outcome.why,
                )
                self._on_refused(gang.key, pod, outcome.why)
            case Verdict.UNKNOWN | Verdict.NOT_CARRIED_OUT:
                self._try_again_later(call, outcome)
                return
        self._end(call)

    def _try_again_later(self, call: _Call, outcome: Outcome) -> None:
        _RETRIED.inc()
        if outcome.verdict is Verdict.UNKNOWN:
            call.unanswered_s = self._now_s()
        delay_s = max(call.backoff.next_delay_s(), outcome.retry_after_s)
        log.info(
            "binding is tried again",
            group=call.gang.key,
            pod=call.pod.metadata.key,
            after_s=round(delay_s, 2),
            error=outcome.why,
        )
        call.pause = asyncio.get_running_loop().call_later(delay_s, self._resume, call)

    def _resume(self, call: _Call) -> None:
        """Its pause is over. It stands before calls that came later."""
        if call.pause is not None:
            call.pause.cancel()
            call.pause = None
        self._lanes.add(call.namespace, call, first=True)
        self._start()

    def _end(self, call: _Call) -> None:
        if self._calls.get(call.pod.metadata.uid) is call:
            del self._calls[call.pod.metadata.uid]
        gang = call.gang
        gang.open -= 1
        if gang.open == 0:
            metrics.GANG_SECONDS.observe(self._now_s() - gang.started_s)
            # Only now: a new decision must not meet calls of the old one that are still under way.
            self._on_settled(gang.key)
