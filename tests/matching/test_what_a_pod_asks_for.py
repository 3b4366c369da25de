"""The request of a whole pod, from its containers (rules R1 to R8)."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from groups.errors import FluenceError
from scheduler_core.requests import ContainerRequest, capacity, pod_requests

MI = 1 << 20


def container(restartable: bool = False, **texts: str) -> ContainerRequest:
    return ContainerRequest(texts, restartable=restartable)


def milli(amount: int) -> dict[str, str]:
    return {"cpu": f"{amount}m"}


steps = st.lists(st.tuples(st.booleans(), st.integers(0, 4000)), max_size=5)
mains = st.lists(st.integers(0, 4000), min_size=1, max_size=4)


@given(mains, steps)
@settings(deadline=None)
def test_a_pod_asks_for_the_largest_sum_that_runs_at_one_time(
    mains: list[int], inits: list[tuple[bool, int]]
):
    """R1: played through as the kubelet does it: init steps in order beside the sidecars started so far."""
    running, peak = 0, 0
    for restartable, amount in inits:
        peak = max(peak, running + amount)
        running += amount if restartable else 0
    peak = max(peak, running + sum(mains))
    found = pod_requests(
        [ContainerRequest(milli(one)) for one in mains],
        [ContainerRequest(milli(one), restartable=again) for again, one in inits],
    )
    assert dict(found).get("cpu", 0) == peak


@pytest.mark.parametrize(
    ("containers", "inits", "cpu"),
    [
        pytest.param([container(cpu="100m")], [container(cpu="3")], 3000, id="an init step counts alone"),
        pytest.param([container(cpu="1")], [container(True, cpu="1")], 2000, id="a sidecar runs along"),
        pytest.param(
            [container(cpu="1")], [container(True, cpu="1"), container(cpu="3")], 4000,
            id="an init step runs beside the sidecars before it",
        ),
        pytest.param(
            [container(cpu="1")], [container(cpu="3"), container(True, cpu="1")], 3000,
            id="but not beside those after it",
        ),
        pytest.param([container(cpu="100m")] * 3, [], 300, id="containers add up"),
    ],
)  # fmt: skip
def test_init_containers_and_sidecars(
    containers: list[ContainerRequest], inits: list[ContainerRequest], cpu: int
):
    """R1 and case C90."""
    assert dict(pod_requests(containers, inits))["cpu"] == cpu


def test_overhead_is_added_in_every_case():
    """R3 and case C90 (iv), also on top of pod-level resources."""
    main, overhead = container(cpu="1"), {"cpu": "1500m", "memory": "1Mi"}
    assert dict(pod_requests([main], overhead=overhead)) == {"cpu": 2500, "memory": MI, "pods": 1}
    found = pod_requests([main], overhead=overhead, pod_level=container(cpu="4"))
    assert dict(found)["cpu"] == 5500


def test_pod_level_resources_replace_the_sum_for_their_names_only():
    """R2: also where they are lower; extended resources cannot be given at pod level."""
    main = ContainerRequest({"cpu": "3", "memory": "64Mi", "nvidia.com/gpu": "1"})
    level = ContainerRequest({"cpu": "2", "nvidia.com/gpu": "5"})
    found = pod_requests([main], pod_level=level)
    assert dict(found) == {"cpu": 2000, "memory": 64 * MI, "nvidia.com/gpu": 1, "pods": 1}


def test_a_pod_without_requests_still_takes_a_pod_slot():
    """R7 and case C88 (iii)."""
    assert pod_requests([container()]) == (("pods", 1),)
    assert pod_requests([container(cpu="0", memory="0")]) == (("pods", 1),)


def test_a_resize_counts_the_larger_of_wanted_and_actual_amount():
    """R5: growing counts at once, shrinking only when it has happened."""
    growing = ContainerRequest(milli(4000), actual=milli(1000), allocated=milli(1000))
    shrinking = ContainerRequest(milli(1000), actual=milli(4000), allocated=milli(1000))
    assert dict(pod_requests([growing]))["cpu"] == 4000
    assert dict(pod_requests([shrinking]))["cpu"] == 4000


def test_an_infeasible_resize_counts_the_actual_amount():
    """R5: the kubelet will never do it."""
    stuck = ContainerRequest(milli(64_000), actual=milli(1000), allocated=milli(2000))
    assert dict(pod_requests([stuck], resize_infeasible=True))["cpu"] == 2000
    unseen = ContainerRequest(milli(3000))
    assert dict(pod_requests([unseen], resize_infeasible=True))["cpu"] == 3000


def test_equal_pods_share_one_object():
    """What makes looking at shapes instead of pods cheap."""
    assert pod_requests([container(cpu="1")]) is pod_requests([container(cpu="1000m")])


def test_a_wrong_request_names_resource_and_value():
    """The sentence names the thing and the value."""
    with pytest.raises(FluenceError, match='memory: "64MB" is not a Kubernetes quantity'):
        pod_requests([container(memory="64MB")])


def test_capacity_rounds_down_and_is_never_negative():
    """R6 and R8: a node never promises more than it has."""
    found = capacity({"cpu": "1999u", "memory": "1500m", "pods": "110", "x.io/y": "-1"})
    assert found == {"cpu": 1, "memory": 1, "pods": 110, "x.io/y": 0}
