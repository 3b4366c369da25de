"""Folders of clusters: which belong to a running cluster, and which were left behind by one that ended.

Owns: finding, claiming and removing them, and giving out ports that no other cluster uses. Does not
own: the processes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import msgspec

from devcluster import chart, components, ports
from devcluster.locks import is_locked
from devcluster.paths import ClusterFolder, clusters_folder
from devcluster.spec import ClusterSpec, ClusterState


def start_lock() -> Path:
    """Held while a cluster takes its name and its ports, so that two starts cannot take the same."""
    return clusters_folder() / ".lock"


def all_folders() -> list[ClusterFolder]:
    """Every folder, of running and of ended clusters."""
    base = clusters_folder()
    if not base.is_dir():
        return []
    return [
        ClusterFolder(path)
        for path in sorted(base.iterdir())
        if path.is_dir() and not path.name.startswith(".")
    ]


def is_up(folder: ClusterFolder) -> bool:
    """Whether its supervisor lives."""
    return is_locked(folder.lock)


def read_state(folder: ClusterFolder) -> ClusterState | None:
    """What the supervisor wrote, None if it wrote nothing."""
    try:
        return msgspec.json.decode(folder.state.read_bytes(), type=ClusterState)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def take_ports(folder: ClusterFolder, spec: ClusterSpec) -> dict[str, int]:
    """Choose the cluster's ports and write its state."""
    others = [read_state(other) for other in all_folders() if other != folder and is_up(other)]
    taken = {port for state in others if state is not None for port in state.ports.values()}
    chosen = ports.choose((*components.PORTS, *chart.PORTS), taken)
    state = ClusterState(spec=spec, supervisor_pid=os.getpid(), ports=chosen)
    new = folder.state.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(state))
    new.rename(folder.state)
    return chosen


def remove(folder: ClusterFolder) -> None:
    """Remove the folder; its name is free again at once, before its files are gone."""
    going = folder.path.with_name(f".{folder.name}.{os.getpid()}.going")
    with contextlib.suppress(FileNotFoundError):
        folder.path.rename(going)
        shutil.rmtree(going, ignore_errors=True)


def remove_leavings() -> None:
    """Remove folders whose removal was interrupted."""
    for path in clusters_folder().glob(".*.going"):
        shutil.rmtree(path, ignore_errors=True)
