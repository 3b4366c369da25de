"""While the webhook is away nobody is blocked, and what came meanwhile is taken care of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster.cluster import RunningCluster
from groups.contract import GROUP_LABEL, SIZE_LABEL
from tests.support.world import World
from tests.webhook.cluster.reading import asked

pytestmark = pytest.mark.xdist_group("own webhook cluster")


@pytest.fixture
def no_webhook(own_cluster: RunningCluster) -> Iterator[RunningCluster]:
    """A cluster whose webhook is stopped; it is back after the test."""
    webhook = own_cluster.process("webhook")
    webhook.stop()
    yield own_cluster
    if webhook.state != "running":
        webhook.start()


async def test_nobody_is_blocked_while_the_webhook_is_away(
    no_webhook: RunningCluster, own_world: World
) -> None:
    """Case C135, rule W17: neither foreign objects nor ours, whose pods are picked up all the same."""
    world = own_world
    await world.node("a", cpu="4")
    await world.create(world.pod("foreign", scheduler=None), world.job("train", 3, 3, run="1h"))
    await world.until_bound(f"fluence-group-{world.namespace}-train", 3)

    async def foreign_bound() -> bool:
        return bool((await world.get("Pod", "foreign"))["spec"].get("nodeName"))

    await world.wait_for(foreign_bound, what="the foreign pod is bound")


async def test_a_deployment_from_before_is_rolled_out_once(
    no_webhook: RunningCluster, own_world: World
) -> None:
    """Case C31: a ReplicaSet that we changed would be replaced without end."""
    world = own_world
    await world.node("a", cpu="8")
    await world.create(world.replicated("Deployment", "web", 2))
    no_webhook.process("webhook").start()
    image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "busybox:2"}]}}}}
    await world.patch("Deployment", "web", image, patch="strategic")

    async def rolled_out() -> bool:
        web = await world.get("Deployment", "web")
        status = web["status"]
        return status.get("observedGeneration") == web["metadata"]["generation"] and (
            status.get("updatedReplicas") == status.get("availableReplicas") == status.get("replicas") == 2
        )

    await world.wait_for(rolled_out, what="the rollout is complete")
    web = await world.get("Deployment", "web")
    assert not web["status"].get("collisionCount")
    sets = await world.api.items(world.path("ReplicaSet"))
    assert len(sets) == 2
    assert all(GROUP_LABEL not in one["spec"]["template"]["metadata"]["labels"] for one in sets)
    pods = await world.pods(f"fluence-group-{world.namespace}-deployment.web")
    assert len(pods) == 2
    for pod in pods:
        assert SIZE_LABEL not in pod["metadata"]["labels"]
    assert ("ReplicaSet", "unchanged") in asked(no_webhook, world.namespace)


async def test_a_webhook_that_comes_back_serves_the_same_certificate(
    no_webhook: RunningCluster, own_world: World
) -> None:
    """A restart must not change what the API server trusts."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/fluence"
    before = (await own_world.api.get(path))["metadata"]["resourceVersion"]
    no_webhook.process("webhook").start()
    assert (await own_world.api.get(path))["metadata"]["resourceVersion"] == before
    (job,) = await own_world.create(own_world.job("train", 2))
    assert job["spec"]["template"]["metadata"]["labels"][SIZE_LABEL] == "2"
