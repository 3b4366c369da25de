"""Give back the members of a stranded gang: delete them, so that their controller makes them anew (A5b).

Owns: the calls, each checked by uid. Does not own: which members are given back (`scheduler.stranded`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from kube.backoff import Backoff, persist
from kube.errors import Conflict, KubeError, NotFound
from kube.session import Kube
from scheduler.pods import CachedPod

log = structlog.get_logger(__name__)

_DEADLINE_S: Final = 10.0
_TIMEOUT_S: Final = 5.0
_AT_ONCE: Final = 8


class Releaser:
    """Deletes pods in the background while this process leads."""

    def __init__(self, kube: Kube, may_write: Callable[[], bool]) -> None:
        self._kube = kube
        self._may_write = may_write
        self._work: asyncio.Queue[CachedPod] = asyncio.Queue()
        self._open: set[str] = set()

    def release(self, pods: Sequence[CachedPod]) -> list[CachedPod]:
        """Queue the deletion of these pods; those that are queued already are left out of the answer."""
        new = [pod for pod in pods if pod.metadata.uid not in self._open]
        for pod in new:
            self._open.add(pod.metadata.uid)
            self._work.put_nowait(pod)
        return new

    async def run(self) -> None:
        """Delete until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(_AT_ONCE):
                group.create_task(self._worker(), name=f"release {number}")

    async def _worker(self) -> None:
        while True:
            pod = await self._work.get()
            try:
                await persist(
                    lambda pod=pod: self._delete(pod),  # type: ignore[misc]  # bound at once
                    deadline_s=_DEADLINE_S,
                    backoff=Backoff(first_s=0.2, most_s=5.0),
                )
            except (NotFound, Conflict):
                pass  # it has gone, or another pod has taken its name
            except KubeError as error:
                key = pod.metadata.key
                log.error("a member of a stranded gang was not deleted", pod=key, error=str(error))
            finally:
                self._open.discard(pod.metadata.uid)

    async def _delete(self, pod: CachedPod) -> None:
        if not self._may_write():
            return
        meta = pod.metadata
        path = f"/api/v1/namespaces/{meta.namespace}/pods/{meta.name}"
        await self._kube.delete(path, uid=meta.uid, timeout_s=_TIMEOUT_S)
