"""What an event costs the scheduler's caches in a small and a large cluster, and a match among many terms.

The time of a line of a watch includes decoding it. A cost that does not depend on the size of the cluster has
a ratio near 1.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from bench import wire
from bench.matcher import cluster, gang, median_ms
from bench.world import CLAIMS, NODES, PODS, World
from groups.podgroup import POD_GROUPS
from kube.reflector import Reflector
from scheduler_core.constraints import Repulsion, Requirement, Shape
from scheduler_core.kinds import pod_kind
from scheduler_core.match import match
from scheduler_core.placed import Placed

SIZES: Final = (10_000, 100_000)
_PER_NODE: Final = 10
#: The last gangs wait, and their pods name a claim each.
_WAITING: Final = 125
_LINES: Final = 200
_RUNS: Final = 9
_TERMS: Final = 3_000
_TERM_NODES: Final = 1_000


def measure() -> dict[str, Any]:
    """`events` (microseconds by number of pods, for each kind) and `terms` (milliseconds a match)."""
    by_size = {size: asyncio.run(_costs(size)) for size in SIZES}
    small, large = SIZES
    rows = [
        {
            "event": name,
            "small_us": by_size[small][name],
            "large_us": by_size[large][name],
            "ratio": round(by_size[large][name] / by_size[small][name], 2),
        }
        for name in by_size[small]
    ]
    return {"events": rows, "terms": _terms()}


async def _costs(pods: int) -> dict[str, float]:
    nodes = pods // _PER_NODE
    lists = {
        PODS: lambda: _pods(pods, nodes),
        NODES: lambda: map(wire.node, range(nodes)),
        POD_GROUPS: lambda: map(wire.pod_group, range(pods // wire.GANG)),
        CLAIMS: lambda: (wire.claim(_claim(number), wire.namespace_of(0)) for number in range(pods // 100)),
    }
    async with World(lists).running() as world:
        world.cache.listener = world.loop
        return {
            "pod": await _cost(world, PODS, world.pods, lambda number, version: _pod(number, nodes, version)),
            "node": await _cost(world, NODES, world.nodes, lambda n, v: wire.node(n, version=v)),
            "claim": await _cost(world, CLAIMS, world.claims, _changed_claim),
        }


def _pods(pods: int, nodes: int) -> Iterator[dict[str, Any]]:
    for number in range(pods - _WAITING * wire.GANG):
        yield _pod(number, nodes, 1)
    for number in range(pods - _WAITING * wire.GANG, pods):
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": _claim(number % 100)}}
        yield wire.pod(number, volumes=[volume])


def _pod(number: int, nodes: int, version: int) -> dict[str, Any]:
    """A running pod; with another version also in another phase, which is what the event is about."""
    return wire.pod(
        number,
        node=wire.node_name(number % nodes),
        phase="Running" if version % 2 else "Succeeded",
        version=version,
    )


def _claim(number: int) -> str:
    return f"data-{number:05d}"


def _changed_claim(number: int, version: int) -> dict[str, Any]:
    return wire.claim(_claim(number), wire.namespace_of(0), version=version)


async def _cost(
    world: World, path: str, reflector: Reflector[Any], make: Callable[[int, int], dict[str, Any]]
) -> float:
    """Microseconds for one line: the median of several batches."""
    costs = []
    for run in range(_RUNS):
        # Whole numbers of gangs: the first objects of the list change, each once in a batch.
        batch = [wire.line("MODIFIED", make(number % 100, 2 + run)) for number in range(_LINES)]
        before = reflector.lines
        begin = time.perf_counter()
        for line in batch:
            world.feed.send(path, line)
        await world.taken(reflector, before + _LINES)
        costs.append((time.perf_counter() - begin) / _LINES * 1e6)
    return round(statistics.median(costs), 1)


def _terms() -> list[dict[str, Any]]:
    """Match a gang of 1,000 among no terms, and among 3,000 anti-affinity terms that do not select it."""
    rows = []
    for terms in (0, _TERMS):
        ledger = cluster(_TERM_NODES)
        for number in range(terms):
            selector = (Requirement("app", "In", (f"app-{number}",)),)
            term = Repulsion("kubernetes.io/hostname", frozenset({"bench"}), selector)
            shape = Shape((("cpu", 1), ("pods", 1)))
            kind = pod_kind("bench", {"app": f"app-{number}"}, shape, (term,))
            ledger.put(f"term-{number}", Placed(kind, f"node-{number % _TERM_NODES:05d}"))
        view, wanted = ledger.view(), gang(1_000)
        match(view, wanted)
        rows.append({"terms": terms, "nodes": _TERM_NODES, "ms": median_ms(lambda: match(view, wanted), 41)})  # noqa: B023
    return rows


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
