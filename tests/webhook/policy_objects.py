"""Objects that the policies must treat as the webhook does, and those that they leave to the controller."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from groups.contract import GROUP_LABEL, SIZE_FROM_ANNOTATION, SIZE_LABEL, is_group_name
from groups.workloads.rules import Rule, builtin_rules
from groups.workloads.shapes import EACH_ITEM, WILDCARDS, Path
from tests.webhook.reviews import pod_spec

PG, SZ, MARK = GROUP_LABEL, SIZE_LABEL, SIZE_FROM_ANNOTATION
Object = dict[str, Any]

#: Of each kind that has a policy: its API version and its collection.
KINDS: Final = {
    "Pod": ("v1", "/api/v1/namespaces/{}/pods"),
    "Job": ("batch/v1", "/apis/batch/v1/namespaces/{}/jobs"),
    "ReplicaSet": ("apps/v1", "/apis/apps/v1/namespaces/{}/replicasets"),
    "Deployment": ("apps/v1", "/apis/apps/v1/namespaces/{}/deployments"),
    "StatefulSet": ("apps/v1", "/apis/apps/v1/namespaces/{}/statefulsets"),
    "ReplicationController": ("v1", "/api/v1/namespaces/{}/replicationcontrollers"),
    "CronJob": ("batch/v1", "/apis/batch/v1/namespaces/{}/cronjobs"),
    "ConfigMap": ("v1", "/api/v1/namespaces/{}/configmaps"),
}
REPLICATED: Final = ("ReplicaSet", "Deployment", "StatefulSet", "ReplicationController")
NAMESPACE: Final = "policies"
LONG: Final = "a" * 50


def collection(obj: Object, namespace: str) -> str:
    """Where an object is to be posted."""
    if obj["kind"] in KINDS and obj["apiVersion"] == KINDS[obj["kind"]][0]:
        return KINDS[obj["kind"]][1].format(namespace)
    rule = builtin_rules().find(obj["apiVersion"], obj["kind"])
    assert rule is not None
    return f"/apis/{obj['apiVersion']}/namespaces/{namespace}/{rule.resource}"


def template_of(obj: Object) -> Object:
    """The pod template, or the pod itself."""
    if obj["kind"] == "Pod":
        return obj
    spec = obj["spec"]
    found: Object = (spec["jobTemplate"]["spec"] if obj["kind"] == "CronJob" else spec)["template"]
    return found


def our_labels(obj: Object) -> dict[str, str]:
    """The labels of ours that the pods will have, and the mark of a counted size; empty means none."""
    metadata = template_of(obj).get("metadata") or {}
    both = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    return {key: both[key] for key in (PG, SZ, MARK) if both.get(key)}


def pod(metadata: Any, scheduler: str | None = "fluence") -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(scheduler=scheduler)}


def on_node(obj: Object) -> Object:
    return {**obj, "spec": {**obj["spec"], "nodeName": "n"}}


def job(metadata: Any = None, template: Any = None, scheduler: str | None = "fluence", **spec: Any) -> Object:
    """A Job; `template` is the metadata of its template, "absent" for none."""
    inner: Object = {"metadata": template, "spec": pod_spec(scheduler=scheduler)}
    if template == "absent":
        del inner["metadata"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "w", **(metadata or {})},
        "spec": {**spec, "template": inner},
    }


def replicated(
    kind: str,
    metadata: Any = None,
    template: Any = None,
    scheduler: str | None = "fluence",
    **spec: Any,
) -> Object:
    """A ReplicaSet or the like; `template` is metadata beside the labels that its selector needs."""
    more = template or {}
    labels = {"app": "web", **(more.get("labels") or {})}
    pods = {**pod_spec(scheduler=scheduler), "restartPolicy": "Always"}
    selector: Object = {"app": "web"} if kind == "ReplicationController" else {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": KINDS[kind][0],
        "kind": kind,
        "metadata": {"name": "w", **(metadata or {})},
        "spec": {
            **({"serviceName": "w"} if kind == "StatefulSet" else {}),
            **spec,
            "selector": selector,
            "template": {"metadata": {**more, "labels": labels}, "spec": pods},
        },
    }


def cron_job(template: Object) -> Object:
    inner = job(template=template)["spec"]
    metadata = {"name": "nightly"}
    spec = {"schedule": "0 0 * * *", "jobTemplate": {"spec": inner}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}


def owner(kind: str, api_version: str, controller: bool = True) -> Object:
    reference = {"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u", "controller": controller}
    return {"ownerReferences": [reference]}


def named(name: str, **more: Any) -> Object:
    return {"name": name, **more}


def labels(group: str | None = None, size: str | None = None, **more: str) -> Object:
    mine = {PG: group, SZ: size}
    return {"labels": {**{key: value for key, value in mine.items() if value is not None}, **more}}


VOLCANO_LABELS: Final = {
    "labels": {"scheduling.k8s.io/group-name": "vg"},
    "annotations": {"scheduling.k8s.io/min-available": "3"},
}
KUEUE: Final = {"labels": {"kueue.x-k8s.io/pod-group-name": "kg"}}

#: What the policies must treat exactly as the webhook does.
ALIKE: Final[dict[str, Object]] = {
    "pod-without-labels": pod(named("p")),
    "pod-with-null-labels": pod(named("p", labels=None, annotations=None)),
    "pod-with-other-labels": pod(named("p", labels={"app": "web", "a/b": "c"})),
    "pod-with-group": pod(named("p", **labels("g"))),
    "pod-with-size": pod(named("p", **labels(size="4"))),
    "pod-with-both": pod(named("p", **labels("g", "4"))),
    "pod-with-empty-labels": pod(named("p", **labels("", ""))),
    "pod-whose-name-could-be-a-workloads": pod(named(f"{NAMESPACE}-llama")),
    "pod-whose-name-begins-with-the-word-of-pods": pod(named("pod.llama")),
    "pod-with-dots-in-its-name": pod(named("p.a-b.c")),
    "pod-with-generate-name-and-group": pod({"generateName": "p-", **labels("g")}),
    "pod-of-another-scheduler": pod(named("p"), scheduler="volcano"),
    "pod-of-another-scheduler-with-nonsense": pod(named("p", **labels("A_b", "abc")), scheduler="volcano"),
    "pod-of-no-scheduler": pod(named("p"), scheduler=None),
    "pod-that-is-a-mirror": on_node(pod(named("p", annotations={"kubernetes.io/config.mirror": "x"}))),
    "pod-of-a-daemonset": pod(named("p", **owner("DaemonSet", "apps/v1"))),
    "pod-of-an-unknown-owner": pod(named("p", **owner("Workflow", "argoproj.io/v1alpha1"))),
    "pod-owned-but-not-controlled": pod(named("p", **owner("Job", "batch/v1", controller=False))),
    "pod-of-a-labelled-template": pod(named("p", **labels("g", "2"), **owner("Job", "batch/v1"))),
    "pod-with-labels-of-scheduler-plugins": pod(
        named(
            "p",
            labels={
                "pod-group.scheduling.sigs.k8s.io/name": "sp",
                "pod-group.scheduling.sigs.k8s.io/min-available": "5",
            },
        )
    ),
    "pod-with-labels-of-kueue": pod(
        named("p", **KUEUE, annotations={"kueue.x-k8s.io/pod-group-total-count": "2"})
    ),
    "pod-with-labels-of-kueue-and-ours": pod(named("p", labels={**KUEUE["labels"], PG: "g"})),
    "job-with-nothing": job(),
    "job-without-template-metadata": job(template="absent"),
    "job-with-null-labels": job({"labels": None}, {"labels": None, "annotations": None}),
    "job-with-parallelism": job(parallelism=3),
    "job-with-more-completions": job(parallelism=3, completions=7),
    "job-with-fewer-completions": job(parallelism=5, completions=2),
    "job-with-completions-alone": job(completions=4),
    "job-with-no-parallelism-left": job(parallelism=0, completions=4),
    "job-with-no-completions-left": job(parallelism=4, completions=0),
    "job-with-null-counts": job(parallelism=None, completions=None),
    "job-with-group-on-the-object": job(labels("g"), parallelism=3),
    "job-with-group-on-the-template": job(template=labels("g"), parallelism=3),
    "job-with-group-on-both": job(labels("a"), labels("b"), parallelism=3),
    "job-with-size-on-the-object": job(labels(size="2"), parallelism=3),
    "job-with-size-on-the-template": job(template=labels(size="2"), parallelism=3),
    "job-with-size-on-both": job(labels(size="4"), labels(size="2"), parallelism=3),
    "job-with-size-for-another-group": job(labels("a", "4"), labels("b"), parallelism=3),
    "job-with-empty-values": job(labels("", ""), labels("", ""), parallelism=3),
    "job-with-other-template-labels": job(template={"labels": {"app": "web", "a/b": "c"}}, parallelism=2),
    "job-with-volcano-labels": job(template=VOLCANO_LABELS, parallelism=4),
    "job-with-volcano-labels-on-the-object": job(VOLCANO_LABELS, parallelism=4),
    "job-with-both-kinds-of-labels": job(labels("g"), VOLCANO_LABELS, parallelism=4),
    "job-with-group-and-generate-name": job({"name": None, "generateName": "w-", **labels("g")}),
    "job-of-a-cronjob": job(owner("CronJob", "batch/v1"), parallelism=2),
    "job-of-another-scheduler": job(scheduler="default-scheduler", parallelism=2),
    "job-of-no-scheduler": job(labels("A_b", "0"), scheduler=None, parallelism=2),
    "job-with-a-dot-in-its-name": job(named("a.b"), parallelism=2),
    "job-with-annotations": job(template={"annotations": {"note": "n"}}, parallelism=2),
    "job-with-many-annotations": job(template={"annotations": {"n": "n" * 59_999}}, parallelism=2),
    "job-with-nearly-full-annotations": job(
        template={"annotations": {"n": "\N{BUG}" * 60_000}}, parallelism=2
    ),
    "job-with-the-mark-and-no-size": job(template={"annotations": {MARK: "rule"}}, parallelism=2),
    "job-with-the-mark-and-a-size": job(template={**labels(size="2"), "annotations": {MARK: "rule"}}),
    "job-with-the-longest-name": job(named("a" * (63 - len(f"fluence-group-{NAMESPACE}-")))),
    "cronjob-with-a-size": cron_job(labels(size="3")),
    "replicaset-of-a-deployment": replicated("ReplicaSet", owner("Deployment", "apps/v1"), replicas=2),
    "replicationcontroller-of-another": replicated("ReplicationController", owner("X", "example.com/v1")),
    "statefulset-in-order": replicated("StatefulSet", replicas=3),
    "statefulset-in-order-with-size": replicated("StatefulSet", labels(size="3"), replicas=3),
    "statefulset-in-order-with-volcano-labels": replicated(
        "StatefulSet", template=VOLCANO_LABELS, replicas=3
    ),
    "statefulset-of-a-leaderworkerset": replicated(
        "StatefulSet", {"labels": {"leaderworkerset.sigs.k8s.io/name": "l"}}, replicas=3
    ),
    "configmap": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("c", **labels("A_b", "0"))},
}
for _kind in REPLICATED:
    _extra: Object = {"podManagementPolicy": "Parallel"} if _kind == "StatefulSet" else {}
    _name = _kind.lower()
    ALIKE |= {
        f"{_name}-without-replicas": replicated(_kind, **_extra),
        f"{_name}-with-replicas": replicated(_kind, replicas=3, **_extra),
        f"{_name}-with-none": replicated(_kind, replicas=0, **_extra),
        f"{_name}-with-group-and-size": replicated(_kind, labels("g", "2"), replicas=3, **_extra),
        f"{_name}-with-template-group": replicated(_kind, template=labels("g"), replicas=3, **_extra),
        f"{_name}-of-another-scheduler": replicated(_kind, scheduler="x", replicas=3, **_extra),
    }

# What nobody reads cannot be wrong.
ALIKE["job-with-our-size-beside-a-bad-volcano-size"] = job(
    template={
        **labels(None, "1", **VOLCANO_LABELS["labels"]),
        "annotations": {"scheduling.k8s.io/min-available": "many"},
    }
)

#: Mistakes (A4), which both must deny.
MISTAKEN: Final[dict[str, Object]] = {
    **{
        f"job-with-size-{size}": job(labels(size=size), parallelism=2)
        for size in ("abc", "0", "-1", "1.5", "01", "2147483648", "9999999999")
        # A label must begin with a letter or digit: that mistake the API server itself knows.
        if size[0] != "-"
    },
    "job-with-bad-size-on-the-template": job(template=labels("g", "x"), parallelism=2),
    "job-with-bad-group": job(labels("A_b"), parallelism=2),
    "job-with-bad-group-on-the-template": job(template=labels("a_b"), parallelism=2),
    "job-with-bad-volcano-group": job({"labels": {"scheduling.k8s.io/group-name": "A_b"}}),
    "job-with-bad-volcano-size": job(
        {**VOLCANO_LABELS, "annotations": {"scheduling.k8s.io/min-available": "many"}}
    ),
    "pod-with-bad-size": pod(named("p", **labels("g", "three"))),
    "pod-of-a-job-with-bad-size": pod(named("p", **labels("g", "0"), **owner("Job", "batch/v1"))),
    "deployment-with-bad-group": replicated("Deployment", labels("Web")),
    "statefulset-with-bad-size": replicated("StatefulSet", template=labels(size="0")),
    "cronjob-with-bad-size": cron_job(labels(size="none")),
    "statefulset-in-order-with-bad-volcano-size": replicated(
        "StatefulSet",
        template={**VOLCANO_LABELS, "annotations": {"scheduling.k8s.io/min-available": "many"}},
        podManagementPolicy="OrderedReady",
    ),
    # Of several mistakes both tell the same one: the object's before the template's.
    "job-with-bad-size-and-bad-group-on-the-template": job(labels("g", "x"), template=labels("a_b")),
    "job-with-bad-group-and-bad-size": job(labels("A_b", "x")),
    "job-with-bad-volcano-size-and-bad-group-on-the-template": job(
        {**VOLCANO_LABELS, "annotations": {"scheduling.k8s.io/min-available": "many"}}, template=labels("a_b")
    ),
}

#: What the policies leave as it is, for the controller to label the pods (A8).
LEFT: Final[dict[str, Object]] = {
    "pod-with-generate-name": pod({"generateName": "p-"}),
    "pod-with-generate-name-and-size": pod({"generateName": "p-", **labels(size="2")}),
    "pod-with-a-long-name": pod(named(LONG)),
    "pod-of-a-job": pod(named("p", **owner("Job", "batch/v1"))),
    "pod-of-an-mpijob": pod(named("p", **owner("MPIJob", "kubeflow.org/v2beta1"))),
    "pod-of-a-leaderworkerset": pod(
        named("l-0", labels={"leaderworkerset.sigs.k8s.io/name": "l"}, annotations={"a": "b"})
    ),
    "job-with-generate-name": job({"name": None, "generateName": "w-"}, parallelism=2),
    "job-with-generate-name-and-size": job({"name": None, "generateName": "w-", **labels(size="2")}),
    "job-with-a-long-name": job(named(LONG), parallelism=2),
    "job-of-a-jobset": job(owner("JobSet", "jobset.x-k8s.io/v1alpha2"), parallelism=2),
    "deployment-with-a-long-name": replicated("Deployment", named(LONG), replicas=2),
    "replicationcontroller-with-a-long-name": replicated("ReplicationController", named(LONG)),
}


def must_be_left(obj: Object, namespace: str) -> bool:
    """Whether CEL cannot name the group of an object that opted in, as the README says."""
    metadata = obj["metadata"]
    owners = {"Pod": ("Job", "JobSet", "MPIJob"), "Job": ("JobSet", "MPIJob")}.get(obj["kind"], ())
    if any(one["controller"] and one["kind"] in owners for one in metadata.get("ownerReferences") or ()):
        return True
    places = [metadata, template_of(obj).get("metadata") or {}]
    group_keys = (PG, *(key for keys in (VOLCANO_LABELS, KUEUE) for key in keys["labels"]))
    if any((place.get("labels") or {}).get(key) for place in places for key in group_keys):
        return False
    name = metadata.get("name") or ""
    return not name or not is_group_name(_plain_name(obj["kind"], namespace, name))


def _plain_name(kind: str, namespace: str, name: str) -> str:
    """The default name of a group before it is cut."""
    if kind == "Pod":
        return f"fluence-group-{'pod.' if name.startswith((f'{namespace}-', 'pod.')) else ''}{name}"
    word = "" if kind == "Job" and "." not in name else f"{kind.lower()}."
    return f"fluence-group-{namespace}-{word}{name}"


# Custom kinds: nothing is labelled, but mistakes are denied.

CUSTOM: Final = [rule for rule in builtin_rules().all if rule.templates and "." in rule.group]


def custom(rule: Rule, path: Path, template: Any) -> Object:
    """An object of a custom kind with a pod template at `path`."""
    value = template
    for step in reversed(path):
        value = [value] if step == EACH_ITEM else {"x" if step in WILDCARDS else step: value}
    api_version = f"{rule.group}/{rule.versions[0]}"
    return {"apiVersion": api_version, "kind": rule.kind, "metadata": {"name": "w"}, **value}


# Random objects that the API server takes, unless there is a mistake in them.

_values = st.fixed_dictionaries(
    {},
    optional={
        PG: st.sampled_from(["", "g", "h.i", "G_x"]),
        SZ: st.sampled_from(["", "1", "3", "0", "x"]),
        "scheduling.k8s.io/group-name": st.sampled_from(["", "vg", "V"]),
        "kueue.x-k8s.io/pod-group-name": st.just("kg"),
        "kueue.x-k8s.io/pod-group-total-count": st.sampled_from(["7", "x"]),
        "app": st.just("web"),
    },
)
_annotations = st.fixed_dictionaries(
    {}, optional={"scheduling.k8s.io/min-available": st.sampled_from(["2", "x", ""]), "note": st.just("n")}
)
_written = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.one_of(st.none(), _values, _values),
        "annotations": st.one_of(st.none(), _annotations),
    },
)
_names = st.one_of(
    st.sampled_from(
        [
            {"name": "w"},
            {"name": "w.x-1.y"},
            {"name": "pod.w"},
            {"name": f"{NAMESPACE}-w"},
            {"name": LONG},
            {"generateName": "w-"},
        ]
    ),
    st.from_regex("[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?", fullmatch=True).map(lambda name: {"name": name}),
)
_owners = st.sampled_from(
    [
        {},
        {},
        {},
        owner("Job", "batch/v1"),
        owner("JobSet", "jobset.x-k8s.io/v1alpha2"),
        owner("Thing", "example.com/v1"),
        owner("Job", "batch/v1", controller=False),
    ]
)
_counts = st.one_of(st.none(), st.integers(0, 9))
_schedulers = st.sampled_from(["fluence", "fluence", "fluence", "fluence", "volcano", None])


@st.composite
def random_objects(draw: st.DrawFn) -> Object:
    """An object of one of the kinds that have a policy."""
    kind = draw(st.sampled_from(["Pod", "Job", "Job", *REPLICATED]))
    metadata = {**draw(_names), **draw(_written), **draw(_owners)}
    scheduler = draw(_schedulers)
    if kind == "Pod":
        return pod(metadata, scheduler)
    template = draw(_written)
    if kind == "Job":
        counts = {"parallelism": draw(_counts), "completions": draw(_counts)}
        made = job(None, template, scheduler, **counts)
    else:
        management = st.sampled_from(["Parallel", "OrderedReady"])
        more = {"podManagementPolicy": draw(management)} if kind == "StatefulSet" else {}
        made = replicated(kind, None, template, scheduler, replicas=draw(_counts), **more)
    return {**made, "metadata": metadata}
