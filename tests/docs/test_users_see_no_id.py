"""Messages, events, conditions, logs and help show no id of a rule: their readers do not know the ids."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from typer.testing import CliRunner

from fluence.commands import app
from tests.docs.citations import ROOT, ids_in, other_strings

#: Everything that runs in a cluster.
PRODUCT = ("certs", "controller", "fluence", "groups", "kube", "scheduler", "scheduler_core", "webhook")
EXAMPLES = sorted((ROOT / "manifests/examples").glob("*.yaml"))
NOTES = ROOT / "manifests/chart/templates/NOTES.txt"
#: An id in brackets, in the forms in which they were shown once: "(A1)", "(case C17)".
IN_BRACKETS = re.compile(r"\((A|C|N|R|T|B|S|W|case )[0-9]+")
TABLE = sorted((ROOT / "groups/workloads/table").glob("*.yaml"))


@pytest.mark.parametrize("package", PRODUCT)
def test_strings_of_the_product_show_no_id(package: str) -> None:
    """All strings but docstrings: what is shown is made of them."""
    shown = {
        f"{path.relative_to(ROOT)}: {text!r}"
        for path in (ROOT / package).rglob("*.py")
        for text in other_strings(ast.parse(path.read_text(encoding="utf-8")))
        if ids_in(text)
    }
    assert not shown


def test_help_shows_no_id() -> None:
    root = typer.main.get_command(app)
    texts = list(help_texts(root, root.context_class(root, info_name="fluence")))
    assert len(texts) > len(getattr(root, "commands", ())) > 1
    for text in texts:
        assert not ids_in(text), text


def help_texts(command: Any, context: Any) -> Iterator[str]:
    """The help of a command and of every command below it."""
    yield command.get_help(context)
    for name, inner in getattr(command, "commands", {}).items():
        yield from help_texts(inner, inner.context_class(inner, parent=context, info_name=name))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_explanations_and_warnings_show_no_id(path: Path) -> None:
    """What `fluence rules explain` prints, and what `fluence label` warns of, for every example."""
    explained = CliRunner().invoke(app, ["rules", "explain", "-f", str(path)])
    assert explained.exit_code == 0, explained.output
    assert "  rule  " in explained.output
    for text in (explained.output, CliRunner().invoke(app, ["label", "-f", str(path)]).stderr):
        assert not IN_BRACKETS.search(text), text
        assert not ids_in(text), text


def test_notes_of_the_chart_show_no_id() -> None:
    assert not ids_in(re.sub(r"(?s)\{\{-? ?/\*.*?\*/ ?-?\}\}", "", NOTES.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", TABLE, ids=lambda path: path.name)
def test_texts_of_the_table_show_no_id(path: Path) -> None:
    """`fluence rules explain` prints them."""
    for text in strings(yaml.safe_load(path.read_text(encoding="utf-8"))):
        assert not ids_in(text), text


def strings(value: object) -> Iterator[str]:
    """Every string within a parsed document."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value
