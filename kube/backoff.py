"""Wait before trying again: growing, jittered, bounded. Clock and random numbers are arguments."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kube.errors import ApiError, Forbidden, KubeError, is_transient

T = TypeVar("T")

#: How long a new API server may refuse requests because it has not read its roles; 20 ms were measured.
ROLES_DEADLINE_S: Final = 5.0


@dataclass
class Backoff:
    """How long to wait after the n-th failure in a row: `first_s` doubling up to `most_s`, jittered.

    The wait is between half of the bound and the bound, so that many clients spread out and a bound of a
    second really slows a loop down.
    """

    first_s: float = 0.1
    most_s: float = 30.0
    jitter: Callable[[], float] = random.random
    failures: int = field(default=0, init=False)

    def next_delay_s(self) -> float:
        """Count one more failure and say how many seconds to wait now."""
        bound = min(self.most_s, self.first_s * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return bound * (0.5 + self.jitter() / 2)

    def reset(self) -> None:
        """Reset after a success."""
        self.failures = 0


async def persist(
    attempt: Callable[[], Awaitable[T]],
    *,
    deadline_s: float,
    backoff: Backoff | None = None,
    worth_retrying: Callable[[BaseException], bool] = is_transient,
    on_retry: Callable[[KubeError, float], None] | None = None,
    now_s: Callable[[], float] | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Call `attempt` until it works, fails for good, or `deadline_s` seconds have passed.

    A Retry-After of the server is respected. `on_retry` is called before each further attempt with the
    failure and the wait in seconds. The clock is that of the running event loop, like that of the waits.
    Raises the last error.
    """
    clock = now_s or asyncio.get_running_loop().time
    waits = backoff or Backoff()
    end_s = clock() + deadline_s
    while True:
        try:
            return await attempt()
        except KubeError as error:
            if not worth_retrying(error):
                raise
            delay_s = waits.next_delay_s()
            if isinstance(error, ApiError) and error.retry_after_s is not None:
                delay_s = max(delay_s, error.retry_after_s)
            if clock() + delay_s >= end_s:
                raise
            if on_retry:
                on_retry(error, delay_s)
            await sleep(delay_s)


async def once_roles_are_read(
    attempt: Callable[[], Awaitable[T]], *, deadline_s: float = ROLES_DEADLINE_S
) -> T:
    """Call `attempt`, and repeat it for up to `deadline_s` seconds while it is Forbidden.

    A new API server refuses all requests until it has read its roles.
    """
    return await persist(
        attempt, deadline_s=deadline_s, worth_retrying=lambda error: isinstance(error, Forbidden)
    )
