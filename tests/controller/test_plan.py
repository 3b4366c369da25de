"""Phases, times and owners of PodGroups, and when they are created and deleted: the edges, one row each."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from controller.members import GroupState, Member
from controller.owners import Owner, OwnerState
from controller.plan import plan
from groups.objects import OwnerReference
from groups.podgroup import PodGroupStatus
from tests.controller.builders import (
    KEY,
    NOW,
    STAMP,
    apply,
    job,
    made,
    members,
    pod,
    reference,
    settle,
    state,
)

R, P, S, F = "Running", "Pending", "Succeeded", "Failed"


@pytest.mark.parametrize(
    ("minimum", "phases", "phase"),
    [
        pytest.param(3, [P], "Pending", id="C41 members are missing"),
        pytest.param(4, [P, P, P, P], "Scheduling", id="C46 all exist, none runs"),
        pytest.param(4, [R, R, R, P], "Scheduling", id="C46 not all run"),
        pytest.param(4, [R, R, R, R], "Running", id="C46 all run"),
        pytest.param(8, [R] * 5 + [P] * 5, "Scheduling", id="C47 five were evicted and come again"),
        pytest.param(8, [R] * 10, "Running", id="C47 all are back"),
        pytest.param(2, [F, R, R], "Running", id="C48 a failed extra"),
        pytest.param(3, [S, S, R], "Running", id="C50 the last one runs"),
        pytest.param(3, [F, R, R], "Running", id="C50 one has failed"),
        pytest.param(3, [S, S, P], "Scheduling", id="C50 one waits"),
        pytest.param(5, [R] * 5 + [P] * 5, "Running", id="C99 more than the minimum"),
        pytest.param(3, [S, S, "Unknown"], "Scheduling", id="nobody knows what became of one"),
    ],
)
def test_the_phase_tells_where_the_members_are(minimum: int, phases: list[str], phase: str) -> None:
    """Cases C41, C46 to C50: and the group is kept in all of them."""
    after = settle(state(*members(*phases, size=str(minimum)), group=made(minimum)))
    assert after is not None
    assert after.status.phase == phase
    assert after.status.running == phases.count(R)
    assert after.status.succeeded == phases.count(S)
    assert after.status.failed == phases.count(F)


@pytest.mark.parametrize("micros", [0, 5])
def test_times_have_six_digits_also_where_they_are_zero(micros: int) -> None:
    """Case C42."""
    moment = NOW.replace(microsecond=micros)
    after = settle(replace(state(*members(P)), joined=moment), moment)
    assert after is not None
    assert after.status.creation_time == f"2024-02-18T01:02:03.{micros:06}Z"


def test_a_group_of_somebody_else_is_stamped_too() -> None:
    """Case C42: the queue has an order for every group."""
    after = settle(state(group=made(ours=False)))
    assert after is not None
    assert after.status.creation_time == STAMP
    assert after.status.phase == "Pending"


def test_a_group_that_is_older_than_we_are_gets_its_real_age() -> None:
    """First come, first served also for groups that were made while nobody was there to stamp them."""
    after = settle(state(group=made(ours=False, creation_timestamp="2024-02-17T23:00:00Z")))
    assert after is not None
    assert after.status.creation_time == "2024-02-17T23:00:00.000000Z"


def test_the_start_of_scheduling_is_when_the_last_member_came() -> None:
    """Design.md section 1: `scheduleStartTime`, though the status is written a moment later."""
    early = settle(state(*members(P, P)))
    assert early is not None
    assert early.status.schedule_start_time is None
    joined, later = NOW + dt.timedelta(seconds=1), NOW + dt.timedelta(seconds=1.2)
    complete = replace(state(*members(P, P, P), group=early), joined=joined)
    after = settle(complete, later)
    assert after is not None
    assert after.status.schedule_start_time == "2024-02-18T01:02:04.000005Z"
    again = settle(replace(complete, group=after, joined=later), later)
    assert again is not None
    assert again.status.schedule_start_time == "2024-02-18T01:02:04.000005Z"


def test_a_group_of_one_is_complete_when_it_is_made() -> None:
    """The stamps keep their order although the pod was there before its group."""
    before = NOW - dt.timedelta(seconds=1)
    after = settle(replace(state(*members(P, size="1")), joined=before))
    assert after is not None
    assert after.status.schedule_start_time == after.status.creation_time == STAMP


@pytest.mark.parametrize("phases", [[S, S, S], [S, S, F], [F, F, F]])
@pytest.mark.parametrize(
    "owner",
    [
        pytest.param(None, id="bare pods"),
        pytest.param(job(OwnerState.FINISHED), id="a Job that is complete or failed"),
        pytest.param(job(OwnerState.DELETED), id="a Job that is deleted"),
        pytest.param(Owner(reference("Workflow"), OwnerState.UNKNOWN), id="a kind that nobody counts"),
    ],
)
def test_a_group_goes_when_its_members_are_done(phases: list[str], owner: Owner | None) -> None:
    """Case C49, also after the controller was away meanwhile."""
    whole = state(*members(*phases, owner=owner), group=made(3, status=PodGroupStatus("Running", running=3)))
    assert plan(whole, NOW).delete
    assert plan(replace(whole, group=None), NOW).is_done


@pytest.mark.parametrize(
    ("phases", "owner"),
    [
        pytest.param([S, S, R], None, id="C50 one runs"),
        pytest.param([S, S, P], None, id="C50 one waits"),
        pytest.param([S, S, "Unknown"], None, id="nobody knows what one does"),
        pytest.param([S, S], None, id="fewer than the minimum"),
        pytest.param([S, S, S], job(completions=10), id="C55 seven more are to come"),
        pytest.param([S, F, F], job(completions=3), id="C56 the failed ones are replaced"),
        pytest.param([S, S, S], job(), id="a Job that ends when it wants to"),
        pytest.param([S, S, S], job(OwnerState.SUSPENDED), id="a Job that is suspended"),
        pytest.param([], job(), id="between two pods of a Job"),
    ],
)
def test_a_group_stays_while_more_may_happen(phases: list[str], owner: Owner | None) -> None:
    """Cases C50, C55 and C56."""
    whole = state(*members(*phases, owner=owner), group=made(3), owners=(owner,) if owner else ())
    assert not plan(whole, NOW).delete


def test_a_job_is_over_when_its_pods_say_so() -> None:
    """Case C49: the Job's own status follows a moment later."""
    whole = state(*members(S, S, S, F, owner=job(completions=3)), group=made(3))
    assert plan(whole, NOW).delete


@pytest.mark.parametrize("owner_state", [p for p in OwnerState if p is not OwnerState.ACTIVE])
def test_a_group_without_pods_goes_when_nobody_makes_any(owner_state: OwnerState) -> None:
    """Rule A6, case C59: also when the pods vanished before anybody counted them."""
    assert plan(state(group=made(3), owners=(job(owner_state),)), NOW).delete
    assert plan(state(group=made(3)), NOW).delete


@pytest.mark.parametrize("phases", [[], [S, S, S], [F, F, F]])
def test_no_group_is_made_without_a_pod_that_is_live(phases: list[str]) -> None:
    """Cases C15, C30 and C49: pods of other schedulers are no members at all (see test_cache)."""
    assert plan(state(*members(*phases)), NOW).is_done


def test_no_group_is_made_for_pods_that_are_going() -> None:
    """Case C63, and pods whose owner is gone: the garbage collector is on its way."""
    assert plan(state(*members(P, P, P, deleting=True)), NOW).is_done
    assert plan(state(*members(P, P, P, owner=job(OwnerState.DELETED))), NOW).is_done


def test_a_group_that_is_being_deleted_is_left_alone() -> None:
    """It is made again once it is gone, if there is a need."""
    going = made(3, deletion_timestamp="2024-02-18T01:02:04Z")
    assert plan(state(*members(P, P, P), group=going), NOW).is_done


def test_phase_at_the_end_of_what_others_made() -> None:
    """Rule A6: never deleted, so that the end can be seen."""
    for phases, phase in (([S, S, S], "Finished"), ([S, S, F], "Failed"), ([F, F, F], "Failed")):
        after = settle(state(*members(*phases), group=made(3, ours=False)))
        assert after is not None
        assert after.status.phase == phase


@pytest.mark.parametrize("kind", ["Job", "MPIJob"])
@pytest.mark.parametrize("phases", [[S], [S, F], []])
def test_a_group_goes_once_its_owner_has_succeeded(kind: str, phases: list[str]) -> None:
    """Rule A6, case N20: a success policy, or workers that are cleaned up, leave too few pods."""
    owner = Owner(reference(kind), OwnerState.FINISHED, 3, has_succeeded=True)
    whole = state(*members(*phases, owner=owner), group=made(3), owners=(owner,))
    assert plan(whole, NOW).delete
    theirs = settle(replace(whole, group=made(3, ours=False)))
    assert theirs is not None
    assert theirs.status.phase == ("Finished" if phases else "Pending")


def test_a_group_whose_owner_has_succeeded_stays_while_a_member_runs() -> None:
    """Rule A6, case N20: parameter servers that still run when a TFJob is done."""
    owner = Owner(reference("TFJob"), OwnerState.FINISHED, 3, has_succeeded=True)
    after = settle(state(*members(S, R, owner=owner), group=made(3), owners=(owner,)))
    assert after is not None
    assert after.status.phase == "Finished"


def test_one_owner_that_has_succeeded_does_not_end_the_work_of_another() -> None:
    """Rule A6: two workloads with the same label share a group."""
    one = Owner(reference("Job", "one"), OwnerState.FINISHED, 3, has_succeeded=True)
    other = job(name="two")
    whole = state(*members(S, owner=one), Member(pod("q", owner=other.reference), other), group=made(3))
    after = settle(whole)
    assert after is not None
    assert after.status.phase == "Pending"


def test_a_job_that_gave_up_early_leaves_a_failed_group() -> None:
    """Rule A6 keeps it until the Job is deleted, and its phase says how it ended."""
    after = settle(state(*members(F, owner=job(OwnerState.FINISHED)), group=made(3)))
    assert after is not None
    assert after.status.phase == "Failed"


def test_a_group_that_another_controller_keeps_is_left_alone() -> None:
    """Two controllers that correct each other's status would never stop."""
    theirs = made(3, ours=False, status=PodGroupStatus("Running", running=3))
    assert plan(state(group=theirs), NOW).is_done
    assert plan(replace(state(group=theirs), had_members=True), NOW).status == {
        "phase": "Pending",
        "running": 0,
        "succeeded": 0,
        "failed": 0,
        "creationTime": STAMP,
    }


def test_conditions_are_never_written() -> None:
    """They are the scheduler's."""
    todo = plan(state(*members(R, R, R), group=made(3)), NOW)
    times = {"creationTime", "scheduleStartTime"}
    assert set(todo.status or {}) == {"phase", "running", "succeeded", "failed", *times}


def test_only_what_changed_is_written() -> None:
    """Design.md section 3. The first write also says that there are none of a kind, for `kubectl get`."""
    first = settle(state(*members(P, P, P)))
    todo = plan(state(*members(R, P, P), group=first), NOW)
    assert todo.status == {"running": 1}


# Owners


def test_a_group_is_owned_by_the_workloads_of_its_members() -> None:
    """Design.md section 1: so that it goes with them, whoever is away."""
    one, other = job(name="one"), job(name="two")
    whole = state(*members(P, owner=one), Member(pod("q", size="3", owner=other.reference), other))
    create = plan(whole, NOW).create
    assert create is not None
    assert [owner.name for owner in create.owners] == ["one", "two"]


def test_a_workload_that_joins_later_becomes_an_owner_too() -> None:
    """Else the group would go with the first one, under the pods of the second (case C98)."""
    first = OwnerReference("Job", "one", "uid-one", "batch/v1", controller=False)
    todo = plan(state(*members(P, owner=job(name="two")), group=made(3, owner_references=(first,))), NOW)
    assert todo.update is not None
    assert [owner.uid for owner in todo.update.owners] == ["uid-one", "uid-two"]


def test_a_pod_owns_its_group_only_if_it_is_a_gang_alone() -> None:
    """Else the group would vanish with its first pod."""
    alone, several = plan(state(*members(P, size="1")), NOW).create, plan(state(*members(P)), NOW).create
    assert alone is not None
    assert several is not None
    assert [(owner.kind, owner.name) for owner in alone.owners] == [("Pod", "p0")]
    assert several.owners == ()


def test_a_pod_stops_owning_a_group_that_has_grown() -> None:
    """The same, when the size was changed later."""
    owner = OwnerReference("Pod", "p0", "uid-p0", "v1", controller=False)
    todo = plan(state(*members(P, size="2"), group=made(1, owner_references=(owner,))), NOW)
    assert todo.update is not None
    assert (todo.update.min_member, todo.update.owners) == (2, ())


def test_orphans_keep_their_group() -> None:
    """Case C61: the Job is deleted alone, and its pods run on."""
    group = made(3)
    assert plan(state(*members(R, R, R), group=group), NOW).update is None
    assert apply(plan(state(*members(S, S, S), group=group), NOW), group) is None


def test_the_occupants_are_named() -> None:
    """As scheduler-plugins writes them."""
    after = settle(state(*members(P, owner=job(name="b")), *_more_of(job(name="a"))))
    assert after is not None
    assert after.status.occupied_by == "ns/a,ns/b"


def _more_of(owner: Owner) -> tuple[Member, ...]:
    return (Member(pod("q", size="3", owner=owner.reference), owner),)


def test_the_key_names_the_group_within_its_namespace() -> None:
    """Case C54."""
    assert GroupState(KEY).name == "g"
