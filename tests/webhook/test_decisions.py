"""What the webhook answers to the cases of section 1, review by review."""

from __future__ import annotations

from typing import Any

import pytest

from groups.contract import is_group_name
from groups.workloads.rules import load_rules
from tests.webhook.reviews import (
    PG,
    SZ,
    TEMPLATED,
    Object,
    applied,
    decided,
    labelled,
    pod,
    pod_spec,
    template_labels,
    workload,
)
from webhook.decide import UNCHANGED, Policy


def owned_by(api_version: str, kind: str, name: str, **more: Any) -> Object:
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": "o", "controller": True}
    return {"ownerReferences": [{**reference, **more}]}


# Names


def test_bare_pods_with_a_generated_name_each_get_a_group() -> None:
    """Case C01."""
    probe = pod({"generateName": "probe-"})
    first, second = (template_labels(labelled(probe, uid=uid, name="")) for uid in ("u-1", "u-2"))
    assert first[SZ] == second[SZ] == "1"
    assert first[PG] != second[PG]
    assert is_group_name(first[PG])
    assert is_group_name(second[PG])
    assert first[PG].startswith("fluence-group-probe-")


@pytest.mark.parametrize("metadata", [{}, {"namespace": "default"}, {"namespace": ""}])
def test_the_namespace_is_the_one_of_the_request(metadata: Object) -> None:
    """Case C02: objects of controllers, or applied with -n, name none or a wrong one."""
    job = workload("Job", "train", metadata=metadata, parallelism=2, completions=2)
    assert template_labels(labelled(job, namespace="team-a")) == {PG: "fluence-group-team-a-train", SZ: "2"}


def test_the_objects_own_namespace_counts_where_the_request_names_none() -> None:
    """Rule W33."""
    job = workload("Job", "train", metadata={"namespace": "team-b"})
    assert template_labels(labelled(job, namespace=None))[PG] == "fluence-group-team-b-train"


def test_long_names_are_cut_and_stay_apart() -> None:
    """Case C03."""
    namespace = "machine-learning-platform-production-emea"
    names = [f"llama-70b-finetune-2024-06-01-run-0000000000000000{n}" for n in ("42", "43")]
    groups = [template_labels(labelled(workload("Job", name), namespace=namespace))[PG] for name in names]
    assert all(is_group_name(group) for group in groups)
    assert groups[0] != groups[1]
    assert (
        groups[0]
        == template_labels(labelled(workload("Job", names[0]), namespace=namespace, uid="again"))[PG]
    )


# Mistakes


@pytest.mark.parametrize("value", ["abc", "0", "-1", "1.5", "+3", " 3", "3 ", "03", "1e3", "2147483648", "٣"])
@pytest.mark.parametrize("on_template", [False, True])
def test_a_bad_size_is_denied_with_key_value_and_rule(value: str, on_template: bool) -> None:
    """Case C04, rule A4."""
    labels = {"labels": {SZ: value}}
    job = (
        workload("Job", "bad", {"metadata": labels}, parallelism=2)
        if on_template
        else workload("Job", "bad", metadata=labels, parallelism=2)
    )
    decision = decided(job)
    assert not decision.allowed
    assert 400 <= decision.code < 500
    for part in (SZ, f'"{value}"', "positive integer"):
        assert part in decision.message


@pytest.mark.parametrize("value", ["Train", "a_b", "a..b", "-a", "a-", "a b", "x" * 64, "y" * 500])
def test_a_bad_group_name_is_denied_with_key_value_and_rule(value: str) -> None:
    """Rule A4."""
    decision = decided(pod({"name": "p", "labels": {PG: value}}))
    assert not decision.allowed
    assert decision.code == 422
    assert PG in decision.message
    assert value[:60] in decision.message
    assert "63 characters" in decision.message
    assert len(decision.message) < 400


def test_empty_labels_are_as_good_as_none() -> None:
    """Case C04."""
    job = workload("Job", "bad", metadata={"labels": {SZ: "", PG: ""}}, parallelism=2, completions=2)
    assert template_labels(labelled(job)) == {PG: "fluence-group-default-bad", SZ: "2"}
    template = {"metadata": {"labels": {SZ: "", PG: None, "app": "x"}}}
    job = workload("Job", "bad", template, parallelism=2)
    assert template_labels(labelled(job)) == {PG: "fluence-group-default-bad", SZ: "2", "app": "x"}


@pytest.mark.parametrize("value", [5, 5.5, True, [1], {"a": 1}, pytest.param(10**5000, id="huge")])
@pytest.mark.parametrize("key", [SZ, PG])
def test_a_number_instead_of_a_string_is_denied_with_the_key(value: Any, key: str) -> None:
    """Case C07: the API server refuses it in built-in kinds, but not inside custom resources."""
    rules = load_rules(
        "test",
        "rules: [{kind: Gadget, group: example.com, version: v1, resource: gadgets, "
        "templates: [spec.template], named-by: object}]",
    )
    template = {"metadata": {"labels": {key: value}}, "spec": pod_spec()}
    gadget = {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": "g"},
        "spec": {"template": template},
    }
    decision = decided(gadget, Policy(rules=rules))
    assert not decision.allowed
    assert 400 <= decision.code < 500
    assert key in decision.message
    assert "quoted string" in decision.message


# Patches


def test_an_object_without_any_labels_gets_the_missing_parents() -> None:
    """Case C08."""
    job = workload("Job", "bare", parallelism=3, completions=3)
    assert template_labels(labelled(job)) == {PG: "fluence-group-default-bare", SZ: "3"}
    assert template_labels(labelled(pod({"name": "p0"}))) == {PG: "fluence-group-p0", SZ: "1"}


def test_labels_that_are_there_stay_and_the_key_is_escaped() -> None:
    """Case C09."""
    web = pod({"name": "web-x", "labels": {"app": "web", "pod-template-hash": "5d4f"}})
    decision = decided(web)
    assert [operation["path"] for operation in decision.patch] == [
        "/metadata/labels/scheduling.x-k8s.io~1pod-group",
        "/metadata/labels/fluence.group-size",
    ]
    after = applied(web, decision)
    assert template_labels(after) == {
        "app": "web",
        "pod-template-hash": "5d4f",
        PG: "fluence-group-web-x",
        SZ: "1",
    }
    assert {**after, "metadata": None} == {**web, "metadata": None}


@pytest.mark.parametrize(
    ("template", "spec", "size"),
    [
        ({"metadata": None}, {"replicas": 2}, "2"),
        ({"metadata": {"creationTimestamp": None}}, {"replicas": 2}, "2"),
        ({"metadata": {"labels": None}}, {"replicas": 2}, "2"),
        ({}, {}, "1"),
    ],
)
def test_nulls_in_place_of_maps_are_as_good_as_missing(template: Object, spec: Object, size: str) -> None:
    """Case C10."""
    deployment = workload("Deployment", "d", template, **spec)
    assert template_labels(labelled(deployment)) == {PG: "fluence-group-default-deployment.d", SZ: size}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [("Deployment", {}), ("ReplicaSet", {}), ("StatefulSet", {"podManagementPolicy": "Parallel"})],
)
def test_a_group_named_on_the_template_alone_is_kept(kind: str, spec: Object) -> None:
    """Case C11, rule A3."""
    template = {"metadata": {"labels": {"app": "pause", PG: "pg1"}}, "spec": pod_spec("100m")}
    pause = workload(kind, "pause", template, replicas=10, selector={"matchLabels": {"app": "pause"}}, **spec)
    after = labelled(pause)
    assert template_labels(after) == {"app": "pause", PG: "pg1", SZ: "10"}
    assert after["metadata"] == pause["metadata"]


@pytest.mark.parametrize("kind", TEMPLATED)
def test_labels_on_the_object_reach_the_template(kind: str) -> None:
    """Rule A3."""
    mine = workload(kind, "w", metadata={"labels": {PG: "mine", SZ: "7"}})
    assert template_labels(labelled(mine)) == {PG: "mine", SZ: "7"}


def test_a_template_that_says_otherwise_than_its_object_wins_with_a_warning() -> None:
    """Rule A3: a valid value is never rewritten; the pods carry the template's."""
    both = workload(
        "Job", "j", {"metadata": {"labels": {PG: "b", SZ: "2"}}}, metadata={"labels": {PG: "a", SZ: "2"}}
    )
    decision = decided(both)
    assert not decision.patch
    (warning,) = decision.warnings
    assert '"a"' in warning
    assert '"b"' in warning
    assert len(warning) <= 120


@pytest.mark.parametrize(
    ("kind", "spec", "size"),
    [
        ("Job", {"parallelism": 5, "completions": 3}, "3"),
        ("Job", {"parallelism": 3, "completions": 10}, "3"),
        ("Job", {"completions": 4}, "1"),
        ("Job", {"parallelism": 4}, "4"),
        ("Job", {"parallelism": 0}, "1"),
        ("Deployment", {"replicas": 0}, "1"),
        ("Job", {"suspend": True, "parallelism": 4, "completions": 4}, "4"),
        ("StatefulSet", {"replicas": 3, "serviceName": "db"}, "1"),
        ("StatefulSet", {"replicas": 3, "podManagementPolicy": "Parallel"}, "3"),
    ],
)
def test_sizes_at_admission(kind: str, spec: Object, size: str) -> None:
    """Cases C14, C15 and C16."""
    assert template_labels(labelled(workload(kind, "w", **spec)))[SZ] == size


# Pods


def test_a_bare_pod_that_names_its_group_gets_the_size_and_the_other_way_round() -> None:
    assert template_labels(labelled(pod({"name": "p", "labels": {PG: "g"}}))) == {PG: "g", SZ: "1"}
    assert template_labels(labelled(pod({"name": "p", "labels": {SZ: "4"}}))) == {
        PG: "fluence-group-p",
        SZ: "4",
    }


def test_a_complete_pod_needs_no_pod_group_to_exist() -> None:
    """Case C38."""
    assert decided(pod({"name": "p", "labels": {PG: "later", SZ: "2"}})) == UNCHANGED


@pytest.mark.parametrize(
    ("owner", "labels", "group"),
    [
        (("batch/v1", "Job", "train"), {}, "fluence-group-default-train"),
        (("apps/v1", "StatefulSet", "db"), {}, "fluence-group-default-statefulset.db"),
        (("apps/v1", "ReplicaSet", "rs"), {}, "fluence-group-default-replicaset.rs"),
        (
            ("apps/v1", "ReplicaSet", "web-5d4f"),
            {"pod-template-hash": "5d4f"},
            "fluence-group-default-deployment.web",
        ),
    ],
)
def test_a_pod_of_an_older_workload_joins_the_workloads_group(
    owner: tuple[str, ...], labels: Object, group: str
) -> None:
    """Rule A8: no size is written, for the controller counts the owner."""
    member = pod({"generateName": f"{owner[2]}-", "labels": labels, **owned_by(*owner)})
    after = labelled(member)
    assert template_labels(after) == {**labels, PG: group}
    assert decided(after) == UNCHANGED


def test_a_pod_of_an_unknown_owner_is_a_group_of_its_own() -> None:
    """Rule A8, case C28: executors of a Spark driver pod."""
    executor = pod({"name": "exec-1", **owned_by("v1", "Pod", "pi-driver")})
    assert template_labels(labelled(executor)) == {PG: "fluence-group-exec-1", SZ: "1"}


@pytest.mark.parametrize(
    "untouched",
    [
        pytest.param(pod({"name": "p", **owned_by("apps/v1", "DaemonSet", "agent")}), id="daemonset-pod"),
        pytest.param(
            pod({"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}), id="mirror-pod"
        ),
        pytest.param(workload("DaemonSet", "agent"), id="daemonset"),
    ],
)
def test_pods_that_belong_to_one_node_are_left_alone(untouched: Object) -> None:
    """Case C29."""
    assert decided(untouched) == UNCHANGED


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "kube-node-lease", "fluence-system"])
def test_namespaces_of_the_cluster_and_of_ours_are_left_alone(namespace: str) -> None:
    """Case C29, rule W26."""
    policy = Policy(
        skipped_namespaces=frozenset(("kube-system", "kube-public", "kube-node-lease", "fluence-system"))
    )
    assert decided(pod({"name": "p", "labels": {SZ: "abc"}}), policy, namespace=namespace) == UNCHANGED


# Nothing else is touched


@pytest.mark.parametrize("scheduler", [None, "volcano", "default-scheduler", "Fluence", ""])
@pytest.mark.parametrize("kind", ["Pod", *TEMPLATED])
def test_objects_of_other_schedulers_are_not_judged(kind: str, scheduler: str | None) -> None:
    """Case C30."""
    spec = pod_spec(scheduler=scheduler)
    bad = {"labels": {SZ: "abc"}}
    obj = (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **bad}, "spec": spec}
        if kind == "Pod"
        else workload(kind, "w", {"metadata": bad, "spec": spec}, metadata=bad)
    )
    assert decided(obj) == UNCHANGED


def test_another_scheduler_name_can_be_ours() -> None:
    policy = Policy(scheduler_name="gang")
    assert decided(pod({"name": "p"}), policy) == UNCHANGED
    mine = pod({"name": "p"}, scheduler="gang")
    assert template_labels(applied(mine, decided(mine, policy)))[SZ] == "1"


@pytest.mark.parametrize("owner", [("apps/v1", "Deployment"), ("argoproj.io/v1alpha1", "Rollout")])
def test_a_replicaset_with_a_controller_is_left_alone(owner: tuple[str, str]) -> None:
    """Case C31: its owner compares the template, and would replace it without end."""
    mine = workload("ReplicaSet", "web-5d4f", metadata=owned_by(*owner, "web"), replicas=2)
    assert decided(mine) == UNCHANGED


def test_a_replicaset_without_a_controller_is_labelled() -> None:
    """Case C31."""
    mine = workload(
        "ReplicaSet", "web", metadata=owned_by("v1", "ConfigMap", "c", controller=False), replicas=2
    )
    assert template_labels(labelled(mine))[SZ] == "2"


@pytest.mark.parametrize(
    "more",
    [
        {"operation": "UPDATE"},
        {"operation": "UPDATE", "sub_resource": "scale"},
        {"operation": "UPDATE", "sub_resource": "status"},
        {"operation": "CONNECT"},
        {"operation": "CREATE", "sub_resource": "ephemeralcontainers"},
        {"operation": ""},
    ],
)
def test_only_creation_is_looked_at(more: Object) -> None:
    """Case C33: a running Job's template cannot be changed."""
    assert decided(workload("Job", "j", metadata={"labels": {SZ: "abc"}}), **more) == UNCHANGED
    assert decided(None, operation="DELETE") == UNCHANGED
    assert decided(None) == UNCHANGED


def test_a_dry_run_gets_the_same_patch() -> None:
    """Case C34."""
    job = workload("Job", "train", parallelism=2)
    assert decided(job, dry_run=True) == decided(job, dry_run=False)


def test_kinds_without_a_rule_are_left_alone() -> None:
    """Case C35."""
    assert decided({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}) == UNCHANGED
    foreign = {**workload("Job", "j"), "apiVersion": "batch.volcano.sh/v1alpha1"}
    assert decided(foreign) == UNCHANGED


def test_a_cronjob_keeps_an_unlabelled_template() -> None:
    """Case C17: its Jobs are labelled one by one, so that two runs are two groups."""
    job_spec = workload("Job", "x", parallelism=3, completions=3)["spec"]
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job_spec}},
    }
    assert decided(cron) == UNCHANGED
    run = workload(
        "Job", "nightly-28512345", metadata=owned_by("batch/v1", "CronJob", "nightly"), parallelism=3
    )
    assert template_labels(labelled(run)) == {PG: "fluence-group-default-nightly-28512345", SZ: "3"}


def test_an_empty_label_by_which_pods_are_selected_is_a_mistake() -> None:
    """Rules A4 and W37: with a value of ours the API server would refuse what the user did not write."""
    template = {"metadata": {"labels": {PG: ""}}, "spec": {"schedulerName": "fluence"}}
    for selector in ({PG: ""}, {"matchLabels": {PG: ""}}):
        spec = {"selector": selector, "template": template}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
        denied = decided(job)
        assert (denied.allowed, denied.code) == (False, 422)
        assert denied.message.startswith(f"{PG}: an empty label cannot select pods; give it a value")
    spec = {"selector": {"app": "a"}, "template": template}
    assert decided({**job, "spec": spec}).allowed
