"""Bind the members of a gang: one call for each pod, many at once, each checked by uid.

Owns: the calls, their retries, and giving back what was assumed when one fails. Does not own: the decision,
or what is told about it.

Binding N pods is not atomic (rule B7). A decision is therefore carried out as fast as the server allows, in
the order in which gangs were decided, and abandoned the moment something contradicts it: the node has gone,
the pod is another one, the lease is lost. What is bound stays bound and counts for the next attempt (A5).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import structlog

from groups.contract import RUN_ANNOTATION
from groups.objects import Key
from kube.backoff import Backoff, persist
from kube.errors import ApiError, Conflict, KubeError, NotFound, Unreachable
from kube.session import Kube
from scheduler import metrics
from scheduler.objects import Pod
from scheduler.pods import CachedPod

log = structlog.get_logger(__name__)

#: As many calls at once as keep an API server busy on a small machine (docs/performance.md).
AT_ONCE: Final = 32
_DEADLINE_S: Final = 30.0
_TIMEOUT_S: Final = 10.0


@dataclass(slots=True)
class GangBinding:
    """One decision being carried out."""

    key: Key
    run_uid: str
    pods: Sequence[CachedPod]
    nodes: Mapping[str, str]
    node_uids: Mapping[str, str] = field(default_factory=dict)
    started_s: float = field(default_factory=time.monotonic)
    stop: str = ""

    def node_of(self, pod: CachedPod) -> str:
        """The node that was chosen for `pod`."""
        return self.nodes[pod.metadata.uid]


class BindRefused(KubeError):
    """The decision no longer holds for this pod; the text says why."""


def binding_body(pod: CachedPod, node: str, run_uid: str) -> bytes:
    """A Binding with the pod's uid, so that a namesake is never bound by an old decision (rule B2).

    The API server copies its annotations to the pod (rule B5): the mark of the run goes with it.
    """
    meta = pod.metadata
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": meta.name,
                "namespace": meta.namespace,
                "uid": meta.uid,
                "annotations": {RUN_ANNOTATION: run_uid},
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
    )


class Binder:
    """Carries decisions out, at most `AT_ONCE` calls at a time over all gangs."""

    def __init__(
        self,
        kube: Kube,
        *,
        may_bind: Callable[[], bool],
        node_is_open: Callable[[str, str], bool],
        on_bound: Callable[[Key, CachedPod, str], None],
        on_refused: Callable[[Key, CachedPod, str], None],
        on_settled: Callable[[Key], None],
    ) -> None:
        """`on_refused` is called for each member that was not bound, `on_settled` once for a decision."""
        self._kube = kube
        self._may_bind = may_bind
        self._node_is_open = node_is_open
        self._on_bound = on_bound
        self._on_refused = on_refused
        self._on_settled = on_settled
        self._work: asyncio.Queue[tuple[GangBinding, CachedPod]] = asyncio.Queue()
        self._open = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._left: dict[int, int] = {}

    def bind(self, gang: GangBinding) -> None:
        """Queue a whole gang; returns at once. First come, first bound."""
        self._left[id(gang)] = len(gang.pods)
        self._open += len(gang.pods)
        self._idle.clear()
        for pod in gang.pods:
            self._work.put_nowait((gang, pod))

    def observed(self, uid: str) -> None:
        """The watch shows that a pod is bound, has ended or has gone."""

    async def when_idle(self, patience_s: float = 5.0) -> None:
        """Wait until no binding is under way, at most `patience_s`: less urgent writes stand behind."""
        if self._idle.is_set():
            return
        try:
            async with asyncio.timeout(patience_s):
                await self._idle.wait()
        except TimeoutError:
            return

    async def run(self) -> None:
        """Bind until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(AT_ONCE):
                group.create_task(self._worker(), name=f"bind {number}")

    async def _worker(self) -> None:
        while True:
            gang, pod = await self._work.get()
            node = gang.node_of(pod)
            try:
                await self._bind_one(gang, pod, node)
            except KubeError as error:
                gang.stop = gang.stop or f"pod {pod.metadata.key}: {error}"
                metrics.BINDS.labels("failed").inc()
                log.warning(
                    "member not bound", group=gang.key, pod=pod.metadata.key, node=node, error=str(error)
                )
                self._on_refused(gang.key, pod, str(error))
            else:
                metrics.BINDS.labels("bound").inc()
                self._on_bound(gang.key, pod, node)
            finally:
                self._finished_one(gang)

    def _finished_one(self, gang: GangBinding) -> None:
        self._open -= 1
        if self._open == 0:
            self._idle.set()
        self._left[id(gang)] -= 1
        if self._left[id(gang)] == 0:
            del self._left[id(gang)]
            metrics.GANG_SECONDS.observe(time.monotonic() - gang.started_s)
            # Only now: a new decision must not meet calls of the old one that are still under way.
            self._on_settled(gang.key)

    async def _bind_one(self, gang: GangBinding, pod: CachedPod, node: str) -> None:
        if gang.stop:
            raise BindRefused(f"not tried, since another member failed ({gang.stop})")
        started_s = time.monotonic()
        await persist(
            lambda: self._post(gang, pod, node),
            deadline_s=_DEADLINE_S,
            backoff=Backoff(first_s=0.1, most_s=5.0),
        )
        metrics.BIND_SECONDS.observe(time.monotonic() - started_s)

    async def _post(self, gang: GangBinding, pod: CachedPod, node: str) -> None:
        # Asked before each call, not once for each gang: a lease can end and a node can go in between.
        if not self._may_bind():
            raise BindRefused("this process no longer leads")
        if not self._node_is_open(node, gang.node_uids.get(node, "")):
            raise BindRefused(f"node {node} has gone since it was chosen")
        path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
        try:
            await self._kube.post(
                f"{path}/binding", binding_body(pod, node, gang.run_uid), timeout_s=_TIMEOUT_S
            )
        except (Unreachable, Conflict) as error:
            # The call may have arrived though its answer did not, and its repetition is then a conflict (B6).
            if await self._is_bound_to(path, pod, node):
                return
            if isinstance(error, Conflict):
                raise BindRefused(str(error)) from error
            raise
        except NotFound as error:
            raise BindRefused("the pod has gone") from error

    async def _is_bound_to(self, path: str, pod: CachedPod, node: str) -> bool:
        try:
            found = await self._kube.get_as(path, Pod)
        except NotFound as error:
            raise BindRefused("the pod has gone") from error
        except (ApiError, Unreachable):
            return False
        if found.metadata.uid != pod.metadata.uid:
            raise BindRefused("another pod has taken its name")
        if found.spec.node_name and found.spec.node_name != node:
            raise BindRefused(f"it was bound to {found.spec.node_name} by somebody else")
        return found.spec.node_name == node
