"""Clusters of these tests have a state folder of their own, so that `down --all` ends no other cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from devcluster import binaries
from devcluster.cluster import RunningCluster
from devcluster.paths import ROOT, ClusterFolder
from devcluster.spec import ClusterSpec


@dataclass(frozen=True)
class CommandLine:
    """`python -m devcluster` as on a command line, in a state folder of its own."""

    home: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "XDG_STATE_HOME": str(self.home), "PYTHONPATH": str(ROOT)}

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "devcluster", *arguments],
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def folder(self, name: str) -> ClusterFolder:
        return ClusterFolder(self.home / "fluence" / "clusters" / name)

    def up(self, name: str, *arguments: str) -> RunningCluster:
        done = self("up", "--no-fluence", "--nodes", "2", "--name", name, *arguments)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == str(self.folder(name).kubeconfig)
        return RunningCluster(self.folder(name))


@pytest.fixture(scope="module")
def devcluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line; clusters that it started end with the module."""
    if lacking := binaries.missing(ClusterSpec().kubernetes):
        pytest.fail(f"no {', '.join(lacking)} yet: run `python -m devcluster build` first")
    command_line = CommandLine(tmp_path_factory.mktemp("state"))
    yield command_line
    command_line("down", "--all")


@pytest.fixture(scope="module")
def one(devcluster: CommandLine) -> RunningCluster:
    """A cluster without Fluence for all tests of the module."""
    return devcluster.up("one", "--owner-pid", str(os.getpid()))
