"""What is wrong with the labels of pods that are there already: pure.

Owns: rule A4 for pods that admission did not see, and sizes that differ within a group (A7). Does not own:
writing events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from controller.members import GroupState
from controller.pods import Pod
from controller.sizes import oldest_first, size_of, stated_size
from groups.contract import GROUP_LABEL, SIZE_LABEL, EventReason, check_group_name
from groups.errors import ContractError


@dataclass(frozen=True)
class Mistake:
    """A mistake that the user of a pod must be told by an event."""

    pod: Pod
    reason: EventReason
    note: str


def mistakes(state: GroupState) -> Iterator[Mistake]:
    """What is wrong with the labels of members that still wait or run."""
    for one in state.members:
        if not one.pod.is_finished and (found := mistake_of(one.pod)):
            yield found
    yield from _other_sizes(state)


def mistake_of(pod: Pod) -> Mistake | None:
    """What is wrong with the labels of a pod; empty ones are absent ones (case C04)."""
    if name := pod.metadata.label(GROUP_LABEL):
        try:
            check_group_name(name)
        except ContractError as error:
            return Mistake(pod, EventReason.INVALID_GROUP_NAME, str(error))
    try:
        stated_size(pod)
    except ContractError as error:
        return Mistake(pod, EventReason.INVALID_GROUP_SIZE, str(error))
    return None


def _other_sizes(state: GroupState) -> Iterator[Mistake]:
    """Members whose size is not that of the oldest one (rule A7)."""
    sizes = [(one, size) for one in oldest_first(state.members) if (size := size_of(one)) is not None]
    for one, size in sizes:
        oldest, counts = sizes[0]
        if size != counts:
            yield Mistake(
                one.pod,
                EventReason.GROUP_SIZE_DIFFERS,
                f'{SIZE_LABEL}: this pod asks for a group of {size}, but group "{state.name}" has '
                f'minMember {counts} from its oldest member "{oldest.pod.metadata.name}". '
                "Give all members of a group the same size",
            )
