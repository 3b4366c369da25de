"""Leader election with a coordination.k8s.io Lease: at most one leader, and a leader that knows when it ends.

Owns: taking, renewing and releasing the lease object. Does not own: what leaders do, or how a term ends in
time (`kube.term`).

Three rules keep two leaders apart (case C79):

- A holder renews only the version of the object that it wrote itself. Anything else in its place, even a
  lease that another process has taken and released again, ends the term. The next term begins with new work.
- A holder counts from the moment at which it *sent* its last renewal, the others from the moment at which
  they have *read* it. Wall clocks of different machines are never compared.
- Work of a term writes through `Term.kube`, which asks before each write whether the term still lasts, at the
  moment at which the bytes are handed over. `kube.watchdog` ends a process that was frozen at that moment.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import structlog

from groups.times import format_micro_time, utc_now
from kube import metrics
from kube.backoff import Backoff
from kube.errors import ApiError, Conflict, Forbidden, KubeError, LeaseLost, NotFound
from kube.session import Kube
from kube.term import Clock, LeaseTimes, Term, boot_time_s
from kube.watchdog import NoWatchdog, Watchdog

log = structlog.get_logger(__name__)

_RELEASED_DURATION_S: Final = 1


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
    """One lease object and the attempts of this process to hold it."""

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        name: str,
        identity: str,
        *,
        duration_s: int = 15,
        watchdog: Watchdog | None = None,
        now_s: Clock = boot_time_s,
        utc_now: Callable[[], dt.datetime] = utc_now,
    ) -> None:
        """`identity` must differ between any two processes. `now_s` counts seconds, suspension included."""
        self.name = name
        self.identity = identity
        self._kube = kube
        self._namespace = namespace
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._path = f"{self._collection}/{name}"
        self._duration_s = duration_s
        self._times = LeaseTimes(duration_s)
        self._watchdog = watchdog or NoWatchdog()
        self._now_s = now_s
        self._utc_now = utc_now
        self._term = Term(kube, self._times, now_s)
        #: The object as we wrote it last.
        self._own = _Lease(_LeaseMeta(""))
        #: Renewals whose answer did not come: the renewTime that they wrote, and when they were sent.
        self._unanswered: dict[str, float] = {}
        #: The version that another holder wrote last, and when we have read it.
        self._seen: tuple[str, float] = ("", float("-inf"))
        self._log = log.bind(lease=f"{namespace}/{name}", identity=identity)

    def held(self) -> bool:
        """Whether this process leads at this very moment."""
        return self._term.held()

    async def lead(self, work: Callable[[Term], Awaitable[None]]) -> None:
        """Wait until this process leads, then run `work` beside the renewals, until either ends.

        Raises LeaseLost (with `work` cancelled) when the lease was not renewed in time, or was changed by
        somebody else. The lease is released when `work` ends or this call is cancelled, so that a successor
        need not wait for its end.
        """
        self._term = term = await self._take_when_free()
        metrics.LEADING.labels(self.name).set(1)
        self._log.info("leading")
        working = asyncio.ensure_future(work(term))
        renewing = asyncio.create_task(self._renew_until_lost(term), name=f"renew lease {self.name}")
        lost = False
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            lost = renewing.done()
            # The renewal ends only by failing, and its failure says more than the cancelled work.
            (renewing if lost else working).result()
        finally:
            if lost:
                term.end()
            # Where the lease is not lost, the work may still write while it ends: events about what was done.
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            term.end()
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            self._watchdog.stop()
            metrics.LEADING.labels(self.name).set(0)
            # A write that was cut off may still be carried out. Neither a successor nor our own next term
            # begins before it has arrived.
            await asyncio.sleep(term.unsettled_s())
            if not lost:
                await self._release()

    async def _take_when_free(self) -> Term:
        backoff = Backoff(first_s=self._times.renew_every_s, most_s=self._times.renew_every_s)
        failures = 0
        while True:
            retry_after_s = 0.0
            try:
                if (term := await self._try_to_take()) is not None:
                    return term
                failures = 0
            except Conflict:
                failures = 0
            except KubeError as error:
                failures += 1
                if isinstance(error, Forbidden):
                    self._log.error("the lease cannot be taken: a right is missing", error=str(error))
                elif failures == 1:
                    # An API server that is away for minutes is one line, not hundreds.
                    self._log.warning("the lease cannot be taken now", error=str(error))
                retry_after_s = _retry_after_s(error)
            await asyncio.sleep(max(backoff.next_delay_s(), retry_after_s))

    async def _try_to_take(self) -> Term | None:
        """One attempt to take the lease; the term that begins, or None while another process holds it."""
        try:
            found = await self._read()
        except NotFound:
            method, path, old, version = "POST", self._collection, _LeaseSpec(), None
        else:
            if not self._is_free(found):
                return None
            method, path, old, version = "PUT", self._path, found.spec, found.metadata.resource_version
        sent_s = self._now_s()
        # Conflict: another process wrote first; the next attempt reads what it wrote.
        answer = await self._write(method, path, self._spec(old, new_term=version is not None), version)
        self._unanswered.clear()
        self._own = answer
        term = Term(self._kube, self._times, self._now_s)
        self._extend(term, sent_s)
        return term

    def _is_free(self, found: _Lease) -> bool:
        holder = found.spec.holder_identity
        if not holder or holder == self.identity:
            return True
        # Counted from after the answer: the holder may have renewed while our request was on its way.
        now_s = self._now_s()
        if self._seen[0] != found.metadata.resource_version:
            self._seen = (found.metadata.resource_version, now_s)
        return now_s >= self._seen[1] + (found.spec.lease_duration_seconds or self._duration_s)

    def _extend(self, term: Term, sent_s: float) -> None:
        term.renewed(sent_s)
        self._watchdog.start(term.remaining_s() + self._times.write_timeout_s)

    async def _renew_until_lost(self, term: Term) -> None:
        pause_s = self._times.renew_every_s
        while (remaining_s := term.remaining_s()) > 0:
            await asyncio.sleep(min(pause_s, remaining_s))
            # Asked again after each wait: the process may have been frozen.
            if not term.held():
                break
            pause_s = self._times.renew_every_s
            try:
                await self._renew(term)
            except LeaseLost:
                raise
            except KubeError as error:
                self._log.warning("lease not renewed", error=str(error))
                pause_s = max(self._times.renew_every_s / 3, _retry_after_s(error))
        raise LeaseLost(
            f"lease {self._namespace}/{self.name} is lost: not renewed for {self._times.renew_deadline_s:g} s"
        )

    async def _renew(self, term: Term) -> None:
        spec = self._spec(self._own.spec, new_term=False)
        sent_s = self._unanswered[spec["renewTime"]] = self._now_s()
        try:
            answer = await self._write("PUT", self._path, spec, self._own.metadata.resource_version)
        except (Conflict, NotFound):
            del self._unanswered[spec["renewTime"]]
            sent_s, answer = await self._own_unanswered_version()
        self._unanswered.clear()
        self._own = answer
        self._extend(term, sent_s)

    async def _own_unanswered_version(self) -> tuple[float, _Lease]:
        """The object, if a renewal of ours wrote it whose answer did not come; else LeaseLost."""
        try:
            found = await self._read()
        except NotFound as error:
            raise self._taken("it was deleted") from error
        sent_s = self._unanswered.get(found.spec.renew_time or "")
        if found.spec.holder_identity != self.identity or sent_s is None:
            raise self._taken(f'it was changed, and its holder is "{found.spec.holder_identity or ""}"')
        return sent_s, found

    def _taken(self, why: str) -> LeaseLost:
        return LeaseLost(f"lease {self._namespace}/{self.name} is lost: {why}")

    async def _release(self) -> None:
        try:
            try:
                await self._write_released()
            except Conflict:
                _, self._own = await self._own_unanswered_version()
                await self._write_released()
        except KubeError as error:
            self._log.info("lease not released; it ends by itself", error=str(error))

    async def _write_released(self) -> None:
        spec = {
            **self._spec(self._own.spec, new_term=False),
            "holderIdentity": "",
            "leaseDurationSeconds": _RELEASED_DURATION_S,
        }
        await self._write("PUT", self._path, spec, self._own.metadata.resource_version)

    def _spec(self, old: _LeaseSpec, *, new_term: bool) -> dict[str, Any]:
        now = format_micro_time(self._utc_now())
        ours = old.holder_identity == self.identity
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._duration_s,
            "acquireTime": old.acquire_time if ours and old.acquire_time else now,
            "renewTime": now,
            "leaseTransitions": (old.lease_transitions or 0) + (1 if new_term and not ours else 0),
        }

    async def _read(self) -> _Lease:
        return _decode(await self._kube.get(self._path, timeout_s=self._times.margin_s))

    async def _write(self, method: str, path: str, spec: dict[str, Any], version: str | None) -> _Lease:
        metadata = {"name": self.name, "namespace": self._namespace}
        if version is not None:
            metadata["resourceVersion"] = version
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }
        return _decode(
            await self._kube.request(
                method, path, body=msgspec.json.encode(body), timeout_s=self._times.margin_s
            )
        )


def _decode(body: bytes) -> _Lease:
    try:
        return msgspec.json.decode(body, type=_Lease)
    except msgspec.MsgspecError as error:
        raise KubeError(f"the answer is not a Lease: {error}") from error


def _retry_after_s(error: KubeError) -> float:
    return (error.retry_after_s or 0.0) if isinstance(error, ApiError) else 0.0
