"""Finds places to cut a growing text so that no pattern's match can cross the cut. Pure.

A cut is the start of a word behind the end of a sentence. How much text must follow before a cut
counts depends on its surroundings: plain words need no more than the next word, numbers need a
little, code and addresses need more. See docs/streaming.md for the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from guardrail_service.detectors.pii.rules import ANNOUNCED
from guardrail_service.detectors.pii.streets import ROMANCE
from guardrail_service.detectors.secrets.spans import MAX_PEM, PAIRS_REACH, PAIRS_START
from guardrail_service.text.patterns.search import PatternSet, compile_regex
from guardrail_service.text.segmentation.layout import TERMINATORS
from guardrail_service.text.segmentation.sentences import split_sentences

SETTLED = 24
"""Code points of the word behind a stop that decide whether it ends a sentence."""
AFTER_NUMBERS = 48
"""Code points behind a cut beside a number: "3. | March 1990" or a building number is shorter."""
AFTER_STREET = 128
"""Code points behind a street's name that a number may follow: three words of 25 and particles."""
AFTER_SYMBOLS = 160
"""Code points behind a cut beside signs of code, where values may have blanks in them."""
CUE_REACH = 80
"""Code points after a number in which a word may still announce it: 40, and the word itself."""
SOFT_HOLD = 1_000
"""Code points without the end of a sentence after which any gap between words will do."""
CONTEXT = 256
"""Code points before the held text that decide about a cut at its beginning."""

_EDGES = ".,;:!?…。！？\"'“”‘’«»()[]【】*_`-–—>"  # noqa: RUF001 - punctuation around words
_CLOSERS = "\"'“”‘’«»)]】*_`"  # noqa: RUF001
_INNER = "-'’‑"  # noqa: RUF001
_ORDINARY = frozenset(".,:'’-–/%€$£°()")  # noqa: RUF001
_WIDE = {ord(c): f"{c} " for c in "。！？，、；：．｡"}  # noqa: RUF001 - ends of words that no gap follows
_HEX_LETTERS = frozenset("abcdefABCDEF")
_LONG_TOKEN = 24
"""Letters without a gap beyond which a token counts as code, not as a word."""
_OPENER = compile_regex(r"-{2,5} ?BEGIN\b|PuTTY-User-Key-File", "key block")
_STREET = compile_regex(rf"\b(?:{ROMANCE}|Av\.|ul\.) [^\n]*$", "street")


@cache
def _announced() -> PatternSet:
    """Return the shapes that a word behind them can turn into personal data."""
    return PatternSet([pattern for pattern in ANNOUNCED if not pattern.id.startswith("cue:")])


def cuts(text: str, released: int) -> Iterator[int]:
    """Yield the offsets behind `released` up to which `text` could leave, the furthest first.

    Args:
        text: What has arrived, or its end with at least `CONTEXT` code points before `released`.
        released: How much of it has left.
    """
    end = min(_key_block(text, released), _connection(text, released), _unannounced(text, released))
    for cut in reversed(_candidates(text, released)):
        if cut <= end and _is_settled(text, cut):
            yield cut


def _candidates(text: str, released: int) -> list[int]:
    """Return where sentences start, or words in a text that has long had no sentence."""
    held = text[released:]
    starts = [released + sentence.start for sentence in split_sentences(held)][1:]
    if len(held) <= SOFT_HOLD or (starts and starts[-1] - released > len(held) - SOFT_HOLD):
        return starts
    first = starts[-1] if starts else released
    return starts + [at for at in range(first + 1, len(text)) if _begins_word(text, at)]


def _begins_word(text: str, at: int) -> bool:
    if text[at].isspace():
        return False
    # Scripts without gaps between words: any two of their letters may be parted.
    unspaced = text[at] >= "\u2e80" and text[at - 1] >= "\u2e80"
    return text[at - 1].isspace() or (unspaced and text[at].isalpha() and text[at - 1].isalpha())


def _key_block(text: str, released: int) -> int:
    """Return where a key block begins whose end has not arrived, or the end of the text."""
    held = text[released:]
    if "BEGIN" not in held and "PuTTY-User-Key-File" not in held:
        return len(text)
    data = held.encode("utf-8", "replace")
    for match in _OPENER.finditer(data):
        start = released + len(data[: match.start()].decode())
        if len(text) - start <= MAX_PEM and not _is_closed(text, start):
            return start
    return len(text)


def _is_closed(text: str, start: int) -> bool:
    """Return whether the closing line of a key block is there, its line end included."""
    for mark in ("END ", "Private-MAC:"):
        at = text.find(mark, start)
        if at >= 0:
            return any(found >= 0 for found in (text.find("\n", at), text.find('"', at)))
    return False


def _connection(text: str, released: int) -> int:
    """Return where a connection string begins whose password may still come, or the end."""
    line = max(released, len(text) - PAIRS_REACH - AFTER_NUMBERS)
    line = max(line, *(text.rfind(mark, line) + 1 for mark in "\"'`\n"))
    tail = text[line:].lower()
    if "=" not in tail and "jdbc:" not in tail:
        return len(text)
    found = (tail.find(name) for name in PAIRS_START)
    return min((line + at for at in found if at >= 0), default=len(text))


def _unannounced(text: str, released: int) -> int:
    """Return where a number begins that a word to come may turn into personal data."""
    if not any(map(str.isdigit, text[-CUE_REACH - SETTLED :])):
        return len(text)
    start = max(released, len(text) - 3 * CUE_REACH)
    end = len(text) - CUE_REACH
    matches = _announced().scan(text[start:])
    return min((start + m.start for m in matches if start + m.end > end), default=len(text))


def _is_settled(text: str, cut: int) -> bool:
    """Return whether what has arrived behind a cut is enough to know that nothing crosses it."""
    ahead = len(text) - cut
    following = _words(text[cut : cut + CONTEXT])
    first = following[0] if following else ""
    if len(first) == ahead < SETTLED:
        return False  # the word is not complete
    before = _words(text[max(0, cut - CONTEXT) : cut])[-4:]
    if before and is_opaque(before[-1]) and is_opaque(first):
        return False
    return ahead >= _needed(text, cut, [*before, first])


def _words(text: str) -> list[str]:
    return text.translate(_WIDE).split()


def _needed(text: str, cut: int, tokens: list[str]) -> int:
    kinds = {_kind(token) for token in tokens}
    if "symbols" in kinds:
        return AFTER_SYMBOLS
    tail = text[max(0, cut - CONTEXT // 2) : cut].encode("utf-8", "replace")
    if _STREET.search(tail.rstrip()) is not None:
        return AFTER_STREET
    before = text[max(0, cut - CONTEXT) : cut].rstrip().rstrip(_CLOSERS)
    ends = before[-1:] in TERMINATORS or _is_mark(tokens[-2] if len(tokens) > 1 else "")
    return 0 if ends and "numbers" not in kinds else AFTER_NUMBERS


def is_opaque(token: str) -> bool:
    """Return whether a token may be a piece of an encoded or grouped value: two never part."""
    if any(map(str.isdigit, token)) and not _is_mark(token):
        return True
    plain = token.strip(_EDGES)
    pair = len(plain) == 2 and _HEX_LETTERS.issuperset(plain)
    return pair or (len(token) >= _LONG_TOKEN and token.isascii())


def _kind(token: str) -> str:
    """Return what a token is to a pattern: a word (nothing), part of a number, or code."""
    if _is_mark(token):
        return "word"
    plain = token.strip(_EDGES)
    if not any(map(str.isalnum, token)):
        return "word" if len(token) <= 3 else "symbols"  # bullets, dashes, emoji
    if all(c.isalpha() or c in _INNER for c in plain):
        return "word" if len(plain) < _LONG_TOKEN or not plain.isascii() else "symbols"
    if all(c.isalnum() or c in _ORDINARY for c in plain) and len(plain) < _LONG_TOKEN:
        return "numbers"
    return "symbols"


def _is_mark(token: str) -> bool:
    """Return whether a token is a citation mark such as [12], with or without its full stop."""
    plain = token.strip(".,;:!?")
    return len(plain) <= 5 and plain[:1] == "[" and plain[-1:] == "]" and plain[1:-1].isdecimal()
