"""Pods bound per second: the API server alone, kube-scheduler's native gangs, and Fluence, one after another.

All pods are created first. The time is from the first group object to the last pod bound, both seen in a
watch; for the bare binding calls it is from the first call. The fake kubelet is paused meanwhile, because
its status writes would take longer than binding.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from groups.contract import GROUP_LABEL, POD_GROUP_API_VERSION, POD_GROUP_PLURAL, SIZE_LABEL
from groups.objects import ObjectMeta
from kube.objects import WatchEvent
from kube.session import Kube

Way = Literal["ceiling", "native", "fluence"]
WAYS: Final[tuple[Way, ...]] = ("ceiling", "native", "fluence")
NATIVE_API: Final = "/apis/scheduling.k8s.io/v1beta1"
_SCHEDULER: Final[dict[Way, str]] = {
    "ceiling": "nobody",
    "native": "default-scheduler",
    "fluence": "fluence",
}
_AT_ONCE: Final = 32
_DEADLINE_S: Final = 180.0
_SILENCE_S: Final = 200.0


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: _Spec = _Spec()


class _Any(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


@dataclass(frozen=True)
class Row:
    """A number of gangs with a number of pods each."""

    gangs: int
    size: int

    @property
    def pods(self) -> int:
        """How many pods there are in all."""
        return self.gangs * self.size

    def members(self) -> Iterator[tuple[str, str]]:
        """(group, pod) for every pod, gang after gang."""
        for gang in range(self.gangs):
            for number in range(self.size):
                yield f"g{gang:03}", f"g{gang:03}-{number:04}"


#: The three rows of docs/performance.md.
ROWS: Final = (Row(10, 100), Row(1, 1000), Row(100, 10))


def _pod(way: Way, row: Row, namespace: str, group: str, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "schedulerName": _SCHEDULER[way],
        "containers": [
            {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
        ],
    }
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if way == "native":
        spec["schedulingGroup"] = {"podGroupName": group}
    elif way == "fluence":
        metadata["labels"] = {GROUP_LABEL: group, SIZE_LABEL: str(row.size)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def at_once(
    jobs: Iterator[Callable[[], Awaitable[object]]], width: int = _AT_ONCE, deadline_s: float = _DEADLINE_S
) -> None:
    """Run all jobs, `width` at a time, in their order."""

    async def worker() -> None:
        for job in jobs:
            await job()

    async with asyncio.timeout(deadline_s), asyncio.TaskGroup() as group:
        for _ in range(width):
            group.create_task(worker())


async def create_pods(
    kube: Kube, way: Way, row: Row, namespace: str, deadline_s: float = _DEADLINE_S
) -> None:
    """Create every pod of the row."""
    path = f"/api/v1/namespaces/{namespace}/pods"

    def job(group: str, name: str) -> Callable[[], Awaitable[object]]:
        return lambda: kube.post(path, _pod(way, row, namespace, group, name))

    await at_once((job(group, name) for group, name in row.members()), deadline_s=deadline_s)


async def bind_directly(kube: Kube, row: Row, namespace: str, nodes: list[str]) -> None:
    """The floor: one binding call for each pod, and nothing else."""

    def job(number: int, name: str) -> Callable[[], Awaitable[object]]:
        body = {
            "metadata": {"name": name, "namespace": namespace},
            "target": {"kind": "Node", "name": nodes[number % len(nodes)]},
        }
        return lambda: kube.post(f"/api/v1/namespaces/{namespace}/pods/{name}/binding", body)

    await at_once(job(number, name) for number, (_, name) in enumerate(row.members()))


async def _create_native_groups(kube: Kube, row: Row, namespace: str) -> None:
    path = f"{NATIVE_API}/namespaces/{namespace}/podgroups"

    def job(group: str) -> Callable[[], Awaitable[object]]:
        body = {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": group, "namespace": namespace},
            "spec": {"schedulingPolicy": {"gang": {"minCount": row.size}}},
        }
        return lambda: kube.post(path, body)

    await at_once(job(f"g{gang:03}") for gang in range(row.gangs))


class Stopwatch:
    """Observes the first group object and each bound pod through watches."""

    def __init__(self, kube: Kube, row: Row, namespace: str, groups_path: str | None) -> None:
        self._kube = kube
        self._row = row
        self._namespace = namespace
        self._groups_path = groups_path
        self._bound: set[str] = set()
        self.first_group_s: float | None = None
        self.first_bound_s: float | None = None
        self.last_bound_s: float | None = None
        self._watching = asyncio.Event()
        self._grouped = asyncio.Event()

    async def run(self) -> None:
        """Watch until every pod of the row is bound."""
        async with asyncio.timeout(_DEADLINE_S), asyncio.TaskGroup() as group:
            if self._groups_path is not None:
                group.create_task(self._watch_groups(self._groups_path))
            group.create_task(self._watch_pods())

    async def _watch_groups(self, path: str) -> None:
        async for _ in self._events(path, _Any):
            self.first_group_s = time.monotonic()
            return

    async def _watch_pods(self) -> None:
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        async for pod in self._events(path, _Pod):
            if not pod.spec.node_name or pod.metadata.name in self._bound:
                continue
            self._bound.add(pod.metadata.name)
            if self.first_bound_s is None:
                self.first_bound_s = time.monotonic()
            if len(self._bound) == self._row.pods:
                self.last_bound_s = time.monotonic()
                return

    async def _events(self, path: str, kind: type[Any]) -> Any:
        """Every object as it changes. The API server may end a watch, which then resumes where it was."""
        listed = msgspec.json.decode(await self._kube.get(path, {"limit": "1"}))
        version = listed["metadata"]["resourceVersion"]
        decoder = msgspec.json.Decoder(WatchEvent)
        objects = msgspec.json.Decoder(kind)
        while True:
            params = {"watch": "1", "resourceVersion": version}
            async with self._kube.lines(path, params, silence_s=_SILENCE_S) as lines:
                self._watching.set()
                async for line in lines:
                    found = objects.decode(decoder.decode(line).object)
                    version = found.metadata.resource_version
                    yield found

    async def ready(self) -> None:
        """Wait until the watch is up."""
        async with asyncio.timeout(30):
            await self._watching.wait()


@dataclass(frozen=True)
class Result:
    """One measurement."""

    pods_per_s: float
    first_bound_s: float


@dataclass(frozen=True)
class Switches:
    """What a measurement must turn on before and off after it."""

    start_controller: Callable[[], Awaitable[None]]
    stop_controller: Callable[[], Awaitable[None]]


async def measure(kube: Kube, way: Way, row: Row, nodes: list[str], switches: Switches) -> Result:
    """Measure one way in one row: create pods, start, watch, clean up."""
    namespace = f"bench-{way}-{row.gangs}x{row.size}-{int(time.time())}"
    await kube.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    await wait_for_service_account(kube, namespace)
    await create_pods(kube, way, row, namespace)
    watch = Stopwatch(kube, row, namespace, _groups_path(way, namespace))
    watching = asyncio.create_task(watch.run())
    await watch.ready()
    started_s = time.monotonic()
    try:
        if way == "ceiling":
            await bind_directly(kube, row, namespace, nodes)
        elif way == "native":
            await _create_native_groups(kube, row, namespace)
        else:
            await switches.start_controller()
        await watching
    finally:
        watching.cancel()
        if way == "fluence":
            await switches.stop_controller()
        await _clean_up(kube, namespace)
    assert watch.last_bound_s is not None
    assert watch.first_bound_s is not None
    start_s = watch.first_group_s if watch.first_group_s is not None else started_s
    return Result(row.pods / (watch.last_bound_s - start_s), watch.first_bound_s - start_s)


def _groups_path(way: Way, namespace: str) -> str | None:
    return {
        "ceiling": None,
        "native": f"{NATIVE_API}/namespaces/{namespace}/podgroups",
        "fluence": f"/apis/{POD_GROUP_API_VERSION}/namespaces/{namespace}/{POD_GROUP_PLURAL}",
    }[way]


async def wait_for_service_account(kube: Kube, namespace: str) -> None:
    """Pods are refused until the namespace has its default service account."""
    async with asyncio.timeout(30):
        while True:
            found = await kube.get(f"/api/v1/namespaces/{namespace}/serviceaccounts")
            if b'"default"' in found:
                return
            await asyncio.sleep(0.05)


async def wait_until_bound(kube: Kube, row: Row, namespace: str) -> None:
    """Wait until every pod of the row is bound, by polling."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    async with asyncio.timeout(_DEADLINE_S):
        while True:
            unbound = await kube.get(path, {"fieldSelector": "spec.nodeName=", "limit": "1"})
            if b'"items":[]' in unbound:
                return
            await asyncio.sleep(0.5)


async def _clean_up(kube: Kube, namespace: str) -> None:
    """Delete the row's pods, and wait until all are gone: they would disturb the next measurement."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await kube.request("DELETE", pods, body=b'{"gracePeriodSeconds":0}', timeout_s=60)
    async with asyncio.timeout(60):
        while True:
            if b'"items":[]' in await kube.get(pods, {"limit": "1"}):
                break
            await asyncio.sleep(0.1)
    await kube.delete(f"/api/v1/namespaces/{namespace}")
