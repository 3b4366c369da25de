"""What the matcher knows of a pod: namespace, labels, shape, and the pods that it keeps away.

Owns: the interned value. Does not own: how it is read from a pod (the scheduler's decoder).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler_core.constraints import Repulsion, Shape

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class PodKind:
    """A kind of pod. Equal pods share one object, so kinds are compared by identity.

    `labels` are sorted by key. `repulsions` are the pod's own required anti-affinity terms.
    """

    namespace: str
    labels: Labels
    shape: Shape
    repulsions: tuple[Repulsion, ...] = ()

    def label(self, key: str) -> str | None:
        """The value of a label, None where it is missing."""
        return next((value for name, value in self.labels if name == key), None)


def pod_kind(
    namespace: str,
    labels: Mapping[str, str] | None,
    shape: Shape,
    repulsions: tuple[Repulsion, ...] = (),
) -> PodKind:
    """The one object for these values."""
    return _interned(namespace, tuple(sorted(labels.items())) if labels else (), shape, repulsions)


@functools.lru_cache(maxsize=16_384)
def _interned(namespace: str, labels: Labels, shape: Shape, repulsions: tuple[Repulsion, ...]) -> PodKind:
    return PodKind(namespace, labels, shape, repulsions)
