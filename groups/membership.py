"""Which pods are members of a group's run: one rule for every process (`docs/contract.md`, "Membership").

A *run* is one PodGroup object, told by its uid. Groups of one name follow one another when a Job is deleted
and made again; pods that an earlier run left behind must not count for the next one.

Pure. Owns: the rule. Does not own: what is done with members, or which owners still exist (the caller says).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from groups.contract import GROUP_LABEL, RUN_ANNOTATION
from groups.objects import Key, ObjectMeta, OwnerReference, key_of


class MemberPod(Protocol):
    """What the rule reads of a pod; both processes' pod structs have it."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, uid, labels, annotations, owners."""

    @property
    def scheduler_name(self) -> str:
        """`spec.schedulerName`."""

    @property
    def node_name(self) -> str:
        """`spec.nodeName`, empty while the pod is not bound."""

    @property
    def is_finished(self) -> bool:
        """Whether its phase is Succeeded or Failed."""


def group_key_of(pod: MemberPod, scheduler_name: str) -> Key | None:
    """The group whose label the pod carries, None where it has none or asks for another scheduler (A2)."""
    if pod.scheduler_name != scheduler_name:
        return None
    name = pod.metadata.label(GROUP_LABEL)
    return key_of(pod.metadata.namespace, name) if name else None


def is_of_other_run(pod: MemberPod, references: Iterable[OwnerReference]) -> bool:
    """Whether another object of the same kind and name as an owner of the group made the pod.

    `references` are the owners that the PodGroup names. A Job may be deleted and made again while pods of the
    first one still wait for the garbage collector.
    """
    owner = pod.metadata.controller
    if owner is None:
        return False
    same_name = [one.uid for one in references if (one.kind, one.name) == (owner.kind, owner.name)]
    return bool(same_name) and owner.uid not in same_name


def is_member(
    pod: MemberPod,
    run_uid: str,
    owner_uids: Collection[str] = (),
    references: Iterable[OwnerReference] = (),
) -> bool:
    """Whether a pod that carries the group's label counts for the run of the PodGroup `run_uid`.

    A pod that waits counts, unless it is of another run (`is_of_other_run`). A bound or finished one counts
    if it was bound for this very PodGroup. Without that mark (an older version bound it, or another
    scheduler) it counts if the object that controls it is one of `owner_uids`: objects that exist and stand
    behind the group. A pod that is being deleted does not count.
    `run_uid` is empty where there is no PodGroup yet: only pods that wait count then.
    """
    if pod.metadata.deletion_timestamp is not None:
        return False
    if not pod.node_name and not pod.is_finished:
        return not is_of_other_run(pod, references)
    if mark := pod.metadata.annotation(RUN_ANNOTATION):
        return mark == run_uid
    owner = pod.metadata.controller
    return bool(run_uid) and owner is not None and owner.uid in owner_uids
