"""Which pods make a gang, how many are missing, and who goes first: no cluster needed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.contract import GROUP_LABEL, Why
from groups.objects import Key, ObjectMeta
from groups.podgroup import PodGroup, PodGroupSpec, PodGroupStatus
from scheduler.objects import Pod, PodSpec, PodStatus
from scheduler.standing import examine, group_of, queue_order

KEY = Key("ns/g")

STATES = ("pending", "bound", "running", "succeeded", "failed", "terminating", "gated")


def member(name: str, state: str = "pending", priority: int = 0) -> Pod:
    phase = {"running": "Running", "succeeded": "Succeeded", "failed": "Failed"}.get(state, "Pending")
    placed = state in ("bound", "running", "succeeded", "failed")
    return Pod(
        ObjectMeta(
            name=name,
            namespace="ns",
            uid=f"uid-{name}",
            labels={GROUP_LABEL: "g"},
            deletion_timestamp="2026-01-01T00:00:00Z" if state == "terminating" else None,
        ),
        PodSpec(
            scheduler_name="fluence",
            node_name="n" if placed else "",
            priority=priority,
            scheduling_gates=({"name": "wait"},) if state == "gated" else None,
        ),
        PodStatus(phase=phase),
    )


def group(minimum: int, created: str = "", stamped: str | None = None, name: str = "g") -> PodGroup:
    return PodGroup(
        ObjectMeta(name=name, namespace="ns", creation_timestamp=created),
        PodGroupSpec(min_member=minimum),
        PodGroupStatus(creation_time=stamped),
    )


@given(st.lists(st.sampled_from(STATES), max_size=12), st.integers(1, 12))
def test_a_gang_is_tried_only_when_its_quorum_can_be_reached(states: list[str], minimum: int) -> None:
    """A5: what is bound, Running or Succeeded counts; failed, leaving and gated members do not."""
    members = [member(f"p{i}", state) for i, state in enumerate(states)]
    standing = examine(KEY, group(minimum), members, ())
    settled = sum(state in ("bound", "running", "succeeded") for state in states)
    pending = states.count("pending")
    assert standing.settled == settled
    assert len(standing.candidates) == pending
    assert standing.needed == max(0, minimum - settled)
    if pending and standing.why is None:
        assert settled + pending >= minimum
        assert not (standing.needed and "gated" in states)


@given(st.permutations(range(6)))
def test_the_order_of_events_decides_nothing(order: list[int]) -> None:
    members = [member(f"p{i}") for i in order]
    assert examine(KEY, group(3), members, ()).candidates == tuple(
        sorted(members, key=lambda p: p.metadata.name)
    )


def test_members_that_are_missing_are_counted_aloud() -> None:
    """Case C98."""
    standing = examine(KEY, group(5), [member(f"p{i}") for i in range(3)], ())
    assert standing.why is Why.WAITING_FOR_MEMBERS
    assert "3 of 5 members" in standing.message


def test_a_gang_without_its_pod_group_waits_for_it() -> None:
    standing = examine(KEY, None, [member("p")], ())
    assert standing.why is Why.WAITING_FOR_GROUP
    assert "PodGroup g" in standing.message


def test_a_gated_member_holds_the_whole_gang_back() -> None:
    """Rule S4."""
    members = [member("a"), member("b"), member("c", "gated")]
    assert examine(KEY, group(2), members, ()).why is Why.SCHEDULING_GATED


def test_a_late_member_needs_nobody_once_the_quorum_is_reached() -> None:
    """A5, case C56: two have succeeded or run, one failed, its replacement comes alone."""
    members = [member("a", "succeeded"), member("b", "failed"), member("c", "running"), member("b2")]
    standing = examine(KEY, group(3), members, ())
    assert (standing.settled, standing.needed, standing.why) == (2, 1, None)


def test_a_member_whose_binding_is_under_way_counts_as_placed() -> None:
    standing = examine(KEY, group(2), [member("a"), member("b")], {"uid-a"})
    assert (standing.settled, [p.metadata.name for p in standing.candidates]) == (1, ["b"])


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
    pod = Pod(ObjectMeta(name="p", namespace="ns", labels=labels), PodSpec(scheduler_name=scheduler))
    assert group_of(pod, "fluence") == expected


def ordered(*gangs: tuple[str, int, PodGroup]) -> list[str]:
    found = []
    for name, priority, one in gangs:
        standing = examine(Key(f"ns/{name}"), one, [member("p", priority=priority)], ())
        found.append((queue_order(standing, one), name))
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
