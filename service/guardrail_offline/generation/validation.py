"""Checks generated cases against their sources; what fails goes to a list with reasons.

Checks that need no model come first. Those of the pack: the embedding model says how near a
question is to its source, the grounding model whether the source supports the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal, get_args

import numpy as np

from guardrail_offline.evaluators.pack_models import Array, PackModels
from guardrail_offline.generation.chunks import DocumentChunk
from guardrail_offline.generation.generated import GeneratedCase
from guardrail_service.errors import NotScorable, RowFailed
from guardrail_service.text.language import same_language
from guardrail_service.text.segmentation.sentences import split_sentences

CheckName = Literal[
    "form", "span", "language", "duplicate", "near_duplicate", "relevancy", "answerable",
    "false_premise", "outlier",
]  # fmt: skip
CHECKS: tuple[CheckName, ...] = get_args(CheckName)
MODEL_CHECKS = ("relevancy", "answerable", "false_premise", "outlier")
_MOST_WORDS = 160
_FEWEST_FOR_OUTLIERS = 20
_HINTS = frozenset(
    ("yes_or_no", "multiple_choice", "comparison", "negation_and_contradiction", "inference",
     "deliberately_misleading", "prompt_attack", "ambiguity_handling", "multi_hop", "multi_turn")
)  # fmt: skip
"""Generators whose questions may hold the words of the answer."""


@dataclass(frozen=True)
class ValidationThresholds:
    """The values at which the checks cut.

    Attributes:
        relevancy: Least cosine of a question with the nearest sentence of its source. Measured on
            `tests/golden/generated_cases.jsonl`: good cases begin at 0.43, questions about other
            things end at 0.18; see docs/generation.md.
        answerable: Least P(supported) of the answer's statement. One half, as everywhere in the
            service: the middle of a probability.
        near_duplicate: Least cosine of two questions of one generator and source with one answer.
            Measured there, too: different questions end at 0.86, three of four rewordings begin at
            0.98.
        outlier: Robust z-scores below the median from which a case stands out; 3.5 is Iglewicz
            and Hoaglin's (1993).
    """

    relevancy: float = 0.3
    answerable: float = 0.5
    near_duplicate: float = 0.95
    outlier: float = 3.5

    def as_json(self) -> dict[str, dict[str, Any]]:
        """Return each value with where it comes from."""
        sources = {
            "relevancy": "measured on tests/golden/generated_cases.jsonl",
            "answerable": "the middle of a probability, as in the service",
            "near_duplicate": "measured on tests/golden/generated_cases.jsonl",
            "outlier": "Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993",
        }
        return {name: {"value": getattr(self, name), "source": sources[name]} for name in sources}


@dataclass(frozen=True)
class Rejected:
    """A case that a check refused.

    Attributes:
        case: The case.
        check: Which one.
        reason: In a sentence.
        value: What was measured, where the check measures.
        threshold: Where it cuts.
    """

    case: GeneratedCase
    check: CheckName
    reason: str
    value: float | None = None
    threshold: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return check, reason and case."""
        said: dict[str, Any] = {"check": self.check, "reason": self.reason}
        if self.value is not None:
            said |= {"value": round(self.value, 4), "threshold": self.threshold}
        return said | {"case": self.case.as_json()}


@dataclass(frozen=True)
class Validated:
    """The outcome of validation.

    Attributes:
        kept: In the order they came.
        rejected: With reasons.
        scores: By key of a case: cosine, bert_score, nli_supported, nli_contradicted.
        thresholds: That were used, with their sources.
        not_checked: Checks that were not made because there is no model.
    """

    kept: tuple[GeneratedCase, ...]
    rejected: tuple[Rejected, ...]
    scores: Mapping[str, Mapping[str, float]]
    thresholds: Mapping[str, Mapping[str, Any]]
    not_checked: tuple[str, ...] = ()


@dataclass
class _Run:
    """Everything that the checks read and write."""

    chunks: Mapping[str, DocumentChunk]
    cuts: ValidationThresholds
    models: PackModels | None
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    asked: dict[tuple[str, str], str] = field(default_factory=dict)
    near: dict[tuple[str, str, str], list[tuple[str, GeneratedCase]]] = field(default_factory=dict)


Check = Callable[[GeneratedCase, _Run], Rejected | None]


def validate(
    cases: Iterable[GeneratedCase],
    chunks: Iterable[DocumentChunk],
    models: PackModels | None = None,
    thresholds: ValidationThresholds | None = None,
    advance: Callable[[int], object] = lambda _count: None,
) -> Validated:
    """Return the cases that pass every check, and the others with the first reason of each.

    Turns of a conversation stay or go together.

    Args:
        cases: Generated ones.
        chunks: Of the corpus, and of outside documents.
        models: Of a pack with the roles embedding and grounding or nli; None leaves their checks
            out, and the result says so.
        thresholds: Where to cut.
        advance: Told when a case is done.
    """
    run = _Run({chunk.id: chunk for chunk in chunks}, thresholds or ValidationThresholds(), models)
    checks = _WITHOUT_MODEL if models is None else (*_WITHOUT_MODEL, *_WITH_MODEL)
    kept: list[GeneratedCase] = []
    rejected: list[Rejected] = []
    for one in cases:
        found = next((no for check in checks if (no := check(one, run)) is not None), None)
        if found is None:
            kept.append(one)
        else:
            rejected.append(found)
        advance(1)
    kept, outliers = _without_outliers(kept, run)
    kept, lonely = _whole_conversations(kept)
    return Validated(
        tuple(kept),
        (*rejected, *outliers, *lonely),
        run.scores,
        run.cuts.as_json(),
        MODEL_CHECKS if models is None else (),
    )


def _form(one: GeneratedCase, run: _Run) -> Rejected | None:
    """Refuse questions that are none, and those that give their answer away."""
    words = one.question.split()
    if not 3 <= len(words) <= _MOST_WORDS:
        return Rejected(one, "form", f"the question has {len(words)} words")
    if one.answerable and not (one.expected or "").strip():
        return Rejected(one, "form", "there is no expected answer")
    if one.answerable and not one.spans:
        return Rejected(one, "form", "there is no place in a document")
    answer = " ".join((one.expected or "").split()).lower()
    hides = one.generator not in _HINTS and len(answer) > 2
    if hides and one.contexts is None and f" {answer} " in f" {_spaced(_unquoted(one.question))} ":
        return Rejected(one, "form", "the question holds its answer")
    return None


def _unquoted(text: str) -> str:
    """Return a text without what stands in quotation marks: names of documents and columns."""
    return " ".join(text.split('"')[::2])


def _spaced(text: str) -> str:
    return "".join(c if c.isalnum() or c in "'-.," else " " for c in text.lower())


def _span(one: GeneratedCase, run: _Run) -> Rejected | None:
    """Refuse cases whose places do not hold what they say."""
    for span in one.spans:
        chunk = run.chunks.get(span.chunk)
        if chunk is None:
            return Rejected(one, "span", f"there is no chunk {span.chunk}")
        if chunk.text[span.start - chunk.start : span.end - chunk.start] != span.text:
            return Rejected(one, "span", f"{span.chunk} has another text at {span.start}")
    return None


def _language(one: GeneratedCase, run: _Run) -> Rejected | None:
    """Refuse questions in another language than their source."""
    for span in one.spans:
        if same_language(one.question, run.chunks[span.chunk].text) is False:
            return Rejected(one, "language", "the question is not in the language of its source")
    return None


def _duplicate(one: GeneratedCase, run: _Run) -> Rejected | None:
    """Refuse a question that was there, in the same words."""
    words = " ".join(_spaced(one.question).split())
    place = (words, one.conversation or (one.contexts or ("",))[0])
    if place in run.asked:
        return Rejected(one, "duplicate", f"{run.asked[place]} asks the same")
    run.asked[place] = one.key
    return None


def _near_duplicate(one: GeneratedCase, run: _Run) -> Rejected | None:
    """Refuse a question that asks for the same answer of the same place in nearly the same words.

    Variants of one question are meant to be alike; they are not compared.
    """
    if one.source or one.conversation or not one.spans or not one.expected:
        return None
    place = (one.generator, one.spans[0].chunk, f"{one.spans[0].start} {one.expected.lower()}")
    core = _core(one.question)
    for other, case in run.near.setdefault(place, []):
        alike = _alike(core, other, run)
        if alike >= run.cuts.near_duplicate:
            reason = f"{case.key} asks nearly the same"
            return Rejected(one, "near_duplicate", reason, alike, run.cuts.near_duplicate)
    run.near[place].append((core, one))
    return None


def _core(question: str) -> str:
    """Return a question without the document's name before it."""
    head, mark, rest = question.partition('", ')
    return rest if mark and head.startswith("According to") else question


def _alike(left: str, right: str, run: _Run) -> float:
    vectors = None if run.models is None else _vectors(run.models, [left, right])
    if vectors is not None:
        return float(vectors[0] @ vectors[1])
    a, b = set(_spaced(left).split()), set(_spaced(right).split())
    return len(a & b) / max(1, len(a | b))


def _relevancy(one: GeneratedCase, run: _Run) -> Rejected | None:
    """Refuse questions that are far from their source."""
    models = run.models
    if models is None or not one.spans:
        return None
    sources = list(_sentences(span.text for span in one.spans))
    vectors = _vectors(models, [_core(one.question), *sources])
    if vectors is None:
        return None
    cosine = float((vectors[1:] @ vectors[0]).max())
    scores = run.scores.setdefault(one.key, {})
    scores["cosine"] = round(cosine, 4)
    scored = _bert_score(models, one, sources)
    if scored is not None:
        scores["bert_score"] = round(scored, 4)
    is_turn = one.turn > 1  # "And when did it open?" means nothing alone
    if cosine < run.cuts.relevancy and not is_turn:
        reason = "the question is about something else than its source"
        return Rejected(one, "relevancy", reason, cosine, run.cuts.relevancy)
    return None


def _bert_score(models: PackModels, one: GeneratedCase, sources: Sequence[str]) -> float | None:
    """Return how well the source covers question and answer: BERTScore's recall of tokens."""
    text = f"{_core(one.question)} {one.expected or ''}"
    if not all(map(models.fits, (text, *sources))):
        return None
    asked = models.token_vectors(text)
    held = np.concatenate([models.token_vectors(source) for source in sources])
    return float((asked @ held.T).max(axis=1).mean())


def _answerable(one: GeneratedCase, run: _Run) -> Rejected | None:
    """Refuse cases whose answer the source does not support."""
    if run.models is None or not one.answerable or not one.spans:
        return None
    chunks = [run.chunks[id] for id in dict.fromkeys(span.chunk for span in one.spans)]
    claims = list(_sentences([one.truth or one.expected or ""]))
    whole = " ".join(" ".join(chunk.text.split()) for chunk in chunks)
    quoted = " ".join(" ".join(span.text.split()) for span in one.spans)
    supported = 1.0
    for claim in claims:
        if " ".join(claim.split()) in whole or _cells_in(claim, quoted):
            continue  # said in these words: no model is surer
        supported = min(supported, _supported(run.models, claim, chunks))
    run.scores.setdefault(one.key, {})["nli_supported"] = round(supported, 4)
    if supported < run.cuts.answerable:
        reason = "the source does not support the expected answer"
        return Rejected(one, "answerable", reason, supported, run.cuts.answerable)
    return None


def _cells_in(claim: str, row: str) -> bool:
    """Return whether "row: column: value" stands in a table's row."""
    parts = claim.split(": ")
    return len(parts) >= 3 and parts[0] in row and parts[-1] in row


def _supported(models: PackModels, claim: str, chunks: Sequence[DocumentChunk]) -> float:
    evidence = tuple(s for s in _sentences(chunk.text for chunk in chunks) if models.fits(s))
    if not evidence or not models.fits(claim):
        return 0.0
    return models.support(claim, evidence).supported


def _false_premise(one: GeneratedCase, run: _Run) -> Rejected | None:
    """Refuse cases whose false statement the source supports all the same."""
    if run.models is None or not one.false:
        return None
    chunks = [run.chunks[id] for id in dict.fromkeys(span.chunk for span in one.spans)]
    supported = _supported(run.models, one.false, chunks)
    run.scores.setdefault(one.key, {})["nli_false_supported"] = round(supported, 4)
    if supported >= run.cuts.answerable:
        reason = "the source supports what should be false"
        return Rejected(one, "false_premise", reason, supported, run.cuts.answerable)
    return None


_WITHOUT_MODEL: tuple[Check, ...] = (_form, _span, _language, _duplicate, _near_duplicate)
_WITH_MODEL: tuple[Check, ...] = (_relevancy, _answerable, _false_premise)


def _without_outliers(
    cases: Sequence[GeneratedCase], run: _Run
) -> tuple[list[GeneratedCase], list[Rejected]]:
    """Return cases without those whose cosine lies far below all others, and those.

    Variants are left alone: noise around a question is meant to draw it away.
    """
    values = {
        one.key: run.scores[one.key]["cosine"]
        for one in cases
        if "cosine" in run.scores.get(one.key, {}) and one.turn <= 1 and not one.source
    }
    if len(values) < _FEWEST_FOR_OUTLIERS:
        return list(cases), []
    middle = median(values.values())
    spread = 1.4826 * median(abs(value - middle) for value in values.values())
    least = middle - run.cuts.outlier * spread
    far = {key for key, value in values.items() if value < least}
    reason = "the question is much farther from its source than the others"
    gone = [
        Rejected(one, "outlier", reason, values[one.key], round(least, 4))
        for one in cases
        if one.key in far
    ]
    return [one for one in cases if one.key not in far], gone


def _whole_conversations(
    cases: Sequence[GeneratedCase],
) -> tuple[list[GeneratedCase], list[Rejected]]:
    """Return cases without turns whose conversation lost one, and those."""
    turns: dict[str, list[int]] = {}
    for one in cases:
        turns.setdefault(one.conversation, []).append(one.turn)
    broken = {name for name, found in turns.items() if name and len(found) < 2}
    gone = [Rejected(one, "form", "another turn of its conversation was rejected")
            for one in cases if one.conversation in broken]  # fmt: skip
    return [one for one in cases if one.conversation not in broken], gone


def _sentences(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for sentence in split_sentences(text):
            yield sentence.text


def _vectors(models: PackModels, texts: Sequence[str]) -> Array | None:
    """Return embeddings; None where one of the texts is too long for the model."""
    if not all(map(models.fits, texts)):
        return None
    try:
        return models.embed(texts)
    except (NotScorable, RowFailed):
        return None
