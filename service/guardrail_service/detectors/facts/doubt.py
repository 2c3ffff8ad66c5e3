"""Weighs what is held against an answer once more, by how the answer as a whole is made.

An answer that says many numbers, most of them right, and works some out, is seldom wrong in the
one that no rule could follow; one that says five numbers, three of them nowhere to be found, is.
A logistic model over a few counts, fitted on answers that rules flagged rightly and wrongly
(`models/training/facts/fit_doubt.py`), tells which.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple, Protocol

WHOLE: Final = frozenset(("negation", "quantifier", "order", "role", "name"))
"""Kinds of what is held against a statement as a whole."""
LEAST_NUMBERS: Final = 5
"""Answers with fewer tell too little of how they are made."""
COLUMNS: Final = (
    "flagged", "absent", "worst", "numbers", "share_flagged", "share_worked_out", "number_asked",
    "signs", "length", "other_language", "whole",
)  # fmt: skip
"""Counts by column: numbers held against it and those that no passage mentions, the lowest score,
numbers, the share held against it and the share worked out, whether the question has a number,
signs of calculation, hundreds of characters, another language, and whether the worst is a whole
statement."""
WEIGHTS_FILE: Final = "doubt.json"
_SIGNS: Final = "=\u00d7\u00f7\u2248\u2192"
_FLAGGED, _HUNDRED = 0.5, 100


class WeighedFact(Protocol):
    """A fact and the passages' word on it; see `FactVerdict`."""

    @property
    def kind(self) -> str:
        """Return the fact's kind."""
        ...

    @property
    def label(self) -> str:
        """Return `supported`, `contradicted` or `not_mentioned`."""
        ...

    @property
    def score(self) -> float:
        """Return 1 for supported, less the surer it is that the passages say otherwise."""
        ...

    @property
    def derivation(self) -> str:
        """Return how it follows from other numbers, or ""."""
        ...


class Weights(NamedTuple):
    """A logistic model: the log odds that a flag is right, and from which on it stays."""

    weights: tuple[float, ...]
    intercept: float
    least: float


@cache
def shipped() -> Weights:
    """Return the weights that ship."""
    told = json.loads(files(__package__).joinpath(WEIGHTS_FILE).read_text("utf-8"))
    return Weights(tuple(told["weights"]), told["intercept"], told["least"])


def columns(
    found: Sequence[WeighedFact], answer: str, question: str, in_english: bool
) -> list[float] | None:
    """Return the counts of an answer, as in `COLUMNS`; None where nothing is weighed.

    Args:
        found: The passages' word on its facts; below .5 it is held against the answer.
        answer: The answer.
        question: Its question, "" for none.
        in_english: Whether the rules read its language as English.
    """
    numbers = [one for one in found if one.kind not in WHOLE]
    flagged = [one for one in found if one.score < _FLAGGED]
    if not flagged or len(numbers) < LEAST_NUMBERS:
        return None
    wrong = [one for one in numbers if one.score < _FLAGGED]
    worked_out = sum(bool(one.derivation) and one.score >= _FLAGGED for one in numbers)
    worst = min(flagged, key=lambda one: one.score)
    return [
        float(len(wrong)), float(sum(one.label == "not_mentioned" for one in wrong)), worst.score,
        float(len(numbers)), len(wrong) / len(numbers), worked_out / len(numbers),
        float(any(map(str.isdigit, question))), float(sum(map(answer.count, _SIGNS))),
        len(answer) / _HUNDRED, float(not in_english), float(worst.kind in WHOLE),
    ]  # fmt: skip


def is_doubtful(counts: Sequence[float]) -> bool:
    """Return whether what is held against an answer with such counts is too likely wrong."""
    weights, intercept, least = shipped()
    return intercept + math.fsum(w * x for w, x in zip(weights, counts, strict=True)) < least
