"""What is none of our business never reaches the webhook: we can neither slow it down nor block it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from devcluster.api import ApiFailure, Object
from groups.contract import GROUP_LABEL, SIZE_LABEL
from tests.support.world import World
from tests.webhook.cluster.reading import asked

Act = Callable[[World], Awaitable[object]]

#: A pod that slipped past the webhook would meet the condition: it has no labels.
_UNLABELLED = {"metadata": {"labels": {GROUP_LABEL: None, SIZE_LABEL: None}}}


async def _evict(world: World) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    await world.api.post(f"{world.path('Pod', 'p')}/eviction", body)


async def _bind(world: World) -> None:
    target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": world.node_name("a")}}
    await world.api.post(f"{world.path('Pod', 'p')}/binding", target)


async def _ephemeral(world: World) -> None:
    more = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}
    await world.patch("Pod", "p", more, patch="strategic", sub="ephemeralcontainers")


async def _exec(world: World) -> None:
    # There is no kubelet to connect to; admission comes before.
    with pytest.raises(ApiFailure):
        await world.api.post(f"{world.path('Pod', 'p')}/exec", {}, command="true")


ACTS: dict[str, Act] = {
    "update": lambda world: world.patch("Pod", "p", {"metadata": {"labels": {"more": "1"}}}),
    "losing our labels": lambda world: world.patch("Pod", "p", _UNLABELLED),
    "status": lambda world: world.patch("Pod", "p", {"status": {"reason": "Any"}}, sub="status"),
    "binding": _bind,
    "ephemeral container": _ephemeral,
    "exec": _exec,
    "eviction": _evict,
    "deletion": lambda world: world.delete("Pod", "p"),
}


@pytest.mark.parametrize("act", ACTS)
async def test_of_a_pod_only_the_creation_is_asked_about(world: World, act: str) -> None:
    """Case C33, rule W25: other operations and subresources are no business of ours."""
    await world.node("a")
    # A gate keeps our scheduler from binding it first.
    gates = [] if act == "binding" else [{"name": "example.com/wait"}]
    scheduler = "fluence" if gates else "nobody"
    await world.create(world.pod("p", scheduler=scheduler, schedulingGates=gates))
    before = asked(world.cluster, world.namespace)
    assert before == ([("Pod", "labelled")] if gates else [])
    await ACTS[act](world)
    assert asked(world.cluster, world.namespace) == before


async def test_of_a_workload_only_the_creation_is_asked_about(world: World) -> None:
    """Case C33: scaling, a change of status, an update and the end of a Deployment cost nothing."""
    await world.create(world.replicated("Deployment", "web", 2))
    scale = {"spec": {"replicas": 3}}
    await world.patch("Deployment", "web", scale, sub="scale")
    await world.patch("Deployment", "web", {"metadata": {"labels": {"more": "1"}}})
    await world.patch("Deployment", "web", _UNLABELLED)
    await world.patch("Deployment", "web", {"status": {"collisionCount": None}}, sub="status")

    async def three() -> bool:
        return len(await world.pods()) == 3

    await world.wait_for(three, what="three pods")
    await world.delete("Deployment", "web")

    async def none() -> bool:
        return not await world.pods()

    await world.wait_for(none, what="no pod is left")
    assert asked(world.cluster, world.namespace) == [("Deployment", "labelled")]


async def test_a_suspended_job_is_asked_about_when_it_is_made_and_not_when_it_starts(world: World) -> None:
    """Cases C15 and C33."""
    await world.create(world.job("later", 4, 4, job_spec={"suspend": True}))
    await world.patch("Job", "later", {"spec": {"suspend": False}})

    async def all_there() -> bool:
        return len(await world.pods(f"fluence-group-{world.namespace}-later")) == 4

    await world.wait_for(all_there, what="four labelled pods")
    assert asked(world.cluster, world.namespace) == [("Job", "labelled")]


async def test_kinds_without_pods_are_not_asked_about(world: World) -> None:
    """Case C35: even if they hold what looks like a request to us."""
    looks_like_it = {"metadata": {"name": "c"}, "data": {"schedulerName": "fluence"}}
    await world.api.post(world.path("ConfigMap"), {"apiVersion": "v1", "kind": "ConfigMap", **looks_like_it})
    await world.create_pod_group("g", 2)
    assert asked(world.cluster, world.namespace) == []


async def _made(world: World, dry_run: bool) -> Object:
    params = {"dryRun": "All"} if dry_run else {}
    return await world.api.post(world.path("Job"), world.job("train", 2, 2), **params)


async def test_a_dry_run_shows_what_will_be_and_makes_nothing(world: World) -> None:
    """Case C34."""
    dry = await _made(world, dry_run=True)
    assert await world.api.items(world.path("Job")) == []
    assert await world.pod_groups() == []
    wet = await _made(world, dry_run=False)

    def ours(job: Object) -> tuple[str, str]:
        labels = job["spec"]["template"]["metadata"]["labels"]
        return labels[GROUP_LABEL], labels[SIZE_LABEL]

    assert ours(dry) == ours(wet) == (f"fluence-group-{world.namespace}-train", "2")
    assert asked(world.cluster, world.namespace) == 2 * [("Job", "labelled")]
