"""Redaction: exact offsets, overlaps resolved by the stated rule, nothing of a finding left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.guard.check import redact
from guardrail_service.types import Span


def span(start: int, end: int, replacement: str | None = "#") -> Span:
    """Return a span with a replacement."""
    return Span(start, end, "x", replacement=replacement)


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], "0123456789"),
        ([span(0, 2, "A"), span(8, 10, "B")], "A234567B"),
        ([span(2, 4, None)], "0123456789"),
        ([span(4, 4)], "0123456789"),
        ([span(2, 4, "")], "01456789"),
        ([span(2, 4, "A"), span(4, 6, "B")], "01AB6789"),
        ([span(2, 8, "LONG"), span(3, 5, "S")], "01LONG89"),
        ([span(3, 5, "S"), span(2, 8, "LONG")], "01LONG89"),
        ([span(2, 5, "A"), span(4, 9, "B")], "01B9"),
        ([span(2, 5, "A"), span(4, 7, "B")], "01A789"),
        ([span(2, 5, "B"), span(2, 5, "A")], "01A56789"),
        ([span(1, 3, "A"), span(2, 5, "BB"), span(4, 9, "C")], "0C9"),
        ([span(-5, 2, "A"), span(9, 99, "B")], "A2345678B"),
        ([span(2, 8, None), span(3, 5, "S")], "012S56789"),
    ],
)
def test_spans_become_their_replacements(spans: list[Span], expected: str) -> None:
    """Overlapping spans are replaced together, by the replacement of the longest."""
    assert redact("0123456789", spans) == expected


@pytest.mark.parametrize("text", ["é😀x", "\ud83dx", "e\u0301x", "👨‍👩‍👧x"])
def test_offsets_are_code_points(text: str) -> None:
    """Astral characters, combining marks and lone surrogates each count as they are stored."""
    last = len(text) - 1
    assert redact(text, [span(last, last + 1)]) == text[:-1] + "#"


@given(
    st.text(st.characters(codec=None, exclude_characters="#"), max_size=40),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=6),
)
def test_nothing_of_a_finding_stays_and_all_else_does(
    text: str, places: list[tuple[int, int]]
) -> None:
    """What is outside every span is kept in order; the order of spans does not matter."""
    spans = [span(start, start + size) for start, size in places]
    covered = {i for s in spans for i in range(s.start, s.end)}
    result = redact(text, spans)
    assert result.replace("#", "") == "".join(c for i, c in enumerate(text) if i not in covered)
    assert redact(text, reversed(spans)) == result
