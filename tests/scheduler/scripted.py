"""The scheduler without a cluster: scripted events in, its decisions and its whole state out.

    script = Script()
    script.node("a", cpu=4)
    script.group("g", 3)
    script.gang("g", 3)
    await script.settle()
    assert script.bound == {"g-0": "a", "g-1": "a", "g-2": "a"}

The cache, the queue, the loop and the held room are the real ones. The binder keeps its decisions until the
test answers them; the clock stands still until the test moves it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from groups.contract import (
    GROUP_LABEL,
    GROUP_SCHEDULED_CONDITION,
    ON_STRANDED_ANNOTATION,
    RUN_ANNOTATION,
)
from groups.objects import Condition, Key, ObjectMeta, OwnerReference
from groups.podgroup import PodGroup, PodGroupSpec, PodGroupStatus
from kube.reflector import Reflector
from scheduler import objects as api
from scheduler.bind import GangBinding
from scheduler.cache import ClusterCache
from scheduler.gangs import GangState
from scheduler.holding import Holding
from scheduler.loop import SchedulingLoop
from scheduler.pods import CachedPod, cached
from scheduler.release import Releaser
from scheduler.report import Reporter
from scheduler_core.placed import State
from scheduler_core.reasons import Refusal

PHASES = {"running": "Running", "succeeded": "Succeeded", "failed": "Failed"}


def pod(
    name: str,
    state: str = "pending",
    *,
    group: str = "g",
    cpu: str = "1",
    priority: int = 0,
    node: str = "n",
    run: str = "run-1",
    owner: str = "job-1",
    scheduler: str = "fluence",
    labels: Mapping[str, str] | None = None,
    uid: str = "",
    volumes: Any = None,
) -> api.Pod:
    """A pod on the wire. `state` is pending, bound, running, succeeded, failed, terminating or gated."""
    placed = state in ("bound", "running", "succeeded", "failed")
    return api.Pod(
        ObjectMeta(
            name=name,
            namespace="ns",
            uid=uid or f"uid-{name}",
            resource_version="1",
            labels={GROUP_LABEL: group} if labels is None else dict(labels),
            annotations={RUN_ANNOTATION: run} if placed and run else None,
            owner_references=(OwnerReference("Job", owner, owner, "batch/v1", True),) if owner else None,
            deletion_timestamp="2026-01-01T00:00:00Z" if state == "terminating" else None,
        ),
        api.PodSpec(
            scheduler_name=scheduler,
            node_name=node if placed else "",
            priority=priority,
            containers=(api.Container("c", api.Resources({"cpu": cpu})),),
            scheduling_gates=({"name": "wait"},) if state == "gated" else None,
            volumes=volumes,
        ),
        api.PodStatus(phase=PHASES.get(state, "Pending")),
    )


def member(name: str, state: str = "pending", **more: Any) -> CachedPod:
    """A pod as the scheduler keeps it."""
    return cached(pod(name, state, **more))


def pod_group(
    name: str,
    minimum: int,
    *,
    uid: str = "run-1",
    created: str = "",
    stamped: str | None = None,
    owners: Sequence[str] = (),
    phase: str = "",
    scheduled: str = "",
    on_stranded: str = "",
    timeout_s: int | None = None,
) -> PodGroup:
    """A PodGroup; `scheduled` is the status of its condition, empty for none."""
    condition = Condition(GROUP_SCHEDULED_CONDITION, scheduled)
    return PodGroup(
        ObjectMeta(
            name=name,
            namespace="ns",
            uid=uid,
            creation_timestamp=created,
            annotations={ON_STRANDED_ANNOTATION: on_stranded} if on_stranded else None,
            owner_references=tuple(OwnerReference("Job", one, one, "batch/v1") for one in owners) or None,
        ),
        PodGroupSpec(minimum, timeout_s),
        PodGroupStatus(phase=phase, creation_time=stamped, conditions=(condition,) if scheduled else None),
    )


class Table:
    """A reflector's copy of a collection, changed by the test."""

    def __init__(self) -> None:
        self.items: dict[Key, Any] = {}
        self._subscribers: list[Callable[[Any, Any], None]] = []

    def subscribe(self, subscriber: Callable[[Any, Any], None]) -> None:
        self._subscribers.append(subscriber)

    def put(self, item: Any) -> None:
        old = self.items.get(item.metadata.key)
        if old is not None and old.metadata.uid != item.metadata.uid:
            self.remove(item.metadata.key)
            old = None
        self.items[item.metadata.key] = item
        for subscriber in self._subscribers:
            subscriber(old, item)

    def remove(self, key: str) -> None:
        old = self.items.pop(Key(key), None)
        if old is not None:
            for subscriber in self._subscribers:
                subscriber(old, None)


class Reports:
    """What users would read, by kind: (what, group, text)."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str]] = []

    def of(self, what: str) -> list[str]:
        return [key for kind, key, _ in self.said if kind == what]

    def placing(self, pods: Iterable[CachedPod]) -> None:
        pass

    def bound(self, pod: CachedPod, node: str) -> None:
        self.said.append(("bound", pod.metadata.name, node))

    def bind_failed(self, pod: CachedPod, why: str) -> None:
        self.said.append(("bind failed", pod.metadata.name, why))

    def refused(self, state: GangState, refusal: Refusal, group: PodGroup | None) -> None:
        self.said.append(("refused", state.key, refusal.message))

    def waiting(self, state: GangState, group: PodGroup | None) -> None:
        self.said.append(("waiting", state.key, state.message))

    def complete(self, state: GangState, group: PodGroup | None) -> None:
        self.said.append(("complete", state.key, ""))

    def scheduler_error(self, state: GangState, group: PodGroup | None, text: str) -> None:
        self.said.append(("error", state.key, text))

    def released(self, state: GangState, pods: Iterable[CachedPod]) -> None:
        self.said.append(("released", state.key, ",".join(sorted(one.metadata.name for one in pods))))


class Decisions:
    """A binder that keeps what was decided until the test answers."""

    def __init__(self) -> None:
        self.open: list[GangBinding] = []
        self.log: list[GangBinding] = []
        self.seen: list[str] = []

    def bind(self, gang: GangBinding) -> None:
        self.open.append(gang)
        self.log.append(gang)

    def observed(self, uid: str) -> None:
        self.seen.append(uid)


class Released:
    """Deletions that were asked for."""

    def __init__(self) -> None:
        self.pods: list[CachedPod] = []

    def release(self, pods: Sequence[CachedPod]) -> list[CachedPod]:
        self.pods += pods
        return list(pods)


class Script:
    """The scheduler between scripted caches and a scripted binder."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.tables = {name: Table() for name in ("pods", "nodes", "groups", "claims", "volumes")}
        self.reports, self.decisions, self.releaser = Reports(), Decisions(), Released()
        self.cache = ClusterCache(
            "fluence", **{name: cast(Reflector[Any], one) for name, one in self.tables.items()}
        )
        self.start()

    def start(self) -> None:
        """Begin a term: nothing of an earlier one is left but the caches."""
        self.cache.forget_all()
        reporter = cast(Reporter, self.reports)
        self.holding = Holding(self.cache, cast(Releaser, self.releaser), reporter)
        self.loop = SchedulingLoop(
            self.cache, self.decisions, reporter, self.holding, now_s=lambda: self.now_s
        )
        self.cache.listener = self.loop
        self.loop.queue.touch_all(self.cache.gang_keys())

    # What happens in the cluster

    def node(self, name: str, *, cpu: int = 4, uid: str = "", ready: bool = True, **meta: Any) -> None:
        allocatable = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
        self.tables["nodes"].put(
            api.Node(
                ObjectMeta(name=name, uid=uid or f"uid-{name}", **meta),
                api.NodeSpec(),
                api.NodeStatus(allocatable, (Condition("Ready", "True" if ready else "False"),)),
            )
        )

    def group(self, name: str, minimum: int, **more: Any) -> None:
        self.tables["groups"].put(pod_group(name, minimum, **{"owners": ("job-1",), **more}))

    def pod(self, name: str, state: str = "pending", **more: Any) -> None:
        self.tables["pods"].put(cached(pod(name, state, **more)))

    def gang(self, group: str, size: int, **more: Any) -> None:
        for number in range(size):
            self.pod(f"{group}-{number}", group=group, **more)

    def delete(self, name: str) -> None:
        self.tables["pods"].remove(f"ns/{name}")

    # What the binder's calls come to

    def bind(self, decision: GangBinding, names: Iterable[str] | None = None, *, shown: bool = True) -> None:
        """These members (default: all) are bound; `shown`: the watch shows it."""
        wanted = set(names) if names is not None else None
        for one in decision.pods:
            if shown and (wanted is None or one.metadata.name in wanted):
                self.show_bound(one, decision.node_of(one), decision.run_uid)
        if wanted is None:
            self.close(decision)

    def show_bound(self, one: CachedPod, node: str, run: str) -> None:
        meta = msgspec.structs.replace(one.metadata, annotations={RUN_ANNOTATION: run})
        self.tables["pods"].put(msgspec.structs.replace(one, metadata=meta, node_name=node))

    def refuse(self, decision: GangBinding, name: str, why: str = "the pod has gone") -> None:
        (one,) = [pod for pod in decision.pods if pod.metadata.name == name]
        self.loop.member_refused(decision.key, one, why)

    def close(self, decision: GangBinding) -> None:
        """All calls of the decision have ended."""
        self.decisions.open.remove(decision)
        self.loop.decision_settled(decision.key)

    # What the scheduler does

    async def settle(self) -> None:
        """Let the scheduler look until nothing is due."""
        for _ in range(50):
            await self.loop.round()
            await asyncio.sleep(0)
            if self.loop.queue.next_due_s() != 0.0:
                return
        raise AssertionError("the scheduler does not come to rest")

    async def after(self, seconds: float) -> None:
        """Move the clock, in steps in which the scheduler looks at what is due."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s = min(end_s, self.now_s + 0.5)
            await self.loop.round()

    @property
    def bound(self) -> dict[str, str]:
        """Every decision so far: name of the pod -> node."""
        return {pod.metadata.name: one.node_of(pod) for one in self.decisions.log for pod in one.pods}

    def held(self, group: str) -> dict[str, int]:
        """Room held for a group: members by node."""
        found: dict[str, int] = {}
        for uid in self.cache.ledger.held(f"ns/{group}"):
            placed = self.cache.ledger.placed(uid)
            assert placed is not None
            assert placed.state is State.HELD
            found[placed.node] = found.get(placed.node, 0) + 1
        return found
