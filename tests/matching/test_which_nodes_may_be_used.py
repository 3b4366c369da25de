"""Selectors, node affinity, taints, cordons: whole rules, node by node (rules NA1 to NA5, T1 to T7)."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from scheduler_core.constraints import (
    NodeConstraints,
    Requirement,
    SelectorTerm,
    Taint,
    Toleration,
)
from scheduler_core.eligibility import evaluate
from scheduler_core.ledger import Ledger
from scheduler_core.nodes import Node
from tests.matching.clusters import cluster, eligible, gang, node, placed, pod, refused

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Nonsense")
VALUES = ("", "1", "2", "-3", "+2", "007", "a", "9223372036854775808")

requirements = st.builds(
    Requirement,
    st.sampled_from(("k", "l", "m")),
    st.sampled_from(OPERATORS),
    st.lists(st.sampled_from(VALUES), max_size=2).map(tuple),
)
fields = st.builds(
    Requirement,
    st.sampled_from(("metadata.name", "metadata.name", "spec.x")),
    st.sampled_from(("In", "NotIn", "Exists")),
    st.lists(st.sampled_from(("n0", "n1", "n9")), min_size=1, max_size=2).map(tuple),
)
terms = st.builds(
    SelectorTerm, st.lists(requirements, max_size=2).map(tuple), st.lists(fields, max_size=1).map(tuple)
)
tolerations = st.builds(
    Toleration,
    st.sampled_from(("", "x", "y", "node.kubernetes.io/unschedulable")),
    st.sampled_from(("", "Equal", "Exists", "Gt", "Lt")),
    st.sampled_from(("", "1", "2")),
    st.sampled_from(("", "NoSchedule", "NoExecute", "PreferNoSchedule")),
)
taints = st.builds(
    Taint,
    st.sampled_from(("x", "y")),
    st.sampled_from(("", "1", "2")),
    st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule")),
)
all_constraints = st.builds(
    NodeConstraints,
    st.dictionaries(st.sampled_from(("k", "l")), st.sampled_from(VALUES), max_size=1).map(
        lambda found: tuple(found.items())
    ),
    st.none() | st.lists(terms, max_size=2).map(tuple),
    st.lists(tolerations, max_size=2).map(tuple),
)
node_lists = st.lists(
    st.builds(
        Node,
        st.just(""),
        st.just({}),
        labels=st.dictionaries(st.sampled_from(("k", "l", "m")), st.sampled_from(VALUES)),
        taints=st.lists(taints, max_size=2).map(tuple),
        unschedulable=st.booleans(),
        ready=st.sampled_from((True, True, True, False)),
        network_unavailable=st.sampled_from((False, False, False, True)),
        deleting=st.sampled_from((False, False, False, True)),
    ),
    max_size=5,
)


def named(nodes: list[Node]) -> list[Node]:
    return [
        Node(f"n{i}", {}, n.labels, n.taints, n.unschedulable, n.ready, n.network_unavailable, n.deleting)
        for i, n in enumerate(nodes)
    ]


def integer(text: str) -> int | None:
    try:
        value = int(text) if text == text.strip() and "_" not in text else None
    except ValueError:
        return None
    return value if value is not None and -(2**63) <= value < 2**63 else None


def meets(labels: dict[str, str], one: Requirement) -> bool:
    there, value = one.key in labels, labels.get(one.key, "")
    if one.operator in ("Gt", "Lt"):
        if not there or len(one.values) != 1:
            return False
        here, bound = integer(value), integer(one.values[0])
        if here is None or bound is None:
            return False
        return here > bound if one.operator == "Gt" else here < bound
    return {
        "In": there and value in one.values,
        "NotIn": not there or value not in one.values,
        "Exists": there,
        "DoesNotExist": not there,
    }.get(one.operator, False)


def is_named(node: Node, one: Requirement) -> bool:
    if one.key != "metadata.name" or len(one.values) != 1 or one.operator not in ("In", "NotIn"):
        return False
    return (node.name in one.values) == (one.operator == "In")


def tolerates(one: Toleration, taint: Taint) -> bool:
    if one.effect not in ("", taint.effect):
        return False
    if one.key == "":
        return one.operator == "Exists"
    if one.key != taint.key:
        return False
    return one.operator == "Exists" or (one.operator in ("", "Equal") and one.value == taint.value)


def admits(node: Node, want: NodeConstraints) -> bool:
    """The rules for one node, word for word."""
    blocking = [one for one in node.taints if one.effect in ("NoSchedule", "NoExecute")]
    blocking += [Taint("node.kubernetes.io/unschedulable")] * node.unschedulable
    blocking += [Taint("node.kubernetes.io/not-ready")] * (not node.ready)
    blocking += [Taint("node.kubernetes.io/network-unavailable")] * node.network_unavailable
    return (
        not node.deleting
        and all(any(tolerates(t, taint) for t in want.tolerations) for taint in blocking)
        and all(node.labels.get(key) == value for key, value in want.node_selector)
        and (
            want.required is None
            or any(
                (term.expressions or term.fields)
                and all(meets(dict(node.labels), one) for one in term.expressions)
                and all(is_named(node, one) for one in term.fields)
                for term in want.required
            )
        )
    )


@given(node_lists, all_constraints, st.data())
@settings(max_examples=400, deadline=None)
def test_the_mask_says_of_every_node_what_the_rules_say(
    nodes: list[Node], want: NodeConstraints, data: st.DataObject
):
    """NA1 to NA5, T1 to T7; also after nodes went, came back and changed."""
    ledger = cluster(*named(nodes), width=1)
    rest = named(nodes)
    if rest and data.draw(st.booleans()):
        ledger.remove_node(rest[0].name)
        changed = Node(rest[0].name, {}, labels={"k": "2"})
        rest[0] = changed
        ledger.upsert_node(changed)
    found = eligible(ledger, want)
    admitted = {ledger.view().table.node_at(int(c)).name for c in found.mask.nonzero()[0]}
    assert admitted == {one.name for one in rest if admits(one, want)}
    assert found.count == len(admitted)
    assert found.count + sum(count for _, count in found.excluded) == len(rest)


@given(node_lists, node_lists, all_constraints)
@settings(max_examples=150, deadline=None)
def test_a_changed_table_answers_like_a_fresh_one(
    before: list[Node], after: list[Node], want: NodeConstraints
):
    """Interned values of removed nodes and labels have no effect."""
    ledger = cluster(*named(before), width=1)
    eligible(ledger, want)
    for one in named(after):
        ledger.upsert_node(one)
    for one in named(before)[len(after) :]:
        ledger.remove_node(one.name)
    fresh = evaluate(cluster(*named(after)).view().table, want)
    found = eligible(ledger, want)
    assert (found.count, found.excluded) == (fresh.count, fresh.excluded)
    assert {k for k, v in ledger.view().table.labels.items() if v.interner.ids} == {
        key for one in after for key in one.labels
    }


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerated"),
    [
        (Toleration("x", "Equal", "y"), Taint("x", "y"), True),
        (Toleration("x", "Equal", "z"), Taint("x", "y"), False),
        (Toleration("x", "", "y"), Taint("x", "y"), True),
        (Toleration("x", "Exists"), Taint("x", "y"), True),
        (Toleration("", "Exists"), Taint("x", "y"), True),
        (Toleration("", "Equal", ""), Taint("x", ""), False),
        (Toleration("x", "Exists", "", "NoExecute"), Taint("x", "y", "NoSchedule"), False),
        (Toleration("x", "Exists", "", "NoExecute"), Taint("x", "y", "NoExecute"), True),
        (Toleration("x", "Gt", "1"), Taint("x", "2"), False),
    ],
)
def test_tolerations(toleration: Toleration, taint: Taint, tolerated: bool):
    """T1 to T3."""
    assert toleration.tolerates(taint) is tolerated


def test_a_cordoned_node_takes_those_that_tolerate_the_cordon():
    """T5: from the field, whether or not the taint is there yet."""
    ledger = cluster(node("a", unschedulable=True))
    through = NodeConstraints(
        tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule"),)
    )
    assert "1 node is cordoned" in refused(ledger, gang(pod())).message
    assert placed(ledger, gang(pod(constraints=through))).nodes == {"default/g-0": "a"}


def test_a_node_that_is_being_deleted_takes_no_pod():
    """T7: no toleration helps."""
    ledger = cluster(node("a", deleting=True))
    everything = NodeConstraints(tolerations=(Toleration("", "Exists"),))
    assert "1 node is being deleted" in refused(ledger, gang(pod(constraints=everything))).message
    assert not ledger.is_open("a")
    assert not ledger.is_open("unheard-of")


def test_masks_are_kept_until_something_changes_that_decides_them():
    """A heartbeat or another amount costs nothing; a label does."""
    ledger = Ledger()
    ledger.upsert_node(node("a"))
    first = eligible(ledger, NodeConstraints())
    ledger.upsert_node(node("a", cpu="8"))
    assert eligible(ledger, NodeConstraints()) is first
    ledger.upsert_node(node("a", labels={"zone": "z1"}))
    assert eligible(ledger, NodeConstraints()) is not first
