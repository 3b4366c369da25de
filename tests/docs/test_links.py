"""Links between the pages of the repository lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.citations import ROOT

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "manifests/**/*.md")
    for path in ROOT.glob(pattern)
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ANCHOR = re.compile(r'<a id="([^"]+)">')
_HEADING = re.compile(r"(?m)^#+ (.+)$")


def links(page: Path) -> list[str]:
    return [one for one in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in one]


def anchors(page: Path) -> set[str]:
    """The anchors of a page: those written in it, and those that GitHub makes of its headings."""
    text = page.read_text(encoding="utf-8")
    headings = (re.sub(r"<[^>]*>|[^\w\- ]", "", one).strip().lower() for one in _HEADING.findall(text))
    return {*_ANCHOR.findall(text), *(one.replace(" ", "-") for one in headings)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading_of_it(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_pages_and_links_are_found() -> None:
    """Else the test above would pass with nothing to look at."""
    assert len(PAGES) > 10
    assert sum(len(links(page)) for page in PAGES) > 30
