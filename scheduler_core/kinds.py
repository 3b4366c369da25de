"""What the matcher knows of a pod: namespace, labels, shape, and the pods that it keeps away.

Owns: the interned value. Does not own: how it is read from a pod (the scheduler's decoder).
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scheduler_core.constraints import Repulsion, Shape

Labels = tuple[tuple[str, str], ...]
_Values = tuple[str, Labels, Shape, tuple[Repulsion, ...]]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PodKind:
    """A kind of pod. Equal pods share one object, so kinds are compared by identity.

    `labels` are sorted by key. `repulsions` are the pod's own required anti-affinity terms.
    """

    namespace: str
    labels: Labels
    shape: Shape
    repulsions: tuple[Repulsion, ...] = ()


#: Every kind that is in use. A kind that nobody uses any more is dropped.
_kinds: Final[weakref.WeakValueDictionary[_Values, PodKind]] = weakref.WeakValueDictionary()


def pod_kind(
    namespace: str,
    labels: Mapping[str, str] | None,
    shape: Shape,
    repulsions: tuple[Repulsion, ...] = (),
) -> PodKind:
    """The one object for these values, as long as somebody uses it."""
    pairs = tuple([_pair(key, labels[key]) for key in sorted(labels)]) if labels else ()
    values = (namespace, pairs, shape, repulsions)
    kind = _kinds.get(values)
    if kind is None:
        kind = _kinds[values] = PodKind(namespace, pairs, shape, repulsions)
    return kind


@functools.lru_cache(maxsize=16_384)
def _pair(key: str, value: str) -> tuple[str, str]:
    """Most labels repeat from pod to pod: each pair is kept once."""
    return key, value
