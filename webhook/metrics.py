"""What the webhook counts.

The children of counters are kept, because a look-up by labels costs more than counting.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Histogram

REVIEWS: Final = Counter(
    "fluence_admission_reviews",
    "Admission reviews, by kind of object (other: no rule for it) and decision",
    ["kind", "decision"],
)
SECONDS: Final = Histogram(
    "fluence_admission_review_seconds",
    "Time to answer one admission review, from its last byte read to the answer",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0),
)
REFUSED: Final = Counter(
    "fluence_admission_requests_refused",
    "HTTP requests that were no readable admission review, by status",
    ["status"],
)

_children: dict[tuple[str, str], Counter] = {}


def count_review(kind: str, decision: str, seconds: float) -> None:
    """Count one answered review; `kind` must be of a bounded set."""
    child = _children.get((kind, decision))
    if child is None:
        child = _children[kind, decision] = REVIEWS.labels(kind, decision)
    child.inc()
    SECONDS.observe(seconds)
