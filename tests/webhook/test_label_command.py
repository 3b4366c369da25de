"""`fluence label`: the webhook's labels without a webhook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from fluence.commands import app
from tests.webhook.reviews import PG, POLICY, SZ, labelled, objects, pod, template_labels, workload
from webhook.documents import read_documents, write_documents
from webhook.offline import label_object

EXAMPLES = Path(__file__).parents[2] / "manifests/examples"


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["label", *map(str, arguments)], input=stdin)


def label(text: str, *arguments: str) -> list[Any]:
    result = run("-f", "-", *arguments, stdin=text)
    assert result.exit_code == 0, result.stderr
    return list(yaml.safe_load_all(result.stdout))


JOB = workload("Job", "train", parallelism=2, completions=2)


@settings(deadline=None)
@given(objects())
def test_the_command_decides_what_the_webhook_decides(obj: dict[str, Any]) -> None:
    outcome = label_object(obj, "default", POLICY, lambda: "u-1")
    if not outcome.denials:
        assert outcome.value == labelled(obj)


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53), 2**53),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.text(), json_values, max_size=4), max_size=3))
def test_every_value_comes_out_as_it_went_in(values: list[dict[str, Any]]) -> None:
    """Through YAML, and through the JSON that YAML's users call YAML."""
    assert [document.value for document in read_documents("x", write_documents(values))] == values
    texts = "\n".join(json.dumps(value, indent="\t") for value in values)
    assert [document.value for document in read_documents("x", texts)] == values


@pytest.mark.parametrize(
    "value",
    [
        "1e3",
        "12e03",
        "0o17",
        "0x1F",
        "1_000",
        "12:30",
        "y",
        "N",
        "on",
        "no",
        "~",
        "null",
        ".5",
        "1.",
        "-",
        "2024-01-01",
        "2024-01-01T00:00:00Z",
        "+.inf",
        "007",
    ],
)
def test_a_string_that_another_reader_takes_for_something_else_is_quoted(value: str) -> None:
    """kubectl reads YAML in Go, to which an unquoted 1e3 is a number."""
    text = write_documents([{"a": value}])
    assert text.split("a: ")[1][0] in "'\""
    assert read_documents("x", text)[0].value == {"a": value}


def test_times_stay_text() -> None:
    (document,) = label("kind: X\nat: 2024-01-01T00:00:00Z\n")
    result = run("-f", "-", stdin="kind: X\nat: 2024-01-01T00:00:00Z\n")
    assert "2024-01-01T00:00:00Z" in result.stdout
    assert document["kind"] == "X"


def test_several_documents_in_yaml_and_json_come_out_as_yaml(tmp_path: Path) -> None:
    """Case C30: what is not ours passes through."""
    foreign = pod({"name": "p", "labels": {SZ: "abc"}}, scheduler="volcano")
    first = tmp_path / "a.yaml"
    first.write_text("---\n---\n" + yaml.safe_dump_all([JOB, foreign]) + "---\n# nothing\n")
    second = tmp_path / "b.json"
    second.write_text(json.dumps(workload("Deployment", "web", replicas=3)))
    result = run("-f", first, "-f", second)
    assert result.exit_code == 0
    job, other, deployment = yaml.safe_load_all(result.stdout)
    assert template_labels(job) == {PG: "fluence-group-default-train", SZ: "2"}
    assert other == foreign
    assert template_labels(deployment) == {PG: "fluence-group-default-deployment.web", SZ: "3"}


def test_lists_are_labelled_item_by_item() -> None:
    (listed,) = label(json.dumps({"apiVersion": "v1", "kind": "List", "items": [JOB, pod({"name": "p"}), 3]}))
    assert template_labels(listed["items"][0])[SZ] == "2"
    assert template_labels(listed["items"][1])[PG] == "fluence-group-p"
    assert listed["items"][2] == 3
    untyped = {"metadata": {"name": "p"}, "spec": pod({})["spec"]}
    (pods,) = label(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [untyped]}))
    assert template_labels(pods["items"][0]) == {PG: "fluence-group-p", SZ: "1"}


def test_the_namespace_is_the_files_then_the_options() -> None:
    (job,) = label(json.dumps(JOB), "--namespace", "team-a")
    assert template_labels(job)[PG] == "fluence-group-team-a-train"
    (job,) = label(json.dumps(workload("Job", "train", metadata={"namespace": "b"})), "-n", "team-a")
    assert template_labels(job)[PG] == "fluence-group-b-train"


def test_another_scheduler_name_can_be_labelled() -> None:
    (mine,) = label(json.dumps(pod({"name": "p"}, scheduler="gang")), "--scheduler-name", "gang")
    assert template_labels(mine)[SZ] == "1"


def test_objects_with_a_generated_name_get_a_group_each_time() -> None:
    """Case C01: there is no request and no uid offline."""
    text = json.dumps(pod({"generateName": "probe-"}))
    groups = {template_labels(label(text)[0])[PG] for _ in range(3)}
    assert len(groups) == 3


def test_labels_shared_by_an_anchor_do_not_reach_the_selector() -> None:
    """A selector that changes with the template would match another object's pods, or none."""
    text = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: &app {app: web}}
  template:
    metadata: {labels: *app}
    spec: {schedulerName: fluence}
"""
    (web,) = label(text)
    assert web["spec"]["selector"] == {"matchLabels": {"app": "web"}}
    assert template_labels(web) == {"app": "web", PG: "fluence-group-default-deployment.web", SZ: "1"}


def test_a_denied_object_gives_its_sentence_and_nothing_else() -> None:
    """Rule A4: a pipe into kubectl must not apply half."""
    bad = workload("Job", "bad", metadata={"labels": {SZ: "abc"}})
    result = run("-f", "-", stdin=yaml.safe_dump_all([JOB, bad, bad]))
    assert result.exit_code != 0
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 2
    for part in ("standard input, line", 'Job "bad"', SZ, '"abc"', "positive integer"):
        assert part in lines[0]


def test_an_unquoted_size_is_denied_with_what_to_write() -> None:
    """Case C07."""
    result = run("-f", "-", stdin=yaml.safe_dump(pod({"name": "p", "labels": {SZ: 5}})))
    assert result.exit_code == 1
    assert 'quoted string, not the number 5: write "5"' in result.stderr


def test_labels_that_disagree_are_warned_about() -> None:
    both = workload("Job", "j", {"metadata": {"labels": {PG: "b", SZ: "2"}}}, metadata={"labels": {PG: "a"}})
    result = run("-f", "-", stdin=json.dumps(both))
    assert result.exit_code == 0
    assert "Warning: standard input, line 1" in result.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("a: 1\nb: [\n", "standard input, line 2", id="cut"),
        pytest.param("a: 1\n\tb: 2\n", "standard input, line 2", id="tab"),
        pytest.param('{"a": 1', "standard input, line 1", id="cut-json"),
        pytest.param(
            "kind: X\n---\n- 1\n", "standard input, line 3: the document is no Kubernetes object", id="list"
        ),
        pytest.param("kind: X\n---\nword\n", "standard input, line 3", id="word"),
        pytest.param("a: !!python/object:os.system {}\n", "standard input, line 1", id="foreign-tag"),
        pytest.param(
            "a: !!binary aGk=\n", "standard input, line 1: the document holds what JSON cannot", id="binary"
        ),
        pytest.param("a: .nan\n", "standard input, line 1", id="nan"),
        pytest.param("a: &a [*a]\n", "standard input, line 1", id="itself"),
        pytest.param("? [1]\n: 2\n", "standard input", id="list-as-key"),
    ],
)
def test_what_is_no_manifest_is_refused_with_file_and_line(text: str, says: str) -> None:
    result = run("-f", "-", stdin=text)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert says in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = run("-f", tmp_path / "nowhere.yaml")
    assert result.exit_code == 1
    assert "nowhere.yaml cannot be read: No such file" in result.stderr
    result = run("-f", tmp_path)
    assert "Is a directory" in result.stderr


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a: 1\nb: \xff\n")
    result = run("-f", tmp_path / "x")
    assert result.exit_code == 1
    assert "x, line 2: this is not UTF-8" in result.stderr


def test_rules_of_ones_own_count_here_too(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "rules: [{kind: Gadget, group: example.com, version: v1, resource: gadgets, "
        "templates: [{path: spec.template, pods: {path: spec.n}}]}]"
    )
    gadget = workload("Job", "g", n=4) | {"apiVersion": "example.com/v1", "kind": "Gadget"}
    (obj,) = label(json.dumps(gadget), "--rules", str(rules))
    assert template_labels(obj) == {PG: "fluence-group-default-gadget.g", SZ: "4"}
    result = run("-f", "-", "--rules", tmp_path / "nowhere", stdin=json.dumps(gadget))
    assert result.exit_code == 1


def test_the_command_works_as_a_program() -> None:
    """Through the entry point, with standard input and output as pipes."""
    done = subprocess.run(
        [sys.executable, "-m", "fluence.commands", "label", "-f", "-"],
        input=(EXAMPLES / "job.yaml").read_bytes(),
        capture_output=True,
        check=False,
        env={**os.environ},
    )
    assert done.returncode == 0, done.stderr
    assert template_labels(yaml.safe_load(done.stdout)) == {PG: "fluence-group-default-train", SZ: "3"}
