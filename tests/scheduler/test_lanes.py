"""Calls of several namespaces take turns, and a namespace that hangs leaves room for the others."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from scheduler.lanes import Lanes, Limits

LIMITS = Limits(at_once=4, slow=5, slow_in_namespace=2)
NAMESPACES = ("a", "b", "c")
#: What happens: a call comes, calls are started, the oldest open call of a namespace is slow or ends.
STEP = st.tuples(st.sampled_from(["add", "start", "slow", "answer", "hang"]), st.sampled_from(NAMESPACES))


class World:
    """Lanes and what is open, as a plain list tells it."""

    def __init__(self) -> None:
        self.lanes: Lanes[tuple[str, int]] = Lanes(LIMITS)
        self.added: Counter[str] = Counter()
        self.started: list[tuple[str, int]] = []
        #: (call, is slow), in the order in which they were started.
        self.open: list[tuple[tuple[str, int], bool]] = []

    def step(self, what: str, namespace: str) -> None:
        mine = [one for one in self.open if one[0][0] == namespace]
        if what == "add":
            self.lanes.add(namespace, (namespace, self.added[namespace]))
            self.added[namespace] += 1
        elif what == "start":
            self.start()
        elif what == "slow":
            quick = [one for one in mine if not one[1]]
            if quick and self.lanes.mark_slow(namespace):
                self.open[self.open.index(quick[0])] = (quick[0][0], True)
        elif mine:
            self.open.remove(mine[0])
            self.lanes.end(namespace, was_slow=mine[0][1], was_answered=what == "answer")

    def start(self) -> None:
        while (call := self.lanes.start()) is not None:
            self.started.append(call)
            self.open.append((call, False))


@given(st.lists(STEP, max_size=120))
def test_limits_hold_and_order_within_a_namespace_is_kept(steps: list[tuple[str, str]]) -> None:
    world = World()
    for what, namespace in steps:
        world.step(what, namespace)
        slow = Counter(call[0] for call, is_slow in world.open if is_slow)
        assert sum(not is_slow for _, is_slow in world.open) <= LIMITS.at_once
        assert sum(slow.values()) <= LIMITS.slow
        assert all(count <= LIMITS.slow_in_namespace for count in slow.values())
        assert world.lanes.is_busy == any(not is_slow for _, is_slow in world.open)
    for namespace in NAMESPACES:
        numbers = [number for one, number in world.started if one == namespace]
        assert numbers == list(range(len(numbers)))


@given(st.lists(STEP, max_size=120))
def test_every_call_is_started_once_the_open_ones_are_answered(steps: list[tuple[str, str]]) -> None:
    world = World()
    for what, namespace in steps:
        world.step(what, namespace)
    while world.open:
        world.step("answer", world.open[0][0][0])
        world.start()
    world.start()
    while world.open:
        world.step("answer", world.open[0][0][0])
        world.start()
    assert Counter(namespace for namespace, _ in world.started) == world.added


def test_namespaces_take_turns() -> None:
    lanes: Lanes[str] = Lanes(LIMITS)
    for number in range(3):
        lanes.add("a", f"a{number}")
    lanes.add("b", "b0")
    assert [lanes.start() for _ in range(4)] == ["a0", "b0", "a1", "a2"]


def test_a_call_that_is_repeated_stands_before_the_others_of_its_namespace() -> None:
    lanes: Lanes[str] = Lanes(LIMITS)
    lanes.add("a", "later")
    lanes.add("a", "again", first=True)
    assert lanes.start() == "again"
