"""The options of a cluster, checked before anything is started."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from devcluster.errors import DevclusterError
from devcluster.programs import KUBERNETES_VERSIONS, kubernetes

#: The three processes of Fluence, in the order in which they are started.
FLUENCE: Final = ("webhook", "controller", "scheduler")
DEFAULT_NAME: Final = "fluence"

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?")


class ClusterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one cluster."""

    name: str = DEFAULT_NAME
    #: Ready nodes, and what each of them offers.
    nodes: int = 8
    cpu: str = "8"
    memory: str = "32Gi"
    pods: int = 110
    kubernetes: str = KUBERNETES_VERSIONS[0]
    #: Turn on the gang scheduling of kube-scheduler itself, for comparison.
    native_gangs: bool = False
    #: Install the chart of Fluence, ...
    fluence: bool = True
    #: ... and start these of its processes; the others can be started later.
    processes: tuple[str, ...] = FLUENCE
    #: The cluster ends when this process ends, in any way.
    owner_pid: int | None = None

    def check(self) -> ClusterSpec:
        """Return itself; raises DevclusterError, which says what is wrong and what would be right."""
        kubernetes(self.kubernetes)
        if not _NAME.fullmatch(self.name):
            raise DevclusterError(
                f'--name "{self.name}" is not a cluster name: at most 40 characters of a-z, 0-9 and "-", '
                "beginning and ending with a letter or digit"
            )
        for option, value in (("--cpu", self.cpu), ("--memory", self.memory)):
            if not _QUANTITY.fullmatch(value):
                raise DevclusterError(f'{option} "{value}" is not a quantity: write 8, 500m or 32Gi')
        if self.nodes < 0:
            raise DevclusterError(f"--nodes {self.nodes}: a cluster cannot have fewer than 0 nodes")
        if unknown := set(self.processes) - set(FLUENCE):
            raise DevclusterError(
                f"{', '.join(sorted(unknown))}: Fluence's processes are {', '.join(FLUENCE)}"
            )
        return self


class ClusterState(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor writes about a running cluster, for other processes that find its folder."""

    spec: ClusterSpec
    supervisor_pid: int
    ports: dict[str, int]

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"
