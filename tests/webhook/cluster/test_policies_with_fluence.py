"""Fluence without its webhook: the policies label what they can, the controller the pods of the rest (A8)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from devcluster.cluster import RunningCluster
from devcluster.spec import ClusterSpec
from groups.contract import GROUP_LABEL, SIZE_LABEL
from tests.support import cluster as clusters
from tests.support.world import World, world_in

pytestmark = pytest.mark.xdist_group("policies with fluence")

POLICIES = Path(__file__).parents[3] / "manifests" / "policies" / "fluence.yaml"
LONG = "train-" + "a" * 44


@pytest.fixture(scope="module")
def policed() -> Iterator[RunningCluster]:
    """A cluster with controller, scheduler and policies, and without a webhook."""
    spec = ClusterSpec(name=clusters.own_name("pol"), nodes=1, processes=("controller", "scheduler"))
    with clusters.start(spec) as cluster:
        cluster.kubectl("delete", "mutatingwebhookconfiguration", "fluence")
        cluster.kubectl("apply", "-f", POLICIES)
        yield cluster


@pytest.fixture
async def here(policed: RunningCluster) -> AsyncIterator[World]:
    """A namespace in which the policies work already."""
    async with world_in(policed) as world:

        async def active() -> bool:
            made = await world.api.post(world.path("Job"), world.job("probe", 2), dryRun="All")
            return GROUP_LABEL in (made["spec"]["template"]["metadata"].get("labels") or {})

        await world.wait_for(active, what="the policies are active")
        await world.node("a", cpu="16", memory="32Gi")
        yield world


async def test_a_gang_is_labelled_by_the_policies_and_placed_whole(here: World) -> None:
    """Rules A1 and A7: the pods come with the labels of the template."""
    await here.create(here.job("train", 3, 3, run="1h"))
    group = f"fluence-group-{here.namespace}-train"
    await here.until_bound(group, 3)
    template = (await here.get("Job", "train"))["spec"]["template"]["metadata"]["labels"]
    assert (template[GROUP_LABEL], template[SIZE_LABEL]) == (group, "3")
    assert [one["metadata"]["labels"][SIZE_LABEL] for one in await here.pods(group)] == ["3"] * 3
    assert (await here.pod_group(group) or {})["spec"]["minMember"] == 3


async def test_gangs_that_cel_cannot_name_are_placed_whole_too(here: World) -> None:
    """Cases C01 and C03, rule A8: the names of both would need a hash; the controller counts the Jobs."""
    generated = here.job("x", 3, 3, run="1h")
    generated["metadata"] = {"generateName": "auto-"}
    short, long = await here.create(generated, here.job(LONG, 2, 2, run="1h"))
    for made in (short, long):
        assert GROUP_LABEL not in (made["spec"]["template"]["metadata"].get("labels") or {})
    name = short["metadata"]["name"]
    await here.until_bound(f"fluence-group-{here.namespace}-{name}", 3)

    async def placed() -> bool:
        mine = [pod for pod in await here.pods() if pod["metadata"]["labels"].get("job-name") == LONG]
        return len(mine) == 2 and all(pod["spec"].get("nodeName") for pod in mine)

    await here.wait_for(placed, what="the Job with the long name is placed")
    groups = await here.pod_groups()
    assert sorted(one["spec"]["minMember"] for one in groups) == [2, 3]


async def test_labels_on_a_job_without_a_name_yet_are_heard(here: World) -> None:
    """A3: the user wins, also where the policies could not name the group themselves."""
    generated = here.job("x", 3, 3, run="1h")
    generated["metadata"] = {"generateName": "auto-", "labels": {SIZE_LABEL: "2"}}
    (made,) = await here.create(generated)
    group = f"fluence-group-{here.namespace}-{made['metadata']['name']}"
    await here.until_bound(group, 3)
    assert (await here.pod_group(group) or {})["spec"]["minMember"] == 2
