"""Which group is the default of a pod or workload (rules A1 and A8)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groups.contract import is_group_name
from groups.names import generated_group_name, workload_group_name
from groups.objects import OwnerReference
from groups.workloads.adopt import Adoption, PodIdentity, adopt, identify
from tests.webhook.reviews import names, objects

uids = st.uuids().map(str)
namespaces = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
OWNERS = [
    ("batch/v1", "Job"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "DaemonSet"),
]
owners = st.builds(
    lambda kind, name: OwnerReference(kind[1], name, "uid", kind[0]),
    st.sampled_from(OWNERS),
    st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True),
)
pods = st.builds(
    PodIdentity,
    namespace=namespaces,
    name=st.one_of(st.just(""), names),
    generate_name=st.one_of(st.just(""), names, st.text(max_size=9)),
    labels=st.dictionaries(st.just("pod-template-hash"), st.sampled_from(["", "5d4f", "x"])),
    owner=st.one_of(st.none(), owners),
)


@settings(deadline=None)
@given(pods, uids)
def test_every_default_name_is_legal_and_the_same_when_asked_again(pod: PodIdentity, uid: str) -> None:
    """Rule A1, case C03: also after a restart, hence nothing but the arguments may count."""
    name = adopt(pod, request_uid=uid).group_name
    assert is_group_name(name)
    assert adopt(pod, request_uid=uid).group_name == name


@settings(deadline=None)
@given(objects(), namespaces, uids)
def test_objects_of_any_shape_get_a_legal_name(obj: dict[str, object], namespace: str, uid: str) -> None:
    """Rule A1, case C10."""
    assert is_group_name(adopt(identify(obj, namespace), request_uid=uid).group_name)


@settings(deadline=None)
@given(namespaces, names, st.lists(uids, min_size=2, max_size=5, unique=True))
def test_objects_without_a_name_never_share_a_group(namespace: str, prefix: str, several: list[str]) -> None:
    """Case C01: the API server fills the name in only after admission."""
    pods = {
        adopt(PodIdentity(namespace, generate_name=prefix), request_uid=uid).group_name for uid in several
    }
    workloads = {generated_group_name(prefix, uid, namespace, "job") for uid in several}
    assert len(pods) == len(workloads) == len(several)


@settings(deadline=None)
@given(namespaces, st.lists(names, min_size=2, max_size=5, unique=True))
def test_pods_of_different_owners_are_in_different_groups(namespace: str, several: list[str]) -> None:
    groups = {
        adopt(PodIdentity(namespace, owner=OwnerReference("Job", name, "", "batch/v1"))).group_name
        for name in several
    }
    assert len(groups) == len(several)


def test_a_bare_pod_is_a_group_of_one() -> None:
    assert adopt(PodIdentity("default", "web-x")) == Adoption("fluence-group-web-x")
    assert adopt(PodIdentity("default", "web-x")).size == 1


@pytest.mark.parametrize("kind", [("batch/v1", "Job"), ("apps/v1", "StatefulSet"), ("apps/v1", "ReplicaSet")])
def test_a_pod_of_a_counted_owner_joins_its_group_without_a_size(kind: tuple[str, str]) -> None:
    """Rule A8: the controller counts the owner."""
    adoption = adopt(PodIdentity("ns", "train-x1", owner=OwnerReference(kind[1], "train", "u", kind[0])))
    word = "" if kind[1] == "Job" else f"{kind[1].lower()}."
    assert adoption.group_name == f"fluence-group-ns-{word}train"
    assert adoption.size is None
    assert adoption.owner is not None
    assert (adoption.owner.rule.kind, adoption.owner.name, adoption.owner.uid) == (kind[1], "train", "u")


def test_a_pod_of_a_deployment_is_named_for_the_deployment() -> None:
    """Rule A8: so that pods of all its ReplicaSets meet in one group."""
    pod = PodIdentity(
        "ns",
        "web-5d4f-abc",
        labels={"pod-template-hash": "5d4f"},
        owner=OwnerReference("ReplicaSet", "web-5d4f", "u", "apps/v1"),
    )
    adoption = adopt(pod)
    assert adoption.group_name == workload_group_name("ns", "deployment", "web")
    assert adoption.owner is not None
    assert (adoption.owner.rule.kind, adoption.owner.name) == ("Deployment", "web")
    assert adoption.owner.through is not None
    assert (adoption.owner.through.rule.kind, adoption.owner.through.uid) == ("ReplicaSet", "u")


@pytest.mark.parametrize("labels", [{}, {"pod-template-hash": "other"}, {"pod-template-hash": ""}])
def test_a_replicaset_of_its_own_names_its_pods(labels: dict[str, str]) -> None:
    """Rule A8: a hash that is no part of the name was not put there by a Deployment."""
    adoption = adopt(
        PodIdentity("ns", labels=labels, owner=OwnerReference("ReplicaSet", "web-5d4f", "", "apps/v1"))
    )
    assert adoption.group_name == "fluence-group-ns-replicaset.web-5d4f"
    assert adoption.owner is not None
    assert adoption.owner.rule.kind == "ReplicaSet"


def test_a_pod_of_an_owner_that_no_rule_counts_stands_alone() -> None:
    """Rule A8: "any other owner: each pod is a group of its own"."""
    adoption = adopt(PodIdentity("ns", "exec-1", owner=OwnerReference("Pod", "pi-driver", "", "v1")))
    assert adoption == Adoption("fluence-group-exec-1")


def test_the_owner_must_control_the_pod() -> None:
    pod = {
        "metadata": {"name": "p", "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j"}]}
    }
    assert adopt(identify(pod, "ns")).owner is None
