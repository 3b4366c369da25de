"""What holds for every plan, whatever the pods do and in whatever order it is seen."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controller.members import GroupState, Member, count
from controller.owners import Owner, OwnerState
from controller.plan import DeleteReason, Plan, is_ours, plan
from groups.contract import RUN_ANNOTATION
from groups.objects import OwnerReference
from groups.podgroup import PodGroup
from tests.controller.builders import (
    KEY,
    NOW,
    carried_out,
    job,
    made,
    members,
    pod,
    reference,
    settle,
    settled,
    state,
)

PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown", ""])
SIZES = st.sampled_from([None, "1", "2", "3", "4", "0", "abc"])


@st.composite
def owners(draw: st.DrawFn) -> Owner | None:
    kind = draw(st.sampled_from(["Job", "Deployment", "Workflow", None]))
    if kind is None:
        return None
    ref = reference(kind, draw(st.sampled_from(["a", "b"])))
    if kind == "Workflow":
        return Owner(ref, OwnerState.UNKNOWN)
    found = draw(st.sampled_from([p for p in OwnerState if p is not OwnerState.UNKNOWN]))
    completions = draw(st.none() | st.integers(1, 4)) if kind == "Job" else None
    has_succeeded = found is OwnerState.FINISHED and draw(st.booleans())
    return Owner(ref, found, draw(st.integers(1, 4)), {}, completions, has_succeeded)


@st.composite
def some_pods(draw: st.DrawFn, behind: list[Owner]) -> tuple[Member, ...]:
    """Pods of two runs, in any state; some have a ReplicaSet in front of their owner."""
    choice = st.sampled_from([None, *behind])
    found = []
    for number in range(draw(st.integers(0, 5))):
        owner = draw(choice)
        ref = owner.reference if owner else None
        if owner is not None and draw(st.booleans()):
            ref = reference("ReplicaSet", f"{owner.reference.name}-1")
        one = pod(
            f"p{number}",
            draw(PHASES),
            size=draw(SIZES),
            owner=ref,
            created=f"2024-02-18T01:02:0{draw(st.integers(0, 9))}Z",
            deleting=draw(st.booleans()),
            node=draw(st.sampled_from(["", "a"])),
            run=draw(st.sampled_from([None, "uid-g", "uid-before"])),
            size_from_rule=draw(st.booleans()),
        )
        found.append(Member(one, owner))
    return tuple(found)


@st.composite
def states(draw: st.DrawFn) -> GroupState:
    behind = {one.uid: one for one in draw(st.lists(owners(), max_size=2)) if one is not None}
    of = draw(some_pods(list(behind.values())))
    group: PodGroup | None = None
    if draw(st.booleans()):
        kept = draw(st.lists(st.sampled_from(["a", "b", "x", "y"]), unique=True))
        refs = tuple(OwnerReference("Job", name, f"uid-{name}", "batch/v1") for name in kept)
        recorded = draw(st.lists(st.sampled_from(["uid-a", "uid-b", "uid-x"]), unique=True))
        ours = draw(st.booleans())
        group = made(draw(st.integers(1, 4)), ours=ours, owner_references=refs or None, recorded=recorded)
        for name in kept:
            if name in "xy":
                behind[f"uid-{name}"] = job(draw(st.sampled_from(list(OwnerState))), name=name)
    named = {one.uid for one in group.metadata.owner_references or ()} if group is not None else set()
    known = {uid: owner for uid, owner in behind.items() if uid in named}
    return GroupState(KEY, group, of, known, joined=NOW, had_members=draw(st.booleans()) or bool(of))


@given(states())
def test_a_plan_carried_out_leaves_nothing_to_plan(whole: GroupState) -> None:
    """Nothing is written that did not change (design.md, section 3)."""
    after = settled(whole)
    if after.group is not None:
        assert plan(after, NOW + dt.timedelta(hours=1)).is_done


@given(states())
def test_a_group_that_was_deleted_is_made_anew_at_most_once(whole: GroupState) -> None:
    """A new PodGroup must not be a reason to delete it again."""
    after = settled(whole)
    if whole.group is not None and after.group is None:
        again = settled(after)
        assert again.group is not None or plan(after, NOW).is_done


@given(states())
def test_no_group_is_deleted_while_a_member_waits_or_runs(whole: GroupState) -> None:
    """Case C50; only another workload of its name ends a run before that."""
    todo = plan(whole, NOW)
    if todo.delete is DeleteReason.WORK_IS_OVER:
        assert not count(whole.members).live


@given(states())
def test_a_run_ends_early_only_if_none_of_its_owners_is_left(whole: GroupState) -> None:
    """Rule A6: and only if a pod of another living owner waits."""
    if plan(whole, NOW).delete is DeleteReason.OWNER_REPLACED:
        assert all(owner.is_deleted for owner in whole.owners.values())
        assert any(one.pod.is_waiting and one.is_live for one in whole.labelled)


@given(states())
def test_no_group_with_a_member_is_deleted_before_its_minimum_is_done(whole: GroupState) -> None:
    """Rule A6: unless its owners say themselves that they have succeeded."""
    todo = plan(whole, NOW)
    if todo.delete is DeleteReason.WORK_IS_OVER and whole.members:
        assert whole.group is not None
        has_succeeded = any(owner.has_succeeded for owner in whole.all_owners)
        assert has_succeeded or count(whole.members).done >= whole.group.spec.min_member


@given(states())
def test_no_group_is_deleted_while_its_owner_may_make_more_pods(whole: GroupState) -> None:
    """Rule A6: a Job with completions left is not over."""
    if plan(whole, NOW).delete is DeleteReason.WORK_IS_OVER:
        for owner in whole.all_owners:
            succeeded = sum(
                one.pod.phase == "Succeeded"
                for one in whole.members
                if one.owner is not None and one.owner.uid == owner.uid
            )
            complete = owner.completions is not None and succeeded >= owner.completions
            assert owner.state is not OwnerState.ACTIVE or complete


@given(states())
def test_what_others_made_is_never_deleted_and_its_spec_never_changed(whole: GroupState) -> None:
    """Rule A6."""
    if whole.group is not None and not is_ours(whole.group):
        todo = plan(whole, NOW)
        assert not todo.delete
        assert todo.update is None


@given(states())
def test_no_group_is_made_without_a_pod_that_is_live(whole: GroupState) -> None:
    """Cases C15, C49 and C63: neither before the first pod, nor for left-overs, nor for what is deleted."""
    if plan(replace(whole, group=None), NOW).create is not None:
        assert any(one.is_live for one in whole.labelled)


@given(states())
def test_counts_are_those_of_the_present_run_alone(whole: GroupState) -> None:
    """Case C46 and Membership: recomputed, never incremented, and left-overs count for nothing."""
    after = settled(whole)
    if after.group is None or (not is_ours(after.group) and not whole.had_members):
        return
    named = {one.uid for one in after.group.metadata.owner_references or ()}
    phases = [one.pod.phase for one in after.labelled if _is_of_run(one, named)]
    status = after.group.status
    assert (status.running, status.succeeded, status.failed) == (
        phases.count("Running"),
        phases.count("Succeeded"),
        phases.count("Failed"),
    )


def _is_of_run(one: Member, named: set[str]) -> bool:
    """The rule again, in other words."""
    pod, mark = one.pod, one.pod.metadata.annotation(RUN_ANNOTATION)
    if pod.is_deleting:
        return False
    if pod.is_waiting or mark:
        return pod.is_waiting or mark == "uid-g"
    controller = pod.metadata.controller
    if controller is None or one.owner is None:
        return False
    return controller.uid in named or (one.owner.uid in named and not one.owner.is_deleted)


@given(states())
def test_marks_are_written_once_and_make_members(whole: GroupState) -> None:
    """Membership: what has the mark counts for the scheduler too."""
    for one in plan(whole, NOW).marks:
        after = carried_out(Plan(marks=(one,)), whole)
        assert one.metadata.uid in {each.pod.metadata.uid for each in after.members}
        assert one.metadata.uid not in {each.metadata.uid for each in plan(after, NOW).marks}


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
        assert _without_times(everything) == _without_times(something)
    elif last.done >= 3 or not last.total:
        assert everything is something is None


def _live_through(steps: list[list[str]]) -> PodGroup | None:
    group = None
    for phases in steps:
        # Pods are bound only for a PodGroup that exists.
        group = settle(state(*members(*phases, size="3"), group=group or made(3)))
    return group


def _without_times(group: PodGroup) -> tuple[object, ...]:
    """All but the times."""
    status = group.status
    return (group.spec, status.phase, status.running, status.succeeded, status.failed)


@given(states(), st.datetimes(min_value=dt.datetime(2020, 1, 1), timezones=st.just(dt.UTC)))  # noqa: DTZ001
def test_a_creation_time_once_written_is_never_changed(whole: GroupState, later: dt.datetime) -> None:
    """Design.md section 1: `creationTime` is written once and orders the queue."""
    after = settle(whole)
    if after is not None and after.status.creation_time:
        todo = plan(replace(whole, group=after, labelled=()), later)
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
