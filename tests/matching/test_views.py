"""A view is an immutable snapshot; a changed cluster is another view."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from scheduler_core.constraints import Repulsion, Requirement, Shape
from scheduler_core.gang import Placement
from scheduler_core.kinds import PodKind, pod_kind
from scheduler_core.ledger import Ledger
from scheduler_core.match import match, signature
from scheduler_core.nodes import Node
from scheduler_core.placed import Placed, State
from scheduler_core.view import View
from tests.matching.clusters import asks, cluster, gang, node, placed, pod

NODES = st.sampled_from(("a", "b", "c", "d"))
UIDS = st.sampled_from(tuple("123456"))
KEEP_AWAY = Repulsion("kubernetes.io/hostname", None, (Requirement("app", "In", ("web",)),))
KINDS = st.sampled_from(
    (
        pod_kind("default", None, Shape(asks(cpu="1"))),
        pod_kind("default", {"app": "web"}, Shape(asks(cpu="2", memory="1Gi"))),
        pod_kind("other", {"app": "db"}, Shape(asks(**{"x.io/fpga": "1"})), (KEEP_AWAY,)),
    )
)
Change = Callable[[Ledger], None]


def named(name: str, cpu: str = "4") -> Node:
    return node(name, cpu, labels={"kubernetes.io/hostname": name}, extended={"x.io/fpga": "2"})


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """One change of a ledger."""
    name, uid, kind = draw(NODES), draw(UIDS), draw(KINDS)
    state = draw(st.sampled_from((State.SEEN, State.ASSUMED)))
    every: tuple[Change, ...] = (
        lambda ledger: ledger.upsert_node(named(name, draw(st.sampled_from(("1", "8"))))),
        lambda ledger: ledger.remove_node(name),
        lambda ledger: ledger.put(uid, Placed(kind, name, state=state)),
        lambda ledger: ledger.put_unreadable(uid, name, f"default/{uid}"),
        lambda ledger: ledger.remove(uid),
        lambda ledger: ledger.assume(Placement("default/g", {uid: name}, {uid: kind})),
        lambda ledger: ledger.hold("default/g", Placement("default/g", {"h": name}, {"h": kind})),
        lambda ledger: ledger.release("default/g"),
    )
    return draw(st.sampled_from(every))


def seen(view: View) -> object:
    """Everything that a match can read of a view."""
    return (
        {name: {r: v for r, v in view.free_on(name).items() if v} for name in view.table.columns},
        {uid: view.placed(uid) for uid in "123456h"},
        [str(match(view, gang(*[pod()] * size))) for size in (1, 4)],
        view.node_count,
        {str(term): sorted(view.terms.nodes_of(term)) for term in (KEEP_AWAY,)},
    )


def fitting(view: View) -> object:
    """What free room there is, and what fits, without the names of columns."""
    free = {name: {r: v for r, v in view.free_on(name).items() if v} for name in view.table.columns}
    answers = [len(match(view, gang(*[pod()] * size, needed=0)).nodes or ()) for size in (1, 4, 9)]  # type: ignore[union-attr, arg-type]
    return dict(sorted(free.items())), answers


@given(st.lists(changes(), max_size=12), st.lists(changes(), max_size=12))
@settings(max_examples=150, deadline=None)
def test_a_view_never_changes_whatever_happens_to_the_ledger(before: list[Change], after: list[Change]):
    ledger = cluster(named("a"), named("b"), width=1)
    views: list[tuple[View, object]] = []
    for change in (*before, *after):
        change(ledger)
        view = ledger.view()
        views.append((view, seen(view)))
    assert [seen(view) for view, _ in views] == [was for _, was in views]


@given(st.lists(changes(), max_size=12), st.sets(UIDS))
@settings(max_examples=150, deadline=None)
def test_a_view_without_pods_is_that_of_a_ledger_that_never_had_them(past: list[Change], uids: set[str]):
    ledger = cluster(named("a"), named("b"), width=1)
    for change in past:
        change(ledger)
    without = ledger.view().without(uids)
    was = seen(ledger.view())
    assert all(without.placed(uid) is None for uid in uids)
    free = seen(without)
    assert seen(ledger.view()) == was
    for uid in uids:
        ledger.remove(uid)
    assert free == seen(ledger.view())


@given(st.lists(changes(), max_size=8), st.lists(st.tuples(NODES, st.sampled_from(("1", "8"))), max_size=5))
@settings(max_examples=100, deadline=None)
def test_a_view_with_nodes_is_that_of_a_ledger_that_got_them(past: list[Change], more: list[tuple[str, str]]):
    ledger = cluster(named("a"), width=1)
    for change in past:
        change(ledger)
    nodes = [named(f"new-{name}", cpu) for name, cpu in more]
    view = ledger.view().with_nodes(nodes)
    before = seen(ledger.view())
    got = seen(view)
    assert seen(ledger.view()) == before
    for one in nodes:
        ledger.upsert_node(one)
    assert got == seen(ledger.view())


def test_a_view_is_the_same_object_until_something_changes():
    ledger = cluster(named("a"))
    first = ledger.view()
    assert ledger.view() is first
    ledger.upsert_node(named("a"))
    assert ledger.view() is first
    ledger.put("1", Placed(pod_kind("default", None, pod()), "a"))
    assert ledger.view() is not first


def test_pods_that_end_leave_room_and_decisions_do_not_end():
    """`at` answers what is free once running pods have ended."""
    ledger = cluster(node("a", "2"))
    kind = pod_kind("default", None, pod("1"))
    ledger.put("runs", Placed(kind, "a"))
    ledger.assume(Placement("default/g", {"assumed": "a"}, {"assumed": kind}))
    later = ledger.view().at(["runs", "assumed", "unknown"])
    assert later.free_on("a")["cpu"] == 1000


def test_held_room_is_used_for_all_gangs_but_its_own():
    """A5b: the missing members' room is a reservation."""
    ledger = cluster(node("a", "2"))
    found = placed(ledger, gang(pod("1"), key="default/stranded"))
    ledger.hold(
        "default/stranded",
        Placement("default/stranded", {"held-0": "a"}, {"held-0": found.kinds["default/stranded-0"]}),
    )
    two = gang(pod("1"), pod("1"))
    assert not isinstance(match(ledger.view(), two), Placement)
    assert isinstance(match(ledger.view().without(ledger.held("default/stranded")), two), Placement)
    version = ledger.room_version
    ledger.release("default/stranded")
    assert ledger.room_version > version
    assert isinstance(match(ledger.view(), two), Placement)


def test_holding_the_same_room_again_changes_nothing():
    ledger = cluster(node("a", "2"))
    kind = pod_kind("default", None, pod("1"))
    for _ in range(2):
        ledger.hold("default/g", Placement("default/g", {"held-0": "a"}, {"held-0": kind}))
    assert ledger.room_version == 1  # the node itself
    assert ledger.view().free_on("a")["cpu"] == 1000


def test_a_pod_whose_requests_cannot_be_read_closes_its_node_and_is_named():
    ledger = cluster(node("a", "4"), node("b", "1"))
    ledger.put_unreadable("x", "a", "team/odd")
    answer = match(ledger.view(), gang(pod("2")))
    assert "1 node has pod team/odd, whose requests cannot be read" in answer.message  # type: ignore[union-attr]
    version = ledger.room_version
    ledger.remove("x")
    assert ledger.room_version > version
    assert isinstance(match(ledger.view(), gang(pod("2"))), Placement)


@pytest.mark.parametrize("pressure", ["MemoryPressure", "DiskPressure", "PIDPressure"])
def test_a_node_under_pressure_is_closed_before_its_taint_arrives(pressure: str):
    """T6: the node controller sets the taint a moment after the condition."""
    one = Node("a", {"cpu": 4000, "pods": 10, "memory": 1 << 33}, pressures=(pressure,))
    ledger = cluster(one)
    assert not isinstance(match(ledger.view(), gang(pod())), Placement)
    ledger.upsert_node(Node("a", one.allocatable))
    assert isinstance(match(ledger.view(), gang(pod())), Placement)


def test_a_node_that_is_created_again_under_its_name_is_another_node():
    """T7: a decision for the old one does not hold for the new one."""
    ledger = cluster(Node("a", {"cpu": 4000, "pods": 10, "memory": 1 << 33}, uid="old"))
    found = placed(ledger, gang(pod()))
    assert found.node_uids == {"a": "old"}
    assert ledger.is_open("a", "old")
    ledger.upsert_node(Node("a", {"cpu": 4000, "pods": 10, "memory": 1 << 33}, uid="new"))
    assert not ledger.is_open("a", "old")
    assert ledger.is_open("a", "new")


@given(
    st.lists(KINDS, min_size=1, max_size=4),
    st.lists(st.tuples(UIDS, NODES, KINDS), max_size=6),
    st.integers(0, 4),
)
@settings(max_examples=150, deadline=None)
def test_gangs_of_one_signature_get_one_answer(
    kinds: list[PodKind], past: list[tuple[str, str, PodKind]], needed: int
):
    ledger = cluster(named("a", "2"), named("b", "1"), width=1)
    for uid, name, kind in past:
        ledger.put(uid, Placed(kind, name))
    view = ledger.view()
    first, second = (
        gang(*[one.shape for one in kinds], needed=min(needed, len(kinds)), key=key)
        for key in ("default/x", "default/y")
    )
    assert signature(view, first) == signature(view, second)
    one, two = match(view, first), match(view, second)
    assert type(one) is type(two)
    if isinstance(one, Placement) and isinstance(two, Placement):
        assert list(one.nodes.values()) == list(two.nodes.values())
    else:
        assert one.message == two.message  # type: ignore[union-attr]
