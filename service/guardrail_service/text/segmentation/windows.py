"""Cuts a sentence that is longer than a model can read into windows. Drops and changes nothing."""

# Punctuation of several scripts ends a clause.
# ruff: noqa: RUF001

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import ceil
from typing import NamedTuple, Protocol

from guardrail_service.text.segmentation.sentences import Sentence

_EARLIEST_CUT = 0.75
"""A window may stop at three quarters of its fair share of tokens if that is a better place.

Lower gives short windows with little context, higher more cuts inside clauses; not tuned.
"""
_CLAUSE_ENDS = frozenset(",;:.!?)…、，；：。！？،؛؟।")


class TokenSpan(NamedTuple):
    """Code points `[start, end)` of one model token; not `known` if it is the unknown token."""

    start: int
    end: int
    known: bool


class Window(NamedTuple):
    """A piece of one sentence, at offsets of the source the sentence was cut from.

    `unread` counts the non-whitespace code points the model does not see: those of unknown
    tokens and those the tokenizer drops, such as control characters. WordPiece reads a word of
    more than 100 characters as one unknown token, so such a word counts as unread whole.
    """

    start: int
    end: int
    text: str
    unread: int


class Windower(Protocol):
    """How one model counts tokens. Must accept any `str`, lone surrogates included."""

    def __hash__(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """Return how many text tokens fit; the room for special tokens is already taken off."""
        ...

    def tokens(self, text: str) -> Sequence[TokenSpan]:
        """Return the tokens of `text` in order, special tokens excluded."""
        ...


def windows(sentence: Sentence, windower: Windower) -> tuple[Window, ...]:
    """Return windows of at most `windower.max_tokens` tokens that together are the sentence.

    Each begins where the one before it ends; they do not overlap, because a score is the worst
    over windows and an overlap would only be paid for twice. Cuts fall on the end of a clause if
    there is one near, else on whitespace, else between tokens, and share the tokens evenly.
    Every window is tokenised alone before it is returned, as it may have other tokens there than
    inside the sentence.

    Raises:
        ValueError: If `max_tokens` is too small for some single code point.
    """
    spans = windower.tokens(sentence.text)
    if len(spans) <= windower.max_tokens:
        return (_window(sentence, 0, len(sentence.text), spans),)
    cuts = _cut_points(sentence.text, spans)
    out: list[Window] = []
    start = 0
    while start < len(sentence.text):
        piece = _next_piece(sentence, start, cuts, windower)
        out.append(piece)
        start = piece.end - sentence.start
    return tuple(out)


class _Cuts(NamedTuple):
    """Where a text may be cut: offsets, ascending, and how many tokens lie before each."""

    offsets: list[int]
    tokens: list[int]
    total: int


def _cut_points(text: str, spans: Sequence[TokenSpan]) -> _Cuts:
    """Return the starts of the tokens that no earlier token reaches into, and the text's end."""
    reach = accumulate((span.end for span in spans), max)
    places = [
        (here.start, count)
        for count, ((_, here), before) in enumerate(zip(pairwise(spans), reach, strict=False), 1)
        if before <= here.start
    ]
    offsets = [offset for offset, _ in places]
    return _Cuts([*offsets, len(text)], [*(n for _, n in places), len(spans)], len(spans))


def _next_piece(sentence: Sentence, start: int, cuts: _Cuts, windower: Windower) -> Window:
    """Return the window that begins at `start` of the sentence and fits the model."""
    text = sentence.text
    allowed = windower.max_tokens
    end = _best_cut(text, start, cuts, allowed)
    while True:
        spans = windower.tokens(text[start:end])
        excess = len(spans) - windower.max_tokens
        if excess <= 0:
            return _window(sentence, start, end, spans)
        if end - start == 1:
            raise ValueError(
                f"one character needs {len(spans)} tokens, a window holds {windower.max_tokens}; "
                "use a model that reads longer rows"
            )
        # The eighth keeps the number of tries logarithmic whatever the tokenizer does.
        allowed = min(allowed - excess, allowed * 7 // 8)
        shorter = _best_cut(text, start, cuts, allowed) if allowed > 0 else end
        end = shorter if shorter < end else start + (end - start) // 2


def _best_cut(text: str, start: int, cuts: _Cuts, allowed: int) -> int:
    """Return the best offset to end the window that begins at `start`, at most `allowed` tokens.

    If not even the first piece between two cut points fits, its end is returned.
    """
    first = bisect_right(cuts.offsets, start)
    used = cuts.tokens[first - 1] if first else 0
    last = bisect_right(cuts.tokens, used + allowed, lo=first) - 1
    if last <= first:
        return cuts.offsets[min(first, len(cuts.offsets) - 1)]
    left = cuts.total - used
    if left <= allowed:
        return len(text)
    share = ceil(left / ceil(left / allowed))
    near = bisect_left(cuts.tokens, used + int(_EARLIEST_CUT * share), lo=first, hi=last)
    best = max(
        range(near, last + 1),
        key=lambda k: (_quality(text, cuts.offsets[k]), -abs(cuts.tokens[k] - used - share)),
    )
    offset = cuts.offsets[best]
    if _quality(text, offset):
        return offset
    earlier = cuts.offsets[first:near][::-1]
    return next((before for before in earlier if _quality(text, before)), offset)


def _quality(text: str, offset: int) -> int:
    """Return 2 for the end of a clause, 1 for whitespace, 0 for the inside of a word."""
    if offset >= len(text):
        return 2
    before = text[max(0, offset - 2) : offset].rstrip()
    is_clause = before[-1:] in _CLAUSE_ENDS if before else False
    at_space = text[offset].isspace() or text[offset - 1].isspace()
    if is_clause and (at_space or not before[-1:].isascii()):
        return 2
    return 1 if at_space else 0


def _window(sentence: Sentence, start: int, end: int, spans: Sequence[TokenSpan]) -> Window:
    text = sentence.text[start:end]
    return Window(sentence.start + start, sentence.start + end, text, _unread(text, spans))


def _unread(text: str, spans: Sequence[TokenSpan]) -> int:
    """Return how many non-whitespace code points no known token covers."""
    unread = reach = 0
    for span in sorted(span for span in spans if span.known):
        if span.start > reach:
            unread += _visible(text[reach : span.start])
        reach = max(reach, span.end)
    return unread + _visible(text[reach:])


def _visible(text: str) -> int:
    """Return how many code points are no whitespace."""
    return 0 if not text or text.isspace() else sum(not char.isspace() for char in text)
