"""What happens while a process of ours is away is found again from the API server alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from devcluster.api import Object
from groups.contract import GROUP_LABEL, SIZE_LABEL
from tests.controller.cluster.observe import until_counts
from tests.support.world import World

pytestmark = [pytest.mark.xdist_group("controller-away"), pytest.mark.timeout(240)]

#: The lease of a killed controller has to end before another one may write.
TAKEOVER_S = 60.0


async def test_members_that_end_while_the_controller_is_away_end_their_group(own_world: World) -> None:
    """Case C49."""
    world = own_world
    await world.node("a")
    await world.gang("g", 3)
    await until_counts(world, "g", running=3)
    controller = world.cluster.process("controller")
    await asyncio.to_thread(controller.stop)
    try:
        for number in range(3):
            await world.finish(f"g-{number}")

        async def ended() -> bool:
            return {pod["status"]["phase"] for pod in await world.pods()} == {"Succeeded"}

        await world.wait_for(ended, what="the pods have ended")
        assert await world.phase("g") == "Running"
    finally:
        await asyncio.to_thread(controller.start)
    await world.until_gone("PodGroup", "g", deadline_s=TAKEOVER_S)


async def test_pods_that_vanish_while_the_controller_is_away_leave_no_group(own_world: World) -> None:
    """Case C59."""
    world = own_world
    await world.gang("g", 2)
    await until_counts(world, "g", running=0)
    controller = world.cluster.process("controller")
    await asyncio.to_thread(controller.stop)
    try:
        for number in range(2):
            await world.delete("Pod", f"g-{number}", gracePeriodSeconds=0)
            await world.until_gone("Pod", f"g-{number}")
    finally:
        await asyncio.to_thread(controller.start)
    await world.until_gone("PodGroup", "g", deadline_s=TAKEOVER_S)


async def test_a_killed_controller_goes_on_where_it_was(own_world: World) -> None:
    """Design.md section 2: every process can be killed at any moment."""
    world = own_world
    await world.node("a")
    await world.gang("g", 3)
    first = await until_counts(world, "g", running=3)
    controller = world.cluster.process("controller")
    await asyncio.to_thread(controller.kill)
    await world.finish("g-0")
    await asyncio.to_thread(controller.start)
    group = await until_counts(world, "g", deadline_s=TAKEOVER_S, running=2, succeeded=1)
    assert group["metadata"]["uid"] == first["metadata"]["uid"]
    assert group["status"]["creationTime"] == first["status"]["creationTime"]


async def test_pods_that_come_while_the_webhook_is_away_are_picked_up(own_world: World) -> None:
    """Rule A8: labelled as the webhook would have done it, and counted by their owners."""
    world = own_world
    webhook = world.cluster.process("webhook")
    await asyncio.to_thread(webhook.stop)
    try:
        await world.create(
            world.job("train", 3, 5, outcome="never"),
            world.replicated("Deployment", "web", 2),
            world.replicated("StatefulSet", "db", 2, of={"podManagementPolicy": "Parallel"}),
            world.pod("alone"),
        )
        await world.node("a", cpu="8")
        names = ("train", "deployment.web", "statefulset.db")
        job, web, db = (f"fluence-group-{world.namespace}-{name}" for name in names)
        for name, count in ((job, 3), (web, 2), (db, 2), ("fluence-group-alone", 1)):
            group = await until_counts(world, name, running=count)
            assert group["spec"]["minMember"] == count
        kinds = {
            group["metadata"]["name"]: [owner["kind"] for owner in group["metadata"]["ownerReferences"]]
            for group in await world.pod_groups()
        }
        assert kinds == {
            job: ["Job"],
            web: ["Deployment"],
            db: ["StatefulSet"],
            "fluence-group-alone": ["Pod"],
        }
        for pod in await world.pods():
            labels = pod["metadata"]["labels"]
            assert labels.get(SIZE_LABEL) == ("1" if pod["metadata"]["name"] == "alone" else None)
            assert labels[GROUP_LABEL].startswith("fluence-group-")
    finally:
        await asyncio.to_thread(webhook.start)


async def test_a_bad_size_that_was_not_denied_has_an_event(own_world: World) -> None:
    """Case C04: the pod got past the webhook, and its user must not wait in vain."""
    world = own_world
    webhook = world.cluster.process("webhook")
    await asyncio.to_thread(webhook.stop)
    try:
        await world.create(world.pod("bad", group="g", size="abc"))

        async def has_event() -> list[Object]:
            return await world.events("bad", "InvalidGroupSize")

        (event,) = await world.wait_for(has_event, what="an event about the size")
        assert event["type"] == "Warning"
        assert all(word in event["note"] for word in (SIZE_LABEL, "abc", "positive integer"))
        assert await world.pod_group("g") is None
    finally:
        await asyncio.to_thread(webhook.start)


async def test_a_missing_right_is_said_aloud_and_needs_no_restart(own_world: World) -> None:
    """Case C70."""
    world = own_world
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/fluence-controller"
    granted = (await world.api.get(role))["rules"]
    controller = world.cluster.process("controller")
    before = controller.pid
    await world.api.patch(role, {"rules": _without(granted, "podgroups", "create")})
    try:
        await world.gang("g", 1)

        async def said() -> list[dict[str, Any]]:
            return [line for line in _errors(controller.log.read_text()) if world.namespace in line["error"]]

        (line,) = await world.wait_for(said, what="an error in the log")
        assert all(word in line["error"] for word in ("create", "podgroups", world.namespace))
        assert await world.pod_group("g") is None
    finally:
        await world.api.patch(role, {"rules": granted})
    await until_counts(world, "g", deadline_s=TAKEOVER_S, running=0)
    assert controller.pid == before


def _without(rules: list[Object], resource: str, verb: str) -> list[Object]:
    return [
        {**rule, "verbs": [one for one in rule["verbs"] if one != verb]}
        if resource in rule.get("resources", [])
        else rule
        for rule in rules
    ]


def _errors(text: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    return [line for line in lines if line.get("level") == "error" and "error" in line]
