"""Which parts of an answer claim something, in pieces a passage sentence can be compared with.

Groundedness is the worst piece's support, so one piece that claims nothing decides it. On the half
of `models/thresholds/answers.jsonl` that chooses thresholds, the area under the ROC curve
(invented, unsupported and off-topic answers against good ones) was .73 for plain sentences and .86
for these pieces; docs/decisions/0004-claims-for-groundedness.md has each step's part.
"""

from __future__ import annotations

from collections.abc import Iterable

from guardrail_service.detectors.no_answer.abstention import is_abstention, is_courtesy
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.text.segmentation.sentences import Sentence, merge_short
from guardrail_service.types import Role

CLAIMS_VERSION = "rag-guardrail-claims/2"
"""Part of the evidence fingerprint: whoever changes a rule here changes scores and thresholds."""

MIN_CLAIM_CHARS = 50
"""Shorter pieces join a neighbour: ROC area .79, .80 and .82 at 25, 25 with lists and 40."""
MAX_QUESTION_CHARS = 150
"""Longer questions would drown a short answer."""
_LEAD_IN_EDGES = "*_ \t`"


def claims(sample: SegmentedSample, min_chars: int = MIN_CLAIM_CHARS) -> tuple[Sentence, ...]:
    """Return the answer's claims, in order; offsets are those of the answer.

    Left out are courtesy and sentences that only say what the sources lack. A lead-in that ends in
    a colon belongs to what it leads in, and a short piece to its neighbour.
    """
    joined = sample.once("claims", lambda: tuple(_with_lead_ins(_claiming(sample), sample.answer)))
    return merge_short(joined, sample.answer, min_chars)


def read_with_question(
    sample: SegmentedSample, pieces: tuple[Sentence, ...], role: Role
) -> str | None:
    """Return a short answer together with its question, or None if it stands on its own.

    "14 days." says little without "How long may guests stay?".
    """
    question = (sample.sample.question or "").strip()
    if len(pieces) != 1 or not question or len(question) > MAX_QUESTION_CHARS:
        return None
    if len(pieces[0].text) > MIN_CLAIM_CHARS:
        return None
    whole = f"{question} {pieces[0].text}"
    fits = len(sample.windows_of(role, (Sentence(0, len(whole), whole),))) == 1
    return whole if fits else None


def _claiming(sample: SegmentedSample) -> Iterable[Sentence]:
    question = sample.sample.question
    for sentence in sample.raw_answer_sentences:
        if not (is_courtesy(sentence.text) or is_abstention([sentence.text], question)):
            yield sentence


def _with_lead_ins(sentences: Iterable[Sentence], source: str) -> Iterable[Sentence]:
    start: int | None = None
    last: Sentence | None = None
    for sentence in sentences:
        start = sentence.start if start is None else start
        last = sentence
        if not sentence.text.rstrip(_LEAD_IN_EDGES).endswith((":", "：")):  # noqa: RUF001
            yield Sentence(start, sentence.end, source[start : sentence.end])
            start = None
    if start is not None and last is not None:
        yield Sentence(start, last.end, source[start : last.end])
