"""How soon a gang that does not fit is told so, while the scheduler binds as fast as it can.

A real cluster: pods enough for a minute of binding exist before the clock starts. Meanwhile a gang that fits
nowhere is made every few seconds. The time runs from its last pod to the condition `Scheduled=False` of its
PodGroup, and to the condition of its first pod, both read from watches.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from bench import gangs
from devcluster.progress import Say
from groups.contract import GROUP_LABEL, GROUP_SCHEDULED_CONDITION, SIZE_LABEL
from groups.objects import Condition, ObjectMeta
from groups.podgroup import pod_groups_of
from kube.objects import WatchEvent
from kube.session import Kube

#: A minute of binding at 800 pods a second.
ROW: Final = gangs.Row(500, 100)
_EVERY_S: Final = 4.0
_FIRST_S: Final = 3.0
_SIZE: Final = 8
_NAMESPACE: Final = "reports"
_SILENCE_S: Final = 200.0
_DEADLINE_S: Final = 180.0


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[Condition, ...] | None = None


class _Object(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    status: _Status = _Status()


class _Conditions:
    """When an object first had a condition with the status False, by name, as a watch shows it."""

    def __init__(self, kube: Kube, path: str, type_: str) -> None:
        self._kube = kube
        self._path = path
        self._type = type_
        self.seen_s: dict[str, float] = {}
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch while the body runs."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        version = json.loads(await self._kube.get(self._path, {"limit": "1"}))["metadata"]["resourceVersion"]
        events, objects = msgspec.json.Decoder(WatchEvent), msgspec.json.Decoder(_Object)
        while True:
            params = {"watch": "1", "resourceVersion": version}
            async with self._kube.lines(self._path, params, silence_s=_SILENCE_S) as lines:
                async for line in lines:
                    found = objects.decode(events.decode(line).object)
                    version = found.metadata.resource_version
                    self._note(found)

    def _note(self, found: _Object) -> None:
        for one in found.status.conditions or ():
            if one.type == self._type and one.status == "False":
                self.seen_s.setdefault(found.metadata.name, time.monotonic())
                self._changed.set()

    async def of(self, name: str) -> float:
        """When the object had it; waits for it."""
        while name not in self.seen_s:
            await self._changed.wait()
            self._changed.clear()
        return self.seen_s[name]


async def measure(kube: Kube, switches: gangs.Switches, say: Say, row: gangs.Row = ROW) -> dict[str, Any]:
    """Bind the row; `pods_per_s`, and seconds until group and pod were told, `median` and `worst` each."""
    for namespace in ("busy", _NAMESPACE):
        await kube.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        await gangs.wait_for_service_account(kube, namespace)
    say(f"reports: creating {row.pods} pods")
    await gangs.create_pods(kube, "fluence", row, "busy", deadline_s=_DEADLINE_S)
    watch = gangs.Stopwatch(kube, row, "busy", None)
    pods = _Conditions(kube, f"/api/v1/namespaces/{_NAMESPACE}/pods", "PodScheduled")
    groups = _Conditions(kube, pod_groups_of(_NAMESPACE), GROUP_SCHEDULED_CONDITION)
    binding = asyncio.create_task(watch.run())
    await watch.ready()
    told: list[tuple[float, float]] = []
    async with pods.watching(), groups.watching():
        await switches.start_controller()
        try:
            while watch.first_bound_s is None and not binding.done():
                await asyncio.wait([binding], timeout=0.1)
            await asyncio.wait([binding], timeout=_FIRST_S)
            while not binding.done():
                told.append(await _one(kube, len(told), pods, groups))
                say(f"reports: group told after {told[-1][0]:.2f} s, first pod after {told[-1][1]:.2f} s")
                await asyncio.wait([binding], timeout=_EVERY_S)
            await binding
        finally:
            binding.cancel()
            await switches.stop_controller()
    assert watch.last_bound_s is not None
    assert watch.first_bound_s is not None
    seconds = watch.last_bound_s - watch.first_bound_s
    return {
        "pods": row.pods,
        "seconds": round(seconds, 1),
        "pods_per_s": round(row.pods / seconds),
        "gangs": len(told),
        **_figures("group", [one for one, _ in told]),
        **_figures("pod", [one for _, one in told]),
    }


def _figures(name: str, times: list[float]) -> dict[str, float]:
    return {
        f"{name}_median_s": round(statistics.median(times), 2),
        f"{name}_worst_s": round(max(times), 2),
    }


async def _one(kube: Kube, number: int, pods: _Conditions, groups: _Conditions) -> tuple[float, float]:
    """Make a gang that fits on no node; the seconds until its group and its first pod say so."""
    group = f"too-large-{number}"
    for index in range(_SIZE):
        await kube.post(f"/api/v1/namespaces/{_NAMESPACE}/pods", _pod(group, f"{group}-{index}"))
    begin_s = time.monotonic()
    async with asyncio.timeout(_DEADLINE_S):
        told_s = await groups.of(group)
        pod_told_s = await pods.of(f"{group}-0")
    return told_s - begin_s, pod_told_s - begin_s


def _pod(group: str, name: str) -> dict[str, Any]:
    requests = {"cpu": "1000"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": _NAMESPACE,
            "labels": {GROUP_LABEL: group, SIZE_LABEL: str(_SIZE)},
        },
        "spec": {
            "schedulerName": "fluence",
            "containers": [{"name": "c", "image": "none", "resources": {"requests": requests}}],
        },
    }
