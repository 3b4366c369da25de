"""What a pod requires of its node, as hashable values, and `Shape`: members of one shape are interchangeable.

Owns: taints and tolerations (T1 to T4), label requirements (NA3), terms (NA2, NA4), shapes. Does not own:
which nodes of a cluster match them (`eligibility`), or how they are read from a pod (`scheduler.decode`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

#: (resource, amount) sorted by resource, without zeros: cpu in milli, memory in bytes, "pods" is 1.
Requests = tuple[tuple[str, int], ...]

BLOCKING_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
#: Sign and digits without leading zeros; an int64 has 19 digits at most.
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
_INT64 = range(-(2**63), 2**63)


def parse_int64(text: str) -> int | None:
    """A base-10 int64 as Go reads it, or None (rule NA3)."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    # Without leading zeros: Python refuses to parse numbers of more than 4,300 digits.
    value = int(found[1] + found[2])
    return value if value in _INT64 else None


@dataclass(frozen=True, slots=True)
class Taint:
    """`spec.taints[]` of a node."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    @property
    def blocks(self) -> bool:
        """Whether it excludes pods; PreferNoSchedule only affects the score (rule T1)."""
        return self.effect in BLOCKING_EFFECTS


@dataclass(frozen=True, slots=True)
class Toleration:
    """`spec.tolerations[]` of a pod; tolerationSeconds never matters for placement (rule T4)."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Rules T2 and T3. Lt and Gt are off in Kubernetes, so they tolerate nothing."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and bool(self.key) and self.value == taint.value


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a selector: In, NotIn, Exists, DoesNotExist, Gt, Lt (rule NA3)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def admits(self, value: str | None) -> bool:
        """Whether a label with this value (None: no such label) meets the requirement."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
            case _:
                return False  # a term that cannot be parsed matches nothing (rule NA5)

    def _compares(self, value: str | None) -> bool:
        if value is None or len(self.values) != 1:
            return False
        here, bound = parse_int64(value), parse_int64(self.values[0])
        if here is None or bound is None:
            return False
        return here > bound if self.operator == "Gt" else here < bound


@dataclass(frozen=True, slots=True)
class SelectorTerm:
    """One nodeSelectorTerm: expressions and fields are ANDed; an empty one matches nothing (NA2)."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeConstraints:
    """Everything that decides whether a node may be used at all, apart from room.

    `required` is None without required node affinity; an empty tuple matches no node (rule NA2).
    """

    node_selector: tuple[tuple[str, str], ...] = ()
    required: tuple[SelectorTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class Shape:
    """What one member requests and requires. Members with equal shapes are interchangeable for the matcher.

    `unsupported` names the hard rules of the pod that Fluence does not honour yet.
    """

    requests: Requests
    constraints: NodeConstraints = NodeConstraints()
    unsupported: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(amount <= 0 for _, amount in self.requests):
            raise ValueError(f"requests are positive, zeros are left out: {self.requests}")


@functools.lru_cache(maxsize=8192)
def shape(requests: Requests, constraints: NodeConstraints, unsupported: tuple[str, ...] = ()) -> Shape:
    """The one Shape object for these values. Equal members share it, which keeps matching fast."""
    return Shape(requests, constraints, unsupported)


@dataclass(frozen=True, slots=True)
class Repulsion:
    """One required anti-affinity term of a placed pod, which also keeps new pods away (rule IA4).

    `namespaces` None means all. `selector` None matches nothing, and () matches everything (rule IA5).
    """

    topology_key: str
    namespaces: frozenset[str] | None
    selector: tuple[Requirement, ...] | None

    def sees(self, namespace: str) -> bool:
        """Whether the term applies to pods of this namespace."""
        return self.namespaces is None or namespace in self.namespaces

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels, in a namespace of the term, is kept away."""
        if self.selector is None:
            return False
        return all(one.admits(labels.get(one.key)) for one in self.selector)
