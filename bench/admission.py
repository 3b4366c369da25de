"""What admission costs: the webhook alone on one core, and a real API server with and without it.

Alone: the process as in a cluster, over TLS; `bench.admission_load` sends requests from another core.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psutil

from bench import admission_cluster
from bench.admission_ways import write_certificate
from devcluster import ports
from devcluster.progress import Say

#: Requests per second while the response time is measured.
RATE: Final = 500
#: How long one load measures, and how long it runs including its warm-up.
_LOAD_S: Final = (3.0, 4.0)
_ROOT: Final = Path(__file__).parent.parent


def measure(rounds: int, say: Say) -> dict[str, Any]:
    """Both parts: `alone` and `cluster`."""
    return {"alone": measure_alone(rounds, say), "cluster": admission_cluster.measure(rounds, say)}


def measure_alone(rounds: int, say: Say) -> dict[str, Any]:
    """The webhook's process alone: response time at a fixed rate, most reviews per second, memory."""
    with tempfile.TemporaryDirectory() as folder, _webhook(Path(folder)) as (process, port):
        ca = Path(folder) / "ca.crt"
        answers, flat_out = [], []
        for number in range(rounds):
            answers.append(_load(port, ca, rate=RATE))
            before_s = sum(process.cpu_times()[:2])
            flat_out.append(_load(port, ca))
            # The load warms up for a second. That second is not in its figures, but it is in this one.
            used_s = sum(process.cpu_times()[:2]) - before_s
            flat_out[-1]["cpu_us"] = used_s / (flat_out[-1]["reviews_per_s"] * _LOAD_S[1]) * 1e6
            say(
                f"webhook alone, round {number + 1} of {rounds}: p99 {answers[-1]['p99_ms']:.2f} ms "
                f"at {RATE} reviews/s; flat out {flat_out[-1]['reviews_per_s']:.0f} reviews/s"
            )
        return {
            "rate": RATE,
            "p50_ms": _median(answers, "p50_ms"),
            "p99_ms": _median(answers, "p99_ms"),
            "reviews_per_s": _median(flat_out, "reviews_per_s"),
            "best_reviews_per_s": max(one["reviews_per_s"] for one in flat_out),
            "cpu_us_per_review": round(min(one["cpu_us"] for one in flat_out)),
            "resident_mb": round(process.memory_info().rss / 2**20, 1),
            "body_bytes": flat_out[0]["body_bytes"],
        }


def _median(rounds: list[dict[str, float]], key: str) -> float:
    return round(statistics.median(one[key] for one in rounds), 3)


@contextlib.contextmanager
def _webhook(folder: Path) -> Iterator[tuple[psutil.Process, int]]:
    """The webhook as it is started in a cluster, with its logs, on one core."""
    write_certificate(folder)
    port, probes = ports.choose(("webhook", "probes"), ()).values()
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(  # noqa: S603  (our own program)
            [
                sys.executable, "-m", "fluence", "webhook", f"--cert-dir={folder}", "--host=127.0.0.1",
                f"--port={port}", "--probe-host=127.0.0.1", f"--probe-port={probes}", "--drain-seconds=0",
            ],
            stderr=log,
            cwd=_ROOT,
        )  # fmt: skip
    try:
        _until_ready(child, f"http://127.0.0.1:{probes}/readyz")
        process = psutil.Process(child.pid)
        process.cpu_affinity(_cores()[:1])
        yield process, port
    finally:
        child.terminate()
        child.wait(30)


def _cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def _until_ready(child: subprocess.Popen[bytes], url: str) -> None:
    end_s = time.monotonic() + 30
    while time.monotonic() < end_s and child.poll() is None:
        with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(url):  # noqa: S310  (loopback)
            return
        time.sleep(0.05)
    raise RuntimeError("the webhook did not become ready")


def _load(port: int, ca: Path, rate: float = 0.0) -> dict[str, float]:
    done = subprocess.run(  # noqa: S603  (our own program)
        [
            sys.executable, "-m", "bench.admission_load", str(port), str(ca),
            f"--rate={rate}", f"--seconds={_LOAD_S[0]}",
        ],
        stdout=subprocess.PIPE,
        check=True,
        cwd=_ROOT,
        preexec_fn=_off_the_first_core,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _off_the_first_core() -> None:
    if rest := _cores()[1:]:
        os.sched_setaffinity(0, rest)
