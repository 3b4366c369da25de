"""How many members a group needs, from the labels of its pods or the objects behind them: pure.

Owns: rules A3, A4 and A8 as far as they concern pods that exist already. Does not own: how a workload is
counted (`groups.workloads.sizing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from controller.members import GroupState, Member
from controller.objects import Pod
from groups.contract import (
    GROUP_LABEL,
    MIN_MEMBER_ANNOTATION,
    SIZE_LABEL,
    EventReason,
    check_group_name,
    parse_group_size,
)
from groups.errors import ContractError
from groups.podgroup import PodGroup


@dataclass(frozen=True)
class Complaint:
    """A mistake in a pod that got past admission: its user has to hear of it (A4)."""

    pod: Pod
    reason: EventReason
    note: str


def complaints(state: GroupState) -> Iterator[Complaint]:
    """What is wrong with the labels of members that still wait or run."""
    for one in state.members:
        if not one.pod.is_finished and not one.pod.is_going and (found := complaint_of(one.pod)):
            yield found


def complaint_of(pod: Pod) -> Complaint | None:
    """What is wrong with the labels of a pod; empty ones are absent ones (case C04)."""
    if name := pod.metadata.label(GROUP_LABEL):
        try:
            check_group_name(name)
        except ContractError as error:
            return Complaint(pod, EventReason.INVALID_GROUP_NAME, str(error))
    try:
        _stated(pod)
    except ContractError as error:
        return Complaint(pod, EventReason.INVALID_GROUP_SIZE, str(error))
    return None


def is_sound(member: Member) -> bool:
    """Whether a group may be made for this member: its size, where it states one, is a size."""
    return complaint_of(member.pod) is None


def _stated(pod: Pod) -> int | None:
    label = pod.metadata.label(SIZE_LABEL)
    return parse_group_size(label) if label else None


def min_member(members: Sequence[Member], group: PodGroup | None) -> int:
    """The minMember that a group of ours shall have.

    The newest live member that states a size decides: it speaks for the latest version of its workload
    (case C53). Where none does, its owner is counted (A8). Members that have ended or are about to be
    taken away decide nothing, and neither do we once somebody else has changed what we wrote.
    """
    present = group.spec.min_member if group is not None else None
    if group is not None and present is not None and _is_changed_by_others(group):
        return present
    for one in _newest_first(members):
        if is_sound(one) and (stated := _stated(one.pod)) is not None:
            return stated
    for one in _newest_first(members):
        if one.owner is not None and one.owner.members is not None:
            return _counted(one.owner.members, members, present)
    return present or 1


def _counted(wanted: int, members: Iterable[Member], present: int | None) -> int:
    """Follow the owner's count; once the group has started only downwards.

    Members that an owner asks for later come one by one (A5): a higher minimum would hold them up.
    """
    has_started = any(one.pod.spec.node_name or one.pod.is_finished for one in members)
    return min(present, wanted) if present is not None and has_started else wanted


def _newest_first(members: Iterable[Member]) -> list[Member]:
    return sorted(
        (one for one in members if one.can_start),
        key=lambda one: (one.pod.metadata.creation_timestamp, one.pod.metadata.name),
        reverse=True,
    )


def _is_changed_by_others(group: PodGroup) -> bool:
    ours = group.metadata.annotation(MIN_MEMBER_ANNOTATION)
    return bool(ours) and ours != str(group.spec.min_member)
