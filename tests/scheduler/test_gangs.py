"""Where a gang stands: its members, how many are missing, whether it is stranded, and the order of gangs."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.contract import GROUP_LABEL, Why
from groups.membership import group_key_of
from groups.objects import Key, OwnerReference
from groups.podgroup import PodGroup
from scheduler.gangs import examine
from tests.scheduler.scripted import member, pod_group

KEY = Key("ns/g")
STATES = ("pending", "bound", "running", "succeeded", "failed", "terminating", "gated")


def group(minimum: int, created: str = "", stamped: str | None = None, name: str = "g") -> PodGroup:
    return pod_group(name, minimum, created=created, stamped=stamped)


@given(st.lists(st.sampled_from(STATES), max_size=12), st.integers(1, 12))
def test_a_gang_is_tried_only_when_its_quorum_can_be_reached(states: list[str], minimum: int) -> None:
    """A5: what is bound, Running or Succeeded counts; failed, leaving and gated members do not."""
    members = [member(f"p{i}", state) for i, state in enumerate(states)]
    standing = examine(KEY, group(minimum), members)
    settled = sum(state in ("bound", "running", "succeeded") for state in states)
    pending = states.count("pending")
    assert len(standing.settled) == settled
    assert len(standing.candidates) == pending
    assert standing.needed == max(0, minimum - settled)
    if pending and standing.why is None:
        assert settled + pending >= minimum
        assert not (standing.needed and "gated" in states)


@given(st.permutations(range(6)))
def test_the_order_of_events_decides_nothing(order: list[int]) -> None:
    members = [member(f"p{i}") for i in order]
    assert examine(KEY, group(3), members).candidates == tuple(sorted(members, key=lambda p: p.metadata.name))


def test_members_that_are_missing_are_counted_aloud() -> None:
    """Case C98."""
    standing = examine(KEY, group(5), [member(f"p{i}") for i in range(3)])
    assert standing.why is Why.WAITING_FOR_MEMBERS
    assert "3 of 5 members" in standing.message


def test_a_gang_without_its_pod_group_waits_for_it() -> None:
    standing = examine(KEY, None, [member("p")])
    assert standing.why is Why.WAITING_FOR_GROUP
    assert "PodGroup g" in standing.message


def test_a_gated_member_holds_the_whole_gang_back() -> None:
    """Rule S4."""
    members = [member("a"), member("b"), member("c", "gated")]
    assert examine(KEY, group(2), members).why is Why.SCHEDULING_GATED


def test_a_late_member_needs_nobody_once_the_quorum_is_reached() -> None:
    """A5, case C56: two have succeeded or run, one failed, its replacement comes alone."""
    members = [member("a", "succeeded"), member("b", "failed"), member("c", "running"), member("b2")]
    standing = examine(KEY, group(3), members)
    assert (len(standing.settled), standing.needed, standing.why) == (2, 1, None)


def test_a_member_whose_binding_is_under_way_counts_as_placed() -> None:
    standing = examine(KEY, group(2), [member("a"), member("b")], {"uid-a"}.__contains__)
    assert (len(standing.settled), [p.metadata.name for p in standing.candidates]) == (1, ["b"])


@pytest.mark.parametrize(
    ("scheduler", "labels", "expected"),
    [
        ("fluence", {GROUP_LABEL: "g"}, "ns/g"),
        ("fluence", {GROUP_LABEL: ""}, None),
        ("fluence", {}, None),
        ("default-scheduler", {GROUP_LABEL: "g"}, None),
    ],
)
def test_only_labelled_pods_of_our_scheduler_are_members(
    scheduler: str, labels: dict[str, str], expected: str | None
) -> None:
    """A2, rule S1, case C30."""
    pod = member("p", scheduler=scheduler, labels=labels)
    assert group_key_of(pod, "fluence") == expected


def ordered(*gangs: tuple[str, int, PodGroup]) -> list[str]:
    found = []
    for name, priority, one in gangs:
        standing = examine(Key(f"ns/{name}"), one, [member("p", priority=priority)])
        found.append((standing.order, name))
    return [name for _, name in sorted(found)]


def test_first_come_first_served_to_the_microsecond() -> None:
    """Case C111: then by name; a higher priority goes first."""
    second = "2026-01-01T00:00:00"
    assert ordered(
        ("c", 0, group(1, stamped=f"{second}.000002Z")),
        ("b", 0, group(1, stamped=f"{second}.000001Z")),
        ("a", 0, group(1, stamped=f"{second}.000002Z")),
        ("d", 9, group(1, stamped=f"{second}.000003Z")),
    ) == ["d", "b", "a", "c"]


def test_a_group_without_our_stamp_is_ordered_by_its_creation() -> None:
    assert ordered(
        ("late", 0, group(1, created="2026-01-01T00:00:02Z")),
        ("stamped", 0, group(1, stamped="2026-01-01T00:00:01.500000Z")),
        ("early", 0, group(1, created="2026-01-01T00:00:01Z")),
    ) == ["early", "stamped", "late"]


def test_times_of_other_zones_and_precisions_are_compared_as_times() -> None:
    """Design section 1: either precision is accepted in PodGroups that others made."""
    assert ordered(
        ("second", 0, group(1, stamped="2026-01-01T02:00:00.5+01:00")),
        ("first", 0, group(1, stamped="2026-01-01T01:00:00.000001Z")),
        ("third", 0, group(1, stamped="2026-01-01T01:00:01Z")),
    ) == ["first", "second", "third"]


@given(st.lists(st.sampled_from(("this run", "earlier run", "owner", "stranger")), max_size=8))
def test_only_members_of_this_run_have_a_place(marks: list[str]) -> None:
    """Membership: left-overs of an earlier run of the same name count for nothing (case C53)."""
    made = {
        "this run": lambda name: member(name, "running", run="run-1"),
        "earlier run": lambda name: member(name, "succeeded", run="run-0"),
        "owner": lambda name: member(name, "running", run="", owner="job-1"),
        "stranger": lambda name: member(name, "running", run="", owner="job-0"),
    }
    members = [made[mark](f"p{number}") for number, mark in enumerate(marks)]
    found = examine(KEY, pod_group("g", 3, uid="run-1", owners=("job-1",)), members)
    assert len(found.settled) == sum(mark in ("this run", "owner") for mark in marks)


@given(st.lists(st.sampled_from(("job-1", "job-0", "")), max_size=8))
def test_waiting_pods_of_a_deleted_owner_of_the_same_name_count_for_nothing(owners: list[str]) -> None:
    """Membership: they wait for the garbage collector, and would take the place of the new run's members."""
    by_uid = {uid: OwnerReference("Job", "j", uid, "batch/v1", True) for uid in ("job-1", "job-0")}
    one = pod_group("g", 3, uid="run-1")
    meta = msgspec.structs.replace(one.metadata, owner_references=(by_uid["job-1"],))
    members = []
    for number, uid in enumerate(owners):
        found = member(f"p{number}")
        reference = (by_uid[uid],) if uid else None
        pod_meta = msgspec.structs.replace(found.metadata, owner_references=reference)
        members.append(msgspec.structs.replace(found, metadata=pod_meta))
    found_state = examine(KEY, msgspec.structs.replace(one, metadata=meta), members)
    ours = [uid for uid in owners if uid != "job-0"]
    if ours:
        assert len(found_state.candidates) == len(ours)
    elif owners:
        assert found_state.why is Why.WAITING_FOR_GROUP
        assert "of their own" in found_state.message


def test_three_succeeded_pods_of_a_deleted_job_count_for_nothing() -> None:
    old = [member(f"old{number}", "succeeded", run="run-0") for number in range(3)]
    found = examine(KEY, pod_group("g", 3, uid="run-1"), [*old, member("new")])
    assert (found.needed, found.why) == (3, Why.WAITING_FOR_MEMBERS)


@given(st.lists(st.sampled_from(STATES), max_size=8), st.integers(1, 8))
def test_a_gang_is_stranded_if_members_hold_nodes_and_too_few_have_a_place(
    states: list[str], minimum: int
) -> None:
    """A5b: a succeeded member has its place and holds no node."""
    found = examine(KEY, group(minimum), [member(f"p{i}", state) for i, state in enumerate(states)])
    holding = sum(state in ("bound", "running") for state in states)
    settled = holding + states.count("succeeded")
    assert found.is_stranded is (holding > 0 and settled < minimum)


def test_a_stranded_gang_goes_before_all_others_of_its_priority() -> None:
    """A5b: and behind those of a higher one."""
    second = "2026-01-01T00:00:00"
    half = examine(
        Key("ns/half"), group(2, stamped=f"{second}.000009Z"), [member("a", "running"), member("b")]
    )
    old = examine(Key("ns/old"), group(1, stamped=f"{second}.000001Z"), [member("c")])
    high = examine(Key("ns/high"), group(1, stamped=f"{second}.000008Z"), [member("d", priority=5)])
    assert [one.key for one in sorted((old, half, high), key=lambda one: one.order)] == [
        "ns/high",
        "ns/half",
        "ns/old",
    ]


@pytest.mark.parametrize(
    ("phase", "condition", "annotation", "had", "released"),
    [
        ("Scheduling", "", "", False, True),
        ("Running", "", "", True, False),
        ("Scheduling", "True", "", True, False),
        ("Scheduling", "False", "", False, True),
        ("Running", "True", "release", True, True),
        ("Running", "True", "wait", True, False),
    ],
)
def test_a_group_that_had_its_quorum_waits_unless_its_user_says_otherwise(
    phase: str, condition: str, annotation: str, had: bool, released: bool
) -> None:
    """A5b: the object tells, so that a restart changes nothing."""
    one = pod_group("g", 2, phase=phase, scheduled=condition, on_stranded=annotation)
    found = examine(KEY, one, [member("a", "running"), member("b")])
    assert (found.had_quorum, found.is_released_when_stranded) == (had, released)
