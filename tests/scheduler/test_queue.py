"""The queue of gangs: nothing is lost, and a pause is a pause."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from groups.objects import Key
from scheduler.queue import SWEEP_S, GangQueue, Refused, State

KEYS = st.sampled_from([Key(f"ns/{name}") for name in "abcd"])


def refused(version: int = 1, name: str = "a") -> Refused:
    return Refused(version, (0, True, "", name))


class Queue(RuleBasedStateMachine):
    """A queue beside the plainest model of it: what was last asked for each gang, and until when."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.queue = GangQueue(lambda: self.now_s)
        self.model: dict[Key, tuple[State, float]] = {}

    @rule(key=KEYS)
    def change(self, key: Key) -> None:
        self.queue.touch(key)
        if self.model.get(key, (State.ACTIVE, 0.0))[0] is not State.BACKING_OFF:
            self.model[key] = (State.ACTIVE, 0.0)

    @rule(key=KEYS, for_s=st.floats(0.1, 100))
    def park(self, key: Key, for_s: float) -> None:
        self.queue.park(key, refused(name=key), for_s)
        self.model[key] = (State.PARKED, self.now_s + for_s)

    @rule(key=KEYS, for_s=st.floats(0.1, 100))
    def wait(self, key: Key, for_s: float) -> None:
        self.queue.wait(key, for_s)
        self.model[key] = (State.WAITING, self.now_s + for_s)

    @rule(key=KEYS)
    def back_off(self, key: Key) -> None:
        pause_s = self.queue.back_off(key)
        assert 0 < pause_s <= SWEEP_S
        self.model[key] = (State.BACKING_OFF, self.now_s + pause_s)

    @rule(key=KEYS, healthy=st.booleans())
    def leave(self, key: Key, healthy: bool) -> None:
        self.queue.leave(key, healthy=healthy)
        self.model.pop(key, None)

    @rule(seconds=st.floats(0.05, 70))
    def time_passes(self, seconds: float) -> None:
        self.now_s += seconds

    @rule()
    def take(self) -> None:
        due = {
            key for key, (state, due_s) in self.model.items() if state is State.ACTIVE or due_s <= self.now_s
        }
        assert set(self.queue.take()) == due
        for key in due:
            self.model[key] = (State.ACTIVE, 0.0)

    @invariant()
    def each_gang_is_in_exactly_the_state_that_was_asked_for(self) -> None:
        assert len(self.queue) == len(self.model)
        assert {key: self.queue.state(key) for key in self.model} == {
            key: state for key, (state, _) in self.model.items()
        }

    @invariant()
    def the_next_look_is_when_the_first_gang_is_due(self) -> None:
        dues = [0.0 if state is State.ACTIVE else due_s - self.now_s for state, due_s in self.model.values()]
        assert self.queue.next_due_s() == (max(0.0, min(dues)) if dues else None)


Queue.TestCase.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
TestQueue = Queue.TestCase


def test_no_event_shortens_a_pause() -> None:
    now_s = [0.0]
    queue = GangQueue(lambda: now_s[0])
    key = Key("ns/g")
    pauses = []
    for _ in range(8):
        pauses.append(queue.back_off(key))
        queue.touch(key)
        now_s[0] += pauses[-1] - 0.01
        queue.touch(key)
        assert queue.take() == []
        now_s[0] += 0.02
        assert queue.take() == [key]
    assert pauses == sorted(pauses)
    assert pauses[0] < 1 < pauses[-1]


def test_the_pauses_begin_anew_once_all_members_have_their_place() -> None:
    queue = GangQueue(lambda: 0.0)
    key = Key("ns/g")
    first = queue.back_off(key)
    assert queue.back_off(key) > first
    queue.leave(key)
    assert queue.back_off(key) > first
    queue.leave(key, healthy=True)
    assert queue.back_off(key) == first


def test_parked_gangs_are_named_in_order_once_there_is_more_room() -> None:
    queue = GangQueue(lambda: 0.0)
    for name in "cab":
        queue.park(Key(f"ns/{name}"), refused(3, name))
    assert queue.stale(3) == []
    assert [key for key, _ in queue.stale(4)] == ["ns/a", "ns/b", "ns/c"]
    queue.still_refused(Key("ns/a"), refused(4, "a"))
    assert [key for key, _ in queue.stale(4)] == ["ns/b", "ns/c"]
