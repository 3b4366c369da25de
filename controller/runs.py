"""When a run of a group begins and ends, and which pods are given the mark of the present one: pure.

A run is one PodGroup object. Owns: which pods a new PodGroup is made for, when a run ends because another
workload took the place of its owners, and which bound pods get the run's mark. Does not own: the membership
rule (`groups.membership`), or when the work of a run is over (`controller.plan`).
"""

from __future__ import annotations

from collections.abc import Iterable

from controller.members import GroupState, Member
from controller.owners import OwnerState
from controller.pods import Pod
from groups.contract import OWNER_UIDS_ANNOTATION, RUN_ANNOTATION
from groups.objects import OwnerReference
from groups.podgroup import PodGroup


def founders(state: GroupState) -> tuple[Member, ...]:
    """The pods that a new PodGroup is made for, empty where none is made now.

    Pods that wait, and running pods whose owner still makes pods: somebody deleted their PodGroup, and their
    replacements need one. Left-overs of an earlier run make no group.
    """
    if any(one.pod.is_waiting and not one.is_live for one in state.labelled):
        # The garbage collector is about to delete them. A group made now would take them for its members.
        return ()
    return tuple(one for one in state.labelled if one.is_live and (one.pod.is_waiting or _is_of_active(one)))


def _is_of_active(member: Member) -> bool:
    return member.owner is not None and member.owner.state is OwnerState.ACTIVE


def is_replaced(state: GroupState, group: PodGroup) -> bool:
    """Whether no owner of the group is left, and a pod of another workload waits under its name.

    An owner is left behind too: `kubectl delete --cascade=orphan` removes it from the owner references, while
    the annotation still names it.
    """
    references = group.metadata.owner_references or ()
    known = recorded_owners(group) | {one.uid for one in references}
    if not known or any(_exists(one, state) for one in references):
        return False
    return any(
        one.pod.is_waiting
        and one.is_live
        and (one.owner.uid if one.owner else one.pod.metadata.uid) not in known
        for one in state.labelled
    )


def _exists(reference: OwnerReference, state: GroupState) -> bool:
    if is_pod(reference):
        return any(
            one.pod.metadata.uid == reference.uid and not one.pod.is_deleting for one in state.labelled
        )
    # The uid of an owner is that of the object behind the reference, which may be another one.
    found = state.owners.get(reference.uid)
    return found is None or not found.is_deleted


def recorded_owners(group: PodGroup) -> frozenset[str]:
    """The workloads that the controller has written as owners last."""
    return frozenset(filter(None, group.metadata.annotation(OWNER_UIDS_ANNOTATION).split(",")))


def unmarked(state: GroupState, group: PodGroup) -> tuple[Pod, ...]:
    """The pods that shall get the mark of this run.

    An older version bound them without one, and the scheduler cannot see that the ReplicaSet that controls
    them belongs to the Deployment that owns the group. Or they run for a workload that is still the group's
    owner, but somebody deleted the PodGroup that they were bound for.
    """
    named = {one.uid for one in group.metadata.owner_references or ()}
    return tuple(one.pod for one in state.labelled if _needs_mark(one, state.run_uid, named))


def _needs_mark(member: Member, run_uid: str, named: Iterable[str]) -> bool:
    pod, owner = member.pod, member.owner
    if not pod.node_name or pod.is_deleting or owner is None or owner.is_deleted or owner.uid not in named:
        return False
    mark, controller = pod.metadata.annotation(RUN_ANNOTATION), pod.metadata.controller
    if not mark:
        return controller is not None and controller.uid not in named
    return mark != run_uid and owner.state is OwnerState.ACTIVE and pod.phase != "Failed"


def is_pod(owner: OwnerReference) -> bool:
    """Whether a PodGroup is owned by a bare pod."""
    return owner.kind == "Pod" and owner.api_version == "v1"
