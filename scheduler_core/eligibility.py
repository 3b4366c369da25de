"""Which nodes a pod may use, apart from room: selectors, node affinity, taints, cordons, deletion.

Owns: rules NA1 to NA5 and T1 to T7 for all nodes at once, and how many nodes each of them excludes. Does not
own: room (`packing`), or what one requirement or toleration means (`constraints`).

Every rule is evaluated once for each distinct label value or taint set, and the result is mapped to the nodes
by one array lookup. An answer is kept until labels, taints or readiness of a node change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler_core.constraints import (
    NodeConstraints,
    Requirement,
    SelectorTerm,
    Taint,
    Toleration,
)
from scheduler_core.nodes import CORDONED, NETWORK_UNAVAILABLE, NO_ID, NOT_READY, Mask, NodeTable

#: How many masks are kept. The gangs of a cluster share a few constraints; a mask has one byte for each node.
_KEPT: Final = 256

# Why a node is excluded, in the singular; `reasons` makes the plural.
DELETING: Final = "is being deleted"
MISMATCH: Final = "does not match the node selector or affinity"
_SPOKEN: Final = {
    CORDONED.key: "is cordoned",
    NOT_READY.key: "is not ready",
    "node.kubernetes.io/unreachable": "is not ready",
    NETWORK_UNAVAILABLE.key: "has no network",
}


@dataclass(frozen=True, slots=True, eq=False)
class Eligibility:
    """The nodes that may be used (a boolean for each column), and how many are excluded for which reason."""

    mask: Mask
    count: int
    excluded: tuple[tuple[str, int], ...]

    def without(self, closed: Mask, reason: str) -> Eligibility:
        """The same without the nodes that a rule closes; `reason` is in the singular ("is cordoned")."""
        lost = int(np.count_nonzero(self.mask & closed))
        if lost == 0:
            return self
        mask = self.mask & ~closed
        return Eligibility(mask, self.count - lost, _ordered([*self.excluded, (reason, lost)]))


class EligibilityCache:
    """Answers for recent constraints, valid for the last table that was passed."""

    def __init__(self) -> None:
        self._version = -1
        self._known: dict[NodeConstraints, Eligibility] = {}

    def of(self, table: NodeTable, constraints: NodeConstraints) -> Eligibility:
        """Which nodes of `table` a pod with these constraints may use."""
        if self._version != table.version:
            self._known.clear()
            self._version = table.version
        known = self._known.get(constraints)
        if known is None:
            if len(self._known) >= _KEPT:
                del self._known[next(iter(self._known))]
            known = self._known[constraints] = evaluate(table, constraints)
        return known


def evaluate(table: NodeTable, constraints: NodeConstraints) -> Eligibility:
    """Which nodes a pod with these constraints may use. Each excluded node is counted for one reason."""
    width = table.used_width
    there = table.present[:width]
    deleting = table.deleting[:width]
    open_nodes = there & ~deleting
    excluded: list[tuple[str, int]] = [(DELETING, int(np.count_nonzero(deleting)))]
    for name, pods in table.unreadable.items():
        column = table.columns.get(name)
        if column is not None and open_nodes[column]:
            open_nodes[column] = False
            excluded.append((f"has pod {min(pods.values())}, whose requests cannot be read", 1))
    tolerated, reasons = _tolerated(table, constraints.tolerations, open_nodes)
    excluded += reasons
    mask = open_nodes & tolerated
    before = int(np.count_nonzero(mask))
    for key, value in constraints.node_selector:
        mask &= _meets(table, Requirement(key, "In", (value,)))
    if constraints.required is not None:
        mask &= _any_term(table, constraints.required)
    count = int(np.count_nonzero(mask))
    excluded.append((MISMATCH, before - count))
    return Eligibility(mask, count, _ordered(excluded))


def domains_of(table: NodeTable, topology_key: str, nodes: Iterable[str]) -> Mask:
    """All nodes of the topology domains of `nodes`. A node without the label is in no domain (rule IA3)."""
    width = table.used_width
    label = table.labels.get(topology_key)
    if label is None:
        return np.zeros(width, dtype=np.bool_)
    columns = [column for name in nodes if (column := table.columns.get(name)) is not None]
    inside = np.zeros(len(label.interner.values) + 1, dtype=np.bool_)
    inside[label.ids[columns]] = True
    inside[NO_ID] = False
    return inside[label.ids[:width]]


def _tolerated(
    table: NodeTable, tolerations: tuple[Toleration, ...], among: Mask
) -> tuple[Mask, list[tuple[str, int]]]:
    """Nodes whose blocking taints are all tolerated; and counts by the first taint that is not."""
    ids = table.taint_ids[: table.used_width]
    # One element more than there are sets: NO_ID (-1) looks up the last one, which stays True.
    passes = np.ones(len(table.taint_sets.values) + 1, dtype=np.bool_)
    refusing: dict[int, Taint] = {}
    for number, taints in enumerate(table.taint_sets.values):
        for taint in taints or ():
            if not any(one.tolerates(taint) for one in tolerations):
                passes[number] = False
                refusing[number] = taint
                break
    if not refusing:
        return np.ones(len(ids), dtype=np.bool_), []
    counts = np.bincount(ids[among], minlength=len(passes))
    return passes[ids], [(_spoken(taint), int(counts[n])) for n, taint in refusing.items()]


def _spoken(taint: Taint) -> str:
    if taint.key in _SPOKEN:
        return _SPOKEN[taint.key]
    return f"has untolerated taint {{{taint.key}{': ' + taint.value if taint.value else ''}}}"


def _any_term(table: NodeTable, terms: tuple[SelectorTerm, ...]) -> Mask:
    """Terms are ORed. No terms, or only empty ones, match nothing (rule NA2)."""
    mask = np.zeros(table.used_width, dtype=np.bool_)
    for term in terms:
        if not term.expressions and not term.fields:
            continue
        fits = np.ones(table.used_width, dtype=np.bool_)
        for requirement in term.expressions:
            fits &= _meets(table, requirement)
        for requirement in term.fields:
            fits &= _is_named(table, requirement)
        mask |= fits
    return mask


def _meets(table: NodeTable, requirement: Requirement) -> Mask:
    """Evaluate each distinct value of the label once, then look up the result for each node."""
    width = table.used_width
    label = table.labels.get(requirement.key)
    if label is None:
        return np.full(width, requirement.admits(None), dtype=np.bool_)
    values = label.interner.values
    answers = np.zeros(len(values) + 1, dtype=np.bool_)
    answers[NO_ID] = requirement.admits(None)
    if requirement.operator == "In":
        # The usual operator. Labels such as the host name have as many values as there are nodes.
        known = [label.interner.ids.get(value) for value in requirement.values]
        answers[[number for number in known if number is not None]] = True
    else:
        answers[:-1] = [value is not None and requirement.admits(value) for value in values]
    return answers[label.ids[:width]]


def _is_named(table: NodeTable, requirement: Requirement) -> Mask:
    """matchFields: only metadata.name, In or NotIn, exactly one value (rule NA4); otherwise no match."""
    parses = requirement.operator in ("In", "NotIn") and len(requirement.values) == 1
    if requirement.key != "metadata.name" or not parses:
        return np.zeros(table.used_width, dtype=np.bool_)
    outside = requirement.operator == "NotIn"
    mask = np.full(table.used_width, outside, dtype=np.bool_)
    column = table.columns.get(requirement.values[0])
    if column is not None:
        mask[column] = not outside
    return mask


def _ordered(excluded: list[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Largest count first, then by text, so that the same state gives the same message."""
    merged: Counter[str] = Counter()
    for reason, nodes in excluded:
        merged[reason] += nodes
    return tuple(sorted(((r, n) for r, n in merged.items() if n), key=lambda one: (-one[1], one[0])))
