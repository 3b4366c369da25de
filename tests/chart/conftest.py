"""The chart, rendered by the real helm."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.errors import DevclusterError
from devcluster.paths import CHART
from devcluster.programs import HELM

PROCESSES = ("webhook", "controller", "scheduler")
KUBERNETES = "1.37.2"


@dataclass(frozen=True)
class Rendered:
    """The objects of an installation."""

    objects: list[dict[str, Any]]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.objects if one["kind"] == kind]

    def one(self, kind: str, name: str) -> dict[str, Any]:
        [found] = [one for one in self.of(kind) if one["metadata"]["name"] == name]
        return found

    def pod(self, process: str) -> dict[str, Any]:
        spec: dict[str, Any] = self.one("Deployment", f"fluence-{process}")["spec"]["template"]["spec"]
        return spec


@dataclass(frozen=True)
class Helm:
    """The real helm, working offline."""

    program: Path
    home: Path

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.program, *arguments],
            # The user's own helm configuration and kubeconfig must not be used.
            env={f"HELM_{kind}_HOME": str(self.home) for kind in ("CACHE", "CONFIG", "DATA")}
            | {"HOME": str(self.home)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def template(self, *options: str, release: str = "fluence", namespace: str = "fluence-system") -> str:
        ended = self.run(
            "template",
            release,
            str(CHART),
            f"--namespace={namespace}",
            f"--kube-version={KUBERNETES}",
            *options,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def refuses(self, *options: str) -> str:
        """The error of helm about values that it refuses."""
        ended = self.run("template", "fluence", str(CHART), f"--kube-version={KUBERNETES}", *options)
        assert ended.returncode != 0
        return ended.stderr


Render = Callable[..., Rendered]


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    program = HELM.cache / "helm"
    if not program.exists():
        raise DevclusterError("no helm yet: run `python -m devcluster build` first")
    return Helm(program, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def render(helm: Helm) -> Render:
    """Render the chart with options of `helm template`."""

    def rendered(*options: str, **where: str) -> Rendered:
        return Rendered([one for one in yaml.safe_load_all(helm.template(*options, **where)) if one])

    return rendered


@pytest.fixture(scope="session")
def chart(render: Render) -> Rendered:
    """The chart with the values that it comes with."""
    return render("--include-crds")
