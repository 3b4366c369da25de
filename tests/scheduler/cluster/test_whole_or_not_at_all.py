"""A gang is bound whole or not at all, and one that waits holds nothing (real control plane)."""

from __future__ import annotations

from tests.support.world import World


async def test_a_gang_too_big_waits_with_numbers_and_a_younger_one_passes_it(world: World) -> None:
    """Case C81, rules F1, F3."""
    await world.node("a", cpu="2")
    await world.node("b", cpu="2")
    async with world.history() as history:
        await world.gang("g5", 5)
        message = await world.until_refused("g5")
        assert "nodes are available: " in message
        assert "5" in message
        assert "room for 4" in message
        await world.gang("g4", 4)
        await world.until_bound("g4", 4)
        for pod in await world.pods("g4"):
            await world.delete("Pod", pod["metadata"]["name"])
        await world.node("c", cpu="1")
        await world.until_bound("g5", 5)
        assert len(history.bound_of("g4")) == 4
        # The five came together, and only once there was room for all of them.
        assert history.groups_in_order() == ["g4", "g5"]


async def test_of_two_gangs_with_room_for_one_exactly_one_starts(world: World) -> None:
    """Case C82: pods are made in turn, A1 B1 A2 B2 A3 B3."""
    await world.node("a", cpu="4")
    pods = [world.pod(f"{g}-{i}", group=g, size=3, run="2s") for i in range(3) for g in ("ga", "gb")]
    async with world.history() as history:
        await world.create(*pods)

        async def one_whole() -> bool:
            return sorted([await world.bound("ga"), await world.bound("gb")]) == [0, 3]

        await world.wait_for(one_whole, what="one gang is bound 3/3, the other 0/3")
        await world.until_bound("ga", 3)
        await world.until_bound("gb", 3)
        order = [pod.partition("-")[0] for pod, _ in history.bindings]
        assert order in (["ga"] * 3 + ["gb"] * 3, ["gb"] * 3 + ["ga"] * 3)


async def test_a_waiting_gang_holds_nothing(world: World) -> None:
    """Case C85."""
    await world.node("a", cpu="9")
    await world.gang("g", 10)
    await world.until_refused("g")
    await world.gang("s", 1, cpu="5")
    await world.until_bound("s", 1)
    assert await world.bound("g") == 0
    await world.delete("Pod", "s-0")
    await world.node("b", cpu="1")
    await world.until_bound("g", 10)


async def test_members_that_come_one_by_one_start_when_the_last_is_there(world: World) -> None:
    """Case C86."""
    await world.node("a", cpu="8")
    async with world.history() as history:
        for number in range(5):
            await world.create(world.pod(f"g-{number}", group="g", size=6))
        await world.until_phase("g", "Pending")
        assert not history.bindings
        await world.create(world.pod("g-5", group="g", size=6))
        await world.until_bound("g", 6, deadline_s=5)


async def test_too_few_members_are_told_and_hold_nobody_up(world: World) -> None:
    """Case C98, rules F2, I16: said aloud, and nothing that would make an autoscaler buy nodes."""
    await world.node("a", cpu="8")
    await world.create(world.job("j", 3, 3, size=5, group="g", outcome="never"))

    async def said() -> bool:
        condition = await world.group_condition("g") or {}
        events = await world.events(reason="WaitingForMembers")
        return "3 of 5 members" in condition.get("message", "") and len(events) == 4

    await world.wait_for(said, what="the group and its pods say that 3 of 5 members exist")
    assert await world.phase("g") == "Pending"
    for pod in await world.pods("g"):
        assert await world.condition(pod["metadata"]["name"]) is None
    await world.gang("s", 1, cpu="8")
    await world.until_bound("s", 1)
    await world.delete("Pod", "s-0")
    await world.create(world.job("k", 2, 2, size=5, group="g", outcome="never"))
    await world.until_bound("g", 5)


async def test_a_late_member_of_a_running_gang_comes_alone(world: World) -> None:
    """Rule A5, case C99: seven of ten with a minimum of five, the rest as room appears."""
    await world.node("a", cpu="7")
    await world.gang("g", 5, count=10)
    await world.until_bound("g", 7)
    await world.node("b", cpu="3")
    await world.until_bound("g", 10)


async def test_a_rule_that_is_not_honoured_yet_is_refused_aloud(world: World) -> None:
    """Case C108: never silently placed together."""
    await world.node("a", cpu="8")
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"x": "y"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    await world.gang("g", 2, labels={"x": "y"}, affinity=affinity)
    assert "required pod anti-affinity" in await world.until_refused("g")
    assert await world.bound("g") == 0
