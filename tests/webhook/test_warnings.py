"""What is legal and will surprise is said at admission (rules W12 and I15)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.manifests import POD, custom, mpijob
from tests.webhook.reviews import PG, SZ, Object, decided, objects, pod, workload


def sized(size: int | str) -> Object:
    return {"labels": {SZ: str(size)}}


@given(objects())
def test_warnings_are_short_and_plain(obj: dict[str, Any]) -> None:
    """Rule W12."""
    for warning in decided(obj).warnings:
        assert 0 < len(warning) <= 120
        assert warning.isprintable()


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 12))
def test_a_size_that_a_job_never_reaches_is_warned_about(
    parallelism: int, completions: int, size: int
) -> None:
    """Rule I15: also more than its completions, for no more pods run at once."""
    job = workload("Job", "j", metadata=sized(size), parallelism=parallelism, completions=completions)
    warned = [one for one in decided(job).warnings if "for ever" in one]
    assert bool(warned) == (size > min(parallelism, completions))


def test_pods_of_other_objects_may_come_into_a_group_that_the_user_named() -> None:
    job = workload("Job", "j", metadata={"labels": {SZ: "9", PG: "shared"}}, parallelism=2)
    assert decided(job).warnings == ()
    assert decided(pod({"name": "p", "labels": {PG: "trio", SZ: "3"}})).warnings == ()


@pytest.mark.parametrize(
    ("obj", "says"),
    [
        pytest.param(
            workload("StatefulSet", "db", metadata=sized(3), replicas=3), "OrderedReady", id="ordered"
        ),
        pytest.param(workload("Deployment", "web", replicas=2), "Recreate", id="rolling-update"),
        pytest.param(
            workload("Deployment", "web", metadata=sized(2), replicas=3, strategy={"type": "RollingUpdate"}),
            "Recreate",
            id="rolling-update-of-a-users-size",
        ),
        pytest.param(
            {**mpijob("pi", Launcher=1, Worker=2), "metadata": {"name": "pi", **sized(4)}}, "(3)", id="mpi"
        ),
    ],
)
def test_a_gang_that_will_surprise_is_warned_about(obj: Object, says: str) -> None:
    (warning,) = decided(obj).warnings
    assert says in warning


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(workload("StatefulSet", "db", replicas=3), id="ordered-of-one"),
        pytest.param(
            workload("StatefulSet", "db", metadata=sized(3), replicas=3, podManagementPolicy="Parallel"),
            id="parallel",
        ),
        pytest.param(workload("Deployment", "web", replicas=1), id="deployment-of-one"),
        pytest.param(
            workload("Deployment", "web", metadata=sized(1), replicas=3), id="deployment-of-singles"
        ),
        pytest.param(workload("Deployment", "web", replicas=2, strategy={"type": "Recreate"}), id="recreate"),
        pytest.param(
            workload("Deployment", "web", metadata=sized(3), replicas=0, strategy={"type": "Recreate"}),
            id="scaled-down",
        ),
        pytest.param(workload("Job", "j", metadata=sized(2), parallelism=4), id="smaller-than-the-job"),
        pytest.param(
            custom(
                "ray.io/v1",
                "RayCluster",
                "rc",
                {
                    "enableInTreeAutoscaling": True,
                    "headGroupSpec": {"template": dict(POD)},
                    "workerGroupSpecs": [{"minReplicas": 1, "maxReplicas": 4, "template": dict(POD)}],
                },
                **sized(4),
            ),
            id="autoscaler-may-reach-it",
        ),
    ],
)
def test_what_does_no_harm_is_not_remarked_upon(obj: Object) -> None:
    assert decided(obj).warnings == ()
