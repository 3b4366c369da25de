"""The index of anti-affinity terms finds exactly the terms that select a pod, and a copy is independent."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings

from scheduler_core.constraints import Repulsion, Requirement, Shape
from scheduler_core.kinds import PodKind, pod_kind
from scheduler_core.terms import Terms
from tests.matching.clusters import asks

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from("xyz")
NAMESPACES = ("one", "two")
REQUIREMENTS = st.builds(
    lambda key, operator, values: Requirement(key, operator, tuple(values) if "In" in operator else ()),
    KEYS,
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
    st.lists(VALUES, max_size=2),
)
TERMS = st.builds(
    Repulsion,
    st.just("zone"),
    st.sampled_from((None, frozenset({"one"}), frozenset(NAMESPACES))),
    st.one_of(st.none(), st.lists(REQUIREMENTS, max_size=2).map(tuple)),
)
KINDS = st.builds(
    lambda namespace, labels: pod_kind(namespace, labels, Shape(asks())),
    st.sampled_from(NAMESPACES),
    st.dictionaries(KEYS, VALUES),
)
Entry = tuple[Repulsion, str]


@given(st.lists(st.tuples(TERMS, st.sampled_from("nm")), max_size=8), st.data())
@settings(max_examples=300, deadline=None)
def test_the_index_finds_what_a_look_at_every_term_finds(entries: list[Entry], data: st.DataObject):
    """Terms come and go, and a copy is taken at any time: each object answers for what is in it."""
    terms, present = Terms(), list[Entry]()
    copies: list[tuple[Terms, list[Entry]]] = []
    for entry in entries:
        terms.add(*entry)
        present.append(entry)
        if data.draw(st.booleans()):
            copies.append((terms, list(present)))
            terms = terms.copy()
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(present))
            terms.remove(*gone)
            present.remove(gone)
    kind = data.draw(KINDS)
    for some, held in [*copies, (terms, present)]:
        assert some.selecting(kind) == {
            term for term, _ in held if term.sees(kind.namespace) and term.selects(dict(kind.labels))
        }
        assert bool(some) is bool(held)
        for term, _ in held:
            assert set(some.nodes_of(term)) == {node for other, node in held if other == term}


@given(st.lists(TERMS, max_size=6), KINDS, KINDS)
@settings(max_examples=200, deadline=None)
def test_pods_that_agree_in_the_labels_that_terms_read_are_selected_by_the_same_terms(
    some: list[Repulsion], kind: PodKind, other: PodKind
):
    terms = Terms()
    for term in some:
        terms.add(term, "n")
    if kind.namespace == other.namespace and terms.labels_read(kind) == terms.labels_read(other):
        assert terms.selecting(kind) == terms.selecting(other)


def test_a_term_is_found_by_the_label_that_the_fewest_terms_require():
    """Charts give every pod the name of the application: 100 releases of it must not share one bucket."""
    terms = Terms()
    app = Requirement("app", "In", ("db",))
    for number in range(100):
        selector = (app, Requirement("release", "In", (f"r{number}",)))
        terms.add(Repulsion("host", frozenset({"ns"}), selector), "n")
    assert max(len(bucket) for bucket in terms._buckets.values()) == 1
