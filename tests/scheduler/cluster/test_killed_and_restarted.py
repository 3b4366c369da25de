"""The scheduler may be killed at any moment: truth is in the API server alone (a cluster of its own)."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from devcluster.api import ApiFailure
from groups.contract import RUN_ANNOTATION
from tests.support.world import World

pytestmark = [pytest.mark.xdist_group("scheduler-killed"), pytest.mark.timeout(300)]

#: The lease of a killed scheduler has to end before another one may bind.
TAKEOVER_S = 60.0
LEASE_S = 15.0


async def test_a_gang_cut_in_the_middle_of_its_binding_is_completed(own_world: World) -> None:
    """Rule A5: members that are bound already count after the restart."""
    world = own_world
    await world.node("a", cpu="250")
    scheduler = world.cluster.process("scheduler")
    async with world.history() as history:
        await world.gang("g", 100, cpu="1")

        async def begun() -> bool:
            return bool(history.bindings)

        await world.wait_for(begun, what="the first member is bound")
        await asyncio.to_thread(scheduler.kill)
        await asyncio.to_thread(scheduler.start)
        await world.until_bound("g", 100, deadline_s=TAKEOVER_S)


async def test_a_cut_gang_that_no_longer_fits_says_so(own_world: World) -> None:
    """Two of four members are bound when the scheduler dies, and the room is taken meanwhile."""
    world = own_world
    await world.node("a", cpu="4")
    scheduler = world.cluster.process("scheduler")
    await asyncio.to_thread(scheduler.kill)
    await world.gang("g", 4)
    await world.until_phase("g", "Scheduling")
    run_uid = (await world.get("PodGroup", "g"))["metadata"]["uid"]
    for number in range(2):
        target = {"apiVersion": "v1", "kind": "Node", "name": world.node_name("a")}
        # As the scheduler would have bound it: with the mark of the run.
        meta = {"name": f"g-{number}", "annotations": {RUN_ANNOTATION: run_uid}}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        await world.api.post(world.path("Pod", f"g-{number}") + "/binding", body)
    await world.create(world.pod("thief", cpu="1", scheduler="default-scheduler"))

    async def taken() -> bool:
        return bool((await world.get("Pod", "thief"))["spec"].get("nodeName"))

    await world.wait_for(taken, what="the default scheduler has taken the room")
    await asyncio.to_thread(scheduler.start)

    async def says_so() -> bool:
        condition = await world.condition("g-3") or {}
        return condition.get("reason") == "Unschedulable"

    await world.wait_for(says_so, deadline_s=TAKEOVER_S, what="the members that wait say why")
    assert await world.bound("g") == 2
    await world.delete("Pod", "thief")
    await world.until_bound("g", 4)


async def test_after_a_restart_running_gangs_are_known_and_waiting_ones_wait(own_world: World) -> None:
    """Cases C96 and C94: nothing is asked for again, and nothing is overcommitted."""
    world = own_world
    for name in "abc":
        await world.node(name, cpu="2")
    await world.gang("ga", 4)
    await world.until_bound("ga", 4)
    await world.gang("gb", 4)
    await world.until_refused("gb")
    scheduler = world.cluster.process("scheduler")
    await asyncio.to_thread(scheduler.kill)
    async with world.history() as history:
        await asyncio.to_thread(scheduler.start)
        await world.gang("probe", 1)
        await world.until_bound("probe", 1, deadline_s=TAKEOVER_S)
        assert await world.bound("gb") == 0
        assert not history.bound_of("ga")
        for number in range(4):
            await world.delete("Pod", f"ga-{number}")
        await world.until_bound("gb", 4)


async def test_a_gang_is_never_bound_to_a_node_that_has_gone(own_world: World) -> None:
    """Case C103, rule T7; the moment between plan and binding is tested in `test_bind`."""
    world = own_world
    await world.node("a", cpu="2")
    await world.node("b", cpu="2")
    async with world.history() as history:
        await world.gang("g", 4, count=3)
        await world.until_phase("g", "Pending")
        await world.delete_node("b")
        await world.create(world.pod("g-3", group="g", size=4))
        await world.until_refused("g")
        assert not history.bindings
        await world.node("c", cpu="2")
        await world.until_bound("g", 4)
        assert {node for _, node in history.bindings} == {world.node_name("a"), world.node_name("c")}


async def test_an_api_server_that_was_away_finds_everybody_as_it_left_them(own_world: World) -> None:
    """Case C77: away for longer than a lease lasts; no process restarts, one leads again, gangs go on."""
    world = own_world
    await world.node("a", cpu="4")
    await world.gang("before", 2)
    await world.until_bound("before", 2)
    ours = [world.cluster.process(name) for name in ("webhook", "controller", "scheduler")]
    pids = [process.pid for process in ours]
    await asyncio.to_thread(world.cluster.process("kube-apiserver").stop)
    await asyncio.sleep(LEASE_S + 3)  # the outage itself, not a wait for anything
    await asyncio.to_thread(world.cluster.process("kube-apiserver").start)

    async def made() -> bool:
        try:
            return bool(await world.gang("after", 2))
        except (ApiFailure, OSError, aiohttp.ClientError):
            return False

    await world.wait_for(made, what="the API server takes pods again")
    await world.until_bound("after", 2, deadline_s=TAKEOVER_S)
    assert await world.bound("before") == 2
    assert [process.pid for process in ours] == pids
