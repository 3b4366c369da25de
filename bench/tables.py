"""The figures of a run as tables for a terminal of 80 columns; docs/performance.md explains them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table


def show(found: dict[str, Any]) -> None:
    """Print a table of each part that was measured."""
    out = Console()
    if found["gangs"]:
        out.print(_gang_table(found["gangs"]))
    if found["matcher"]:
        out.print(_matcher_table(found["matcher"]))
    if found["memory"]:
        table = Table("process", "resident MB", title="Memory, 1,000 nodes and 5,000 pods")
        for row in found["memory"]:
            table.add_row(row["process"], f"{row['mb']:.0f}")
        out.print(table)
    if found["admission"]:
        out.print(_admission_table(found["admission"]))


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
