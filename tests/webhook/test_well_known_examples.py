"""The shapes of well-known public examples, which users try first (cases.md, section 7)."""

from __future__ import annotations

from typing import Any

import pytest

from groups.contract import is_group_name
from tests.webhook.manifests import (
    POD,
    added,
    controlled,
    custom,
    jobset,
    mpijob,
    outcome,
    parallel,
    ray_cluster,
    ray_cluster_spec,
    replicas,
)
from tests.webhook.reviews import PG, SZ, Object, applied, decided, pod, workload

G = "fluence-group-default-"


def lws_pod(name: str, size: int, replica: int, worker: int) -> Object:
    domain = "leaderworkerset.sigs.k8s.io"
    labels = {f"{domain}/name": name} | ({f"{domain}/group-index": str(replica)} if worker else {})
    return pod(
        {
            "name": f"{name}-{replica}" + (f"-{worker}" if worker else ""),
            "labels": labels,
            "annotations": {f"{domain}/size": str(size)},
        }
    )


AIRFLOW = {
    "generateName": "etl-load-",
    "labels": {"dag_id": "a" * 63, "task_id": "load", "run_id": "scheduled__2024-01-01T0000000000-0"},
}
DEFAULT_STS: Any = {"serviceName": "s", "replicas": 3}
SHAPES: list[Any] = [
    pytest.param(
        jobset("paralleljobs", ("workers", parallel(4), None), ("driver", parallel(1), None)),
        {"paralleljobs": 5},
        id="jobset-paralleljobs",
    ),
    pytest.param(mpijob("pi", Launcher=1, Worker=2), {"pi": 3}, id="mpijob-pi"),
    pytest.param(
        mpijob("tensorflow-benchmarks", Launcher=1, Worker=2),
        {"tensorflow-benchmarks": 3},
        id="mpijob-tensorflow-benchmarks",
    ),
    pytest.param(
        ray_cluster("raycluster-complete", {"replicas": 1, "minReplicas": 1, "maxReplicas": 10}),
        {"raycluster-complete": 2},
        id="raycluster-sample",
    ),
    pytest.param(
        ray_cluster("raycluster-x", {"replicas": 1, "minReplicas": 1, "maxReplicas": 5}, {"replicas": 2}),
        {"raycluster-x": 4},
        id="raycluster-complete",
    ),
    pytest.param(
        custom(
            "ray.io/v1",
            "RayJob",
            "rayjob-sample",
            {
                "rayClusterSpec": ray_cluster_spec({"replicas": 1, "minReplicas": 1, "maxReplicas": 5}),
                "submitterPodTemplate": dict(POD),
            },
        ),
        {"rayjob-sample": 2, "rayjob-sample.submitter": 1},
        id="rayjob-sample",
    ),
    pytest.param(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ray-job-code"}, "data": {"a": "b"}},
        {},
        id="rayjob-configmap",
    ),
    pytest.param(
        replicas("PyTorchJob", "pytorchReplicaSpecs", "pytorch-simple", Master=1, Worker=1),
        {"pytorch-simple": 2},
        id="pytorchjob",
    ),
    pytest.param(
        replicas("TFJob", "tfReplicaSpecs", "tensorflow-dist-mnist", PS=1, Worker=2),
        {"tensorflow-dist-mnist": 3},
        id="tfjob",
    ),
    pytest.param(
        workload("StatefulSet", "zk", **DEFAULT_STS, podManagementPolicy="OrderedReady"),
        {"zk": 1},
        id="zookeeper",
    ),
    pytest.param(workload("StatefulSet", "cassandra", **DEFAULT_STS), {"cassandra": 1}, id="cassandra"),
    pytest.param(
        workload("StatefulSet", "nginx-statefulset", **DEFAULT_STS), {"nginx-statefulset": 1}, id="kueue-sts"
    ),
    pytest.param(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "zk-hs"}, "spec": {"ports": []}},
        {},
        id="zookeeper-service",
    ),
    pytest.param(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "zk-pdb"},
            "spec": {},
        },
        {},
        id="zookeeper-pdb",
    ),
    pytest.param(
        workload("Job", "indexed-job", completionMode="Indexed", completions=5, parallelism=3),
        {"indexed-job": 3},
        id="indexed-job",
    ),
    pytest.param(workload("Job", "myjob"), {"myjob": 1}, id="job-with-sidecar"),
    pytest.param(
        custom(
            "batch/v1",
            "CronJob",
            "sample-cronjob",
            {"jobTemplate": {"spec": {**parallel(3), "template": dict(POD)}}},
        ),
        {},
        id="cronjob",
    ),
    pytest.param(
        workload("Job", "sample-cronjob-28512345", parallelism=3, completions=3),
        {"sample-cronjob-28512345": 3},
        id="run-of-the-cronjob",
    ),
    pytest.param(workload("DaemonSet", "fluentd"), {}, id="daemonset"),
]


@pytest.mark.parametrize(("obj", "expected"), SHAPES)
def test_shapes_of_well_known_examples(obj: Object, expected: dict[str, int]) -> None:
    """Section 7."""
    group = G if obj["kind"] == "Job" else f"{G}{obj['kind'].lower()}."
    assert outcome(obj) == {(f"{group}{name}", str(size)) for name, size in expected.items()}


def test_a_jobset_with_a_generated_name_gets_a_group_of_its_own_each_time() -> None:
    """Section 7, case C01."""
    js = jobset("", ("a", parallel(1), None), ("b", parallel(1), None))
    js["metadata"] = {"generateName": "sample-jobset-"}
    first, second = (outcome(js, uid=uid) for uid in ("u-1", "u-2"))
    ((one, size),), ((other, _),) = first, second
    assert size == "2"
    assert one != other
    assert is_group_name(one or "")


@pytest.mark.parametrize(("name", "count", "size"), [("vllm", 2, 2), ("leaderworkerset-sample", 3, 4)])
def test_pods_of_leaderworkersets_meet_by_replica(name: str, count: int, size: int) -> None:
    """Section 7, case C23."""
    pods = [lws_pod(name, size, replica, worker) for replica in range(count) for worker in range(size)]
    found = [labels for one in pods for labels in added(one).values()]
    groups = {f"{G}lws.{name}.{replica}" for replica in range(count)}
    assert {group for group, _ in found} == groups
    assert all(sum(1 for group, _ in found if group == one) == size for one in groups)
    assert {members for _, members in found} == {str(size)}


def test_the_indexed_job_of_a_minicluster_is_one_gang() -> None:
    """Section 7."""
    owner = controlled("flux-framework.org/v1alpha2", "MiniCluster", "flux-sample")
    job = workload(
        "Job", "flux-sample", metadata=owner, completionMode="Indexed", parallelism=4, completions=4
    )
    assert outcome(job, namespace="flux-operator") == {("fluence-group-flux-operator-flux-sample", "4")}


def test_a_pod_of_airflow_keeps_its_long_labels() -> None:
    """Section 7."""
    before = pod(AIRFLOW)
    after = applied(before, decided(before))
    labels = after["metadata"]["labels"]
    assert labels[SZ] == "1"
    assert {**labels, PG: None, SZ: None} == {**AIRFLOW["labels"], PG: None, SZ: None}  # type: ignore[dict-item]
