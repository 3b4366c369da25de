"""Label the pods that the webhook did not see as it would have done (rule A8): pure.

The webhook was away, or the pod's owner is older than Fluence. Without the group's label the scheduler
would never bind the pod.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.mistakes import Mistake, mistake_of
from controller.owners import Owner
from controller.pods import Pod
from groups.contract import GROUP_LABEL, SIZE_LABEL, EventReason, check_group_name, parse_group_size
from groups.errors import ContractError
from groups.workloads.adopt import PodIdentity, adopt
from groups.workloads.older import NOTHING, Stated, read_older
from groups.workloads.rules import Rules


@dataclass(frozen=True)
class Labelling:
    """Labels to add to a pod."""

    labels: dict[str, str]


def needs_labels(pod: Pod, rules: Rules) -> bool:
    """Whether a pod of ours has no group and still needs one. Mirror pods belong to their kubelet."""
    if pod.metadata.label(GROUP_LABEL) or pod.is_finished or pod.is_deleting:
        return False
    rule = rules.of_kind("", "Pod")
    if rule is None:
        return True
    left, meta = rule.leave_alone, pod.metadata
    pairs = ((left.annotations, meta.annotations), (left.labels, meta.labels))
    return not any(key in (found or {}) for keys, found in pairs for key in keys)


def label_pod(pod: Pod, owner: Owner | None, rules: Rules) -> Labelling | Mistake | None:
    """The labels that a pod lacks, or what is wrong with those that it or its owner has."""
    if not needs_labels(pod, rules) or (owner is not None and owner.is_deleted):
        return None
    if (wrong := mistake_of(pod) or _mistake_of_owner(pod, owner)) is not None:
        return wrong
    try:
        older = _older_labels(pod, rules)
    except ContractError as error:
        return Mistake(pod, EventReason.INVALID_GROUP_NAME, str(error))
    adoption = adopt(_identity(pod), rules=rules)
    # What the user wrote on the workload counts as if it stood on its pods (A3).
    named = owner.group_label if owner is not None else ""
    labels = {GROUP_LABEL: named or older.group or adoption.group_name}
    size = older.size or (str(adoption.size) if adoption.size is not None else "")
    if size and not pod.metadata.label(SIZE_LABEL):
        labels[SIZE_LABEL] = size
    return Labelling(labels)


def _older_labels(pod: Pod, rules: Rules) -> Stated:
    """Group and size under the keys of other systems (case C40)."""
    if not rules.older:
        return NOTHING
    return read_older(rules.older, pod.metadata.labels or {}, pod.metadata.annotations or {})


def _mistake_of_owner(pod: Pod, owner: Owner | None) -> Mistake | None:
    if owner is None:
        return None
    try:
        if owner.group_label:
            check_group_name(owner.group_label)
    except ContractError as error:
        return Mistake(pod, EventReason.INVALID_GROUP_NAME, f"{owner.reference.kind}: {error}")
    try:
        if owner.size_label:
            parse_group_size(owner.size_label)
    except ContractError as error:
        return Mistake(pod, EventReason.INVALID_GROUP_SIZE, f"{owner.reference.kind}: {error}")
    return None


def _identity(pod: Pod) -> PodIdentity:
    meta = pod.metadata
    return PodIdentity(
        namespace=meta.namespace,
        name=meta.name,
        labels=meta.labels or {},
        annotations=meta.annotations or {},
        owner=meta.controller,
    )
