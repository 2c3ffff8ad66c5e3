"""Writes texts as people do who want to be overlooked, for training."""

from __future__ import annotations

import random

_LEET = {"a": "4@", "e": "3", "i": "1!", "o": "0", "s": "5$", "t": "7"}
_TWINS = dict(zip("aceopxyi", "асеорхуі", strict=True))  # noqa: RUF001 - Cyrillic letters are meant
_JOINER = "\u200b"


def disguised(text: str, rng: random.Random) -> str:
    """Return the text with some of its longer words disguised, all in one way."""
    change = rng.choice((_leet, _spaced, _twins, _hidden, _swapped, _shorter, _starred, _stretched))
    words = text.split(" ")
    share = rng.choice((0.25, 0.5, 1.0))
    return " ".join(
        change(w, rng) if len(w) > 3 and w.isalpha() and rng.random() < share else w for w in words
    )


def without_spaces(text: str, rng: random.Random) -> str:
    """Return the text with one or two spaces missing."""
    words = text.split(" ")
    for _ in range(rng.randint(1, 2)):
        if len(words) > 2:
            at = rng.randrange(len(words) - 1)
            words[at : at + 2] = [words[at] + words[at + 1]]
    return " ".join(words)


def _leet(word: str, rng: random.Random) -> str:
    return "".join(
        rng.choice(_LEET[c]) if c in _LEET and rng.random() < 0.6 else c for c in word.lower()
    )


def _spaced(word: str, rng: random.Random) -> str:
    return rng.choice((" ", ".", "-")).join(word)


def _twins(word: str, rng: random.Random) -> str:
    return "".join(_TWINS[c] if c in _TWINS and rng.random() < 0.6 else c for c in word)


def _hidden(word: str, rng: random.Random) -> str:
    at = rng.randrange(1, len(word))
    return word[:at] + _JOINER + word[at:]


def _swapped(word: str, rng: random.Random) -> str:
    at = rng.randrange(1, len(word) - 2) if len(word) > 3 else 1
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _shorter(word: str, rng: random.Random) -> str:
    at = rng.randrange(1, len(word) - 1)
    return word[:at] + word[at + 1 :]


def _starred(word: str, rng: random.Random) -> str:
    at = rng.randrange(1, len(word) - 1)
    return word[:at] + "*" + word[at + 1 :]


def _stretched(word: str, rng: random.Random) -> str:
    at = rng.randrange(1, len(word))
    return word[:at] + word[at] * rng.randint(2, 5) + word[at:]
