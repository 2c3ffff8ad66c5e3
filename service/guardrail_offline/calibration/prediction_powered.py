"""The share of good answers from few labels of people and many verdicts of a judge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from guardrail_offline.calibration.judge_agreement import (
    Estimate,
    JudgedRun,
    Numbers,
    VerdictOnCase,
)
from guardrail_offline.intervals import exact_interval


@dataclass(frozen=True, slots=True)
class GoodShare:
    """The share of a system's answers that people would pass, three ways.

    Attributes:
        model: Its name.
        people: From labels alone, with Student's interval over questions.
        judge: Mean of the judge's verdicts on all answers; no interval, it may be wrong throughout.
        powered: Both together: prediction-powered inference.
        trust: How much the judge's verdicts count in it, 0 to 1; it is chosen from the data.
    """

    model: str
    people: Estimate
    judge: Estimate
    powered: Estimate
    trust: float

    def as_json(self) -> dict[str, Any]:
        """Return the three for a file."""
        three = {name: getattr(self, name).as_json() for name in ("people", "judge", "powered")}
        return {"model": self.model, **three, "trust": self.trust}


def good_shares(run: JudgedRun) -> list[GoodShare]:
    """Return the share of good answers of each system, by people and judge together."""
    found = []
    for key, name in run.names.items():
        cases = [case for case in run.cases if case.model == key and case.passes is not None]
        if any(case.person is not None for case in cases):
            found.append(_good_share(name, cases))
    return found


def _good_share(name: str, cases: Sequence[VerdictOnCase]) -> GoodShare:
    labelled: dict[str, list[VerdictOnCase]] = {}
    rest: dict[str, list[VerdictOnCase]] = {}
    asked = {case.group for case in cases if case.person is not None}
    for case in cases:
        # The other answers to a labelled question are not independent of it.
        (labelled if case.group in asked else rest).setdefault(case.group, []).append(case)
    told = [[case for case in some if case.person is not None] for some in labelled.values()]
    people = np.array([np.mean([bool(c.person) for c in some]) for some in told])
    guessed = np.array([np.mean([bool(c.passes) for c in some]) for some in told])
    others = np.array([np.mean([bool(c.passes) for c in some]) for some in rest.values()])
    value, low, high, trust = prediction_powered(people, guessed, others)
    every = np.array([bool(case.passes) for case in cases])
    return GoodShare(
        model=name,
        people=_student(people),
        judge=Estimate(float(every.mean()), n=len(every)),
        powered=Estimate(value, low, high, n=len(people) + len(others)),
        trust=trust,
    )


def prediction_powered(
    people: Numbers, guessed: Numbers, others: Numbers, confidence: float = 0.95
) -> tuple[float, float | None, float | None, float]:
    """Return a mean from few labels and many guesses, its interval, and the guesses' weight.

    The guesses' own error is measured on the labelled units and taken out, so the interval holds
    however bad they are; the weight that makes it shortest is 0 for guesses that know nothing.

    Args:
        people: A person's value per labelled unit. Shape (n,).
        guessed: The judge's value of the same units. Shape (n,).
        others: The judge's values of units without a label. Shape (m,); m may be 0.
        confidence: Share of such intervals that hold the true mean.

    Returns:
        Mean, lower and upper end (None below two labels) and weight in [0, 1].

    Source:
        Angelopoulos, Duchi and Zrnic, PPI++: Efficient Prediction-Powered Inference (2023),
        for a mean; the quantile is Student's with n - 1 degrees of freedom. Two units in which
        people and judge contradict each other are added to the error, as Agresti and Coull
        (1998) add two successes and two failures: without them intervals of 30 labels and a
        judge that passes too much held the truth in 92 % of 3,000 draws, with them in 95 %.
    """
    from scipy.special import stdtrit

    n, m = len(people), len(others)
    mean = float(people.mean())
    if n < 2:
        return mean, None, None, 0.0
    # Few labels rarely hold the rare contradictions that make the error: one of each kind is added.
    told, said = np.append(people, [0.0, 1.0]), np.append(guessed, [1.0, 0.0])
    trust = 0.0
    if m:
        pooled = float(np.concatenate([said, others]).var(ddof=1))
        shared = float(np.cov(told, said, ddof=1)[0, 1])
        trust = min(1.0, max(0.0, shared / (pooled * (1 + n / m)))) if pooled > 0 else 0.0
    corrected = people - trust * guessed
    error = float(((told - trust * said) if trust else corrected).var(ddof=1)) / n
    if trust:
        mean = float(corrected.mean()) + trust * float(others.mean())
        error += trust**2 * (float(others.var(ddof=1)) / m if m > 1 else math.inf)
    if error <= 0:  # no spread was seen, which is not a spread of 0
        low, high = exact_interval(round(mean * n), n, confidence)
        return mean, low, high, trust
    reach = float(stdtrit(n - 1, (1 + confidence) / 2)) * math.sqrt(error)
    return mean, max(0.0, mean - reach), min(1.0, mean + reach), trust


def _student(values: Numbers) -> Estimate:
    value, low, high, _ = prediction_powered(values, np.zeros_like(values), np.zeros(0))
    return Estimate(value, low, high, n=len(values))
