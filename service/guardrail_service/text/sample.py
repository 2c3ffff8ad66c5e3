"""A sample cut into sentences and model windows once, and shared by all detectors.

A window is a sentence, or a part of one that is longer than a model can read. Cutting drops and
changes nothing.
"""

# Punctuation of several scripts ends a clause.
# ruff: noqa: RUF001

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from guardrail_service.text.budget import check_time
from guardrail_service.text.cached import cached_property
from guardrail_service.text.language import Language, identify, is_foreign, letters
from guardrail_service.text.segmentation.sentences import Sentence, merge_short, split_sentences

if TYPE_CHECKING:
    from guardrail_service.types import Role, Sample


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
    """Counts tokens as one model does. Must accept any `str`, lone surrogates included."""

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
    text = sentence.text
    unread = (_known_unread if len(text) <= KEPT_SENTENCE_CHARS else _unread_whole)(windower, text)
    if unread is not None:
        return (Window(sentence.start, sentence.start + len(text), text, unread),)
    check_time()
    spans = windower.tokens(text)
    cuts = _cut_points(sentence.text, spans)
    out: list[Window] = []
    start = 0
    while start < len(sentence.text):
        check_time()
        piece = _next_piece(sentence, start, cuts, windower)
        out.append(piece)
        start = piece.end - sentence.start
    return tuple(out)


def _unread_whole(windower: Windower, text: str) -> int | None:
    """Return how many code points of a text a model does not know; None if it is too long."""
    spans = windower.tokens(text)
    return _unread(text, spans) if len(spans) <= windower.max_tokens else None


KEPT_SENTENCES, KEPT_SENTENCE_CHARS = 1_024, 300
"""Several detectors and evaluators cut the same sentence; these take at most 1 MB."""
_known_unread = lru_cache(KEPT_SENTENCES)(_unread_whole)


class _Cuts(NamedTuple):
    """The places where a text may be cut: offsets, ascending, and the tokens before each."""

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


T = TypeVar("T")
Part = Literal["question", "answer", "contexts"]
KEPT_PASSAGES = 1_024
KEPT_CHARS = 4_000
"""Passages repeat across requests, and cutting one costs more than its share of the rest of a
check. A thousand of 180 words take about 10 MB with their sentences and windows."""
_AROUND: tuple[Part, ...] = ("question", "contexts")
_LATIN = frozenset(
    "en de fr es it pt nl pl sv da no nn fi is cs sk sl hr bs ro hu et lv lt tr id ms vi sw af ca eu gl ga cy mt sq tl lb".split()  # noqa: E501, SIM905
)
"""Languages in Latin letters."""
_SHORT_LETTERS = 60
_STRONG = 0.999
LANGUAGE_SAMPLE_CHARS = 400
"""A few sentences tell a passage's language; identification reads every character it is given."""


class SegmentedSample:
    """Lazy views of one sample; every offset is a code point of the submitted text.

    Args:
        sample: The answer with its question and passages.
        windowers: How each model role counts tokens; a role without one cannot be windowed.
        languages: ISO 639-1 codes each role's model can read; a role not listed reads any.
    """

    def __init__(
        self,
        sample: Sample,
        windowers: Mapping[Role, Windower] | None = None,
        languages: Mapping[Role, frozenset[str]] | None = None,
    ) -> None:
        self.sample = sample
        self.answer = sample.answer
        self._windowers = dict(windowers or {})
        self._languages = dict(languages or {})
        self._known: dict[Hashable, Any] = {}

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what `compute` gave for this key the first time.

        For pure functions of the sample that a detector's two halves, or several detectors, need.
        """
        if key not in self._known:
            self._known[key] = compute()
        known: T = self._known[key]
        return known

    @cached_property
    def raw_answer_sentences(self) -> tuple[Sentence, ...]:
        """Return the answer's sentences, very short ones included as they are."""
        return split_sentences(self.sample.answer)

    @cached_property
    def answer_sentences(self) -> tuple[Sentence, ...]:
        """Return the answer's sentences, very short ones merged into a neighbour."""
        return merge_short(self.raw_answer_sentences, self.sample.answer)

    @cached_property
    def context_sentences(self) -> tuple[tuple[Sentence, ...], ...]:
        """Return each passage's sentences, very short ones merged into a neighbour."""
        return tuple(passage_sentences(passage.text) for passage in self.sample.contexts)

    def answer_windows(self, role: Role) -> tuple[Window, ...]:
        """Return the answer's sentences as windows the role's model can read whole."""
        return self.windows_of(role, self.answer_sentences)

    def context_windows(self, role: Role) -> tuple[tuple[Window, ...], ...]:
        """Return each passage's sentences as windows the role's model can read whole."""
        windower = self._windowers[role]
        return self.once(
            ("context windows", windower),
            lambda: tuple(
                _passage_windows(windower, passage.text) for passage in self.sample.contexts
            ),
        )

    def question_windows(self, role: Role) -> tuple[Window, ...]:
        """Return the question, whole, as windows the role's model can read."""
        text = self.sample.question or ""
        if not text.strip():
            return ()
        return self.windows_of(role, (Sentence(0, len(text), text),))

    def windows_of(self, role: Role, sentences: tuple[Sentence, ...]) -> tuple[Window, ...]:
        """Return any sentences as windows the role's model can read whole."""
        windower = self._windowers[role]
        return self.once(
            ("windows", windower, sentences),
            lambda: tuple(w for sentence in sentences for w in windows(sentence, windower)),
        )

    def once_per_vocabulary(self, role: Role, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what `compute` gave the first time for a role with this one's tokenizer."""
        return self.once((key, self._windowers[role]), compute)

    def is_word(self, role: Role, word: str) -> bool:
        """Return whether the role's model has the whole word in its vocabulary."""
        found = self._windowers[role].tokens(word)
        return len(found) == 1 and found[0].known

    def language(self, part: Part) -> Language | None:
        """Return the language of one part, or None where the text does not tell."""
        return self.once(("language", part), lambda: identify(self._part(part)))

    def readable_by(self, role: Role, part: Part) -> bool:
        """Return whether the role's model was trained on the language of one part.

        A text whose language cannot be told (short, numbers only) counts as readable if its
        letters are Latin. A short answer counts as readable, too, where question and passages are
        and nothing strong speaks against it: prices and status lines look like any language.
        """
        known = self._languages.get(role)
        if known is None:
            return True
        language = self.language(part)
        looks_latin = known <= _LATIN and (language is None or language.code in _LATIN)
        if looks_latin and self.once(("foreign", part), lambda: self._is_foreign(part)):
            return False
        if language is None or language.code in known:
            return True
        return part == "answer" and self._looks_like_its_sources(known, language)

    def _looks_like_its_sources(self, known: frozenset[str], language: Language) -> bool:
        """Return whether a short answer is taken to be in the language around it."""
        if language.code not in _LATIN:
            return False
        around = [found for p in _AROUND if (found := self.language(p)) is not None]
        if not around or any(found.code not in known for found in around):
            return False
        size = self.once("letters", lambda: letters(self.answer))
        return size < _SHORT_LETTERS and language.probability < _STRONG

    def _is_foreign(self, part: Part) -> bool:
        text = self._part(part)
        return not text.isascii() and is_foreign(text)

    def _part(self, part: Part) -> str:
        match part:
            case "answer":
                return self.sample.answer
            case "question":
                return self.sample.question or ""
            case "contexts":
                return " ".join(p.text[:LANGUAGE_SAMPLE_CHARS] for p in self.sample.contexts)

    def sentence_count(self) -> int:
        """Return how many sentences the answer and all passages have together."""
        return len(self.answer_sentences) + sum(map(len, self.context_sentences))


def unverifiable(sample: SegmentedSample, role: Role, *parts: Part) -> str | None:
    """Return why parts of a sample cannot be compared, or None.

    Args:
        sample: The answer with its question and passages.
        role: Whose model reads them.
        parts: What is compared; passages are missed if none of them has a sentence.
    """
    if "contexts" in parts and not any(sample.context_sentences):
        return "missing_input"
    if not all(sample.readable_by(role, part) for part in parts):
        return "unsupported_language"
    return None


def passage_sentences(text: str) -> tuple[Sentence, ...]:
    """Return a passage's sentences, very short ones merged into a neighbour."""
    return _known_sentences(text) if len(text) <= KEPT_CHARS else _cut(text)


def _passage_windows(windower: Windower, text: str) -> tuple[Window, ...]:
    """Return a passage's sentences as windows a model can read whole."""
    found = _known_windows if len(text) <= KEPT_CHARS else _windows
    return found(windower, text)


def _cut(text: str) -> tuple[Sentence, ...]:
    return merge_short(split_sentences(text), text)


def _windows(windower: Windower, text: str) -> tuple[Window, ...]:
    return tuple(w for sentence in passage_sentences(text) for w in windows(sentence, windower))


_known_sentences = lru_cache(KEPT_PASSAGES)(_cut)
_known_windows = lru_cache(KEPT_PASSAGES)(_windows)
