"""Pods created per second on a real API server with the webhook registered and without, in turn.

A slow minute of the machine slows both alike: what counts is the ratio of neighbours.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import time
import urllib.request
from collections.abc import Callable
from typing import Any, Final

from bench.gangs import at_once, wait_for_service_account
from devcluster import cluster as clusters
from devcluster.progress import Say
from devcluster.spec import ClusterSpec
from fluence.contract import SIZE_LABEL
from kube.errors import NotFound
from kube.session import Kube

JOB_PODS: Final = 1000
_PODS: Final = 600
_AT_ONCE: Final = 16
_DEADLINE_S: Final = 120.0
_REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/fluence"
#: What pods ask for: another scheduler, which is not there, or ours, which is not running.
_SCHEDULERS: Final = {"foreign": "nobody", "ours": "fluence"}


def measure(rounds: int, say: Say) -> dict[str, Any]:
    """Pods created per second on a real API server, and the calls that a Job costs."""
    spec = ClusterSpec(
        name=f"bench-admission-{os.getpid()}", nodes=0, processes=("webhook",), owner_pid=os.getpid()
    )
    with clusters.start(spec, say) as cluster:
        # Nothing but creation is to be measured.
        for process in ("kwok", "kube-scheduler"):
            cluster.process(process).stop()
        return asyncio.run(_measure(cluster, rounds, say))


async def _measure(cluster: clusters.RunningCluster, rounds: int, say: Say) -> dict[str, Any]:
    async with await Kube.connect(cluster.kubeconfig, user_agent="fluence-bench") as kube:
        await wait_for_service_account(kube, "default")
        calls = await _calls_of_a_job(kube, cluster)
        say(f"a Job of {JOB_PODS} pods costs {calls} call{'' if calls == 1 else 's'}")
        registration = _as_new(json.loads(await kube.get(_REGISTRATION)))
        for who in _SCHEDULERS:
            await _create_pods(kube, who)  # to warm up
        found: dict[tuple[str, bool], list[float]] = {
            (who, on): [] for who in _SCHEDULERS for on in (False, True)
        }
        for number in range(rounds):
            # There and back again: whatever slows down with time slows both alike.
            for on in (False, True) if number % 2 == 0 else (True, False):
                await _register(kube, registration if on else None)
                for who in _SCHEDULERS:
                    found[who, on].append(await _create_pods(kube, who))
            say(
                f"pods created per second, round {number + 1} of {rounds}: "
                + ", ".join(
                    f"{who} {found[who, False][-1]:.0f} without, {found[who, True][-1]:.0f} with webhook"
                    for who in _SCHEDULERS
                )
            )
        return {
            "job_pods": JOB_PODS,
            "job_calls": calls,
            **{who: _compare(found, who) for who in _SCHEDULERS},
        }


def _compare(found: dict[tuple[str, bool], list[float]], who: str) -> dict[str, float]:
    without, with_it = found[who, False], found[who, True]
    ratios = [b / a for a, b in zip(without, with_it, strict=True)]
    return {
        "without": round(statistics.median(without), 1),
        "with": round(statistics.median(with_it), 1),
        "ratio": round(statistics.median(ratios), 3),
    }


def _as_new(registration: dict[str, Any]) -> dict[str, Any]:
    metadata = registration["metadata"]
    return {**registration, "metadata": {"name": metadata["name"], "labels": metadata.get("labels")}}


async def _register(kube: Kube, registration: dict[str, Any] | None) -> None:
    """Put the registration in place, or take it away, and wait until the API server goes by it."""
    with contextlib.suppress(NotFound):
        await kube.delete(_REGISTRATION)
    if registration is not None:
        await kube.post(_REGISTRATION.rpartition("/")[0], registration)
    probe = json.dumps(_pod("probe", "ours")).encode()
    async with asyncio.timeout(_DEADLINE_S):
        in_force = 0
        while in_force < 5:
            made = await kube.request(
                "POST", "/api/v1/namespaces/default/pods", body=probe, params={"dryRun": "All"}
            )
            in_force = in_force + 1 if (SIZE_LABEL.encode() in made) == (registration is not None) else 0


def _pod(name: str, who: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "spec": {
            "schedulerName": _SCHEDULERS[who],
            "containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
        },
    }


async def _create_pods(kube: Kube, who: str) -> float:
    """Create pods, several at once; how many per second. They are gone afterwards."""
    path = "/api/v1/namespaces/default/pods"

    def job(number: int) -> Callable[[], Any]:
        return lambda: kube.post(path, _pod(f"p{number:05}", who))

    began_s = time.perf_counter()
    await at_once((job(number) for number in range(_PODS)), _AT_ONCE)
    took_s = time.perf_counter() - began_s
    await _clear(kube, path)
    return _PODS / took_s


async def _clear(kube: Kube, path: str) -> None:
    await kube.request("DELETE", path, body=b'{"gracePeriodSeconds":0}', timeout_s=60)
    async with asyncio.timeout(_DEADLINE_S):
        while True:
            if b'"items":[]' in await kube.get(path, {"limit": "1"}):
                return
            await asyncio.sleep(0.1)


async def _calls_of_a_job(kube: Kube, cluster: clusters.RunningCluster) -> int:
    """How often the webhook is asked for one Job and all of its pods."""
    metrics = f"{cluster.process('webhook').probes}/metrics"
    before = await asyncio.to_thread(_reviews, metrics)
    template = {key: value for key, value in _pod("", "ours").items() if key == "spec"}
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
    await _clear(kube, "/api/v1/namespaces/default/pods")
    return calls


def _reviews(url: str) -> int:
    """All reviews that the webhook has answered, from its metrics."""
    with urllib.request.urlopen(url) as answer:  # noqa: S310  (loopback)
        lines = answer.read().decode().splitlines()
    name = "fluence_admission_reviews_total"
    return int(sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)))
