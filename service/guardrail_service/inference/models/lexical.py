"""Compares a claim with its evidence word by word: the cheap half of the grounding model.

Numbers, names, negations and quantifiers that an encoder blurs, as features beside its token
embeddings. Training and serving both call these functions; `LEXICAL_VERSION` is part of the
fingerprint of every score that comes out.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from guardrail_service.text.sample import TokenSpan

LEXICAL_VERSION = "rag-guardrail-lexical/1"
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

CLAIM_FEATURES = 15
PASSAGE_FEATURES = 11
PAIR_FEATURES = 22
VOCABULARY = 30_522
"""WordPiece ids of the encoder grow with rarity, so the id's logarithm stands for the frequency."""


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP = _listed(
    "a an the of in on at to for from by with as and or but if then than that this these those is"
    " are was were be been being am do does did done has have had having it its he she they them"
    " his her their our your my i you we us him me so such also into over under about between"
    " during before after above below up down out off again there here when where which who whom"
    " whose what how why can could will would shall should may might must just very more most some"
    " any each other own same s t"
)
_NEGATION = _listed(
    "no not never none nobody nothing neither nor without cannot isn aren wasn weren don doesn"
    " didn hasn haven hadn won wouldn couldn shouldn ain unable fail fails failed lack lacks"
    " lacked hardly barely refused denied false except"
)
_QUANTIFIER = _listed(
    "all every only always never most many few several half both either any each none more less"
    " least exactly first last sole entire whole majority minority mainly mostly always often"
    " rarely sometimes must may might could"
)
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    " fifteen sixteen seventeen eighteen nineteen twenty"
)
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_UNITS.split())} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "seventy": "70",
    "eighty": "80",
    "ninety": "90",
    "hundred": "100",
    "thousand": "1000",
    "once": "1",
    "twice": "2",
}
_TENS = _listed("twenty thirty forty fifty sixty seventy eighty ninety")
KEPT_WORDS = 8_192
KEPT_CHARS = 32
"""Words repeat more than anything else; 8,000 take about 2 MB, whatever the text at most 4 MB."""
_ENDINGS = ("ings", "ing", "edly", "ed", "ies", "es", "ly", "s", "e", "y")


class Lexical(NamedTuple):
    """One text's tokens, special tokens excluded; every array has one entry per token.

    Attributes:
        ids: Token ids.
        words: A hash of the normalised word the token belongs to ("1,200" is 1200, "two" is 2).
        stems: A hash of the word without its ending.
        number, stop, negation, capital, quantifier, inner, word: Flags; `inner` marks a token that
            continues a word, `word` one that holds a letter or a digit.
        rarity: Logarithm of the token's rank, 0 to 1.
        marks: Six of the flags and the rarity as numbers, shape (tokens, 7).
    """

    ids: Ints
    words: Ints
    stems: Ints
    number: npt.NDArray[np.bool_]
    stop: npt.NDArray[np.bool_]
    negation: npt.NDArray[np.bool_]
    capital: npt.NDArray[np.bool_]
    quantifier: npt.NDArray[np.bool_]
    inner: npt.NDArray[np.bool_]
    word: npt.NDArray[np.bool_]
    rarity: Floats
    marks: Floats


class _Word(NamedTuple):
    """The part of the columns of `Lexical` that belongs to a word wherever it stands."""

    word: int
    stem: int
    is_number: bool
    is_stop: bool
    is_negation: bool
    is_capital: bool
    is_quantifier: bool
    is_word: bool


class PairFeatures(NamedTuple):
    """Inputs of the head beside the embeddings: (n, 15), (m, 11), (n, m) and (22,)."""

    claim: Floats
    passage: Floats
    match: Floats
    pair: Floats


def lexical(text: str, spans: Sequence[TokenSpan], ids: Sequence[int]) -> Lexical:
    """Return the lexical view of a text whose tokens are given, special tokens excluded."""
    columns: list[tuple[int, int, bool, bool, bool, bool, bool, bool, bool]] = []
    first = True
    for start, end in _words(text, spans):
        raw = text[spans[start].start : spans[end - 1].end]
        found = _known(raw) if len(raw) <= KEPT_CHARS else _word(raw)
        facts = (*found[:5], found.is_capital and not first, found.is_quantifier)
        first = first and not found.is_word
        columns.append((*facts, False, found.is_word))
        columns += [(*facts, True, found.is_word)] * (end - start - 1)
    table = np.array(columns, dtype=np.int64).reshape(-1, 9)
    flags = table[:, 2:].astype(bool)
    known = np.array(ids, dtype=np.int64)
    rarity = (np.log1p(known) / np.log1p(VOCABULARY)).astype(np.float32)
    number, stop, negation, capital, quantifier, inner, word = flags.T
    marks = np.empty((len(known), len(_OF_CLAIM)), np.float32)
    marks[:, :-1], marks[:, -1] = flags[:, :-1], rarity
    return Lexical(
        known, table[:, 0], table[:, 1], number, stop, negation, capital, quantifier, inner, word,
        rarity, marks,
    )  # fmt: skip


def pair_features(
    claim: Lexical, sentences: Sequence[Lexical], cosines: Sequence[float]
) -> PairFeatures:
    """Return the features of a claim and the passage sentences chosen for it, nearest first.

    Args:
        claim: The claim.
        sentences: At least one passage sentence.
        cosines: Cosine of each sentence's embedding with the claim's.
    """
    ids, words, stems = (_joined(sentences, name) for name in ("ids", "words", "stems"))
    match = (claim.ids[:, None] == ids[None, :]).astype(np.float32)
    same_words = claim.words[:, None] == words
    same_stems = claim.stems[:, None] == stems
    exact = same_words.any(axis=1)
    near = exact | same_stems.any(axis=1)
    follows = (_bigrams(claim.words)[:, None] == _bigrams(words)).any(axis=1)
    unsaid = ~exact
    claim_table = np.empty((len(exact), CLAIM_FEATURES), np.float32)
    claim_table[:, _OF_CLAIM] = claim.marks
    _fill(claim_table, {
        0: exact, 1: near, _LEFT: False, _RIGHT: False, 5: claim.number & exact,
        6: claim.number & unsaid, 10: claim.capital & ~near, 12: claim.quantifier & unsaid,
    })  # fmt: skip
    claim_table[1:, _LEFT] = claim_table[:-1, _RIGHT] = follows
    lengths = [len(s.ids) for s in sentences]
    passage_table = np.empty((len(ids), PASSAGE_FEATURES), np.float32)
    passage_table[:, _OF_PASSAGE] = _joined(sentences, "marks")
    _fill(passage_table, {
        0: same_words.any(axis=0), 1: same_stems.any(axis=0),
        9: np.repeat(np.asarray(cosines, np.float32), lengths),
        10: np.repeat(np.arange(len(lengths), dtype=np.float32) / 6.0, lengths),
    })  # fmt: skip
    near_top = same_stems[:, : lengths[0]].any(axis=1)
    return PairFeatures(
        claim_table,
        passage_table,
        match,
        _pair(claim, sentences, cosines, _Overlap(exact, near, near_top, follows)),
    )


_LEFT, _RIGHT = 2, 3
"""Columns of the claim: whether a token and its neighbour on that side follow each other there."""
_OF_CLAIM, _OF_PASSAGE = (4, 7, 8, 9, 11, 13, 14), slice(2, 9)
"""Columns of `Lexical.marks` in the table of the claim and in that of the passage."""


def _joined(sentences: Sequence[Lexical], name: str) -> npt.NDArray[Any]:
    """Return one column of all sentences, one after another."""
    if len(sentences) == 1:
        only: npt.NDArray[Any] = getattr(sentences[0], name)
        return only
    return np.concatenate([getattr(s, name) for s in sentences])


def _fill(table: Floats, columns: Mapping[int, npt.NDArray[Any] | bool]) -> None:
    """Write columns into a table."""
    for number, values in columns.items():
        table[:, number] = values


class _Overlap(NamedTuple):
    """The words of a claim that the evidence has, one flag per token; `follows` one per pair."""

    exact: npt.NDArray[np.bool_]
    near: npt.NDArray[np.bool_]
    near_top: npt.NDArray[np.bool_]
    follows: npt.NDArray[np.bool_]


def _pair(
    claim: Lexical, sentences: Sequence[Lexical], cosines: Sequence[float], held: _Overlap
) -> Floats:
    exact, near, near_top, follows = map(_bits, held)
    own = ~_bits(claim.inner)
    is_content = claim.word & ~claim.stop & ~claim.inner
    content = _bits(is_content)
    numbers = _bits(claim.number) & own
    names = _bits(claim.capital) & own
    quantifiers = _bits(claim.quantifier) & own
    unsaid, unlike = ~exact, ~near
    negated = bool(_bits(claim.negation))
    negated_top = bool(_bits(sentences[0].negation))
    rare = claim.rarity * is_content
    pairs = len(held.follows)
    values = (
        _share(near, content), bool(numbers), _share(unsaid, numbers),
        min((numbers & unsaid).bit_count(), 3) / 3, bool(names), _share(unlike, names),
        bool(names & unlike), negated, negated_top, negated != negated_top, bool(quantifiers),
        _share(unsaid, quantifiers), np.log1p(len(claim.ids)) / 5,
        np.log1p(sum(len(s.ids) for s in sentences)) / 6, cosines[0],
        sum(cosines) / len(cosines), len(sentences) / 6,
        follows.bit_count() / pairs if pairs else 0.0,
        (rare * held.near).sum() / max(rare.sum(), 1e-6), _share(near_top, content),
        _share(exact, content), min(content.bit_count(), 20) / 20,
    )  # fmt: skip
    return np.array(values, dtype=np.float32)


def _bits(flags: npt.NDArray[np.bool_]) -> int:
    """Return flags as the bits of one integer: counting those is ten times faster."""
    return int.from_bytes(np.packbits(flags).tobytes(), "big")


def _share(hits: int, among: int) -> float:
    """Return the share of hits among some tokens, given as bits; 0 where there are none."""
    total = among.bit_count()
    return (hits & among).bit_count() / total if total else 0.0


def _bigrams(words: Ints) -> Ints:
    """Return a number per pair of neighbouring tokens' words."""
    return words[:-1] * 31 + words[1:]


def _word(raw: str) -> _Word:
    plain = _normal(raw)
    is_word = any(map(str.isalnum, raw))
    return _Word(
        _hash(plain),
        _hash(_stem(plain)),
        plain[:1].isdigit(),
        plain in STOP or not is_word,
        plain in _NEGATION,
        raw[:1].isupper(),
        plain in _QUANTIFIER,
        is_word,
    )


_known = lru_cache(KEPT_WORDS)(_word)


def _words(text: str, spans: Sequence[TokenSpan]) -> list[tuple[int, int]]:
    """Return token ranges [first, last) that make up words; "1,200" is one word."""
    found: list[tuple[int, int]] = []
    start = 0
    for token in range(1, len(spans) + 1):
        if token < len(spans) and _continues(text, spans, token):
            continue
        if token > start:
            found.append((start, token))
        start = token
    return _joined_numbers(text, spans, found)


def _joined_numbers(
    text: str, spans: Sequence[TokenSpan], words: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the words with "twenty-six" as one."""
    if "-" not in text:
        return words
    joined: list[tuple[int, int]] = []
    for first, last in words:
        joined.append((first, last))
        if len(joined) >= 3:
            start = joined[-3][0]
            whole = text[spans[start].start : spans[last - 1].end]
            if _compound(whole.lower()) is not None:
                joined[-3:] = [(start, last)]
    return joined


def _compound(plain: str) -> str | None:
    """Return the number that two words with a hyphen name, or None."""
    tens, hyphen, units = plain.partition("-")
    if not hyphen or tens not in _TENS or units not in _NUMBER_WORDS:
        return None
    return str(int(_NUMBER_WORDS[tens]) + int(_NUMBER_WORDS[units]))


def _continues(text: str, spans: Sequence[TokenSpan], token: int) -> bool:
    """Return whether a token belongs to the same word as the one before it."""
    before, here = spans[token - 1], spans[token]
    if before.end != here.start:
        return here.start < before.end
    left, right = text[before.end - 1], text[here.start]
    if left.isalnum() and right.isalnum():
        return True
    if right in ",." and left.isdigit():
        return here.end < len(text) and text[here.end].isdigit()
    if left not in ",." or not right.isdigit():
        return False
    return before.start > 0 and text[before.start - 1].isdigit()


def _normal(raw: str) -> str:
    plain = raw.lower()
    if plain[:1].isdigit():
        plain = plain.replace(",", "")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    return _compound(plain) or _NUMBER_WORDS.get(plain, plain)


def _stem(word: str) -> str:
    if word[:1].isdigit():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: len(word) - len(ending)]
    return word


def _hash(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))
