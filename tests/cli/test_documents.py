"""What the documents promise is there."""

import re
from pathlib import Path

import pytest

from devcluster.paths import ROOT
from fluence.settings import KNOWN

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_within_the_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_that_documents_name_are_there(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)", document.read_text()))
    assert named <= targets


def test_every_setting_is_documented() -> None:
    documented = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE))
    assert documented == KNOWN


def test_every_decision_is_listed() -> None:
    listed = (ROOT / "docs" / "architecture.md").read_text()
    for record in (ROOT / "docs" / "decisions").glob("*.md"):
        assert f"decisions/{record.name}" in listed
