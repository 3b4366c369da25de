"""What holds for every plan, whatever the pods do and in whatever order it is seen."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controller.members import GroupState, Member, count
from controller.owners import Owner, Prospect
from controller.plan import is_ours, plan
from groups.objects import OwnerReference
from groups.podgroup import PodGroup
from tests.controller.builders import KEY, NOW, made, members, pod, reference, settle, state

PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown", ""])
SIZES = st.sampled_from([None, "1", "2", "3", "4", "0", "abc"])


@st.composite
def owners(draw: st.DrawFn) -> Owner | None:
    kind = draw(st.sampled_from(["Job", "Deployment", "Workflow", None]))
    if kind is None:
        return None
    ref = reference(kind, draw(st.sampled_from(["a", "b"])))
    if kind == "Workflow":
        return Owner(ref, Prospect.UNKNOWN)
    prospect = draw(st.sampled_from([p for p in Prospect if p is not Prospect.UNKNOWN]))
    completions = draw(st.none() | st.integers(1, 4)) if kind == "Job" else None
    return Owner(ref, prospect, draw(st.integers(1, 4)), completions)


@st.composite
def some_members(draw: st.DrawFn) -> tuple[Member, ...]:
    behind = {one.uid: one for one in draw(st.lists(owners(), max_size=2)) if one is not None}
    choice = st.sampled_from([None, *behind.values()])
    found = []
    for number in range(draw(st.integers(0, 5))):
        owner = draw(choice)
        one = pod(
            f"p{number}",
            draw(PHASES),
            size=draw(SIZES),
            owner=owner.reference if owner else None,
            created=f"2024-02-18T01:02:0{draw(st.integers(0, 9))}Z",
            going=draw(st.booleans()),
            node=draw(st.sampled_from(["", "a"])),
        )
        found.append(Member(one, owner))
    return tuple(found)


@st.composite
def states(draw: st.DrawFn) -> GroupState:
    of = draw(some_members())
    group: PodGroup | None = None
    if draw(st.booleans()):
        kept = draw(st.lists(st.sampled_from(["x", "y"]), unique=True))
        refs = tuple(OwnerReference("Job", name, f"uid-{name}", "batch/v1") for name in kept)
        group = made(draw(st.integers(1, 4)), ours=draw(st.booleans()), owner_references=refs or None)
    named = tuple(one for one in draw(st.lists(owners(), max_size=1)) if one is not None) if group else ()
    return GroupState(KEY, group, of, named, joined=NOW, had_members=draw(st.booleans()) or bool(of))


@given(states())
def test_a_plan_carried_out_leaves_nothing_to_plan(whole: GroupState) -> None:
    """Nothing is written that did not change (design.md, section 3)."""
    after = settle(whole)
    if after is not None:
        assert plan(replace(whole, group=after), NOW + dt.timedelta(hours=1)).is_done


@given(states())
def test_no_group_is_deleted_while_a_member_waits_or_runs(whole: GroupState) -> None:
    """Case C50."""
    if count(whole.members).live:
        assert not plan(whole, NOW).delete


@given(states())
def test_no_group_with_a_member_is_deleted_before_its_minimum_is_done(whole: GroupState) -> None:
    """Rule A6."""
    todo = plan(whole, NOW)
    if todo.delete and whole.members:
        assert whole.group is not None
        assert count(whole.members).done >= whole.group.spec.min_member


@given(states())
def test_no_group_is_deleted_while_its_owner_may_make_more_pods(whole: GroupState) -> None:
    """Rule A6: a Job with completions left is not over."""
    todo = plan(whole, NOW)
    if todo.delete:
        for owner in whole.all_owners:
            succeeded = sum(
                one.pod.status.phase == "Succeeded"
                for one in whole.members
                if one.owner is not None and one.owner.uid == owner.uid
            )
            complete = owner.completions is not None and succeeded >= owner.completions
            assert owner.prospect is not Prospect.MORE or complete


@given(states())
def test_what_others_made_is_never_deleted_and_its_spec_never_changed(whole: GroupState) -> None:
    """Rule A6."""
    if whole.group is not None and not is_ours(whole.group):
        todo = plan(whole, NOW)
        assert not todo.delete
        assert todo.update is None


@given(states())
def test_no_group_is_made_without_a_pod_that_can_start(whole: GroupState) -> None:
    """Cases C15, C49 and C63: neither before the first pod, nor for leftovers, nor for what is going."""
    if plan(replace(whole, group=None), NOW).create is not None:
        assert any(one.can_start for one in whole.members)


@given(states())
def test_counts_are_those_of_the_pods(whole: GroupState) -> None:
    """Case C46: recomputed, never incremented."""
    after = settle(whole)
    if after is None or (not is_ours(after) and not whole.had_members):
        return
    phases = [one.pod.status.phase for one in whole.members]
    assert (after.status.running, after.status.succeeded, after.status.failed) == (
        phases.count("Running"),
        phases.count("Succeeded"),
        phases.count("Failed"),
    )


@given(st.lists(st.lists(PHASES, max_size=5), min_size=1, max_size=6), st.data())
def test_events_that_are_lost_or_come_twice_change_nothing_in_the_end(
    history: list[list[str]], data: st.DataObject
) -> None:
    """Case C46: what is there at the end decides, not which of the steps before it were seen."""
    seen = data.draw(st.lists(st.sampled_from(history), max_size=6))
    everything, something = _live_through(history), _live_through([*seen, history[-1]])
    last = count(members(*history[-1]))
    if last.live:
        assert everything is not None
        assert something is not None
        assert _told(everything) == _told(something)
    elif last.done >= 3 or not last.total:
        assert everything is something is None


def _live_through(steps: list[list[str]]) -> PodGroup | None:
    group = None
    for phases in steps:
        group = settle(state(*members(*phases, size="3"), group=group))
    return group


def _told(group: PodGroup) -> tuple[object, ...]:
    """All but the times, which tell of the past."""
    status = group.status
    return (group.spec, status.phase, status.running, status.succeeded, status.failed)


@given(states(), st.datetimes(min_value=dt.datetime(2020, 1, 1), timezones=st.just(dt.UTC)))  # noqa: DTZ001
def test_a_creation_time_once_written_is_never_changed(whole: GroupState, later: dt.datetime) -> None:
    """Design.md section 1: `creationTime` is written once and orders the queue."""
    after = settle(whole)
    if after is not None and after.status.creation_time:
        todo = plan(replace(whole, group=after, members=()), later)
        assert "creationTime" not in (todo.status or {})


@given(states())
def test_owners_never_manage_the_group_and_are_named_once(whole: GroupState) -> None:
    """Design.md section 1: the workload that the pods come from, not its controller."""
    wanted = plan(whole, NOW).create or plan(whole, NOW).update
    if wanted is not None:
        uids = [owner.uid for owner in wanted.owners]
        assert len(uids) == len(set(uids))
        if wanted.min_member > 1:
            assert all(owner.kind != "Pod" for owner in wanted.owners)
