"""The cluster that all tests of one run share, in all xdist workers.

The first test that needs it starts it. Its owner is pytest's main process, so it ends with the run even if
that is killed. To save the few seconds of its start while you work on one test, keep a cluster of your own
and name it: FLUENCE_TEST_CLUSTER=fluence pytest tests/...
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from devcluster import binaries, cluster, folders
from devcluster.cluster import RunningCluster
from devcluster.errors import DevclusterError
from devcluster.locks import locked
from devcluster.paths import ClusterFolder
from devcluster.spec import ClusterSpec

_MAIN: Final = "FLUENCE_TEST_MAIN_PID"
_BORROWED: Final = "FLUENCE_TEST_CLUSTER"
#: For pods of tests that add no nodes.
_COMMON_NODES: Final = 2


def this_is_the_main_process() -> None:
    """Record the main process. Call this once in pytest's main process, before it starts workers."""
    os.environ[_MAIN] = str(os.getpid())


def shared() -> RunningCluster:
    """The shared cluster; the first caller starts it."""
    if name := os.environ.get(_BORROWED):
        return cluster.find(name)
    folder = ClusterFolder.of(_name())
    with locked(_lock(), lambda _: None):
        if folders.is_up(folder):
            return RunningCluster(folder)
        return start(ClusterSpec(name=folder.name, nodes=_COMMON_NODES, cpu="64", memory="256Gi"))


def start(spec: ClusterSpec) -> RunningCluster:
    """Start a cluster that ends with the test run at the latest."""
    if lacking := binaries.missing(spec.kubernetes):
        # A build takes minutes, which is longer than the timeout of a test.
        option = f" --kubernetes {spec.kubernetes}"
        raise DevclusterError(f"no {', '.join(lacking)} yet: run `python -m devcluster build{option}` first")
    return cluster.start(msgspec.structs.replace(spec, owner_pid=_main_pid()))


def own_name(suffix: str) -> str:
    """A name for one more cluster of this test run."""
    return f"{_name()}-{suffix}-{os.getpid()}"


def end() -> None:
    """End the cluster. Called in the main process at the end of the run."""
    folder = ClusterFolder.of(_name())
    if folder.path.exists():
        cluster.take_down(folder)
    with contextlib.suppress(FileNotFoundError):
        _lock().unlink()


def _main_pid() -> int:
    return int(os.environ.get(_MAIN, os.getpid()))


def _name() -> str:
    return f"tests-{_main_pid()}"


def _lock() -> Path:
    return Path(tempfile.gettempdir()) / f"fluence-{_name()}.lock"
