"""Perturbations of single characters. Each draws positions from a seeded generator."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
OCR: Mapping[str, str] = {
    "0": "o", "o": "0", "O": "0", "1": "l", "l": "1", "I": "l", "i": "1", "5": "s", "s": "5",
    "S": "5", "8": "B", "B": "8", "2": "z", "z": "2", "6": "b", "b": "6", "9": "g", "g": "9",
    "q": "9", "e": "c", "c": "e", "n": "r", "h": "b", "u": "v", "v": "u", "t": "f", "f": "t",
}  # fmt: skip
"""Characters that scanners take for each other; any other character stays as it is."""


def _keyboard() -> dict[str, str]:
    """Return the letters beside and above or below each letter of a QWERTY keyboard."""
    found: dict[str, set[str]] = {letter: set() for letter in _LETTERS}
    for number, row in enumerate(_ROWS):
        for place, letter in enumerate(row):
            near = [(number, place - 1), (number, place + 1), (number + 1, place - 1)]
            near += [(number + 1, place), (number - 1, place), (number - 1, place + 1)]
            for other, at in near:
                if 0 <= other < len(_ROWS) and 0 <= at < len(_ROWS[other]):
                    found[letter].add(_ROWS[other][at])
    return {letter: "".join(sorted(letters)) for letter, letters in found.items()}


_NEIGHBOURS = _keyboard()


def replaced(text: str, share: float, rng: random.Random) -> str:
    """Return the text with a share of its letters replaced by other letters."""
    return _changed(text, _letters(text), share, rng, lambda c: rng.choice(_LETTERS.replace(c, "")))


def typed(text: str, share: float, rng: random.Random) -> str:
    """Return the text with a share of its letters replaced by neighbours on the keyboard."""
    places = [place for place in _letters(text) if text[place].lower() in _NEIGHBOURS]
    return _changed(text, places, share, rng, lambda c: rng.choice(_NEIGHBOURS[c]))


def inserted(text: str, share: float, rng: random.Random) -> str:
    """Return the text with letters inserted behind a share of its characters."""
    places = range(len(text))
    chosen = set(_chosen(places, share, rng))
    return "".join(c + (rng.choice(_LETTERS) if i in chosen else "") for i, c in enumerate(text))


def deleted(text: str, share: float, rng: random.Random) -> str:
    """Return the text with a share of its letters replaced by "X", as H2O's deletion does."""
    return _changed(text, _letters(text), share, rng, lambda _: "X")


def scanned(text: str, share: float, rng: random.Random) -> str:
    """Return the text with a share of the characters in question misread as by a scanner."""
    places = [place for place, c in enumerate(text) if c in OCR]
    chosen = set(_chosen(places, share, rng))
    return "".join(OCR[c] if i in chosen else c for i, c in enumerate(text))


def exchanged(text: str, share: float) -> str:
    """Return the text with y and z exchanged in every so many of their occurrences.

    Every round(1 / share)-th one counting from the first, so nothing is drawn.
    """
    exchange = {"y": "z", "z": "y", "Y": "Z", "Z": "Y"}
    step = max(1, round(1 / share))
    places = [place for place, c in enumerate(text) if c in exchange][::step]
    chosen = set(places)
    return "".join(exchange[c] if i in chosen else c for i, c in enumerate(text))


def _letters(text: str) -> list[int]:
    return [place for place, c in enumerate(text) if c.isalpha()]


def _chosen(places: Sequence[int], share: float, rng: random.Random) -> list[int]:
    """Return a share of the places, at least one where there is any."""
    if not places:
        return []
    count = min(len(places), max(1, round(share * len(places))))
    return sorted(rng.sample(list(places), count))


def _changed(
    text: str,
    places: Sequence[int],
    share: float,
    rng: random.Random,
    change: Callable[[str], str],
) -> str:
    out = list(text)
    for place in _chosen(places, share, rng):
        letter = text[place]
        new = change(letter.lower())
        out[place] = new.upper() if letter.isupper() else new
    return "".join(out)
