"""What must hold for every cluster and every gang."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings

from scheduler_core.constraints import (
    NodeConstraints,
    Requirement,
    SelectorTerm,
    Shape,
    Taint,
    Toleration,
)
from scheduler_core.gang import Gang, Member, Placement
from scheduler_core.kinds import pod_kind
from scheduler_core.ledger import Ledger
from scheduler_core.match import match
from scheduler_core.nodes import Node
from scheduler_core.reasons import Refusal
from tests.matching.clusters import most, use

RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
ZONES = ("z1", "z2")
SPOT = Taint("spot", "yes")

amounts = st.fixed_dictionaries({name: st.integers(0, 6) for name in RESOURCES})
nodes = st.builds(
    lambda allocatable, pods, zone, spot, up, name: Node(
        name,
        {**allocatable, "pods": pods},
        labels={"zone": zone} if zone else {},
        taints=(SPOT,) if spot else (),
        **({up: up != "ready"} if up else {}),
    ),
    amounts,
    st.integers(0, 5),
    st.sampled_from((None, *ZONES)),
    st.booleans(),
    st.sampled_from(("", "", "", "", "deleting", "unschedulable", "ready")),
    st.just(""),
)
constraints = st.builds(
    lambda zone, away, spot: NodeConstraints(
        node_selector=(("zone", zone),) if zone else (),
        required=(SelectorTerm((Requirement("zone", "NotIn", (away,)),)),) if away else None,
        tolerations=(Toleration("spot", "Exists"),) if spot else (),
    ),
    st.sampled_from((None, None, *ZONES)),
    st.sampled_from((None, None, *ZONES)),
    st.booleans(),
)
requests = amounts.map(lambda found: tuple(sorted([("pods", 1), *((n, v) for n, v in found.items() if v)])))
shapes = st.builds(Shape, requests, constraints)


@st.composite
def clusters(draw: st.DrawFn) -> Ledger:
    """Up to four nodes, some of them partly used, over-committed or closed."""
    ledger = Ledger(1)
    for index, one in enumerate(draw(st.lists(nodes, max_size=4))):
        name = f"n{index}"
        ledger.upsert_node(
            Node(
                name,
                one.allocatable,
                labels=one.labels,
                taints=one.taints,
                unschedulable=one.unschedulable,
                ready=one.ready,
                deleting=one.deleting,
            )
        )
        for number, used in enumerate(draw(st.lists(requests, max_size=2))):
            use(ledger, f"{name}-{number}", name, used)
    return ledger


@st.composite
def gangs(draw: st.DrawFn, kinds: int = 3) -> Gang:
    """Up to five members of up to three shapes."""
    some = draw(st.lists(shapes, min_size=1, max_size=kinds))
    members = draw(st.lists(st.sampled_from(some), max_size=5))
    needed = draw(st.integers(0, len(members)))
    return Gang("ns/g", [Member(f"m{n}", pod_kind("ns", None, one)) for n, one in enumerate(members)], needed)


def may_use(constraints: NodeConstraints, node: Node) -> bool:
    """The rules once more, for one node, written as they stand in the Kubernetes documentation."""
    if node.deleting or node.unschedulable or not node.ready:
        return False
    if any(node.labels.get(key) != value for key, value in constraints.node_selector):
        return False
    if node.taints and not constraints.tolerations:
        return False
    away = constraints.required[0].expressions[0].values if constraints.required else ()
    return node.labels.get("zone") not in away


def open_to(ledger: Ledger, shape: Shape) -> set[str]:
    return {n for n in ledger.view().table.columns if may_use(shape.constraints, ledger.view().table.get(n))}


def state(ledger: Ledger) -> dict[str, dict[str, int]]:
    """What is free, without resources that only pods have named."""
    view = ledger.view()
    return {name: {r: v for r, v in view.free_on(name).items() if v} for name in sorted(view.table.columns)}


@given(clusters(), gangs())
@settings(max_examples=400, deadline=None)
def test_a_gang_gets_as_many_places_as_exist_and_none_below_its_need(ledger: Ledger, wanted: Gang):
    """C81, C87, C99: compared with trying everything; refused only if nothing would have done."""
    free = {name: ledger.view().free_on(name) for name in ledger.view().table.columns}
    exist = most(free, [(one.kind.shape.requests, open_to(ledger, one.kind.shape)) for one in wanted.members])
    found = match(ledger.view(), wanted)
    if isinstance(found, Placement):
        assert len(found) == exist >= wanted.needed
        assert exist > 0 or not wanted.members
    else:
        assert exist < max(wanted.needed, 1)
        assert found.room <= exist
        assert found.proven


@given(clusters(), gangs())
@settings(max_examples=300, deadline=None)
def test_a_placement_never_overcommits_and_never_uses_a_closed_node(ledger: Ledger, wanted: Gang):
    """Soundness: what is planned is really there, on nodes that every rule allows."""
    found = match(ledger.view(), wanted)
    if not isinstance(found, Placement):
        return
    asked = {one.uid: one.kind.shape for one in wanted.members}
    ledger.assume(found)
    for uid, name in found.nodes.items():
        assert name in open_to(ledger, asked[uid])
        assert found.kinds[uid].shape == asked[uid]
        for resource, _ in asked[uid].requests:
            assert ledger.view().free_on(name)[resource] >= 0


@given(clusters(), gangs())
@settings(max_examples=150, deadline=None)
def test_the_same_question_gets_the_same_answer(ledger: Ledger, wanted: Gang):
    """Ties go by node order, and asking changes nothing."""
    before = state(ledger)
    first, second = match(ledger.view(), wanted), match(ledger.view(), wanted)
    assert first == second
    assert state(ledger) == before
    if isinstance(first, Refusal):
        assert first.message == second.message


@given(clusters(), gangs())
@settings(max_examples=150, deadline=None)
def test_forgetting_an_assumption_restores_the_ledger_exactly(ledger: Ledger, wanted: Gang):
    """C85: what did not come to be holds nothing."""
    before = state(ledger)
    found = match(ledger.view(), wanted)
    if isinstance(found, Placement):
        ledger.assume(found)
        ledger.assume(found)  # told twice, counted once
        for uid in found.nodes:
            assert ledger.forget(uid)
            assert not ledger.forget(uid)
    assert state(ledger) == before
    assert match(ledger.view(), wanted) == found


@given(clusters(), gangs(), st.data())
@settings(max_examples=150, deadline=None)
def test_a_gang_that_fits_still_fits_when_others_go(ledger: Ledger, wanted: Gang, data: st.DataObject):
    """More room never turns a yes into a no, whatever greedy order found it."""
    found = match(ledger.view(), wanted)
    names = sorted(ledger.view().table.columns)
    if not names:
        return
    gone = data.draw(st.sampled_from(names))
    ledger.remove(f"{gone}-0")
    again = match(ledger.view(), wanted)
    if isinstance(found, Placement):
        assert isinstance(again, Placement)
        assert len(again) >= len(found)


@given(clusters(), gangs(kinds=1))
@settings(max_examples=150, deadline=None)
def test_the_room_that_a_refusal_states_is_what_would_fit(ledger: Ledger, wanted: Gang):
    """C116: the number in the message is exact where all members are alike."""
    found = match(ledger.view(), wanted)
    if isinstance(found, Refusal):
        if found.room:
            smaller = Gang(wanted.key, wanted.members[: found.room], found.room)
            assert isinstance(match(ledger.view(), smaller), Placement)
        assert found.room < max(found.needed, 1)
