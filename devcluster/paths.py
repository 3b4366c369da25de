"""Where things are on disk: binaries in the cache, clusters in the state folder.

Owns: names of folders and files. Does not own: what is in them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: The checkout: the folder that holds `devcluster/` and `manifests/`.
ROOT: Final = Path(__file__).resolve().parent.parent
MODULES: Final = ROOT / "devcluster" / "modules"
STAGES: Final = ROOT / "devcluster" / "stages.yaml"
CHART: Final = ROOT / "manifests" / "chart"


def _base(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    # The XDG specification says that a relative path is to be ignored.
    return Path(value) if os.path.isabs(value) else Path.home() / default


def cache_folder() -> Path:
    """Files that can be built again: binaries, and Go if the machine has none."""
    return _base("XDG_CACHE_HOME", ".cache") / "fluence"


def clusters_folder() -> Path:
    """One folder for each cluster."""
    return _base("XDG_STATE_HOME", ".local/state") / "fluence" / "clusters"


@dataclass(frozen=True)
class ClusterFolder:
    """The files of one cluster."""

    path: Path

    @classmethod
    def of(cls, name: str) -> ClusterFolder:
        """The folder of the cluster called `name`, whether or not it is there."""
        return cls(clusters_folder() / name)

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.path.name

    @property
    def lock(self) -> Path:
        """Locked by the supervisor while it runs. Nothing else says that a cluster is up."""
        return self.path / "lock"

    @property
    def socket(self) -> Path:
        """The supervisor's control socket."""
        return self.path / "control.sock"

    @property
    def state(self) -> Path:
        """What the supervisor wrote about the cluster (JSON): its specification, ports, its own id."""
        return self.path / "cluster.json"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.path / "kubeconfig"

    @property
    def secrets(self) -> Path:
        """Keys, certificates and tokens."""
        return self.path / "secrets"

    @property
    def data(self) -> Path:
        """The data of etcd."""
        return self.path / "etcd"

    @property
    def logs(self) -> Path:
        """One file for each process."""
        return self.path / "logs"

    def log(self, component: str) -> Path:
        """The log of one process."""
        return self.logs / f"{component}.log"

    def kubeconfig_of(self, identity: str) -> Path:
        """The kubeconfig of one of the processes."""
        return self.secrets / f"{identity}.kubeconfig"
