"""The real API server takes whatever it would take without us, and what it takes is labelled."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from devcluster.api import Api, ApiFailure, Object
from groups.contract import GROUP_LABEL, SIZE_FROM_ANNOTATION, SIZE_LABEL, is_group_name, parse_group_size
from groups.workloads.shapes import lookup
from tests.support import objects
from tests.support.world import World
from tests.webhook.shapes import MISSING, damaged

REPLICATED = ("Deployment", "ReplicaSet", "StatefulSet")
PATHS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "ReplicationController": "/api/v1/namespaces/{}/replicationcontrollers",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "CronJob": "/apis/batch/v1/namespaces/{}/cronjobs",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
}
TEMPLATES = {"Pod": (), "CronJob": ("spec", "jobTemplate", "spec", "template")}

#: The volume of a service account's token has a new name each time.
_TOKEN = re.compile("kube-api-access-[a-z0-9]{5}")
_NEW = re.compile(f"{GROUP_LABEL}|{SIZE_LABEL}|controller-uid|job-name")

names = st.sampled_from(["a", "train", "with.dots", "x" * 40, "x" * 63, "x" * 200, "a-1.b-2"])
values = st.sampled_from(["", "g", "my-group", "a.b", "3", "1", "0", "abc", "A_b", "-x", "2147483648"])
labels = st.dictionaries(
    st.sampled_from(["app", "example.com/team", GROUP_LABEL, SIZE_LABEL, "pod-template-hash"]),
    values,
    max_size=3,
)
numbers = st.sampled_from([None, 0, 1, 2, 5, 100, -1, 2**31 - 1])
odd = st.sampled_from([MISSING, None, None, True, 7, "text", "", [], {}, [None], {"a": "b"}])
damages = st.just([]) | st.lists(st.tuples(st.integers(0, 300), odd), max_size=2)


@st.composite
def whole(draw: st.DrawFn) -> Object:
    """An object as a user would write it, with rare but legal parts."""
    kind = draw(st.sampled_from(sorted(PATHS)))
    template: Object = {
        "metadata": {
            "labels": {"app": "w", **draw(labels)},
            "annotations": draw(st.none() | st.just({"a": "b"})),
        },
        "spec": objects.pod_spec("nowhere", automountServiceAccountToken=False),
    }
    metadata: Object = {draw(st.sampled_from(["name", "name", "generateName"])): draw(names)}
    metadata["labels"] = draw(st.none() | labels)
    if kind == "Pod":
        template["metadata"] |= metadata
        return {"apiVersion": "v1", "kind": "Pod", **template}
    spec: Object = {"template": template}
    if kind in ("Job", "CronJob"):
        spec |= {
            "parallelism": draw(numbers),
            "completions": draw(numbers),
            "suspend": draw(st.none() | st.booleans()),
        }
        if draw(st.booleans()):
            template["metadata"] = draw(st.sampled_from([None, {}, {"labels": None}]))
        if kind == "CronJob":
            spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": spec}}
    else:
        template["spec"]["restartPolicy"] = "Always"
        spec |= {"replicas": draw(numbers)} if kind != "DaemonSet" else {}
        if kind == "ReplicationController":
            spec["selector"] = {"app": "w"}
        else:
            spec["selector"] = {"matchLabels": {"app": "w"}}
        if kind == "StatefulSet":
            spec |= {"serviceName": "w", "podManagementPolicy": draw(st.sampled_from([None, "Parallel"]))}
    version = PATHS[kind].partition("/namespaces")[0].removeprefix("/apis/").removeprefix("/api/")
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def template_of(obj: Object) -> Any:
    """The pod template of an object, or something else that stands in its place."""
    found: Any = obj
    for step in TEMPLATES.get(obj["kind"], ("spec", "template")):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def for_scheduler(obj: Object, name: str) -> Object:
    """A copy that asks for this scheduler."""
    obj = copy.deepcopy(obj)
    template = template_of(obj)
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        template["spec"]["schedulerName"] = name
    return obj


async def created(api: Api, obj: Object, namespace: str) -> Object | ApiFailure:
    """What the API server would store, or why it would not."""
    try:
        return await api.post(PATHS[obj["kind"]].format(namespace), obj, dryRun="All")
    except ApiFailure as failure:
        return failure


def without_labels(obj: Object) -> Object:
    """What must not differ: all but our labels and mark, the scheduler and what is new each time.

    Where an object of an old kind has no labels the API server gives it those of its template.
    """
    obj = json.loads(_TOKEN.sub("kube-api-access", json.dumps(for_scheduler(obj, "any"))))
    for metadata in (obj["metadata"], template_of(obj)["metadata"]):
        labels = metadata.pop("labels", None) or {}
        if kept := {key: value for key, value in labels.items() if not _NEW.search(key)}:
            metadata["labels"] = kept
        annotations = metadata.pop("annotations", None) or {}
        if kept := {key: value for key, value in annotations.items() if key != SIZE_FROM_ANNOTATION}:
            metadata["annotations"] = kept
        for key in ("name", "uid", "creationTimestamp", "managedFields"):
            metadata.pop(key, None)
    if obj["kind"] == "Job":
        del obj["spec"]["selector"]
    return obj


# About a minute where nothing else runs.
@pytest.mark.timeout(900)
@settings(max_examples=10_000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(whole(), damages)
async def test_what_is_accepted_without_us_is_accepted_with_us(
    world: World, obj: Object, hits: list[tuple[int, Any]]
) -> None:
    """Rules W8 and W37: a patch that does not apply, or makes an object illegal, is an error of ours that a
    user sees as theirs."""
    obj = damaged(obj, hits)
    note(json.dumps(obj))
    without = await created(world.api, for_scheduler(obj, "other"), world.namespace)
    with_us = await created(world.api, for_scheduler(obj, "fluence"), world.namespace)
    if isinstance(without, ApiFailure):
        # Without a selector it selects by the labels of its template, which are ours where there were none.
        no_selector = obj["kind"] == "ReplicationController" and not lookup(obj, ("spec", "selector"))
        assert isinstance(with_us, ApiFailure) or no_selector, obj
        return
    if isinstance(with_us, ApiFailure):
        # Only a mistake in our own labels is denied, and by a sentence.
        assert "admission webhook" in with_us.message, (obj, with_us)
        assert "denied the request: " in with_us.message
        assert GROUP_LABEL in with_us.message or SIZE_LABEL in with_us.message
        return
    assert without_labels(with_us) == without_labels(without)
    found = template_of(with_us)["metadata"].get("labels") or {}
    if with_us["kind"] in ("CronJob", "DaemonSet") or "schedulerName" not in str(
        template_of(with_us)["spec"]
    ):
        return
    if not with_us["metadata"].get("ownerReferences"):
        assert is_group_name(found[GROUP_LABEL])
        assert parse_group_size(found[SIZE_LABEL])
