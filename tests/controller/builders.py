"""Pods, owners and groups as small as they can be, and an API server in one function."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import msgspec

from controller.members import GroupState, Member
from controller.objects import Pod, PodSpec, PodStatus
from controller.owners import Owner, Prospect
from controller.plan import Plan, Wanted, plan
from groups.contract import (
    CREATED_BY_ANNOTATION,
    CREATED_BY_CONTROLLER,
    GROUP_LABEL,
    MIN_MEMBER_ANNOTATION,
    SIZE_LABEL,
)
from groups.objects import Key, ObjectMeta, OwnerReference
from groups.podgroup import PodGroup, PodGroupSpec, PodGroupStatus

KEY = Key("ns/g")
NOW = dt.datetime(2024, 2, 18, 1, 2, 3, 5, tzinfo=dt.UTC)
STAMP = "2024-02-18T01:02:03.000005Z"


def pod(
    name: str,
    phase: str = "Pending",
    *,
    size: str | None = None,
    group: str | None = "g",
    owner: OwnerReference | None = None,
    created: str = "2024-02-18T01:02:03Z",
    going: bool = False,
    node: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Pod:
    """A pod of ours with the labels of its group."""
    ours = {GROUP_LABEL: group, SIZE_LABEL: size}
    return Pod(
        ObjectMeta(
            name,
            "ns",
            f"uid-{name}",
            "1",
            labels={key: value for key, value in ours.items() if value is not None} | (labels or {}),
            annotations=annotations,
            owner_references=(owner,) if owner else None,
            creation_timestamp=created,
            deletion_timestamp="2024-02-18T01:02:04Z" if going else None,
        ),
        PodSpec("fluence", node),
        PodStatus(phase),
    )


def reference(kind: str, name: str = "train", uid: str = "") -> OwnerReference:
    """How a pod names the object that controls it."""
    versions = {"Job": "batch/v1", "Workflow": "argoproj.io/v1alpha1", "DaemonSet": "apps/v1"}
    return OwnerReference(kind, name, uid or f"uid-{name}", versions.get(kind, "apps/v1"), controller=True)


def job(
    prospect: Prospect = Prospect.MORE,
    *,
    members: int | None = 3,
    completions: int | None = None,
    name: str = "train",
    **more: Any,
) -> Owner:
    """A Job as the owner of pods."""
    return Owner(reference("Job", name), prospect, members, completions, **more)


def members(
    *phases: str, size: str | None = "3", owner: Owner | None = None, **more: Any
) -> tuple[Member, ...]:
    """One member for each phase."""
    ref = owner.reference if owner is not None else None
    return tuple(
        Member(pod(f"p{number}", phase, size=size, owner=ref, **more), owner)
        for number, phase in enumerate(phases)
    )


def state(*of: Member, group: PodGroup | None = None, owners: tuple[Owner, ...] = ()) -> GroupState:
    """The state of the group ns/g."""
    return GroupState(KEY, group, of, owners, joined=NOW if of else None, had_members=bool(of))


def made(
    minimum: int = 3, *, ours: bool = True, status: PodGroupStatus | None = None, **meta: Any
) -> PodGroup:
    """A PodGroup that is there already."""
    annotations = {CREATED_BY_ANNOTATION: CREATED_BY_CONTROLLER, MIN_MEMBER_ANNOTATION: str(minimum)}
    return PodGroup(
        ObjectMeta("g", "ns", "uid-g", "1", annotations=annotations if ours else None, **meta),
        PodGroupSpec(minimum),
        status or PodGroupStatus(),
    )


def apply(todo: Plan, group: PodGroup | None) -> PodGroup | None:
    """What the API server would hold after a plan was carried out."""
    if todo.delete:
        return None
    if todo.create is not None:
        assert group is None
        return made(todo.create.min_member, owner_references=todo.create.owners)
    if group is None:
        return None
    if todo.update is not None:
        group = _updated(group, todo.update)
    if todo.status is not None:
        raw = msgspec.to_builtins(group.status) | dict(todo.status)
        group = msgspec.structs.replace(group, status=msgspec.convert(raw, PodGroupStatus))
    return group


def _updated(group: PodGroup, wanted: Wanted) -> PodGroup:
    notes = {**(group.metadata.annotations or {}), MIN_MEMBER_ANNOTATION: str(wanted.min_member)}
    meta = msgspec.structs.replace(group.metadata, annotations=notes, owner_references=wanted.owners)
    return msgspec.structs.replace(group, metadata=meta, spec=PodGroupSpec(wanted.min_member))


def settle(start: GroupState, now: dt.datetime = NOW) -> PodGroup | None:
    """Plan and carry out until nothing is left to do; fails where that takes too long."""
    current = start
    for _ in range(4):
        todo = plan(current, now)
        if todo.is_done or todo.delete:
            return apply(todo, current.group)
        current = replace(current, group=apply(todo, current.group))
    raise AssertionError(f"never at rest: {plan(current, now)}")
