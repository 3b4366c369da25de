"""Case C79 with real processes: a leader that is stopped and wakes up after its lease writes nothing."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from devcluster.paths import ROOT
from tests.cli.conftest import environment_without_settings, kubeconfig
from tests.support.fake_api import served
from tests.support.scripted_kube import LeaseServer

DURATION_S = 2
ROUNDS = 3


class Server(LeaseServer):
    """The lease over HTTP, and how many writes came from each process."""

    def __init__(self) -> None:
        super().__init__()
        self.url = ""
        self.came: Counter[str] = Counter()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        status, answer = self.answer(request.method, request.path, request.query, body)
        if request.path == "/writes":
            self.came[self.writes.pop()[1]["from"]] += 1
        return web.json_response(answer, status=status)


@asynccontextmanager
async def leading_process(config: Path, identity: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.leading_process", str(config), identity, str(DURATION_S),
        cwd=ROOT, env=environment_without_settings(), stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def until(condition: Any, what: str) -> None:
    try:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"not within 30 s: {what}")


@pytest.mark.parametrize("released", [False, True], ids=["another leads", "another has led"])
async def test_a_leader_that_wakes_up_after_its_lease_writes_nothing(tmp_path: Path, released: bool) -> None:
    """It is stopped at any moment, with 32 writes under way, so that some are ready to be sent."""
    server = Server()
    async with served(server), AsyncExitStack() as stack:
        config = kubeconfig(tmp_path, server.url)
        leader = await stack.enter_async_context(leading_process(config, "0"))
        await until(lambda: server.came["0"] > 100, "the first process leads")
        for number in range(1, ROUNDS + 1):
            old, new = str(number - 1), str(number)
            successor = await stack.enter_async_context(leading_process(config, new))
            leader.send_signal(signal.SIGSTOP)
            await until(lambda new=new: server.came[new] > 100, "the next process leads")
            if released:
                successor.send_signal(signal.SIGTERM)
                async with asyncio.timeout(30):
                    await successor.wait()
                assert server.holder == ""
            came = server.came[old]
            leader.send_signal(signal.SIGCONT)
            async with asyncio.timeout(30):
                assert await leader.wait() == -signal.SIGALRM
            # What it had sent would have arrived by now: it shares the way with the requests of others.
            await asyncio.sleep(0.2)
            assert server.came[old] == came
            if released:
                successor = await stack.enter_async_context(leading_process(config, new))
                count = server.came[new]
                await until(lambda new=new, n=count: server.came[new] > n + 100, "it leads again")
            leader = successor


async def test_a_leader_that_is_told_to_stop_ends_by_itself(tmp_path: Path) -> None:
    """The timer that ends a frozen process is stopped in time, and the lease is free at once."""
    server = Server()
    async with served(server):
        async with leading_process(kubeconfig(tmp_path, server.url), "0") as leader:
            await until(lambda: server.came["0"] > 100, "it leads")
            leader.send_signal(signal.SIGTERM)
            async with asyncio.timeout(30):
                assert await leader.wait() == 0
        assert server.holder == ""
