"""Verdicts about claims: by the rules of the ladder, else by the pack's entailment model.

Elsewhere a judge is asked. A rule that decides comes before the model. No claim is supported by
texts that share nothing with it, or that say another number, date, unit or the opposite.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from pydantic import Field

from guardrail_offline.evaluators.case_view import CaseView, Claim, Unavailable
from guardrail_offline.evaluators.pack_models import Support
from guardrail_offline.evaluators.result import Details
from guardrail_offline.evaluators.shared.answer_match import (
    MODEL,
    AnswerMatch,
    Rung,
    holds,
    match,
    same_statement,
    shares_nothing,
)
from guardrail_offline.evaluators.shared.claim_scores import Verdicts
from guardrail_service.detectors.facts import detector as facts
from guardrail_service.detectors.hallucination.detector import AGAINST
from guardrail_service.detectors.registry import Parameters
from guardrail_service.text.language import has_words
from guardrail_service.types import Passage, Sample

SURROGATE = "sentences as claims and the pack's grounding model in place of a judge"
CONTRADICTED, NOT_MENTIONED = AGAINST
BY = "decided_by"
"""In the details of a result: the rungs that decided, each once, in order."""


class SupportParameters(Parameters):
    """The cut from which a claim counts as supported.

    Attributes:
        support_threshold: Least P(supported). One half is the middle of a probability, not a
            calibrated cut.
    """

    support_threshold: float = Field(0.5, ge=0.0, le=1.0)


class Judged(NamedTuple):
    """One claim, how it stands to what it was read against, and the rung that said so."""

    claim: Claim
    support: Support
    by: Rung = MODEL


class Compared(NamedTuple):
    """An answer and its reference read against each other.

    Attributes:
        claims: What the answer claims.
        wanted: What the reference claims.
        claimed: Whether the reference supports each claim of the answer. Shape (claims,).
        answered: Whether the answer supports each claim of the reference. Shape (expected,).
        same: Whether the two are one answer as a whole; None where no rung can tell.
        by: The rungs that decided, in order, each once.
    """

    claims: tuple[Claim, ...]
    wanted: tuple[Claim, ...]
    claimed: Verdicts
    answered: Verdicts
    same: bool | None
    by: tuple[Rung, ...]


def lone_claim(text: str) -> Claim:
    """Return a whole text as one claim that is read as it is."""
    return Claim(0, len(text), text, text)


class Against(NamedTuple):
    """Some texts that claims are read against.

    Attributes:
        texts: What the rules compare, as it was written.
        evidence: What a model reads; None for the texts' sentences, cut as it reads them.
        known_right: The claims are those of a reference. A short one is in a text that has it word
            for word; of an answer that would say nothing.
    """

    texts: tuple[str, ...]
    evidence: tuple[str, ...] | None = None
    known_right: bool = False


def judged_claims(
    view: CaseView, claims: Sequence[Claim], texts: Sequence[str], *, known_right: bool = False
) -> list[Judged]:
    """Return how each claim stands to some texts together."""
    against = Against(tuple(texts), known_right=known_right)
    return [_judged(view, claim, against) for claim in claims]


def _judged(view: CaseView, claim: Claim, against: Against) -> Judged:
    key = ("judged", view.case.question, claim, against)
    return view.models.once(key, lambda: _read(view, claim, against))


def _read(view: CaseView, claim: Claim, against: Against) -> Judged:
    ruled = _ruled(view, claim, against)
    if ruled is not None:
        return Judged(claim, _certain(ruled), ruled.by)
    found = _asked(view, claim, against)
    if found.supported > max(found.contradicted, found.not_mentioned) and shares_nothing(
        claim.own, against.texts, view.case.question
    ):
        return Judged(claim, Support(0.0, 0.0, 1.0, found.evidence), "nothing_shared")
    return Judged(claim, found)


def _asked(view: CaseView, claim: Claim, against: Against) -> Support:
    """Return what the model says; unavailable if it does not read the language."""
    return view.models.support(claim.text, _evidence(view, claim, against))


def _evidence(view: CaseView, claim: Claim, against: Against) -> tuple[str, ...]:
    """Return what the model would read with a claim; unavailable as `_asked` is."""
    view.refuse_unreadable(claim.own)
    return against.evidence or view.evidence(against.texts)


def _certain(found: AnswerMatch) -> Support:
    if found.same:
        return Support(1.0, 0.0, 0.0, 0)
    denied = found.by in ("contradicted", "denied", "yes_no", "number", "date", "unit")
    return Support(0.0, float(denied), float(not denied), 0)


def supports(
    view: CaseView,
    claims: Sequence[Claim],
    texts: Sequence[str],
    least: float,
    *,
    known_right: bool = False,
) -> list[float]:
    """Return P(supported) of claims as `judged_claims` does, where it is at least `least`.

    Of others it only says that they are below: whether something contradicts a claim that the
    model does not find supported makes no difference, and costs more than the model. Nor is the
    model asked about a claim that shares nothing with the texts.
    """
    against = Against(tuple(texts), known_right=known_right)
    key = ("supports", view.case.question, against, least)
    return [
        view.models.once((*key, claim), partial(_support, view, claim, against, least))
        for claim in claims
    ]


def _support(view: CaseView, claim: Claim, against: Against, least: float) -> float:
    if _stated(view, claim, against) is None:
        try:
            evidence = _evidence(view, claim, against)
        except Unavailable:
            pass  # a contradiction is one in any language
        else:
            if shares_nothing(claim.own, against.texts, view.case.question):
                return 0.0
            found = view.models.support(claim.text, evidence)
            if found.supported < least:
                return found.supported
    return _judged(view, claim, against).support.supported


def _ruled(view: CaseView, claim: Claim, against: Against) -> AnswerMatch | None:
    """Return what the rules say of a claim, or None where a model has to read it."""
    if (found := _stated(view, claim, against)) is not None:
        return found
    if contradicts(view, claim.own, against.texts):
        return AnswerMatch(False, "contradicted")
    return None


def _stated(view: CaseView, claim: Claim, against: Against) -> AnswerMatch | None:
    """Return whether a claim has no words or is what a text says; None where neither is so."""
    own, question = claim.own, view.case.question
    if not has_words(own):
        return AnswerMatch(False, "no_words")
    for text in against.texts:
        for sentence in view.text(text).answer_sentences:
            found = same_statement(sentence.text, own, question)
            if found is not None and found.same:
                return found
            if against.known_right and holds(sentence.text, own):
                return AnswerMatch(True, "contained")
    return None


def contradicts(view: CaseView, text: str, texts: Sequence[str]) -> bool:
    """Return whether some texts say another number, date, unit or order than a text, or deny it."""
    sample = view.segmented(Sample(text, view.case.question, tuple(map(Passage, texts))))
    return any(one.label == CONTRADICTED for one in facts.verdicts(sample, sample.answer_sentences))


def verdicts(
    view: CaseView,
    claims: Sequence[Claim],
    texts: Sequence[str],
    parameters: SupportParameters,
    *,
    known_right: bool = False,
) -> Verdicts:
    """Return whether some texts together support each claim. Shape (claims,)."""
    cut = parameters.support_threshold
    found = supports(view, claims, texts, cut, known_right=known_right)
    return np.array([supported >= cut for supported in found])


def verdicts_by_passage(
    view: CaseView,
    claims: Sequence[Claim],
    parameters: SupportParameters,
    *,
    known_right: bool = False,
) -> Verdicts:
    """Return whether each passage alone supports each claim. Shape (claims, passages)."""
    columns = [
        verdicts(view, claims, [p.text], parameters, known_right=known_right) for p in view.contexts
    ]
    return np.stack(columns, axis=1)


def compared(view: CaseView, parameters: SupportParameters) -> Compared:
    """Return the answer and the expected answer read against each other, claim by claim.

    As a whole first: "4,000" and "4000" have no sentences that a model could read. The question
    stands on both sides of what a model reads.

    Raises:
        Unavailable: If one of them is missing, the answer abstains, or a model has to read a
            language that it does not know.
    """
    answer, expected = view.answer, view.closest
    whole = match(expected, answer, view.case.question)
    if whole is None or not whole.same:
        view.refuse_abstention()
    claims, wanted = view.claims_or_whole(answer), view.expected_claims(expected)
    if whole is not None:
        ours, theirs = np.full(len(claims), whole.same), np.full(len(wanted), whole.same)
        return Compared(claims, wanted, ours, theirs, whole.same, (whole.by,))
    reference = Against((expected,), _with_question(wanted))
    given = Against((answer,), _with_question(claims), known_right=True)
    there = [_judged(view, claim, reference) for claim in claims]
    back = [_judged(view, claim, given) for claim in wanted]
    cut = parameters.support_threshold
    return Compared(
        claims,
        wanted,
        np.array([one.support.supported >= cut for one in there]),
        np.array([one.support.supported >= cut for one in back]),
        None,
        rungs((*there, *back)),
    )


def _with_question(claims: Sequence[Claim]) -> tuple[str, ...] | None:
    """Return a text that is one claim as it is read itself: a short one behind its question."""
    return (claims[0].text,) if len(claims) == 1 else None


def rungs(judged: Iterable[Judged]) -> tuple[Rung, ...]:
    """Return the rungs that decided, each once, in order."""
    return tuple(dict.fromkeys(one.by for one in judged))


def answer_claims(view: CaseView) -> tuple[Claim, ...]:
    """Return the answer's claims; unavailable if it abstains."""
    answer = view.answer
    view.refuse_abstention()
    return view.claims(answer, view.case.question)


def spans(judged: Sequence[Judged], metric: str, threshold: float) -> list[Details]:
    """Return one scored part of the answer per claim, for sentence-level results."""
    return [
        {
            "start": claim.start,
            "end": claim.end,
            "score": support.supported,
            "label": _label(support, threshold),
            "metric": metric,
            "attributes": {"found_by": by},
        }
        for claim, support, by in judged
    ]


def _label(support: Support, threshold: float) -> str:
    if support.supported >= threshold:
        return "supported"
    return CONTRADICTED if support.contradicted > support.not_mentioned else NOT_MENTIONED
