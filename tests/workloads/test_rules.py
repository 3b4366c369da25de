"""The table of rules: what is shipped, and what is said about a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from groups.objects import OwnerReference
from groups.workloads.rules import RulesError, builtin_rules, load_rules, read_rules

GOOD = """
rules:
  - {kind: Gadget, group: example.com, version: v1, resource: gadgets,
     templates: [spec.template], named-by: object}
"""


def template(more: str) -> str:
    """GOOD with more about its template."""
    return GOOD.replace("spec.template", "{path: spec.template, " + more[1:])


def test_the_shipped_table_holds_every_kind_in_use() -> None:
    assert [f"{rule.kind}.{rule.group}".strip(".") for rule in builtin_rules().all] == [
        "Pod",
        "Job.batch",
        "CronJob.batch",
        "ReplicaSet.apps",
        "Deployment.apps",
        "StatefulSet.apps",
        "ReplicationController",
        "DaemonSet.apps",
        "JobSet.jobset.x-k8s.io",
        "LeaderWorkerSet.leaderworkerset.x-k8s.io",
        "Job.batch.volcano.sh",
        "MiniCluster.flux-framework.org",
        "MPIJob.kubeflow.org",
        "PyTorchJob.kubeflow.org",
        "TFJob.kubeflow.org",
        "XGBoostJob.kubeflow.org",
        "JAXJob.kubeflow.org",
        "PaddleJob.kubeflow.org",
        "TrainJob.trainer.kubeflow.org",
        "Notebook.kubeflow.org",
        "RayCluster.ray.io",
        "RayJob.ray.io",
        "RayService.ray.io",
        "SparkApplication.sparkoperator.k8s.io",
        "ScheduledSparkApplication.sparkoperator.k8s.io",
        "AppWrapper.workload.codeflare.dev",
        "Workflow.argoproj.io",
    ]


def test_a_kind_of_another_group_or_version_is_not_ours() -> None:
    rules = builtin_rules()
    assert rules.find("batch/v1", "Job") is not None
    assert rules.find("batch.volcano.sh/v1", "Job") is None
    assert rules.find("extensions/v1beta1", "Deployment") is None
    assert rules.find("", "") is None


def test_an_owner_is_counted_whatever_version_its_reference_names() -> None:
    """Rule A8: references written by an older API server name its version."""
    rules = builtin_rules()
    assert rules.counted_owner(OwnerReference("ReplicaSet", "x", "", "apps/v1beta2")) is not None
    assert rules.counted_owner(OwnerReference("Pod", "driver", "", "v1")) is None
    assert rules.counted_owner(OwnerReference("DaemonSet", "x", "", "apps/v1")) is None
    assert rules.counted_owner(OwnerReference("MPIJob", "x", "", "kubeflow.org/v1")) is not None


def test_a_rule_for_a_new_kind_needs_no_code() -> None:
    rule = load_rules("more.yaml", GOOD).find("example.com/v1", "Gadget")
    assert rule is not None
    assert [one.path for one in rule.templates] == [("spec", "template")]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("rules: [", ["my.yaml", "line 2"]),
        ("- 1", ["my.yaml", '"rules"']),
        ("rules: 3", ["my.yaml", '"rules"']),
        ("", ["my.yaml", '"rules"']),
        ("rules: [3]", ["my.yaml", "rule 1"]),
        (GOOD.replace("group: example.com, ", ""), ["my.yaml", "rule 1 (Gadget)", '"group"', "required"]),
        (
            GOOD.replace("spec.template", "spec..template"),
            ["rule 1 (Gadget)", '"templates.0.path"', '"spec..template"'],
        ),
        (GOOD.replace("[spec.template]", "[]"), ["rule 1 (Gadget)", '"templates"']),
        (GOOD.replace("object", "somebody"), ["rule 1 (Gadget)", '"named-by"']),
        (GOOD.replace("named-by", "nmed-by"), ["rule 1 (Gadget)"]),
        (template("{pods: {path: spec.n, default: -1}}"), ['"templates.0.pods.default"', "0"]),
        (template("{pods: {path: spec.n, default: 'x'}}"), ['"templates.0.pods.default"', "integer"]),
        (template("{pods: {path: spec.n[}}"), ["my.yaml", "line 4"]),
        (template("{pods: {path: 'spec.n['}}"), ['"templates.0.pods.path"', '"spec.n["']),
        (template("{pods: {path: 'spec.tasks[*].n'}}"), ['"templates.0.pods"', '"spec.tasks[*].n"']),
        (template("{pods: {path: spec.n, sum: [1, 2]}}"), ['"templates.0.pods"', "a count is one of"]),
        (
            template("{pods: {sum: [1, {largest: [{path: ..}]}]}}"),
            ['"templates.0.pods.sum.1.largest.0.path"'],
        ),
        (
            template("{pods: {when: {path: spec.a}, then: 1, else: 2}}"),
            ["pods.when", '"equals" and "present"'],
        ),
        (template("{pods: {when: {path: a, equals: x}, then: 1}}"), ['"templates.0.pods"', '"else"']),
        (template("{own-group: {when: []}}"), ['"templates.0.own-group"', '"suffix"']),
        (GOOD.replace("}", ", gang-when: {path: 'spec.a[*].b', equals: x}}"), ['"gang-when"', "no wildcard"]),
        (GOOD.replace("}", ", untouched: {because: ''}}"), ['"untouched.because"']),
        (GOOD.replace("templates: [spec.template], ", ""), ["rule 1 (Gadget)", '"templates"', "untouched"]),
        (GOOD.replace("version: v1", "version: []"), ["rule 1 (Gadget)", '"version"']),
        ("older-labels: [{of: x, group: '?'}]", ["my.yaml: older label 1", '"group"']),
        ("older-labels: {}", ["my.yaml", '"older-labels" must be a list']),
        (GOOD + GOOD.replace("rules:", ""), ["rule 2 (Gadget)", '"kind"', "rule 1"]),
    ],
)
def test_a_wrong_table_is_refused_with_file_rule_and_field(content: str, expected: list[str]) -> None:
    with pytest.raises(RulesError) as error:
        load_rules("my.yaml", content)
    message = str(error.value)
    assert "\n" not in message
    for part in expected:
        assert part in message


def test_a_kind_that_others_belong_to_needs_a_rule(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text(
        GOOD.replace("}", ", belongs-to: [{kind: Gizmo, group: example.com, name-label: gizmo}]}"), "utf-8"
    )
    with pytest.raises(RulesError) as error:
        read_rules(file)
    for part in (str(file), "(Gadget)", '"belongs-to.0.kind"', "Gizmo"):
        assert part in str(error.value)


def test_a_rule_of_the_administrator_takes_the_place_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text(
        "rules: [{kind: Job, group: batch, version: v1, resource: jobs, untouched: {because: so}}]", "utf-8"
    )
    rules, ours = read_rules(file), builtin_rules()
    job = rules.of_kind("batch", "Job")
    assert job is not None
    assert job.untouched is not None
    assert rules.source_of(job) == str(file)
    assert len(rules.all) == len(ours.all)
    assert rules.older == ours.older


@pytest.mark.parametrize(
    ("content", "expected"), [(b"\xff", "not UTF-8"), (None, "No such file")], ids=["no-text", "no-file"]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, expected: str) -> None:
    file = tmp_path / "my.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(RulesError, match=expected):
        read_rules(file)
