"""Membership by run: what an earlier PodGroup of the same name left behind counts for nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.members import GroupState, Member, count
from controller.owners import Owner, OwnerState
from controller.plan import DeleteReason, plan
from groups.contract import RUN_ANNOTATION
from groups.objects import OwnerReference
from groups.podgroup import PodGroup
from tests.controller.builders import NOW, job, made, members, pod, reference, settle, settled, state

R, P, S, F = "Running", "Pending", "Succeeded", "Failed"
OLD = job(OwnerState.DELETED, uid="uid-old")
NEW = job(uid="uid-new")


def owned_by(*owners: Owner, minimum: int = 3, ours: bool = True) -> PodGroup:
    """A PodGroup that the controller wrote for these owners."""
    references = tuple(owner.reference for owner in owners)
    return made(minimum, ours=ours, owner_references=references, recorded={one.uid for one in owners})


def waiting(owner: Owner | None = NEW, name: str = "new", size: str = "3") -> Member:
    """A pod of the new run."""
    return Member(pod(name, size=size, owner=owner.reference if owner else None), owner)


LEFT_OVERS = {
    "succeeded": members(S, S, S, owner=OLD, run="uid-before"),
    "succeeded, without a mark": members(S, S, S, owner=OLD, run=None),
    "terminating": members(R, R, R, owner=OLD, run="uid-before", deleting=True),
    "failed bare pods": members(F, F, F, run="uid-before"),
    "failed bare pods, without a mark": members(F, F, F, run=None),
    "orphans that run": members(R, R, R, run="uid-before"),
}


@pytest.mark.parametrize("before", LEFT_OVERS.values(), ids=LEFT_OVERS.keys())
def test_left_overs_of_an_earlier_run_count_for_nothing(before: tuple[Member, ...]) -> None:
    """Membership: neither in counts and phase, nor for the size, the end, or a new group."""
    after = settle(state(*before, waiting(), group=owned_by(NEW), owners=(NEW,)))
    assert after is not None
    assert after.status.phase == "Pending"
    assert (after.status.running, after.status.succeeded, after.status.failed) == (0, 0, 0)
    assert after.status.occupied_by == "ns/train"
    assert plan(state(*before), NOW).is_done
    created = plan(state(*before, waiting(size="7")), NOW).create
    assert created is not None
    assert created.min_member == 7
    assert [owner.uid for owner in created.owners] == ["uid-new"]


def test_a_group_made_for_pods_of_an_earlier_one_stays() -> None:
    """Case C53: somebody deleted the PodGroup of running pods. The pods get the mark of the new one."""
    after = settled(state(*members(R, R, R, owner=NEW, run="uid-before")))
    assert after.group is not None
    assert [one.pod.metadata.annotation(RUN_ANNOTATION) for one in after.labelled] == ["uid-g"] * 3


def test_a_group_whose_owner_was_not_looked_up_yet_stays() -> None:
    """Rule A6: whether that owner makes more pods is not known."""
    assert plan(state(group=owned_by(NEW)), NOW).delete is None
    assert plan(state(group=owned_by(NEW), owners=(OLD,)), NOW).delete is None
    assert plan(state(group=owned_by(OLD), owners=(OLD,)), NOW).delete is DeleteReason.WORK_IS_OVER


def test_a_group_of_left_overs_alone_is_deleted() -> None:
    """Rule A6: its run has no pods, and nobody makes any."""
    left = members(S, F, R, owner=OLD, run="uid-before", deleting=True)
    assert plan(state(*left, group=owned_by(OLD), owners=(OLD,)), NOW).delete is DeleteReason.WORK_IS_OVER


# A new run


def test_a_group_whose_owner_was_replaced_is_made_anew() -> None:
    """Case C53: deleted and applied again at once, before the garbage collector has come."""
    group = owned_by(OLD)
    whole = state(*members(R, R, R, owner=OLD, deleting=True), waiting(), group=group, owners=(OLD,))
    assert plan(whole, NOW).delete is DeleteReason.OWNER_REPLACED
    created = plan(replace(whole, group=None), NOW).create
    assert created is not None
    assert [owner.uid for owner in created.owners] == ["uid-new"]


def test_a_group_whose_pods_were_orphaned_is_made_anew_for_the_next_workload() -> None:
    """`kubectl delete --cascade=orphan` takes the owner away from pods and PodGroup; the record stays."""
    group = made(3, recorded=[OLD.uid])
    orphans = members(R, R, R)
    assert plan(state(*orphans, group=group), NOW).delete is None
    assert plan(state(*orphans, waiting(), group=group), NOW).delete is DeleteReason.OWNER_REPLACED


def test_the_record_of_orphaned_owners_is_kept() -> None:
    """Else the next workload of the name could not be told from a new member."""
    after = settle(state(*members(R, R, R), group=made(3, recorded=[OLD.uid])))
    assert after is not None
    assert after.metadata.annotations == made(3, recorded=[OLD.uid]).metadata.annotations


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(
            state(*members(R, R, R, owner=NEW), waiting(), group=owned_by(NEW), owners=(NEW,)),
            id="a replacement of the same workload",
        ),
        pytest.param(
            state(waiting(), waiting(job(name="two"), "q"), group=owned_by(NEW), owners=(NEW,)),
            id="a second workload with the same label",
        ),
        pytest.param(
            state(waiting(), group=owned_by(OLD, NEW), owners=(OLD, NEW)), id="one of two owners is left"
        ),
        pytest.param(state(*members(P, P), waiting(), group=made(3)), id="bare pods that a Job joins"),
        pytest.param(
            state(*members(R, R, R, owner=OLD), group=owned_by(OLD), owners=(OLD,)), id="nobody waits"
        ),
        pytest.param(
            state(waiting(), group=owned_by(OLD, ours=False), owners=(OLD,)), id="a PodGroup of the user"
        ),
    ],
)
def test_a_group_is_kept_while_an_owner_is_left_or_nobody_takes_its_place(whole: GroupState) -> None:
    """Rule A6, case C61. A PodGroup that we did not make is never deleted."""
    assert plan(whole, NOW).delete is None


def test_a_bare_pod_that_comes_again_gets_a_group_of_its_own() -> None:
    """A gang of one is owned by its pod: another pod of the same name is another run."""
    before = OwnerReference("Pod", "p", "uid-before", "v1")
    whole = state(waiting(None, "p", "1"), group=made(1, owner_references=(before,)))
    assert plan(whole, NOW).delete is DeleteReason.OWNER_REPLACED


def test_no_group_is_made_while_the_old_pods_still_wait() -> None:
    """Case C53: they are about to be collected, and a new PodGroup would take them for its members."""
    old = Member(pod("old", owner=OLD.reference), OLD)
    assert plan(state(old, waiting()), NOW).create is None
    assert plan(state(waiting()), NOW).create is not None


# Marks


def test_a_bound_pod_of_the_groups_deployment_is_marked_once() -> None:
    """The scheduler cannot see that its ReplicaSet belongs to the Deployment that owns the group."""
    web = Owner(reference("Deployment", "web"), OwnerState.ACTIVE, 2)
    replica_set = reference("ReplicaSet", "web-5d4f")
    one = Member(pod("a", R, size="2", owner=replica_set, run=None), web)
    whole = state(one, group=owned_by(web, minimum=2), owners=(web,))
    assert plan(whole, NOW).marks == (one.pod,)
    after = settled(whole)
    assert [each.pod.metadata.annotation(RUN_ANNOTATION) for each in after.labelled] == ["uid-g"]
    assert count(after.members).running == 1


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(members(P, owner=NEW)[0], id="it waits"),
        pytest.param(members(R, owner=NEW, run=None)[0], id="the scheduler sees its owner"),
        pytest.param(members(R, run=None)[0], id="nobody controls it"),
        pytest.param(members(R, owner=OLD, run=None)[0], id="its owner is deleted"),
        pytest.param(members(R, owner=OLD, run="uid-before")[0], id="it is of an earlier run"),
        pytest.param(members(R, owner=job(name="other"), run="uid-before")[0], id="of another workload"),
        pytest.param(members(F, owner=NEW, run="uid-before")[0], id="it failed in an earlier run"),
        pytest.param(members(R, owner=NEW, run="uid-before", deleting=True)[0], id="it is being deleted"),
    ],
)
def test_pods_that_get_no_mark(one: Member) -> None:
    """Only what counts for this run, and is not seen to, is marked."""
    assert plan(state(one, group=owned_by(NEW), owners=(NEW,)), NOW).marks == ()


def test_running_pods_whose_podgroup_was_deleted_become_members_of_the_next() -> None:
    """Somebody deleted it by hand: else their replacements would wait for the whole number for ever."""
    after = settled(state(*members(R, R, R, owner=NEW, run="uid-deleted"), owners=(NEW,)))
    assert after.group is not None
    assert (after.group.status.running, after.group.status.phase) == (3, "Running")


def test_pods_of_a_users_podgroup_count_by_mark_or_owner() -> None:
    """Membership: such a group is never deleted, so that nothing else tells its runs apart."""
    theirs = made(3, ours=False)
    after = settle(state(*members(S, R), *members(S, S, S, run="uid-before"), group=theirs))
    assert after is not None
    assert (after.status.running, after.status.succeeded) == (1, 1)
