"""What the scheduler counts."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

ATTEMPTS = Counter("fluence_gang_attempts_total", "Attempts to place a gang, by outcome", ["why"])
WAITING = Gauge("fluence_gangs_waiting", "Gangs that wait, by reason", ["why"])
MATCH_SECONDS = Histogram(
    "fluence_match_seconds",
    "Time to match one gang",
    buckets=(0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
)
BINDS = Counter("fluence_binds_total", "Binding calls, by result", ["result"])
BIND_SECONDS = Histogram(
    "fluence_bind_seconds", "Time of one binding", buckets=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
)
GANG_SECONDS = Histogram(
    "fluence_gang_bind_seconds",
    "Time from the decision to the last binding of a gang",
    buckets=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
)
STATUS_WRITES = Counter(
    "fluence_status_writes_total", "Conditions written, by object and result", ["kind", "result"]
)
STRANDED = Gauge("fluence_stranded_groups", "Groups with members on nodes, but too few")
