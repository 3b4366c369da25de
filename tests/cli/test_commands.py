"""The command line teaches, starts, stops, and tells every mistake in one sentence and without a trace."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.cli.conftest import Fluence, environment_without_settings, kubeconfig
from tests.support.fake_api import FakeApi, fake_api

PROCESSES = ["webhook", "controller", "scheduler"]
POD_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"


def sentence(ended: "subprocess.CompletedProcess[str]", code: int) -> str:
    """The one line, beside logs, that a failed command ends with."""
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr
    told = [line for line in ended.stderr.splitlines() if not line.startswith("{")]
    assert len(told) == 1, ended.stderr
    assert told[0].startswith("fluence: ")
    return told[0]


def test_help_lists_the_commands(fluence: Fluence) -> None:
    told = fluence("--help").stdout
    for command in (*PROCESSES, "label", "version"):
        assert f"  {command} " in told


@pytest.mark.parametrize("process", PROCESSES)
def test_help_teaches_by_examples_and_says_where_settings_come_from(fluence: Fluence, process: str) -> None:
    told = fluence(process, "--help").stdout
    assert f"fluence {process} --" in told
    assert "FLUENCE_PROBE_PORT" in told
    for flag in ("--kubeconfig", "--scheduler-name", "--probe-port", "--config", "[default: fluence]"):
        assert flag in told


def test_version_tells_the_version(fluence: Fluence) -> None:
    assert fluence("version").stdout.startswith("fluence ")


def test_version_and_label_load_nothing_that_talks_to_a_cluster() -> None:
    script = (
        "import sys, fluence.commands;"
        "print(*[name for name in ('kubernetes_asyncio', 'uvicorn', 'fastapi', 'aiohttp', 'numpy', 'kube')"
        " if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == ""


def test_an_unknown_flag_is_bad_usage_and_close_ones_are_named(fluence: Fluence) -> None:
    ended = fluence("scheduler", "--probe-prt", "1")
    assert ended.returncode == 2
    assert "--probe-prt" in ended.stderr
    assert "--probe-port" in ended.stderr


def test_an_unknown_variable_is_bad_usage(fluence: Fluence) -> None:
    told = sentence(fluence("scheduler", env={"FLUENCE_SCHEDULER_NAM": "x"}), 2)
    assert "did you mean FLUENCE_SCHEDULER_NAME?" in told


def test_a_wrong_flag_is_bad_usage(fluence: Fluence) -> None:
    assert '--port is "abc"' in sentence(fluence("webhook", "--port", "abc"), 2)


@pytest.mark.parametrize("process", PROCESSES)
def test_a_missing_kubeconfig_is_named(fluence: Fluence, process: str) -> None:
    ports = ["--probe-port=0", *(["--port=0"] if process == "webhook" else [])]
    told = sentence(fluence(process, "--kubeconfig", "/none/kubeconfig", *ports), 1)
    assert "/none/kubeconfig does not exist" in told
    assert "--kubeconfig" in told


def test_without_any_way_to_a_cluster_all_ways_are_named(fluence: Fluence) -> None:
    told = sentence(fluence("scheduler", "--probe-port=0"), 1)
    assert "--kubeconfig" in told


def test_a_broken_kubeconfig_is_named(fluence: Fluence, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("clusters: [")
    assert str(broken) in sentence(fluence("scheduler", "--probe-port=0", "--kubeconfig", str(broken)), 1)


def test_an_api_server_that_does_not_answer_is_named(fluence: Fluence, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    config = kubeconfig(tmp_path, f"http://127.0.0.1:{port}")
    ended = fluence("scheduler", "--probe-port=0", f"--kubeconfig={config}")
    told = sentence(ended, 1)
    assert "no answer from the API server" in told
    assert str(port) in told
    # A minute is long: it says at once what it waits for.
    assert "waiting for the API server" in ended.stderr


def test_a_taken_port_is_named_with_its_flag(fluence: Fluence) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listen = ["--probe-host=127.0.0.1", "--host=127.0.0.1"]
        told = sentence(fluence("scheduler", listen[0], f"--probe-port={port}"), 1)
        assert f"port {port}" in told
        assert "--probe-port" in told
        told = sentence(fluence("webhook", *listen, "--probe-port=0", f"--port={port}"), 1)
        assert f"port {port}" in told
        assert "--port" in told


class Running:
    """A process of Fluence that a test has started, and what it logs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.lines.append(line.decode().rstrip())

    async def logged(self, event: str) -> dict[str, object]:
        """Wait until it logs `event`."""
        async with asyncio.timeout(30):
            while True:
                for line in self.lines:
                    if line.startswith("{") and (entry := json.loads(line))["event"] == event:
                        return dict(entry)
                assert self.process.returncode is None, self.lines
                await asyncio.sleep(0.02)


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[Running]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fluence", *arguments,
        env=environment_without_settings(), stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    one = Running(process)
    reading = asyncio.create_task(one.read())
    try:
        yield one
    finally:
        if process.returncode is None:
            process.kill()
        async with asyncio.timeout(30):
            await process.wait()
            await reading


def status(code: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "message": message}, status=code)


@pytest.mark.parametrize("process", ["controller", "scheduler"])
async def test_a_missing_crd_is_told_with_what_to_install(process: str, tmp_path: Path) -> None:
    async with fake_api() as (api, _):
        api.script("GET", POD_GROUPS, lambda _: status(404, "the server could not find it"))
        config = kubeconfig(tmp_path, api.url)
        async with running(process, f"--kubeconfig={config}", "--probe-port=0") as one:
            async with asyncio.timeout(30):
                assert await one.process.wait() == 1
    assert "Traceback" not in "".join(one.lines)
    assert one.lines[-1].startswith("fluence: the CRD podgroups.scheduling.x-k8s.io is not installed")
    assert "manifests/chart/crds/podgroups.yaml" in one.lines[-1]


async def test_a_missing_right_is_told_with_what_to_do(tmp_path: Path) -> None:
    async with fake_api() as (api, _):
        refused = 'podgroups.scheduling.x-k8s.io is forbidden: User "nobody" cannot list resource "podgroups"'
        api.script("GET", POD_GROUPS, lambda _: status(403, refused))
        config = kubeconfig(tmp_path, api.url)
        async with running("scheduler", f"--kubeconfig={config}", "--probe-port=0") as one:
            async with asyncio.timeout(30):
                assert await one.process.wait() == 1
    assert "Traceback" not in "".join(one.lines)
    assert 'cannot list resource "podgroups"' in one.lines[-1]
    assert "roles of the chart" in one.lines[-1]


def lease_server(api: FakeApi) -> list[str]:
    """Let `api` grant the scheduler's lease; the holders in the order in which they were written."""
    holders: list[str] = []
    collection = "/apis/coordination.k8s.io/v1/namespaces/fluence-system/leases"
    stored: dict[str, object] = {}

    async def write(request: web.Request) -> web.Response:
        stored.update(await request.json())
        stored["metadata"] = {"name": "fluence-scheduler", "resourceVersion": str(len(holders) + 1)}
        holders.append(stored["spec"]["holderIdentity"])  # type: ignore[index]
        return web.json_response(stored)

    def read(_: web.Request) -> web.Response:
        return web.json_response(stored) if stored else status(404, "no lease")

    api.script("GET", f"{collection}/fluence-scheduler", read)
    api.script("POST", collection, write)
    api.script("PUT", f"{collection}/fluence-scheduler", write)
    return holders


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_a_leader_cleanly_and_frees_its_lease(
    number: signal.Signals, tmp_path: Path
) -> None:
    async with fake_api() as (api, _):
        holders = lease_server(api)
        config = kubeconfig(tmp_path, api.url)
        async with running(
            "scheduler", f"--kubeconfig={config}", "--probe-host=127.0.0.1", "--probe-port=0"
        ) as one:
            await one.logged("leading")
            port = (await one.logged("probes served"))["port"]
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{port}/readyz") as answer,
            ):
                assert answer.status == 200
            one.process.send_signal(number)
            async with asyncio.timeout(30):
                assert await one.process.wait() == 0
    assert "Traceback" not in "".join(one.lines)
    assert holders[0] != ""
    assert holders[-1] == ""
    assert all(json.loads(line)["process"] == "scheduler" for line in one.lines)
