"""Edits and the way back to the text before them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.text.offsets import Edit, Edited


@pytest.mark.parametrize(
    ("part", "before"),
    [((0, 1), (0, 1)), ((5, 6), (5, 8)), ((0, 17), (0, 19)), ((4, 7), (4, 9)), ((6, 17), (8, 19))],
)
def test_a_part_of_the_new_text_leads_back(part: tuple[int, int], before: tuple[int, int]) -> None:
    """What stands before, on and behind one edit."""
    edited = Edited("alice%40example.com", [Edit(5, 8, "@")])
    assert edited.text == "alice@example.com"
    assert edited.before(*part) == before


def test_removed_characters_belong_to_what_surrounds_them() -> None:
    """A part that begins behind them does not hold them."""
    edited = Edited("a\u200bb\u200bc", [Edit(1, 2, ""), Edit(3, 4, "")])
    assert edited.text == "abc"
    assert edited.before(0, 3) == (0, 5)
    assert edited.before(1, 2) == (2, 3)
    assert edited.touched(0, 2)
    assert not edited.touched(1, 2)


def test_an_edit_of_equal_length_is_read_character_by_character() -> None:
    """A rotated word keeps its letters' places."""
    edited = Edited("x nop x", [Edit(2, 5, "abc")])
    assert edited.before(3, 4) == (3, 4)
    assert edited.touched(4, 6)
    assert not edited.touched(5, 7)


@given(st.text(min_size=1, max_size=60), st.data())
def test_parts_without_edits_are_the_same_text_before(text: str, data: st.DataObject) -> None:
    """Whatever was replaced elsewhere."""
    places = data.draw(st.sets(st.integers(0, len(text) - 1), max_size=8))
    edited = Edited(text, [Edit(i, i + 1, "<>" * (i % 3)) for i in sorted(places)])
    for start in range(len(edited.text)):
        if not edited.touched(start, start + 1):
            before = edited.before(start, start + 1)
            assert text[before[0] : before[1]] == edited.text[start]
