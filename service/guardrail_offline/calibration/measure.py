"""What thresholds do to labelled answers: rates with exact intervals, overall and by slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardrail_offline.calibration.lab import LabCase
from guardrail_offline.calibration.ranks import exact_interval

Mask = NDArray[np.bool_]
_MOST_VALUES = 12
"""A fact with more values than this is a name, not a slice."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of n answers were flagged."""

    x: int
    n: int

    @property
    def share(self) -> float | None:
        """Return x / n, or None of nothing."""
        return self.x / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float]:
        """Return the exact 95 % interval; it takes the answers as independent."""
        return exact_interval(self.x, self.n)

    def as_json(self) -> dict[str, Any]:
        """Return the rate for the provenance block."""
        return {"x": self.x, "n": self.n, "ci95": [round(end, 6) for end in self.interval]}

    def __str__(self) -> str:
        if not self.n:
            return "0 of 0"
        low, high = self.interval
        return f"{self.x} of {self.n} ({self.x / self.n:.1%}, 95 % interval {low:.1%}-{high:.1%})"


def rate(flags: Mask) -> Rate:
    """Return how many of some answers are flagged."""
    return Rate(int(flags.sum()), len(flags))


@dataclass(frozen=True, slots=True)
class Slice:
    """The answers that share one value of a fact."""

    fact: str
    value: str
    false_flags: Rate
    recall: Rate

    def as_json(self) -> dict[str, Any]:
        """Return the slice for the provenance block."""
        return {
            "fact": self.fact,
            "value": self.value,
            "false_flag": self.false_flags.as_json(),
            "recall": self.recall.as_json(),
        }


def slices(cases: Sequence[LabCase], good: Mask, flags: Mask) -> list[Slice]:
    """Return both rates for every value of every fact that divides the answers."""
    found = []
    for fact in sorted({name for case in cases for name in case.facts}):
        values = np.array([case.facts.get(fact, "(none)") for case in cases])
        names = sorted(set(values.tolist()))
        if 1 < len(names) <= _MOST_VALUES:
            for name in names:
                here = values == name
                found.append(Slice(fact, name, rate(flags[here & good]), rate(flags[here & ~good])))
    return found
