"""The words that Fluence shares with users and other programs: keys, names, phases, reasons, times.

Owns: every string of the contract (design.md, section 1) and the pure rules about them. Does not own:
what a workload looks like (`fluence.workloads`), or any input and output.
"""

from __future__ import annotations

import datetime as dt
import enum
import hashlib
import re
from typing import Final

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

POD_GROUP_API: Final = "scheduling.x-k8s.io"
POD_GROUP_VERSION: Final = "v1alpha1"
POD_GROUP_API_VERSION: Final = f"{POD_GROUP_API}/{POD_GROUP_VERSION}"
POD_GROUP_PLURAL: Final = "podgroups"

#: A size is a positive int32 (rule SZ of the contract; minMember is an int32 in every PodGroup API).
MAX_GROUP_SIZE: Final = 2**31 - 1
MAX_LABEL_LENGTH: Final = 63
_HASH_LENGTH: Final = 10

_SIZE = re.compile(r"[1-9][0-9]{0,9}")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NOT_DNS = re.compile(r"[^-a-z0-9.]+")


class FluenceError(Exception):
    """Everything that this project raises on purpose; its text is a sentence for the user."""


class ContractError(FluenceError):
    """A label or name breaks a rule of the contract: the text names key, value and rule."""


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


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]


def _legal(raw: str) -> str:
    """`raw` itself where it is a legal group name, else a legal cut of it with a hash of the whole."""
    return raw if is_group_name(raw) else _cut_with_hash(raw, raw)


def _cut_with_hash(raw: str, hashed: str) -> str:
    # A dot may not stand beside a dash or a dot, so illegal names lose their dots altogether.
    clean = _NOT_DNS.sub("-", raw.lower())
    if not is_group_name(clean):
        clean = clean.replace(".", "-")
    room = MAX_LABEL_LENGTH - _HASH_LENGTH - 1
    return f"{clean[:room].strip('-.') or 'group'}-{_hash(hashed)}"


def workload_group_name(namespace: str, name: str) -> str:
    """The default group of a workload: `fluence-group-<namespace>-<name>` (rule A1)."""
    return _legal(f"fluence-group-{namespace}-{name}")


def pod_group_name(name: str) -> str:
    """The default group of a bare pod: `fluence-group-<pod name>` (rule A1)."""
    return _legal(f"fluence-group-{name}")


def generated_group_name(prefix: str, request_uid: str, namespace: str | None = None) -> str:
    """The group of an object that has only a generateName yet: the prefix and a hash of the uid (A1).

    `namespace` is given for workloads and left out for bare pods.
    """
    middle = f"{namespace}-{prefix}" if namespace is not None else prefix
    return _cut_with_hash(f"fluence-group-{middle}", f"{middle} {request_uid}")


def format_micro_time(moment: dt.datetime) -> str:
    """RFC 3339 in UTC with exactly six fractional digits and Z, as Go's MicroTime wants (case C42)."""
    if moment.tzinfo is None:
        raise ValueError("a time without a zone is ambiguous")
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> dt.datetime:
    """Read an RFC 3339 time of either precision; ValueError if it is none."""
    moment = dt.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone is ambiguous: {text!r}")
    return moment.astimezone(dt.UTC)
