"""The webhook behind a real API server, registered by the chart and running with the chart's rights."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from devcluster import binaries
from devcluster.api import ApiFailure
from groups.contract import GROUP_LABEL, SIZE_LABEL, is_group_name
from tests.support import crds
from tests.support.world import World
from tests.webhook.cluster.reading import asked

EXAMPLES = Path(__file__).parents[3] / "manifests/examples"


def labels_of(obj: dict[str, Any]) -> tuple[str | None, str | None]:
    """Group and size on a pod or on a workload's template."""
    holder = obj if obj["kind"] == "Pod" else obj["spec"]["template"]
    labels = holder["metadata"].get("labels") or {}
    return labels.get(GROUP_LABEL), labels.get(SIZE_LABEL)


async def test_a_job_costs_one_call_and_its_pods_none(world: World) -> None:
    """Design, "Flow of one Job": the pods come labelled from the template, so nobody asks about them."""
    await world.create(world.job("train", 7, 7))

    async def all_there() -> bool:
        return len(await world.pods(f"fluence-group-{world.namespace}-train")) == 7

    await world.wait_for(all_there, what="seven labelled pods")
    assert asked(world.cluster, world.namespace) == [("Job", "labelled")]


@pytest.mark.parametrize(
    ("kind", "more", "size"),
    [
        ("Deployment", {}, "3"),
        ("ReplicaSet", {}, "3"),
        ("StatefulSet", {"of": {"podManagementPolicy": "Parallel"}}, "3"),
        ("StatefulSet", {}, "1"),
    ],
)
async def test_every_kind_passes_its_labels_to_its_pods(
    world: World, kind: str, more: dict[str, Any], size: str
) -> None:
    """Cases C11 and C16: also the ReplicaSet of a Deployment costs no call of its own."""
    (made,) = await world.create(world.replicated(kind, "w", 3, **more))
    group = f"fluence-group-{world.namespace}-{kind.lower()}.w"
    assert labels_of(made) == (group, size)
    (first, *_) = await world.wait_for(lambda: world.pods(group), what="a labelled pod")
    assert labels_of({"kind": "Pod", **first}) == (group, size)
    assert asked(world.cluster, world.namespace) == [(kind, "labelled")]


async def test_pods_with_a_generated_name_are_groups_of_their_own(world: World) -> None:
    """Case C01."""
    made = await world.create(world.pod("probe-"), world.pod("probe-"))
    groups = {labels_of({"kind": "Pod", **pod})[0] for pod in made}
    assert len(groups) == 2

    async def both() -> bool:
        return {one["metadata"]["name"] for one in await world.pod_groups()} == groups

    await world.wait_for(both, what="a PodGroup for each pod")
    assert {one["spec"]["minMember"] for one in await world.pod_groups()} == {1}


async def test_long_names_are_no_error_of_the_user(world: World) -> None:
    """Case C03."""
    names = [f"llama-70b-finetune-2024-06-01-run-0000000000000000{n}" for n in ("42", "43")]
    made = await world.create(*(world.job(name, 2) for name in names))
    groups = [labels_of(job)[0] for job in made]
    assert groups[0] != groups[1]
    assert all(group and is_group_name(group) for group in groups)


@pytest.mark.parametrize("value", ["abc", "0", "-1", "1.5"])
async def test_a_bad_size_is_told_to_the_user(world: World, value: str) -> None:
    """Case C04. "-1" is no label value at all: there the API server speaks, at the latest."""
    job = world.job("bad", 2)
    job["metadata"]["labels"] = {SIZE_LABEL: value}
    with pytest.raises(ApiFailure) as failure:
        await world.create(job)
    assert 400 <= failure.value.status < 500
    for part in (SIZE_LABEL, value, "positive integer", "workloads.fluence.flux-framework.org"):
        assert part in failure.value.message


@pytest.mark.parametrize(
    "labels",
    [
        {GROUP_LABEL: "g", SIZE_LABEL: "abc"},
        {GROUP_LABEL: "g", SIZE_LABEL: "2147483648"},
        {GROUP_LABEL: "Big_G", SIZE_LABEL: "2"},
    ],
)
async def test_labels_that_are_there_but_wrong_are_denied_too(world: World, labels: dict[str, str]) -> None:
    """Rule A4: the condition under which we are asked must let mistakes through to us."""
    pod = world.pod("p", labels=labels)
    with pytest.raises(ApiFailure, match=r"pods\.fluence\.flux-framework\.org.* denied"):
        await world.create(pod)


async def test_complete_labels_and_foreign_pods_are_not_asked_about(world: World) -> None:
    """Cases C30 and C38."""
    await world.create(
        world.pod("mine", group="g", size=1),
        world.pod("foreign", scheduler=None, labels={SIZE_LABEL: "abc"}),
        world.pod("other", scheduler="volcano", labels={SIZE_LABEL: "abc"}),
        world.replicated("Deployment", "foreign", 1, scheduler=None, labels={SIZE_LABEL: "abc"}),
    )
    assert asked(world.cluster, world.namespace) == []


@pytest.mark.parametrize("namespace", ["kube-system", "fluence-system"])
async def test_namespaces_of_the_cluster_and_of_ours_are_not_asked_about(
    world: World, namespace: str
) -> None:
    """Cases C29 and C134."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    made = await world.api.post(path, world.pod("untouched-", labels={SIZE_LABEL: "abc"}))
    await world.api.delete(f"{path}/{made['metadata']['name']}", gracePeriodSeconds=0)
    assert asked(world.cluster, namespace) == []


def kubectl(world: World, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run kubectl in the test's namespace, whatever it answers."""
    return subprocess.run(
        [binaries.kubectl(), "-n", world.namespace, *arguments],
        env=world.cluster.environment, input=stdin, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("mode", [[], ["--server-side"]], ids=["client-side", "server-side"])
def test_a_dry_run_and_a_diff_have_no_effect(world: World, mode: list[str]) -> None:
    """Case C34, rule W34: a server-side apply is a patch that comes to us as a creation."""
    job = str(EXAMPLES / "job.yaml")
    dry = kubectl(world, "apply", *mode, "--dry-run=server", "-o", "json", "-f", job)
    assert dry.returncode == 0, dry.stderr
    assert labels_of(json.loads(dry.stdout)) == (f"fluence-group-{world.namespace}-train", "3")
    assert kubectl(world, "get", "jobs,pods,podgroups.scheduling.x-k8s.io", "-o", "name").stdout == ""

    applied = kubectl(world, "apply", *mode, "-f", job)
    assert applied.returncode == 0, applied.stderr
    diff = kubectl(world, "diff", *mode, "-f", job)
    assert (diff.returncode, diff.stdout) == (0, ""), diff.stderr


def label_examples(namespace: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "fluence.commands", "label", "-n", namespace,
         *(f"--filename={path}" for path in sorted(EXAMPLES.glob("*.yaml")))],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


async def test_what_the_offline_command_prints_is_accepted_and_complete(world: World) -> None:
    """The API server asks nobody about it, and stores it as it is."""
    await crds.install(world.api)
    printed = label_examples(world.namespace)
    done = kubectl(world, "create", "--dry-run=server", "-f", "-", stdin=printed)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == printed.count("\nkind: ")
    assert asked(world.cluster, world.namespace) == []


def test_a_denial_reaches_a_user_of_kubectl_as_one_sentence(world: World) -> None:
    """Case C04."""
    text = (
        (EXAMPLES / "job.yaml")
        .read_text()
        .replace("  name: train", "  name: bad\n  labels: {fluence.group-size: abc}")
    )
    done = kubectl(world, "apply", "-f", "-", stdin=text)
    assert done.returncode == 1
    assert 'fluence.group-size: "abc" is not a group size: it must be a positive integer' in done.stderr
