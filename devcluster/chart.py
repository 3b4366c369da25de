"""Fluence in the cluster: its chart, installed by helm, and its three processes, run from this checkout.

The chart makes everything that it makes on any cluster (CRD, roles, service accounts, the webhook's
registration), but its Deployments have no replicas and the webhook is registered by URL. The processes
run as children of the supervisor, each with a token of its own service account, so that each has
exactly the rights that the chart grants.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from typing import Any, Final

import yaml

from devcluster.api import Api
from devcluster.binaries import Binaries
from devcluster.child import dies_with_parent
from devcluster.components import Component
from devcluster.errors import DevclusterError
from devcluster.identities import Identities
from devcluster.paths import CHART, ROOT, ClusterFolder

RELEASE: Final = "fluence"
NAMESPACE: Final = "fluence-system"
#: Ports that Fluence's processes listen on.
PORTS: Final = ("webhook", "webhook-probes", "controller-probes", "scheduler-probes")

_HELM_DEADLINE_S: Final = 120.0
_TOKEN_LIFETIME_S: Final = 365 * 24 * 3600


@dataclass(frozen=True)
class Fluence:
    """Fluence in one cluster."""

    folder: ClusterFolder
    ports: dict[str, int]
    binaries: Binaries
    server: str

    def values(self) -> dict[str, Any]:
        """The values of the chart in which this installation differs from one on a real cluster."""
        return {
            "webhook": {"replicas": 0, "url": f"https://127.0.0.1:{self.ports['webhook']}/mutate"},
            "controller": {"replicas": 0},
            "scheduler": {"replicas": 0},
        }

    async def install(self) -> None:
        """`helm install`, as an administrator would."""
        if not (CHART / "Chart.yaml").exists():
            raise DevclusterError(f"{CHART} holds no chart: start the cluster with --no-fluence")
        values = self.folder.path / "values.yaml"
        values.write_text(yaml.safe_dump(self.values(), sort_keys=False))
        log = self.folder.log("helm")
        with log.open("ab") as output:
            helm = await asyncio.create_subprocess_exec(
                self.binaries["helm"], "install", RELEASE, CHART, f"--namespace={NAMESPACE}",
                "--create-namespace", f"--values={values}", f"--kubeconfig={self.folder.kubeconfig}",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **self._helm_home()},
                preexec_fn=dies_with_parent(),
            )  # fmt: skip
        async with asyncio.timeout(_HELM_DEADLINE_S):
            code = await helm.wait()
        if code:
            raise DevclusterError(f"helm could not install {CHART}: {log.read_text().strip()[-1500:]}")

    def _helm_home(self) -> dict[str, str]:
        # The user's own helm configuration must neither be used nor changed.
        home = str(self.folder.path / "helm")
        return {f"HELM_{kind}_HOME": home for kind in ("CACHE", "CONFIG", "DATA")}

    async def component(self, api: Api, process: str) -> Component:
        """One of the three processes, with a fresh token of its service account."""
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{RELEASE}-{process}"
        answer = await api.post(
            f"{account}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": _TOKEN_LIFETIME_S},
            },
        )
        token = answer["status"]["token"]
        kubeconfig = Identities(self.folder).kubeconfig(process, self.server, token, NAMESPACE)
        probes = self.ports[f"{process}-probes"]
        command = [
            sys.executable, "-m", "fluence.commands", process,
            f"--kubeconfig={kubeconfig}", f"--namespace={NAMESPACE}",
            "--probe-host=127.0.0.1", f"--probe-port={probes}",
        ]  # fmt: skip
        if process == "webhook":
            command += [
                "--host=127.0.0.1", f"--port={self.ports['webhook']}", "--hosts=127.0.0.1",
                f"--webhook-configuration={RELEASE}", f"--tls-secret={RELEASE}-webhook-tls",
                # No Service sends requests to it, so it can end without a delay.
                "--drain-seconds=0",
            ]  # fmt: skip
        return Component(
            process,
            tuple(command),
            ready_url=f"http://127.0.0.1:{probes}/readyz",
            environment={"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            restart=True,
        )
