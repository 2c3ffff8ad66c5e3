"""The text that is held and the text that has left."""

from __future__ import annotations

import pytest

from guardrail_service.streaming.cut_points import cuts
from guardrail_service.streaming.holdback import MAX_HOLD, SHARE, Holdback

TEXT = "Guests may stay for two weeks. The pool opens at noon. Breakfast is served. "


def fed(text: str, size: int = 5) -> Holdback:
    """Return a state that a text has been fed to, nothing released."""
    state = Holdback()
    for at in range(0, len(text), size):
        state.feed(text[at : at + size])
    return state


def test_what_left_and_what_is_held_are_the_text() -> None:
    """Nothing is lost or doubled."""
    state = fed(TEXT)
    cut = state.furthest([])
    assert state.release(cut) == TEXT[:cut]
    assert state.released == cut
    assert state.held == TEXT[cut:]
    assert (state.text, state.size) == (TEXT, len(TEXT))


def test_a_finding_that_crosses_moves_the_cut_before_it() -> None:
    """To the next permissible place, not into the sentence."""
    state = fed(TEXT)
    crossing = (TEXT.index("pool"), len(TEXT))
    assert state.furthest([crossing]) == TEXT.index("The pool")


def test_nothing_is_due_within_a_word() -> None:
    """Looking costs more than a character is worth."""
    state = Holdback()
    state.feed("Guests may stay. The")
    assert not state.due()
    state.feed(" pool opens")
    assert state.due()


def test_a_look_in_vain_waits_for_more_text() -> None:
    """A search that moved the cut back to the start is not repeated at once."""
    state = fed(TEXT)
    assert state.due()
    assert state.furthest([(0, len(TEXT))]) == 0
    assert not state.due()


def test_a_release_is_a_share_of_what_has_left() -> None:
    """So that a long answer of short sentences is not searched once per sentence."""
    state = fed("A word is a word. " * 1_000)
    state.release(17_000)
    part = state.furthest([]) - state.released
    assert part * SHARE >= state.released
    short = Holdback()
    short.feed("A word is a word. " * 1_000)
    short.release(short.size)
    short.feed("A word. Another word. And ")
    assert not short.due()


def test_an_endless_run_overflows_and_memory_is_bounded() -> None:
    """And only then: a forced cut leaves most of it held."""
    state = fed("x" * MAX_HOLD, 500)
    assert not state.overflows()
    state.feed("x")
    assert state.overflows()
    assert 0 < state.forced() < state.size // 2


def test_cuts_are_found_by_the_context_before_the_held_text() -> None:
    """A cut right behind what has left sees the same words as it would in the whole text."""
    text = "Pay 4111 1111 " + "and then some more words follow here. " * 3
    state = fed(text)
    state.release(10)
    whole = list(cuts(text, 10))
    assert state.furthest([]) == whole[0]


@pytest.mark.parametrize("reach", [0, 30, 90])
def test_as_much_is_held_back_as_the_longest_finding_is_long(reach: int) -> None:
    """Whoever finds more than the built-in searches says how much; text beyond it leaves."""
    state = Holdback(reach)
    text = "One sentence is here. " * 12
    for word in text.split(" "):
        state.feed(word + " ")
        if state.due() and (cut := state.furthest(())) > state.released:
            state.release(cut)
            assert state.size - cut >= reach
    assert state.released > 0
    assert len(state.held) >= reach
