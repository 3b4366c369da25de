"""What this package counts; the processes expose it under /metrics."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

LISTS = Counter("fluence_reflector_lists_total", "Lists of a collection", ["collection"])
WATCH_ENDS = Counter(
    "fluence_reflector_watch_failures_total", "Watches that ended before their time", ["collection"]
)
LAST_EVENT = Gauge(
    "fluence_reflector_last_event_timestamp_seconds", "When the last event of a watch came", ["collection"]
)
CACHED_SINCE = Gauge(
    "fluence_reflector_cached_since_timestamp_seconds", "When the collection was last listed", ["collection"]
)
EVENTS_WRITTEN = Counter("fluence_events_written_total", "Events sent to the API server", ["result"])
LEADING = Gauge("fluence_leader", "1 while this process holds the lease", ["lease"])
