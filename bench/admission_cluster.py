"""Pods created per second on a real API server with the webhook registered and without, in turn.

Each way is measured in many short spells, since a small machine is often interrupted; what counts is a good
spell, the upper quartile, and its ratio to the one without the webhook. A bare pod that opted in costs one
call: beside it stands the least that such a call costs, to a webhook that does nothing (`admission_floor`).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime as dt
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from bench.gangs import at_once, wait_for_service_account
from certs.authority import new_bundle
from devcluster import cluster as clusters
from devcluster import ports
from devcluster.progress import Say
from devcluster.spec import ClusterSpec
from fluence.contract import GROUP_LABEL, SIZE_LABEL
from kube.errors import NotFound
from kube.session import Kube

JOB_PODS: Final = 1000
_SPELLS: Final = 4
_SPELL_PODS: Final = 150
_AT_ONCE: Final = 16
_DEADLINE_S: Final = 120.0
_PODS: Final = "/api/v1/namespaces/default/pods"
_REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/fluence"
_ROOT: Final = Path(__file__).parent.parent
#: Scheduler and labels of each sort of pod. Those of a workload have the labels of its template.
_SORTS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "foreign": ("nobody", {}),
    "of_workloads": ("fluence", {GROUP_LABEL: "g", SIZE_LABEL: "1"}),
    "bare": ("fluence", {}),
}
#: What is registered: nothing, our webhook, or the one that does nothing.
_WITHOUT: Final = "without"
_WITH: Final = "with"
_FLOOR: Final = "floor"

Registration = dict[str, Any]
Spells = dict[tuple[str, str], list[float]]


def measure(rounds: int, say: Say) -> dict[str, Any]:
    """Pods created per second on a real API server, and the calls that a Job costs."""
    spec = ClusterSpec(
        name=f"bench-admission-{os.getpid()}", nodes=0, processes=("webhook",), owner_pid=os.getpid()
    )
    with clusters.start(spec, say) as cluster, _floor() as client_config:
        # Nothing but creation is to be measured.
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
        ours = _as_new(json.loads(await kube.get(_REGISTRATION)))
        ways: dict[str, Registration | None] = {
            _WITHOUT: None,
            _WITH: ours,
            _FLOOR: {**ours, "webhooks": [{**one, "clientConfig": floor} for one in ours["webhooks"]]},
        }
        spells: Spells = {}
        # The first pass only warms up.
        for number in range(2 * rounds + 1):
            # There and back again: whatever slows down with time slows all alike.
            for way in list(ways) if number % 2 else reversed(ways):
                await _register(kube, ways[way])
                # After a change of the registration everything is slower for a moment.
                await _create_pods(kube, "bare")
                for sort in _turned(list(_SORTS), number) if way != _FLOOR else ["bare"]:
                    rates = await _create_pods(kube, sort)
                    if number:
                        spells.setdefault((sort, way), []).extend(rates)
            if number and number % 2 == 0:
                say(f"pods created per second, round {number // 2} of {rounds}: {_shown(spells)}")
        return {"job_pods": JOB_PODS, "job_calls": calls, **_summary(spells)}


def _turned(sorts: list[str], number: int) -> list[str]:
    """Another one first each time."""
    first = number % len(sorts)
    return sorts[first:] + sorts[:first]


def _summary(spells: Spells) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for (sort, way), rates in spells.items():
        # The upper quartile: interruptions only ever slow down.
        found.setdefault(sort, {})[way] = round(statistics.quantiles(rates, n=4)[2], 1)
    for one in found.values():
        one["ratio"] = round(one[_WITH] / one[_WITHOUT], 3)
    bare = found["bare"]
    bare["floor_ratio"] = round(bare[_FLOOR] / bare[_WITHOUT], 3)
    return found


def _shown(spells: Spells) -> str:
    return ", ".join(f"{sort} {one['ratio']:.2f} of without" for sort, one in _summary(spells).items())


def _as_new(registration: Registration) -> Registration:
    metadata = registration["metadata"]
    return {**registration, "metadata": {"name": metadata["name"], "labels": metadata.get("labels")}}


async def _register(kube: Kube, registration: Registration | None) -> None:
    """Put the registration in place, or take it away, and wait until the API server goes by it."""
    with contextlib.suppress(NotFound):
        await kube.delete(_REGISTRATION)
    await _until_labelled(kube, labelled=False)
    if registration is not None:
        await kube.post(_REGISTRATION.rpartition("/")[0], registration)
        await _until_labelled(kube, labelled=True)


async def _until_labelled(kube: Kube, *, labelled: bool) -> None:
    probe = json.dumps(_pod("probe", "bare")).encode()
    async with asyncio.timeout(_DEADLINE_S):
        in_force = 0
        while in_force < 5:
            made = await kube.request("POST", _PODS, body=probe, params={"dryRun": "All"})
            in_force = in_force + 1 if (SIZE_LABEL.encode() in made) == labelled else 0


def _pod(name: str, sort: str) -> dict[str, Any]:
    scheduler, labels = _SORTS[sort]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "bench", **labels}},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
        },
    }


async def _create_pods(kube: Kube, sort: str) -> list[float]:
    """Create pods, several at once; how many per second in each spell. They are gone afterwards."""

    def job(number: int) -> Callable[[], Any]:
        return lambda: kube.post(_PODS, _pod(f"p{number:05}", sort))

    rates = []
    for spell in range(_SPELLS):
        began_s = time.perf_counter()
        await at_once((job(spell * _SPELL_PODS + number) for number in range(_SPELL_PODS)), _AT_ONCE)
        rates.append(_SPELL_PODS / (time.perf_counter() - began_s))
    await _clear(kube)
    return rates


def write_certificate(folder: Path) -> bytes:
    """A certificate for 127.0.0.1 as files for --cert-dir; its authority."""
    bundle = new_bundle(["127.0.0.1"], dt.datetime.now(dt.UTC))
    for name, content in (("tls.crt", bundle.cert), ("tls.key", bundle.key), ("ca.crt", bundle.ca)):
        (folder / name).write_bytes(content)
    return bundle.ca


@contextlib.contextmanager
def _floor() -> Iterator[dict[str, str]]:
    """A webhook that does nothing, as a process; its clientConfig."""
    (port,) = ports.choose(("floor",), ()).values()
    with tempfile.TemporaryDirectory() as folder:
        ca = write_certificate(Path(folder))
        command = [sys.executable, "-m", "bench.admission_floor", folder, str(port)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_ROOT)  # noqa: S603  (our own program)
        try:
            assert child.stdout is not None
            child.stdout.readline()
            yield {"url": f"https://127.0.0.1:{port}/mutate", "caBundle": base64.b64encode(ca).decode()}
        finally:
            child.kill()
            child.communicate()


async def _clear(kube: Kube) -> None:
    await kube.request("DELETE", _PODS, body=b'{"gracePeriodSeconds":0}', timeout_s=60)
    async with asyncio.timeout(_DEADLINE_S):
        while True:
            if b'"items":[]' in await kube.get(_PODS, {"limit": "1"}):
                return
            await asyncio.sleep(0.1)


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


def _reviews(url: str) -> int:
    """All reviews that the webhook has answered, from its metrics."""
    with urllib.request.urlopen(url) as answer:  # noqa: S310  (loopback)
        lines = answer.read().decode().splitlines()
    name = "fluence_admission_reviews_total"
    return int(sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)))
