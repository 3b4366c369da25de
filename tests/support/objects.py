"""Objects of Kubernetes for tests, as plain dictionaries: pods, pod templates, workloads, groups.

Owns: their content. Does not own: sending them to the API server (`world`). `here` is the namespace of the
test. It is also the value of the label and taint of the test's nodes: nodes are cluster-wide, so selector and
taint keep the pods of one test off the nodes of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from devcluster.workloads import Outcome, run_annotations
from groups.contract import GROUP_LABEL, POD_GROUP_API_VERSION, SCHEDULER_NAME, SIZE_LABEL

Object = dict[str, Any]

#: Label and taint of a node that belongs to one test.
TEST_KEY: Final = "devcluster/test"


def taint_of(here: str) -> dict[str, str]:
    """The taint of the nodes of one test."""
    return {"key": TEST_KEY, "value": here, "effect": "NoSchedule"}


def pod_spec(
    here: str,
    *,
    cpu: str | None = "1",
    memory: str | None = "64Mi",
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    scheduler: str | None = SCHEDULER_NAME,
    **more: Any,
) -> Object:
    """A pod's specification, tied to the nodes of the test.

    `more` holds additional fields; nodeSelector and tolerations are merged with those of the test.
    """
    asked = {"cpu": cpu, "memory": memory, **(requests or {})}
    resources: Object = {"requests": {key: value for key, value in asked.items() if value is not None}}
    if limits:
        resources["limits"] = dict(limits)
    spec: Object = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "busybox", "resources": resources}],
        **more,
        "nodeSelector": {TEST_KEY: here, **more.get("nodeSelector", {})},
        "tolerations": [
            {"key": TEST_KEY, "operator": "Equal", "value": here, "effect": "NoSchedule"},
            *more.get("tolerations", []),
        ],
    }
    if scheduler is not None:
        spec["schedulerName"] = scheduler
    return spec


def template(
    here: str,
    *,
    group: str | None = None,
    size: int | str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    run: str | None = None,
    outcome: Outcome | None = None,
    **spec: Any,
) -> Object:
    """A pod template; PG and SZ labels only where given."""
    ours = {GROUP_LABEL: group, SIZE_LABEL: None if size is None else str(size)}
    return {
        "metadata": {
            "labels": {
                **{key: value for key, value in ours.items() if value is not None},
                **(labels or {}),
            },
            "annotations": {**run_annotations(run, outcome), **(annotations or {})},
        },
        "spec": pod_spec(here, **spec),
    }


def pod(here: str, name: str, **more: Any) -> Object:
    """A bare pod; a name that ends in "-" is a generateName."""
    body = template(here, **more)
    body["metadata"]["generateName" if name.endswith("-") else "name"] = name
    return {"apiVersion": "v1", "kind": "Pod", **body}


def job(
    here: str,
    name: str,
    parallelism: int = 1,
    completions: int | None = None,
    *,
    job_spec: Mapping[str, Any] | None = None,
    **more: Any,
) -> Object:
    """A Job; its pods succeed after a second unless `run` or `outcome` say otherwise."""
    spec: Object = {
        "parallelism": parallelism,
        "backoffLimit": 0,
        "template": template(here, **more),
        **(job_spec or {}),
    }
    if completions is not None:
        spec["completions"] = completions
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def replicated(
    here: str, kind: str, name: str, replicas: int, *, of: Mapping[str, Any] | None = None, **more: Any
) -> Object:
    """A Deployment, ReplicaSet or StatefulSet; `of` holds additional fields of its specification."""
    body = template(here, **{**more, "labels": {"app": name, **(more.get("labels") or {})}})
    # The only policy that these kinds accept.
    body["spec"]["restartPolicy"] = "Always"
    spec: Object = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": body,
        **({"serviceName": name} if kind == "StatefulSet" else {}),
        **(of or {}),
    }
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def pod_group(name: str, min_member: int, **spec: Any) -> Object:
    """A PodGroup made by a user; the controller never changes its spec or deletes it."""
    return {
        "apiVersion": POD_GROUP_API_VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": min_member, **spec},
    }
