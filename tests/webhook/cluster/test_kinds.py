"""Every kind behind a real API server: labelled as the offline command says, and the gangs that follow."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.cluster import RunningCluster
from groups.contract import GROUP_LABEL, SIZE_LABEL
from groups.workloads.rules import Rule, builtin_rules
from groups.workloads.shapes import lookup
from groups.workloads.sizing import parts_of
from tests.support import crds
from tests.support.world import World
from tests.webhook.cluster.reading import asked
from webhook.decide import Policy
from webhook.offline import label_object

EXAMPLES = Path(__file__).parents[3] / "manifests/examples"
RULES = builtin_rules()
POLICY = Policy()


@pytest.fixture
async def kinds(world: World) -> World:
    """A world in which every kind of the table is known."""
    await crds.install(world.api)
    return world


def rule_of(obj: dict[str, Any]) -> Rule:
    rule = RULES.find(obj["apiVersion"], obj["kind"])
    assert rule is not None
    return rule


def documents(example: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(example.read_text()))


def path_of(obj: dict[str, Any], namespace: str) -> str:
    base = "api" if "/" not in obj["apiVersion"] else "apis"
    return f"/{base}/{obj['apiVersion']}/namespaces/{namespace}/{rule_of(obj).resource}"


def labels_of(obj: dict[str, Any]) -> list[tuple[str | None, str | None]]:
    """Group and size in each of the object's pod templates, as its rule finds them."""
    found = []
    for part in parts_of(rule_of(obj), obj):
        labels = lookup(obj, (*part.place, "metadata", "labels")) or {}
        found.append((labels.get(GROUP_LABEL), labels.get(SIZE_LABEL)))
    return found


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
async def test_each_example_gets_the_labels_that_are_explained(kinds: World, example: Path) -> None:
    """Also through every wildcard of the conditions; and one call for each object that lacked labels."""
    calls = []
    for value in documents(example):
        offline = label_object(copy.deepcopy(value), kinds.namespace, POLICY, lambda: "u")
        made = await kinds.api.post(path_of(value, kinds.namespace), value, dryRun="All")
        assert labels_of(made) == labels_of(offline.value)
        if offline.value != value:
            calls.append((value["kind"], "labelled"))
    assert asked(kinds.cluster, kinds.namespace) == calls


async def test_a_mistake_in_the_middle_of_a_list_is_denied(kinds: World) -> None:
    """Case C07: the condition looks at every item, whatever the others are."""
    (jobset,) = documents(EXAMPLES / "jobset.yaml")
    first, second = jobset["spec"]["replicatedJobs"]
    first["template"]["spec"]["template"]["metadata"] = {"labels": {SIZE_LABEL: 5}}
    jobset["spec"]["replicatedJobs"] = [None, "x", first, second]
    with pytest.raises(Exception, match="must be a quoted string, not the number 5"):
        await kinds.api.post(path_of(jobset, kinds.namespace), jobset)


def pod_of(world: World, name: str, owner: dict[str, Any], **labels: str) -> dict[str, Any]:
    """A pod as an operator makes it, with whatever its owner wrote into it."""
    pod = world.pod(name)
    meta = pod["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), **labels}
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    meta["ownerReferences"] = [
        {**reference, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
    ]
    return pod


async def test_pods_of_an_unlabelled_custom_resource_are_counted_by_the_controller(kinds: World) -> None:
    """Rule A8: the workload is older than Fluence, or passed by while the webhook was away."""
    (job,) = documents(EXAMPLES / "pytorchjob.yaml")
    # What passes by unlabelled here is one whose templates do not ask for us, though its pods will.
    for role in job["spec"]["pytorchReplicaSpecs"].values():
        del role["template"]["spec"]["schedulerName"]
    made = await kinds.api.post(path_of(job, kinds.namespace), job)
    await kinds.node("a", cpu="8")
    await kinds.create(*(pod_of(kinds, f"pt-{number}", made) for number in range(3)))
    group = f"fluence-group-{kinds.namespace}-pytorchjob.pytorch-simple"

    async def made_group() -> bool:
        found = await kinds.pod_group(group)
        return found is not None and found["spec"]["minMember"] == 4

    await kinds.wait_for(made_group, what="a PodGroup for four")
    assert await kinds.bound(group) == 0
    await kinds.create(pod_of(kinds, "pt-3", made))
    await kinds.until_bound(group, 4)
    assert Counter(size for _, size in asked(kinds.cluster, kinds.namespace)) == {"labelled": 4}


async def test_each_replica_of_a_leaderworkerset_is_bound_whole_or_not_at_all(kinds: World) -> None:
    """Case C23: with room for two pods exactly one replica runs."""
    await kinds.node("a", cpu="2")
    domain = "leaderworkerset.sigs.k8s.io"
    pods = []
    for name, replica, worker in (
        ("vllm-0", "0", ""),
        ("vllm-1", "1", ""),
        ("vllm-0-1", "0", "1"),
        ("vllm-1-1", "1", "1"),
    ):
        pod = kinds.pod(name, cpu="1")
        labels = {f"{domain}/name": "vllm"} | ({f"{domain}/group-index": replica} if worker else {})
        pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **labels}
        pod["metadata"]["annotations"] = {
            **(pod["metadata"].get("annotations") or {}),
            f"{domain}/size": "2",
        }
        pods.append(pod)
    await kinds.create(*pods)
    groups = [f"fluence-group-{kinds.namespace}-lws.vllm.{replica}" for replica in (0, 1)]

    async def one_runs() -> bool:
        return sorted([await kinds.bound(group) for group in groups]) == [0, 2]

    await kinds.wait_for(one_runs, what="one replica bound")


async def test_labels_of_early_flux_k8s_make_one_group(kinds: World) -> None:
    """Case C40."""
    await kinds.node("a", cpu="8")
    (job,) = documents(EXAMPLES / "older-labels.yaml")
    spec = kinds.job("job-1", 5, 5)
    spec["spec"]["template"]["metadata"] = {
        **(spec["spec"]["template"].get("metadata") or {}),
        "labels": job["spec"]["template"]["metadata"]["labels"],
    }
    await kinds.create(spec)
    await kinds.until_bound("mygrp", 5)
    group = await kinds.pod_group("mygrp")
    assert group is not None
    assert group["spec"]["minMember"] == 5


async def test_children_of_a_labelled_launcher_are_asked_about_by_nobody(kinds: World) -> None:
    """Case C18: the Job that the operator makes from the launcher's template is complete."""
    (mpi,) = documents(EXAMPLES / "mpijob.yaml")
    made = await kinds.api.post(path_of(mpi, kinds.namespace), mpi)
    assert asked(kinds.cluster, kinds.namespace) == [("MPIJob", "labelled")]
    launcher = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    job = kinds.job("pi-launcher")
    job["spec"]["template"]["metadata"] = launcher["metadata"]
    await kinds.create(job)
    assert asked(kinds.cluster, kinds.namespace) == [("MPIJob", "labelled")]


async def test_a_cron_job_stays_as_it_is_and_warns_of_a_shared_group(
    cluster: RunningCluster, kinds: World
) -> None:
    """Case C17."""
    (cron,) = documents(EXAMPLES / "cronjob.yaml")
    cron["spec"]["suspend"] = True
    await kinds.api.post(path_of(cron, kinds.namespace), cron)
    assert asked(cluster, kinds.namespace) == []
    cron["metadata"]["name"] = "shared"
    pod = cron["spec"]["jobTemplate"]["spec"]["template"]
    pod["metadata"] = {"labels": {GROUP_LABEL: "mine"}}
    made = await kinds.api.post(path_of(cron, kinds.namespace), cron)
    assert made["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"] == {GROUP_LABEL: "mine"}
    assert asked(cluster, kinds.namespace) == [("CronJob", "unchanged")]
