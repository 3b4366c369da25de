"""`fluence rules`: what an administrator sees of the table, and of a file of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from fluence.commands import app
from groups.workloads.rules import builtin_rules, read_rules
from tests.chart.conftest import Helm
from tests.webhook.manifests import POD, added
from tests.webhook.reviews import Object, decided
from webhook.decide import Policy
from webhook.offline import label_object

EXAMPLES = Path(__file__).parents[2] / "manifests/examples"
#: Ten lines.
GADGETS = """\
rules:
  - kind: Gadget
    group: example.com
    version: v1
    resource: gadgets
    templates:
      - path: spec.leader.template
      - path: spec.crew[*].template
        pods: {path: "spec.crew[*].count", default: 1}
        most: {path: "spec.crew[*].most"}
"""
GADGET: Object = {
    "apiVersion": "example.com/v1",
    "kind": "Gadget",
    "metadata": {"name": "g"},
    "spec": {"leader": {"template": POD}, "crew": [{"count": 3, "template": POD}, {"template": POD}]},
}


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["rules", *map(str, arguments)], input=stdin)


@pytest.fixture
def gadgets(tmp_path: Path) -> Path:
    file = tmp_path / "gadgets.yaml"
    file.write_text(GADGETS)
    return file


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_example_is_explained_with_rule_templates_size_and_labels(example: Path) -> None:
    """And by the labels that the same file gets at admission."""
    result = run("explain", "-f", example)
    assert result.exit_code == 0, result.output
    assert "rule      " in result.stdout
    for value in yaml.safe_load_all(example.read_text()):
        patches = added(value, uid="u")
        rule = builtin_rules().find(value["apiVersion"], value["kind"])
        assert rule is not None
        if rule.untouched is not None:
            assert not patches
            assert rule.untouched.because in result.stdout
            continue
        assert patches or f"{value['metadata']['name']}" in result.stdout
        for group, size in patches.values():
            assert f"group   {group}" in result.stdout or group is None
            assert f"size    {size}" in result.stdout or size is None


def test_there_is_an_example_of_each_kind() -> None:
    shown = {
        (value["apiVersion"], value["kind"])
        for example in EXAMPLES.glob("*.yaml")
        for value in yaml.safe_load_all(example.read_text())
    }
    rules = builtin_rules()
    missing = [
        rule.kind
        for rule in rules.all
        if not any(rules.find(api_version, kind) is rule for api_version, kind in shown)
    ]
    assert missing == ["ScheduledSparkApplication"]


def test_a_ten_line_file_labels_an_unknown_kind(gadgets: Path) -> None:
    """ "An unknown kind added by a ten-line rules file is labelled without touching code"."""
    assert len(GADGETS.splitlines()) == 10
    assert decided(GADGET).patch == ()
    policy = Policy(rules=read_rules(gadgets))
    assert added(GADGET, policy) == {
        "/spec/leader/template": ("fluence-group-default-gadget.g", "5"),
        "/spec/crew/0/template": ("fluence-group-default-gadget.g", "5"),
        "/spec/crew/1/template": ("fluence-group-default-gadget.g", "5"),
    }
    outcome = label_object(json.loads(json.dumps(GADGET)), "default", policy, lambda: "u")
    assert decided(outcome.value, policy).patch == ()


def test_rules_of_ones_own_are_explained(gadgets: Path) -> None:
    result = run("explain", "-f", "-", "--rules", gadgets, stdin=json.dumps(GADGET))
    assert result.exit_code == 0, result.output
    for part in (
        f"rule      Gadget of example.com, in {gadgets}",
        "template  spec.crew[0].template",
        "3 (count)",
        "1 (count by default)",
        "size    5 = 1 + 3 + 1",
    ):
        assert part in result.stdout


@pytest.mark.parametrize(
    ("obj", "says"),
    [
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMap"}, "no rule is for kind ConfigMap", id="unknown"
        ),
        pytest.param({**GADGET, "kind": "Job"}, "no rule is for kind Job of example.com/v1", id="group"),
        pytest.param(
            {"apiVersion": "batch/v1", "kind": "Job", "spec": {}},
            "spec.template.spec.schedulerName is not fluence",
            id="not-opted-in",
        ),
        pytest.param(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": "r",
                    "ownerReferences": [{"kind": "Deployment", "name": "d", "controller": True}],
                },
                "spec": {"template": POD},
            },
            'it is controlled by Deployment "d"',
            id="owned",
        ),
        pytest.param(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "j", "namespace": "kube-system"},
                "spec": {"template": POD},
            },
            "kube-system",
            id="system",
        ),
        pytest.param(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "j", "labels": {"fluence.group-size": "x"}},
                "spec": {"template": POD},
            },
            "denied    fluence.group-size",
            id="mistake",
        ),
    ],
)
def test_it_is_said_why_nothing_is_done(obj: Object, says: str) -> None:
    result = run("explain", "-f", "-", stdin=json.dumps(obj))
    assert result.exit_code == 0, result.output
    assert says in result.stdout


def test_lists_and_several_documents_are_explained_one_by_one() -> None:
    values = [{"apiVersion": "v1", "kind": "List", "items": [GADGET, GADGET]}, GADGET]
    result = run("explain", "-f", "-", stdin=yaml.safe_dump_all(values))
    assert result.stdout.count('Gadget "g"') == 3


def test_a_good_file_is_summed_up(gadgets: Path) -> None:
    gadgets.write_text(
        GADGETS + "  - {kind: Job, group: batch, version: v1, resource: jobs, untouched: {because: so}}\n"
    )
    result = run("check", gadgets)
    assert result.exit_code == 0
    assert "adds Gadget of example.com v1: one gang" in result.stdout
    assert "replaces ours for Job of batch v1: left as it is: so" in result.stdout


def test_a_wrong_file_is_refused_with_file_rule_and_field(gadgets: Path) -> None:
    gadgets.write_text(GADGETS.replace("default: 1", "default: one"))
    result = run("check", gadgets)
    assert result.exit_code != 0
    for part in (str(gadgets), "rule 1 (Gadget)", '"templates.1.pods.default"'):
        assert part in str(result.exception)
    explained = run("explain", "-f", EXAMPLES / "job.yaml", "--rules", gadgets)
    assert str(explained.exception) == str(result.exception)


def test_every_kind_is_listed() -> None:
    lines = run("list").stdout.splitlines()
    assert len(lines) == len(builtin_rules().all)
    assert any(line.startswith("MPIJob of kubeflow.org v2beta1/v1") for line in lines)


def test_the_chart_installs_what_the_command_prints(gadgets: Path, tmp_path: Path, helm: Helm) -> None:
    """The rules for both processes, a webhook with its condition, ours for the same kind left out, rights."""
    gadgets.write_text(
        GADGETS + "  - {kind: Job, group: batch, version: v1, resource: jobs, untouched: {because: so}}\n"
    )
    values = tmp_path / "values.yaml"
    values.write_text(run("registration", gadgets).stdout)
    rendered = helm.template(f"--values={values}", "--set=schedulerName=gang")
    found: list[dict[str, Any]] = [one for one in yaml.safe_load_all(rendered) if one]
    of = {(one["kind"], one["metadata"]["name"]): one for one in found}
    assert of["ConfigMap", "fluence-rules"]["data"] == {"rules.yaml": gadgets.read_text()}
    hooks = {one["name"]: one for one in of["MutatingWebhookConfiguration", "fluence"]["webhooks"]}
    domain = "fluence.flux-framework.org"
    workloads = hooks[f"workloads.{domain}"]
    assert "deployments.apps" in [one["name"] for one in workloads["matchConditions"]]
    assert "jobs.batch" not in [one["name"] for one in workloads["matchConditions"]]
    assert not any("jobs" in one["resources"] and "batch" in one["apiGroups"] for one in workloads["rules"])
    ours, pods = hooks[f"gadgets.example.com.{domain}"], hooks[f"pods.{domain}"]
    assert {**ours, "name": 0, "rules": 0, "matchConditions": 0} == {
        **pods,
        "name": 0,
        "rules": 0,
        "matchConditions": 0,
    }
    (condition,) = ours["matchConditions"]
    assert 'schedulerName == "gang"' in condition["expression"]
    assert "object.spec.crew.exists(" in condition["expression"]
    rights = of["ClusterRole", "fluence-controller"]["rules"]
    assert {
        "apiGroups": ["example.com"],
        "resources": ["gadgets"],
        "verbs": ["get", "list", "watch"],
    } in rights
    for process, reads in (("webhook", True), ("controller", True), ("scheduler", False)):
        spec = of["Deployment", f"fluence-{process}"]["spec"]["template"]["spec"]
        assert ("--rules=/etc/fluence/rules.yaml" in spec["containers"][0]["args"]) == reads
        assert any(one["name"] == "rules" for one in spec["volumes"]) == reads
