"""Each rule and case that the repository cites is explained in docs/."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.citations import ROOT, citing_text, explained_in, ids_in, other_strings

PAGES = ("docs/contract.md", "docs/kubernetes-rules.md", "docs/cases.md")
#: Files in which ids are cited. Lists of packages and checksums hold none.
SUFFIXES = {".py", ".md", ".yaml", ".toml", ".tpl", ".txt", ".cfg", ".sh", ""}
NOT_OURS = {"LICENSE", "go.sum"}
BUILT = {"build", "dist", "requirements", "__pycache__"}


def files() -> Iterator[Path]:
    """The text files of the repository; hidden folders but .ci, and what `make` builds, are left out."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [one for one in folders if one == ".ci" or not (one.startswith(".") or one in BUILT)]
        for path in (Path(folder) / name for name in names if name not in NOT_OURS):
            if path.suffix in SUFFIXES and not path.name.startswith("."):
                yield path


def test_every_cited_id_is_explained() -> None:
    explained = set().union(*(explained_in((ROOT / page).read_text(encoding="utf-8")) for page in PAGES))
    missing = {
        f"{path.relative_to(ROOT)}: {', '.join(sorted(unknown))}"
        for path in files()
        if (unknown := ids_in(citing_text(path)) - explained)
    }
    assert not missing, "explain these in docs/, or cite them otherwise"


def test_no_id_is_explained_twice() -> None:
    seen: set[str] = set()
    for page in PAGES:
        explained = explained_in((ROOT / page).read_text(encoding="utf-8"))
        assert not explained & seen
        seen |= explained


def test_every_anchor_is_the_id_behind_it() -> None:
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for one in explained_in(text):
            assert f'<a id="{one.lower()}"></a>' in text


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("A pod is bound once (rule B2).", {"B2"}),
        ("Rules A1, A2 and A7; case C53.", {"A1", "A2", "A7", "C53"}),
        ("(rules R1 to R4)", {"R1", "R2", "R3", "R4"}),
        ("A5b, N06: held room", {"A5b", "N06"}),
        ("C119's Deployment", {"C119"}),
        ("EC P-256 on an A100, noqa S603, C901, N818", set()),
        ("V1Pod, SHA256, 0xC10, x/C10, $R1, R1.2, C10=3", set()),
    ],
)
def test_ids_are_told_from_other_words(text: str, ids: set[str]) -> None:
    assert ids_in(text) == ids


def test_the_search_reads_comments_docstrings_and_prose(tmp_path: Path) -> None:
    """A citation that the search overlooked would never be missed."""
    source = tmp_path / "one.py"
    source.write_text('"""Rule B1."""\nx = "B9"  # rule B2\n\ndef f():\n    """Case C41."""\n')
    prose = tmp_path / "two.md"
    prose.write_text("Rule B3, `B4`.\n\n```\nB5\n```\n")
    data = tmp_path / "three.yaml"
    data.write_text("# rule B6\nkey: B7  # rule B8\n")
    assert ids_in(citing_text(source)) == {"B1", "B2", "C41"}
    assert ids_in(citing_text(prose)) == {"B3"}
    assert ids_in(citing_text(data)) == {"B6", "B8"}
    assert set(other_strings(ast.parse(source.read_text()))) == {"B9"}
