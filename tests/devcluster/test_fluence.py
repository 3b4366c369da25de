"""Fluence in a cluster: installed by its chart, running with the rights that the chart grants."""

from __future__ import annotations

import pytest

from devcluster.api import Api, ApiFailure
from devcluster.chart import NAMESPACE
from devcluster.cluster import RunningCluster
from devcluster.spec import FLUENCE
from tests.support.world import World


def test_all_three_processes_run(cluster: RunningCluster) -> None:
    assert {process: cluster.process(process).state for process in FLUENCE} == dict.fromkeys(
        FLUENCE, "running"
    )


@pytest.mark.parametrize("process", FLUENCE)
async def test_each_process_uses_its_own_service_account(cluster: RunningCluster, process: str) -> None:
    async with Api(cluster.process(process).kubeconfig) as api:
        review = await api.post(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
        )
    assert review["status"]["userInfo"]["username"] == f"system:serviceaccount:{NAMESPACE}:fluence-{process}"


@pytest.mark.parametrize("process", FLUENCE)
async def test_no_process_may_read_the_secrets_of_others(cluster: RunningCluster, process: str) -> None:
    """The API server really checks the roles of the chart."""
    async with Api(cluster.process(process).kubeconfig) as api:
        with pytest.raises(ApiFailure) as failure:
            await api.get("/api/v1/namespaces/default/secrets")
    assert failure.value.status == 403


async def test_a_gang_of_pods_is_bound_on_the_nodes_of_its_test(world: World) -> None:
    """Pods of a test are bound to nodes of the test, and no other pods are."""
    node = await world.node("a", cpu="3")
    async with world.history() as history:
        await world.gang("g", 3)
        await world.until_bound("g", 3)

        async def recorded() -> bool:
            return len(history.bound_of("g")) == 3

        await world.wait_for(recorded)
    assert {target for _, target in history.bindings} == {node}
    assert await world.placement("g") == {"g-0": "a", "g-1": "a", "g-2": "a"}


async def test_all_pods_of_a_gang_that_does_not_fit_say_so(world: World) -> None:
    await world.node("a", cpu="2")
    await world.gang("g", 3)
    message = await world.until_refused("g")
    assert "3" in message
    assert await world.bound("g") == 0
