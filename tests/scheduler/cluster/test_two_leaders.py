"""Two schedulers on a real control plane: one that was frozen writes nothing after its lease (case C79)."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from devcluster.chart import NAMESPACE
from devcluster.paths import ROOT
from tests.cli.conftest import environment_without_settings, kubeconfig
from tests.support.recording_proxy import RecordingProxy
from tests.support.world import World

pytestmark = [pytest.mark.xdist_group("two-leaders"), pytest.mark.timeout(300)]

TAKEOVER_S = 60.0
LEASE_SECONDS = 5
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/fluence-scheduler"


class Scheduler:
    """A scheduler of its own, and what it has written."""

    def __init__(self, process: asyncio.subprocess.Process, proxy: RecordingProxy) -> None:
        self.process = process
        self.proxy = proxy

    @property
    def bindings(self) -> list[str]:
        return [one for one in self.proxy.writes if one.endswith("/binding")]


@asynccontextmanager
async def scheduler(world: World, folder: Path) -> AsyncIterator[Scheduler]:
    await asyncio.to_thread(folder.mkdir)
    cluster = world.cluster
    async with RecordingProxy.before(cluster.url, cluster.token, cluster.ca_file) as proxy:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fluence", "scheduler", f"--kubeconfig={kubeconfig(folder, proxy.url)}",
            f"--lease-seconds={LEASE_SECONDS}", "--probe-host=127.0.0.1", "--probe-port=0",
            cwd=ROOT, env=environment_without_settings(), stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield Scheduler(process, proxy)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def test_a_frozen_scheduler_makes_no_call_after_another_has_led(
    own_world: World, tmp_path: Path
) -> None:
    """It is stopped while it binds, and woken when its successor has freed the lease again."""
    world = own_world
    await world.node("a", cpu="150")
    await world.node("b", cpu="150")
    await asyncio.to_thread(world.cluster.process("scheduler").stop)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(scheduler(world, tmp_path / "first"))
        await world.gang("before", 2)
        await world.until_bound("before", 2, deadline_s=TAKEOVER_S)
        second = await stack.enter_async_context(scheduler(world, tmp_path / "second"))
        await world.gang("cut", 200, cpu="1")

        async def begun() -> bool:
            return len(first.bindings) > 2

        await world.wait_for(begun, what="the first scheduler binds the gang")
        first.process.send_signal(signal.SIGSTOP)
        await world.until_bound("cut", 200, deadline_s=TAKEOVER_S)
        assert second.bindings
        second.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            assert await second.process.wait() == 0
        assert not (await world.api.get(LEASE))["spec"]["holderIdentity"]

        written = list(first.proxy.writes)
        await world.gang("waiting", 4, cpu="1")
        first.process.send_signal(signal.SIGCONT)
        async with asyncio.timeout(30):
            assert await first.process.wait() == -signal.SIGALRM
        assert first.proxy.writes == written
        assert await world.bound("waiting") == 0

        third = await stack.enter_async_context(scheduler(world, tmp_path / "third"))
        await world.until_bound("waiting", 4, deadline_s=TAKEOVER_S)
        assert len(third.bindings) == 4
        pods = {one for one in first.bindings} & {one for one in second.bindings}
        # Only calls that were cut off may have been made twice: no more than were under way at once.
        assert len(pods) <= 32
        assert await world.bound("cut") == 200
