"""What every leading process does: keep its caches warm, and work while it holds its lease.

Owns: the order of things, from the first lists to the end. Does not own: what is cached, or the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from kube.lease import Lease
from kube.reflector import Reflector, all_synced


def not_listed(reflectors: Sequence[Reflector[Any]]) -> list[str]:
    """What is still missing before a process is of use; empty when it is ready.

    A process that waits for the lease is ready: it can take over at any moment.
    """
    return [f"{one.collection.path} is not listed yet" for one in reflectors if not one.is_synced]


async def watch_and_lead(
    reflectors: Sequence[Reflector[Any]],
    lease: Lease,
    work: Callable[[], Awaitable[None]],
    *beside: Coroutine[Any, Any, None],
) -> None:
    """Run `reflectors` (and what goes on `beside` them), and `work` whenever we lead, until cancelled.

    Raises a group with LeaseLost when another process may have taken over.
    """
    async with asyncio.TaskGroup() as tasks:
        watching = [
            tasks.create_task(one.run(), name=f"reflector {one.collection.path}") for one in reflectors
        ]
        watching += [tasks.create_task(one) for one in beside]
        try:
            await all_synced(reflectors)
            await lease.lead(work)
        finally:
            for task in watching:
                task.cancel()
