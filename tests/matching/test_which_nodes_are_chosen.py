"""Of all nodes that would do: as few as possible, the fullest among them, ties by node order."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from scheduler_core.constraints import Shape
from scheduler_core.packing import pack
from tests.matching.clusters import asks, by_node, cluster, gang, node, placed, pod, use


@given(st.lists(st.integers(0, 9), max_size=8), st.data())
@settings(deadline=None)
def test_a_gang_takes_the_fewest_nodes_and_no_more_than_they_hold(slots: list[int], data: st.DataObject):
    """Less traffic between members, and whole nodes left for the next big gang."""
    size = data.draw(st.integers(0, sum(slots)))
    columns, counts = pack(np.array(slots, dtype=np.int64), size)
    assert counts.sum() == size
    assert len(set(columns.tolist())) == len(columns)
    assert all(0 < count <= slots[column] for column, count in zip(columns, counts, strict=True))
    descending = sorted(slots, reverse=True)
    assert len(columns) == 0 or sum(descending[: len(columns) - 1]) < size


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.data())
@settings(deadline=None)
def test_at_most_one_node_is_left_in_pieces(slots: list[int], data: st.DataObject):
    """Every chosen node but one is filled to the brim."""
    size = data.draw(st.integers(0, sum(slots)))
    columns, counts = pack(np.array(slots, dtype=np.int64), size)
    left = [slots[column] - count for column, count in zip(columns, counts, strict=True)]
    assert sum(1 for rest in left if rest) <= 1


@pytest.mark.parametrize(
    ("slots", "size", "chosen"),
    [
        pytest.param([9, 3, 5, 3], 3, {1: 3}, id="the fullest single node, first of equals"),
        pytest.param([8, 8, 6, 5, 5], 10, {3: 5, 4: 5}, id="two that fit exactly"),
        pytest.param([4, 4, 4], 6, {0: 4, 1: 2}, id="ties by order"),
        pytest.param([1, 7, 1, 7], 15, {0: 1, 1: 7, 3: 7}, id="a small one for the rest"),
        pytest.param([70_000, 70_000], 100_000, {0: 70_000, 1: 30_000}, id="more than 16 bits"),
    ],
)
def test_choices(slots: list[int], size: int, chosen: dict[int, int]):
    """A table of what the rule means."""
    columns, counts = pack(np.array(slots, dtype=np.int64), size)
    assert dict(zip(columns.tolist(), counts.tolist(), strict=True)) == chosen


def test_small_gangs_fill_started_nodes_before_they_break_an_empty_one():
    """So that a gang that needs an empty node finds one."""
    ledger = cluster(*[node(f"n{index}", "8") for index in range(4)])
    for number in range(8):
        plan = placed(ledger, gang(pod("2"), pod("2"), key=f"default/g{number}"))
        ledger.assume(plan)
        assert sum(ledger.view().free_on(f"n{i}")["cpu"] == 8000 for i in range(4)) == 3 - number // 2


def test_members_are_served_in_the_order_of_the_gang():
    """C99: who waits is decided by the caller's order, not by chance."""
    ledger = cluster(node("a", "2"))
    found = placed(ledger, gang(*[pod()] * 4, needed=1))
    assert by_node(found) == {"a": 2}
    assert list(found.nodes) == ["default/g-0", "default/g-1"]


@pytest.mark.parametrize("names", [("g", "c"), ("c", "g")])
def test_nodes_with_special_hardware_are_kept_for_those_who_ask(names: tuple[str, ...]):
    """N18: a preference whatever the order of the nodes, not a rule."""
    gpus = {"g": {"nvidia.com/gpu": "4"}, "c": None}
    ledger = cluster(*[node(name, "8", "16Gi", extended=gpus[name]) for name in names])
    plain = [Shape(asks(cpu="1"))] * 4
    first = placed(ledger, gang(*plain, key="default/x"))
    assert by_node(first) == {"c": 4}
    ledger.assume(first)
    with_gpu = Shape(asks(cpu="2", memory="1Gi", **{"nvidia.com/gpu": "1"}))
    second = placed(ledger, gang(*[with_gpu] * 4, key="default/y"))
    assert by_node(second) == {"g": 4}
    assert by_node(placed(ledger, gang(*[Shape(asks(cpu="1"))] * 8, key="default/z"))) == {"c": 4, "g": 4}


def test_a_request_of_zero_does_not_ask_for_special_hardware():
    """N18: the shape of such a pod does not name the resource at all."""
    assert asks(cpu="1", **{"nvidia.com/gpu": "0"}) == asks(cpu="1")


@pytest.mark.parametrize("size", [1, 2, 8])
def test_of_nodes_that_hold_the_whole_gang_the_fullest_is_taken(size: int):
    """A node in use comes before an empty one, whatever the order: what is left is compared."""
    ledger = cluster(node("empty", "16"), node("started", "16"), node("last", "16"))
    use(ledger, "there", "started", asks(cpu="4"))
    assert by_node(placed(ledger, gang(*[pod("1")] * size))) == {"started": size}
