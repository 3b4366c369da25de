"""Workloads of one name, by the command line: a group for each (N06)."""

from __future__ import annotations

import json
from typing import Any

import yaml
from typer.testing import CliRunner

from fluence.commands import app
from groups.contract import GROUP_LABEL, SIZE_LABEL
from groups.workloads.rules import builtin_rules
from groups.workloads.shapes import lookup
from groups.workloads.sizing import parts_of

LLAMAS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: llama}
spec:
  replicas: 9
  strategy: {type: Recreate}
  selector: {matchLabels: {app: llama}}
  template: {metadata: {labels: {app: llama}}, spec: {schedulerName: fluence, containers: [{name: c, image: busybox, resources: {requests: {cpu: "1"}}}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: llama}
spec:
  parallelism: 2
  completions: 2
  template: {spec: {schedulerName: fluence, restartPolicy: Never, containers: [{name: c, image: busybox, resources: {requests: {cpu: "1"}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: default-llama}
spec: {schedulerName: fluence, containers: [{name: c, image: busybox}]}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: a}
spec:
  startupPolicy: {startupPolicyOrder: InOrder}
  replicatedJobs: [{name: b-c, replicas: 1, template: {spec: {template: {spec: {schedulerName: fluence, containers: [{name: c, image: busybox}]}}}}}]
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: a-b}
spec:
  startupPolicy: {startupPolicyOrder: InOrder}
  replicatedJobs: [{name: c, replicas: 1, template: {spec: {parallelism: 4, template: {spec: {schedulerName: fluence, containers: [{name: c, image: busybox}]}}}}}]
"""  # noqa: E501  (as the case has it)


def label(manifests: str) -> list[Any]:
    result = CliRunner().invoke(app, ["label", "-f", "-"], input=manifests)
    assert result.exit_code == 0, result.stderr
    return list(yaml.safe_load_all(result.stdout))


def group_and_size(obj: dict[str, Any]) -> tuple[str, str]:
    rule = builtin_rules().find(obj["apiVersion"], obj["kind"])
    assert rule is not None
    (part,) = parts_of(rule, obj)
    labels = lookup(obj, (*part.place, "metadata", "labels"))
    return labels[GROUP_LABEL], labels[SIZE_LABEL]


def test_workloads_of_one_name_get_different_groups() -> None:
    """N06: the five documents of the case, of which three and two shared a group before."""
    found = [group_and_size(obj) for obj in label(LLAMAS)]
    assert found == [
        ("fluence-group-default-deployment.llama", "9"),
        ("fluence-group-default-llama", "2"),
        ("fluence-group-pod.default-llama", "1"),
        ("fluence-group-default-jobset.a.b-c", "1"),
        ("fluence-group-default-jobset.a-b.c", "4"),
    ]


def test_the_same_object_gets_the_same_group_each_time() -> None:
    """Applied twice, and applied from what came out."""
    first, second = label(LLAMAS), label(LLAMAS)
    assert [group_and_size(obj) for obj in first] == [group_and_size(obj) for obj in second]
    assert label("---\n".join(json.dumps(obj) + "\n" for obj in first)) == first
