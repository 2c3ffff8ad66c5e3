"""Places in three encodings, as Azure's clients of several languages count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.server.dialects.azure import encoded_offsets


@pytest.mark.parametrize(
    ("text", "mark", "utf8", "utf16"),
    [
        ("abc", 2, 2, 2),
        ("\u00e4bc", 2, 3, 2),
        ("\u20acbc", 2, 4, 2),
        ("\U0001f3dd b", 2, 5, 3),
        ("", 0, 0, 0),
    ],
)
def test_a_place_in_three_encodings(text: str, mark: int, utf8: int, utf16: int) -> None:
    """A palm island is four bytes and two units."""
    expected = {"utf8": utf8, "utf16": utf16, "codePoint": mark}
    assert encoded_offsets(text, [mark])[mark] == expected


@given(st.text(), st.lists(st.integers(0, 50)))
def test_every_place_is_as_if_counted_alone(text: str, marks: list[int]) -> None:
    """In whatever order the places are asked for."""
    marks = [min(mark, len(text)) for mark in marks]
    found = encoded_offsets(text, marks)
    for mark in marks:
        assert found[mark]["utf8"] == len(text[:mark].encode())
        assert found[mark]["utf16"] == len(text[:mark].encode("utf-16-le")) // 2
