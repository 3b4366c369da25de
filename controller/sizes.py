"""How many members a group needs, from the labels of its pods and the objects behind them: pure.

Owns: rules A3, A7 and A8 as far as they concern pods that exist already. Does not own: how a workload is
counted (`groups.workloads.sizing`), or what users are told (`controller.mistakes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.members import Member
from controller.pods import Pod
from groups.contract import (
    GROUP_LABEL,
    MIN_MEMBER_ANNOTATION,
    SIZE_FROM_ANNOTATION,
    SIZE_FROM_RULE,
    SIZE_LABEL,
    parse_group_size,
)
from groups.errors import ContractError
from groups.podgroup import PodGroup


def stated_size(pod: Pod) -> int | None:
    """The size on the pod's label, None where it has none; ContractError where it is no size (A4)."""
    label = pod.metadata.label(SIZE_LABEL)
    return parse_group_size(label) if label else None


def size_of(member: Member) -> int | None:
    """The size that a member asks for, None where nothing tells.

    The label counts where the user wrote it. Where a rule counted it, or it is missing, the owner's present
    count does; the label's number then stands in for an owner that nobody counts.
    """
    try:
        stated = stated_size(member.pod)
    except ContractError:
        return None
    group = member.pod.metadata.label(GROUP_LABEL)
    counted = member.owner.members_of(group) if member.owner is not None else None
    is_users = member.pod.metadata.annotation(SIZE_FROM_ANNOTATION) != SIZE_FROM_RULE
    if stated is not None and (is_users or counted is None):
        return stated
    return counted


def oldest_first(members: Iterable[Member]) -> list[Member]:
    """The members that wait or run, by age and then by name."""
    return sorted(
        (one for one in members if one.is_live),
        key=lambda one: (one.pod.metadata.creation_timestamp, one.pod.metadata.name),
    )


def min_member(members: Sequence[Member], group: PodGroup | None) -> int:
    """The minMember that a group of ours shall have.

    The oldest live member decides, so that a pod that joins later with another size changes nothing. Once a
    member is bound the number only falls: members that are added later are placed one at a time (A5), and a
    higher minimum would hold them up. A number that somebody else wrote into the PodGroup stays (A3).
    """
    present = group.spec.min_member if group is not None else None
    if group is not None and present is not None and is_changed_by_others(group):
        return present
    sizes = (size_of(one) for one in oldest_first(members))
    wanted = next((size for size in sizes if size is not None), None)
    if wanted is None:
        return present or 1
    has_started = any(one.pod.node_name or one.pod.is_finished for one in members)
    return min(present, wanted) if present is not None and has_started else wanted


def is_changed_by_others(group: PodGroup) -> bool:
    """Whether somebody else changed the minMember that the controller wrote."""
    ours = group.metadata.annotation(MIN_MEMBER_ANNOTATION)
    return bool(ours) and ours != str(group.spec.min_member)
