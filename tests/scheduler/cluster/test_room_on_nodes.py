"""What counts as room, and which nodes count at all (real control plane)."""

from __future__ import annotations

import pytest

from tests.support.world import World


@pytest.mark.parametrize(
    ("size", "cpu", "fits"), [(8, "500m", True), (9, "500m", False)], ids=["8 x 500m", "9 x 500m"]
)
async def test_cpu_counts_in_thousandths(world: World, size: int, cpu: str, fits: bool) -> None:
    """Case C88 (i) and (iv)."""
    await world.node("a", cpu="4")
    await world.gang("g", size, cpu=cpu)
    if fits:
        await world.until_bound("g", size)
    else:
        await world.until_refused("g")
        assert await world.bound("g") == 0


async def test_containers_are_summed_before_anything_is_rounded(world: World) -> None:
    """Case C88 (ii): ten pods of three containers of 100m are 3 of 4 cores."""
    await world.node("a", cpu="4")
    containers = [
        {"name": f"c{i}", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}} for i in range(3)
    ]
    await world.gang("g", 10, containers=containers)
    await world.until_bound("g", 10)


async def test_members_without_requests_fit_on_a_full_node(world: World) -> None:
    """Case C88 (iii)."""
    await world.node("a", cpu="1")
    await world.gang("full", 1, cpu="1")
    await world.until_bound("full", 1)
    await world.gang("g", 4, cpu=None, memory=None)
    await world.until_bound("g", 4)


async def test_pods_of_all_schedulers_count(world: World) -> None:
    """Case C93, rules S5, NA7."""
    await world.node("a", cpu="4")
    await world.create(
        world.pod("theirs", cpu="3", scheduler="default-scheduler"),
        world.pod("by-hand", cpu="500m", scheduler="default-scheduler", nodeName=world.node_name("a")),
    )

    async def theirs_runs() -> bool:
        return bool((await world.get("Pod", "theirs"))["spec"].get("nodeName"))

    await world.wait_for(theirs_runs, what="the default scheduler has bound its pod")
    await world.gang("g", 2)
    await world.until_refused("g")
    assert await world.bound("g") == 0
    await world.delete("Pod", "theirs")
    await world.until_bound("g", 2)


async def test_finished_pods_hold_nothing(world: World) -> None:
    """Case C94, rule R13."""
    await world.node("a", cpu="6")
    await world.gang("done", 4, run="0s", outcome="succeed")
    await world.gang("broken", 2, run="0s", outcome="fail")

    async def all_ended() -> bool:
        phases = [pod["status"]["phase"] for pod in await world.pods()]
        return sorted(phases) == ["Failed"] * 2 + ["Succeeded"] * 4

    await world.wait_for(all_ended, what="six pods have ended")
    await world.gang("g", 6)
    await world.until_bound("g", 6)


async def test_taints_keep_members_away_unless_tolerated(world: World) -> None:
    """Case C106, rules T1, T2."""
    await world.node("a", cpu="2")
    await world.node("b", cpu="4", taints=[{"key": "x", "value": "y", "effect": "NoSchedule"}])
    await world.gang("g", 3)
    assert "taint" in await world.until_refused("g")
    assert await world.bound("g") == 0
    toleration = {"key": "x", "operator": "Equal", "value": "y", "effect": "NoSchedule"}
    await world.gang("t", 3, tolerations=[toleration])
    await world.until_bound("t", 3)
    for pod in await world.pods("t"):
        await world.delete("Pod", pod["metadata"]["name"])
    own = {"key": "devcluster/test", "value": world.namespace, "effect": "NoSchedule"}
    await world.patch_node("b", {"spec": {"taints": [own]}})
    await world.until_bound("g", 3)


async def test_a_no_execute_taint_keeps_members_away_and_a_preference_does_not(world: World) -> None:
    """Case C106, second half."""
    await world.node("a", cpu="4", taints=[{"key": "x", "effect": "NoExecute"}])
    await world.gang("g", 2)
    await world.until_refused("g")
    await world.node("b", cpu="2", taints=[{"key": "x", "effect": "PreferNoSchedule"}])
    await world.until_bound("g", 2)
    assert set((await world.placement("g")).values()) == {"b"}


async def test_cordoned_and_unready_nodes_do_not_count_until_they_do(world: World) -> None:
    """Rules T5, T6; case C109."""
    await world.node("a", cpu="2", unschedulable=True)
    await world.node("b", cpu="2", ready=False)
    await world.gang("g", 2)
    await world.until_refused("g")
    await world.patch_node("a", {"spec": {"unschedulable": False}})
    await world.until_bound("g", 2)
    await world.gang("h", 2)
    await world.until_refused("h")
    await world.set_ready("b", True)
    await world.until_bound("h", 2)


async def test_selectors_are_honoured_in_the_first_plan(world: World) -> None:
    """Case C107, rules NA1 to NA4: no binding is refused, and the gang is placed across both zones."""
    await world.node("a", cpu="4", labels={"zone": "z1", "rank": "5"})
    await world.node("b", cpu="2", labels={"zone": "z2"})
    await world.gang("only", 3, nodeSelector={"zone": "z2"})
    await world.until_refused("only")
    assert await world.bound("only") == 0

    def affinity(
        *expressions: dict[str, object], fields: tuple[dict[str, object], ...] = ()
    ) -> dict[str, object]:
        term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
        terms = {"nodeSelectorTerms": [term]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}

    elsewhere = affinity({"key": "zone", "operator": "NotIn", "values": ["z2"]})
    await world.create(
        world.pod("m-0", group="m", size=3, nodeSelector={"zone": "z2"}),
        world.pod("m-1", group="m", size=3, affinity=elsewhere),
        world.pod("m-2", group="m", size=3, affinity=elsewhere),
    )
    await world.until_bound("m", 3)
    assert await world.placement("m") == {"m-0": "b", "m-1": "a", "m-2": "a"}
    by_rank = affinity(
        {"key": "rank", "operator": "Gt", "values": ["4"]}, {"key": "zone", "operator": "Exists"}
    )
    by_name = affinity(fields=({"key": "metadata.name", "operator": "In", "values": [world.node_name("a")]},))
    await world.create(
        world.pod("n-0", group="n", size=2, affinity=by_rank),
        world.pod("n-1", group="n", size=2, affinity=by_name),
    )
    await world.until_bound("n", 2)
    assert set((await world.placement("n")).values()) == {"a"}


async def test_room_that_appears_wakes_a_waiting_gang(world: World) -> None:
    """Case C105: a node that grows."""
    await world.node("a", cpu="2")
    await world.gang("g", 4)
    await world.until_refused("g")
    await world.patch_node_status("a", {"allocatable": {"cpu": "4"}, "capacity": {"cpu": "4"}})
    await world.until_bound("g", 4, deadline_s=5)
