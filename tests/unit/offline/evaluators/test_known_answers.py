"""Every known answer of the golden table is named by a test that asserts it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[3]
TABLE = TESTS / "golden" / "evaluators" / "README.md"
_NAMED = re.compile(r"Known answers? (\d+(?:, \d+)*)")


def listed() -> set[int]:
    """Return the numbers of the table's first column."""
    cells = re.findall(r"^\| ([\d, -]+) \|", TABLE.read_text("utf-8"), re.MULTILINE)
    spans = [part.split("-") for cell in cells for part in cell.split(", ")]
    return {n for span in spans for n in range(int(span[0]), int(span[-1]) + 1)}


def asserting(path: Path) -> Iterator[str]:
    """Yield the docstrings of a file's tests that assert something."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            inner = list(ast.walk(node))
            if any(isinstance(n, ast.Assert | ast.With) for n in inner):
                yield ast.get_docstring(node) or ""


def test_every_known_answer_is_named_by_a_test_that_asserts() -> None:
    """And no test names one that the table does not explain."""
    texts = [text for path in sorted(TESTS.rglob("test_*.py")) for text in asserting(path)]
    numbers = {int(n) for text in texts for m in _NAMED.findall(text) for n in m.split(", ")}
    assert numbers == listed()
    assert numbers == set(range(1, 56)) - {50}
