"""The webhook dies, hangs or is replaced meanwhile: foreign objects do not notice, ours lose nothing."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from devcluster.cluster import RunningCluster
from groups.contract import GROUP_LABEL, SIZE_LABEL
from tests.support.world import World

pytestmark = pytest.mark.xdist_group("own webhook cluster")

REGISTRATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/fluence"


@pytest.fixture
async def world(own_cluster: RunningCluster, own_world: World) -> AsyncIterator[World]:
    """A cluster whose webhook and registration are as they were after the test."""
    before = (await own_world.api.get(REGISTRATION))["webhooks"]
    yield own_world
    await register(own_world, before)
    for name in ("webhook", "controller"):
        process = own_cluster.process(name)
        if process.state != "running":
            await asyncio.to_thread(process.start)


async def register(world: World, webhooks: list[dict[str, Any]], **change: Any) -> None:
    """Change every webhook of the registration, and wait until the API server goes by it."""
    changed = [{**one, **change} for one in webhooks]
    await world.api.patch(REGISTRATION, {"webhooks": changed})

    async def in_force() -> bool:
        made = await world.api.post(world.path("Pod"), world.pod("probe"), dryRun="All")
        return SIZE_LABEL in (made["metadata"].get("labels") or {})

    await world.wait_for(in_force, what="the registration is in force")


async def registered(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await world.api.get(REGISTRATION))["webhooks"]
    return found


async def test_a_webhook_that_is_killed_in_the_middle_is_not_noticed(
    own_cluster: RunningCluster, world: World
) -> None:
    """Rule W17, A8: every object is made at once; each gang ends up whole, in the group of its own Job."""
    await world.node("a", cpu="64")
    webhook = own_cluster.process("webhook")
    gangs, size = 12, 3
    for number in range(gangs):
        await world.create(
            world.job(f"j{number}", size, size, run="1h"), world.pod(f"foreign-{number}", scheduler=None)
        )
        if number == gangs // 3:
            await asyncio.to_thread(webhook.kill)
        if number == 2 * gangs // 3:
            await asyncio.to_thread(webhook.start)

    async def all_bound() -> bool:
        return all(pod["spec"].get("nodeName") for pod in await world.pods())

    await world.wait_for(all_bound, what="every pod is bound")
    pods = await world.pods()
    assert len(pods) == gangs * size + gangs
    by_group = Counter(pod["metadata"].get("labels", {}).get(GROUP_LABEL) for pod in pods)
    expected = {f"fluence-group-{world.namespace}-j{number}": size for number in range(gangs)}
    assert by_group == {**expected, None: gangs}
    groups = {one["metadata"]["name"]: one["spec"]["minMember"] for one in await world.pod_groups()}
    assert groups == expected


async def test_a_webhook_that_hangs_holds_up_only_what_is_ours(
    own_cluster: RunningCluster, world: World
) -> None:
    """Rules W16 and W17: foreign pods do not wait; ours wait for the timeout, and are grouped afterwards."""
    await register(world, await registered(world), timeoutSeconds=2)
    await world.node("a", cpu="4")
    webhook = own_cluster.process("webhook")
    await asyncio.to_thread(webhook.kill, signal.SIGSTOP)
    try:
        ours = asyncio.create_task(world.create(world.job("train", 2, 2, run="1h")))
        await world.create(world.pod("foreign", scheduler=None))
        assert not ours.done()
        await ours
    finally:
        await asyncio.to_thread(webhook.kill, signal.SIGCONT)
    await world.until_bound(f"fluence-group-{world.namespace}-train", 2)


async def test_a_pod_that_names_a_group_needs_neither_webhook_nor_controller(
    own_cluster: RunningCluster, world: World
) -> None:
    """Case C38: nobody has to know the group yet."""
    controller = own_cluster.process("controller")
    await asyncio.to_thread(controller.stop)
    (made,) = await world.create(world.pod("p", group="later", size=2))
    assert made["metadata"]["labels"] == {GROUP_LABEL: "later", SIZE_LABEL: "2"}
    await asyncio.to_thread(controller.start)

    async def grouped() -> bool:
        group = await world.pod_group("later")
        return group is not None and group["spec"]["minMember"] == 2

    await world.wait_for(grouped, what="the PodGroup is made")


async def is_unready(probes: str) -> bool:
    try:
        async with aiohttp.ClientSession() as client, client.get(f"{probes}/readyz") as answer:
            return answer.status != 200
    except aiohttp.ClientError:
        return True


@contextlib.asynccontextmanager
async def another_replica(cluster: RunningCluster) -> AsyncIterator[str]:
    """A second webhook with the same rights and the same Secret; its address."""
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        port, probes = one.getsockname()[1], two.getsockname()[1]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fluence", "webhook", f"--kubeconfig={cluster.process('webhook').kubeconfig}",
        "--namespace=fluence-system", "--host=127.0.0.1", f"--port={port}", "--hosts=127.0.0.1",
        "--probe-host=127.0.0.1", f"--probe-port={probes}", "--drain-seconds=0",
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(30), aiohttp.ClientSession() as client:
            while True:
                with contextlib.suppress(aiohttp.ClientError):
                    async with client.get(f"http://127.0.0.1:{probes}/readyz") as answer:
                        if answer.status == 200:
                            break
                assert child.returncode is None
                await asyncio.sleep(0.05)
        yield f"https://127.0.0.1:{port}/mutate"
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def test_a_rolling_update_loses_no_admission(own_cluster: RunningCluster, world: World) -> None:
    """Rule W28: with failurePolicy Fail a single lost review would be an object that cannot be created.

    As when a pod is deleted: only once the old replica is unready does the API server hear of the new one.
    """
    webhook = own_cluster.process("webhook")
    await asyncio.to_thread(webhook.stop)
    await asyncio.to_thread(webhook.start, "--drain-seconds=2")
    before = await registered(world)
    async with another_replica(own_cluster) as url:
        await register(world, before, failurePolicy="Fail")
        made, over = Counter[bool](), asyncio.Event()

        async def create_one_after_another() -> None:
            while not over.is_set():
                pod = await world.api.post(world.path("Pod"), world.pod("p"), dryRun="All")
                made[SIZE_LABEL in pod["metadata"]["labels"]] += 1

        async def enough(count: int) -> None:
            async def so_many() -> bool:
                return made.total() >= count

            await world.wait_for(so_many, what=f"{count} pods")

        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(create_one_after_another())
            await enough(200)
            moved = [
                {**one, "failurePolicy": "Fail", "clientConfig": {**one["clientConfig"], "url": url}}
                for one in before
            ]
            probes = webhook.probes
            stopping = asyncio.create_task(asyncio.to_thread(webhook.stop))
            await world.wait_for(lambda: is_unready(probes), what="the old replica is unready")
            await world.api.patch(REGISTRATION, {"webhooks": moved})
            await stopping
            await enough(made.total() + 200)
            over.set()
        assert made[False] == 0
        await asyncio.to_thread(webhook.start)
        await register(world, before)
