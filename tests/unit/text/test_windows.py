"""Windows cover a long sentence without gap, fit the model, and count what it cannot read."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.text.sample import TokenSpan, Window, _unread, windows
from guardrail_service.text.segmentation.sentences import Sentence, split_sentences


class Words:
    """Cuts words into pieces of four characters; drops NUL; a word over ten is unknown."""

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens

    def tokens(self, text: str) -> Sequence[TokenSpan]:
        """Return the tokens of the text."""
        spans, start = [], 0
        for i, char in enumerate(text + " "):
            if char.isspace() or char == "\x00":
                if i - start > 10:
                    spans.append(TokenSpan(start, i, known=False))
                else:
                    spans += [TokenSpan(k, min(k + 4, i), known=True) for k in range(start, i, 4)]
                start = i + 1
        return spans


class Bytes(Words):
    """One token per UTF-8 byte: several tokens share one code point."""

    def tokens(self, text: str) -> Sequence[TokenSpan]:
        """Return the tokens of the text."""
        return [
            TokenSpan(i, i + 1, known=True)
            for i, char in enumerate(text)
            for _ in char.encode("utf-8", "surrogatepass")
        ]


class Greedy(Words):
    """Needs more tokens for a text that does not start the sentence, as some subwords do."""

    def tokens(self, text: str) -> Sequence[TokenSpan]:
        """Return one token per two characters, or one per character after a small letter."""
        step = 2 if text[:1].isupper() else 1
        return [
            TokenSpan(i, min(i + step, len(text)), known=True) for i in range(0, len(text), step)
        ]


def whole(text: str) -> Sentence:
    """Return a sentence that is all of a source shifted by seven."""
    return Sentence(7, 7 + len(text), text)


def assert_cover(sentence: Sentence, pieces: tuple[Window, ...], windower: Words) -> None:
    """Check that the windows are the sentence, piece by piece, and that each fits."""
    assert "".join(piece.text for piece in pieces) == sentence.text
    at = sentence.start
    for piece in pieces:
        assert (piece.start, piece.end) == (at, at + len(piece.text))
        assert len(windower.tokens(piece.text)) <= windower.max_tokens
        at = piece.end
    assert at == sentence.end


@given(st.text(), st.integers(4, 30), st.sampled_from([Words, Bytes, Greedy]))
def test_windows_are_the_sentence_and_each_fits(text: str, room: int, kind: type[Words]) -> None:
    """No gap, no overlap, nothing longer than the model reads, for any text and tokenizer."""
    sentence = whole(text)
    windower = kind(room)
    assert_cover(sentence, windows(sentence, windower), windower)


def test_a_sentence_that_fits_is_one_window() -> None:
    """The usual case: offsets and text of the sentence itself."""
    sentence = split_sentences("First one. Second one here.")[1]
    assert windows(sentence, Words(8)) == (Window(11, 27, "Second one here.", 0),)


def test_cuts_prefer_the_end_of_a_clause_to_any_space() -> None:
    """A comma near the fair share of tokens is the better place."""
    sentence = whole("one two six ten, red tan sky")
    assert [w.text for w in windows(sentence, Words(5))] == ["one two six ten, ", "red tan sky"]


def test_cuts_prefer_a_space_to_the_inside_of_a_word() -> None:
    """Even where the word would have fitted in part."""
    texts = [w.text for w in windows(whole("aaa bbb ccccdddd eee"), Words(3))]
    assert all(not piece[:1].isspace() for piece in texts)
    assert "ccccdddd" in " ".join(texts)


def test_windows_share_the_tokens_evenly() -> None:
    """A last window of one word would be read without context."""
    pieces = windows(whole("word " * 21), Words(20))
    assert [len(piece.text.split()) for piece in pieces] == [11, 10]


def test_unread_counts_unknown_and_dropped_characters() -> None:
    """An unknown word and a control character are both invisible to the model."""
    (window,) = windows(whole("ok abcdefghijklmno \x00 yes"), Words(20))
    assert window.unread == 15 + 1


def test_whitespace_is_not_unread() -> None:
    """Tokenizers skip it and lose nothing."""
    (window,) = windows(whole("a  b\tc"), Words(20))
    assert window.unread == 0


def test_a_character_that_cannot_fit_is_an_error() -> None:
    """Never a silent cut inside a code point."""
    with pytest.raises(ValueError, match="one character needs 4 tokens, a window holds 3"):
        windows(whole("🎉🎉"), Bytes(3))


@pytest.mark.parametrize("text", ["a" * 60_000, "a " * 30_000, "é," * 30_000])
@pytest.mark.parametrize("kind", [Words, Bytes, Greedy])
def test_a_very_long_sentence_is_windowed_in_linear_time(text: str, kind: type[Words]) -> None:
    """Tokenised once whole and about once more in pieces."""
    windower = kind(100)
    sentence = whole(text)
    assert_cover(sentence, windows(sentence, windower), windower)


@given(
    text=st.text(alphabet="ab \u3000\n", max_size=20),
    spans=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.booleans()), max_size=8),
)
def test_unread_is_what_no_known_token_covers(
    text: str, spans: list[tuple[int, int, bool]]
) -> None:
    """Counted character by character here; tokens may overlap and leave gaps."""
    found = [TokenSpan(min(a, b), max(a, b), known) for a, b, known in spans]
    covered = {n for span in found if span.known for n in range(span.start, span.end)}
    expected = sum(not c.isspace() and n not in covered for n, c in enumerate(text))
    assert _unread(text, found) == expected
