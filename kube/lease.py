"""Leader election with a coordination.k8s.io Lease: at most one leader, and a leader that knows when it ends.

Owns: acquiring, renewing, releasing, and the answer to "do I still lead?". Does not own: what leaders do.

Safety rests on one comparison of monotonic times. We lead until `duration_s` after the moment at which we
*sent* the last renewal that worked; others take over no earlier than `duration_s` after they *saw* it
change. A frozen process therefore finds itself out of office when it wakes, whatever its clock says
(case C79), and wall clocks of different machines are never compared.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import structlog

from groups.times import format_micro_time, utc_now
from kube import metrics
from kube.backoff import Backoff
from kube.errors import Forbidden, KubeError, NotFound
from kube.session import Kube

log = structlog.get_logger(__name__)

_RELEASED_DURATION_S: Final = 1


class LeaseLost(KubeError):
    """We no longer lead: stop writing at once."""


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _LeaseMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str


class _Lease(msgspec.Struct, frozen=True):
    metadata: _LeaseMeta
    spec: _LeaseSpec = _LeaseSpec()


class Lease:
    """One lease and our claim to it."""

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        name: str,
        identity: str,
        *,
        duration_s: int = 15,
        now_s: Callable[[], float] = time.monotonic,
        utc_now: Callable[[], dt.datetime] = utc_now,
    ) -> None:
        self.name = name
        self.identity = identity
        self._kube = kube
        self._namespace = namespace
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._path = f"{self._collection}/{name}"
        self._duration_s = duration_s
        self._retry_s = max(0.2, duration_s / 5)
        self._now_s = now_s
        self._utc_now = utc_now
        self._leading_until_s = float("-inf")
        self._seen: tuple[str, float] = ("", float("-inf"))
        self._log = log.bind(lease=f"{namespace}/{name}", identity=identity)

    def held(self) -> bool:
        """Whether we lead at this very moment; ask before each write that only a leader may make."""
        return self._now_s() < self._leading_until_s

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait until we lead, then run `work` beside the renewals, until either ends.

        Raises LeaseLost (with `work` cancelled) when the lease could not be renewed in time. The lease is
        released when `work` ends or this call is cancelled, so that a successor need not wait.
        """
        await self._acquire()
        metrics.LEADING.labels(self.name).set(1)
        self._log.info("leading")
        working = asyncio.ensure_future(work())
        renewing = asyncio.create_task(self._renew_for_ever(), name=f"renew lease {self.name}")
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            # The renewal ends only by failing, and its failure says more than the cancelled work.
            (renewing if renewing.done() else working).result()
        finally:
            for task in (working, renewing):
                task.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            metrics.LEADING.labels(self.name).set(0)
            await self._release()

    async def _acquire(self) -> None:
        backoff = Backoff(first_s=self._retry_s / 2, most_s=self._retry_s)
        while True:
            try:
                if await self._try_to_hold():
                    return
            except Forbidden as error:
                self._log.error("the lease cannot be taken: a right is missing", error=str(error))
            except KubeError as error:
                self._log.warning("the lease cannot be taken now", error=str(error))
            await asyncio.sleep(backoff.next_delay_s())

    async def _renew_for_ever(self) -> None:
        while self.held():
            await asyncio.sleep(self._retry_s)
            try:
                if not await self._try_to_hold():
                    # Taken over: whoever holds it now may be writing already.
                    self._leading_until_s = float("-inf")
            except KubeError as error:
                self._log.warning("lease not renewed", error=str(error))
        raise LeaseLost(
            f"lease {self._namespace}/{self.name} is lost: taken over or not renewed for {self._duration_s} s"
        )

    async def _try_to_hold(self) -> bool:
        """One attempt to take or keep the lease; True when we lead afterwards."""
        sent_s = self._now_s()
        try:
            found = msgspec.json.decode(
                await self._kube.get(self._path, timeout_s=self._retry_s), type=_Lease
            )
        except NotFound:
            method, path, body = "POST", self._collection, self._body(None, _LeaseSpec())
        else:
            if not self._is_free(found, sent_s):
                return False
            method, path = "PUT", self._path
            body = self._body(found.metadata.resource_version, found.spec)
        # A conflict means that somebody else wrote first; the next attempt sees what.
        await self._kube.request(method, path, body=msgspec.json.encode(body), timeout_s=self._retry_s)
        self._leading_until_s = sent_s + self._duration_s
        return True

    def _is_free(self, found: _Lease, now_s: float) -> bool:
        holder = found.spec.holder_identity
        if not holder or holder == self.identity:
            return True
        if self._seen[0] != found.metadata.resource_version:
            self._seen = (found.metadata.resource_version, now_s)
        lasts_s = found.spec.lease_duration_seconds or self._duration_s
        return now_s >= self._seen[1] + lasts_s

    def _body(self, version: str | None, old: _LeaseSpec) -> dict[str, Any]:
        now = format_micro_time(self._utc_now())
        ours = old.holder_identity == self.identity
        transitions = (old.lease_transitions or 0) + (0 if ours or version is None else 1)
        return self._lease(
            version,
            {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": self._duration_s,
                "acquireTime": old.acquire_time if ours and old.acquire_time else now,
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        )

    def _lease(self, version: str | None, spec: dict[str, Any]) -> dict[str, Any]:
        metadata = {"name": self.name, "namespace": self._namespace}
        if version is not None:
            metadata["resourceVersion"] = version
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }

    async def _release(self) -> None:
        if not self.held():
            return
        self._leading_until_s = float("-inf")
        try:
            found = await self._kube.get_as(self._path, _Lease)
            if found.spec.holder_identity != self.identity:
                return
            now = format_micro_time(self._utc_now())
            spec = {
                "holderIdentity": "",
                "leaseDurationSeconds": _RELEASED_DURATION_S,
                "acquireTime": found.spec.acquire_time or now,
                "renewTime": now,
                "leaseTransitions": found.spec.lease_transitions or 0,
            }
            await self._kube.put(
                self._path, self._lease(found.metadata.resource_version, spec), timeout_s=self._retry_s
            )
        except KubeError as error:
            self._log.info("lease not released; it ends by itself", error=str(error))
