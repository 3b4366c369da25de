"""The minMember of PodGroups: which member and which owner decide, and what users are told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.members import GroupState, Member
from controller.owners import Owner, OwnerState
from controller.plan import plan
from controller.sizes import min_member, oldest_first
from groups.contract import SIZE_LABEL, EventReason
from groups.objects import Key
from groups.podgroup import PodGroup
from tests.controller.builders import NOW, job, made, members, pod, reference, settle, state

R, P, S, F = "Running", "Pending", "Succeeded", "Failed"
LATEST = "2024-02-18T09:00:00Z"


def minimum_of(whole: GroupState) -> int:
    """The minMember that a group has once everything is written."""
    after = settle(whole)
    assert after is not None
    return after.spec.min_member


def by_rule(*phases: str, size: str, owner: Owner, **more: Any) -> tuple[Member, ...]:
    """Members whose size label was counted by a rule."""
    return members(*phases, size=size, owner=owner, size_from_rule=True, **more)


# The oldest member


def test_the_oldest_member_that_asks_for_a_size_decides() -> None:
    """Rule A7: by age, then by name."""
    old = Member(pod("z-old", size="2", created="2024-02-18T01:00:00Z"))
    new = Member(pod("a-new", size="3", created="2024-02-18T01:00:01Z"))
    bare = Member(pod("b-bare", created="2024-02-18T00:00:02Z"))
    assert minimum_of(state(new, old, bare)) == 2
    twin = Member(pod("y-old", size="4", created="2024-02-18T01:00:00Z"))
    assert minimum_of(state(new, old, twin)) == 4


@pytest.mark.parametrize("phase", [P, R])
@pytest.mark.parametrize("size", ["1", "2147483647"])
def test_a_pod_that_joins_later_changes_nothing_and_is_told(size: str, phase: str) -> None:
    """Case C119: it neither breaks nor blocks the gang."""
    late = Member(pod("late", phase, size=size, created=LATEST))
    whole = state(*members(phase, phase, phase), late, group=made(3))
    assert minimum_of(whole) == 3
    (mistake,) = plan(whole, NOW).mistakes
    assert (mistake.pod.metadata.name, mistake.reason) == ("late", EventReason.GROUP_SIZE_DIFFERS)
    assert f"size {size}" not in mistake.note
    assert all(word in mistake.note for word in (SIZE_LABEL, f"of {size}", "minMember 3", '"p0"'))


def test_an_extra_pod_that_is_left_alone_does_not_raise_the_minimum() -> None:
    """The others ended first: what has started never needs more."""
    late = Member(pod("late", R, size="2147483647", created=LATEST))
    assert minimum_of(state(late, *members(S, S, S), group=made(3))) == 3


def test_members_that_go_do_not_speak_for_those_that_stay() -> None:
    """Case C119: a Recreate roll-out after scaling down; the old pods terminate slowly."""
    web = Owner(reference("Deployment", "web"), OwnerState.ACTIVE, 2)
    old = by_rule(R, R, R, size="5", owner=web, deleting=True, created="2024-02-18T01:00:00Z")
    new = Member(pod("new", size="5", owner=web.reference, size_from_rule=True), web)
    assert minimum_of(state(*old, new, group=made(5))) == 2


# Sizes that a rule counted


@pytest.mark.parametrize(
    ("phases", "present", "wanted", "minimum"),
    [
        pytest.param([P, P], 5, 2, 2, id="a Deployment 5 to 0 to 2"),
        pytest.param([P, P, P, P], 2, 4, 4, id="C67 a suspended Job that was made larger"),
        pytest.param([P, P], 4, 2, 2, id="a queue manager that lowers parallelism"),
        pytest.param([R, R, P, P], 2, 4, 2, id="N25 an elastic Job grows"),
        pytest.param([R], 2, 1, 1, id="N25 an elastic Job shrinks"),
        pytest.param([S, P], 2, 4, 2, id="a finished member has started"),
    ],
)
def test_a_counted_size_follows_its_owner(phases: list[str], present: int, wanted: int, minimum: int) -> None:
    """Rule A7: up before the start, down at any time; the number on the label is that of the creation."""
    owner = job(members=wanted)
    whole = state(*by_rule(*phases, size=str(present), owner=owner), group=made(present))
    assert minimum_of(whole) == minimum
    assert plan(whole, NOW).mistakes == ()


def test_a_size_that_the_user_wrote_stays() -> None:
    """Rule A3, cases C67 and N25."""
    assert minimum_of(state(*members(P, P, size="2", owner=job(members=4)), group=made(2))) == 2
    assert minimum_of(state(*members(R, size="2", owner=job(members=1)), group=made(2))) == 2


def test_the_label_stands_in_for_an_owner_that_nobody_counts() -> None:
    """Rule A7: a kind without a rule, or one that the controller may not read."""
    owner = Owner(reference("Workflow"), OwnerState.UNKNOWN)
    assert minimum_of(state(*by_rule(P, size="3", owner=owner))) == 3


def test_members_without_a_size_are_counted_by_their_owner() -> None:
    """Rule A8."""
    assert minimum_of(state(*members(P, size=None, owner=job(members=4)))) == 4


def test_members_that_nobody_counts_are_gangs_of_one() -> None:
    """Rule A8."""
    assert minimum_of(state(*members(P, size=None))) == 1


@pytest.mark.parametrize(("node", "minimum"), [("", 6), ("a", 3)])
def test_a_counted_group_that_has_started_does_not_ask_for_more(node: str, minimum: int) -> None:
    """Rule A5: members that come later are placed one by one."""
    whole = state(*members(P, P, P, size=None, owner=job(members=6), node=node), group=made(3))
    assert minimum_of(whole) == minimum


def test_a_minimum_that_the_user_changed_is_kept() -> None:
    """Rule A3: the user wins, also over a group that we made, and also after a later write of ours."""
    group = msgspec.structs.replace(made(3), spec=msgspec.structs.replace(made(3).spec, min_member=2))
    whole = state(*members(P, P, P, size="3", owner=job()), group=group)
    assert plan(whole, NOW).update is not None  # its owner
    assert minimum_of(whole) == 2


# Mistakes


def test_two_workloads_of_one_group_that_ask_for_different_sizes_are_told() -> None:
    """Rule A7: they share a group, since the user wrote the same label on both."""
    one, two = job(members=2, name="one"), job(members=3, name="two")
    first = Member(pod("a", size="2", owner=one.reference, size_from_rule=True), one)
    second = Member(pod("b", size="3", owner=two.reference, size_from_rule=True), two)
    whole = state(first, second)
    assert minimum_of(whole) == 2
    assert [one.pod.metadata.name for one in plan(whole, NOW).mistakes] == ["b"]


@pytest.mark.parametrize("size", ["abc", "0", "-1", "1.5", "2147483648", "007"])
def test_a_bad_size_is_reported_and_no_group_is_made_of_it(size: str) -> None:
    """Case C04: a pod that got past the webhook."""
    todo = plan(state(*members(P, P, size=size)), NOW)
    assert todo.create is None
    assert [one.reason for one in todo.mistakes] == [EventReason.INVALID_GROUP_SIZE] * 2
    assert SIZE_LABEL in todo.mistakes[0].note
    assert f'"{size}"' in todo.mistakes[0].note
    assert "positive integer" in todo.mistakes[0].note


def test_a_bad_size_does_not_spoil_the_group_of_the_others() -> None:
    """The sound members make the group, the other one is told about."""
    bad = Member(pod("z", size="abc", created="2024-02-18T09:00:00Z"))
    todo = plan(state(*members(P, P, size="3"), bad), NOW)
    assert todo.create is not None
    assert todo.create.min_member == 3
    assert [one.pod.metadata.name for one in todo.mistakes] == ["z"]


def test_a_bad_group_name_is_reported() -> None:
    """Rule A4: a legal label value need not be a legal name."""
    one = Member(pod("a", size="1", group="My_Group"))
    todo = plan(GroupState(Key("ns/My_Group"), None, (one,)), NOW)
    assert todo.create is None
    assert [one.reason for one in todo.mistakes] == [EventReason.INVALID_GROUP_NAME]
    assert "My_Group" in todo.mistakes[0].note


# Properties


SIZES = st.sampled_from([None, "1", "2", "3", "4", "2147483647", "abc"])


@st.composite
def some_members(draw: st.DrawFn) -> tuple[Member, ...]:
    """Members of one owner, or of none."""
    owner = draw(st.none() | st.builds(lambda number: job(members=number), st.integers(1, 5)))
    return tuple(
        Member(
            pod(
                f"p{number}",
                draw(st.sampled_from([P, P, R, S, F])),
                size=draw(SIZES),
                owner=owner.reference if owner else None,
                created=f"2024-02-18T01:02:0{draw(st.integers(0, 9))}Z",
                deleting=draw(st.booleans()),
                size_from_rule=draw(st.booleans()),
            ),
            owner,
        )
        for number in range(draw(st.integers(0, 6)))
    )


GROUP = st.none() | st.builds(made, st.integers(1, 5))


@given(some_members(), GROUP)
def test_the_minimum_depends_only_on_the_oldest_live_member_and_its_owner(
    of: tuple[Member, ...], group: PodGroup | None
) -> None:
    """Rule A7: what the others ask for changes nothing, as long as they have started or not."""
    sized = [one for one in oldest_first(of) if minimum_alone(one) is not None]
    others = [one for one in of if not sized or one is not sized[0]]
    mute = tuple(Member(_without_size(one.pod)) for one in others)
    assert min_member(of, group) == min_member((*mute, *sized[:1]), group)


@given(some_members(), st.integers(1, 5))
def test_the_minimum_never_rises_once_a_member_is_bound(of: tuple[Member, ...], present: int) -> None:
    """Rule A5: members that are added later must not be held up."""
    if any(one.pod.node_name for one in of):
        assert min_member(of, made(present)) <= present


@given(some_members(), GROUP)
def test_the_order_in_which_pods_are_seen_changes_nothing(
    of: tuple[Member, ...], group: PodGroup | None
) -> None:
    """Events may come in any order."""
    assert min_member(of, group) == min_member(of[::-1], group)


def minimum_alone(member: Member) -> int | None:
    """What one member asks for, None where nothing tells."""
    found = [min_member((Member(_unbound(member.pod), member.owner),), made(number)) for number in (1, 2)]
    return found[0] if found[0] == found[1] else None


def _unbound(one: Any) -> Any:
    return msgspec.structs.replace(one, node_name="", phase=P)


def _without_size(one: Any) -> Any:
    labels = {key: value for key, value in (one.metadata.labels or {}).items() if key != SIZE_LABEL}
    return msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, labels=labels))
