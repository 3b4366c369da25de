"""Where the programs come from: KUBEBUILDER_ASSETS, the cache, a build; and edge cases of devcluster."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from devcluster import binaries, ports, programs
from devcluster.errors import DevclusterError
from devcluster.paths import ROOT, STAGES
from devcluster.programs import ETCD
from devcluster.progress import Heartbeat, duration
from devcluster.workloads import OUTCOME_ANNOTATION, READY_ANNOTATION, RUN_ANNOTATION
from tests.devcluster.conftest import CommandLine


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + textwrap.dedent(text))
    path.chmod(0o755)
    return path


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake Go that is slow enough for two builds to overlap; it logs each compilation."""
    log = tmp_path / "builds"
    script(
        tmp_path / "bin" / "go",
        f"""
        if [ "$1" = env ]; then echo go1.30.0; exit; fi
        echo "$GOFLAGS $*" >> {log}
        while [ "$1" != -o ]; do shift; done
        sleep 0.3
        echo program > "$2"
        """,
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GOFLAGS", "-mod=mod")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return log


def test_two_builds_at_once_compile_once(fake_go: Path) -> None:
    """Two test runs on a fresh machine: the second waits for the first and uses its result."""
    code = (
        "from devcluster.build import build; from devcluster.programs import ETCD; from sys import stderr\n"
    )
    code += "print(build(ETCD, 'etcd', lambda line: print(line, file=stderr)))"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    answers = [run.communicate(timeout=30) for run in runs]
    assert [out.decode().strip() for out, _ in answers] == [str(ETCD.cache / "etcd")] * 2
    (build,) = fake_go.read_text().splitlines()
    assert "-mod=mod" not in build
    said = b"".join(err for _, err in answers).decode()
    assert f"building etcd {ETCD.version}" in said
    assert "waiting for another build of etcd" in said


def test_files_of_a_killed_build_are_removed_and_not_used(fake_go: Path) -> None:
    stale = ETCD.cache / ".tmp-1-etcd"
    stale.parent.mkdir(parents=True)
    stale.write_text("an unfinished program")
    found = binaries.ensure("1.37", lambda _: None)
    assert found["etcd"].read_text() == "program\n"
    assert not stale.exists()


def test_a_built_kubernetes_reports_its_version(fake_go: Path) -> None:
    """Without it the server calls itself v0.0.0-master, and helm refuses to work with it."""
    binaries.ensure("1.36", lambda _: None)
    (server,) = [line for line in fake_go.read_text().splitlines() if line.endswith("cmd/kube-apiserver")]
    version = programs.kubernetes("1.36").version
    assert f"version.gitVersion={version} " in server
    assert "version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36" in server


def test_binaries_of_kubebuilder_assets_are_used_and_only_the_rest_is_built(
    fake_go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = tmp_path / "assets"
    script(assets / "etcd", "")
    script(assets / "kube-apiserver", "echo Kubernetes v1.37.0")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    said: list[str] = []
    found = binaries.ensure("1.37", said.append)
    assert found["etcd"] == assets / "etcd"
    assert found["kube-apiserver"] == assets / "kube-apiserver"
    assert found["kube-scheduler"] == programs.kubernetes("1.37").cache / "kube-scheduler"
    assert said[0].endswith("has no kube-controller-manager, kube-scheduler, kwok, helm: those are built")
    assert len(fake_go.read_text().splitlines()) == 4


def test_another_kubernetes_version_in_kubebuilder_assets_is_not_used(
    fake_go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller manager must not be newer than its API server."""
    assets = tmp_path / "assets"
    script(assets / "kube-apiserver", "echo Kubernetes v1.31.0")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    said: list[str] = []
    found = binaries.ensure("1.37", said.append)
    assert found["kube-apiserver"].parent == programs.kubernetes("1.37").cache
    assert "KUBEBUILDER_ASSETS has kube-apiserver 1.31, not 1.37: ours is used instead" in said


def test_kubebuilder_assets_must_be_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", "/nowhere")
    with pytest.raises(DevclusterError, match='KUBEBUILDER_ASSETS is "/nowhere", which is not a folder'):
        binaries.ensure("1.37", lambda _: None)


def test_a_failed_build_quotes_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_go: Path
) -> None:
    script(tmp_path / "bin" / "go", '[ "$1" = env ] && echo go1.30 || { echo "disk is full"; exit 1; }')
    with pytest.raises(DevclusterError, match=f"building etcd {ETCD.version} failed: disk is full"):
        binaries.ensure("1.37", lambda _: None)


def test_a_process_that_does_not_start_is_named_and_its_log_is_quoted(
    devcluster: CommandLine, tmp_path: Path
) -> None:
    """The logs are kept until the next start of a cluster of that name."""
    script(tmp_path / "etcd", "echo the disk is on fire; exit 7")
    done = devcluster("up", "--name", "broken", "--no-fluence", KUBEBUILDER_ASSETS=str(tmp_path))
    assert done.returncode == 1
    assert "etcd ended with exit code 7 before it was ready" in done.stderr
    assert "the disk is on fire" in done.stderr
    assert "the disk is on fire" in devcluster("logs", "etcd", "--name", "broken").stdout
    assert "broken" not in devcluster("status").stdout


def test_a_start_that_loses_a_port_is_repeated_with_other_ports(
    devcluster: CommandLine, tmp_path: Path
) -> None:
    script(tmp_path / "etcd", "echo listen tcp 127.0.0.1:1: bind: address already in use; exit 1")
    done = devcluster("up", "--name", "unlucky", "--no-fluence", KUBEBUILDER_ASSETS=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.count("choosing others") == 2


def test_ports_are_free_and_different_from_those_of_other_clusters() -> None:
    taken = {port for port in range(10_000, 32_000) if port % 2}
    chosen = ports.choose("abcdef", taken)
    assert len(set(chosen.values())) == 6
    assert not set(chosen.values()) & taken
    assert all(map(ports.is_free, chosen.values()))


def test_the_stages_read_the_annotations_that_python_writes() -> None:
    stages = STAGES.read_text()
    for annotation in (RUN_ANNOTATION, OUTCOME_ANNOTATION, READY_ANNOTATION):
        assert f'.metadata.annotations["{annotation}"]' in stages


def test_progress_is_reported_every_few_seconds() -> None:
    said: list[str] = []
    now_s = 0.0
    heartbeat = Heartbeat(said.append, now_s=lambda: now_s)
    for now_s in range(12):  # read by the clock above
        heartbeat.beat(f"building, {duration(now_s)}")
    assert said == ["building, 0s", "building, 5s", "building, 10s"]
    assert duration(130) == "2m10s"
