"""What the controller counts."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

POD_GROUPS = Gauge("fluence_podgroups", "PodGroups in the cluster, by phase", ["phase"])
RECONCILES = Counter(
    "fluence_controller_reconciles_total", "Groups and pods looked at, by result", ["kind", "result"]
)
WRITES = Counter("fluence_controller_writes_total", "Writes to the API server", ["what", "result"])
