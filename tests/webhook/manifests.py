"""Objects of the kinds that operators bring, small and of the shapes that users write first."""

from __future__ import annotations

from typing import Any

from tests.webhook.reviews import PG, SZ, Object, decided, pod_spec
from webhook.decide import Policy

POD: Object = {"spec": pod_spec()}


def custom(api_version: str, kind: str, name: str, spec: Object, **metadata: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def template(**labels: str) -> Object:
    """A pod template of ours, with labels."""
    return {"metadata": {"labels": dict(labels)}, **POD} if labels else dict(POD)


def foreign() -> Object:
    """A pod template of another scheduler."""
    return {"spec": pod_spec(scheduler="volcano")}


def jobset(
    name: str, *jobs: tuple[str, Object, int | None], pods: Object | None = None, **spec: Any
) -> Object:
    """A JobSet of jobs (name, fields of the Job's spec, replicas)."""
    replicated = [
        {
            "name": job,
            **({} if replicas is None else {"replicas": replicas}),
            "template": {"spec": {**fields, "template": pods or dict(POD)}},
        }
        for job, fields, replicas in jobs
    ]
    return custom("jobset.x-k8s.io/v1alpha2", "JobSet", name, {"replicatedJobs": replicated, **spec})


def parallel(count: int) -> Object:
    return {"parallelism": count, "completions": count}


def replicas(kind: str, key: str, name: str, version: str = "v1", /, **roles: int | None) -> Object:
    """A job of Kubeflow: for each role how many."""
    specs = {
        role: {**({} if count is None else {"replicas": count}), "template": dict(POD)}
        for role, count in roles.items()
    }
    return custom(f"kubeflow.org/{version}", kind, name, {key: specs})


def mpijob(name: str, version: str = "v2beta1", **roles: int | None) -> Object:
    return replicas("MPIJob", "mpiReplicaSpecs", name, version, **roles)


def ray_cluster_spec(*groups: Object, **spec: Any) -> Object:
    """A head, and a worker group for each of `groups`."""
    workers = [{"groupName": f"g{number}", "template": dict(POD), **one} for number, one in enumerate(groups)]
    return {"headGroupSpec": {"template": dict(POD)}, "workerGroupSpecs": workers, **spec}


def ray_cluster(name: str, *groups: Object, **spec: Any) -> Object:
    return custom("ray.io/v1", "RayCluster", name, ray_cluster_spec(*groups, **spec))


def added(obj: Object, policy: Policy | None = None, **more: Any) -> dict[str, tuple[str | None, str | None]]:
    """What a patch writes: for each template, its JSON pointer with the group and size it gets."""
    decision = decided(obj, **({"policy": policy} if policy else {}), **more)
    assert decision.allowed, decision.message
    found: dict[str, dict[str, str]] = {}
    for operation in decision.patch:
        path, _, rest = operation["path"].rpartition("/metadata")
        value = operation["value"]
        if rest.startswith("/annotations"):
            continue
        if rest.startswith("/labels/"):
            value = {rest.removeprefix("/labels/").replace("~1", "/"): value}
        elif not rest:
            value = value["labels"]
        found.setdefault(path, {}).update(value)
    return {path: (labels.get(PG), labels.get(SZ)) for path, labels in found.items()}


def outcome(obj: Object, **more: Any) -> set[tuple[str | None, str | None]]:
    """The different groups and sizes that the templates of an object get."""
    return set(added(obj, **more).values())


def controlled(api_version: str, kind: str, name: str) -> Object:
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": "o", "controller": True}
    return {"ownerReferences": [reference]}
