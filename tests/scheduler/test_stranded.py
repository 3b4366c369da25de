"""What is done about gangs of which some members hold nodes, without a cluster (A5b)."""

from __future__ import annotations

import pytest

from tests.scheduler.scripted import Script


@pytest.fixture
async def script() -> Script:
    return Script()


async def test_a_definite_no_touches_that_member_only_and_its_place_is_held(script: Script) -> None:
    """A5b: the others go on, nobody else gets the room, and the replacement is bound at once."""
    script.node("a", cpu=8)
    script.group("g", 8)
    script.gang("g", 8)
    await script.settle()
    (decision,) = script.decisions.log
    script.refuse(decision, "g-3")
    script.group("x", 1, uid="run-x")
    script.pod("x-0", group="x")
    script.delete("g-3")
    script.bind(decision, [f"g-{n}" for n in range(8) if n != 3])
    script.close(decision)
    await script.after(3)
    assert script.held("g") == {"a": 1}
    assert "x-0" not in script.bound
    script.pod("g-new", group="g")
    await script.after(3)
    assert script.bound["g-new"] == "a"
    assert script.held("g") == {}
    assert "x-0" not in script.bound


async def test_after_a_restart_a_half_bound_gang_comes_first_and_its_room_is_held(script: Script) -> None:
    """A5b: whatever is older waits, whether the missing members exist yet or not."""
    script.node("a", cpu=4)
    script.group("old", 2, uid="run-o", stamped="2026-01-01T00:00:01.000000Z")
    script.gang("old", 2)
    script.group("g", 4, stamped="2026-01-01T00:00:09.000000Z")
    for number in range(2):
        script.pod(f"g-{number}", "running", node="a")
    script.start()
    await script.settle()
    assert script.bound == {}
    assert script.held("g") == {"a": 2}
    script.pod("g-2")
    script.pod("g-3")
    await script.settle()
    assert set(script.bound) == {"g-2", "g-3"}


async def test_held_room_grows_with_the_room_there_is(script: Script) -> None:
    script.node("a", cpu=3)
    script.group("g", 5)
    for number in range(3):
        script.pod(f"g-{number}", "running", node="a")
    await script.settle()
    assert script.held("g") == {}
    script.node("b", cpu=1)
    await script.settle()
    assert script.held("g") == {"b": 1}
    script.node("c", cpu=4)
    await script.settle()
    assert sum(script.held("g").values()) == 2


async def test_members_are_given_back_when_their_time_is_over(script: Script) -> None:
    """A5b: before the first quorum, after scheduleTimeoutSeconds."""
    script.node("a", cpu=2)
    script.group("g", 4, timeout_s=30)
    script.pod("g-0", "bound", node="a")
    script.pod("g-1", "bound", node="a")
    script.pod("g-2")
    script.pod("g-3")
    await script.after(29)
    assert script.releaser.pods == []
    await script.after(3)
    assert [pod.metadata.name for pod in script.releaser.pods] == ["g-0", "g-1"]
    assert script.reports.of("released") == ["ns/g"]


async def test_members_run_on_once_the_group_had_its_quorum(script: Script) -> None:
    """A5b: the default; the annotation asks for the release."""
    script.node("a", cpu=1)
    script.group("g", 2, scheduled="True", timeout_s=5)
    script.pod("g-0", "running", node="a")
    await script.after(60)
    assert script.releaser.pods == []
    script.group("g", 2, scheduled="True", timeout_s=5, on_stranded="release")
    await script.after(10)
    assert {pod.metadata.name for pod in script.releaser.pods} == {"g-0"}


async def test_a_bare_pod_is_never_given_back(script: Script) -> None:
    """A5b: nobody would make it anew."""
    script.node("a", cpu=1)
    script.group("g", 2, owners=())
    script.pod("g-0", "bound", node="a", owner="")
    await script.after(300)
    assert script.releaser.pods == []


async def test_of_two_gangs_that_block_each_other_the_younger_is_given_back(script: Script) -> None:
    """A5b: one at a time, and what it frees completes the older one."""
    script.node("a", cpu=4)
    for name, stamp in (("old", 1), ("young", 2)):
        script.group(name, 4, uid=f"run-{name}", stamped=f"2026-01-01T00:00:0{stamp}.000000Z", timeout_s=20)
        for number in range(2):
            script.pod(f"{name}-{number}", "bound", group=name, node="a", run=f"run-{name}")
        for number in (2, 3):
            script.pod(f"{name}-{number}", group=name)
    await script.after(22)
    assert {pod.metadata.name for pod in script.releaser.pods} == {"young-0", "young-1"}
    script.delete("young-0")
    script.delete("young-1")
    await script.after(2)
    assert {"old-2", "old-3"} <= set(script.bound)
    assert len(script.releaser.pods) == 2


async def test_room_is_held_for_the_kind_of_the_member_that_was_lost(script: Script) -> None:
    """A5b: a large launcher beside small workers."""
    script.node("a", cpu=6)
    script.group("g", 3)
    script.pod("g-0", cpu="4")
    script.pod("g-1")
    script.pod("g-2")
    await script.settle()
    (decision,) = script.decisions.log
    script.delete("g-0")
    script.refuse(decision, "g-0")
    script.bind(decision, ["g-1", "g-2"])
    script.close(decision)
    script.group("x", 2, uid="run-x")
    script.gang("x", 2)
    await script.after(3)
    assert "x-0" not in script.bound
    script.pod("g-new", cpu="4")
    await script.after(3)
    assert script.bound["g-new"] == "a"


async def test_after_its_time_room_is_held_for_members_that_exist_only(script: Script) -> None:
    """A5b: a group that waits for members which may never come must not keep others away."""
    script.node("a", cpu=4)
    script.group("g", 4, scheduled="True", timeout_s=10)
    script.pod("g-0", "running", node="a")
    script.pod("g-1")
    await script.after(5)
    assert script.held("g") == {"a": 3}
    await script.after(10)
    assert script.held("g") == {"a": 1}


async def test_the_next_gang_is_given_back_once_the_room_of_the_last_one_was_free_for_a_while(
    script: Script,
) -> None:
    """A5b: members may take long to end; what they free may complete the older gang."""
    script.node("a", cpu=4)
    for name, stamp in (("old", 1), ("young", 2)):
        script.group(name, 4, uid=f"run-{name}", stamped=f"2026-01-01T00:00:0{stamp}.000000Z", timeout_s=20)
        for number in range(2):
            script.pod(f"{name}-{number}", "bound", group=name, node="a", run=f"run-{name}")
        for number in (2, 3):
            script.pod(f"{name}-{number}", group=name)
    await script.after(50)
    assert {pod.metadata.name for pod in script.releaser.pods} == {"young-0", "young-1"}
    script.delete("young-0")
    await script.after(10)
    script.delete("young-1")
    await script.after(1)
    assert {"old-2", "old-3"} <= set(script.bound)
    assert len(script.releaser.pods) == 2


async def test_held_room_on_a_node_that_goes_is_held_elsewhere_at_once(script: Script) -> None:
    """A5b, T7: nobody else may take the room that is left meanwhile."""
    script.node("a", cpu=1)
    script.node("b", cpu=2)
    script.node("c", cpu=2)
    script.group("g", 3)
    script.pod("g-0", "running", node="a")
    await script.settle()
    (held_on,) = script.held("g")
    script.tables["nodes"].remove(held_on)
    script.group("x", 1, uid="run-x")
    script.pod("x-0", group="x")
    await script.settle()
    (other,) = {"b", "c"} - {held_on}
    assert script.held("g") == {other: 2}
    assert "x-0" not in script.bound


async def test_held_room_that_a_foreign_pod_takes_is_held_elsewhere_at_once(script: Script) -> None:
    script.node("a", cpu=1)
    script.node("b", cpu=2)
    script.node("c", cpu=2)
    script.group("g", 3)
    script.pod("g-0", "running", node="a")
    await script.settle()
    (held_on,) = script.held("g")
    script.pod("odd", "running", node=held_on, cpu="2", scheduler="other", labels={})
    await script.settle()
    (other,) = {"b", "c"} - {held_on}
    assert script.held("g") == {other: 2}


async def test_a_release_whose_deletions_were_lost_is_repeated(script: Script) -> None:
    """A5b: the members stay on their nodes, and the gang waits for ever otherwise."""
    script.node("a", cpu=2)
    script.group("g", 4, timeout_s=20)
    script.pod("g-0", "bound", node="a")
    await script.after(30)
    assert len(script.releaser.pods) == 1
    await script.after(100)
    assert len(script.releaser.pods) == 1
    await script.after(30)
    assert len(script.releaser.pods) == 2
