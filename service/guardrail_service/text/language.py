"""Tells which language a text is in, from words only. The only file that imports py3langid.

Nothing is read at import time: `load()` reads the model inside the py3langid wheel (0.7 s, 73 MB
resident; it needs a writable temporary directory while it unpacks). No network.
See docs/decisions/0002-language-identification.md.
"""

import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from threading import Lock
from typing import NamedTuple

import numpy as np
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from guardrail_service.text.budget import in_time

MIN_LETTERS = 10
"""Letters of an alphabet that several languages share below which nothing is said.

Of tests/golden/languages.jsonl cut to 10 letters, 2 of 156 are named wrongly, as many as at 20 and
30: the probability decides there. At 5 letters 3 of the 25 that are named are wrong.
"""
MIN_PROBABILITY = 0.5
"""Below this `identify` says nothing."""
MISMATCH_PROBABILITY = 0.8
"""Both texts need it before they are said to differ: a false mismatch stops a good answer."""

_LETTERS_PER_SIGN = 3
"""Letters that one Han, kana, Hangul or other sign of a telling script counts as: four suffice."""
_SHARED_SCRIPTS = (
    (0x0000, 0x02FF),  # Latin
    (0x1E00, 0x1EFF),  # Latin, Vietnamese
    (0x0400, 0x052F),  # Cyrillic
    (0x0600, 0x077F),  # Arabic
    (0x0900, 0x09FF),  # Devanagari, Bengali
)
_READ_CHARS = 4000
"""Of the words kept, so that cost is bounded. A few hundred give a probability above 0.99."""
_KEPT_TEXTS = 512
_KEPT_CHARS = 4000
"""Questions and sets of passages repeat; 512 texts of at most 4,000 characters are 2 to 8 MB."""
_LAST_LATIN, _LATIN_ADDED, _GREEK_ADDED = 0x02FF, 0x1E00, 0x1F00
_MARKUP_CHARS = 900
"""Longest address or tag whose letters are taken for unseen."""
_CODE_SIGNS = frozenset("@\\/_=<>{}[]|$#&^~+%")
_EDGES = "\"'“”‘’«»„()[]{}.,;:!?…*。，？！、؟،"  # noqa: RUF001 - punctuation of several scripts

_SAME = (
    # Not told apart reliably in a sentence or two, or written forms of one language.
    {"no", "nn", "da"},
    {"hr", "sr", "bs"},
    {"id", "ms"},
    {"pt", "gl"},
    {"es", "gl"},
    {"cs", "sk"},
    {"hi", "mr", "ne", "sa"},
    {"nl", "af"},
    {"xh", "zu"},
)
_CLOSE = {
    code: frozenset[str]().union(*(group for group in _SAME if code in group))
    for code in frozenset[str]().union(*_SAME)
}
"""Each code of `_SAME` with all that count as one language with it."""
_LEFT_OUT = frozenset(
    # Labels that short text with names may fall into; a text in one of them gets a neighbour's.
    # A judgement, not a measurement: few RAG answers are in Latin, Esperanto or Walloon.
    {"an", "wa", "vo", "eo", "la", "oc", "br", "se", "fo", "ht", "qu", "jv"}
)

_lock = Lock()


class Language(NamedTuple):
    """ISO 639-1 code ("no" stands for Bokmål and Nynorsk) and the model's probability."""

    code: str
    probability: float


def load() -> None:
    """Read the model if it has not been read; serving calls this before the port opens."""
    _identifier()


def identify(text: str) -> Language | None:
    """Return the language of `text`, or None where the text does not tell.

    Code, links, addresses and numbers are left out first. None means too few letters (10 of a
    shared alphabet, 4 signs of a script such as Han or Hangul), no language with a probability
    of one half, or an answer that changes when capitalised words (names) are left out.
    Thread-safe; time is linear in the length. Texts met lately are not read again.
    """
    return _remembered(text) if len(text) <= _KEPT_CHARS else _identify(text)


def _identify(text: str) -> Language | None:
    words = _words(text)
    language = _classify(words)
    if language is None:
        return None
    plain = [word for i, word in enumerate(words) if i == 0 or not word[0].isupper()]
    if len(plain) < len(words):
        unnamed = _likeliest(" ".join(plain))
        if unnamed is None or not are_close(unnamed, language.code):
            return None
    return language


_remembered = lru_cache(_KEPT_TEXTS)(_identify)


def has_words(text: str) -> bool:
    """Return whether a reader sees a letter or digit; addresses of links and tags are not seen."""
    at = 0
    while at < len(text):
        if text[at].isalnum():
            return True
        at = max(at + 1, _end_of_markup(text, at))
    return False


def _end_of_markup(text: str, at: int) -> int:
    """Return the end of the tag, address or line around code that begins at `at`, or -1."""
    if text[at] == "<":
        return text.find(">", at, at + _MARKUP_CHARS) + 1
    if text.startswith("](", at):
        return text.find(")", at, at + _MARKUP_CHARS) + 1
    if text.startswith(("```", "~~~"), at):
        end = text.find("\n", at, at + _MARKUP_CHARS)
        return end + 1 if end >= 0 else len(text) if len(text) - at < _MARKUP_CHARS else -1
    return -1


def is_foreign(text: str) -> bool:
    """Return whether most of a text is in letters that no language with a Latin alphabet has."""
    if text.isascii():
        return False
    latin = foreign = 0
    for char in "".join(_words(text)):
        if not char.isalpha():
            continue
        if ord(char) <= _LAST_LATIN or _LATIN_ADDED <= ord(char) < _GREEK_ADDED or _is_styled(char):
            latin += 1
        else:
            foreign += _weight(char)
    return foreign > latin


def letters(text: str) -> int:
    """Return how many letters the words of a text have that tell its language, up to a bound."""
    return sum(map(len, _words(text)))


def same_language(a: str, b: str) -> bool | None:
    """Return whether two texts are in one language; None where that cannot be told.

    Languages that are not told apart in a sentence (no/da, hr/sr/bs, id/ms, ...) count as one.
    False needs a probability of `MISMATCH_PROBABILITY` for both.
    """
    first, second = identify(a), identify(b)
    if first is None or second is None:
        return None
    if are_close(first.code, second.code):
        return True
    if min(first.probability, second.probability) < MISMATCH_PROBABILITY:
        return None
    return False


def are_close(a: str, b: str) -> bool:
    """Return whether two codes count as one language: the same, or not told apart in a sentence."""
    return a == b or b in _CLOSE.get(a, ())


def _classify(words: list[str]) -> Language | None:
    joined = " ".join(words)
    if not _has_letters(joined):
        return None
    language = _guess(joined)
    return language if language and language.probability >= MIN_PROBABILITY else None


def _guess(text: str) -> Language | None:
    best, probability = _identifier().classify(text)
    if len(best) != 2:
        return None
    if best in _CLOSE:
        # Close languages share the probability of one text; "hr or bs?" is not the question.
        ranked = _identifier().rank(text)
        probability = sum(p for code, p in ranked if code in _CLOSE[best])
    return Language(_named(best), min(1.0, probability))


def _likeliest(text: str) -> str | None:
    """Return the code that `_guess` names, without its probability."""
    best, _ = _identifier().classify(text)
    return _named(best) if len(best) == 2 else None


def _named(code: str) -> str:
    return "no" if code == "nn" else code


def _has_letters(text: str) -> bool:
    found = 0
    for char in text:
        found += _weight(char)
        if found >= MIN_LETTERS:
            return True
    return False


def _weight(char: str) -> int:
    if not char.isalpha():
        return 0
    shared = any(low <= ord(char) <= high for low, high in _SHARED_SCRIPTS)
    return 1 if shared else _LETTERS_PER_SIGN


def _words(text: str) -> list[str]:
    """Return the first words that are neither code nor links, addresses or numbers."""
    kept: list[str] = []
    room = _READ_CHARS
    for raw in in_time(_outside_code(text)):
        word = raw.strip(_EDGES)
        for run in [word] if _is_word(word) else _runs(word):
            kept.append(run[:room])
            room -= len(run)
        if room <= 0:
            break
    return kept


def _outside_code(text: str) -> Iterator[str]:
    """Yield the whitespace-separated words outside ``` fences and `quoted code`."""
    for i, part in enumerate(text.split("```")):
        if i % 2 == 0:
            pieces = part.split("`")
            for k, piece in enumerate(pieces):
                if k % 2 == 0 or k == len(pieces) - 1:  # a last lone ` opens nothing
                    yield from piece.split()


def _runs(word: str) -> list[str]:
    """Return the runs of letters without blanks between words: digits and addresses stand in them.

    In Chinese, Japanese and Thai, and with particles in Korean, a "word" between blanks may be a
    sentence: "费用为25欧元" must not be left out for its number.
    """
    if word.isascii():
        return []
    runs = "".join(c if _is_sign(c) else " " for c in word).split()
    return [run for run in runs if run]


def _is_sign(char: str) -> bool:
    """Return whether a letter, or a mark on one, belongs to a script that tells its language."""
    if _is_styled(char):
        return False
    if unicodedata.category(char).startswith("M"):
        return ord(char) > _LAST_LATIN
    return char.isalpha() and _weight(char) > 1


def _is_styled(char: str) -> bool:
    """Return whether it is a Latin letter in another dress: wide, bold, Fraktur, circled."""
    return ord(char) > _LAST_LATIN and unicodedata.normalize("NFKC", char).isascii()


def _is_word(word: str) -> bool:
    """Return whether it is plain: no digit, no code sign, no inner dot, no camelCase."""
    if not word:
        return False
    if word.isalpha():
        return word.isupper() or not any(map(str.isupper, word[1:]))
    if not _CODE_SIGNS.isdisjoint(word) or any(map(str.isdigit, word)):
        return False
    return "." not in word and any(map(str.isalpha, word))


@cache
def _read_model() -> LanguageIdentifier:
    full = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    keep = [i for i, code in enumerate(full.nb_classes) if _is_wanted(code)]
    # Built anew: set_languages() would keep the table of all languages beside the smaller one.
    return LanguageIdentifier(
        np.take(full.nb_ptc, keep, axis=1),  # row by row in memory: a text reads some rows
        full.nb_pc[keep],
        [full.nb_classes[i] for i in keep],
        full.tk_nextmove,
        full.tk_output,
        norm_probs=True,
        tk_row=full.tk_row,
    )


def _is_wanted(code: str) -> bool:
    return code == "zxx" or (len(code) == 2 and code not in _LEFT_OUT)


def _identifier() -> LanguageIdentifier:
    with _lock:  # one reader at the first call; the model itself is only read from
        return _read_model()
