"""Pods that slipped past the webhook get the labels that it would have given them."""

from __future__ import annotations

import pytest

from controller.adoption import Labelling, label_pod
from controller.mistakes import Mistake
from controller.owners import Owner, OwnerState, unknown_owner
from controller.pods import Pod
from groups.contract import GROUP_LABEL, SIZE_LABEL, EventReason
from groups.workloads.rules import builtin_rules
from tests.controller.builders import job, pod, reference

RULES = builtin_rules()


def labels_of(one: Pod, owner: Owner | None = None) -> dict[str, str] | None:
    """The labels that a pod gets, None where it is left alone."""
    todo = label_pod(one, owner, RULES)
    assert not isinstance(todo, Mistake)
    return todo.labels if isinstance(todo, Labelling) else None


def test_a_bare_pod_becomes_a_gang_of_one() -> None:
    """Rule A1, as the webhook does it."""
    assert labels_of(pod("p", group=None)) == {GROUP_LABEL: "fluence-group-p", SIZE_LABEL: "1"}


def test_a_pod_of_a_job_joins_the_group_of_the_job() -> None:
    """Rule A8: named for the owner, no size; the controller counts."""
    owner = job()
    one = pod("train-x7k2p", group=None, owner=owner.reference)
    assert labels_of(one, owner) == {GROUP_LABEL: "fluence-group-ns-train"}


def test_a_pod_of_a_deployment_joins_the_group_of_the_deployment() -> None:
    """Rule A8: the ReplicaSet's name without the hash."""
    one = pod(
        "web-5d4f-abcde",
        group=None,
        owner=reference("ReplicaSet", "web-5d4f"),
        labels={"pod-template-hash": "5d4f"},
    )
    deployment = Owner(reference("Deployment", "web"), OwnerState.ACTIVE, 2)
    assert labels_of(one, deployment) == {GROUP_LABEL: "fluence-group-ns-deployment.web"}


@pytest.mark.parametrize("kind", ["Workflow", "DaemonSet"])
def test_a_pod_of_a_kind_that_nobody_counts_is_a_gang_of_one(kind: str) -> None:
    """Rule A8, case C29."""
    owner = unknown_owner(reference(kind))
    one = pod("p", group=None, owner=owner.reference)
    assert labels_of(one, owner) == {GROUP_LABEL: "fluence-group-p", SIZE_LABEL: "1"}


def test_what_the_user_wrote_stays() -> None:
    """Rule A3: on the pod, and on the workload."""
    assert labels_of(pod("p", group=None, size="4")) == {GROUP_LABEL: "fluence-group-p"}
    owner = job(group_label="mine", size_label="2")
    assert labels_of(pod("p", group=None, owner=owner.reference), owner) == {GROUP_LABEL: "mine"}


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(pod("p"), id="labelled"),
        pytest.param(pod("p", "Succeeded", group=None), id="succeeded"),
        pytest.param(pod("p", "Failed", group=None), id="failed"),
        pytest.param(pod("p", group=None, deleting=True), id="being deleted"),
        pytest.param(
            pod("p", group=None, annotations={"kubernetes.io/config.mirror": "x"}), id="C29 a mirror pod"
        ),
    ],
)
def test_pods_that_are_left_alone(one: Pod) -> None:
    """Rule A8: finished pods are of no concern any more."""
    assert labels_of(one) is None


def test_pods_of_an_owner_that_is_gone_are_left_to_the_garbage_collector() -> None:
    """They are about to go."""
    owner = job(OwnerState.DELETED)
    assert labels_of(pod("p", group=None, owner=owner.reference), owner) is None


def test_a_group_label_that_is_empty_is_none() -> None:
    """Case C04: empty strings are absent ones."""
    assert labels_of(pod("p", group="", size="")) == {GROUP_LABEL: "fluence-group-p", SIZE_LABEL: "1"}


@pytest.mark.parametrize(
    ("one", "owner", "reason", "value"),
    [
        (pod("p", group=None, size="abc"), None, EventReason.INVALID_GROUP_SIZE, "abc"),
        (pod("p", group=None), job(size_label="1.5"), EventReason.INVALID_GROUP_SIZE, "1.5"),
        (pod("p", group=None), job(group_label="My_G"), EventReason.INVALID_GROUP_NAME, "My_G"),
    ],
)
def test_mistakes_are_told_and_the_pod_is_not_labelled(
    one: Pod, owner: Owner | None, reason: EventReason, value: str
) -> None:
    """Rule A4: the webhook would have denied it."""
    todo = label_pod(one, owner, RULES)
    assert isinstance(todo, Mistake)
    assert todo.reason is reason
    assert value in todo.note
