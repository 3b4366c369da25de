"""The sentence of a refusal: numbers that people and autoscalers can use (C81, C116, C117, rule F3)."""

from __future__ import annotations

import dataclasses

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from groups.contract import Why
from scheduler_core.constraints import NodeConstraints, Shape, Taint
from scheduler_core.gang import Gang
from scheduler_core.match import match
from scheduler_core.reasons import MAX_BYTES, Lack, Refusal, ShapeReport
from tests.matching.clusters import asks, cluster, gang, node, placed, pod, refused, use


def test_it_says_what_is_needed_what_fits_and_what_is_lacking():
    """C81 and C117: word for word."""
    ledger = cluster(
        node("a", "2"),
        node("b", "2"),
        node("c", taints=[Taint("x", "y")]),
        node("d", taints=[Taint("x", "y")]),
        node("e", unschedulable=True),
    )
    assert refused(ledger, gang(*[pod()] * 5)).message == (
        "0/5 nodes are available: the gang needs 5 members placed together, room for 4 now; "
        "each asks cpu 1, memory 64Mi; "
        "lacking cpu: 5 x 1 needed, room for 4 (4 free on 2 nodes); "
        "2 nodes have untolerated taint {x: y}; 1 node is cordoned"
    )


def test_it_names_extended_resources_with_their_numbers():
    """C117: "needs 8 x 4 nvidia.com/gpu, room for 5", 22 free, one node with too little."""
    ledger = cluster(*[node(f"n{i}", extended={"nvidia.com/gpu": "4"}) for i in range(6)])
    use(ledger, "there", "n0", asks(**{"nvidia.com/gpu": "2"}))
    no = refused(ledger, gang(*[Shape(asks(**{"nvidia.com/gpu": "4"}))] * 8))
    assert no.shapes[0].lacks == (Lack("nvidia.com/gpu", asks=4, free=22, room=5, nodes_without=1),)
    assert (
        "lacking nvidia.com/gpu: 8 x 4 needed, room for 5 "
        "(22 free on 6 nodes, 1 of them with too little for one member)"
    ) in no.message


def test_a_single_pod_is_in_the_singular():
    """C116: grammar counts."""
    message = refused(cluster(node("a", "1")), gang(pod("2"))).message
    assert message.startswith(
        "0/1 nodes are available: the gang needs 1 member placed together, room for 0 now"
    )


def test_no_resource_is_called_lacking_if_only_several_together_are_short():
    """Four CPUs and 8Gi, but never on one node."""
    ledger = cluster(node("a", "4", "1Gi"), node("b", "1", "8Gi"))
    no = refused(ledger, gang(Shape(asks(cpu="4", memory="8Gi"))))
    assert no.room == 0
    assert no.shapes[0].lacks == ()
    assert "too little cpu and memory on the same nodes: room for 0 of 1 needed" in no.message


def test_where_no_node_may_be_used_the_reason_is_a_word_of_its_own():
    """C107: more room would not help, another selector would."""
    nowhere = NodeConstraints(node_selector=(("zone", "z9"),))
    no = refused(cluster(node("a"), node("b")), gang(pod(constraints=nowhere)))
    assert no.why is Why.NO_NODE_MATCHES
    assert no.message.endswith("2 nodes do not match the node selector or affinity")
    assert refused(cluster(node("a", "0")), gang(pod())).why is Why.NOT_ENOUGH_ROOM
    assert refused(cluster(), gang(pod())).why is Why.NO_NODE_MATCHES


def test_a_rule_that_is_not_supported_is_refused_by_its_name():
    """It is never ignored silently."""
    strange = dataclasses.replace(pod(), unsupported=("required pod anti-affinity", "host ports 80"))
    no = refused(cluster(node("a")), gang(pod(), strange))
    assert no.why is Why.UNSUPPORTED_RULE
    assert (
        "1 member carries rules that Fluence does not support yet: required pod anti-affinity, host ports 80"
    ) in no.message


def test_members_that_carry_no_such_rule_go_where_they_are_enough():
    """A5: the quorum counts; the others are refused by name as soon as they are alone."""
    strange = dataclasses.replace(pod(), unsupported=("host ports 80",))
    wanted = gang(strange, pod(), pod(), needed=2)
    found = placed(cluster(node("a")), wanted)
    assert sorted(found.nodes) == ["default/g-1", "default/g-2"]
    late = refused(cluster(node("a")), gang(strange, needed=0))
    assert late.why is Why.UNSUPPORTED_RULE
    assert "the gang has its quorum, 1 member waits, none is placed" in late.message


def test_a_mixed_gang_says_how_many_of_each_kind_fit():
    """C87: the variant's numbers."""
    no = refused(cluster(node("a", "6"), node("b", "2")), gang(pod("1"), pod("4"), pod("4")))
    assert "needs 3 members placed together, room for 2 now" in no.message
    assert "1 member asks cpu 1, memory 64Mi: room for 1 of them alone" in no.message
    assert (
        "2 members ask cpu 4, memory 64Mi: room for 1 of them alone, lacking cpu (8 free on 2 nodes)"
    ) in no.message


def test_a_gang_with_members_missing_is_not_a_matter_of_room():
    """C98: the scheduler does not ask then; asked all the same, the answer says so."""
    no = refused(cluster(node("a")), gang(pod(), pod(), pod(), needed=5))
    assert no.why is Why.WAITING_FOR_MEMBERS
    assert "needs 5 members placed together, 3 wait" in no.message


def test_a_group_without_waiting_members_gets_an_empty_placement():
    """Nothing to do is not a refusal."""
    assert len(placed(cluster(), Gang("default/g", [], 0))) == 0


def test_the_text_stays_the_same_while_nothing_changes():
    """C117: an event that repeats must be recognised as the same."""
    ledger = cluster(node("b", "2"), node("a", "2"), node("c", taints=[Taint("x")]))
    wanted = gang(*[pod()] * 5)
    assert refused(ledger, wanted).message == refused(ledger, wanted).message
    ledger.upsert_node(node("b", "2"))
    other = match(cluster(node("c", taints=[Taint("x")]), node("a", "2"), node("b", "2")).view(), wanted)
    assert isinstance(other, Refusal)
    assert refused(ledger, wanted).message == other.message


reports = st.builds(
    ShapeReport,
    members=st.integers(1, 9),
    requests=st.lists(st.tuples(st.text(min_size=1, max_size=300), st.integers(1, 2**40))).map(tuple),
    eligible_nodes=st.integers(0, 9),
    room=st.integers(0, 9),
    lacks=st.just(()),
    excluded=st.lists(st.tuples(st.text(max_size=400), st.integers(1, 9)), max_size=9).map(tuple),
    unsupported=st.lists(st.text(min_size=1, max_size=400), max_size=5).map(tuple),
)


@given(st.lists(reports, max_size=9).map(tuple), st.sampled_from(list(Why)))
@settings(deadline=None)
def test_a_message_is_never_longer_than_an_event_may_be(shapes: tuple[ShapeReport, ...], why: Why):
    """E1: a longer note is a 422; what is cut is marked."""
    message = Refusal("ns/g", why, 5, 9, 3, 7, shapes).message
    assert message.startswith("0/7 nodes are available: ")
    assert len(message.encode()) <= MAX_BYTES


@pytest.mark.parametrize("kinds", [1, 6, 40])
def test_the_beginning_of_the_message_is_kept_with_many_kinds_of_members(kinds: int):
    """C117: needed and room come first."""
    ledger = cluster(node("a", "0"))
    shapes = [pod(f"{number + 1}m") for number in range(kinds)]
    message = refused(ledger, gang(*shapes)).message
    assert f"needs {kinds} member" in message[:80]
    assert len(message.encode()) <= MAX_BYTES


def test_a_resource_that_is_not_short_is_not_called_lacking():
    """N19: GPUs are enough, cores are enough in all, but where the GPUs are only two members fit."""
    ledger = cluster(node("g", "4", "64Gi", extended={"nvidia.com/gpu": "4"}), node("c", "8", "64Gi"))
    wanted = gang(*[Shape(asks(cpu="2", memory="1Gi", **{"nvidia.com/gpu": "1"}))] * 4)
    no = refused(ledger, wanted)
    assert (no.needed, no.room) == (4, 2)
    assert "lacking" not in no.message
    assert "too little cpu and nvidia.com/gpu on the same nodes: room for 2 of 4 needed" in no.message
    ledger.upsert_node(node("g", "8", "64Gi", extended={"nvidia.com/gpu": "4"}))
    assert len(placed(ledger, wanted)) == 4
    ledger.upsert_node(node("g", "4", "64Gi", extended={"nvidia.com/gpu": "8"}))
    assert refused(ledger, wanted).room == 2


AMOUNTS = st.integers(0, 4).map(str)


@given(
    st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS), min_size=1, max_size=4),
    st.tuples(AMOUNTS, AMOUNTS, AMOUNTS),
    st.integers(1, 6),
)
@settings(max_examples=300, deadline=None)
def test_each_resource_that_is_called_lacking_is_short_by_itself(
    sizes: list[tuple[str, str, str]], ask: tuple[str, str, str], size: int
):
    """N19, for any cluster: more of what is named would be needed in any case."""
    names = ("cpu", "memory", "x.io/fpga")
    nodes = [
        node(f"n{i}", cpu, memory, extended={"x.io/fpga": fpga})
        for i, (cpu, memory, fpga) in enumerate(sizes)
    ]
    shape = Shape(asks(**dict(zip(names, ask, strict=True))))
    answer = match(cluster(*nodes).view(), gang(*[shape] * size))
    if isinstance(answer, Refusal):
        requests = dict(shape.requests)
        for lack in answer.shapes[0].lacks:
            room = sum(one.allocatable.get(lack.resource, 0) // requests[lack.resource] for one in nodes)
            assert room == lack.room < size
        assert bool(answer.shapes[0].lacks) != bool(answer.shapes[0].together)
        assert len(answer.message.encode()) <= 1024
