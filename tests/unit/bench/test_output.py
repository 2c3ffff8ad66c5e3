"""Generated parts of a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail_bench.output import markdown_table, replace_part
from guardrail_service.errors import InputError


def page(tmp_path: Path, content: str) -> Path:
    """Write a page."""
    path = tmp_path / "page.md"
    path.write_text(content, "utf-8")
    return path


def test_only_the_named_part_changes(tmp_path: Path) -> None:
    """Text around it and other parts stay as people wrote them."""
    path = page(tmp_path, "a\n<!-- x -->\nold\n<!-- /x -->\nb\n<!-- y -->\nkept\n<!-- /y -->\n")
    replace_part(path, "x", "\nnew\n\n")
    replaced = "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n<!-- y -->\nkept\n<!-- /y -->\n"
    assert path.read_text("utf-8") == replaced
    replace_part(path, "x", "new")
    assert path.read_text("utf-8") == replaced


@pytest.mark.parametrize(
    "content",
    [
        "no markers",
        "<!-- x -->\nno end",
        "<!-- /x -->\n<!-- x -->\n",
        "<!-- x -->\n<!-- x -->\n<!-- /x -->",
        "<!-- x -->\n<!-- /x -->\n<!-- /x -->",
    ],
)
def test_a_page_without_both_markers_once_is_refused_and_left_alone(
    tmp_path: Path, content: str
) -> None:
    """Instead of swallowing the rest of the page."""
    path = page(tmp_path, content)
    with pytest.raises(InputError, match="once each"):
        replace_part(path, "x", "new")
    assert path.read_text("utf-8") == content


def test_a_missing_page_is_refused(tmp_path: Path) -> None:
    """With what was expected of it."""
    with pytest.raises(InputError, match="expected a page"):
        replace_part(tmp_path / "none.md", "x", "new")


def test_a_bar_inside_a_cell_does_not_split_it() -> None:
    """Markdown would read one column more."""
    assert markdown_table(("a", "b"), [("1|2", "3")]) == "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |"
