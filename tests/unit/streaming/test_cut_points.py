"""Where a growing text may be cut: soon between words, late beside code, never in runs."""

from __future__ import annotations

import pytest

from guardrail_service.streaming import cut_points as module
from guardrail_service.streaming.cut_points import cuts, is_opaque

KEY = "-----BEGIN RSA PRIVATE KEY-----\n"


def first_cut(text: str, released: int = 0) -> str | None:
    """Return the part that could leave first, feeding one character at a time."""
    for size in range(1, len(text) + 1):
        for cut in cuts(text[:size], released):
            return text[released:cut]
    return None


def arrived(text: str) -> int | None:
    """Return how many characters have arrived when something can leave for the first time."""
    return next((n for n in range(1, len(text) + 1) if any(cuts(text[:n], 0))), None)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("Guests may stay. The pool opens at noon.", "Guests may stay. "),
        ("Is it open? Yes, it is.", "Is it open? "),
        ("Guests may stay [1]. The pool opens [2]. Then", "Guests may stay [1]. "),
        ("Write to Dr. Berg about it. Then wait for him.", "Write to Dr. Berg about it. "),
        ("今日は晴れです。明日は雨です。傘が", "今日は晴れです。"),
    ],
)
def test_a_sentence_of_words_may_leave_after_the_next_word(text: str, part: str) -> None:
    """That word decides whether the stop was one; nothing else is waited for."""
    assert first_cut(text) == part
    size = arrived(text)
    assert size is not None
    assert size <= len(part) + module.SETTLED


def test_a_sentence_that_ends_in_a_number_waits_a_little() -> None:
    """The number may be the beginning of a date or of an address."""
    text = "It opens at 7. The rest of this text has no numbers in it and goes on for some time."
    assert arrived(text) == len("It opens at 7. ") + module.AFTER_NUMBERS


def test_a_sentence_beside_code_waits_longer() -> None:
    """Values of code may have blanks in them."""
    text = "Set x_1={a}. " + "Then goes on what has none of it and has no other sentence end " * 4
    assert arrived(text + ". The") == len("Set x_1={a}. ") + module.AFTER_SYMBOLS


def test_a_connection_string_waits_for_its_password() -> None:
    """It may stand 400 characters behind its beginning, until the line ends."""
    prose = "The rest has none of it. " * 40
    assert first_cut(f"Here. Server=db;User=me. {prose}"[:400]) == "Here. "
    assert first_cut(f"Server=db;User=me.\n{prose}") is not None
    size = arrived(f"Server=db;User=me. {prose}")
    assert size is not None
    assert size > module.PAIRS_REACH


def test_a_number_waits_for_the_word_that_may_announce_it() -> None:
    """ "... is my passport number" may follow."""
    text = "He wrote C01X00T47 and left. " + "The rest of it has nothing to hide. " * 6
    assert arrived(text) == text.index(" and left") + module.CUE_REACH


def test_two_opaque_tokens_never_part() -> None:
    """However much follows: one of a thousand lines of base64 may decode to a name."""
    text = "Here it is. " + "QUtJQTNGWTJIQ1VLU1I2TFpRS1Y\n" * 30
    assert [text[:cut] for cut in cuts(text + "Then more words follow. And so on.", 0)][-1:] == [
        "Here it is. "
    ]


@pytest.mark.parametrize("opener", [KEY, "PuTTY-User-Key-File-2: ssh-rsa\n"])
def test_nothing_leaves_from_a_key_block_that_has_no_end(opener: str) -> None:
    """Not even its first line, which no search takes for a secret by itself."""
    text = f"Here is the key.\n\n{opener}" + "Version: some words that are no key. " * 20
    assert max(cuts(text, 0)) == text.index(opener)


def test_a_key_block_that_has_ended_may_leave() -> None:
    """Once its last line is complete."""
    block = KEY + "MIIEpAIBAAKCAQEA7bq2kXk1\n-----END RSA PRIVATE KEY-----\n"
    text = f"Here is the key.\n\n{block}" + "That was it. " * 60
    assert max(cuts(text, 0)) > text.index("That")


def test_a_text_without_sentences_is_cut_between_words() -> None:
    """Only once much is held, and not inside a word."""
    words = "the quick brown fox jumps over the lazy dog and "
    assert list(cuts(words * 20, 0)) == []
    text = words * 25
    assert all(text[cut - 1] == " " for cut in cuts(text, 0))
    assert any(cuts(text, 0))


def test_the_street_waits_for_its_number() -> None:
    """ "Via Roma. Milano 12" is read as one address."""
    text = "He lives in Via Roma. Milano is nice and has a lot to see. " + "It rains a lot. " * 9
    size = arrived(text)
    assert size is not None
    assert size >= text.index("Milano") + module.AFTER_STREET


@pytest.mark.parametrize("token", ["4a", "12,", "x" * 24, "ef"])
def test_a_token_that_may_be_part_of_a_value_is_opaque(token: str) -> None:
    """Digits, pairs of hexadecimal letters and long runs."""
    assert is_opaque(token)


@pytest.mark.parametrize("token", ["Guests", "[12]", "be.c", "Straßenbahnhaltestellenschild"])
def test_a_word_or_a_citation_is_not_opaque(token: str) -> None:
    """Long German words are words; citation marks are everywhere in answers."""
    assert not is_opaque(token)
