"""The figures of a run as tables for a terminal of 80 columns; docs/performance.md explains them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table


def show(found: dict[str, Any]) -> None:
    """Print a table of each part that was measured."""
    out = Console()
    for part, table in _TABLES.items():
        if found.get(part):
            out.print(table(found[part]))


def _memory_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table("process", "resident MB", title="Memory, 1,000 nodes and 5,000 pods")
    for row in rows:
        table.add_row(row["process"], f"{row['mb']:.0f}")
    return table


def _waiting_table(found: dict[str, Any]) -> Table:
    table = Table("waiting gangs", "median", "worst", title="Decisions of the scheduler alone")
    table.add_row("prepare a gang of 1,000 for the match", f"{found['prepare_ms']:.2f} ms", "")
    for row in found["ends"]:
        shapes = "one shape" if row["shapes"] == 1 else f"{row['shapes']} shapes"
        table.add_row(
            f"a pod's end, {row['parked']} parked gangs, {shapes}",
            f"{row['decided_ms']:.0f} ms",
            f"{row['worst_ms']:.0f} ms",
        )
        table.add_row(
            "  a new gang at that moment",
            f"{row['newcomer_ms']:.0f} ms",
            f"{row['newcomer_worst_ms']:.0f} ms",
        )
    return table


def _event_table(found: dict[str, Any]) -> Table:
    table = Table("event", "10,000 pods", "100,000 pods", "ratio", title="What an event costs the caches")
    for row in found["events"]:
        costs = (f"{row['small_us']:.0f} us", f"{row['large_us']:.0f} us")
        table.add_row(row["event"], *costs, f"{row['ratio']:.2f}")
    none, many = found["terms"]
    name = f"match among 0 and {many['terms']} anti-affinity terms"
    table.add_row(name, f"{none['ms']:.2f} ms", f"{many['ms']:.2f} ms", f"{many['ms'] / none['ms']:.2f}")
    return table


def _startup_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table("process", "resident MB", "longest block", "all listed", title="Start with 100,000 pods")
    for row in rows:
        block, listed = f"{row['block_ms']:.0f} ms", f"{row['listed_s']:.1f} s"
        table.add_row(row["process"], f"{row['mb']:.0f}", block, listed)
    return table


def _report_table(found: dict[str, Any]) -> Table:
    title = f"Reports while {found['pods_per_s']} pods/s are bound for {found['seconds']:.0f} s"
    table = Table("told that it waits", "median", "worst", title=title)
    for name in ("group", "pod"):
        table.add_row(name, f"{found[f'{name}_median_s']:.2f} s", f"{found[f'{name}_worst_s']:.2f} s")
    return table


def _matcher_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="The matcher alone; its floor is one division over the whole array")
    for column in ("nodes", "gang", "ms", "floor ms", "match/floor"):
        table.add_column(column, justify="right")
    for row in rows:
        numbers = (f"{row['ms']:.3f}", f"{row['floor_ms']:.3f}", f"{row['ratio']:.1f}")
        table.add_row(str(row["nodes"]), str(row["gang"]), *numbers)
    return table


def _admission_table(found: dict[str, Any]) -> Table:
    alone, cluster = found["alone"], found["cluster"]
    table = Table("admission", "", title="The webhook: alone on one core over TLS, and on a real API server")
    rows = (
        (f"p50, p99 at {alone['rate']} reviews/s", f"{alone['p50_ms']:.2f} ms, {alone['p99_ms']:.2f} ms"),
        ("reviews/s flat out", f"{alone['reviews_per_s']:.0f}"),
        ("resident MB", f"{alone['resident_mb']:.0f}"),
        (f"calls for a Job of {cluster['job_pods']} pods", str(cluster["job_calls"])),
        *(
            (f"pods created/s, {who}: with / without", _rates(cluster[sort]))
            for sort, who in (
                ("foreign", "other schedulers'"),
                ("of_workloads", "of our workloads"),
                ("bare", "bare, one call each"),
            )
        ),
        ("  the same, by a webhook that does nothing", _ratio(cluster["bare"], "floor_webhook")),
        ("  the same, by a policy without a call", _ratio(cluster["bare"], "floor_policy")),
    )
    for row in rows:
        table.add_row(*row)
    return table


def _rates(found: dict[str, float]) -> str:
    return f"{found['with']:.0f} / {found['without']:.0f} = {_ratio(found, 'with')}"


def _ratio(found: dict[str, float], way: str) -> str:
    return f"{found[f'{way}_ratio']:.2f} ± {found[f'{way}_error']:.2f}"


def _gang_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="Pods bound per second (medians; ratios within this run)")
    # Short enough for a terminal of 80 columns; docs/performance.md explains them.
    for column in ("gangs", "alone", "native", "fluence", "f/native", "f/alone", "1st native", "1st fluence"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            f"{row['gangs']}x{row['size']}",
            f"{row['ceiling']:.0f}",
            f"{row['native']:.0f}",
            f"{row['fluence']:.0f}",
            f"{row['fluence'] / row['native']:.2f}",
            f"{row['fluence'] / row['ceiling']:.2f}",
            f"{row['first_bound_s']['native']:.2f} s",
            f"{row['first_bound_s']['fluence']:.2f} s",
        )
    return table


_TABLES: Final[Mapping[str, Callable[[Any], Table]]] = {
    "gangs": _gang_table,
    "matcher": _matcher_table,
    "waiting": _waiting_table,
    "events": _event_table,
    "startup": _startup_table,
    "memory": _memory_table,
    "reports": _report_table,
    "admission": _admission_table,
}
