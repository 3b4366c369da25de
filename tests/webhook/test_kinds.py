"""Every kind that people bring: one gang, several or none, and its size (cases C17 to C31)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.manifests import (
    POD,
    added,
    controlled,
    custom,
    foreign,
    jobset,
    mpijob,
    outcome,
    parallel,
    ray_cluster,
    ray_cluster_spec,
    replicas,
    template,
)
from tests.webhook.reviews import PG, SZ, Object, applied, decided, pod, pod_spec, workload
from webhook.decide import UNCHANGED

G = "fluence-group-default-"
numbers = st.one_of(st.none(), st.integers(0, 6))


# Properties


@given(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=4))
def test_a_jobset_is_one_gang_of_all_pods_that_run_at_once(jobs: list[tuple[int | None, ...]]) -> None:
    """Case C20: not the first replicated Job alone, and no pod that its Job never runs at once."""
    fields = [
        (f"j{n}", {"parallelism": parallelism, "completions": completions}, count)
        for n, (parallelism, completions, count) in enumerate(jobs)
    ]
    size = sum(
        (1 if count is None else count)
        * min(
            1 if parallelism is None else parallelism,
            10**6 if completions is None else completions,
        )
        for parallelism, completions, count in jobs
    )
    assert outcome(jobset("js", *fields)) == {(f"{G}jobset.js", str(max(size, 1)))}


@given(st.dictionaries(st.sampled_from(["PS", "Worker", "Chief", "Evaluator"]), numbers, min_size=1))
def test_replicas_of_all_roles_are_one_gang(roles: dict[str, int | None]) -> None:
    """Case C19: a role without a number counts one."""
    size = sum(1 if count is None else count for count in roles.values())
    assert outcome(replicas("TFJob", "tfReplicaSpecs", "tf", **roles)) == {
        (f"{G}tfjob.tf", str(max(size, 1)))
    }


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=1, max_size=5))
def test_pods_of_other_schedulers_are_no_part_of_the_gang(tasks: list[tuple[bool, int]]) -> None:
    """Rule A2: they would be waited for in vain."""
    spec = {
        "tasks": [
            {"name": f"t{n}", "replicas": count, "template": dict(POD) if ours else foreign()}
            for n, (ours, count) in enumerate(tasks)
        ]
    }
    patches = added(custom("batch.volcano.sh/v1alpha1", "Job", "v", spec))
    assert list(patches) == [f"/spec/tasks/{n}/template" for n, (ours, _) in enumerate(tasks) if ours]
    size = sum(count for ours, count in tasks if ours)
    assert all(labels == (f"{G}vcjob.v", str(max(size, 1))) for labels in patches.values())


# One gang


@pytest.mark.parametrize("version", ["v2beta1", "v1"])
def test_an_mpijob_is_one_gang_launcher_included(version: str) -> None:
    """Case C18: and the launcher's Job, which comes labelled, is not labelled again."""
    job = mpijob("pi", version, Launcher=1, Worker=2)
    assert added(job) == {
        "/spec/mpiReplicaSpecs/Launcher/template": (f"{G}mpijob.pi", "3"),
        "/spec/mpiReplicaSpecs/Worker/template": (f"{G}mpijob.pi", "3"),
    }
    launcher = applied(job, decided(job))["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    child = workload(
        "Job", "pi-launcher", launcher, metadata=controlled("kubeflow.org/v2beta1", "MPIJob", "pi")
    )
    assert decided(child) == UNCHANGED


def test_a_launcher_that_waits_for_the_workers_is_not_waited_for_by_them() -> None:
    """Rule A7: kinds whose members start one after another must not be one gang."""
    job = mpijob("pi", Launcher=1, Worker=2)
    job["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    assert outcome(job) == {(f"{G}mpijob.pi", "2")}


@pytest.mark.parametrize(
    ("kind", "key", "roles", "size"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs", {"Master": 1, "Worker": 3}, "4"),
        ("TFJob", "tfReplicaSpecs", {"PS": 1, "Worker": 2}, "3"),
        ("XGBoostJob", "xgbReplicaSpecs", {"Master": None, "Worker": 2}, "3"),
        ("JAXJob", "jaxReplicaSpecs", {"Worker": 2}, "2"),
        ("PaddleJob", "paddleReplicaSpecs", {"Master": 1, "Worker": 2}, "3"),
    ],
)
def test_kubeflows_jobs_are_one_gang(kind: str, key: str, roles: dict[str, int | None], size: str) -> None:
    """Case C19."""
    patches = added(replicas(kind, key, "pt", **roles))
    assert patches == {f"/spec/{key}/{role}/template": (f"{G}{kind.lower()}.pt", size) for role in roles}


def test_an_elastic_job_starts_with_its_fewest_workers() -> None:
    """Rule A7, as with the autoscaler of Ray."""
    job = replicas("PyTorchJob", "pytorchReplicaSpecs", "pt", Worker=4)
    job["spec"]["elasticPolicy"] = {"minReplicas": 2, "maxReplicas": 6}
    assert outcome(job) == {(f"{G}pytorchjob.pt", "2")}


def test_the_users_own_way_to_ask_for_fewer_is_understood() -> None:
    job = replicas("PyTorchJob", "pytorchReplicaSpecs", "pt", Master=1, Worker=7)
    job["spec"]["runPolicy"] = {"schedulingPolicy": {"minAvailable": 5}}
    assert outcome(job) == {(f"{G}pytorchjob.pt", "5")}
    job["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] = 50
    assert outcome(job) == {(f"{G}pytorchjob.pt", "8")}


def test_a_volcano_job_is_one_gang() -> None:
    tasks = [
        {"name": "server", "template": dict(POD)},
        {"name": "worker", "replicas": 3, "template": dict(POD)},
    ]
    job = custom("batch.volcano.sh/v1alpha1", "Job", "v", {"tasks": tasks})
    assert outcome(job) == {(f"{G}vcjob.v", "4")}
    job["spec"]["minAvailable"] = 3
    assert outcome(job) == {(f"{G}vcjob.v", "3")}
    del job["spec"]["minAvailable"]
    tasks[1]["minAvailable"] = 1
    assert outcome(job) == {(f"{G}vcjob.v", "2")}
    tasks[1] |= {"dependsOn": {"name": ["server"]}}
    assert outcome(job) == {(f"{G}vcjob.v", "1"), (f"{G}vcjob.v.worker", "1")}


def test_head_and_workers_of_a_raycluster_are_one_gang() -> None:
    """Case C25: each worker group with its own number, and hosts in a replica."""
    assert outcome(ray_cluster("rc", {"replicas": 2}, {"replicas": 1})) == {(f"{G}raycluster.rc", "4")}
    assert len(added(ray_cluster("rc", {"replicas": 2}, {"replicas": 1}))) == 3
    assert outcome(ray_cluster("rc", {"replicas": 2, "numOfHosts": 4})) == {(f"{G}raycluster.rc", "9")}


@pytest.mark.parametrize(
    ("group", "more", "size"),
    [
        pytest.param({"replicas": 3, "minReplicas": 1, "maxReplicas": 9}, {}, "4", id="as-written"),
        pytest.param({"replicas": 0, "minReplicas": 2, "maxReplicas": 9}, {}, "3", id="at-least-minReplicas"),
        pytest.param({"replicas": 8, "minReplicas": 1, "maxReplicas": 5}, {}, "6", id="at-most-maxReplicas"),
        pytest.param({"minReplicas": 2}, {}, "3", id="no-replicas"),
        pytest.param({}, {}, "1", id="no-number"),
        pytest.param({"replicas": 3, "suspend": True}, {}, "1", id="suspended"),
        pytest.param(
            {"replicas": 5, "minReplicas": 2}, {"enableInTreeAutoscaling": True}, "3", id="autoscaling"
        ),
        pytest.param(
            {"replicas": 5, "minReplicas": 2}, {"enableInTreeAutoscaling": False}, "6", id="not-autoscaling"
        ),
    ],
)
def test_a_raycluster_counts_the_pods_with_which_it_begins(group: Object, more: Object, size: str) -> None:
    """Rule A7: minReplicas when it autoscales."""
    assert outcome(ray_cluster("rc", group, **more)) == {(f"{G}raycluster.rc", size)}


def test_the_submitter_of_a_rayjob_does_not_hold_back_the_cluster() -> None:
    """Case C25: it is a group of its own."""
    spec = {
        "rayClusterSpec": ray_cluster_spec({"replicas": 2}, {"replicas": 1}),
        "submitterPodTemplate": dict(POD),
    }
    job = custom("ray.io/v1", "RayJob", "rj", spec)
    patches = added(job)
    assert patches.pop("/spec/submitterPodTemplate") == (f"{G}rayjob.rj.submitter", "1")
    assert set(patches.values()) == {(f"{G}rayjob.rj", "4")}
    assert len(patches) == 3
    # What the user says about the job is said about the cluster.
    job["metadata"]["labels"] = {PG: "mine", SZ: "3"}
    patches = added(job)
    assert patches.pop("/spec/submitterPodTemplate") == (f"{G}rayjob.rj.submitter", "1")
    assert set(patches.values()) == {("mine", "3")}


def test_a_submitter_of_another_scheduler_is_left_alone() -> None:
    """Case C25, rule A2."""
    spec = {"rayClusterSpec": ray_cluster_spec({"replicas": 2}), "submitterPodTemplate": foreign()}
    assert "/spec/submitterPodTemplate" not in added(custom("ray.io/v1", "RayJob", "rj", spec))


# Several gangs


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param(
            {"startupPolicy": {"startupPolicyOrder": "InOrder"}}, {".a": "1", ".b": "6"}, id="in-order"
        ),
        pytest.param({"startupPolicy": {"startupPolicyOrder": "AnyOrder"}}, {"": "7"}, id="in-any-order"),
    ],
)
def test_jobs_that_start_one_after_another_are_gangs_of_their_own(
    more: Object, expected: dict[str, str]
) -> None:
    """Rule A7: one gang of them would wait for itself."""
    js = jobset("js", ("a", {}, None), ("b", parallel(3), 2), **more)
    assert outcome(js) == {(f"{G}jobset.js{suffix}", size) for suffix, size in expected.items()}


def test_a_job_that_depends_on_another_is_a_gang_of_its_own() -> None:
    js = jobset("js", ("a", parallel(2), None), ("b", parallel(3), None))
    js["spec"]["replicatedJobs"][1]["dependsOn"] = [{"name": "a", "status": "Ready"}]
    assert outcome(js) == {(f"{G}jobset.js", "2"), (f"{G}jobset.js.b", "3")}


def test_templates_that_name_two_groups_are_two_gangs() -> None:
    """Rule A3: each counts its own pods, or neither would ever be complete."""
    job = mpijob("pi", Launcher=1, Worker=2)
    roles = job["spec"]["mpiReplicaSpecs"]
    roles["Launcher"]["template"] = template(**{PG: "front"})
    roles["Worker"]["template"] = template(**{PG: "back"})
    assert added(job) == {
        "/spec/mpiReplicaSpecs/Launcher/template": (None, "1"),
        "/spec/mpiReplicaSpecs/Worker/template": (None, "2"),
    }


@pytest.mark.parametrize(
    ("name", "labels", "annotations", "expected"),
    [
        pytest.param("vllm-0", {}, {"size": "2"}, (f"{G}lws.vllm.0", "2"), id="leader-without-a-number"),
        pytest.param("vllm-0", {"group-index": "0"}, {"size": "2"}, (f"{G}lws.vllm.0", "2"), id="leader"),
        pytest.param("vllm-0-1", {"group-index": "0"}, {"size": "2"}, (f"{G}lws.vllm.0", "2"), id="worker"),
        pytest.param("vllm-1", {}, {"size": "2"}, (f"{G}lws.vllm.1", "2"), id="another-leader"),
        pytest.param(
            "vllm-1-1", {"group-index": "1"}, {"size": "2"}, (f"{G}lws.vllm.1", "2"), id="its-worker"
        ),
        pytest.param("vllm-0", {}, {}, (f"{G}lws.vllm.vllm-0", "1"), id="no-size"),
        pytest.param("vllm-0", {}, {"size": "x"}, (f"{G}lws.vllm.vllm-0", "1"), id="bad-size"),
    ],
)
def test_a_leaderworkerset_is_one_gang_for_each_replica(
    name: str, labels: Object, annotations: Object, expected: tuple[str, str]
) -> None:
    """Case C23: leaders of all replicas and workers of one are StatefulSets, and neither is a gang."""
    domain = "leaderworkerset.sigs.k8s.io"
    metadata: Object = {
        "name": name,
        "labels": {f"{domain}/name": "vllm", **{f"{domain}/{key}": value for key, value in labels.items()}},
        "annotations": {f"{domain}/{key}": value for key, value in annotations.items()},
        **controlled("apps/v1", "StatefulSet", name.rpartition("-")[0]),
    }
    assert set(added(pod(metadata)).values()) == {expected}


def test_the_statefulsets_of_a_leaderworkerset_are_left_alone() -> None:
    """Case C23."""
    labels = {"labels": {"leaderworkerset.sigs.k8s.io/name": "vllm"}}
    leaders = workload("StatefulSet", "vllm", metadata=labels, replicas=2, podManagementPolicy="Parallel")
    assert decided(leaders) == UNCHANGED


# Pods


def test_a_spark_driver_waits_for_nobody_and_executors_stand_alone() -> None:
    """Case C28."""
    driver = pod({"name": "pi-driver", "labels": {"spark-role": "driver"}})
    assert outcome(driver) == {("fluence-group-pi-driver", "1")}
    executor = pod(
        {"name": "pi-exec-1", "labels": {"spark-role": "executor"}, **controlled("v1", "Pod", "pi-driver")}
    )
    assert outcome(executor) == {("fluence-group-pi-exec-1", "1")}


def test_each_step_of_a_workflow_is_a_group_of_its_own() -> None:
    """Case C27."""
    owner = controlled("argoproj.io/v1alpha1", "Workflow", "diamond-x")
    steps = [outcome(pod({"name": f"diamond-x-echo-{n}", **owner})) for n in range(4)]
    assert len(set.union(*steps)) == 4
    assert all(size == "1" for step in steps for _, size in step)


@pytest.mark.parametrize(
    ("owner", "group"),
    [
        (("kubeflow.org/v1", "PyTorchJob", "pt"), f"{G}pytorchjob.pt"),
        (("kubeflow.org/v2beta1", "MPIJob", "pi"), f"{G}mpijob.pi"),
        (("ray.io/v1", "RayCluster", "rc"), f"{G}raycluster.rc"),
        (("batch.volcano.sh/v1alpha1", "Job", "v"), f"{G}vcjob.v"),
        (("v1", "ReplicationController", "rc"), f"{G}replicationcontroller.rc"),
    ],
)
def test_a_pod_of_an_older_workload_is_left_to_the_controller_to_count(
    owner: tuple[str, str, str], group: str
) -> None:
    """Rule A8."""
    assert outcome(pod({"generateName": "x-", **controlled(*owner)})) == {(group, None)}


@pytest.mark.parametrize(
    ("owner", "label"),
    [
        (("jobset.x-k8s.io/v1alpha2", "JobSet", "js"), "jobset.sigs.k8s.io/jobset-name"),
        (("kubeflow.org/v2beta1", "MPIJob", "js"), "training.kubeflow.org/job-name"),
    ],
)
def test_jobs_of_an_older_workload_and_their_pods_are_part_of_its_gang(
    owner: tuple[str, str, str], label: str
) -> None:
    """Rule A8: webhook and controller agree that the whole is counted, not each of its Jobs."""
    child = workload("Job", "js-workers-0", metadata=controlled(*owner), parallelism=4, completions=4)
    assert outcome(child) == {(f"{G}{owner[1].lower()}.js", None)}
    member = pod(
        {
            "generateName": "js-workers-0-0-",
            "labels": {label: "js"},
            **controlled("batch/v1", "Job", "js-workers-0"),
        }
    )
    assert outcome(member) == {(f"{G}{owner[1].lower()}.js", None)}


def test_a_job_of_an_owner_that_nobody_counts_is_a_gang_of_its_own() -> None:
    """Cases C17 and C25: the submitter of an older RayJob, a run of a CronJob."""
    for owner in (("ray.io/v1", "RayJob", "rj"), ("batch/v1", "CronJob", "nightly")):
        assert outcome(workload("Job", "x", metadata=controlled(*owner), parallelism=2)) == {(f"{G}x", "2")}


# Left as they are


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(workload("DaemonSet", "agent"), id="DaemonSet"),
        pytest.param(
            custom("batch/v1", "CronJob", "c", {"jobTemplate": {"spec": {"template": dict(POD)}}}),
            id="CronJob",
        ),
        pytest.param(
            custom(
                "leaderworkerset.x-k8s.io/v1",
                "LeaderWorkerSet",
                "vllm",
                {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": dict(POD)}},
            ),
            id="LeaderWorkerSet",
        ),
        pytest.param(
            custom("flux-framework.org/v1alpha2", "MiniCluster", "f", {"size": 4}), id="MiniCluster"
        ),
        pytest.param(custom("trainer.kubeflow.org/v1alpha1", "TrainJob", "t", {}), id="TrainJob"),
        pytest.param(custom("kubeflow.org/v1", "Notebook", "n", {"template": dict(POD)}), id="Notebook"),
        pytest.param(
            custom("ray.io/v1", "RayService", "s", {"rayClusterConfig": ray_cluster_spec()}), id="RayService"
        ),
        pytest.param(
            custom(
                "sparkoperator.k8s.io/v1beta2", "SparkApplication", "s", {"driver": {"template": dict(POD)}}
            ),
            id="SparkApplication",
        ),
        pytest.param(
            custom(
                "workload.codeflare.dev/v1beta2",
                "AppWrapper",
                "a",
                {"components": [{"template": workload("Job", "j")}]},
            ),
            id="AppWrapper",
        ),
        pytest.param(
            custom("argoproj.io/v1alpha1", "Workflow", "w", {"schedulerName": "fluence"}), id="Workflow"
        ),
    ],
)
def test_kinds_whose_pods_or_children_are_labelled_instead_are_left_as_they_are(obj: Object) -> None:
    assert decided(obj) == UNCHANGED


@pytest.mark.parametrize(
    ("obj", "word"),
    [
        (
            custom(
                "batch/v1",
                "CronJob",
                "nightly",
                {"jobTemplate": {"spec": {"template": template(**{PG: "mine"})}}},
            ),
            "all runs of this CronJob",
        ),
        (
            custom(
                "leaderworkerset.x-k8s.io/v1",
                "LeaderWorkerSet",
                "vllm",
                {"leaderWorkerTemplate": {"workerTemplate": template(**{PG: "mine"})}},
            ),
            "all replicas",
        ),
    ],
)
def test_a_group_named_for_all_of_them_is_kept_with_a_warning(obj: Object, word: str) -> None:
    """Case C17."""
    decision = decided(obj)
    assert decision.allowed
    assert not decision.patch
    (warning,) = decision.warnings
    assert '"mine"' in warning
    assert word in warning
    assert len(warning) <= 120


def test_a_mistake_in_a_kind_that_is_left_as_it_is_is_denied_before_its_jobs_are() -> None:
    """Rule A4."""
    spec = {"jobTemplate": {"spec": {"template": template(**{SZ: "abc"})}}}
    decision = decided(custom("batch/v1", "CronJob", "nightly", spec))
    assert not decision.allowed
    assert SZ in decision.message


def test_a_number_as_a_label_within_a_custom_resource_is_denied_with_its_key() -> None:
    """Case C07, at the very place where the API server does not look."""
    js = jobset("js", ("a", {}, None), pods={"metadata": {"labels": {SZ: 5}}, "spec": pod_spec()})
    decision = decided(js)
    assert not decision.allowed
    assert 400 <= decision.code < 500
    for part in (SZ, "quoted string", 'write "5"'):
        assert part in decision.message
