"""PodGroups on a real control plane: made, kept true, and gone when their work is over."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator

import pytest

from devcluster.api import Object
from devcluster.workloads import Outcome
from groups.contract import GROUP_LABEL, SIZE_LABEL
from tests.controller.cluster.observe import until_counts, until_group
from tests.support.world import World

pytestmark = pytest.mark.timeout(180)

MICRO_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")


async def running_gang(world: World, name: str, size: int) -> Object:
    """A gang whose members run until they are told to end; its PodGroup."""
    await world.gang(name, size)
    return await until_counts(world, name, running=size)


@contextlib.asynccontextmanager
async def one_more_namespace(world: World, name: str) -> AsyncIterator[World]:
    """Another namespace whose pods use the nodes of the same test."""
    path = f"/api/v1/namespaces/{name}"
    await world.api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    other = World(world.cluster, world.api, name)
    try:

        async def has_account() -> bool:
            return await world.api.find(f"{path}/serviceaccounts/default") is not None

        await world.wait_for(has_account, what="pods may be made")
        yield other
    finally:
        await world.api.delete(path)
        await world.api.delete_collection(f"{path}/pods", gracePeriodSeconds=0)


async def test_a_job_has_one_group_that_follows_it_to_its_end(world: World) -> None:
    """Cases C41, C45 and C46."""
    name = f"fluence-group-{world.namespace}-train"
    await world.create(world.job("train", 3, 3, outcome="never"))
    group = await until_group(world, name)
    assert group["spec"]["minMember"] == 3
    assert group["status"]["phase"] in ("Pending", "Scheduling")
    assert MICRO_TIME.match(group["status"]["creationTime"])
    (owner,) = group["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Job", "train")
    assert not owner.get("controller")
    assert "blockOwnerDeletion" not in owner

    await world.until_phase(name, "Scheduling")
    await world.node("a", cpu="3")
    after = await until_counts(world, name, running=3)
    assert after["status"]["phase"] == "Running"
    assert after["status"]["creationTime"] == group["status"]["creationTime"]
    assert MICRO_TIME.match(after["status"]["scheduleStartTime"])
    assert after["metadata"]["uid"] == group["metadata"]["uid"]
    assert [one["metadata"]["name"] for one in await world.pod_groups()] == [name]

    for pod in await world.pods():
        await world.finish(pod["metadata"]["name"])
    await world.until_gone("PodGroup", name)


@pytest.mark.parametrize(
    "outcomes",
    [
        pytest.param(("succeed", "succeed", "succeed"), id="a"),
        pytest.param(("succeed", "succeed", "fail"), id="b"),
        pytest.param(("fail", "fail", "fail"), id="c"),
    ],
)
async def test_a_group_goes_when_its_members_are_done(world: World, outcomes: tuple[Outcome, ...]) -> None:
    """Case C49: and does not come again, though its pods are still listed."""
    await world.node("a")
    await running_gang(world, "g", 3)
    for number, outcome in enumerate(outcomes):
        await world.finish(f"g-{number}", outcome)
    await world.until_gone("PodGroup", "g")
    await world.patch("Pod", "g-0", {"metadata": {"labels": {"looked-at": "again"}}})
    await world.gang("later", 1)
    await until_group(world, "later")
    assert await world.pod_group("g") is None
    assert len(await world.pods("g")) == 3


async def test_a_group_stays_while_a_member_runs_or_waits(world: World) -> None:
    """Case C50: the uid tells that it was never deleted in between."""
    await world.node("a", cpu="3")
    first = await running_gang(world, "g", 3)
    await world.finish("g-0")
    await world.finish("g-1")
    group = await until_counts(world, "g", running=1, succeeded=2)
    assert group["status"]["phase"] == "Running"

    await world.patch_node("a", {"spec": {"unschedulable": True}})
    await world.delete("Pod", "g-2")
    await world.create(world.pod("g-3", group="g", size=3))
    await world.until_phase("g", "Scheduling")
    group = await until_counts(world, "g", running=0, succeeded=2)
    assert group["metadata"]["uid"] == first["metadata"]["uid"]

    await world.patch_node("a", {"spec": {"unschedulable": False}})
    await until_counts(world, "g", running=1, succeeded=2)
    await world.finish("g-3")
    await world.until_gone("PodGroup", "g")


async def test_a_failed_member_does_not_end_a_group_whose_others_run(world: World) -> None:
    """Cases C48 and C50."""
    await world.node("a", cpu="3")
    await running_gang(world, "g", 3)
    await world.finish("g-0", "fail")
    group = await until_counts(world, "g", running=2, failed=1)
    assert group["status"]["phase"] == "Running"


async def test_equal_names_in_two_namespaces_are_two_groups(world: World) -> None:
    """Case C54."""
    await world.node("a", cpu="8")
    async with one_more_namespace(world, f"{world.namespace}-b") as other:
        # The pods of both are tied to the nodes of the first.
        await other.create(*(world.pod(f"g-{n}", group="g", size=2) for n in range(2)))
        kept = await running_gang(world, "g", 2)
        await until_counts(other, "g", running=2)
        for number in range(2):
            await other.finish(f"g-{number}")
        await other.until_gone("PodGroup", "g")
        group = await until_counts(world, "g", running=2, succeeded=0)
        assert group["metadata"]["uid"] == kept["metadata"]["uid"]

        name = f"fluence-group-{world.namespace}-b-c"
        await other.create(world.job("c", 2, 2, outcome="never"))
        await world.create(world.job("b-c", 3, 3, outcome="never"))
        assert (await until_counts(other, name, running=2))["spec"]["minMember"] == 2
        assert (await until_counts(world, name, running=3))["spec"]["minMember"] == 3


async def test_failed_pods_of_a_job_are_replaced_within_their_group(world: World) -> None:
    """Case C56: two failed and one succeeded make three, and the Job is not over all the same."""
    await world.node("a", cpu="3")
    name = f"fluence-group-{world.namespace}-retry"
    spec = {"completionMode": "Indexed", "backoffLimit": 4}
    await world.create(world.job("retry", 3, 3, outcome="never", job_spec=spec))
    first = await until_counts(world, name, running=3)
    outcomes: list[Outcome] = ["succeed", "fail", "fail"]
    for pod, outcome in zip(await world.pods(), outcomes, strict=True):
        await world.finish(pod["metadata"]["name"], outcome)

    group = await until_counts(world, name, running=2, succeeded=1, failed=2)
    assert group["metadata"]["uid"] == first["metadata"]["uid"]
    for pod in await world.pods():
        if pod["status"]["phase"] == "Running":
            await world.finish(pod["metadata"]["name"])
    await world.until_gone("PodGroup", name)

    async def complete() -> bool:
        conditions = (await world.get("Job", "retry"))["status"].get("conditions") or []
        return any(one["type"] == "Complete" for one in conditions)

    await world.wait_for(complete, what="the Job is complete")


async def test_a_job_in_waves_keeps_its_group_to_the_last_pod(world: World) -> None:
    """Case C55."""
    await world.node("a", cpu="4")
    name = f"fluence-group-{world.namespace}-waves"
    await world.create(world.job("waves", 3, 10, run="300ms"))
    first = await until_group(world, name)

    async def complete() -> bool:
        group = await world.pod_group(name)
        assert group is None or group["metadata"]["uid"] == first["metadata"]["uid"]
        return bool((await world.get("Job", "waves"))["status"].get("succeeded") == 10)

    await world.wait_for(complete, deadline_s=60, what="all ten pods have succeeded")
    await world.until_gone("PodGroup", name)


async def test_without_pods_there_is_no_group(world: World) -> None:
    """Case C15: neither for what wants none, nor for what is suspended."""
    await world.create(
        world.job("none", 0),
        world.replicated("Deployment", "idle", 0),
        world.job("asleep", 4, 4, job_spec={"suspend": True}),
    )
    await world.gang("last", 1)
    await until_group(world, "last")
    assert [one["metadata"]["name"] for one in await world.pod_groups()] == ["last"]


async def test_pods_of_other_schedulers_have_no_group(world: World) -> None:
    """Case C30: whatever their labels say."""
    await world.create(
        world.pod("plain", scheduler=None, group="g1", size="abc"),
        world.pod("foreign", scheduler="volcano", group="g2", size=2),
    )
    await world.gang("last", 1)
    await until_group(world, "last")
    assert [one["metadata"]["name"] for one in await world.pod_groups()] == ["last"]
    labels = (await world.get("Pod", "plain"))["metadata"]["labels"]
    assert labels == {GROUP_LABEL: "g1", SIZE_LABEL: "abc"}


async def test_a_group_that_the_user_made_is_filled_and_never_deleted(world: World) -> None:
    """Rule A6: its spec stays as it is, too."""
    await world.node("a")
    made = await world.create_pod_group("g", 2, scheduleTimeoutSeconds=10)
    group = await until_group(world, "g")
    assert group["status"]["phase"] == "Pending"
    await world.gang("g", 3)
    await until_counts(world, "g", running=3)
    for number in range(3):
        await world.finish(f"g-{number}")
    await world.until_phase("g", "Finished")
    group = await until_counts(world, "g", running=0, succeeded=3)
    assert group["spec"] == made["spec"]
    assert group["metadata"]["uid"] == made["metadata"]["uid"]
    assert "ownerReferences" not in group["metadata"]
    assert "annotations" not in group["metadata"]


async def test_orphaned_pods_keep_their_group(world: World) -> None:
    """Case C61."""
    await world.node("a", cpu="3")
    name = f"fluence-group-{world.namespace}-train"
    await world.create(world.job("train", 3, 3, outcome="never"))
    first = await until_counts(world, name, running=3)
    await world.delete("Job", "train", propagationPolicy="Orphan")
    await world.until_gone("Job", "train")
    await world.finish((await world.pods())[0]["metadata"]["name"])
    group = await until_counts(world, name, running=2, succeeded=1)
    assert group["metadata"]["uid"] == first["metadata"]["uid"]
    assert group["spec"]["minMember"] == 3
    for pod in await world.pods():
        await world.finish(pod["metadata"]["name"])
    await world.until_gone("PodGroup", name)


async def test_a_namespace_that_goes_takes_its_groups_with_it(world: World) -> None:
    """Case C63."""
    async with one_more_namespace(world, f"{world.namespace}-tmp") as other:
        await other.create(*(world.pod(f"g-{n}", group="g", size=4) for n in range(4)))
        await until_group(other, "g")
    path = f"/api/v1/namespaces/{other.namespace}"

    async def gone() -> bool:
        return await world.api.find(path) is None

    await world.wait_for(gone, deadline_s=60, what="the namespace is gone")
