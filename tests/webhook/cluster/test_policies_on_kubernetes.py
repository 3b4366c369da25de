"""The policies on real API servers of both versions that have them, beside what the webhook decides.

Each version is a cluster of its own, without Fluence; everything is posted as a dry run, so that neither
controllers nor other objects take part.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings

from devcluster.api import Api, ApiFailure
from devcluster.cluster import RunningCluster
from devcluster.programs import KUBERNETES_VERSIONS
from devcluster.spec import ClusterSpec
from groups.workloads.rules import Rule
from tests.support import cluster as clusters
from tests.support.crds import crd
from tests.webhook.policy_objects import (
    ALIKE,
    CUSTOM,
    KINDS,
    LEFT,
    MARK,
    MISTAKEN,
    NAMESPACE,
    PG,
    SZ,
    Object,
    collection,
    custom,
    job,
    labels,
    must_be_left,
    our_labels,
    pod,
    random_objects,
    replicated,
    template_of,
)
from tests.webhook.reviews import applied, decided
from webhook.decide import Decision

POLICIES = Path(__file__).parents[3] / "manifests" / "policies" / "fluence.yaml"
#: Excluded, so that an object posted there shows what it is without the policies.
RELEASE = "fluence-system"
ACTIVE_S = 30.0


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(version, marks=pytest.mark.xdist_group(f"policies on {version}"))
        for version in KUBERNETES_VERSIONS
    ],
)
def policed(request: pytest.FixtureRequest) -> Iterator[RunningCluster]:
    """A cluster with the policies and without Fluence."""
    version: str = request.param
    name = clusters.own_name("p" + version.replace(".", ""))
    spec = ClusterSpec(name=name, nodes=0, kubernetes=version, fluence=False)
    with clusters.start(spec) as cluster:
        for namespace in (NAMESPACE, RELEASE):
            cluster.kubectl("create", "namespace", namespace)
        crds = "---\n".join(json.dumps(crd(rule)) + "\n" for rule in CUSTOM)
        cluster.kubectl("apply", "-f", "-", stdin=crds)
        cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        cluster.kubectl("apply", "-f", POLICIES)
        asyncio.run(_until_active(cluster))
        yield cluster


@pytest.fixture
async def api(policed: RunningCluster) -> AsyncIterator[Api]:
    async with policed.api() as api:
        yield api


async def dry_run(api: Api, obj: Object, namespace: str = NAMESPACE) -> Object:
    return await api.post(collection(obj, namespace), obj, dryRun="All")


async def _until_active(cluster: RunningCluster) -> None:
    """The API server learns of new policies by a watch."""
    deadline = time.monotonic() + ACTIVE_S
    waiting = {"Pod": pod({"name": "p"}), "Job": job()}
    kinds = ("ReplicaSet", "Deployment", "StatefulSet", "ReplicationController")
    waiting |= {kind: replicated(kind) for kind in kinds}
    async with cluster.api() as api:
        # Service accounts are made by a controller; without one no pod is admitted.
        while waiting or not await _is_denied(api, MISTAKEN["job-with-bad-group"]):
            for kind, obj in list(waiting.items()):
                try:
                    if {PG, SZ} <= set(our_labels(await dry_run(api, obj))):
                        del waiting[kind]
                except ApiFailure as failure:
                    if failure.status != 403 or "serviceaccount" not in failure.message:
                        raise
            assert time.monotonic() < deadline, f"not active after {ACTIVE_S} s: {list(waiting)}"
            await asyncio.sleep(0.05)
        while await api.find(f"/api/v1/namespaces/{RELEASE}/serviceaccounts/default") is None:
            assert time.monotonic() < deadline, "no service account in the release namespace"
            await asyncio.sleep(0.05)


async def _is_denied(api: Api, obj: Object, namespace: str = NAMESPACE) -> bool:
    try:
        await dry_run(api, obj, namespace)
    except ApiFailure:
        return True
    return False


def bare(made: Object, posted: Object) -> Any:
    """What was made of an object, without our labels, their mark and what is made up for each one."""
    plain = copy.deepcopy(made)
    metadata = (template_of(plain).get("metadata") or {}) if plain["kind"] != "ConfigMap" else {}
    rest = {key: value for key, value in (metadata.pop("labels", None) or {}).items() if key not in (PG, SZ)}
    metadata.update({"labels": rest} if rest else {})
    marks = metadata.get("annotations") or {}
    if marks.pop(MARK, None) and not marks:
        del metadata["annotations"]
    if not posted["metadata"].get("labels"):
        # The API server itself gives an object without labels those of its template.
        plain["metadata"].pop("labels", None)
    for key in ("creationTimestamp", "namespace", "managedFields"):
        plain["metadata"].pop(key, None)
    said = json.dumps(plain).replace(plain["metadata"].pop("uid"), "UID")
    if "generateName" in plain["metadata"]:
        said = said.replace(plain["metadata"]["name"], "NAME")
    return json.loads(re.sub("kube-api-access-[a-z0-9]{5}", "kube-api-access", said))


def defaulted(obj: Object) -> Object:
    """What admission sees of an object: some kinds without labels get those of their template (rule W31)."""
    if obj["kind"] not in {"Job", "ReplicationController"} or obj["metadata"].get("labels"):
        return obj
    labels = (template_of(obj).get("metadata") or {}).get("labels")
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


async def check_denied(api: Api, obj: Object, decision: Decision) -> None:
    assert not decision.allowed
    with pytest.raises(ApiFailure) as refused:
        await dry_run(api, obj)
    assert refused.value.status == decision.code
    assert decision.message in refused.value.message


async def check_alike(api: Api, obj: Object) -> None:
    """The API server with the policies gives the labels that the webhook would, and changes nothing else."""
    seen = defaulted(obj)
    decision = decided(seen, namespace=NAMESPACE)
    if not decision.allowed:
        await check_denied(api, obj, decision)
        return
    made = await dry_run(api, obj)
    if obj["kind"] != "ConfigMap":
        opted_in = template_of(obj)["spec"].get("schedulerName") == "fluence"
        if opted_in and decision.patch and must_be_left(obj, NAMESPACE):
            assert our_labels(made) == our_labels(obj)
        else:
            assert our_labels(made) == our_labels(applied(seen, decision))
    assert bare(made, obj) == bare(await dry_run(api, obj, RELEASE), obj)


@pytest.mark.parametrize("name", ALIKE)
async def test_an_object_gets_the_labels_that_the_webhook_gives(api: Api, name: str) -> None:
    """Rules A1, A2, A3 and A7; cases C08 to C16, C29 to C31 and C40."""
    obj = ALIKE[name]
    assert obj["kind"] == "ConfigMap" or not decided(obj).patch or not must_be_left(obj, NAMESPACE)
    await check_alike(api, obj)


@pytest.mark.parametrize("name", MISTAKEN)
async def test_a_mistake_is_denied_with_the_sentence_of_the_webhook(api: Api, name: str) -> None:
    """A4, case C04: key, value and rule."""
    assert not decided(MISTAKEN[name]).allowed
    await check_alike(api, MISTAKEN[name])


@pytest.mark.parametrize("name", LEFT)
async def test_what_cel_cannot_name_is_left_to_the_controller(api: Api, name: str) -> None:
    """Cases C01 and C03, rule A8: a name needs a hash, or the object belongs to one that must be counted."""
    obj = LEFT[name]
    assert decided(obj, namespace=NAMESPACE).patch
    made = await dry_run(api, obj)
    assert our_labels(made) == our_labels(obj)
    assert bare(made, obj) == bare(await dry_run(api, obj, RELEASE), obj)


def test_random_objects_get_the_labels_that_the_webhook_gives(policed: RunningCluster) -> None:
    """Rules A1 to A4 and A7: whatever is written where."""

    @settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
    @given(random_objects())
    def check(obj: Object) -> None:
        note(json.dumps(obj))
        asyncio.run(posted(obj))

    async def posted(obj: Object) -> None:
        async with policed.api() as api:
            if await _is_denied(api, obj, RELEASE):
                # No object at all: a StatefulSet may have no dots in its name.
                assert await _is_denied(api, obj)
            else:
                await check_alike(api, obj)

    check()


@pytest.mark.parametrize("name", ["pod-without-labels", "job-with-parallelism", "statefulset-in-order"])
async def test_a_labelled_object_is_not_labelled_again(api: Api, name: str) -> None:
    """Applying twice equals applying once: `kubectl get -o yaml | kubectl apply` elsewhere, rule A3."""
    obj = ALIKE[name]
    once = our_labels(await dry_run(api, obj))
    again = copy.deepcopy(obj)
    metadata = template_of(again).get("metadata") or {}
    marked = {key: value for key, value in once.items() if key == MARK}
    template_of(again)["metadata"] = {
        **metadata,
        "labels": {**(metadata.get("labels") or {}), PG: once[PG], SZ: once[SZ]},
        **({"annotations": marked} if marked else {}),
    }
    if again["kind"] == "Job":
        # Scaled by hand before it was applied again: the labels stay as they are.
        again["spec"]["parallelism"] = 9
    assert our_labels(await dry_run(api, again)) == once


async def test_system_namespaces_are_left_alone(api: Api) -> None:
    """Cases C29 and C134."""
    for namespace in ("kube-system", "kube-public", "kube-node-lease", RELEASE):
        made = await dry_run(api, job(labels(size="x"), parallelism=2), namespace)
        assert our_labels(made) == {}


async def test_an_update_is_left_alone(api: Api) -> None:
    """Case C33: only what is created is labelled or judged."""
    made = await api.post(collection(job(), NAMESPACE), job({"name": "kept"}, parallelism=2, suspend=True))
    path = f"{collection(made, NAMESPACE)}/kept"
    assert our_labels(made) == {PG: f"fluence-group-{NAMESPACE}-kept", SZ: "2", MARK: "rule"}
    changed = await api.patch(path, {"metadata": {"labels": {SZ: "x"}}, "spec": {"parallelism": 5}})
    assert our_labels(changed) == our_labels(made)


async def test_a_number_as_a_label_is_refused_by_the_api_server_itself(api: Api) -> None:
    """Case C07: the object cannot even be read, so that no policy is asked."""
    wrong = job(parallelism=2)
    wrong["metadata"]["labels"] = {SZ: 5}
    with pytest.raises(ApiFailure, match="cannot unmarshal number") as refused:
        await dry_run(api, wrong)
    assert refused.value.status == 400


@pytest.mark.parametrize("rule", CUSTOM, ids=lambda rule: f"{rule.kind}-of-{rule.group}")
async def test_a_mistake_is_denied_in_custom_kinds_too(api: Api, rule: Rule) -> None:
    """A4 in each of its templates; what is right passes unlabelled, for its pods are labelled later (A8)."""
    ours = {"schedulerName": "fluence"}
    for template in rule.templates:
        for wrong in (labels("g", "0"), labels("G", "2"), {"labels": {"fluence.pod-group": "G"}}):
            obj = custom(rule, template.path, {"metadata": wrong, "spec": ours})
            await check_denied(api, obj, decided(obj))
            foreign = custom(rule, template.path, {"metadata": wrong, "spec": {"schedulerName": "x"}})
            assert not await _is_denied(api, foreign)
        for right in (labels("g", "2"), labels("", None), {}, {"labels": None}, None):
            obj = custom(rule, template.path, {"metadata": right, "spec": ours})
            assert (await dry_run(api, obj))["spec"] == obj["spec"]
        for odd in (None, {}, {"spec": None}, 3):
            assert not await _is_denied(api, custom(rule, template.path, odd))


def test_every_kind_of_a_policy_is_tested() -> None:
    assert {obj["kind"] for obj in ALIKE.values()} == set(KINDS)
