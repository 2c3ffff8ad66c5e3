"""Docstrings are sentences with a subject: none begins with a question word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("service", "guardrail_client", "models", "load_tests", "examples", "docs")
QUESTION_WORD = re.compile(
    r"(What|Who|Whom|Whose|Which|Where|When|Why|How|Whether|Whatever|Whoever)\b"
)
"""Says that a riddle follows ("What is kept of some passages"), not a subject and a verb."""
RELATIVE_SUBJECT = re.compile(r"(?:\.\)?\s+|\n\n\s*)((?:What|Who|Whoever)\b[^.?]*)\.")
"""A later sentence that begins like that and is no question."""


def sources() -> Iterator[Path]:
    """Yield the packages' Python files."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "build" not in path.parts:
                yield path


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring of a module, class or function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, text


def riddles(source: str) -> list[str]:
    """Return "line: words" of each docstring that begins, or goes on, with a question word."""
    found = []
    for line, text in docstrings(source):
        first = text.partition("\n")[0]
        if QUESTION_WORD.match(text):
            found.append(f"{line}: {first}")
        found.extend(f"{line}: {match[1]}" for match in RELATIVE_SUBJECT.finditer(text))
    return found


def test_no_docstring_is_a_riddle() -> None:
    """Say "The errors this package raises", not "What this package raises"."""
    found = [
        f"{path.relative_to(ROOT)}:{riddle}"
        for path in sources()
        for riddle in riddles(path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is kept of some passages.", 1),
        ("Where a claim stands.", 1),
        ("Closes the client. Who made it closes it.", 1),
        ("Counts rows.\n\n    What is kept stays.\n    ", 1),
        ("Return what the user sees.", 0),
        ("Answers the question. What is missing? Nothing.", 0),
        ("Whatsoever it is called.", 0),
    ],
)
def test_riddles_are_found(text: str, expected: int) -> None:
    """At the beginning, behind another sentence, and as a paragraph of their own."""
    assert len(riddles(f'def function():\n    """{text}"""\n')) == expected
