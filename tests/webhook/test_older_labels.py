"""Group names and sizes under the keys of older versions and other systems (case C40)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.contract import is_group_name, parse_group_size
from groups.workloads.older import read_older
from groups.workloads.rules import builtin_rules
from tests.webhook.reviews import (
    PG,
    SZ,
    Object,
    decided,
    labelled,
    names,
    pod,
    pod_spec,
    template_labels,
    workload,
)
from webhook.decide import UNCHANGED

OLDER = builtin_rules().older
KEYS = sorted({entry.group for entry in OLDER})
SCHEDULER_PLUGINS = "pod-group.scheduling.sigs.k8s.io"


def told(group: str, size: str | None = None, **keys: str) -> Object:
    return {group: "mygrp", **({} if size is None else {size: "5"}), **keys}


@given(st.sampled_from(KEYS), names.filter(is_group_name), st.integers(1, 99), st.booleans())
def test_a_taken_over_group_is_complete_and_loses_nothing(
    key: str, name: str, size: int, annotated: bool
) -> None:
    """Case C40: group and size, never half, and the keys stay as they are."""
    sizes = {entry.group: entry.size for entry in OLDER}
    told = {key: name, sizes[key] or SZ: str(size)}
    before = pod({"name": "p", ("annotations" if annotated else "labels"): told})
    after = labelled(before)
    labels = after["metadata"]["labels"]
    assert (labels[PG], labels[SZ]) == (name, str(size))
    assert decided(after) == UNCHANGED
    kept = after["metadata"]["annotations" if annotated else "labels"]
    assert {k: kept[k] for k in told} == told


@given(
    st.dictionaries(
        st.sampled_from([*KEYS, "app"]), st.one_of(st.none(), st.text(max_size=70), st.integers())
    )
)
def test_what_is_read_is_legal_or_refused(labels: dict[str, Any]) -> None:
    """Rule A4."""
    decision = decided(pod({"name": "p", "labels": labels}))
    if decision.allowed:
        found = read_older(OLDER, labels, {})
        assert not found.group or is_group_name(found.group)
        assert not found.size or parse_group_size(found.size)
    else:
        assert decision.code == 422
        assert any(key in decision.message for key in labels)


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        pytest.param(told("fluence.pod-group", SZ), {}, id="early-flux-k8s"),
        pytest.param(
            told(SCHEDULER_PLUGINS, f"{SCHEDULER_PLUGINS}/min-available"), {}, id="scheduler-plugins"
        ),
        pytest.param(
            told(f"{SCHEDULER_PLUGINS}/name", f"{SCHEDULER_PLUGINS}/min-available"),
            {},
            id="older-scheduler-plugins",
        ),
        pytest.param(
            {},
            told("scheduling.k8s.io/group-name", "scheduling.k8s.io/min-available"),
            id="volcano-annotations",
        ),
        pytest.param(
            {"kueue.x-k8s.io/pod-group-name": "mygrp"},
            {"kueue.x-k8s.io/pod-group-total-count": "5"},
            id="kueue",
        ),
    ],
)
def test_each_system_is_understood(labels: Object, annotations: Object) -> None:
    """Case C40: also on a template, where the size of the Job itself would be another."""
    metadata = {"labels": labels, "annotations": annotations}
    job = workload("Job", "job-1", {"metadata": metadata}, parallelism=5)
    found = template_labels(labelled(job))
    assert (found[PG], found[SZ]) == ("mygrp", "5")
    alone = template_labels(labelled(pod({"name": "p", **metadata})))
    assert (alone[PG], alone[SZ]) == ("mygrp", "5")


@pytest.mark.parametrize("ours", [{PG: "g", SZ: "2"}, {PG: "g"}, {SZ: "2"}], ids=["both", "group", "size"])
def test_a_size_that_is_not_read_cannot_be_wrong(ours: dict[str, str]) -> None:
    """Rules A3 and A4: beside our own keys that of another system is none of our business."""
    told = {"scheduling.k8s.io/group-name": "vg", "scheduling.k8s.io/min-available": "many"}
    assert decided(pod({"name": "p", "labels": {**told, **ours}})).allowed
    assert not decided(pod({"name": "p", "labels": told})).allowed


def test_our_own_keys_come_first() -> None:
    """Rule A3."""
    labels = {PG: "new", "fluence.pod-group": "old"}
    job = workload("Job", "j", {"metadata": {"labels": labels}}, parallelism=2)
    assert template_labels(labelled(job)) == {**labels, SZ: "2"}


def test_a_group_without_a_size_is_counted_by_the_rule() -> None:
    job = workload("Job", "j", {"metadata": {"labels": {"fluence.pod-group": "old"}}}, parallelism=2)
    assert template_labels(labelled(job)) == {"fluence.pod-group": "old", PG: "old", SZ: "2"}


def test_another_systems_size_does_not_make_a_gang_of_pods_that_come_one_by_one() -> None:
    """Case C16: Kueue writes its labels into StatefulSets of both kinds."""
    metadata = {
        "labels": {"kueue.x-k8s.io/pod-group-name": "statefulset-db"},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "3"},
    }
    sts = workload("StatefulSet", "db", {"metadata": metadata}, replicas=3)
    found = template_labels(labelled(sts))
    assert (found[PG], found[SZ]) == ("statefulset-db", "1")


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        ({"fluence.pod-group": "My_Group"}, "fluence.pod-group"),
        ({SCHEDULER_PLUGINS: "g", f"{SCHEDULER_PLUGINS}/min-available": "x"}, "min-available"),
    ],
)
def test_a_value_that_cannot_be_taken_over_is_denied_with_its_key(labels: Object, key: str) -> None:
    """Rule A4: to group half of what was meant would be worse."""
    decision = decided(pod({"name": "p", "labels": labels}))
    assert not decision.allowed
    assert key in decision.message


def test_objects_that_did_not_ask_for_us_keep_their_own_system() -> None:
    """Rule A2."""
    labels = {"fluence.pod-group": "My_Group"}
    assert decided(pod({"name": "p", "labels": labels}, scheduler="volcano")) == UNCHANGED
    spec = {"metadata": {"labels": labels}, "spec": pod_spec(scheduler=None)}
    assert decided(workload("Job", "j", spec)) == UNCHANGED
