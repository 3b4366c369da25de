"""In which order the calls of several namespaces are sent, and how many are open at a time. Pure.

Owns: one line of waiting calls for each namespace, and the counts of open calls. Does not own: the calls.

Namespaces take turns, so that one with many pods does not delay the others. Within a namespace the order of
arrival holds. A call that stays open for long (an admission webhook of that namespace hangs, say) is marked
as slow and no longer counts against the common limit. A namespace with many slow calls starts no others.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

T = TypeVar("T")

#: As many calls at once as keep an API server busy on a small machine (docs/performance.md).
AT_ONCE: Final = 32


@dataclass(frozen=True, slots=True)
class Limits:
    """How many calls may be open: `at_once` that are not slow, `slow` that are.

    A namespace has at most `slow_in_namespace` slow calls and then starts no others; its other open calls
    still count. After a call of a namespace was not answered, at most so many calls of it are open until one
    is answered. All limits together must leave connections of the session for watches and the lease.
    """

    at_once: int = AT_ONCE
    slow: int = 40
    slow_in_namespace: int = 8


LIMITS: Final = Limits()


@dataclass(slots=True)
class _Lane(Generic[T]):
    waiting: deque[T] = field(default_factory=deque)
    open: int = 0
    slow: int = 0
    is_answering: bool = True


class Lanes(Generic[T]):
    """The waiting and open calls of all namespaces."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._lanes: dict[str, _Lane[T]] = {}
        #: Namespaces with waiting calls; the first one has the next turn.
        self._turns: dict[str, None] = {}
        self._counted = 0
        self._slow = 0

    @property
    def is_busy(self) -> bool:
        """Whether a call is open that is not slow."""
        return self._counted > 0

    def add(self, namespace: str, call: T, *, first: bool = False) -> None:
        """Let a call wait for its turn, behind the others of its namespace or (`first`) before them."""
        lane = self._lanes.setdefault(namespace, _Lane())
        if first:
            lane.waiting.appendleft(call)
        else:
            lane.waiting.append(call)
        self._turns.setdefault(namespace)

    def start(self) -> T | None:
        """The call to be sent now, which is open from now on; None where none may be."""
        if self._counted >= self._limits.at_once:
            return None
        for namespace in self._turns:
            lane = self._lanes[namespace]
            if self._may_start(lane):
                # This ends the iteration, so that changing the dictionary is safe.
                del self._turns[namespace]
                call = lane.waiting.popleft()
                if lane.waiting:
                    self._turns[namespace] = None
                lane.open += 1
                self._counted += 1
                return call
        return None

    def mark_slow(self, namespace: str) -> bool:
        """An open call of the namespace takes long; False where there are too many slow ones already."""
        lane = self._lanes[namespace]
        if self._slow >= self._limits.slow or lane.slow >= self._limits.slow_in_namespace:
            return False
        lane.slow += 1
        self._slow += 1
        self._counted -= 1
        return True

    def end(self, namespace: str, *, was_slow: bool, was_answered: bool) -> None:
        """An open call has ended."""
        lane = self._lanes[namespace]
        lane.open -= 1
        lane.is_answering = was_answered
        if was_slow:
            lane.slow -= 1
            self._slow -= 1
        else:
            self._counted -= 1
        if not lane.open and not lane.waiting and lane.is_answering:
            del self._lanes[namespace]

    def _may_start(self, lane: _Lane[T]) -> bool:
        most = self._limits.slow_in_namespace
        return lane.slow < most and (lane.is_answering or lane.open < most)
