"""Checks that the passages an answer cites support the statements they are cited for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal, NamedTuple

import re2
from pydantic import Field

from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import Evaluator, EvaluatorSpec, evaluator
from guardrail_offline.evaluators.result import Result
from guardrail_offline.evaluators.shared.claim_scores import claim_f1
from guardrail_offline.evaluators.shared.support import (
    SupportParameters,
    judged_claims,
    lone_claim,
)
from guardrail_service.text.patterns.search import encodable
from guardrail_service.types import MetricSpec, State

_CITATION = re2.compile(r"\[([^\[\]\n]{1,80})\]")
_ID = re2.compile(r"[\w.]+(?:[-_#:/][\w.]+)+")
_DIGITS = 3
"""A year or an amount in brackets is no passage's number."""
_BETWEEN = re2.compile(r"[,;]\s*")


class CitationScores(NamedTuple):
    """Weighted precision over citations, recall over parts, and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def citation_scores(parts: Sequence[Sequence[tuple[str, float]]]) -> CitationScores:
    """Return the scores of an answer's parts.

    Precision is the mean over cited passages of their mean score; recall is the mean over parts of
    the mean score of a part's citations, 0 for a part without one.

    Args:
        parts: Of each part, the passages it cites with 1 for full, 0.5 for partial and 0 for no
            support.

    Source:
        Open RAG Eval METRICS.md, "Citation metric"; by passage as its code does.
    """
    by_passage: dict[str, list[float]] = {}
    for part in parts:
        for passage, score in part:
            by_passage.setdefault(passage, []).append(score)
    means = [sum(scores) / len(scores) for scores in by_passage.values()]
    precision = sum(means) / len(means) if means else 0.0
    cited = [sum(score for _, score in part) / len(part) if part else 0.0 for part in parts]
    recall = sum(cited) / len(cited) if cited else 0.0
    return CitationScores(precision, recall, claim_f1(precision, recall))


class CitationParameters(SupportParameters):
    """The rules by which support is graded.

    Attributes:
        partial_threshold: Least P(supported) of partial support.
        dangling: What a citation of a passage that does not exist counts: no support, or nothing.
    """

    partial_threshold: float = Field(0.2, ge=0.0, le=1.0)
    dangling: Literal["unsupported", "ignored"] = "unsupported"


@evaluator
class Citations(Evaluator[CitationParameters]):
    """Reads each sentence against each passage it cites as [2], [1, 3] or [passage id]."""

    spec = EvaluatorSpec(
        id="citations",
        name="Citations",
        summary="Do the cited passages support the sentences that cite them?",
        metrics=(
            MetricSpec("citation_f1"),
            MetricSpec("citation_precision"),
            MetricSpec("citation_recall"),
        ),
        inputs=frozenset({"contexts", "answer"}),
        run_class="N",
        also=("open_rag_eval:citation",),
        original="J",
        surrogate="sentences as parts and the pack's grounding model in place of a judge",
        needs_support=True,
        scores="0.2.0",
        tags=("nli", "nist:accountable-transparent"),
    )
    parameters = CitationParameters

    def judge(self, view: CaseView, parameters: CitationParameters) -> Result:
        """Return the scores; not applicable to an answer that cites nothing at all."""
        answer = view.answer
        view.refuse_abstention()
        places = passages_by_name(view)
        parts = [(text, cited(text, places)) for text in view.pieces(answer)]
        if not any(names for _, names in parts):
            raise Unavailable(State.NOT_APPLICABLE, "no_citation")
        scored = [_part(view, text, names, places, parameters) for text, names in parts]
        found = citation_scores(scored)
        values = {f"citation_{key}": value for key, value in found._asdict().items()}
        return Result.of(values, details={"citations": sum(len(part) for part in scored)})


def cited(text: str, places: Collection[str] = ()) -> list[str]:
    """Return the names a text cites in square brackets, each once.

    Other text in brackets cites nothing: "[sic]", "[Emphasis added]", "[2019]". A citation is a
    small number, a passage's own id, or looks like an id ("doc-7#3"), whether it is there or not.
    """
    plain = encodable(text)
    names = (name.strip() for found in _CITATION.findall(plain) for name in _BETWEEN.split(found))
    return list(dict.fromkeys(name for name in names if name in places or _is_id(name)))


def _is_id(name: str) -> bool:
    if name.isdecimal():
        return name.isascii() and len(name) <= _DIGITS and name != "0"
    return bool(_ID.fullmatch(name)) and any(map(str.isdigit, name))


def passages_by_name(view: CaseView) -> dict[str, str]:
    """Return the passages by their number from 1 and by their own id, which comes first."""
    passages = view.case.contexts or ()
    numbered = {str(number): passage.text for number, passage in enumerate(passages, start=1)}
    return numbered | {passage.id: passage.text for passage in passages if passage.id}


def _part(
    view: CaseView,
    text: str,
    names: Sequence[str],
    places: dict[str, str],
    parameters: CitationParameters,
) -> list[tuple[str, float]]:
    plain = without_citations(text, names)
    scored = []
    for name in names:
        if name in places and plain.strip():
            (found,) = judged_claims(view, [lone_claim(plain.strip())], [places[name]])
            supported = found.support.supported
            scored.append((name, _grade(supported, parameters)))
        elif parameters.dangling == "unsupported":
            scored.append((name, 0.0))
    return scored


def without_citations(text: str, names: Collection[str]) -> str:
    """Return a text without the brackets that cite something."""

    def kept(found: Any) -> str:
        inside = {name.strip() for name in _BETWEEN.split(found[1])}
        return " " if inside & set(names) else found[0]

    return str(_CITATION.sub(kept, encodable(text)))


def _grade(supported: float, parameters: CitationParameters) -> float:
    if supported >= parameters.support_threshold:
        return 1.0
    return 0.5 if supported >= parameters.partial_threshold else 0.0
