"""One benchmark run: the parts one after another, a table of each, and build/bench.json.

The parts `gangs`, `reports` and `admission` start a cluster of their own; the others need none.
"""

from __future__ import annotations

import asyncio
import enum
import json
import logging
import os
import statistics
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import psutil
import structlog
import typer
from rich.console import Console

from bench import admission, events, gangs, matcher, reports, startup, waiting
from bench.tables import show
from devcluster import cluster as clusters
from devcluster.progress import to_stderr
from devcluster.spec import ClusterSpec
from kube.session import Kube

OUTPUT: Final = Path("build/bench.json")
#: What docs/performance.md calls a full memory measurement: 1,000 nodes and 5,000 pods.
_MEMORY_ROW: Final = gangs.Row(50, 100)

console = Console(stderr=True)


class Part(enum.StrEnum):
    """The parts of the benchmark, each of which can be measured alone."""

    MATCHER = "matcher"
    WAITING = "waiting"
    EVENTS = "events"
    STARTUP = "startup"
    GANGS = "gangs"
    REPORTS = "reports"
    ADMISSION = "admission"


def main() -> None:
    """The program."""
    typer.run(_run)


def _run(
    nodes: Annotated[int, typer.Option(help="Fake nodes of 64 CPU.", min=1)] = 1000,
    rounds: Annotated[int, typer.Option(help="Measurements of each way; the median counts.", min=1)] = 3,
    output: Annotated[Path, typer.Option(help="The file for the figures, as JSON.")] = OUTPUT,
    only: Annotated[list[Part] | None, typer.Option(help="Measure only this part; can be repeated.")] = None,
) -> None:
    """Measure Fluence; `--only` chooses parts, of which matcher, waiting, events and startup need no cluster.

    \b
    matcher    the matcher alone, beside its floor
    waiting    prepare a large gang; a pod's end while 1,000 gangs wait
    events     what an event costs in caches of 10,000 and 100,000 pods
    startup    memory and blocked event loop when 100,000 pods are listed
    gangs      pods bound per second, beside the API server alone and native gangs
    reports    how soon a gang is told that it waits, while others are bound
    admission  what the webhook costs
    """
    # The log would take longer than what is measured.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    parts = set(only or Part)
    found: dict[str, Any] = {}
    for part, measure in _WITHOUT_CLUSTER.items():
        if part in parts:
            console.print(f"measuring: {part}")
            found[part] = measure(rounds)
    if Part.GANGS in parts:
        found |= _on_a_cluster(nodes, lambda cluster: _gangs(cluster, rounds))
    if Part.REPORTS in parts:
        found[Part.REPORTS] = _on_a_cluster(nodes, _reports)
    if Part.ADMISSION in parts:
        found[Part.ADMISSION] = admission.measure(rounds, to_stderr)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(found, indent=2) + "\n")
    show(found)
    console.print(f"figures: {output}")


_WITHOUT_CLUSTER: Final[Mapping[Part, Callable[[int], Any]]] = {
    Part.MATCHER: lambda _: matcher.measure(),
    Part.WAITING: lambda _: waiting.measure(),
    Part.EVENTS: lambda _: events.measure(),
    Part.STARTUP: lambda rounds: startup.measure(rounds, to_stderr),
}


def _on_a_cluster(
    nodes: int, measure: Callable[[clusters.RunningCluster], Coroutine[Any, Any, dict[str, Any]]]
) -> dict[str, Any]:
    spec = ClusterSpec(
        name=f"bench-{os.getpid()}",
        nodes=nodes,
        cpu="64",
        memory="256Gi",
        native_gangs=True,
        processes=("scheduler",),
        owner_pid=os.getpid(),
    )
    with clusters.start(spec, to_stderr) as cluster:
        # The fake kubelet would write more for every bound pod than the binding itself.
        cluster.process("kwok").stop()
        return asyncio.run(measure(cluster))


async def _reports(cluster: clusters.RunningCluster) -> dict[str, Any]:
    async with await Kube.connect(cluster.kubeconfig, user_agent="fluence-bench") as kube:
        return await reports.measure(kube, _switches(cluster), to_stderr)


async def _gangs(cluster: clusters.RunningCluster, rounds: int) -> dict[str, Any]:
    async with await Kube.connect(cluster.kubeconfig, user_agent="fluence-bench") as kube:
        listed = json.loads(await kube.get("/api/v1/nodes"))
        names = [node["metadata"]["name"] for node in listed["items"]]
        rows = [await _measure_row(kube, cluster, row, names, rounds) for row in gangs.ROWS]
        memory = await _measure_memory(kube, cluster, names)
    return {"gangs": rows, "memory": memory}


def _switches(cluster: clusters.RunningCluster) -> gangs.Switches:
    controller = cluster.process("controller")

    async def start() -> None:
        await asyncio.to_thread(controller.start, ready=False)

    async def stop() -> None:
        await asyncio.to_thread(controller.stop)

    return gangs.Switches(start, stop)


async def _measure_row(
    kube: Kube, cluster: clusters.RunningCluster, row: gangs.Row, nodes: list[str], rounds: int
) -> dict[str, Any]:
    found: dict[gangs.Way, list[gangs.Result]] = {way: [] for way in gangs.WAYS}
    for number in range(rounds):
        # Alternately, so that a slow minute of the machine affects every way alike.
        for way in gangs.WAYS:
            result = await gangs.measure(kube, way, row, nodes, _switches(cluster))
            found[way].append(result)
            console.print(
                f"{row.gangs} x {row.size}, round {number + 1} of {rounds}, {way}: "
                f"{result.pods_per_s:.0f} pods/s, first bound after {result.first_bound_s:.2f} s"
            )
    median = {way: statistics.median(one.pods_per_s for one in results) for way, results in found.items()}
    first = {way: statistics.median(one.first_bound_s for one in results) for way, results in found.items()}
    return {
        "gangs": row.gangs,
        "size": row.size,
        **{way: round(rate, 1) for way, rate in median.items()},
        "first_bound_s": {way: round(seconds, 3) for way, seconds in first.items()},
    }


async def _measure_memory(
    kube: Kube, cluster: clusters.RunningCluster, nodes: list[str]
) -> list[dict[str, Any]]:
    console.print(f"measuring memory with {len(nodes)} nodes and {_MEMORY_ROW.pods} pods")
    for process in ("webhook", "controller"):
        await asyncio.to_thread(cluster.process(process).start)
    await kube.post("/api/v1/namespaces", {"metadata": {"name": "memory"}})
    await gangs.wait_for_service_account(kube, "memory")
    await gangs.create_pods(kube, "fluence", _MEMORY_ROW, "memory")
    await gangs.wait_until_bound(kube, _MEMORY_ROW, "memory")
    return [
        {"process": row["name"], "mb": round(psutil.Process(row["pid"]).memory_info().rss / 2**20, 1)}
        for row in cluster.status()
        if row["pid"]
    ]
