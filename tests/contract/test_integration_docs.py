"""Pages about frameworks: at most three lines of a reader's code are about the guard."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "integrations"
SNIPPETS = [
    pytest.param(page, match.group(1), id=f"{page.stem} {number}")
    for page in sorted(FOLDER.glob("*.md"))
    for number, match in enumerate(
        re.finditer(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )
]


@pytest.mark.parametrize(("page", "snippet"), SNIPPETS)
def test_a_snippet_is_python_and_short(page: Path, snippet: str) -> None:
    """Imports count; so does the line that puts the guard in."""
    ast.parse(snippet)
    about = [line for line in snippet.splitlines() if "guard" in line.split("#")[0].lower()]
    if page.name not in ("bedrock.md", "azure.md", "openai-moderations.md", "llm-guard.md"):
        assert 1 <= len(about) <= 3, about


def test_every_page_is_linked_from_the_table() -> None:
    """A page that nothing leads to is not read."""
    table = (FOLDER / "README.md").read_text("utf-8")
    pages = {page.name for page in FOLDER.glob("*.md")} - {"README.md"}
    assert pages
    assert {page for page in pages if f"]({page})" not in table} == set()
