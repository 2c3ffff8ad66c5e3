"""Porter's stemmer with the extensions that ROUGE's reference implementation uses.

Source:
    M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980; the extensions are those
    of NLTK's default mode, whose stems the tests compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

_VOWELS = frozenset("aeiou")
_IRREGULAR = {
    form: stem
    for stem, forms in {
        "sky": ("sky", "skies"),
        "die": ("dying",),
        "lie": ("lying",),
        "tie": ("tying",),
        "news": ("news",),
        "inning": ("innings", "inning"),
        "outing": ("outings", "outing"),
        "canning": ("cannings", "canning"),
        "howe": ("howe",),
        "proceed": ("proceed",),
        "exceed": ("exceed",),
        "succeed": ("succeed",),
    }.items()
    for form in forms
}


class _Rule(NamedTuple):
    suffix: str
    replacement: str
    holds: Callable[[str], bool] = lambda _stem: True


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of a lower-case word; words of at most two letters stay."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    for step in (_plurals, _past, _final_y, _double_suffixes, _suffixes, _long, _final_e, _final_l):
        word = step(word)
    return word


def _consonants(word: str) -> list[bool]:
    flags: list[bool] = []
    for index, letter in enumerate(word):
        flags.append(letter not in _VOWELS and not (letter == "y" and index > 0 and flags[-1]))
    return flags


def _measure(word: str) -> int:
    """Return how often a vowel is followed by a consonant."""
    flags = _consonants(word)
    return sum(not a and b for a, b in pairwise(flags))


def _positive(word: str) -> bool:
    return _measure(word) > 0


def _ends_short(word: str) -> bool:
    """Return whether a word ends in consonant, vowel, consonant other than w, x and y."""
    flags = _consonants(word)
    if len(word) == 2:
        return flags == [False, True]
    return len(word) >= 3 and flags[-3:] == [True, False, True] and word[-1] not in "wxy"


def _replaced(word: str, rules: Sequence[_Rule]) -> str:
    """Apply the first rule whose suffix fits; if its condition fails, nothing is done."""
    for suffix, replacement, holds in rules:
        if word.endswith(suffix):
            base = word[: len(word) - len(suffix)]
            return base + replacement if holds(base) else word
    return word


def _plurals(word: str) -> str:
    if word.endswith("ies") and len(word) == 4:
        return word[:-1]
    return _replaced(word, _PLURALS)


def _past(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _positive(word[:-3]) else word
    for suffix in ("ed", "ing"):
        base = word.removesuffix(suffix)
        if base != word and not all(_consonants(base)):
            return _repaired(base)
    return word


def _repaired(base: str) -> str:
    """Return what is left of "hopped", "filing" and the like as a word."""
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    double = len(base) >= 2 and base[-1] == base[-2] and _consonants(base)[-1]
    if double:
        return base if base[-1] in "lsz" else base[:-1]
    return base + "e" if _measure(base) == 1 and _ends_short(base) else base


def _final_y(word: str) -> str:
    base = word.removesuffix("y")
    if base != word and len(base) > 1 and _consonants(base)[-1]:
        return base + "i"
    return word


def _double_suffixes(word: str) -> str:
    if word.endswith("alli") and _positive(word[:-4]):
        return _double_suffixes(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _positive(word[:-3]) else word
    return _replaced(word, _DOUBLE)


def _suffixes(word: str) -> str:
    return _replaced(word, _SINGLE)


def _long(word: str) -> str:
    return _replaced(word, _LONG)


def _final_e(word: str) -> str:
    base = word.removesuffix("e")
    if base == word:
        return word
    size = _measure(base)
    return base if size > 1 or (size == 1 and not _ends_short(base)) else word


def _final_l(word: str) -> str:
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


_PLURALS = (_Rule("sses", "ss"), _Rule("ies", "i"), _Rule("ss", "ss"), _Rule("s", ""))
_DOUBLE = tuple(
    _Rule(suffix, replacement, _positive)
    for suffix, replacement in (
        ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"),
        ("izer", "ize"), ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"),
        ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"), ("ator", "ate"),
        ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"),
        ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"), ("fulli", "ful"),
    )
)  # fmt: skip
_SINGLE = tuple(
    _Rule(suffix, replacement, _positive)
    for suffix, replacement in (
        ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"),
        ("ful", ""), ("ness", ""),
    )
)  # fmt: skip


def _is_long(base: str) -> bool:
    return _measure(base) > 1


_LONG = (
    *(
        _Rule(suffix, "", _is_long)
        for suffix in ("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment")
    ),
    _Rule("ent", "", _is_long),
    _Rule("ion", "", lambda base: _is_long(base) and base[-1] in "st"),
    *(_Rule(suffix, "", _is_long) for suffix in ("ou", "ism", "ate", "iti", "ous", "ive", "ize")),
)
