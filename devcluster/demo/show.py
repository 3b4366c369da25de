"""How the demo looks on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from devcluster.demo.observe import Group, Scheduled

console = Console()


def title(number: int, text: str, command: str) -> None:
    """Begin a step: what it shows, and the command that shows the same."""
    console.print()
    console.rule(f"[bold]{number}. {text}", align="left")
    console.print(f"[dim]$ {command}[/dim]")


def seen(text: str) -> None:
    """Something expected was observed."""
    console.print(f"[green]seen:[/green] {text}")


def missed(text: str) -> None:
    """Something expected did not happen."""
    console.print(f"[bold red]not seen:[/bold red] {text}")


def labels(job: str, found: Mapping[str, str]) -> None:
    """The labels on a Job's pod template."""
    table = Table(f"job/{job}: label on the pod template", "value", title_justify="left")
    for key, value in found.items():
        table.add_row(key, value)
    if not found:
        table.add_row("(none of ours)", "")
    console.print(table)


def groups(found: Sequence[Group]) -> None:
    """PodGroups."""
    # Narrow enough that the microseconds show on a terminal of 80 columns.
    table = Table("podgroup", "phase", "min", "created", padding=(0, 1, 0, 0), pad_edge=False)
    for one in found:
        table.add_row(one.name, one.phase, str(one.minimum), one.created)
    console.print(table)


def scheduled(found: Sequence[Scheduled]) -> None:
    """Who scheduled which pod on which node."""
    table = Table("pod", "node", "scheduled by")
    for one in found:
        color = "cyan" if one.component == "fluence" else "yellow"
        table.add_row(one.pod, one.node, f"[{color}]{one.component}[/{color}]")
    console.print(table)


def reason(group: str, message: str) -> None:
    """Why a group waits."""
    console.print(Panel(message, title=f"why {group} waits", title_align="left"))
