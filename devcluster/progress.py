"""Report progress while a person waits.

Owns: lines on standard error, and how often. Does not own: standard output, which is for results.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

Say = Callable[[str], None]

_EVERY_S: Final = 5.0


def to_stderr(line: str) -> None:
    """One line of progress on standard error."""
    print(f"devcluster: {line}", file=sys.stderr, flush=True)


def silent(line: str) -> None:
    """Report nothing."""


def duration(seconds: float) -> str:
    """`7s` or `2m10s`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


@dataclass
class Heartbeat:
    """Repeats a line every few seconds, so that a long build does not look like a hang."""

    say: Say
    now_s: Callable[[], float] = time.monotonic
    every_s: float = _EVERY_S
    _next_s: float = field(default=float("-inf"))

    def beat(self, line: str) -> None:
        """Report `line` unless something was reported a moment ago."""
        if self.now_s() >= self._next_s:
            self._next_s = self.now_s() + self.every_s
            self.say(line)
