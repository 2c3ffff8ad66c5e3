"""Cost of rows: milliseconds = a * size + b for each kind of work, learned while it runs."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from guardrail_service.types import Role, Row, RowResult

EVIDENCE_TOKENS = 176
"""A grounding row reads at most this much evidence, however much there is: the same number as in
`models/encoder.py`, which loads a model library that a cost needs not."""
_CHARS_PER_TOKEN = 4
"""Of English text. Tokens are estimated: counting costs more than the error, and `a` learns it."""
_MEMORY = 0.02
"""Weight of a new row: the last fifty or so count. A machine that slows down is noticed within
seconds, one slow row changes little."""
_OUTLIER = 5.0
"""A row counts as at most this many times its estimate, so one stalled row cannot close the door.
Work that really became slower reaches any cost in a few steps of five."""
_LEAST_MS, _MOST_MS = 0.01, 60_000.0
_FAR = 4.0
"""Times the usual size as of which a line says too little: where all work is of one size, its slope
is noise, and a text of a hundred times that size must not pass for an ordinary one."""


def tokens(row: Row) -> int:
    """Return about how many tokens a row has, special tokens included."""
    read = len(row.text) + len(row.second or "")
    evidence = 0
    for text in row.evidence:
        evidence += len(text)
        if evidence >= EVIDENCE_TOKENS * _CHARS_PER_TOKEN:
            evidence = EVIDENCE_TOKENS * _CHARS_PER_TOKEN
            break
    return 2 + (read + evidence) // _CHARS_PER_TOKEN


class RowCost(NamedTuple):
    """About how many tokens a row has, and how many milliseconds it takes on one thread."""

    tokens: int
    ms: float


@dataclass(slots=True)
class _Line:
    """A weighted least-squares line through what was seen, kept as running means."""

    x: float
    y: float
    xx: float
    xy: float
    seen: int = 0

    def at(self, size: float) -> float:
        """Return the milliseconds the line gives, never below zero slope or intercept."""
        variance = self.xx - self.x * self.x
        slope = (self.xy - self.x * self.y) / variance if variance > 1e-9 else 0.0
        # Through the mean either way: steeper than through the origin would make small rows free.
        mean = self.y / self.x if self.x else 0.0
        slope = mean if size > _FAR * self.x else min(max(0.0, slope), mean)
        return min(max(self.y + slope * (size - self.x), _LEAST_MS), _MOST_MS)

    def add(self, size: float, spent_ms: float) -> None:
        """Move the means towards one observation."""
        weight = max(_MEMORY, 1.0 / (self.seen + 1))
        bounded = min(spent_ms, _OUTLIER * self.at(size)) if self.seen else spent_ms
        self.seen += 1
        self.x += weight * (size - self.x)
        self.y += weight * (bounded - self.y)
        self.xx += weight * (size * size - self.xx)
        self.xy += weight * (size * bounded - self.xy)


class CostModel:
    """One line per kind of work. Thread-safe; estimates are finite and above zero.

    Args:
        first_ms: What a kind of work costs of which nothing has been seen.
    """

    def __init__(self, first_ms: float = 10.0) -> None:
        self._first_ms = first_ms
        self._lock = threading.Lock()
        self._lines: dict[str, _Line] = {}

    def learn(self, kind: str, size: float, spent_ms: float) -> None:
        """Note what one piece of work took; nonsense (negative, not a number) is left out."""
        if not (0.0 <= spent_ms <= _MOST_MS and size >= 0):
            return
        with self._lock:
            self._lines.setdefault(kind, _Line(0.0, 0.0, 0.0, 0.0)).add(size, spent_ms)

    def learning(self, run: Callable[[Row], RowResult]) -> Callable[[Row], RowResult]:
        """Return a runner that also teaches this model what its rows take."""

        def timed(row: Row) -> RowResult:
            result = run(row)
            self.learn(row.role, tokens(row), result.tokenize_ms + result.inference_ms)
            return result

        return timed

    def estimate(self, kind: str, size: float) -> float:
        """Return about how many milliseconds work of a size takes on one thread."""
        with self._lock:
            line = self._lines.get(kind)
            return self._first_ms if line is None else line.at(size)

    def rows(self, rows: Sequence[Row], budgets: Mapping[Role, int] | None = None) -> list[RowCost]:
        """Return what each row costs.

        Args:
            rows: What is submitted together.
            budgets: By role, tokens that one call computes at most; other roles' rows run alone.
                Rows that run together share what a call costs by itself.
        """
        sizes = [tokens(row) for row in rows]
        together: Counter[Role] = Counter()
        for row, size in zip(rows, sizes, strict=True):
            if budgets and row.role in budgets:
                together[row.role] += size
        per_token = {
            role: self._per_token(role, total, (budgets or {})[role])
            for role, total in together.items()
        }
        return [
            RowCost(
                size,
                size * per_token[row.role]
                if row.role in per_token
                else self.estimate(row.role, size),
            )
            for row, size in zip(rows, sizes, strict=True)
        ]

    def _per_token(self, role: Role, total: int, budget: int) -> float:
        """Return the milliseconds per token of rows with so many tokens together."""
        calls = math.ceil(total / budget)
        return self.estimate(role, total / calls) * calls / total
