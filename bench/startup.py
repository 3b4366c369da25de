"""Memory and the longest block of the event loop when scheduler and controller start on a large cluster.

Each is a real process with its real caches, over HTTP, against `bench.pages`: all pods are ours and run, each
has labels of its own.
"""

from __future__ import annotations

import contextlib
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from devcluster import ports
from devcluster.progress import Say

PODS: Final = 100_000
NODES: Final = 10_000
_ROOT: Final = Path(__file__).parent.parent
_DEADLINE_S: Final = 300.0


def measure(rounds: int, say: Say, pods: int = PODS, nodes: int = NODES) -> list[dict[str, Any]]:
    """For each process `mb` (the largest), `block_ms` (the median) and `listed_s` (the median)."""
    rows = []
    for which in ("scheduler", "controller"):
        found = []
        for number in range(rounds):
            # A new server each time: it keeps the lease.
            with tempfile.TemporaryDirectory() as folder, _server(Path(folder), pods, nodes) as kubeconfig:
                found.append(_start(which, kubeconfig))
            say(f"start of the {which} with {pods} pods, round {number + 1} of {rounds}: {found[-1]}")
        rows.append(
            {
                "process": which,
                "pods": pods,
                "mb": max(one["mb"] for one in found),
                "block_ms": statistics.median(one["block_ms"] for one in found),
                "listed_s": statistics.median(one["listed_s"] for one in found),
            }
        )
    return rows


def _start(which: str, kubeconfig: Path) -> dict[str, float]:
    done = subprocess.run(  # noqa: S603  (our own program)
        [sys.executable, "-m", "bench.startup_process", which, str(kubeconfig)],
        stdout=subprocess.PIPE,
        timeout=_DEADLINE_S,
        check=True,
        cwd=_ROOT,
    )
    # The processes write their log to the same stream.
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextlib.contextmanager
def _server(folder: Path, pods: int, nodes: int) -> Iterator[Path]:
    (port,) = ports.choose(("pages",), ()).values()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "bench",
                "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
                "clusters": [{"name": "bench", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                "users": [{"name": "bench", "user": {}}],
            }
        )
    )
    child = subprocess.Popen(  # noqa: S603  (our own program)
        [sys.executable, "-m", "bench.pages", str(port), str(pods), str(nodes)], cwd=_ROOT
    )
    try:
        _until_open(child, port)
        yield kubeconfig
    finally:
        child.terminate()
        child.wait(30)


def _until_open(child: subprocess.Popen[bytes], port: int) -> None:
    end_s = time.monotonic() + 30
    while time.monotonic() < end_s and child.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError("the server of the lists did not start")
