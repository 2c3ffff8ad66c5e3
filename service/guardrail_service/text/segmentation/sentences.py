"""Cuts text into sentences with exact code-point offsets; never changes or drops a character.

Rules only, no model, no regular expression: each character is looked at a bounded number of
times. Layout (lists, tables, code, wrapped lines) is `layout.py`; this file decides which
terminator ends a sentence. See docs/decisions/0001-sentence-segmenter.md.
"""

# Punctuation of every script is what this file is about.
# ruff: noqa: RUF001, RUF002, RUF003

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from guardrail_service.text.budget import BETWEEN_LOOKS, check_time
from guardrail_service.text.segmentation.abbreviations import (
    AFTER_CLOCK,
    BEFORE_NUMBER,
    BEFORE_ORDINAL,
    CLOCK,
    LIST_ENDINGS,
    MAY_END,
    MONTHS,
    NEVER_END,
    STARTERS,
)
from guardrail_service.text.segmentation.layout import (
    TERMINATORS,
    TIGHT_BULLETS,
    Unit,
    first_letter,
    starts_lower,
    units,
)

SEGMENTER_VERSION = "rag-guardrail-segmenter/1"
"""Part of every threshold's fingerprint: raise it when any text is cut differently."""
SHORT_CHARS = 10
"""Code points up to which H2O's evaluators drop a sentence, and ours join it to a neighbour."""

_SPACED = frozenset(".!?…‼⁇⁈⁉")  # end a sentence only before whitespace
_CLOSERS = frozenset(
    "\"'“”‘’«»‹›)]}>*_`~」』）》〈〉】"
    "¹²³⁰⁴⁵⁶⁷⁸⁹†‡"  # footnote marks
    "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_TITLE_CLOSERS = frozenset("》〉")  # "《...？》" is a title inside a sentence
_WORD_STOPS = frozenset("\"'“”‘’«»„‚([{<*_`~¿¡/—–") | TIGHT_BULLETS
_LONGEST_WORD = 24  # no listed word is longer; keeps every look around a stop bounded
_LONGEST_CITATION = 80  # "[source: some-file-name.pdf, page 12]"
_NUMBER_FORMS = ("{}. ", "{}) ", "({}) ", "{}.) ")  # how items are numbered inside a line
_CJK = (0x2E80, 0x9FFF)  # radicals to unified ideographs, kana and CJK punctuation included


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text` is `source[start:end]`, code points, no whitespace at either end, never empty."""

    start: int
    end: int
    text: str


def split_sentences(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of `text` in order.

    Every non-whitespace character is in exactly one sentence. Headings, table rows (a delimiter
    row belongs to the row above) and lines of fenced code (a fence belongs to its neighbour) are
    one sentence each; a list marker belongs to its item. Blank lines always separate. Any `str`
    is accepted, lone surrogates included. Time is linear in the length.
    """
    return tuple(
        Sentence(start, end, text[start:end])
        for unit in units(text)
        for start, end in _spans(text, unit)
    )


def merge_short(
    sentences: Sequence[Sentence], source: str, min_chars: int = SHORT_CHARS
) -> tuple[Sentence, ...]:
    """Merge each sentence of at most `min_chars` code points, or without a word, into a neighbour.

    It joins the following sentence, unless the one before it is nearer (fewer line ends between)
    or it is the last. A text of short sentences only stays one or more sentences, the last of
    which may be short only if it is the only one.

    Args:
        sentences: What `split_sentences(source)` returned.
        source: The text they were cut from.
        min_chars: How long a short sentence may be.
    """
    merged: list[tuple[int, int]] = []
    start: int | None = None  # of short sentences waiting for the one that follows
    gap = 0  # line ends before them
    has_word = False
    for i, sentence in enumerate(sentences):
        if start is None:
            start, has_word = sentence.start, False
            gap = source.count("\n", merged[-1][1], start) if merged else 0
        has_word = has_word or any(map(str.isalnum, sentence.text))
        is_last = i + 1 == len(sentences)
        if sentence.end - start > min_chars and has_word:
            merged.append((start, sentence.end))
        elif merged and (is_last or gap < source.count("\n", sentence.end, sentences[i + 1].start)):
            merged[-1] = (merged[-1][0], sentence.end)
        elif is_last:
            merged.append((start, sentence.end))
        else:
            continue
        start = None
    return tuple(Sentence(a, b, source[a:b]) for a, b in merged)


def is_short(text: str, min_chars: int = SHORT_CHARS) -> bool:
    """Return whether `merge_short` joins a sentence that has others beside it to one of them."""
    return len(text) <= min_chars or not any(map(str.isalnum, text))


def _spans(text: str, unit: Unit) -> Iterable[tuple[int, int]]:
    whole = not unit.prose or (
        # Most lines of lists and labels: not worth the walk below.
        TERMINATORS.isdisjoint(text[unit.body : unit.end])
        and text.find("2", unit.start, unit.end) < 0
        and text[unit.start] not in TIGHT_BULLETS
    )
    return ((unit.start, unit.end),) if whole else _prose(text, unit)


def _prose(text: str, unit: Unit) -> Iterator[tuple[int, int]]:
    """Yield the sentence spans of one unit; a piece without letter or digit joins the one before.

    The pieces come from the terminators; whitespace around them is left out.
    """
    start = unit.start
    last: tuple[int, int] | None = None
    for stop in _ends(text, unit):
        piece = (first_ink(text, start, stop), last_ink(text, start, stop))
        start = stop
        if piece[0] >= piece[1]:
            continue
        if last is None:
            last = piece
        elif any(map(str.isalnum, text[piece[0] : piece[1]])):
            yield last
            last = piece
        else:
            last = (last[0], piece[1])
    if last is not None:
        yield last


def first_ink(text: str, start: int, end: int) -> int:
    """Return the offset of the first non-whitespace character in `text[start:end]`, or `end`."""
    while start < end and text[start].isspace():
        start += 1
    return start


def last_ink(text: str, start: int, end: int) -> int:
    """Return the offset behind the last non-whitespace character in `text[start:end]`."""
    while end > start and text[end - 1].isspace():
        end -= 1
    return end


def _ends(text: str, unit: Unit) -> Iterator[int]:
    """Yield the offsets at which a sentence of the unit ends, its quotes and citations included."""
    body = text[unit.body : unit.end]
    hits = [i for i, char in enumerate(body, unit.body) if char in TERMINATORS]
    # All lower-case: capitals cannot tell where sentences start.
    lower = bool(hits) and body == body.lower()
    begin = done = unit.body
    stops = iter((*_inline_items(text, unit), unit.end))
    stop = next(stops)
    for count, hit in enumerate(hits, 1):
        if not count % BETWEEN_LOOKS:
            check_time()
        while hit >= stop:
            yield stop
            begin = done = stop
            stop = next(stops)
        if hit < done:
            continue
        done = _after(text, hit, stop)
        if _breaks(text, begin, hit, done, stop, lower):
            yield done
            begin = first_ink(text, done, stop)
    yield stop
    yield from stops


def _inline_items(text: str, unit: Unit) -> list[int]:
    """Return where items two and later begin in a list that has lost its line ends.

    "1) Log in 2) Save": the numbers must count up from 1 with the same signs around them. Bullets
    count if the unit starts with the same one.
    """
    if text[unit.start] in TIGHT_BULLETS:
        return _repeated(text, text[unit.start], unit)
    if text.find("2", unit.start, unit.end) < 0:
        return []
    for form in _NUMBER_FORMS:
        first = form.format(1)
        at = unit.start
        if not text.startswith(first, at):
            at = text.find(" " + first, unit.start, unit.end)
        if at < 0:
            continue
        starts: list[int] = []
        number = 2
        while (at := text.find(" " + form.format(number), at + 1, unit.end)) >= 0:
            starts.append(at + 1)
            number += 1
        if starts:
            return starts
    return []


def _repeated(text: str, bullet: str, unit: Unit) -> list[int]:
    starts = []
    at = unit.start
    while (at := text.find(bullet, at + 1, unit.end)) >= 0:
        starts.append(at)
    return starts


def _after(text: str, hit: int, end: int) -> int:
    """Return the offset behind the terminator's run, closing quotes, brackets and citations."""
    at = hit + 1
    while at < end:
        char = text[at]
        if char in _CLOSERS or char in TERMINATORS or _is_pictograph(char):
            at += 1
        elif char in "[【":
            close = _citation_end(text, at, end, adjoining=True)
            if close == at:
                return at
            at = close
        elif char in "  \u00a0\u202f" and at + 1 < end:
            close = _behind_space(text, at + 1, end)
            if close == at + 1:
                return at
            at = close
        else:
            return at
    return at


def _behind_space(text: str, at: int, end: int) -> int:
    """Return the end of a citation, emoji or French closing quote at `at`, or `at` if none."""
    if text[at] == "»" and not text[at + 1 : at + 2].isalnum():
        return at + 1
    if _is_pictograph(text[at]):
        return at + 1
    if text[at] in "[【":
        return _citation_end(text, at, end, adjoining=False)
    return at


def _citation_end(text: str, at: int, end: int, *, adjoining: bool) -> int:
    """Return the offset behind "[12]", "[^1]", "[doc-7#3]", "【3†file】" at `at`, or `at`.

    Set off by a space, or in the CJK brackets that also mark headings, it must look like a
    reference: start with a digit or "^", or hold a digit and no space.
    """
    closing = "]" if text[at] == "[" else "】"
    limit = min(end, at + _LONGEST_CITATION)
    close = text.find(closing, at, limit)
    inner = text[at + 1 : close]
    if close < 0 or not inner or "\n" in inner:
        return at
    is_reference = inner[0].isdecimal() or inner[0] == "^"
    is_reference = is_reference or (any(map(str.isdecimal, inner)) and " " not in inner)
    if not is_reference and not (adjoining and closing == "]"):
        return at
    if text[close + 1 : close + 2] == "(":  # "[1](https://...)"
        address_end = text.find(")", close, min(end, close + 2 * _LONGEST_CITATION))
        return address_end + 1 if address_end >= 0 else close + 1
    return close + 1


def _breaks(text: str, begin: int, hit: int, done: int, end: int, lower: bool) -> bool:
    """Return whether the sentence that starts at `begin` ends with the terminator at `hit`."""
    if done >= end:
        return True
    if hit > begin and text[hit - 1] in "[(":  # "[...]" leaves something out
        return False
    if text[hit] not in _SPACED:
        return _breaks_without_space(text, hit, done)
    if not text[done].isspace():
        return hit > 0 and _is_cjk(text[hit - 1]) and _is_cjk(text[done])
    at = first_letter(text, done, end)
    if at >= end or not text[at].isalnum():
        return not (at < end and text[at] in TERMINATORS)
    below = starts_lower(text, at, end)
    if text[hit] != "." or text[hit + 1 : hit + 2] == ".":
        return not below or (lower and text[hit] in "!?")
    if below and not lower:
        return False
    return _full_stop_ends(text, begin, hit, at, end)


def _breaks_without_space(text: str, hit: int, done: int) -> bool:
    """Decide for terminators of scripts that need no space behind them."""
    following = text[done]
    if text[hit] == "．" and following.isdecimal():
        return False
    if done == hit + 1 or following.isspace():
        return True
    is_title = not _TITLE_CLOSERS.isdisjoint(text[hit:done][:_LONGEST_WORD])
    is_hiragana = "ぁ" <= following <= "ゟ"  # 「はい。」と彼は...
    return not is_title and not is_hiragana


def _is_pictograph(char: str) -> bool:
    """Return whether the character is an emoji, a dingbat or a variation selector."""
    if char >= "\U0001f000":
        return not char.isalnum()
    return "☀" <= char <= "➿" or char == "\ufe0f"


def _is_cjk(char: str) -> bool:
    return _CJK[0] <= ord(char) <= _CJK[1]


def _full_stop_ends(text: str, begin: int, hit: int, at: int, end: int) -> bool:
    """Decide for one full stop before whitespace and a word, from the words on both sides."""
    start = _word_start(text, begin, hit)
    word = text[start:hit]
    following = _word_at(text, at, end)
    if word.isdecimal():
        return _number_ends(text, begin, start, word, following)
    name = word.lower()
    starter = following in STARTERS and not _is_initial(text, at)
    if starter and name in NEVER_END and word.isupper() and len(word) > 1:  # "by HR. The head"
        return True
    if name in NEVER_END or (start == begin and len(word) == 1):  # "a." opens a list item
        return False
    if name in BEFORE_NUMBER and _is_number(following):
        return False
    if name in CLOCK:
        return following not in AFTER_CLOCK
    if name in LIST_ENDINGS:
        return True
    if name in MAY_END or "." in word:
        return starter or not _is_abbreviation(word, name)
    if len(word) == 1 and word.isalpha():
        return starter or not _is_cased(following) or _is_unit(text, begin, start, word)
    return True


def _word_start(text: str, begin: int, hit: int) -> int:
    start = hit
    floor = max(begin, hit - _LONGEST_WORD)
    while start > floor and not text[start - 1].isspace() and text[start - 1] not in _WORD_STOPS:
        start -= 1
    return start


def _word_at(text: str, at: int, end: int) -> str:
    stop = at
    ceiling = min(end, at + _LONGEST_WORD)
    while stop < ceiling and (text[stop].isalnum() or text[stop] == "'"):
        stop += 1
    return text[at:stop]


def _is_abbreviation(word: str, name: str) -> bool:
    """Return whether a listed or dotted word is one: "U.S", "Ph.D", not "config.yaml"."""
    return name in MAY_END or all(part.isalpha() and len(part) <= 3 for part in word.split("."))


def _is_number(word: str) -> bool:
    return word[:1].isdecimal() or (word != "" and set("IVX").issuperset(word))


def _is_initial(text: str, at: int) -> bool:
    return text[at + 1 : at + 2] == "."


def _is_cased(word: str) -> bool:
    return word[:1].lower() != word[:1].upper()


def _is_unit(text: str, begin: int, start: int, word: str) -> bool:
    """Return whether a single small letter follows a number: "1990 г.", "5 m."."""
    before = text[max(begin, start - 2) : start].rstrip()
    return word.islower() and before[-1:].isdecimal()


def _number_ends(text: str, begin: int, start: int, word: str, following: str) -> bool:
    """Tell a number that ends a sentence from a list marker and from an ordinal ("am 3. Mai")."""
    before = text[max(begin, start - _LONGEST_WORD) : start].rstrip()
    if len(word) > 3:
        return True
    if not before or before[-1] in ":;,(" or before[-1] in TIGHT_BULLETS:
        return False
    if len(word) > 2:
        return True
    words = before.split()
    return following.lower() not in MONTHS and words[-1].lower() not in BEFORE_ORDINAL
