"""How many members start together (rule A7)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groups.contract import MAX_GROUP_SIZE, parse_group_size
from groups.workloads.rules import Rule, builtin_rules
from groups.workloads.schema import Condition, Count
from groups.workloads.shapes import bind, parse_path, places, show_path
from groups.workloads.sizing import count_members, evaluate
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


# Counts, and paths with wildcards


fields = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.text(max_size=2), st.floats())
leaves = st.one_of(
    st.integers(0, 9).map(lambda n: Count(fixed=n)),
    st.builds(
        lambda name, default: Count(path=parse_path(name), default=default),
        st.sampled_from(["a", "b", "c.d"]),
        st.one_of(st.none(), st.integers(0, 9)),
    ),
)
counts = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda way, parts: Count(**{way: tuple(parts)}),
        st.sampled_from(["smallest", "largest", "product", "sum"]),
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=12,
)


@given(counts, st.fixed_dictionaries({}, optional={"a": fields, "b": fields, "c": fields}))
def test_a_count_of_any_kind_is_a_number_within_bounds_or_none(count: Count, obj: dict[str, Any]) -> None:
    """Rule A7, case C10."""
    found = evaluate(count, obj, ())
    assert found is None or 0 <= found <= MAX_GROUP_SIZE


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=6))
def test_counts_are_what_their_names_say_up_to_the_largest_size(numbers: list[int]) -> None:
    obj = {"n": dict(zip("abcdef", numbers, strict=False))}
    parts = tuple(Count(path=parse_path(f"n.{key}")) for key in obj["n"])
    wanted = {
        "smallest": min(numbers),
        "largest": max(numbers),
        "sum": sum(numbers),
        "product": math.prod(numbers),
    }
    for way, number in wanted.items():
        assert evaluate(Count(**{way: parts}), obj, ()) == min(number, MAX_GROUP_SIZE)


def test_a_field_that_is_missing_takes_no_part() -> None:
    there, missing = Count(path=parse_path("a")), Count(path=parse_path("b"))
    for way in ("smallest", "largest", "sum", "product"):
        assert evaluate(Count(**{way: (there, missing)}), {"a": 4}, ()) == 4
        assert evaluate(Count(**{way: (missing,)}), {"a": 4}, ()) is None


@pytest.mark.parametrize(
    ("equals", "value", "holds"),
    [
        (True, True, True),
        (True, 1, False),
        (1, True, False),
        ("x", "x", True),
        ("x", None, False),
        (1, 1, True),
    ],
)
def test_a_condition_compares_values_of_one_type(equals: Any, value: Any, holds: bool) -> None:
    condition = Condition(path=parse_path("a"), equals=equals)
    assert condition.holds(value) is holds
    assert Condition(path=parse_path("a"), equals=equals, default=equals).holds(None)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a.b", [("a", "b")]),
        ("l[*].t", [("l", 0, "t"), ("l", 1, "t"), ("l", 2, "t")]),
        ("m.*.t", [("m", "x", "t"), ("m", "y", "t")]),
        ("m.*.l[*]", [("m", "x", "l", 0)]),
        ("none[*].t", []),
        ("m[*].t", []),
        ("l.*.t", []),
        (".", [()]),
    ],
)
def test_a_wildcard_leads_to_each_item_that_is_there(path: str, found: list[tuple[Any, ...]]) -> None:
    """Case C10: a map where a list should be, or the other way round, has no items."""
    obj = {"l": [{"t": 1}, None, "odd"], "m": {"x": {"t": 1, "l": [1]}, "y": None}, "none": None}
    assert list(places(obj, parse_path(path))) == found
    for place in found:
        assert bind(parse_path(path), place) == place
    assert parse_path(show_path(parse_path(path))) == parse_path(path)


@given(st.text(max_size=12))
def test_what_is_no_path_is_refused_and_what_is_one_reads_back(text: str) -> None:
    try:
        path = parse_path(text)
    except ValueError:
        return
    assert parse_path(show_path(path)) == path
