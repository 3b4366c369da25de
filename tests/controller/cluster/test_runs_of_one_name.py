"""Workloads of one name, at the same time and one after another: each has a group of its own."""

from __future__ import annotations

import pytest

from groups.contract import RUN_ANNOTATION
from tests.controller.cluster.observe import until_counts, until_group
from tests.support.world import World

pytestmark = pytest.mark.timeout(180)


async def test_a_job_and_a_deployment_of_one_name_are_two_groups(world: World) -> None:
    """Case N06: the smaller one runs whole, and the larger one waits whole."""
    await world.node("a", cpu="4")
    await world.node("b", cpu="4")
    await world.create(
        world.replicated("Deployment", "llama", 9, of={"strategy": {"type": "Recreate"}}),
        world.job("llama", 2, 2, outcome="never"),
    )
    job, deployment = (f"fluence-group-{world.namespace}-{name}" for name in ("llama", "deployment.llama"))
    await until_counts(world, job, running=2)
    await world.until_refused(deployment)
    assert {one["metadata"]["name"]: one["spec"]["minMember"] for one in await world.pod_groups()} == {
        job: 2,
        deployment: 9,
    }
    assert await world.bound(deployment) == 0


async def test_the_same_name_again_at_once_is_a_new_job(world: World) -> None:
    """Case C53."""
    await world.node("a", cpu="3")
    name = f"fluence-group-{world.namespace}-j"
    for _ in range(3):
        await world.create(world.job("j", 2, 2, cpu="8", outcome="never"))
        await until_group(world, name)
        await world.delete("Job", "j")
        await world.create(world.job("j", 3, 3, outcome="never"))
        group = await until_counts(world, name, running=3)
        assert group["spec"]["minMember"] == 3
        await world.delete("Job", "j")
        await world.until_gone("PodGroup", name)

        async def cleared() -> bool:
            return not await world.pods()

        await world.wait_for(cleared, what="the pods of the last round are gone")


async def test_what_an_earlier_job_left_behind_does_not_count(world: World) -> None:
    """Case C53: its pods have succeeded and stay, since it was deleted without them."""
    await world.node("a", cpu="2")
    name = f"fluence-group-{world.namespace}-j"
    await world.create(world.job("j", 2, 2, outcome="never"))
    await until_counts(world, name, running=2)
    first = await world.pods()
    await world.delete("Job", "j", propagationPolicy="Orphan")
    await world.until_gone("Job", "j")
    for pod in first:
        await world.finish(pod["metadata"]["name"])
    await world.until_gone("PodGroup", name)

    await world.create(world.job("j", 3, 3, outcome="never"))
    assert (await until_group(world, name))["spec"]["minMember"] == 3
    await world.until_phase(name, "Scheduling")
    await until_counts(world, name, running=0, succeeded=0)
    assert sum(bool(pod["spec"].get("nodeName")) for pod in await world.pods()) == len(first)
    await world.node("b", cpu="1")
    await until_counts(world, name, running=3, succeeded=0)


async def test_the_podgroup_of_running_pods_is_made_again_once(world: World) -> None:
    """Case C53: somebody deletes it, and the pods get the mark of the new one."""
    await world.node("a", cpu="3")
    name = f"fluence-group-{world.namespace}-j"
    await world.create(world.job("j", 3, 3, outcome="never"))
    first = await until_counts(world, name, running=3)
    await world.delete("PodGroup", name)

    async def made_again() -> bool:
        group = await world.pod_group(name)
        return group is not None and group["metadata"]["uid"] != first["metadata"]["uid"]

    await world.wait_for(made_again, what="there is a new PodGroup")
    second = await until_counts(world, name, running=3)

    async def marked() -> bool:
        marks = {pod["metadata"]["annotations"].get(RUN_ANNOTATION) for pod in await world.pods()}
        return marks == {second["metadata"]["uid"]}

    await world.wait_for(marked, what="all pods have the mark of the new PodGroup")
    for pod in await world.pods():
        await world.finish(pod["metadata"]["name"])
    await world.until_gone("PodGroup", name)


async def test_a_deployment_that_is_scaled_to_none_and_back_has_a_group_again(world: World) -> None:
    """Case C51."""
    await world.node("a")
    name = f"fluence-group-{world.namespace}-deployment.flip"
    await world.create(world.replicated("Deployment", "flip", 1, cpu="100m"))
    for _ in range(3):
        await until_counts(world, name, running=1)
        await world.patch("Deployment", "flip", {"spec": {"replicas": 0}})
        await world.until_gone("PodGroup", name)
        await world.patch("Deployment", "flip", {"spec": {"replicas": 1}})
    group = await until_counts(world, name, running=1)
    assert [owner["kind"] for owner in group["metadata"]["ownerReferences"]] == ["Deployment"]
    assert len(await world.pod_groups()) == 1
