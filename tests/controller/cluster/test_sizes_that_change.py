"""Workloads whose size changes, before the start and afterwards: the group follows what a rule counted."""

from __future__ import annotations

from typing import Any

import pytest

from devcluster.api import Object
from tests.controller.cluster.observe import until_counts, until_group
from tests.support.world import World

pytestmark = pytest.mark.timeout(180)


async def until_minimum(world: World, name: str, minimum: int) -> Object:
    """Wait until a PodGroup has this minMember."""

    async def follows() -> Object | None:
        group = await world.pod_group(name)
        return group if group is not None and group["spec"]["minMember"] == minimum else None

    return await world.wait_for(follows, what=f"{name} has minMember {minimum}") or {}


async def resize(world: World, name: str, size: int, **spec: Any) -> None:
    """Change how many pods a Job wants."""
    await world.patch("Job", name, {"spec": {"parallelism": size, "completions": size, **spec}})


async def running(world: World, app: str) -> int:
    """How many pods of a Deployment run and stay."""
    return sum(
        pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        for pod in await world.pods()
        if pod["metadata"]["labels"].get("app") == app
    )


@pytest.mark.parametrize("size", [None, "2"])
async def test_a_suspended_job_that_is_resized_starts_whole(world: World, size: str | None) -> None:
    """Case C67; a size that the user wrote stays (A3)."""
    await world.node("a", cpu="3")
    name = f"fluence-group-{world.namespace}-j"
    spec = {"suspend": True, "completionMode": "Indexed"}
    await world.create(world.job("j", 2, 2, outcome="never", size=size, job_spec=spec))
    await resize(world, "j", 4)
    await world.patch("Job", "j", {"spec": {"suspend": False}})
    if size is not None:
        assert (await until_counts(world, name, running=3))["spec"]["minMember"] == 2
        return
    await until_minimum(world, name, 4)
    await world.until_phase(name, "Scheduling")
    await world.until_refused(name)
    assert await world.bound(name) == 0
    await world.node("b", cpu="1")
    await until_counts(world, name, running=4)


async def test_a_queue_manager_may_lower_the_parallelism_on_admission(world: World) -> None:
    """Rule A7: it admits a part of the pods and starts the Job in one update."""
    await world.node("a", cpu="2")
    name = f"fluence-group-{world.namespace}-j"
    await world.create(world.job("j", 4, 4, outcome="never", job_spec={"suspend": True}))
    await world.patch("Job", "j", {"spec": {"parallelism": 2, "suspend": False}})
    assert (await until_counts(world, name, running=2))["spec"]["minMember"] == 2


async def test_an_elastic_job_grows_and_shrinks_while_it_runs(world: World) -> None:
    """Case N25."""
    await world.node("a", cpu="4")
    name = f"fluence-group-{world.namespace}-grow"
    spec = {"completionMode": "Indexed", "backoffLimit": 4}
    await world.create(world.job("grow", 2, 2, outcome="never", job_spec=spec))
    first = await until_counts(world, name, running=2)
    await resize(world, "grow", 4)
    assert (await until_counts(world, name, running=4))["spec"]["minMember"] == 2

    await resize(world, "grow", 1)
    await until_minimum(world, name, 1)
    group = await until_counts(world, name, running=1)
    assert group["status"]["phase"] == "Running"
    (left,) = [pod for pod in await world.pods() if "deletionTimestamp" not in pod["metadata"]]
    await world.delete("Pod", left["metadata"]["name"], gracePeriodSeconds=0)

    async def replaced() -> bool:
        return any(
            pod["metadata"]["uid"] != left["metadata"]["uid"] and pod["status"].get("phase") == "Running"
            for pod in await world.pods()
        )

    await world.wait_for(replaced, what="the replacement runs")
    group = await until_counts(world, name, running=1)
    assert group["metadata"]["uid"] == first["metadata"]["uid"]


async def test_a_deployment_of_five_goes_to_none_and_comes_back_as_two(world: World) -> None:
    """Rule A7: its templates still carry the size that was counted at the creation."""
    await world.node("a", cpu="5")
    name = f"fluence-group-{world.namespace}-deployment.web"
    await world.create(world.replicated("Deployment", "web", 5))
    await until_counts(world, name, running=5)
    await world.patch("Deployment", "web", {"spec": {"replicas": 0}})
    await world.until_gone("PodGroup", name)
    await world.patch("Deployment", "web", {"spec": {"replicas": 2}})
    assert (await until_counts(world, name, running=2))["spec"]["minMember"] == 2


async def test_a_roll_out_after_scaling_down_needs_the_present_size(world: World) -> None:
    """Case C119: with the strategy Recreate the old pods go first."""
    await world.node("a", cpu="5")
    name = f"fluence-group-{world.namespace}-deployment.web"
    recreate = {"strategy": {"type": "Recreate"}}
    await world.create(world.replicated("Deployment", "web", 5, of=recreate))
    await until_counts(world, name, running=5)
    await world.patch("Deployment", "web", {"spec": {"replicas": 2}})
    await until_minimum(world, name, 2)
    before = {pod["metadata"]["uid"] for pod in await world.pods()}
    annotations = {"rolled-out": "again"}
    await world.patch("Deployment", "web", {"spec": {"template": {"metadata": {"annotations": annotations}}}})

    async def rolled_out() -> bool:
        new = [pod for pod in await world.pods() if pod["metadata"]["uid"] not in before]
        return sum(pod["status"].get("phase") == "Running" for pod in new) == 2

    await world.wait_for(rolled_out, what="both pods of the roll-out run")
    await until_minimum(world, name, 2)


async def test_an_autoscaled_deployment_is_never_held_up_by_its_old_size(world: World) -> None:
    """Case C119: 3, then 6 on a node for 5, then 1, then 4."""
    await world.node("a", cpu="5")
    name = f"fluence-group-{world.namespace}-deployment.web"
    await world.create(world.replicated("Deployment", "web", 3))
    await until_counts(world, name, running=3)
    for replicas, expected, minimum in ((6, 5, 3), (1, 1, 1), (4, 4, 1)):
        await world.patch("Deployment", "web", {"spec": {"replicas": replicas}})

        async def settled(expected: int = expected) -> bool:
            return await running(world, "web") == expected

        await world.wait_for(settled, what=f"{expected} of {replicas} pods run")
        await until_minimum(world, name, minimum)
        if replicas > expected:
            waiting = [pod for pod in await world.pods() if not pod["spec"].get("nodeName")]
            assert len(waiting) == replicas - expected
            pod_name = waiting[0]["metadata"]["name"]

            async def refused(pod_name: str = pod_name) -> bool:
                condition = await world.condition(pod_name) or {}
                return condition.get("reason") == "Unschedulable"

            await world.wait_for(refused, what="the pod that does not fit says so")


@pytest.mark.parametrize("size", ["1", "2147483647"])
async def test_a_pod_that_joins_later_with_another_size_blocks_nothing(world: World, size: str) -> None:
    """Case C119: the size of the oldest member counts, and an event is on the odd pod."""
    await world.node("a", cpu="4")
    await world.gang("g", 3, count=2)
    await until_group(world, "g")
    await world.create(world.pod("odd", group="g", size=size))
    await world.create(world.pod("g-2", group="g", size=3))
    await until_counts(world, "g", running=4)
    assert (await until_group(world, "g"))["spec"]["minMember"] == 3

    async def has_event() -> bool:
        return bool(await world.events("odd", "GroupSizeDiffers"))

    await world.wait_for(has_event, what="an event about the size")
