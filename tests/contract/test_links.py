"""Every link of every page leads somewhere, and every path that a page names exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [
    ".ci",
    "configs",
    "docs",
    "examples",
    "guardrail_client",
    "load_tests",
    "models",
    "service",
]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("*.md"), *(p for name in FOLDERS for p in (ROOT / name).rglob("*.md"))]
)
PATH = rf"`((?:{'|'.join(map(re.escape, FOLDERS))})/[\w./-]*\w/?)`"


@cache
def prose(page: str) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", (ROOT / page).read_text("utf-8"), flags=re.M | re.S)


@cache
def anchors(page: str) -> set[str]:
    """Return the places of a page that a link can name, as GitHub makes them from headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    return set(plain)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    """Within the checkout, and to a heading that exists."""
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    for target in targets:
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, place = target.partition("#")
        found = ((ROOT / page).parent / name).resolve() if name else ROOT / page
        assert found.exists(), f"{page}: {target}"
        if place:
            assert place in anchors(str(found.relative_to(ROOT))), f"{page}: {target}"


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CHANGELOG.md"])
def test_every_path_that_is_named_exists(page: str) -> None:
    """In the checkout; the list of changes also names what is gone."""
    gone = [name for name in re.findall(PATH, prose(page)) if not (ROOT / name).exists()]
    assert gone == []
