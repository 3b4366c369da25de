"""Order, conditions and events: what a user sees with kubectl (real control plane)."""

from __future__ import annotations

import re

from groups.contract import RUN_ANNOTATION
from tests.support.world import World

MICRO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


async def test_gangs_start_in_the_order_in_which_they_came(world: World) -> None:
    """Case C111: room for one gang at a time, each runs for a moment."""
    await world.node("a", cpu="2")
    await world.gang("full", 2)
    await world.until_bound("full", 2)
    names = [f"g{number}" for number in (3, 1, 4, 0, 5)]
    for name in names:
        await world.gang(name, 2, run="0s", outcome="succeed")
    for name in names:
        await world.until_refused(name)

    async def all_stamped() -> dict[str, str] | None:
        # The controller stamps, and may be later than the scheduler's refusal.
        found = {
            g["metadata"]["name"]: g.get("status", {}).get("creationTime") for g in await world.pod_groups()
        }
        return found if all(found.values()) else None

    stamps = await world.wait_for(all_stamped, what="every group has its stamp")
    assert stamps is not None
    assert all(MICRO.fullmatch(stamp) for stamp in stamps.values())
    async with world.history() as history:
        for number in range(2):
            await world.delete("Pod", f"full-{number}")
        for name in names:

            async def has_run(name: str = name) -> bool:
                return len(history.bound_of(name)) == 2

            await world.wait_for(has_run, what=f"{name} has been bound")
        order = [name for name in history.groups_in_order() if name in names]
        assert order == sorted(names, key=lambda name: stamps[name])


async def test_both_pods_are_unschedulable_until_they_are_bound(world: World) -> None:
    """Case C116, rules F1, F2."""
    await world.node("a", cpu="1")
    await world.gang("g", 2)
    await world.until_refused("g", deadline_s=10)
    before = await world.condition("g-0")
    assert before is not None
    condition = await world.group_condition("g")
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("False", "NotEnoughRoom")
    await world.node("b", cpu="1")
    await world.until_bound("g", 2)
    after = await world.condition("g-0")
    assert after is not None
    assert after["status"] == "True"

    async def group_says_scheduled() -> bool:
        return ((await world.group_condition("g")) or {}).get("status") == "True"

    await world.wait_for(group_says_scheduled, what="the PodGroup says Scheduled")


async def test_a_try_that_changes_nothing_writes_nothing(world: World) -> None:
    """Cases C116, C117: one event for each object and old transition times, although it is tried again."""
    await world.node("a", cpu="2")
    await world.gang("g", 5)
    await world.until_refused("g")
    before = {
        pod["metadata"]["name"]: await world.condition(pod["metadata"]["name"])
        for pod in await world.pods("g")
    }
    for number in range(3):  # each of these makes room appear, hence another try
        await world.gang(f"s{number}", 1, run="0s", outcome="succeed")
        await world.until_bound(f"s{number}", 1)
        await world.until_gone("PodGroup", f"s{number}")
    for name, condition in before.items():
        assert condition is not None
        now = await world.condition(name)
        assert now is not None
        assert now["lastTransitionTime"] == condition["lastTransitionTime"]
        assert len(await world.events(name, "FailedScheduling")) <= 1

    async def said() -> bool:
        return len(await world.events(reason="FailedScheduling")) == 4

    await world.wait_for(
        said, what="the PodGroup and three example pods have one FailedScheduling event each"
    )
    events = await world.events(reason="FailedScheduling")
    about = {(one["regarding"]["kind"], one["regarding"]["name"]) for one in events}
    assert about == {("PodGroup", "g"), ("Pod", "g-0"), ("Pod", "g-1"), ("Pod", "g-2")}
    for note in (events[0]["note"], before["g-4"]["message"] if before["g-4"] else ""):
        assert "cpu" in note
        assert re.search(r"0/\d+ nodes are available", note)
    (example,) = await world.events("g-0", "FailedScheduling")
    assert "2 more pods of this group wait" in example["note"]


async def test_a_bound_pod_carries_the_uid_of_its_pod_group(world: World) -> None:
    """Rule B5: the API server copies the annotations of a Binding to the pod."""
    await world.node("a", cpu="2")
    await world.gang("g", 2)
    await world.until_bound("g", 2)
    (group,) = await world.pod_groups()
    marks = [pod["metadata"]["annotations"][RUN_ANNOTATION] for pod in await world.pods("g")]
    assert marks == [group["metadata"]["uid"]] * 2


async def test_each_bound_pod_has_one_scheduled_event_by_fluence(world: World) -> None:
    """Contract, rules E5 and E7; case C117."""
    await world.node("a", cpu="4")
    names = await world.gang("g", 3)
    await world.until_bound("g", 3)

    async def said() -> bool:
        return len(await world.events(reason="Scheduled")) == 3

    await world.wait_for(said, what="three Scheduled events")
    events = await world.events(reason="Scheduled")
    assert {event["regarding"]["name"] for event in events} == set(names)
    node = world.node_name("a")
    for event in events:
        assert event["reportingController"] == "fluence"
        assert event["action"] == "Binding"
        assert MICRO.fullmatch(event["eventTime"])
        assert (
            event["note"] == f"Successfully assigned {world.namespace}/{event['regarding']['name']} to {node}"
        )
