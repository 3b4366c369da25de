"""Phases, times, making and deleting of groups: the edges, one row each."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import msgspec
import pytest

from controller.members import GroupState, Member
from controller.owners import Owner, Prospect
from controller.plan import plan
from groups.contract import SIZE_LABEL, EventReason
from groups.objects import Key, OwnerReference
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
    after = settle(state(*members(*phases, size=str(minimum))))
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
        pytest.param(job(Prospect.OVER), id="a Job that is complete or failed"),
        pytest.param(job(Prospect.GONE), id="a Job that is deleted"),
        pytest.param(Owner(reference("Workflow"), Prospect.UNKNOWN), id="a kind that nobody counts"),
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
        pytest.param([S, S, S], job(Prospect.PAUSED), id="a Job that is suspended"),
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


@pytest.mark.parametrize("prospect", [p for p in Prospect if p is not Prospect.MORE])
def test_a_group_without_pods_goes_when_nobody_makes_any(prospect: Prospect) -> None:
    """Rule A6, case C59: also when the pods vanished before anybody counted them."""
    assert plan(state(group=made(3), owners=(job(prospect),)), NOW).delete
    assert plan(state(group=made(3)), NOW).delete


@pytest.mark.parametrize("phases", [[], [S, S, S], [F, F, F]])
def test_no_group_is_made_without_a_pod_that_can_start(phases: list[str]) -> None:
    """Cases C15, C30 and C49: pods of other schedulers are no members at all (see test_cache)."""
    assert plan(state(*members(*phases)), NOW).is_done


def test_no_group_is_made_for_pods_that_are_going() -> None:
    """Case C63, and pods whose owner is gone: the garbage collector is on its way."""
    assert plan(state(*members(P, P, P, going=True)), NOW).is_done
    assert plan(state(*members(P, P, P, owner=job(Prospect.GONE))), NOW).is_done


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


def test_a_job_that_gave_up_early_leaves_a_failed_group() -> None:
    """Rule A6 keeps it until the Job is deleted, and its phase says how it ended."""
    after = settle(state(*members(F, owner=job(Prospect.OVER)), group=made(3)))
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


# Sizes


def test_the_newest_member_that_states_a_size_decides() -> None:
    """Case C53: what an older run left behind does not speak for the new one."""
    old = Member(pod("z-old", size="2", created="2024-02-18T01:00:00Z"))
    new = Member(pod("a-new", size="3", created="2024-02-18T01:00:01Z"))
    bare = Member(pod("b-bare", created="2024-02-18T01:00:02Z"))
    create = plan(state(new, old, bare), NOW).create
    assert create is not None
    assert create.min_member == 3


def test_members_without_a_size_are_counted_by_their_owner() -> None:
    """Rule A8."""
    create = plan(state(*members(P, size=None, owner=job(members=4))), NOW).create
    assert create is not None
    assert create.min_member == 4


def test_members_that_nobody_counts_are_gangs_of_one() -> None:
    """Rule A8."""
    create = plan(state(*members(P, size=None)), NOW).create
    assert create is not None
    assert create.min_member == 1


@pytest.mark.parametrize(("node", "minimum"), [("", 6), ("a", 3)])
def test_a_counted_group_that_has_started_does_not_ask_for_more(node: str, minimum: int) -> None:
    """Rule A5: members that come later are placed one by one."""
    whole = state(*members(P, P, P, size=None, owner=job(members=6), node=node), group=made(3))
    todo = plan(whole, NOW)
    assert (todo.update.min_member if todo.update else 3) == minimum


def test_a_counted_group_never_asks_for_more_than_its_owner_wants() -> None:
    """Case C119."""
    todo = plan(state(*members(R, size=None, owner=job(members=1), node="a"), group=made(3)), NOW)
    assert todo.update is not None
    assert todo.update.min_member == 1


def test_a_minimum_that_the_user_changed_is_kept() -> None:
    """Rule A3: the user wins, also over a group that we made."""
    group = msgspec.structs.replace(made(3), spec=msgspec.structs.replace(made(3).spec, min_member=2))
    todo = plan(state(*members(P, P, P, size="3"), group=group), NOW)
    assert todo.update is None
    assert todo.status is not None
    assert todo.status["phase"] == "Scheduling"


@pytest.mark.parametrize("size", ["abc", "0", "-1", "1.5", "2147483648", "007"])
def test_a_bad_size_is_told_and_no_group_is_made_of_it(size: str) -> None:
    """Case C04: a pod that got past the webhook."""
    todo = plan(state(*members(P, P, size=size)), NOW)
    assert todo.create is None
    assert [one.reason for one in todo.complaints] == [EventReason.INVALID_GROUP_SIZE] * 2
    assert SIZE_LABEL in todo.complaints[0].note
    assert f'"{size}"' in todo.complaints[0].note
    assert "positive integer" in todo.complaints[0].note


def test_a_bad_size_does_not_spoil_the_group_of_the_others() -> None:
    """The sound members make the group, the other one is told about."""
    bad = Member(pod("z", size="abc", created="2024-02-18T09:00:00Z"))
    todo = plan(state(*members(P, P, size="3"), bad), NOW)
    assert todo.create is not None
    assert todo.create.min_member == 3
    assert [one.pod.metadata.name for one in todo.complaints] == ["z"]


def test_a_bad_group_name_is_told() -> None:
    """Rule A4: a legal label value need not be a legal name."""
    one = Member(pod("a", size="1", group="My_Group"))
    todo = plan(GroupState(Key("ns/My_Group"), None, (one,)), NOW)
    assert todo.create is None
    assert [one.reason for one in todo.complaints] == [EventReason.INVALID_GROUP_NAME]
    assert "My_Group" in todo.complaints[0].note


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
