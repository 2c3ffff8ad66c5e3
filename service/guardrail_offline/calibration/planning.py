"""How many labels a promise takes, to be known before anybody labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from guardrail_offline.calibration.options import Options
from guardrail_offline.calibration.ranks import (
    guaranteed_rank,
    labels_needed,
    labels_needed_anytime,
    labels_needed_on_average,
)

ALPHAS = (0.20, 0.10, 0.05, 0.02, 0.01)
COMFORT = 3
"""Rank worth planning for: at rank one a single odd answer decides every threshold."""


@dataclass(frozen=True, slots=True)
class Need:
    """Good questions one promise takes.

    Attributes:
        surely: With confidence 0.90 and 0.95.
        on_average: Without a confidence.
    """

    alpha: float
    surely: tuple[int, int]
    on_average: int


def table() -> tuple[Need, ...]:
    """Return the smallest samples for usual promises."""
    return tuple(
        Need(
            alpha,
            (labels_needed(alpha, 0.10), labels_needed(alpha, 0.05)),
            labels_needed_on_average(alpha),
        )
        for alpha in ALPHAS
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """What one promise takes.

    Attributes:
        least: Good questions at which a cut exists at all.
        comfortable: Good questions at which it rests on the third-worst answer.
        anytime: Good questions if the data are to be looked at more than once; None if they cannot
            be under these options.
        labels: Questions to label for the comfortable number, with the design part and with those
            that turn out bad.
        least_labels: The same for the least number.
    """

    options: Options
    good_share: float
    least: int
    comfortable: int
    anytime: int
    labels: int
    least_labels: int

    def as_json(self) -> dict[str, Any]:
        """Return the plan for `--json`."""
        return {
            "alpha": self.options.alpha,
            "delta": self.options.delta,
            "split": self.options.split,
            "good_share": self.good_share,
            "good_questions_at_least": self.least,
            "good_questions_comfortable": self.comfortable,
            "good_questions_anytime": self.anytime,
            "questions_to_label_at_least": self.least_labels,
            "questions_to_label": self.labels,
        }


def plan(options: Options, good_share: float) -> Plan:
    """Return how many labels the options' promise takes.

    Args:
        options: The promise and the design part.
        good_share: Expected share of answers that a human will pass, in (0, 1].
    """
    least = labels_needed(options.alpha, options.delta)
    comfortable = labels_needed(options.alpha, options.delta, COMFORT)
    whole = good_share * (1 - options.split)
    return Plan(
        options=options,
        good_share=good_share,
        least=least,
        comfortable=comfortable,
        anytime=labels_needed_anytime(options.alpha, options.delta),
        labels=math.ceil(comfortable / whole),
        # The by-ranks rule proves with every label and needs no design part.
        least_labels=math.ceil(least / good_share),
    )


def best_promise(n: int, delta: float) -> float:
    """Return the smallest alpha that n good questions can promise with confidence 1 - delta."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if guaranteed_rank(n, middle, delta):
            high = middle
        else:
            low = middle
    return high
