"""Which programs a cluster needs, and which Go package each is built from.

The versions are only in the `go.mod` files under `modules/`. There is one module for each source: in a common
module, kwok, helm and etcd would change each other's dependencies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from devcluster.errors import DevclusterError
from devcluster.paths import MODULES, cache_folder

KUBERNETES: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
#: Newest first: the first is the default.
KUBERNETES_VERSIONS: Final = ("1.37", "1.36")


@dataclass(frozen=True)
class Source:
    """One Go module with the programs that are built from it."""

    name: str
    module: str
    folder: Path
    packages: dict[str, str]
    #: The estimate that is shown during the first build of one program.
    estimate: str

    @cached_property
    def version(self) -> str:
        """The version that the committed go.mod names."""
        text = (self.folder / "go.mod").read_text()
        found = re.search(rf"^\s*(?:require )?{re.escape(self.module)} (v\S+)", text, re.MULTILINE)
        if found is None:
            raise DevclusterError(f"{self.folder / 'go.mod'} does not require {self.module}")
        return found[1]

    @property
    def cache(self) -> Path:
        """Where the built programs are kept: another version is another folder."""
        return cache_folder() / "bin" / f"{self.name}-{self.version}"

    @property
    def ldflags(self) -> str:
        """Flags for Go's linker: without its version a Kubernetes calls itself v0.0.0-master."""
        if self.name != "kubernetes":
            return "-s -w"
        major, minor, _ = self.version.removeprefix("v").split(".", 2)
        stamp = {"gitVersion": self.version, "gitMajor": major, "gitMinor": minor}
        where = "k8s.io/component-base/version"
        return "-s -w " + " ".join(f"-X {where}.{key}={value}" for key, value in stamp.items())


def kubernetes(version: str) -> Source:
    """The source of one Kubernetes minor version, such as `1.37`."""
    if version not in KUBERNETES_VERSIONS:
        raise DevclusterError(
            f'Kubernetes "{version}" is not known here: use one of {", ".join(KUBERNETES_VERSIONS)}'
        )
    return Source(
        name="kubernetes",
        module="k8s.io/kubernetes",
        folder=MODULES / f"kubernetes-{version}",
        packages={name: f"k8s.io/kubernetes/cmd/{name}" for name in KUBERNETES},
        estimate="about 5 minutes for all of Kubernetes, the first time only",
    )


ETCD: Final = Source(
    name="etcd",
    module="go.etcd.io/etcd/server/v3",
    folder=MODULES / "etcd",
    # The module's root package is the program; Go would call it `server`.
    packages={"etcd": "go.etcd.io/etcd/server/v3"},
    estimate="about 20 seconds",
)
KWOK: Final = Source(
    name="kwok",
    module="sigs.k8s.io/kwok",
    folder=MODULES / "kwok",
    packages={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
    estimate="about a minute",
)
HELM: Final = Source(
    name="helm",
    module="helm.sh/helm/v3",
    folder=MODULES / "helm",
    packages={"helm": "helm.sh/helm/v3/cmd/helm"},
    estimate="about a minute",
)


def sources(kubernetes_version: str) -> tuple[Source, ...]:
    """Everything that a cluster of this Kubernetes version is built from."""
    return (ETCD, kubernetes(kubernetes_version), KWOK, HELM)
