"""End a process that was stopped in the middle of a write and continues after its lease has ended.

A check before a write is not enough for a process that is frozen (SIGSTOP, a paused container): it may stop
between the check and the system call that sends the bytes, and would send them when it continues. The kernel
delivers signals that arrived meanwhile before the process runs again. So the leader sets a kernel timer whose
signal ends the process, and sets it again with each renewal. A leader that runs stops the timer in time. Only
a frozen process, or one whose event loop hangs, is ended (status 142, SIGALRM).
"""

from __future__ import annotations

import signal
from typing import Protocol


class Watchdog(Protocol):
    """Ends the process unless it is started again or stopped in time."""

    def start(self, delay_s: float) -> None:
        """End the process `delay_s` seconds from now; replaces an earlier start."""

    def stop(self) -> None:
        """Do not end the process."""


class NoWatchdog:
    """For tests and tools that lead in a process that must not be ended."""

    def start(self, delay_s: float) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


class AlarmWatchdog:
    """The timer of the process (setitimer) with the default action of SIGALRM; a process has only one."""

    def start(self, delay_s: float) -> None:
        """End the process by SIGALRM `delay_s` seconds from now, at once if that is not positive."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        # Zero would stop the timer.
        signal.setitimer(signal.ITIMER_REAL, max(delay_s, 1e-6))

    def stop(self) -> None:
        """Stop the timer."""
        signal.setitimer(signal.ITIMER_REAL, 0)
