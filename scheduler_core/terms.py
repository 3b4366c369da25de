"""The required anti-affinity terms of placed pods, indexed by the pods that they can select (rule IA4).

Owns: which terms there are, on which nodes their pods are, and an index by namespace and label. Does not own:
which nodes a term closes (`eligibility.closed_by`).

A match reads only the terms that can select its members. A term whose selector requires one value of a label
is found by that label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler_core.constraints import Repulsion
from scheduler_core.kinds import PodKind

#: Namespace (None: all of them), label key, value. Key and value are empty for terms without such a label.
_Bucket = tuple[str | None, str, str]


class Terms:
    """Terms by the pods that they select. Copied on the first change after `share`."""

    def __init__(self) -> None:
        self._nodes: dict[Repulsion, dict[str, int]] = {}
        self._buckets: dict[_Bucket, tuple[Repulsion, ...]] = {}
        #: How many terms are indexed by each label key. Other labels of a pod need not be looked up.
        self._keys: dict[str, int] = {}

    def copy(self) -> Terms:
        """A copy that changes apart from this one."""
        other = Terms()
        other._nodes = dict(self._nodes)
        other._buckets = dict(self._buckets)
        other._keys = dict(self._keys)
        return other

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def add(self, term: Repulsion, node: str) -> None:
        """Add a pod with this term on `node`."""
        nodes = self._nodes.get(term)
        if nodes is None:
            self._index(term)
            nodes = {}
        # A new dict: a copy of this object may share the old one.
        self._nodes[term] = {**nodes, node: nodes.get(node, 0) + 1}

    def remove(self, term: Repulsion, node: str) -> None:
        """Remove a pod with this term on `node`."""
        nodes = dict(self._nodes[term])
        nodes[node] -= 1
        if not nodes[node]:
            del nodes[node]
        if nodes:
            self._nodes[term] = nodes
        else:
            del self._nodes[term]
            self._unindex(term)

    def selecting(self, kind: PodKind) -> frozenset[Repulsion]:
        """The terms that keep pods of this kind away."""
        return frozenset(one for one in self._candidates(kind) if one.selects(dict(kind.labels)))

    def nodes_of(self, term: Repulsion) -> Iterable[str]:
        """The nodes that have pods with this term."""
        return self._nodes.get(term, {})

    def reads(self, key: str) -> bool:
        """Whether some term is found by this label key."""
        return key in self._keys

    @property
    def has_open_terms(self) -> bool:
        """Whether some term is not indexed by a label. Then every label of a pod can matter."""
        return self._keys.get("", 0) > 0

    def _candidates(self, kind: PodKind) -> Iterable[Repulsion]:
        for namespace in (kind.namespace, None):
            yield from self._buckets.get((namespace, "", ""), ())
            for key, value in kind.labels:
                if key in self._keys:
                    yield from self._buckets.get((namespace, key, value), ())

    def _index(self, term: Repulsion) -> None:
        for bucket in _buckets_of(term):
            self._buckets[bucket] = (*self._buckets.get(bucket, ()), term)
            self._keys[bucket[1]] = self._keys.get(bucket[1], 0) + 1

    def _unindex(self, term: Repulsion) -> None:
        for bucket in _buckets_of(term):
            kept = tuple(one for one in self._buckets[bucket] if one != term)
            if kept:
                self._buckets[bucket] = kept
            else:
                del self._buckets[bucket]
            self._keys[bucket[1]] -= 1
            if not self._keys[bucket[1]]:
                del self._keys[bucket[1]]


def _buckets_of(term: Repulsion) -> list[_Bucket]:
    if term.selector is None:
        return []  # it selects nothing (rule IA5)
    namespaces: Iterable[str | None] = (None,) if term.namespaces is None else sorted(term.namespaces)
    for wanted in term.selector:
        if wanted.operator == "In" and wanted.values:
            pairs = [(wanted.key, value) for value in dict.fromkeys(wanted.values)]
            return [(namespace, key, value) for namespace in namespaces for key, value in pairs]
    return [(namespace, "", "") for namespace in namespaces]


def labels_that_matter(terms: Terms, kind: PodKind) -> Mapping[str, str]:
    """The labels of a kind that some term reads."""
    if terms.has_open_terms:
        return dict(kind.labels)
    return {key: value for key, value in kind.labels if terms.reads(key)}
