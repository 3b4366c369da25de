"""`fluence version`."""

from __future__ import annotations

from importlib import metadata
from typing import Final

import typer

DISTRIBUTION: Final = "fluence-gang-scheduler"


def version() -> None:
    """Print the version of Fluence."""
    typer.echo(f"fluence {installed_version()}")


def installed_version() -> str:
    """The version of the installed distribution; `unknown` in a checkout that is not installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"
