"""Reviews and objects for the webhook's tests: section 0 of the cases, and hypothesis strategies."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import msgspec
from hypothesis import strategies as st

from groups.contract import GROUP_LABEL, SIZE_LABEL
from webhook.decide import Decision, Policy, decide
from webhook.models import AdmissionRequest, GroupVersionKind

PG, SZ = GROUP_LABEL, SIZE_LABEL
POLICY = Policy()
Object = dict[str, Any]

API_VERSIONS = {
    "Pod": "v1",
    "ConfigMap": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "ReplicaSet": "apps/v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
}
TEMPLATED = ("Job", "ReplicaSet", "Deployment", "StatefulSet")


def pod_spec(cpu: str = "1", scheduler: str | None = "fluence") -> Object:
    """P(x) of the cases."""
    spec: Object = {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "c",
                "image": "busybox",
                "command": ["sleep", "20"],
                "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
            }
        ],
    }
    return spec if scheduler is None else {"schedulerName": scheduler, **spec}


def pod(metadata: Any, **spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(**spec)}


def workload(
    kind: str, name: str = "w", template: Any = None, *, metadata: Any = None, **spec: Any
) -> Object:
    """A workload; `spec` are the fields beside its template, whose own spec is P(1)."""
    return {
        "apiVersion": API_VERSIONS[kind],
        "kind": kind,
        "metadata": {"name": name, **(metadata or {})},
        "spec": {**spec, "template": {"spec": pod_spec(), **(template or {})}},
    }


def gvk(obj: Object) -> GroupVersionKind:
    group, _, version = obj["apiVersion"].rpartition("/")
    return GroupVersionKind(group=group, version=version, kind=obj["kind"])


def request(
    obj: Object | None, *, namespace: str | None = "default", uid: str = "u-1", **more: Any
) -> AdmissionRequest:
    kind = gvk(obj) if obj is not None else GroupVersionKind(version="v1", kind="Pod")
    fields: Object = {"operation": "CREATE", "kind": kind, **more}
    return AdmissionRequest(uid=uid, namespace=namespace, object=obj, **fields)


def review(obj: Object | None, **more: Any) -> Object:
    """An AdmissionReview as the API server posts it."""
    asked = msgspec.to_builtins(request(obj, **more))
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


def decided(obj: Object | None, policy: Policy = POLICY, **more: Any) -> Decision:
    return decide(request(obj, **more), policy)


def applied(obj: Object, decision: Decision) -> Object:
    """What the API server would store, by a standard RFC 6902 library."""
    assert decision.allowed, decision.message
    result: Object = jsonpatch.JsonPatch(list(decision.patch)).apply(copy.deepcopy(obj))
    return result


def labelled(obj: Object, **more: Any) -> Object:
    return applied(obj, decided(obj, **more))


def template_labels(obj: Object) -> Any:
    """The labels of the pod template, or of the pod itself."""
    template = obj if obj["kind"] == "Pod" else obj["spec"]["template"]
    return template["metadata"]["labels"]


# Random objects: the kinds' shapes, with any part missing, null or of an odd type.

odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
names = st.from_regex(r"_(\._){0,2}".replace("_", "[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?"), fullmatch=True)
label_values = st.one_of(st.sampled_from(["", "g", "pg1", "3", "0", "abc", "A_b", "2147483648"]), odd)
label_maps = st.one_of(
    odd,
    st.fixed_dictionaries(
        {}, optional={PG: label_values, SZ: label_values, "app": st.just("web"), "a/b~c": odd}
    ),
)
owners = st.one_of(
    odd,
    st.lists(
        st.one_of(
            odd,
            st.fixed_dictionaries(
                {"kind": st.sampled_from(["Job", "ReplicaSet", "DaemonSet", "Thing"]), "name": names},
                optional={
                    "apiVersion": st.sampled_from(["batch/v1", "apps/v1", "v1"]),
                    "controller": st.one_of(st.just(True), odd),
                    "uid": odd,
                },
            ),
        ),
        max_size=3,
    ),
)
metadatas = st.one_of(
    odd,
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.one_of(names, odd),
            "generateName": st.one_of(names, odd),
            "namespace": odd,
            "labels": label_maps,
            "annotations": odd,
            "ownerReferences": owners,
            "creationTimestamp": st.none(),
        },
    ),
)
specs = st.one_of(
    odd,
    st.fixed_dictionaries({"schedulerName": st.just("fluence")}, optional={"containers": odd}),
)
templates = st.one_of(odd, st.fixed_dictionaries({"spec": specs}, optional={"metadata": metadatas}))
counts = st.one_of(st.integers(-2, 10), odd)


@st.composite
def objects(draw: st.DrawFn) -> Object:
    """Any object of one of the kinds that rules know."""
    kind = draw(st.sampled_from(["Pod", *TEMPLATED]))
    obj: Object = {"apiVersion": API_VERSIONS[kind], "kind": kind}
    if kind == "Pod":
        inner = draw(st.fixed_dictionaries({"spec": specs}, optional={"metadata": metadatas}))
        return {**obj, **inner}
    spec = draw(
        st.fixed_dictionaries(
            {"template": templates},
            optional={
                "parallelism": counts,
                "completions": counts,
                "replicas": counts,
                "podManagementPolicy": st.one_of(st.just("Parallel"), odd),
            },
        )
    )
    return {**obj, "metadata": draw(metadatas), "spec": spec}


@st.composite
def good_objects(draw: st.DrawFn) -> Object:
    """Objects that opted in and that the API server would take."""
    kind = draw(st.sampled_from(["Pod", *TEMPLATED]))
    label_map = st.fixed_dictionaries({}, optional={PG: names, SZ: st.just("3"), "app": st.just("web")})
    metadata: Object = {draw(st.sampled_from(["name", "generateName"])): draw(names)}
    if draw(st.booleans()):
        metadata["labels"] = draw(st.one_of(st.none(), label_map))
    if kind == "Pod":
        return pod(metadata)
    template: Object = {}
    if draw(st.booleans()):
        template["metadata"] = draw(
            st.one_of(
                st.none(), st.fixed_dictionaries({}, optional={"labels": st.one_of(st.none(), label_map)})
            )
        )
    return workload(kind, "x", template, metadata=metadata, replicas=draw(st.integers(0, 9)))
