"""Hallucination: is every claim of the answer supported by the passages?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import re2

from guardrail_service.detectors.hallucination import verbatim
from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    MetricSpec,
    Parameters,
    detector,
)
from guardrail_service.detectors.shared import comparison
from guardrail_service.detectors.shared.comparison import (
    PassageWindow,
    claims,
    nothing_to_judge,
    places,
    read_chars,
    read_with_question,
    unreadable,
)
from guardrail_service.detectors.shared.remedies import STAY_WITH_PASSAGES
from guardrail_service.errors import NotScorable
from guardrail_service.text.budget import BETWEEN_LOOKS, check_time, in_time
from guardrail_service.text.patterns.search import encodable
from guardrail_service.text.sample import SegmentedSample, Window, unverifiable
from guardrail_service.text.segmentation.sentences import Sentence
from guardrail_service.types import Coverage, Direction, Evidence, Outcome, Row, RowOutput, Span

ROLE: Final = "grounding"
OUTPUTS = ("probabilities", "places", "cosines")
SUPPORTED = "supported"
AGAINST = ("contradicted", "not_mentioned")
FOUND_BY = "found_by"
"""Attribute of a span: `model`, or `verbatim` where a passage says the claim word by word."""
MIN_CLAIM_CHARS = 25
"""Groundedness needs longer pieces; a model that reads does not, and a short invented sentence must
not hide in its neighbour. On the choosing half of models/thresholds/answers.jsonl the ROC area is
.914, .921, .918 and .911 at 15, 25, 35 and 50."""
READING_VERSION = "rag-guardrail-reading/2"
"""Part of the evidence fingerprint: whoever changes a rule of this file changes scores and
thresholds."""


class Reading(NamedTuple):
    """One window of a claim: what the model reads, or where a passage says it word by word."""

    window: Window
    text: str
    copy: verbatim.Copy | None


class HallucinationParameters(Parameters):
    """Hallucination has nothing to set."""


@detector
class Hallucination(Detector[HallucinationParameters]):
    """Reads each claim against the passage sentences nearest to it; one span per claim.

    A claim that a passage says word by word (`verbatim.py`) is supported without being read.
    """

    spec = DetectorSpec(
        id="hallucination",
        aliases=(
            "h2o_sonar.evaluators.rag_hallucination_evaluator.RagHallucinationEvaluator",
            "open_rag_eval:hhem",
        ),
        summary="Is every claim supported by the passages? (grounding model)",
        metrics=(MetricSpec("hallucination", Direction.HIGHER, gating=True),),
        inputs=frozenset({"answer", "contexts"}),
        roles=frozenset({ROLE, comparison.ROLE}),
        cost="model",
        skip_on_abstention=True,
        in_flight="parts",
        remedy=STAY_WITH_PASSAGES,
        listing=Listing(
            title="Hallucination",
            tags=("nli", "nist:valid-reliable"),
            avid="E0400",
            original="N",
            surrogate="the pack's grounding model in place of HHEM",
        ),
    )
    parameters = HallucinationParameters

    def encode(self, sample: SegmentedSample, parameters: HallucinationParameters) -> Sequence[Row]:
        """Return a grounding row per claim to read, after the rows of the texts these read.

        The latter are the encoder's: they run side by side, and what groundedness asks for too
        runs once. Claims that need no model have no row.
        """
        if nothing_to_judge(sample) or unverifiable(sample, ROLE, "answer", "contexts"):
            return ()
        texts = [reading.text for reading in readings(sample) if reading.copy is None]
        passages = [place.window for place in places(sample)]
        if not texts or unreadable(passages):
            return ()
        evidence = _distinct_texts(passages)
        encoded = [Row(comparison.ROLE, text) for text in (*texts, *evidence)]
        return [*encoded, *(Row(ROLE, t, outputs=OUTPUTS, evidence=evidence) for t in texts)]

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: HallucinationParameters,
    ) -> Outcome:
        """Return the least supported claim's P(supported), with every claim as a span."""
        if (settled := nothing_to_judge(sample)) is not None:
            return settled
        if (reason := unverifiable(sample, ROLE, "answer", "contexts")) is not None:
            return Outcome.unverified(reason)
        windows = sample.windows_of(comparison.ROLE, judged(sample))
        found_places = places(sample)
        passages = [place.window for place in found_places]
        chars = sum(len(passage.text) for passage in sample.sample.contexts)
        read, total = read_chars(len(sample.answer), windows)
        opaque = sum(opaque_characters(window.text) for window in windows)
        coverage = Coverage((max(0, read - opaque), total), read_chars(chars, passages))
        if not windows:
            return Outcome.not_applicable("no_claim")
        if unreadable(windows) or unreadable(passages):
            return Outcome.unverified("unreadable_text", coverage)
        spans = _spans(readings(sample), outputs, found_places)
        return Outcome.evaluated({"hallucination": worst(spans)}, spans, coverage)


def judged(sample: SegmentedSample) -> tuple[Sentence, ...]:
    """Return the answer's claims without sentences about what the passages do not say."""
    return sample.once("judged", lambda: tuple(_judged(sample)))


def _judged(sample: SegmentedSample) -> Iterator[Sentence]:
    for piece in in_time(claims(sample, MIN_CLAIM_CHARS), 8):
        if not (is_about_sources(piece.text) or is_only_opaque(piece.text)):
            yield piece


def worst(spans: Sequence[Span]) -> float:
    """Return the least supported claim's score.

    Raises:
        NotScorable: If there is no claim.
    """
    scores = [span.score for span in spans if span.score is not None]
    if not scores:
        raise NotScorable("no claim")
    return min(scores)


def readings(sample: SegmentedSample) -> tuple[Reading, ...]:
    """Return the windows of the answer's claims, in order."""
    return sample.once("readings", lambda: _readings(sample))


def _readings(sample: SegmentedSample) -> tuple[Reading, ...]:
    pieces = judged(sample)
    copied = verbatim.copies(sample, pieces, comparison.ROLE)
    copies = [
        copy
        for piece, copy in zip(pieces, copied, strict=True)
        for _ in sample.windows_of(comparison.ROLE, (piece,))
    ]
    windows = sample.windows_of(comparison.ROLE, pieces)
    return tuple(map(Reading, windows, claim_texts(sample), copies))


def claim_texts(sample: SegmentedSample) -> tuple[str, ...]:
    """Return the answer's claims as the model reads them, one per window of `judged`."""
    pieces = judged(sample)
    windows = sample.windows_of(comparison.ROLE, pieces)
    whole = read_with_question(sample, pieces, comparison.ROLE)
    if len(windows) == 1 and whole:
        return (_without_layout(sample, whole),)
    return tuple(_without_layout(sample, window.text) for window in in_time(windows, 8))


def _without_layout(sample: SegmentedSample, text: str) -> str:
    """Return a claim's words; the text itself where nothing else is left or it got too long."""
    bracketed = sample.once("bracketed", lambda: _has_bracketed_numbers(sample))
    words = without_layout(text, keep_brackets=bracketed)
    if words == text or not any(map(str.isalnum, words)):
        return text
    fits = len(sample.windows_of(comparison.ROLE, (Sentence(0, len(words), words),))) == 1
    return words if fits else text


def _has_bracketed_numbers(sample: SegmentedSample) -> bool:
    return any(has_bracketed_numbers(passage.text) for passage in sample.sample.contexts)


def _distinct_texts(windows: Sequence[Window]) -> tuple[str, ...]:
    """Return the texts of passage windows in order: one retrieved twice is one evidence."""
    return tuple(dict.fromkeys(window.text for window in windows))


def _spans(
    read: Sequence[Reading], outputs: Sequence[RowOutput], places: Sequence[PassageWindow]
) -> tuple[Span, ...]:
    """Return a span per window; the last outputs are those of the windows that were read."""
    first: dict[str, PassageWindow] = {}
    for place in places:
        first.setdefault(place.window.text, place)
    distinct = list(first.values())
    asked = sum(reading.copy is None for reading in read)
    found = iter(outputs[len(outputs) - asked :])
    return tuple(
        _span(reading.window, next(found), distinct)
        if reading.copy is None
        else _settled(reading.window, reading.copy)
        for reading in read
    )


def _settled(window: Window, copy: verbatim.Copy) -> Span:
    shown = Evidence(*copy, verbatim.SUPPORT)
    how = {FOUND_BY: "verbatim"}
    at = (window.start, window.end)
    return Span(*at, SUPPORTED, verbatim.SUPPORT, "hallucination", (shown,), attributes=how)


def _span(window: Window, output: RowOutput, places: Sequence[PassageWindow]) -> Span:
    supported, *against = (float(p) for p in output["probabilities"])
    why = AGAINST[int(np.argmax(against))]
    label = SUPPORTED if supported >= max(against) else why
    best = places[int(output["places"][0])]
    shown = Evidence(best.context, best.window.start, best.window.end, supported)
    how = {FOUND_BY: "model"}
    at = (window.start, window.end)
    return Span(*at, label, supported, "hallucination", (shown,), attributes=how, crossed=why)


_SOURCES = (
    r"(?:the|this|these|your|any|provided|given|available|retrieved) (?:[a-z-]+ ){0,2}"
    r"(?:documents?|documentation|passages?|texts?|sources?|contexts?|excerpts?|materials?)"
)
_SAY = (
    r"(?:say|mention|give|state|specify|contain|include|describe|provide|cover|tell|indicate|list|"
    r"name|explain|address|discuss)"
)
_APOSTROPHE = r"['\x{2019}]"
_ABOUT_SOURCES = re2.compile(
    rf"(?i)\b{_SOURCES}(?: [a-z-]+){{0,3}} "
    rf"(?:(?:do|does|did)(?: not|n{_APOSTROPHE}t) (?:[a-z]+ ){{0,1}}{_SAY}|"
    rf"only (?:[a-z]+ ){{0,1}}{_SAY}s?|gives? no|contains? no|says? nothing)\b"
    rf"|\b(?:could not|couldn{_APOSTROPHE}t|cannot|can{_APOSTROPHE}t|unable to) "
    r"(?:find|tell|say|see)\b"
    rf".*\b{_SOURCES}\b"
    rf"|\bis not part of {_SOURCES}\b"
)
"""A sentence about what the passages lack: no passage can support it, and it claims nothing that
could be wrong. `claims` leaves out those that stand for the whole answer; these remain. "The
document does not allow refunds" is a claim and stays one."""
_MORE = re2.compile(
    r"(?i)[.!?;:\x{2013}\x{2014}]\s|\b(?:but|however|although|though|yet|while|still|except|"
    r"instead|generally|typically|usually|probably|likely|so|therefore|thus|hence|meaning)\b|,\s*which\b"
)
"""A claim may follow such a remark: "..., but the fee is 30 euros"."""
_JOINTS = re2.compile(r"(?i),\s+(?:(?:and|or)\s+)?|,?\s+(?:because|since)\s+")
_AND = re2.compile(r"(?i)\s+and\s+")
_ASKED = "who|whom|whose|what|when|where|which|why|how|whether|if"
_ASKS = re2.compile(rf"(?i)\b(?:{_ASKED})\b")
_ASKING = re2.compile(rf"(?i)(?:{_ASKED}|nor|not|or|any|no)\b")
_STATES = re2.compile(
    r"(?i)\pN|\b(?:is|are|was|were|has|have|had|will|would|can|could|may|might|must|should|does|do|"
    r"did|gets?|got|costs?|closes?|opens?|receives?|pays?|takes?|lasts?|begins?|starts?|ends?|"
    r"includes?|offers?|needs?|allows?|gives?|provides?|charges?|requires?|runs?|comes?|goes|makes?|"
    r"became|becomes?|remains?|stays?|works?|means|says|shows?|won|lost|died|said)\b"
)
"""After a comma or "and" a remark may name one more thing that is lacking ("fees, and pets"), ask
one more thing ("and what it costs") or state something ("and it costs five euros"): a claim. Behind
"whether" the "and" belongs to the question."""
_LAYOUT = re2.compile(r"(?m)^\s*(?:\d{1,3}[.)]|[-+•*])\s+|[{}\[\]\"*`#|_]+")
_CITATION = re2.compile(r"\[\d{1,3}\]")
"""List markers, markup, JSON's signs, citation marks, and opaque words such as base64: none of them
is in the passages, none of them claims anything, and a list's "4." would be an invented number."""
_BRACKETED = re2.compile(r"[\pL,]\s+\[\d{1,3}\]\s+\pL")
"""A passage may put its numbers in brackets ("notice of [60] days"): then they are no citations."""
_LONG = re2.compile(r"[^\s\p{Z}]{32,}")
_WORD_LIKE = re2.compile(r"\pL?\p{Ll}+")
_UNCASED = re2.compile(r"\p{Lo}")
"""Scripts without capital letters; some of them are written without blanks."""
_PATH = 3
_PARTS = re2.compile(r"[\pL\pN]+")
_LEAST_PARTS = 5
"""A long word is opaque unless it has as many parts like words: "every-guest-receives-a-car" is
text, an address on the Web is not."""
LEAST_WORDS = 3
"""Words a piece with an opaque word needs besides it to claim something."""


def is_about_sources(text: str) -> bool:
    """Return whether a sentence only says what the passages do not tell."""
    plain = _plain(text)
    if _ABOUT_SOURCES.search(plain) is None or _MORE.search(plain) is not None:
        return False
    first, *others = _JOINTS.split(plain)
    if _ASKS.search(first) is None:
        others += _AND.split(first)[1:]
    return not any(
        _STATES.search(part) and not (_ASKING.match(part) or _ABOUT_SOURCES.search(part))
        for part in others
    )


def is_only_opaque(text: str) -> bool:
    """Return whether a piece is an opaque word with hardly a word beside it ("Note: c2Vh...")."""
    plain = _plain(text)
    rest = without_opaque(plain)
    return rest != plain and sum(any(map(str.isalnum, w)) for w in rest.split()) < LEAST_WORDS


def opaque_characters(text: str) -> int:
    """Return how many code points lie in words that are left out as opaque."""
    plain = _plain(text)
    return sum(len(word) for word in _LONG.findall(plain) if _is_opaque(word))


def without_opaque(text: str) -> str:
    """Return a text with blanks in place of its opaque words."""
    for word in filter(_is_opaque, _LONG.findall(text)):
        check_time()
        text = text.replace(word, " ")
    return text


def _is_opaque(word: str) -> bool:
    """Return whether a long run without blanks is no text."""
    if "://" in word or word.startswith("www.") or word.count("/") >= _PATH:
        return True
    if _UNCASED.search(word) is not None:
        return False
    alike = 0
    for part in in_time(_PARTS.finditer(word)):
        alike += _WORD_LIKE.fullmatch(part.group()) is not None
        if alike >= _LEAST_PARTS:
            return False
    return True


def without_layout(text: str, *, keep_brackets: bool) -> str:
    """Return a text's words without opaque ones, list markers, markup and citation marks.

    Args:
        text: A claim.
        keep_brackets: Whether numbers in brackets are amounts and not citations.
    """
    plain = without_opaque(_plain(text))
    if not keep_brackets:
        plain = _blanked(_CITATION, plain)
    return " ".join(_blanked(_LAYOUT, plain).split())


def _blanked(regex: Any, text: str) -> str:
    """Return a text with a blank in place of every match."""
    kept: list[str] = []
    start = 0
    for count, found in enumerate(regex.finditer(text), 1):
        if not count % BETWEEN_LOOKS:
            check_time()
        kept.append(text[start : found.start()])
        start = found.end()
    return " ".join((*kept, text[start:]))


def has_bracketed_numbers(text: str) -> bool:
    """Return whether a passage puts its numbers in brackets."""
    return _BRACKETED.search(_plain(text)) is not None


def _plain(text: str) -> str:
    """Return a text that RE2 takes."""
    return text if text.isascii() else encodable(text)
