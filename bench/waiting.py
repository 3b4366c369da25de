"""What decisions cost in a full cluster: prepare a large gang, and a pod's end while 1,000 gangs wait.

No cluster is needed: `bench.world` feeds the real caches, queue and loop.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Iterator
from typing import Any, Final

from bench import wire
from bench.world import NODES, PODS, World
from groups.contract import GROUP_LABEL, SIZE_LABEL
from groups.objects import key_of
from groups.podgroup import POD_GROUPS

NODE_COUNT: Final = 1_000
PARKED: Final = 1_000
#: Each node has 8.1 CPU, and eight running pods of 1 CPU.
_CPU: Final = "8100m"
_RUNNING: Final = NODE_COUNT * wire.GANG
_ENDS: Final = 24
#: The loop rests for up to a second after the first look at the gangs, and 0.1 s lie between two ends.
_REST_S: Final = 1.5
_PAUSE_S: Final = 0.1
_AWAY: Final = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "database"}}}
        ]
    }
}
_PREPARED: Final = 1_000
_RUNS: Final = 21


def measure() -> dict[str, Any]:
    """`prepare_ms` and, for one shape and for many, `decided_ms`, `worst_ms` and `newcomer_ms`."""
    return {
        "prepare_ms": asyncio.run(_prepare()),
        "ends": [asyncio.run(_ends(shapes)) for shapes in (1, PARKED)],
    }


def _median_ms(times_s: list[float]) -> float:
    return round(statistics.median(times_s) * 1e3, 3)


async def _prepare() -> float:
    """Where a gang of 1,000 stands, and its members as the matcher wants them."""

    def pods() -> Iterator[dict[str, Any]]:
        for number in range(_PREPARED):
            pod = wire.pod(number)
            pod["metadata"]["namespace"] = "team"
            pod["metadata"]["labels"] |= {GROUP_LABEL: "large", SIZE_LABEL: str(_PREPARED)}
            yield pod

    def groups() -> Iterator[dict[str, Any]]:
        group = wire.pod_group(0, phase="Pending")
        group["metadata"] |= {"name": "large", "namespace": "team"}
        group["spec"]["minMember"] = _PREPARED
        yield group

    async with World({PODS: pods, POD_GROUPS: groups}).running() as world:
        times, key = [], key_of("team", "large")
        for _ in range(_RUNS):
            begin = time.perf_counter()
            gang = world.cache.gang(world.cache.state(key))
            times.append(time.perf_counter() - begin)
            assert gang.needed == len(gang.members) == _PREPARED
    return _median_ms(times)


async def _ends(shapes: int) -> dict[str, Any]:
    """End running pods one by one while 1,000 gangs of eight wait, each time beside a new small gang."""
    world = World({NODES: _nodes, PODS: lambda: _pods(shapes), POD_GROUPS: _groups})
    decided, newcomers = [], []
    async with world.running(deciding=True):
        await world.at_rest()
        # As the real process does after its first lists.
        gc.collect()
        gc.freeze()
        await asyncio.sleep(_REST_S)
        for number in range(_ENDS):
            newcomer = _newcomer(_RUNNING // wire.GANG + PARKED + number)
            begin = time.perf_counter()
            world.feed.send(PODS, _ended(number * wire.GANG + 1))
            for path, line in newcomer:
                world.feed.send(path, line)
            gang = _RUNNING // wire.GANG + PARKED + number
            key = key_of(wire.namespace_of(gang), wire.job_name(gang))
            await world.decision(key)
            decided.append(time.perf_counter() - begin)
            newcomers.append(world.decided[key] - begin)
            await asyncio.sleep(_PAUSE_S)
    gc.unfreeze()
    return {
        "shapes": shapes,
        "parked": PARKED,
        "decided_ms": _median_ms(decided),
        "worst_ms": round(max(decided) * 1e3, 3),
        "newcomer_ms": _median_ms(newcomers),
        "newcomer_worst_ms": round(max(newcomers) * 1e3, 3),
    }


def _nodes() -> Iterator[dict[str, Any]]:
    return (wire.node(number, cpu=_CPU) for number in range(NODE_COUNT))


def _pods(shapes: int) -> Iterator[dict[str, Any]]:
    for number in range(_RUNNING):
        # As in most clusters, some pod somewhere keeps others away.
        more: dict[str, Any] = {"affinity": _AWAY} if number == 0 else {}
        yield wire.pod(number, node=wire.node_name(number // wire.GANG), **more)
    for number in range(_RUNNING, _RUNNING + PARKED * wire.GANG):
        milli = 1000 - number // wire.GANG % shapes % 500
        memory = f"{2048 + number // wire.GANG % shapes}Mi"
        yield wire.pod(number, containers=[wire.container(f"{milli}m", memory)])


def _groups() -> Iterator[dict[str, Any]]:
    running = _RUNNING // wire.GANG
    for gang in range(running + PARKED):
        yield wire.pod_group(gang, phase="Running" if gang < running else "Pending")


def _ended(number: int) -> bytes:
    pod = wire.pod(number, node=wire.node_name(number // wire.GANG), phase="Succeeded", version=2_000_000)
    return wire.line("MODIFIED", pod)


def _newcomer(gang: int) -> Iterator[tuple[str, bytes]]:
    """A new gang that fits into what is left on every node."""
    yield POD_GROUPS, wire.line("ADDED", wire.pod_group(gang, phase="Pending", version=2_000_001))
    for number in range(gang * wire.GANG, (gang + 1) * wire.GANG):
        pod = wire.pod(number, version=2_000_002, containers=[wire.container("10m", "64Mi")])
        yield PODS, wire.line("ADDED", pod)
