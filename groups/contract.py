"""The words that Fluence shares with users and other programs: keys, phases, reasons, and what is legal.

Owns: every key, phase and reason, and the checks of group names and sizes (`docs/contract.md`). Does not own:
how a default name is made (`groups.names`), what a workload looks like (`groups.workloads`), or any input and
output.
"""

from __future__ import annotations

import enum
import re
from typing import Final

from groups.errors import ContractError

SCHEDULER_NAME: Final = "fluence"

GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
SIZE_LABEL: Final = "fluence.group-size"
ANNOTATION_PREFIX: Final = "fluence.flux-framework.org/"
#: On a PodGroup that our controller made; groups without it are never deleted nor their spec changed.
CREATED_BY_ANNOTATION: Final = ANNOTATION_PREFIX + "created-by"
CREATED_BY_CONTROLLER: Final = "fluence-controller"
#: On the same groups: the minMember that the controller wrote. A spec that says otherwise was changed by
#: the user, who wins (A3).
MIN_MEMBER_ANNOTATION: Final = ANNOTATION_PREFIX + "min-member"

#: On the same groups: the uids of the workloads that own the group, joined by commas. They stay when a
#: workload is deleted without its dependents, which removes it from the owner references.
OWNER_UIDS_ANNOTATION: Final = ANNOTATION_PREFIX + "owner-uids"

#: On a pod, copied by the API server from the Binding: the uid of the PodGroup that the pod was bound for.
RUN_ANNOTATION: Final = ANNOTATION_PREFIX + "pod-group-uid"
#: Beside a size label: a rule counted the size, so that the controller may follow the owner's present count.
SIZE_FROM_ANNOTATION: Final = ANNOTATION_PREFIX + "size-from"
SIZE_FROM_RULE: Final = "rule"
#: On a PodGroup: what happens when a group that once had its quorum falls below it and is not completed.
ON_STRANDED_ANNOTATION: Final = ANNOTATION_PREFIX + "on-stranded"

POD_GROUP_API: Final = "scheduling.x-k8s.io"
POD_GROUP_VERSION: Final = "v1alpha1"
POD_GROUP_API_VERSION: Final = f"{POD_GROUP_API}/{POD_GROUP_VERSION}"
POD_GROUP_PLURAL: Final = "podgroups"

#: A size is a positive int32 (rule SZ of the contract; minMember is an int32 in every PodGroup API).
MAX_GROUP_SIZE: Final = 2**31 - 1
MAX_LABEL_LENGTH: Final = 63

_SIZE = re.compile(r"[1-9][0-9]{0,9}")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Phase(enum.StrEnum):
    """Phases of a PodGroup (`status.phase`)."""

    PENDING = "Pending"
    SCHEDULING = "Scheduling"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    FINISHED = "Finished"
    FAILED = "Failed"


class Why(enum.StrEnum):
    """Why a group or pod is where it is: one word for log, event, condition and metric alike."""

    SCHEDULED = "Scheduled"
    WAITING_FOR_MEMBERS = "WaitingForMembers"
    WAITING_FOR_GROUP = "WaitingForPodGroup"
    SCHEDULING_GATED = "SchedulingGated"
    NOT_ENOUGH_ROOM = "NotEnoughRoom"
    NO_NODE_MATCHES = "NoNodeMatches"
    UNSUPPORTED_RULE = "UnsupportedRule"
    INVALID_GROUP_SIZE = "InvalidGroupSize"
    BIND_FAILED = "BindFailed"
    STRANDED = "Stranded"
    RELEASED = "Released"
    SCHEDULER_ERROR = "SchedulerError"


class OnStranded(enum.StrEnum):
    """Values of the annotation `on-stranded` (rule A5b)."""

    WAIT = "wait"
    RELEASE = "release"


class ConditionReason(enum.StrEnum):
    """Reasons of the pod condition `PodScheduled=False` (rule F1)."""

    UNSCHEDULABLE = "Unschedulable"
    SCHEDULER_ERROR = "SchedulerError"


#: The condition type that our scheduler keeps on a PodGroup; its reason is a `Why`.
GROUP_SCHEDULED_CONDITION: Final = "Scheduled"


class EventReason(enum.StrEnum):
    """Reasons of events on pods (rule E5); a gang that cannot be tried yet is told by its `Why`."""

    SCHEDULED = "Scheduled"
    FAILED_SCHEDULING = "FailedScheduling"
    INVALID_GROUP_SIZE = "InvalidGroupSize"
    INVALID_GROUP_NAME = "InvalidGroupName"
    GROUP_SIZE_DIFFERS = "GroupSizeDiffers"


def is_group_name(value: str) -> bool:
    """Whether `value` is legal both as a label value (rule W37) and as the name of a PodGroup."""
    return len(value) <= MAX_LABEL_LENGTH and _DNS_SUBDOMAIN.fullmatch(value) is not None


def check_group_name(value: str, key: str = GROUP_LABEL) -> str:
    """Return `value`, or raise ContractError with key, value and rule (A4)."""
    if is_group_name(value):
        return value
    raise ContractError(
        f'{key}: "{value}" is not a legal group name: at most 63 characters of a-z, 0-9, "-" and ".", '
        "beginning and ending with a letter or digit"
    )


def parse_group_size(value: str, key: str = SIZE_LABEL) -> int:
    """Return the size that a label value states, or raise ContractError with key, value and rule (A4)."""
    if _SIZE.fullmatch(value) and int(value) <= MAX_GROUP_SIZE:
        return int(value)
    raise ContractError(
        f'{key}: "{value}" is not a group size: it must be a positive integer '
        f"from 1 to {MAX_GROUP_SIZE} in plain decimal digits"
    )
