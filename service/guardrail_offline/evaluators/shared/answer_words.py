"""A text's words, for every script: what exact match, overlap and the ladder compare."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import re2

from guardrail_service.text.patterns.search import encodable

_ARTICLES = frozenset(("a", "an", "the"))
_SIGNS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_SIGN = re2.compile(rf"[{_SIGNS}]")
_WORD = re2.compile(
    rf"\d+(?:[.,:/]\d+)*|[{_SIGNS}]|\p{{Hangul}}+|"
    rf"[^\P{{L}}{_SIGNS}](?:[^\P{{L}}{_SIGNS}]|\p{{M}}|\d|['\x{{2019}}][\p{{L}}])*|\p{{S}}|%|#"
)
_INITIALS = re2.compile(r"(?:^|[^\p{L}\p{N}])((?:\p{L}\.){2,}\p{L}?)")
_MINUS = frozenset("-\u2212")


def has_signs(text: str) -> bool:
    """Return whether a text has letters of a script that puts no blanks between words."""
    return _SIGN.search(encodable(text)) is not None


def squad_words(text: str) -> list[str]:
    """Return the words of a text as SQuAD's evaluation counts them.

    Lower case, without punctuation and English articles, cut at blanks. Han, kana, Thai and other
    signs of scripts without blanks are one word each, as MLQA's evaluation has it.

    Source:
        P. Rajpurkar et al., "SQuAD", 2016, evaluate-v1.1.py; P. Lewis et al., "MLQA", 2020,
        `mixed_segmentation`.
    """
    if text.isascii():
        spaced = text.lower().translate(_ASCII_PUNCTUATION)
    else:
        kept = "".join(c for c in text.lower() if not _is_punctuation(c))
        spaced = _SIGN.sub(r" \g<0> ", encodable(kept)) if has_signs(kept) else kept
    return [word for word in spaced.split() if word not in _ARTICLES]


def _is_punctuation(character: str) -> bool:
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")


_ASCII_PUNCTUATION = {code: None for code in range(128) if _is_punctuation(chr(code))}


@lru_cache(maxsize=512)
def words(text: str) -> tuple[str, ...]:
    """Return the words of a text by which two texts may be called the same.

    Unlike SQuAD's they keep what tells values apart: the point of "4.5", the minus of "-5", the
    sign of "$5" and of "5 %". Case, punctuation and English articles go; "U.S." is one word.
    """
    plain = encodable(unicodedata.normalize("NFKC", text)).casefold().replace("\u2019", "'")
    if plain.count(".") > 1:
        plain = _INITIALS.sub(lambda found: found[0].replace(".", ""), plain)
    cut: list[str] = []
    for piece in plain.split() if plain.isascii() else [plain]:
        if piece.isascii() and piece.isalpha():
            cut.append(piece)
        elif piece[-1] in _CLOSING and piece.isascii() and piece[:-1].isalpha():
            cut.append(piece[:-1])
        else:
            cut += _words_of(piece)
    return tuple(word for word in cut if word not in _ARTICLES)


_CLOSING = frozenset(".,;:!?)\"'")


def _words_of(plain: str) -> Iterator[str]:
    """Yield the words of a text in small letters, or of a part of it between blanks."""
    for found in _WORD.finditer(plain):
        word, start = found[0], found.start()
        before = plain[start - 2 : start - 1] if start > 1 else ""
        if word[0].isdigit() and plain[start - 1 : start] in _MINUS and not before.isalnum():
            word = "-" + word
        yield word
