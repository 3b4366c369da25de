"""The processes of the control plane and their flags.

Owns: command lines. Does not own: starting, stopping, order (`supervisor`), or Fluence's own
processes (`chart`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from devcluster.binaries import Binaries
from devcluster.identities import Identities
from devcluster.paths import STAGES, ClusterFolder
from devcluster.spec import ClusterSpec

#: Every port of the control plane, by the name of the process that listens on it.
PORTS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")

#: Client limits. With Kubernetes' defaults of 20 to 50 requests/s a benchmark would measure the limits.
_QPS: Final = 5000
#: Controllers without work in a cluster that has no volumes, clouds or certificates of its own.
_IDLE_CONTROLLERS: Final = (
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "certificatesigningrequest-signing-controller",
    "horizontal-pod-autoscaler-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-expander-controller",
    # Writes an annotation to each node of a cluster with more than 100.
    "ttl-controller",
)


@dataclass(frozen=True)
class Component:
    """One process: how it is started, and the address that says whether it is ready."""

    name: str
    command: tuple[str | Path, ...]
    ready_url: str
    environment: dict[str, str] = field(default_factory=dict)
    #: Start it again when it ends by itself, as a kubelet would.
    restart: bool = False
    #: How long it may take to end after SIGTERM before it is killed.
    stop_deadline_s: float = 10.0


@dataclass(frozen=True)
class ControlPlane:
    """Builds the components of one cluster."""

    spec: ClusterSpec
    folder: ClusterFolder
    ports: dict[str, int]
    binaries: Binaries

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"

    def write_files(self) -> None:
        """Write the files that the flags below name."""
        Identities(self.folder).create(self.server)
        scheduler = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {
                "kubeconfig": str(self.folder.kubeconfig_of("kube-scheduler")),
                "qps": _QPS,
                "burst": _QPS,
            },
        }
        self._scheduler_config.write_text(yaml.safe_dump(scheduler))

    @property
    def _scheduler_config(self) -> Path:
        return self.folder.path / "kube-scheduler.yaml"

    def etcd(self) -> Component:
        """The store. It need not survive a power cut."""
        client = f"http://127.0.0.1:{self.ports['etcd']}"
        return Component(
            "etcd",
            (
                self.binaries["etcd"],
                f"--data-dir={self.folder.data}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                "--listen-peer-urls=http://127.0.0.1:0",
                "--unsafe-no-fsync",
                f"--quota-backend-bytes={8 * 2**30}",
                "--log-level=warn",
            ),
            ready_url=f"{client}/health",
        )

    def api_server(self) -> Component:
        """The API server, with RBAC, so that the roles of our chart are tested."""
        own = Identities(self.folder)
        return Component(
            "kube-apiserver",
            (
                self.binaries["kube-apiserver"],
                f"--etcd-servers=http://127.0.0.1:{self.ports['etcd']}",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                f"--secure-port={self.ports['kube-apiserver']}",
                f"--tls-cert-file={own.certificate}",
                f"--tls-private-key-file={own.key}",
                f"--token-auth-file={own.tokens}",
                "--authorization-mode=RBAC",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={own.service_account_key}",
                f"--service-account-signing-key-file={own.service_account_key}",
                "--service-cluster-ip-range=10.0.0.0/24",
                # It must not be reachable from other machines; the kubernetes Service needs no address.
                "--endpoint-reconciler-type=none",
                "--allow-privileged=true",
                "--max-requests-inflight=3000",
                "--max-mutating-requests-inflight=1000",
                "--profiling=false",
                *self._gates("--runtime-config"),
            ),
            ready_url=f"{self.server}/readyz",
            # After SIGTERM it would wait until every watch has ended.
            stop_deadline_s=2.0,
        )

    def controller_manager(self) -> Component:
        """The controllers: create the pods of Jobs, remove the first taints of nodes, delete namespaces."""
        own = Identities(self.folder)
        port = self.ports["kube-controller-manager"]
        return Component(
            "kube-controller-manager",
            (
                self.binaries["kube-controller-manager"],
                f"--kubeconfig={self.folder.kubeconfig_of('kube-controller-manager')}",
                *self._serving(port),
                "--leader-elect=false",
                "--use-service-account-credentials=true",
                f"--service-account-private-key-file={own.service_account_key}",
                f"--root-ca-file={own.ca}",
                f"--kube-api-qps={_QPS}",
                f"--kube-api-burst={_QPS}",
                "--concurrent-job-syncs=20",
                "--concurrent-gc-syncs=40",
                "--concurrent-namespace-syncs=20",
                # Nodes have no leases and touch their status every 10 to 15 minutes; see stages.yaml.
                "--node-monitor-grace-period=1h",
                f"--controllers=*,{','.join(f'-{name}' for name in _IDLE_CONTROLLERS)}",
                "--profiling=false",
                *self._gates(),
            ),
            ready_url=f"https://127.0.0.1:{port}/healthz",
        )

    def scheduler(self) -> Component:
        """The default scheduler, for all pods that do not ask for ours."""
        port = self.ports["kube-scheduler"]
        return Component(
            "kube-scheduler",
            (
                self.binaries["kube-scheduler"],
                f"--config={self._scheduler_config}",
                *self._serving(port),
                *self._gates(),
            ),
            ready_url=f"https://127.0.0.1:{port}/readyz",
        )

    def kwok(self) -> Component:
        """The fake nodes and their kubelets."""
        address = f"127.0.0.1:{self.ports['kwok']}"
        return Component(
            "kwok",
            (
                self.binaries["kwok"],
                f"--config={STAGES}",
                f"--kubeconfig={self.folder.kubeconfig_of('kwok')}",
                f"--server-address={address}",
                "--node-ip=127.0.0.1",
                # Otherwise it serves the kubelet API on port 10247 of every interface.
                f"--node-port={self.ports['kwok']}",
                # Writing a log line for each pod would take most of its time.
                "--v=WARN",
            ),
            ready_url=f"http://{address}/healthz",
        )

    def _serving(self, port: int) -> tuple[str, ...]:
        own = Identities(self.folder)
        return (
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={own.certificate}",
            f"--tls-private-key-file={own.key}",
            "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        )

    def _gates(self, api_flag: str | None = None) -> tuple[str, ...]:
        """Flags that turn on native gang scheduling, and its API where `api_flag` is given."""
        if not self.spec.native_gangs:
            return ()
        gates, api = _NATIVE_GANGS[self.spec.kubernetes]
        return (f"--feature-gates={gates}", *([f"{api_flag}={api}=true"] if api_flag else []))


#: feature gates and API version of native gangs, which move from release to release.
_NATIVE_GANGS: Final = {
    "1.37": ("GenericWorkload=true", "scheduling.k8s.io/v1beta1"),
    "1.36": ("GenericWorkload=true,GangScheduling=true", "scheduling.k8s.io/v1alpha2"),
}
