"""Writes generated parts into a page between markers, and leaves the rest as people wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from guardrail_service.errors import InputError


def replace_part(path: Path, name: str, content: str) -> None:
    """Write a generated part of a Markdown page.

    Args:
        path: The page; it has `<!-- name -->` and `<!-- /name -->` on lines of their own.
        name: Which part.
        content: What comes between the markers.

    Raises:
        InputError: If the page cannot be read or does not have each marker once.
    """
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    try:
        page = path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a page with {start}") from error
    before, opened, rest = page.partition(f"{start}\n")
    _, closed, after = rest.partition(end)
    if not (opened and closed) or start in rest or end in after:
        raise InputError(f"{path}: expected {start} and {end} once each, in this order")
    path.write_text(f"{before}{opened}{content.strip()}\n{closed}{after}", "utf-8")


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; a bar in a cell is escaped."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )
