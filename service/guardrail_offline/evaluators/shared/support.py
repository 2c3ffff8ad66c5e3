"""Verdicts about claims by the pack's entailment or grounding model: what a judge is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from guardrail_offline.evaluators.case_view import CaseView, Claim
from guardrail_offline.evaluators.pack_models import Support
from guardrail_offline.evaluators.result import Details
from guardrail_offline.evaluators.shared.claim_scores import Verdicts
from guardrail_service.detectors.registry import Parameters

SURROGATE = "sentences as claims and the pack's grounding model in place of a judge"


class SupportParameters(Parameters):
    """The cut from which a claim counts as supported.

    Attributes:
        support_threshold: Least P(supported). One half is the middle of a probability, not a
            calibrated cut.
    """

    support_threshold: float = Field(0.5, ge=0.0, le=1.0)


class Judged(NamedTuple):
    """One claim and how it stands to what it was read against."""

    claim: Claim
    support: Support


def judged_claims(view: CaseView, claims: Sequence[Claim], texts: Sequence[str]) -> list[Judged]:
    """Return how each claim stands to some texts together."""
    evidence = view.evidence(texts)
    return [Judged(claim, view.models.support(claim.text, evidence)) for claim in claims]


def verdicts(
    view: CaseView, claims: Sequence[Claim], texts: Sequence[str], parameters: SupportParameters
) -> Verdicts:
    """Return whether some texts together support each claim. Shape (claims,)."""
    found = judged_claims(view, claims, texts)
    return np.array([j.support.supported >= parameters.support_threshold for j in found])


def verdicts_by_passage(
    view: CaseView, claims: Sequence[Claim], parameters: SupportParameters
) -> Verdicts:
    """Return whether each passage alone supports each claim. Shape (claims, passages)."""
    columns = [verdicts(view, claims, [p.text], parameters) for p in view.contexts]
    return np.stack(columns, axis=1)


def answer_claims(view: CaseView) -> tuple[Claim, ...]:
    """Return the answer's claims; unavailable if it abstains."""
    answer = view.answer
    view.refuse_abstention()
    return view.claims(answer, view.case.question)


def expected_claims(view: CaseView) -> tuple[Claim, ...]:
    """Return the expected answer's claims."""
    return view.claims(view.expected, view.case.question)


def spans(judged: Sequence[Judged], metric: str) -> list[Details]:
    """Return one scored part of the answer per claim, for sentence-level results."""
    return [
        {
            "start": claim.start,
            "end": claim.end,
            "score": support.supported,
            "label": "contradicted"
            if support.contradicted > support.not_mentioned
            else "not_mentioned",
            "metric": metric,
        }
        for claim, support in judged
    ]
