"""How many members start together (rule A7)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluence.contract import MAX_GROUP_SIZE, parse_group_size
from fluence.workloads.rules import Rule, builtin_rules
from fluence.workloads.sizing import count_members
from tests.webhook.reviews import objects


def rule(kind: str) -> Rule:
    return next(one for one in builtin_rules().all if one.kind == kind)


def size(kind: str, **spec: Any) -> int:
    return count_members(rule(kind), {"spec": spec})


@settings(deadline=None)
@given(objects())
def test_whatever_an_object_contains_its_size_is_legal(obj: dict[str, Any]) -> None:
    """Rule A7, case C10: nulls, missing parts and odd types never crash the count."""
    counted = count_members(rule(obj["kind"]), obj)
    assert parse_group_size(str(counted)) == counted


@settings(deadline=None)
@given(st.integers(0, 2**40), st.one_of(st.none(), st.integers(0, 2**40)))
def test_a_job_never_waits_for_more_pods_than_it_will_run_at_once(
    parallelism: int, completions: int | None
) -> None:
    """Case C14: Kubernetes never runs more pods than there are completions left."""
    counted = size("Job", parallelism=parallelism, completions=completions)
    bound = parallelism if completions is None else min(parallelism, completions)
    assert counted == min(max(bound, 1), MAX_GROUP_SIZE)


@settings(deadline=None)
@given(st.sampled_from(["ReplicaSet", "Deployment"]), st.integers(1, MAX_GROUP_SIZE))
def test_replicas_are_the_members(kind: str, replicas: int) -> None:
    """Rule A7."""
    assert size(kind, replicas=replicas) == replicas


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        pytest.param("Job", {"parallelism": 5, "completions": 3}, 3, id="C14-fewer-completions"),
        pytest.param("Job", {"parallelism": 3, "completions": 10}, 3, id="C14-more-completions"),
        pytest.param("Job", {"completions": 4}, 1, id="C14-completions-only"),
        pytest.param("Job", {"parallelism": 4}, 4, id="C14-parallelism-only"),
        pytest.param("Job", {}, 1, id="C14-neither"),
        pytest.param("Job", {"parallelism": 0}, 1, id="C15-job-of-none"),
        pytest.param("Job", {"parallelism": 4, "completions": 0}, 1, id="C15-no-completions"),
        pytest.param("Deployment", {"replicas": 0}, 1, id="C15-no-replicas"),
        pytest.param("Job", {"suspend": True, "parallelism": 4, "completions": 4}, 4, id="C15-suspended"),
        pytest.param("Deployment", {}, 1, id="C10-no-replicas-field"),
        pytest.param("Deployment", {"replicas": None}, 1, id="C10-null-replicas"),
        pytest.param("ReplicaSet", {"replicas": True}, 1, id="a-boolean-is-no-number"),
        pytest.param("ReplicaSet", {"replicas": "7"}, 1, id="a-string-is-no-number"),
        pytest.param("StatefulSet", {"replicas": 3}, 1, id="C16-ordered-by-default"),
        pytest.param(
            "StatefulSet", {"replicas": 3, "podManagementPolicy": "OrderedReady"}, 1, id="C16-ordered"
        ),
        pytest.param("StatefulSet", {"replicas": 3, "podManagementPolicy": "Parallel"}, 3, id="C16-parallel"),
        pytest.param("Pod", {}, 1, id="pod"),
    ],
)
def test_sizes(kind: str, spec: dict[str, Any], expected: int) -> None:
    """The table of rule A7."""
    assert size(kind, **spec) == expected
