"""The order in which a cluster comes up.

etcd, then the API server, then everything else at once: controllers, default scheduler, kwok, nodes,
and the chart of Fluence, whose processes come last since they need its service accounts.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from devcluster import chart, nodes
from devcluster.api import Api
from devcluster.binaries import Binaries
from devcluster.components import ControlPlane
from devcluster.errors import DevclusterError
from devcluster.paths import ClusterFolder
from devcluster.processes import Processes
from devcluster.progress import Say
from devcluster.spec import FLUENCE, ClusterSpec

_DEADLINE_S: Final = 120.0
_POLL_S: Final = 0.1


@dataclass(frozen=True)
class BringUp:
    """One attempt to bring a cluster up on the given ports."""

    spec: ClusterSpec
    folder: ClusterFolder
    ports: dict[str, int]
    binaries: Binaries
    processes: Processes
    say: Say

    async def run(self) -> None:
        """Return once everything is ready."""
        plane = ControlPlane(self.spec, self.folder, self.ports, self.binaries)
        # A first attempt that lost a port may have left data behind.
        shutil.rmtree(self.folder.data, ignore_errors=True)
        plane.write_files()
        for component in (
            plane.etcd(), plane.api_server(), plane.controller_manager(), plane.scheduler(), plane.kwok(),
        ):  # fmt: skip
            self.processes.add(component)
        self.say(f"starting Kubernetes {self.spec.kubernetes}")
        await self.processes.start("etcd")
        await self.processes.start("kube-apiserver")
        async with Api(self.folder.kubeconfig) as api, asyncio.TaskGroup() as group:
            for name in ("kube-controller-manager", "kube-scheduler", "kwok"):
                group.create_task(self.processes.start(name))
            group.create_task(self._nodes(api))
            group.create_task(_until("the service account `default`", lambda: _has_account(api)))
            if self.spec.fluence:
                group.create_task(self._fluence(api, plane.server))

    async def _nodes(self, api: Api) -> None:
        spec = self.spec
        wanted = [
            nodes.node_object(name, cpu=spec.cpu, memory=spec.memory, pods=spec.pods)
            for name in nodes.names(spec.nodes)
        ]
        await nodes.create_nodes(api, wanted)

        async def all_usable() -> bool:
            return all(map(nodes.is_usable, await api.items("/api/v1/nodes", resourceVersion="0")))

        await _until("every node", all_usable)
        self.say(f"nodes are ready: {spec.nodes}")

    async def _fluence(self, api: Api, server: str) -> None:
        fluence = chart.Fluence(self.folder, self.ports, self.binaries, server)
        await fluence.install()
        self.say("the chart of Fluence is installed")
        for process in FLUENCE:
            self.processes.add(await fluence.component(api, process))
        async with asyncio.TaskGroup() as group:
            for process in self.spec.processes:
                group.create_task(self.processes.start(process))
        if self.spec.processes:
            self.say(f"Fluence runs: {', '.join(self.spec.processes)}")


async def _has_account(api: Api) -> bool:
    # Until it is there no pod can be made in the namespace `default`.
    return await api.find("/api/v1/namespaces/default/serviceaccounts/default") is not None


async def _until(what: str, ready: Callable[[], Awaitable[bool]]) -> None:
    end_s = time.monotonic() + _DEADLINE_S
    while not await ready():
        if time.monotonic() > end_s:
            raise DevclusterError(f"{what} did not become ready within {_DEADLINE_S:.0f} s")
        await asyncio.sleep(_POLL_S)
