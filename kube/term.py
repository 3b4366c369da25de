"""One term of leadership: how long it lasts, and which writes may still be sent in it.

Owns: how the length of a lease is divided, the check before each write of a leader, and how long a write
whose answer did not come may still be on its way. Does not own: the lease object (`kube.lease`) or requests
(`kube.session`).

A term that was renewed by a request sent at time 0 ends in these steps, all on the leader's own clock:

    renew_deadline_s                                  no write is started any more
    renew_deadline_s + write_timeout_s                every write has been answered, or its connection closed
    renew_deadline_s + write_timeout_s + margin_s     writes in flight have arrived or are lost
    duration_s                                        another process may take the lease

Another process waits `duration_s` after it has read the last renewal, which is later than time 0. So no write
of the old leader can arrive after the new leader has begun.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from kube.errors import LeaseLost
from kube.session import Kube

Clock = Callable[[], float]


def boot_time_s() -> float:
    """Seconds since the machine started, including time in which it was suspended (Linux).

    On systems without such a clock (macOS) suspended time is not counted.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(frozen=True)
class LeaseTimes:
    """How the length of a lease is divided. The three parts together are shorter than the lease."""

    duration_s: float

    @property
    def renew_every_s(self) -> float:
        """How often the holder renews."""
        return self.duration_s * 0.1

    @property
    def renew_deadline_s(self) -> float:
        """How long after sending its last successful renewal the holder may start writes."""
        return self.duration_s * 0.5

    @property
    def write_timeout_s(self) -> float:
        """The longest time for one write of the holder; it includes the wait for a connection."""
        return self.duration_s * 0.3

    @property
    def margin_s(self) -> float:
        """For writes that are in flight when their timeout is over, and for clocks of different speed."""
        return self.duration_s * 0.15


class Term:
    """One term; `kube.session.Kube.guarded` asks it before each write (a `WriteGuard`).

    A term that has ended never begins again: work that is left over from it cannot write in a later term of
    the same process.
    """

    def __init__(self, kube: Kube, times: LeaseTimes, now_s: Clock) -> None:
        #: The session for everything that only a leader may write. Reads are not checked.
        self.kube = kube.guarded(self)
        self._times = times
        self._now_s = now_s
        self._until_s = float("-inf")
        self._unanswered_s = float("-inf")
        self._has_ended = False

    @property
    def write_timeout_s(self) -> float:
        """The longest time that one write may take, in seconds; `kube` lowers longer timeouts to it."""
        return self._times.write_timeout_s

    def held(self) -> bool:
        """Whether a write may be started now."""
        return self.remaining_s() > 0

    def remaining_s(self) -> float:
        """For how many seconds writes may still be started without another renewal; negative afterwards."""
        return float("-inf") if self._has_ended else self._until_s - self._now_s()

    def check(self) -> None:
        """Raise LeaseLost if no write may be started any more."""
        if not self.held():
            raise LeaseLost("not written: this process does not hold the lease any more")

    def unanswered(self) -> None:
        """Note that a write was sent and its outcome is not known."""
        self._unanswered_s = self._now_s()

    def renewed(self, sent_s: float) -> None:
        """Extend the term: a renewal that was sent at `sent_s` has succeeded."""
        self._until_s = max(self._until_s, sent_s + self._times.renew_deadline_s)

    def end(self) -> None:
        """End the term for good."""
        self._has_ended = True

    def unsettled_s(self) -> float:
        """For how many seconds a write whose outcome is not known may still arrive."""
        return max(0.0, self._unanswered_s + self._times.margin_s - self._now_s())
