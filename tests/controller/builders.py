"""Pods, owners and groups as small as they can be, and an API server in one function."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from controller.members import GroupState, Member
from controller.owners import Owner, OwnerState
from controller.plan import Plan, Wanted, plan
from controller.pods import Pod
from groups.contract import (
    CREATED_BY_ANNOTATION,
    CREATED_BY_CONTROLLER,
    GROUP_LABEL,
    MIN_MEMBER_ANNOTATION,
    OWNER_UIDS_ANNOTATION,
    RUN_ANNOTATION,
    SIZE_FROM_ANNOTATION,
    SIZE_FROM_RULE,
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
    deleting: bool = False,
    node: str | None = None,
    run: str | None = "uid-g",
    size_from_rule: bool = False,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Pod:
    """A pod of ours with the labels of its group.

    One that runs or has finished has a node, and one with a node has the mark of the run `uid-g`.
    """
    ours = {GROUP_LABEL: group, SIZE_LABEL: size}
    node = node if node is not None else ("" if phase in ("Pending", "") else "a")
    notes = dict(annotations or {})
    if node and run is not None:
        notes[RUN_ANNOTATION] = run
    if size_from_rule:
        notes[SIZE_FROM_ANNOTATION] = SIZE_FROM_RULE
    return Pod(
        ObjectMeta(
            name,
            "ns",
            f"uid-{name}",
            "1",
            labels={key: value for key, value in ours.items() if value is not None} | (labels or {}),
            annotations=notes or None,
            owner_references=(owner,) if owner else None,
            creation_timestamp=created,
            deletion_timestamp="2024-02-18T01:02:04Z" if deleting else None,
        ),
        "fluence",
        node,
        phase,
    )


def reference(kind: str, name: str = "train", uid: str = "") -> OwnerReference:
    """How a pod names the object that controls it."""
    versions = {"Job": "batch/v1", "Workflow": "argoproj.io/v1alpha1", "DaemonSet": "apps/v1"}
    return OwnerReference(kind, name, uid or f"uid-{name}", versions.get(kind, "apps/v1"), controller=True)


def job(
    state: OwnerState = OwnerState.ACTIVE,
    *,
    members: int | None = 3,
    completions: int | None = None,
    name: str = "train",
    uid: str = "",
    **more: Any,
) -> Owner:
    """A Job as the owner of pods."""
    return Owner(reference("Job", name, uid), state, members, completions=completions, **more)


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
    named = {one.uid: one for one in owners}
    return GroupState(KEY, group, of, named, joined=NOW if of else None, had_members=bool(of))


def made(
    minimum: int = 3,
    *,
    ours: bool = True,
    status: PodGroupStatus | None = None,
    recorded: Iterable[str] = (),
    **meta: Any,
) -> PodGroup:
    """A PodGroup that is there already; `recorded` are the owners that the controller wrote last."""
    annotations = {CREATED_BY_ANNOTATION: CREATED_BY_CONTROLLER, MIN_MEMBER_ANNOTATION: str(minimum)}
    if recorded:
        annotations[OWNER_UIDS_ANNOTATION] = ",".join(sorted(recorded))
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
        wanted = todo.create
        return made(wanted.min_member, owner_references=wanted.owners, recorded=wanted.recorded)
    if group is None:
        return None
    if todo.update is not None:
        group = _updated(group, todo.update)
    if todo.status is not None:
        raw = msgspec.to_builtins(group.status) | dict(todo.status)
        group = msgspec.structs.replace(group, status=msgspec.convert(raw, PodGroupStatus))
    return group


def _updated(group: PodGroup, wanted: Wanted) -> PodGroup:
    notes = dict(group.metadata.annotations or {})
    if wanted.min_member != group.spec.min_member:
        notes[MIN_MEMBER_ANNOTATION] = str(wanted.min_member)
    if wanted.recorded:
        notes[OWNER_UIDS_ANNOTATION] = ",".join(sorted(wanted.recorded))
    meta = msgspec.structs.replace(group.metadata, annotations=notes, owner_references=wanted.owners)
    return msgspec.structs.replace(group, metadata=meta, spec=PodGroupSpec(wanted.min_member))


def settle(start: GroupState, now: dt.datetime = NOW) -> PodGroup | None:
    """The PodGroup once a plan leaves nothing to do, or deletes it."""
    return settled(start, now).group


def settled(start: GroupState, now: dt.datetime = NOW) -> GroupState:
    """The state once a plan leaves nothing to do, or deletes the group; fails where that takes too long.

    The marks that pods get are carried out too.
    """
    current = start
    for _ in range(5):
        todo = plan(current, now)
        current = carried_out(todo, current)
        if todo.is_done or todo.delete:
            return current
    raise AssertionError(f"never at rest: {plan(current, now)}")


def carried_out(todo: Plan, current: GroupState) -> GroupState:
    """The state after a plan was carried out."""
    uids = {one.metadata.uid for one in todo.marks}
    labelled = tuple(
        replace(one, pod=_marked(one.pod, current.run_uid)) if one.pod.metadata.uid in uids else one
        for one in current.labelled
    )
    group = apply(todo, current.group)
    marked = replace(current, labelled=labelled)
    return marked.with_group(group) if group is not None else replace(marked, group=None, owners={})


def _marked(one: Pod, run_uid: str) -> Pod:
    notes = {**(one.metadata.annotations or {}), RUN_ANNOTATION: run_uid}
    meta = msgspec.structs.replace(one.metadata, annotations=notes)
    return msgspec.structs.replace(one, metadata=meta)
