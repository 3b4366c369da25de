"""What the webhook of a cluster was asked, read from its log."""

from __future__ import annotations

import json
from typing import Any

from devcluster.cluster import RunningCluster


def reviews(cluster: RunningCluster, namespace: str) -> list[dict[str, Any]]:
    """The reviews for objects of one namespace, as they came."""
    lines = map(json.loads, cluster.process("webhook").log.read_text().splitlines())
    return [line for line in lines if line.get("event") == "review" and line["namespace"] == namespace]


def asked(cluster: RunningCluster, namespace: str) -> list[tuple[str, str]]:
    """The kind and the decision of each review."""
    return [(one["kind"], one["decision"]) for one in reviews(cluster, namespace)]
