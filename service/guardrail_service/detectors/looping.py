"""Did the generation go into a loop? Three statistics of the answer's own text; no model."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    MetricSpec,
    Parameters,
    detector,
)
from guardrail_service.detectors.shared.remedies import KEEP_THE_FORM
from guardrail_service.text.budget import check_time, in_time
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.text.segmentation.sentences import Sentence
from guardrail_service.types import Coverage, Direction, Outcome, RowOutput, Span

MIN_CHARS = 40
"""Shorter answers are not judged. Of 2,645 natural answers and claims under 40 characters 27 have
more than half of their text in the longest repeat ("22", "two reported in Italy and two reported
in France" at 47 is the typical longer one); of 8,855 longer ones 19 do."""

_BYTES_BETWEEN_LOOKS = 16_384
_CHARS_WITHOUT_A_LOOK = 4_096
MIN_SENTENCE_CHARS = 10
"""H2O's rule: shorter sentences are not counted, unless there are no others."""


def unique_sentences(sentences: Sequence[str]) -> float:
    """Return distinct sentences / sentences, in (0, 1]. Higher is better; one sentence is 1.0.

    Sentences of at least 10 characters count, all of them where there is none that long. They are
    compared without regard to case and to the amount of whitespace.

    Raises:
        ValueError: If there are no sentences.

    Source:
        H2O Eval Studio manual, "Looping Detection Evaluator". Their code returns 0 for a single
        distinct sentence, so that a correct one-sentence answer scores worst; this one does not.
    """
    if not sentences:
        raise ValueError("no sentences: found 0, expected at least 1")
    keys = [_key(sentence) for sentence in sentences]
    counted = [key for key in keys if len(key) >= MIN_SENTENCE_CHARS] or keys
    return len(set(counted)) / len(counted)


def compression_ratio(text: str) -> float:
    """Return min(1, compressed bytes / bytes) with zlib level 9. Higher is better.

    Short prose does not compress at all: the ratio falls with length even for good answers.

    Raises:
        ValueError: If the text is empty.

    Source:
        H2O Eval Studio manual, "Looping Detection Evaluator".
    """
    data = text.encode("utf-8", "surrogatepass")
    if not data:
        raise ValueError("empty text: found 0 bytes, expected at least 1")
    packing = zlib.compressobj(9)
    size = 0
    for start in range(0, len(data), _BYTES_BETWEEN_LOOKS):
        if start:
            check_time()
        size += len(packing.compress(data[start : start + _BYTES_BETWEEN_LOOKS]))
    return min(1.0, (size + len(packing.flush())) / len(data))


class LoopingParameters(Parameters):
    """Looping has nothing to set; where it cuts is a threshold."""


@detector
class Looping(Detector[LoopingParameters]):
    """Statistics of repetition in the answer."""

    spec = DetectorSpec(
        id="looping",
        version="rules/1",
        aliases=("h2o_sonar.evaluators.looping_detection_evaluator.LoopingDetectionEvaluator",),
        summary="Did the generation go into a loop?",
        metrics=(
            MetricSpec("unique_sentences", Direction.HIGHER, gating=True),
            MetricSpec("longest_repeated_substring", Direction.LOWER, gating=True),
            MetricSpec("compression_ratio", Direction.HIGHER, gating=True),
        ),
        inputs=frozenset({"answer"}),
        remedy=KEEP_THE_FORM,
        listing=Listing(
            title="Looping detection",
            tags=("rule-based", "nist:valid-reliable"),
            problem="stability",
        ),
    )
    parameters = LoopingParameters

    def reduce(
        self, sample: SegmentedSample, outputs: Sequence[RowOutput], parameters: LoopingParameters
    ) -> Outcome:
        """Return the three statistics; `too_short` below 40 characters.

        Of lines or clauses that fill one template with values of their own, the first counts whole
        and the others with their values: a timetable is no loop.
        """
        answer = sample.answer
        collapsed, offsets = _collapsed(answer, range(len(answer)))
        if len(collapsed) < MIN_CHARS:
            return Outcome.not_applicable("too_short")
        counted = answer
        if filled := filled_templates(answer, sample.raw_answer_sentences):
            kept = [index for index in range(len(answer)) if index not in filled]
            counted = "".join(answer[index] for index in kept)
            collapsed, offsets = _collapsed(answer, kept)
        repeat = longest_repeated_substring(collapsed)
        unique = unique_sentences([s.text for s in sample.raw_answer_sentences])
        spans = list(_repeated_sentences(sample.raw_answer_sentences, unique))
        if repeat.length:
            spans.append(
                Span(
                    offsets[repeat.start],
                    offsets[repeat.start + repeat.length - 1] + 1,
                    "repetition",
                    repeat.share,
                    "longest_repeated_substring",
                    attributes={"count": repeat.count},
                )
            )
        scores = {
            "unique_sentences": unique,
            "longest_repeated_substring": repeat.share,
            "compression_ratio": compression_ratio(counted),
        }
        return Outcome.evaluated(scores, tuple(spans), Coverage.whole(sample.sample))


def _key(sentence: str) -> str:
    return " ".join(sentence.split()).casefold()


def _collapsed(text: str, offsets: Sequence[int]) -> tuple[str, list[int]]:
    """Return some characters with each run of whitespace as one blank, and each one's offset.

    Indentation and padded table columns are layout, not repetition. A model that emits blanks
    without end is still seen: `compression_ratio` reads the text as it is.
    """
    kept = [
        index
        for place, index in enumerate(in_time(offsets, _CHARS_WITHOUT_A_LOOK))
        if not text[index].isspace() or (place > 0 and not text[offsets[place - 1]].isspace())
    ]
    while kept and text[kept[-1]].isspace():
        kept.pop()
    return "".join(" " if text[i].isspace() else text[i] for i in kept), kept


MIN_ITEMS = 3
"""Two sentences of one form are no list yet."""
MAX_ITEMS = 100
MAX_ITEM_WORDS = 40
LEAST_COMMON = 2
_MARKS = ".,;:!?*|()-"
"""Longer lists and items are left as they are: a bound on time, and few people write them."""
_LONGEST_NUMBER = 4


class _Item(NamedTuple):
    """The words of a line, sentence or clause, as written and as compared, with their offsets."""

    offsets: tuple[tuple[int, int], ...]
    words: tuple[str, ...]


def filled_templates(text: str, sentences: Sequence[Sentence]) -> frozenset[int]:
    """Return the offsets of what every later item of a templated list repeats from the first.

    At least three neighbouring lines, sentences or clauses have half of their words in common, in
    order. The rest of each, its values, must be different from every other's and more than one
    number or letter that counts up: "Step 1: wait. Step 2: wait. Step 3: wait." is a loop.
    """
    lines = _split_after(text, text.split("\n"))
    spans = [(sentence.start, sentence.end) for sentence in sentences]
    commas = _split_after(text, text.replace(";", ",").split(","))
    for pieces in (lines, spans, commas):
        found = [part for run in _runs(text, pieces) for part in _template(run)]
        if found:
            return frozenset(index for start, end in found for index in range(start, end))
    return frozenset()


def _split_after(text: str, pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Return where the pieces between marks of one character stand, with the mark behind each."""
    edges = [0, *accumulate(len(piece) + 1 for piece in pieces[:-1]), len(text)]
    return [(start, end) for start, end in pairwise(edges) if not _is_blank(text, start, end)]


def _is_blank(text: str, start: int, end: int) -> bool:
    return start == end or text[start:end].isspace()


def _runs(text: str, pieces: Sequence[tuple[int, int]]) -> Iterator[list[_Item]]:
    """Yield neighbouring items that have at least half of the first one's words in common."""
    if not MIN_ITEMS <= len(pieces) <= MAX_ITEMS:
        return
    run: list[_Item] = []
    for start, end in pieces:
        check_time()
        item = _item(text, start, end)
        if run and not _is_alike(run[0], item):
            yield run
            run = []
        run.append(item)
    yield run


def _item(text: str, start: int, end: int) -> _Item:
    words = text[start:end].split()
    offsets = []
    for word in words:
        start = text.index(word, start)
        offsets.append((start, start + len(word)))
        start += len(word)
    first = 1 if words and _is_item_number(words[0]) else 0
    plain = tuple(word.casefold().strip(_MARKS) for word in words)
    return _Item(tuple(offsets[first:]), plain[first:])


def _is_item_number(word: str) -> bool:
    body = word[:-1].lstrip("(")
    return (
        word[-1] in ".):" and len(body) < _LONGEST_NUMBER and (body.isdecimal() or len(body) == 1)
    )


def _is_alike(first: _Item, other: _Item) -> bool:
    sizes = len(first.words), len(other.words)
    if min(sizes) < 2 or max(sizes) > MAX_ITEM_WORDS:
        return False
    return 2 * len(_common(first.words, other.words)) >= min(sizes)


def _common(left: Sequence[str], right: Sequence[str]) -> tuple[str, ...]:
    """Return words that both have, in order: matching blocks, the longest first."""
    blocks = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
    return tuple(word for block in blocks for word in left[block.a : block.a + block.size])


def _template(run: Sequence[_Item]) -> list[tuple[int, int]]:
    """Return where items after the first repeat the template; nothing where it is no list."""
    if len(run) < MIN_ITEMS:
        return []
    template: tuple[str, ...] = run[0].words
    for item in run[1:]:
        template = _common(template, item.words)
    aligned = [_aligned(item, template) for item in run]
    values = [slots for slots, _ in aligned]
    if sum(map(bool, template)) < LEAST_COMMON or not _have_values(values):
        return []
    return [place for _, places in aligned[1:] for place in places]


def _aligned(
    item: _Item, template: Sequence[str]
) -> tuple[tuple[tuple[str, ...], ...], list[tuple[int, int]]]:
    """Return an item's values, by the slot of the template they fill, and the template's places."""
    slots: list[tuple[str, ...]] = []
    places: list[tuple[int, int]] = []
    value: list[str] = []
    rest = iter(template)
    expected = next(rest, None)
    for (start, end), word in zip(item.offsets, item.words, strict=True):
        if word == expected:
            slots.append(tuple(value))
            places.append((start, end))
            value, expected = [], next(rest, None)
        else:
            value.append(word)
    return (*slots, tuple(value)), places


def _have_values(values: Sequence[tuple[tuple[str, ...], ...]]) -> bool:
    """Return whether all differ, in a slot that is no counter or in two that do not count alike."""
    if len(set(values)) < len(values):
        return False
    varying = {slot for slot in zip(*values, strict=True) if len(set(slot)) > 1 and all(slot)}
    return len(varying) > 1 or any(not _counts(slot) for slot in varying)


def _counts(slot: Sequence[tuple[str, ...]]) -> bool:
    """Return whether a slot's values count up by one: 1, 2, 3 or a, b, c."""
    words = [word for (word, *more) in slot if not more]
    if len(words) < len(slot):
        return False
    if all(word.isdecimal() and len(word) < 10 for word in words):
        numbers = [int(word) for word in words]
    elif all(len(word) == 1 for word in words):
        numbers = [ord(word) for word in words]
    else:
        return False
    return all(after - before == 1 for before, after in pairwise(numbers))


def _repeated_sentences(sentences: Sequence[Sentence], score: float) -> list[Span]:
    """Return one span per run of sentences that occurred before, to go with the share of them."""
    seen: set[str] = set()
    repeated = []
    for sentence in sentences:
        key = _key(sentence.text)
        repeated.append(key in seen)
        seen.add(key)
    spans = []
    for is_repeated, run in groupby(
        zip(repeated, sentences, strict=True), key=lambda pair: pair[0]
    ):
        run_sentences = [sentence for _, sentence in run]
        if is_repeated:
            start, end = run_sentences[0].start, run_sentences[-1].end
            spans.append(Span(start, end, "repeated_sentence", score, "unique_sentences"))
    return spans


_Ints = np.ndarray[Any, np.dtype[np.int64]]
_NONE = -1


@dataclass(frozen=True, slots=True)
class Repeat:
    """A stretch `text[start:start + length]` that occurs `count` times, covering `share` of it."""

    start: int
    length: int
    count: int
    share: float


NO_REPEAT = Repeat(0, 0, 0, 0.0)


def longest_repeated_substring(text: str) -> Repeat:
    """Return the longest substring that occurs at least twice without overlap.

    Of equally long ones the one that occurs most often wins, then the first. Occurrences are
    counted from the left without overlap, so `share = length * count / len(text)` is in [0, 1].

    Exact: a position carries a rank (equal rank = equal substring), never a hash. A repeat of
    length n + d is a repeat of length n at i and at i + d, so ranks compose: the length doubles
    while some repeat survives, then halved steps are tried. Positions without a distant twin are
    dropped at every step, which leaves few of them in ordinary text; O(n log^2 n) at worst.

    Source:
        H2O Eval Studio manual, "Looping Detection Evaluator": length * frequency / text length.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
    ranks = _ranks(np.arange(len(codes)), codes, 1, len(codes))
    if ranks is None:
        return NO_REPEAT
    length, step, growing = 1, 1, True
    while step:
        if len(codes) > _CHARS_WITHOUT_A_LOOK:
            check_time()
        longer = _extended(ranks, length, step)
        if longer is not None:
            length, ranks = length + step, longer
        else:
            growing = False
        step = length if growing else step // 2
    return _most_frequent(ranks, length, len(text))


def _extended(ranks: _Ints, length: int, step: int) -> _Ints | None:
    """Return ranks for `length + step` from ranks for `length`; `step` is at most `length`."""
    positions = np.flatnonzero(ranks[: max(0, len(ranks) - step)] != _NONE)
    positions = positions[ranks[positions + step] != _NONE]
    keys = ranks[positions] * len(ranks) + ranks[positions + step]
    return _ranks(positions, keys, length + step, len(ranks))


def _ranks(positions: _Ints, keys: _Ints, length: int, size: int) -> _Ints | None:
    """Return one number per key at its positions, or None if no key has twins `length` apart.

    Keys whose first and last position are closer than that are left out: their substring repeats
    only over itself, and so does everything longer that contains it.
    """
    if len(positions) < 2:
        return None
    order = np.argsort(keys, kind="stable")
    positions, keys = positions[order], keys[order]
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    counts = np.diff(np.append(first, len(keys)))
    distant = positions[first + counts - 1] - positions[first] >= length
    if not distant.any():
        return None
    ranks = np.full(size, _NONE, dtype=np.int64)
    ranks[positions] = np.repeat(np.where(distant, np.arange(len(first)), _NONE), counts)
    return ranks


def _most_frequent(ranks: _Ints, length: int, size: int) -> Repeat:
    """Return the substring with the most non-overlapping occurrences; the first of equals."""
    counts: dict[int, int] = {}
    starts: dict[int, int] = {}
    free: dict[int, int] = {}
    alive = np.flatnonzero(ranks != _NONE)
    pairs = zip(alive.tolist(), ranks[alive].tolist(), strict=True)
    for count, (position, rank) in enumerate(pairs, 1):
        if not count % _CHARS_WITHOUT_A_LOOK:
            check_time()
        if position >= free.get(rank, 0):
            counts[rank] = counts.get(rank, 0) + 1
            starts.setdefault(rank, position)
            free[rank] = position + length
    best = max(counts, key=counts.__getitem__)
    return Repeat(starts[best], length, counts[best], length * counts[best] / size)
