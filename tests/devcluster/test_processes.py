"""Start, stop and restart processes of a cluster by name, with small programs instead of real ones."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from devcluster.components import Component
from devcluster.errors import ComponentFailed, DevclusterError, PortTaken
from devcluster.paths import ClusterFolder
from devcluster.processes import Processes


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[Processes]:
    folder = ClusterFolder(tmp_path)
    folder.logs.mkdir()
    async with aiohttp.ClientSession() as http:
        processes = Processes(folder, http)
        yield processes
        await processes.end_all()


def component(shell: str, *, restart: bool = False) -> Component:
    return Component("it", ("sh", "-c", shell), ready_url="http://127.0.0.1:1/", restart=restart)


def pid_of(processes: Processes) -> int:
    (row,) = processes.status()
    pid: int = row["pid"]
    return pid


async def until_restarted(processes: Processes, before: int) -> None:
    async with asyncio.timeout(20):
        while pid_of(processes) in (None, before):
            await asyncio.sleep(0.02)


async def test_a_process_that_ends_by_itself_is_restarted_where_a_kubelet_would_do_so(
    processes: Processes,
) -> None:
    processes.add(component("exec sleep 60", restart=True))
    await processes.start("it", ready=False)
    before = pid_of(processes)
    os.kill(before, signal.SIGKILL)
    await until_restarted(processes, before)


async def test_a_process_that_a_test_killed_stays_down(processes: Processes) -> None:
    """Tests check what happens without it before they start it again."""
    processes.add(component("exec sleep 60", restart=True))
    await processes.start("it", ready=False)
    await processes.kill("it")
    (row,) = processes.status()
    assert row["state"] == "stopped"
    with pytest.raises(DevclusterError, match="it does not run: start it with `start it`"):
        await processes.kill("it")


async def test_a_paused_process_counts_as_running(processes: Processes) -> None:
    processes.add(component("exec sleep 60"))
    await processes.start("it", ready=False)
    await processes.kill("it", signal.SIGSTOP)
    (row,) = processes.status()
    assert row["state"] == "running"
    await processes.kill("it", signal.SIGCONT)


async def test_a_process_that_does_not_end_in_time_is_killed(processes: Processes, tmp_path: Path) -> None:
    stubborn = Component(
        "it",
        ("sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done"),
        ready_url="http://127.0.0.1:1/",
        stop_deadline_s=0.1,
    )
    processes.add(stubborn)
    await processes.start("it", ready=False)
    async with asyncio.timeout(20):
        while not (tmp_path / "logs" / "it.log").read_text():
            await asyncio.sleep(0.02)
    await processes.stop("it")
    (row,) = processes.status()
    assert row["state"] == "stopped"


async def test_the_log_of_a_process_that_ends_before_it_is_ready_is_quoted(processes: Processes) -> None:
    processes.add(component("echo no configuration; exit 3"))
    with pytest.raises(ComponentFailed, match="it ended with exit code 3 before it was ready") as failure:
        await processes.start("it")
    assert str(failure.value).endswith("no configuration")


async def test_a_taken_port_is_distinguished_from_other_failures(processes: Processes) -> None:
    processes.add(component("echo listen: address already in use; exit 1"))
    with pytest.raises(PortTaken):
        await processes.start("it")


async def test_a_start_may_add_arguments_and_environment_for_that_run_only(
    processes: Processes, tmp_path: Path
) -> None:
    processes.add(component('echo "$WHO $0"; exec sleep 60'))
    log = tmp_path / "logs" / "it.log"

    async def run(environment: dict[str, str], *arguments: str) -> str:
        before = len(log.read_text()) if log.exists() else 0
        await processes.start("it", environment=environment, arguments=arguments, ready=False)
        async with asyncio.timeout(20):
            while len(log.read_text()) == before:
                await asyncio.sleep(0.02)
        await processes.stop("it")
        return log.read_text()[before:].strip()

    assert await run({"WHO": "me"}, "extra") == "me extra"
    assert "extra" not in await run({})
