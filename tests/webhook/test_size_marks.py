"""A size that a rule counted is marked, and every other size is the user's (A7)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groups.contract import SIZE_FROM_ANNOTATION, SIZE_FROM_RULE
from groups.workloads.grouping import MOST_ANNOTATED
from groups.workloads.rules import builtin_rules
from groups.workloads.shapes import lookup
from groups.workloads.sizing import members_by_group, parts_of
from tests.webhook.manifests import controlled, jobset, mpijob, parallel, ray_cluster
from tests.webhook.reviews import PG, SZ, Object, applied, decided, good_objects, pod, workload

TWO_GROUPS = jobset("js", ("a", parallel(2), None), ("b", parallel(3), 2))
TWO_GROUPS["spec"]["replicatedJobs"][1]["dependsOn"] = [{"name": "a", "status": "Ready"}]
NAMED_APART = ray_cluster("rc", {"replicas": 3})
for template, group in (
    (NAMED_APART["spec"]["headGroupSpec"]["template"], "head"),
    (NAMED_APART["spec"]["workerGroupSpecs"][0]["template"], "workers"),
):
    template["metadata"] = {"labels": {PG: group}}


def templates(obj: Object) -> dict[str, Any]:
    """Group, size and mark of each template after admission, by group."""
    made = applied(obj, decided(obj))
    rule = builtin_rules().find(obj["apiVersion"], obj["kind"])
    assert rule is not None
    found = {}
    for part in parts_of(rule, made):
        metadata = lookup(made, (*part.place, "metadata")) or {}
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        found[labels.get(PG)] = (labels.get(SZ), annotations.get(SIZE_FROM_ANNOTATION))
    return found


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(
            workload("Job", "j", **parallel(2)), {"fluence-group-default-j": ("2", "rule")}, id="Job"
        ),
        pytest.param(
            workload("StatefulSet", "s", replicas=3),
            {"fluence-group-default-statefulset.s": ("1", "rule")},
            id="one-after-another",
        ),
        pytest.param(
            workload("Job", "j", {"metadata": {"labels": {PG: "mine"}}}, **parallel(2)),
            {"mine": ("2", "rule")},
            id="a-group-of-the-users",
        ),
        pytest.param(
            workload("Job", "j", {"metadata": {"labels": {SZ: "2"}}}, **parallel(2)),
            {"fluence-group-default-j": ("2", None)},
            id="a-size-on-the-template",
        ),
        pytest.param(
            workload("Job", "j", metadata={"labels": {SZ: "2"}}, **parallel(2)),
            {"fluence-group-default-j": ("2", None)},
            id="a-size-on-the-object",
        ),
        pytest.param(
            workload(
                "Job",
                "j",
                {
                    "metadata": {
                        "labels": {"kueue.x-k8s.io/pod-group-name": "k"},
                        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
                    }
                },
                **parallel(2),
            ),
            {"k": ("2", None)},
            id="a-size-of-another-system",
        ),
        pytest.param(pod({"name": "p"}), {"fluence-group-p": ("1", None)}, id="bare-pod"),
        pytest.param(
            pod({"generateName": "j-", **controlled("batch/v1", "Job", "j")}),
            {"fluence-group-default-j": (None, None)},
            id="left-to-the-controller",
        ),
        pytest.param(
            TWO_GROUPS,
            {
                "fluence-group-default-jobset.js": ("2", "rule"),
                "fluence-group-default-jobset.js.b": ("6", "rule"),
            },
            id="two-groups-of-one-object",
        ),
        pytest.param(
            NAMED_APART,
            {"head": ("1", "rule"), "workers": ("3", "rule")},
            id="templates-that-name-two-groups",
        ),
    ],
)
def test_a_size_is_marked_where_a_rule_counted_it(obj: Object, expected: dict[str, Any]) -> None:
    assert templates(obj) == expected


@pytest.mark.parametrize("annotations", [None, {}, {"kept": "as-it-is"}])
def test_annotations_that_are_there_stay(annotations: Object | None) -> None:
    obj = workload("Job", "j", {"metadata": {"annotations": annotations}}, **parallel(2))
    made = applied(obj, decided(obj))
    assert made["spec"]["template"]["metadata"]["annotations"] == {
        **(annotations or {}),
        SIZE_FROM_ANNOTATION: SIZE_FROM_RULE,
    }


@pytest.mark.parametrize(("more", "mark"), [(0, SIZE_FROM_RULE), (1, None)])
def test_annotations_that_are_nearly_full_get_no_mark(more: int, mark: str | None) -> None:
    """Rule W8: the API server takes 256 KiB of annotations, and the mark could be what is too much."""
    full = {"kept": "\N{GRINNING FACE}" * (MOST_ANNOTATED - len("kept") + more)}
    obj = workload("Job", "j", {"metadata": {"annotations": full}}, **parallel(2))
    assert templates(obj) == {"fluence-group-default-j": ("2", mark)}


@settings(deadline=None)
@given(good_objects())
def test_an_object_without_the_mark_keeps_its_size_as_the_users(obj: Object) -> None:
    """W18 and A3: a second call adds no mark, and removes none."""
    made = applied(obj, decided(obj))
    assert decided(made).patch == ()
    without = copy.deepcopy(made)
    metadata = (without if obj["kind"] == "Pod" else without["spec"]["template"])["metadata"]
    if (metadata.get("annotations") or {}).pop(SIZE_FROM_ANNOTATION, None):
        assert decided(without).patch == ()


COUNTS = st.integers(0, 5)


@st.composite
def several_groups(draw: st.DrawFn) -> Object:
    """An object whose templates may be in different groups, by order or by the user's labels."""
    obj = draw(
        st.one_of(
            st.builds(
                lambda a, b, order: jobset(
                    "x",
                    ("a", parallel(a), 1),
                    ("b", parallel(b), 2),
                    startupPolicy={"startupPolicyOrder": order},
                ),
                COUNTS,
                COUNTS,
                st.sampled_from(["InOrder", "AnyOrder"]),
            ),
            st.builds(lambda n: mpijob("x", Launcher=1, Worker=n), COUNTS),
            st.builds(lambda n, m: ray_cluster("x", {"replicas": n}, {"replicas": m}), COUNTS, COUNTS),
        )
    )
    rule = builtin_rules().find(obj["apiVersion"], obj["kind"])
    assert rule is not None
    for part in parts_of(rule, obj):
        group = draw(st.sampled_from(["", "", "one", "two"]))
        if group:
            holder = lookup(obj, part.place)
            holder["metadata"] = {"labels": {PG: group}}
    return copy.deepcopy(obj)


@settings(deadline=None, max_examples=200)
@given(several_groups())
def test_the_present_count_of_each_group_is_the_size_that_was_written(obj: Object) -> None:
    """The controller counts by group, so that a group of one template is not given the size of the whole."""
    made = applied(obj, decided(obj))
    rule = builtin_rules().find(obj["apiVersion"], obj["kind"])
    assert rule is not None
    written = {group: int(size) for group, (size, mark) in templates(obj).items() if mark}
    assert members_by_group(rule, made, "fluence") == written


def test_no_template_is_counted_by_group_before_it_has_a_label() -> None:
    rule = builtin_rules().find("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert rule is not None
    assert members_by_group(rule, TWO_GROUPS, "fluence") == {}


def test_a_size_on_the_object_is_none_of_a_part_with_a_group_of_its_own() -> None:
    rule = builtin_rules().find("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert rule is not None
    made = applied(TWO_GROUPS, decided(TWO_GROUPS))
    assert members_by_group(rule, made, stated=9) == {
        "fluence-group-default-jobset.js": 9,
        "fluence-group-default-jobset.js.b": 6,
    }
