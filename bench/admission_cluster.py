"""Pods created per second on a real API server, alternately with the webhook and without it.

Each way is measured in many short spells, and the upper quartile of their rates is taken: in about every
eighth spell the API server collects garbage and is half as fast. A bare pod that asks for Fluence costs one
call. The table compares that with the lowest possible costs of a call and of labelling
(`bench.admission_ways`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import time
import urllib.request
from collections.abc import Callable
from typing import Any, Final

from bench.admission_pod import pod
from bench.admission_ways import WITH, WITHOUT, floor_webhook, register, ways
from bench.gangs import at_once, wait_for_service_account
from devcluster import cluster as clusters
from devcluster.progress import Say
from devcluster.spec import ClusterSpec
from groups.contract import GROUP_LABEL, SIZE_LABEL
from kube.session import Kube

JOB_PODS: Final = 1000
#: How many spells each sort of pod has in one pass. Small differences need more of them.
_SPELLS: Final = {"foreign": 24, "of_workloads": 12, "bare": 4}
_SPELL_PODS: Final = 150
_AT_ONCE: Final = 16
_DEADLINE_S: Final = 120.0
_PODS: Final = "/api/v1/namespaces/default/pods"
#: Scheduler and labels of each sort of pod. Those of a workload have the labels of its template.
_SORTS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "foreign": ("nobody", {}),
    "of_workloads": ("fluence", {GROUP_LABEL: "g", SIZE_LABEL: "1"}),
    "bare": ("fluence", {}),
}

#: Rates of the spells of each pass, by sort of pod and way.
Spells = dict[tuple[str, str], list[list[float]]]


def measure(rounds: int, say: Say) -> dict[str, Any]:
    """Pods created per second on a real API server, and the calls that a Job costs."""
    spec = ClusterSpec(
        name=f"bench-admission-{os.getpid()}", nodes=0, processes=("webhook",), owner_pid=os.getpid()
    )
    with clusters.start(spec, say) as cluster, floor_webhook() as client_config:
        # Only creation is measured.
        for process in ("kwok", "kube-scheduler"):
            cluster.process(process).stop()
        return asyncio.run(_measure(cluster, client_config, rounds, say))


async def _measure(
    cluster: clusters.RunningCluster, floor: dict[str, str], rounds: int, say: Say
) -> dict[str, Any]:
    async with await Kube.connect(cluster.kubeconfig, user_agent="fluence-bench") as kube:
        await wait_for_service_account(kube, "default")
        calls = await _calls_of_a_job(kube, cluster)
        say(f"a Job of {JOB_PODS} pods costs {calls} call{'' if calls == 1 else 's'}")
        await asyncio.to_thread(cluster.process("kube-controller-manager").stop)
        every = await ways(kube, floor)
        spells: Spells = {}
        # The first pass only warms up.
        for number in range(2 * rounds + 1):
            # Forwards and then backwards, so that a slowdown over time affects all ways alike.
            for way in list(every) if number % 2 else reversed(every):
                await register(kube, every[way], _PODS, _pod("probe", "bare"))
                # The API server is slower for a moment after a change of the registration.
                await _create_pods(kube, "bare")
                for sort in _turned(list(_SORTS), number) if way in (WITHOUT, WITH) else ["bare"]:
                    rates = await _create_pods(kube, sort)
                    if number:
                        spells.setdefault((sort, way), []).append(rates)
            if number and number % 2 == 0:
                say(f"pods created per second, round {number // 2} of {rounds}: {_shown(spells)}")
        return {"job_pods": JOB_PODS, "job_calls": calls, **_summary(spells)}


def _turned(sorts: list[str], number: int) -> list[str]:
    """The ways in another order each time."""
    first = number % len(sorts)
    return sorts[first:] + sorts[:first]


def _summary(spells: Spells) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for (sort, way), passes in spells.items():
        found.setdefault(sort, {})[way] = round(_good(passes), 1)
    for sort, one in found.items():
        for way in set(one) - {WITHOUT}:
            ratio, error = _ratio(spells[sort, way], spells[sort, WITHOUT])
            one[f"{way}_ratio"], one[f"{way}_error"] = round(ratio, 3), round(error, 3)
    return found


def _good(passes: list[list[float]]) -> float:
    """The upper quartile of the rates."""
    return statistics.quantiles(itertools.chain.from_iterable(passes), n=4)[2]


def _ratio(passes: list[list[float]], base: list[list[float]]) -> tuple[float, float]:
    """The ratio of two ways, and its standard error (jackknife: each pass left out in turn)."""
    without_one = [
        _good(passes[:number] + passes[number + 1 :]) / _good(base[:number] + base[number + 1 :])
        for number in range(len(passes))
    ]
    return _good(passes) / _good(base), statistics.pstdev(without_one) * (len(passes) - 1) ** 0.5


def _shown(spells: Spells) -> str:
    found = _summary(spells).items()
    return ", ".join(f"{sort} {one[f'{WITH}_ratio']:.2f} of without" for sort, one in found)


def _pod(name: str, sort: str) -> dict[str, Any]:
    return pod(*_SORTS[sort], name=name)


async def _create_pods(kube: Kube, sort: str) -> list[float]:
    """Create pods, several at a time, and return the rate of each spell. The pods are deleted afterwards."""
    rates = []
    names = [f"p{number:05}" for number in range(_SPELLS[sort] * _SPELL_PODS)]
    for begin in range(0, len(names), _SPELL_PODS):
        began_s = time.perf_counter()
        some = names[begin : begin + _SPELL_PODS]
        await at_once((_creation(kube, name, sort) for name in some), _AT_ONCE)
        rates.append(_SPELL_PODS / (time.perf_counter() - began_s))
    await at_once((_deletion(kube, name) for name in names), _AT_ONCE)
    return rates


def _creation(kube: Kube, name: str, sort: str) -> Callable[[], Any]:
    return lambda: kube.post(_PODS, _pod(name, sort))


def _deletion(kube: Kube, name: str) -> Callable[[], Any]:
    body = b'{"gracePeriodSeconds":0}'
    return lambda: kube.request("DELETE", f"{_PODS}/{name}", body=body)


async def _calls_of_a_job(kube: Kube, cluster: clusters.RunningCluster) -> int:
    """How often the webhook is asked for one Job and all of its pods."""
    metrics = f"{cluster.process('webhook').probes}/metrics"
    before = await asyncio.to_thread(_reviews, metrics)
    template = {key: value for key, value in _pod("", "bare").items() if key == "spec"}
    template["spec"]["restartPolicy"] = "Never"
    spec = {"parallelism": JOB_PODS, "completions": JOB_PODS, "template": template}
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    await kube.post(jobs, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec})
    async with asyncio.timeout(_DEADLINE_S):
        while True:
            if json.loads(await kube.get(f"{jobs}/j"))["status"].get("active") == JOB_PODS:
                break
            await asyncio.sleep(0.2)
    calls = await asyncio.to_thread(_reviews, metrics) - before
    await kube.request("DELETE", f"{jobs}/j", body=b'{"propagationPolicy":"Background"}')
    await _clear(kube)
    return calls


async def _clear(kube: Kube) -> None:
    await kube.request("DELETE", _PODS, body=b'{"gracePeriodSeconds":0}', timeout_s=60)
    async with asyncio.timeout(_DEADLINE_S):
        while True:
            if b'"items":[]' in await kube.get(_PODS, {"limit": "1"}):
                return
            await asyncio.sleep(0.1)


def _reviews(url: str) -> int:
    """All reviews that the webhook has answered, from its metrics."""
    with urllib.request.urlopen(url) as answer:  # noqa: S310  (loopback)
        lines = answer.read().decode().splitlines()
    name = "fluence_admission_reviews_total"
    return int(sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)))
