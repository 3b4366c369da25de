"""Of all nodes that would do: as few as possible, the fullest among them, ties by node order."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from scheduler_core.packing import pack
from tests.matching.clusters import by_node, cluster, gang, node, placed, pod


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
        assert sum(ledger.free_on(f"n{i}")["cpu"] == 8000 for i in range(4)) == 3 - number // 2


def test_members_are_served_in_the_order_of_the_gang():
    """C99: who waits is decided by the caller's order, not by chance."""
    ledger = cluster(node("a", "2"))
    found = placed(ledger, gang(*[pod()] * 4, needed=1))
    assert by_node(found) == {"a": 2}
    assert list(found.nodes) == ["default/g-0", "default/g-1"]
