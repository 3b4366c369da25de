"""What may still come from the object behind a group's pods."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controller.objects import BuiltInWorkload
from controller.owners import Owner, OwnerState, owner_of, read_workload
from groups.contract import GROUP_LABEL, SIZE_FROM_ANNOTATION, SIZE_LABEL
from groups.workloads.rules import builtin_rules
from tests.controller.builders import reference

_GROUPS = {"Job": "batch"}


def owner(kind: str, spec: dict[str, Any], status: dict[str, Any] | None = None, **meta: Any) -> Owner:
    """The owner that this object is for its pods."""
    rule = builtin_rules().of_kind(_GROUPS.get(kind, "apps"), kind)
    assert rule is not None
    raw = {"metadata": {"name": "train", "uid": "u", **meta}, "spec": spec, "status": status or {}}
    return owner_of(reference(kind), read_workload(rule, msgspec.convert(raw, BuiltInWorkload)))


def condition(kind: str, status: str = "True") -> dict[str, Any]:
    """The status of an object with one condition."""
    return {"conditions": [{"type": kind, "status": status}]}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "state"),
    [
        pytest.param(
            "Job", {"parallelism": 3, "completions": 3}, {}, OwnerState.ACTIVE, id="a Job that runs"
        ),
        pytest.param("Job", {"parallelism": 3}, {"succeeded": 3}, OwnerState.ACTIVE, id="ends when it wants"),
        pytest.param("Job", {"completions": 3}, condition("Complete"), OwnerState.FINISHED, id="complete"),
        pytest.param("Job", {"completions": 3}, condition("Failed"), OwnerState.FINISHED, id="failed"),
        pytest.param(
            "Job", {"completions": 3}, condition("Failed", "False"), OwnerState.ACTIVE, id="not failed"
        ),
        pytest.param("Job", {"completions": 3}, condition("Suspended"), OwnerState.ACTIVE, id="another"),
        pytest.param("Job", {"completions": 3}, {"succeeded": 3}, OwnerState.FINISHED, id="enough successes"),
        pytest.param("Job", {"completions": 10}, {"succeeded": 3}, OwnerState.ACTIVE, id="C55 seven to come"),
        pytest.param("Job", {"suspend": True, "completions": 3}, {}, OwnerState.SUSPENDED, id="suspended"),
        pytest.param(
            "Job", {"parallelism": 0, "completions": 3}, {}, OwnerState.SUSPENDED, id="C15 no pods now"
        ),
        pytest.param("Deployment", {"replicas": 2}, {}, OwnerState.ACTIVE, id="a Deployment"),
        pytest.param("Deployment", {}, {}, OwnerState.ACTIVE, id="a Deployment of one by default"),
        pytest.param("Deployment", {"replicas": 0}, {}, OwnerState.FINISHED, id="C15 a Deployment of none"),
        pytest.param("StatefulSet", {"replicas": 0}, {}, OwnerState.FINISHED, id="a StatefulSet of none"),
        pytest.param("ReplicaSet", {"replicas": 0}, {}, OwnerState.FINISHED, id="a ReplicaSet of none"),
    ],
)
def test_what_more_an_owner_will_do(
    kind: str, spec: dict[str, Any], status: dict[str, Any], state: OwnerState
) -> None:
    """Rule A6."""
    assert owner(kind, spec, status).state is state


def test_an_owner_that_is_being_deleted_is_as_good_as_gone() -> None:
    """Rule A6."""
    gone = owner("Job", {"completions": 3}, deletionTimestamp="2024-02-18T01:02:03Z")
    assert gone.state is OwnerState.DELETED


@pytest.mark.parametrize(
    ("kind", "spec", "count"),
    [
        ("Job", {"parallelism": 3, "completions": 10}, 3),
        ("Job", {"parallelism": 5, "completions": 3}, 3),
        ("Job", {"parallelism": 0}, 1),
        ("Deployment", {"replicas": 4}, 4),
        ("ReplicaSet", {}, 1),
        ("StatefulSet", {"replicas": 3}, 1),
        ("StatefulSet", {"replicas": 3, "podManagementPolicy": "Parallel"}, 3),
    ],
)
def test_owners_are_counted_by_the_rules_of_the_webhook(kind: str, spec: dict[str, Any], count: int) -> None:
    """Rules A7 and A8."""
    assert owner(kind, spec).members == count


def test_labels_on_the_owner_itself_are_the_users_word() -> None:
    """Rule A3: label on the object first."""
    found = owner("Job", {"parallelism": 3}, labels={GROUP_LABEL: "mine", SIZE_LABEL: "2"})
    assert (found.group_label, found.members) == ("mine", 2)


@pytest.mark.parametrize(
    ("on_object", "on_template", "mark", "count"),
    [
        pytest.param("3", "3", "rule", 2, id="copied from the template"),
        pytest.param("3", "3", None, 3, id="copied from a template on which the user wrote it"),
        pytest.param("4", "3", "rule", 4, id="another size than the counted one"),
    ],
)
def test_a_counted_size_that_was_copied_to_the_owner_is_not_the_users(
    on_object: str, on_template: str, mark: str | None, count: int
) -> None:
    """Cases N25 and C67: the API server gives a Job without labels those of its template."""
    metadata = {
        "labels": {SIZE_LABEL: on_template},
        "annotations": {SIZE_FROM_ANNOTATION: mark} if mark else None,
    }
    spec = {"parallelism": 2, "template": {"metadata": metadata}}
    assert owner("Job", spec, labels={SIZE_LABEL: on_object}).members == count


def test_a_bad_size_on_the_owner_counts_for_nothing() -> None:
    """It is told about where its pods are adopted (see test_adoption)."""
    assert owner("Job", {"parallelism": 3}, labels={SIZE_LABEL: "abc"}).members == 3
