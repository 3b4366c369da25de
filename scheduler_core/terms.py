"""The required anti-affinity terms of placed pods, indexed by the pods that they can select (rule IA4).

Owns: which terms there are, on which nodes their pods are, and an index by namespace and label. Does not own:
which nodes a term closes (`View.closed_by`).

A match reads only the terms that can select its members. A term whose selector requires one value of a label
is found by that label. If it requires several labels, it is found by the one that the fewest terms share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from scheduler_core.constraints import Repulsion
from scheduler_core.kinds import Labels, PodKind

#: Namespace (None: all of them), label key, value. Key and value are empty for terms without such a label.
_Bucket = tuple[str | None, str, str]
_KEPT: Final = 4096
_NO_TERMS: Final[frozenset[Repulsion]] = frozenset()


class Terms:
    """The terms of placed pods. A copy is cheap: what both share is copied on its first change."""

    def __init__(self) -> None:
        self._nodes: dict[Repulsion, dict[str, int]] = {}
        self._buckets: dict[_Bucket, dict[Repulsion, None]] = {}
        #: The buckets in which a term is found.
        self._homes: dict[Repulsion, tuple[_Bucket, ...]] = {}
        #: How many terms read each label key. Other labels of a pod do not matter.
        self._keys: dict[str, int] = {}
        #: Inner dictionaries that no copy shares, by identity.
        self._own: dict[int, object] = {}
        #: Answers of `selecting`, by namespace and by the labels that terms read.
        self._answers: dict[tuple[str, Labels], frozenset[Repulsion]] = {}

    def copy(self) -> Terms:
        """A copy that changes apart from this one."""
        other = Terms()
        other._nodes = dict(self._nodes)
        other._buckets = dict(self._buckets)
        other._homes = dict(self._homes)
        other._keys = dict(self._keys)
        self._own = {}
        return other

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def add(self, term: Repulsion, node: str, times: int = 1) -> None:
        """Add pods with this term on `node`."""
        nodes = self._nodes.get(term)
        if nodes is None:
            self._index(term)
            nodes = self._nodes[term] = {}
            self._own[id(nodes)] = nodes
        elif id(nodes) not in self._own:
            nodes = self._nodes[term] = dict(nodes)
            self._own[id(nodes)] = nodes
        nodes[node] = nodes.get(node, 0) + times

    def remove(self, term: Repulsion, node: str) -> None:
        """Remove a pod with this term on `node`."""
        nodes = self._nodes[term]
        if id(nodes) not in self._own:
            nodes = self._nodes[term] = dict(nodes)
            self._own[id(nodes)] = nodes
        nodes[node] -= 1
        if not nodes[node]:
            del nodes[node]
        if not nodes:
            del self._nodes[term], self._own[id(nodes)]
            self._unindex(term)

    def labels_read(self, kind: PodKind) -> Labels:
        """The labels of a kind that decide which terms select it."""
        keys = self._keys
        return tuple([pair for pair in kind.labels if pair[0] in keys]) if keys else ()

    def selecting(self, kind: PodKind) -> frozenset[Repulsion]:
        """The terms that keep pods of this kind away."""
        if not self._nodes:
            return _NO_TERMS
        question = (kind.namespace, self.labels_read(kind))
        answer = self._answers.get(question)
        if answer is None:
            if len(self._answers) >= _KEPT:
                self._answers.clear()
            labels = dict(question[1])
            answer = frozenset(
                term for term in self._candidates(kind.namespace, labels) if term.selects(labels)
            )
            self._answers[question] = answer
        return answer

    def nodes_of(self, term: Repulsion) -> Iterable[str]:
        """The nodes that have pods with this term."""
        return self._nodes.get(term, {})

    def _candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterable[Repulsion]:
        for place in (namespace, None):
            yield from self._buckets.get((place, "", ""), ())
            for key, value in labels.items():
                yield from self._buckets.get((place, key, value), ())

    def _index(self, term: Repulsion) -> None:
        self._answers.clear()
        homes = self._homes[term] = self._best_buckets(term)
        for bucket in homes:
            terms = self._buckets.get(bucket)
            if terms is None or id(terms) not in self._own:
                terms = self._buckets[bucket] = dict(terms or {})
                self._own[id(terms)] = terms
            terms[term] = None
        for key in _keys_of(term):
            self._keys[key] = self._keys.get(key, 0) + 1

    def _unindex(self, term: Repulsion) -> None:
        self._answers.clear()
        for bucket in self._homes.pop(term):
            terms = self._buckets[bucket]
            if id(terms) not in self._own:
                terms = self._buckets[bucket] = dict(terms)
                self._own[id(terms)] = terms
            del terms[term]
            if not terms:
                del self._buckets[bucket], self._own[id(terms)]
        for key in _keys_of(term):
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]

    def _best_buckets(self, term: Repulsion) -> tuple[_Bucket, ...]:
        if term.selector is None:
            return ()  # it selects nothing (rule IA5)
        namespaces: Iterable[str | None] = (None,) if term.namespaces is None else sorted(term.namespaces)
        choices = [
            tuple(
                (namespace, wanted.key, value)
                for namespace in namespaces
                for value in dict.fromkeys(wanted.values)
            )
            for wanted in term.selector
            if wanted.operator == "In" and wanted.values
        ]
        if not choices:
            return tuple((namespace, "", "") for namespace in namespaces)
        return min(choices, key=self._crowd)

    def _crowd(self, buckets: tuple[_Bucket, ...]) -> tuple[int, int]:
        return max(len(self._buckets.get(one, ())) for one in buckets), len(buckets)


def _keys_of(term: Repulsion) -> frozenset[str]:
    return frozenset(wanted.key for wanted in term.selector or ())
