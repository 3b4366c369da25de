"""What the scheduler decides, without a cluster: scripted events in, decisions and held room out."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from groups.objects import Condition, Key, ObjectMeta
from scheduler import objects as api
from scheduler.pods import cached
from scheduler.queue import State
from tests.scheduler.scripted import Script, pod

G = Key("ns/g")


@pytest.fixture
async def script() -> Script:
    return Script()


async def test_a_gang_is_decided_whole_and_with_the_mark_of_its_run(script: Script) -> None:
    script.node("a", cpu=4)
    script.group("g", 3, uid="run-7")
    script.gang("g", 2)
    await script.settle()
    assert script.decisions.log == []
    script.pod("g-2")
    await script.settle()
    (decision,) = script.decisions.log
    assert script.bound == {"g-0": "a", "g-1": "a", "g-2": "a"}
    assert (decision.run_uid, decision.node_uids) == ("run-7", {"a": "uid-a"})
    script.bind(decision)
    await script.settle()
    assert script.reports.of("complete") == ["ns/g"]
    assert len(script.loop.queue) == 0


async def test_a_gang_that_does_not_fit_holds_nothing_and_blocks_no_other(script: Script) -> None:
    script.node("a", cpu=4)
    script.group("g", 5, stamped="2026-01-01T00:00:01.000000Z")
    script.gang("g", 5)
    script.group("h", 2, stamped="2026-01-01T00:00:02.000000Z")
    script.gang("h", 2)
    await script.settle()
    assert set(script.bound) == {"h-0", "h-1"}
    assert script.loop.queue.state(G) is State.PARKED
    assert script.held("g") == {}


async def test_room_that_appears_belongs_to_the_oldest_gang(script: Script) -> None:
    """Case C111: also where a younger gang arrives with the same event."""
    script.node("a", cpu=2)
    for name, stamp in (("g", 1), ("h", 2)):
        script.group(name, 3, stamped=f"2026-01-01T00:00:0{stamp}.000000Z")
        script.gang(name, 3)
    await script.settle()
    script.node("b", cpu=1)
    script.group("i", 3, stamped="2026-01-01T00:00:03.000000Z")
    script.gang("i", 3)
    await script.settle()
    assert set(script.bound) == {"g-0", "g-1", "g-2"}


async def test_a_gang_that_cannot_be_judged_is_parked_with_a_reason_and_touches_no_other(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1: an exception is a pause that grows for this gang alone."""
    script.node("a", cpu=4)
    script.group("g", 1)
    script.pod("g-0")
    script.group("h", 1)
    script.pod("h-0", group="h")
    sound = script.cache.gang

    def fails(state: object) -> object:
        if state.key == G:  # type: ignore[attr-defined]
            raise RuntimeError("odd")
        return sound(state)  # type: ignore[arg-type]

    monkeypatch.setattr(script.cache, "gang", fails)
    await script.settle()
    assert set(script.bound) == {"h-0"}
    assert script.reports.of("error") == ["ns/g"]
    assert script.loop.queue.state(G) is State.BACKING_OFF
    monkeypatch.undo()
    await script.after(2)
    assert "g-0" in script.bound


async def test_a_failing_gang_is_tried_after_growing_pauses_whatever_events_arrive(script: Script) -> None:
    script.node("a", cpu=1)
    script.group("g", 1)
    script.pod("g-0")
    tries = 0
    for _ in range(100):
        await script.settle()
        for decision in list(script.decisions.open):
            tries += 1
            script.refuse(decision, "g-0", "not now")
            script.close(decision)
        script.pod("g-0", priority=tries % 2)
        script.now_s += 0.1
    assert 2 <= tries <= 6


async def test_a_node_that_is_made_anew_between_decision_and_binding_is_another_one(script: Script) -> None:
    script.node("a", cpu=4, uid="first")
    script.group("g", 1)
    script.pod("g-0")
    await script.settle()
    (decision,) = script.decisions.log
    assert script.cache.node_is_open("a", decision.node_uids["a"])
    script.node("a", cpu=4, uid="second")
    assert not script.cache.node_is_open("a", decision.node_uids["a"])


async def test_a_pod_whose_requests_cannot_be_read_closes_its_node(script: Script) -> None:
    script.node("a", cpu=4)
    script.pod("odd", "running", node="a", cpu="many", scheduler="other", labels={})
    script.group("g", 1)
    script.pod("g-0")
    await script.settle()
    assert script.bound == {}
    assert any("ns/odd, whose requests cannot be read" in text for _, _, text in script.reports.said)
    script.delete("odd")
    await script.settle()
    assert script.bound == {"g-0": "a"}


async def test_a_late_member_does_not_wait_for_others(script: Script) -> None:
    """A5: the quorum was reached."""
    script.node("a", cpu=4)
    script.group("g", 2)
    script.gang("g", 2)
    await script.settle()
    script.bind(script.decisions.log[0])
    script.pod("g-late", group="g")
    await script.settle()
    assert script.bound["g-late"] == "a"


async def test_a_new_gang_does_not_rest_with_the_refused_ones(script: Script) -> None:
    script.node("a", cpu=2)
    script.group("g", 3)
    script.gang("g", 3)
    await script.settle()
    script.loop._rest_until_s = script.now_s + 1
    script.group("h", 1)
    script.pod("h-0", group="h")
    await script.loop.round()
    assert set(script.bound) == {"h-0"}


async def test_a_change_of_a_claim_concerns_the_gangs_that_name_it(script: Script) -> None:
    volume = (api.Volume("v", persistent_volume_claim=api.ClaimSource("data")),)
    script.node("a", cpu=4)
    script.group("g", 1)
    script.pod("g-0", volumes=volume)
    script.group("h", 1)
    script.pod("h-0", group="h", cpu="99")
    await script.settle()
    assert script.bound == {}
    before = list(script.reports.said)
    script.tables["volumes"].put(api.PersistentVolume(ObjectMeta(name="pv")))
    script.tables["claims"].put(
        api.VolumeClaim(
            ObjectMeta(name="data", namespace="ns"), api.ClaimSpec("pv"), api.ClaimStatus("Bound")
        )
    )
    await script.settle()
    assert script.bound == {"g-0": "a"}
    assert not [key for _, key, _ in script.reports.said[len(before) :] if key == "ns/h"]


async def test_a_refused_member_waits_for_its_pause_while_the_others_are_bound(script: Script) -> None:
    """The events of the other members shorten nothing."""
    script.node("a", cpu=8)
    script.group("g", 8)
    script.gang("g", 8)
    await script.settle()
    (decision,) = script.decisions.log
    script.refuse(decision, "g-0", "forbidden")
    for number in range(1, 8):
        script.bind(decision, [f"g-{number}"])
        await script.settle()
    assert script.decisions.log == [decision]
    assert script.loop.queue.state(G) is State.BACKING_OFF
    script.close(decision)
    await script.settle()
    assert script.decisions.log == [decision]
    await script.after(1)
    assert [pod.metadata.name for pod in script.decisions.log[-1].pods] == ["g-0"]


async def test_our_own_condition_on_a_pod_is_no_reason_for_another_look(script: Script) -> None:
    script.node("a", cpu=1)
    script.group("g", 2)
    script.gang("g", 2)
    await script.settle()
    assert script.loop.queue.state(G) is State.PARKED
    for number in range(2):
        written = cached(pod(f"g-{number}"))
        condition = Condition("PodScheduled", "False", "Unschedulable", "no room")
        meta = msgspec.structs.replace(written.metadata, resource_version="2")
        script.tables["pods"].put(msgspec.structs.replace(written, metadata=meta, scheduled=condition))
    assert script.loop.queue.state(G) is State.PARKED
    script.pod("g-0")
    script.pod("g-0")
    assert script.loop.queue.state(G) is State.ACTIVE


async def test_a_new_gang_takes_no_room_that_an_older_resting_one_needs(
    script: Script,
) -> None:
    """Case C111."""
    script.node("a", cpu=2)
    script.group("g", 3, stamped="2026-01-01T00:00:01.000000Z")
    script.gang("g", 3)
    await script.settle()
    script.loop._rest_until_s = script.now_s + 1
    script.node("b", cpu=4)
    script.group("h", 4, stamped="2026-01-01T00:00:02.000000Z")
    script.gang("h", 4)
    await script.loop.round()
    assert set(script.bound) == {"g-0", "g-1", "g-2"}


async def test_a_member_that_cannot_be_read_is_named(script: Script) -> None:
    """F1: the reason is the pod's own, not a lack of members."""
    script.node("a", cpu=4)
    script.group("g", 2)
    script.pod("g-0")
    script.pod("g-1", cpu="many")
    await script.settle()
    assert script.loop.queue.state(G) is State.BACKING_OFF
    (text,) = [text for kind, _, text in script.reports.said if kind == "error"]
    assert "ns/g-1" in text
    assert '"many"' in text


async def test_a_fault_while_room_is_held_ends_neither_binder_nor_loop(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.node("a", cpu=4)
    script.group("g", 2)
    script.gang("g", 2)
    await script.settle()
    (decision,) = script.decisions.log

    def fails(*_: object) -> None:
        raise RuntimeError("odd")

    monkeypatch.setattr(script.cache, "state", fails)
    script.refuse(decision, "g-0")
    await script.loop.round()
    assert script.loop.queue.state(G) is State.BACKING_OFF
    monkeypatch.undo()
    script.bind(decision, ["g-1"])
    script.close(decision)
    await script.after(5)
    assert len(script.decisions.log) == 2


async def test_other_work_has_its_turn_while_a_new_leader_sorts_all_gangs(script: Script) -> None:
    for number in range(300):
        script.group(f"g{number}", 2)
        script.pod(f"g{number}-0", group=f"g{number}")
    script.start()
    reads = turns = 0

    def clock() -> float:
        nonlocal reads
        reads += 1
        return script.now_s + reads / 1000

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    script.loop._now_s = clock
    task = asyncio.create_task(others())
    await script.loop._due()
    task.cancel()
    assert turns >= 300 / 1000 / 0.02 - 1
