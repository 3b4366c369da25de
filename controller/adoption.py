"""Pods that slipped past the webhook get the labels that it would have given them (rule A8): pure.

The webhook was away, or the pod's owner is older than Fluence. Without the group's label the scheduler
would leave the pod alone for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.objects import Pod
from controller.owners import Owner, Prospect
from controller.sizes import Complaint, complaint_of
from fluence.contract import (
    GROUP_LABEL,
    SIZE_LABEL,
    ContractError,
    EventReason,
    check_group_name,
    parse_group_size,
)
from fluence.workloads.adopt import PodIdentity, adopt
from fluence.workloads.rules import Rules
from fluence.workloads.shapes import OwnerRef


@dataclass(frozen=True)
class Labelling:
    """Labels to add to a pod."""

    labels: dict[str, str]


def needs_labels(pod: Pod, rules: Rules) -> bool:
    """Whether a pod of ours has no group and still needs one. Mirror pods belong to their kubelet."""
    if pod.metadata.label(GROUP_LABEL) or pod.is_finished or pod.is_going:
        return False
    rule = rules.of_kind("", "Pod")
    skipped = rule.leave_alone.annotations if rule is not None else ()
    return not any(key in (pod.metadata.annotations or {}) for key in skipped)


def label_pod(pod: Pod, owner: Owner | None, rules: Rules) -> Labelling | Complaint | None:
    """The labels that a pod lacks, or what is wrong with those that it or its owner has."""
    if not needs_labels(pod, rules) or (owner is not None and owner.prospect is Prospect.GONE):
        return None
    if (wrong := complaint_of(pod) or _complaint_of_owner(pod, owner)) is not None:
        return wrong
    adoption = adopt(_identity(pod), rules=rules)
    # What the user wrote on the workload counts as if it stood on its pods (A3).
    named = owner.group_label if owner is not None else ""
    labels = {GROUP_LABEL: named or adoption.group_name}
    if adoption.size is not None and not pod.metadata.label(SIZE_LABEL):
        labels[SIZE_LABEL] = str(adoption.size)
    return Labelling(labels)


def _complaint_of_owner(pod: Pod, owner: Owner | None) -> Complaint | None:
    if owner is None:
        return None
    try:
        if owner.group_label:
            check_group_name(owner.group_label)
    except ContractError as error:
        return Complaint(pod, EventReason.INVALID_GROUP_NAME, f"{owner.reference.kind}: {error}")
    try:
        if owner.size_label:
            parse_group_size(owner.size_label)
    except ContractError as error:
        return Complaint(pod, EventReason.INVALID_GROUP_SIZE, f"{owner.reference.kind}: {error}")
    return None


def _identity(pod: Pod) -> PodIdentity:
    meta = pod.metadata
    owner = meta.controller
    return PodIdentity(
        namespace=meta.namespace,
        name=meta.name,
        labels=meta.labels or {},
        owner=OwnerRef(owner.api_version, owner.kind, owner.name, owner.uid) if owner is not None else None,
    )
