"""Two runs of one lab side by side: paired differences with intervals, for before and after."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.stats import binomtest, t

from guardrail_offline.datasets.cases import is_nameless
from guardrail_offline.runs.result_files import EvaluatorResults, ResultRow, read_run
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Direction

Matching = Literal["key", "question"]
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric after against before.

    Attributes:
        questions: Pairs that count; reruns and variants of a question are one, their mean.
        before: Mean over the pairs.
        after: Mean over the pairs.
        difference: after - before.
        interval: Of the difference, Student's t over questions at 95 %; None below two questions
            and where all differences are equal and not 0.
        better: Questions that got better in the metric's direction.
        worse: Questions that got worse.
        sign_p: Two-sided sign test of better against worse; 1.0 if neither occurred.
        unpaired: Cases with a number on one side only, or without a partner.
    """

    evaluator: str
    metric: str
    direction: str
    questions: int
    before: float
    after: float
    difference: float
    interval: tuple[float, float] | None
    better: int
    worse: int
    sign_p: float
    unpaired: int

    @property
    def verdict(self) -> str:
        """Return better, worse or unclear: the interval says, at 95 %, one metric at a time."""
        if self.interval is None or self.interval[0] <= 0 <= self.interval[1]:
            return "unclear" if self.difference else "same"
        is_up = self.difference > 0
        return "better" if is_up == (self.direction == Direction.HIGHER.value) else "worse"


@dataclass(frozen=True)
class Comparison:
    """Two runs' differences, what could not be compared, and what to keep in mind."""

    matched_by: Matching
    differences: tuple[Difference, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        content = asdict(self)
        for difference, record in zip(self.differences, content["differences"], strict=True):
            record["verdict"] = difference.verdict
        return content


def compare(before: Path, after: Path) -> Comparison:
    """Return the differences of two finished runs.

    Cases are paired by key; if the runs share no key, or a key is another question in the other
    run, by question and order.

    Raises:
        ConfigurationError: If a folder holds no run, the runs have nothing in common, or their
            cases have neither keys nor questions and are not equally many.
    """
    one, other = read_run(before), read_run(after)
    shared = [name for name in one if name in other]
    if not shared:
        raise ConfigurationError(str(after), "no evaluator of the other run", "one in common")
    rows = one[shared[0]].rows, other[shared[0]].rows
    matching, notes = _matching(*rows)
    notes += _nameless(after, *rows)
    differences = [
        difference
        for name in shared
        for difference in _of_evaluator(one[name], other[name], matching)
    ]
    if not differences:
        raise ConfigurationError(str(after), "no case with a value in both", "runs of one lab")
    return Comparison(
        matching,
        tuple(differences),
        tuple(sorted(set(one) - set(other))),
        tuple(sorted(set(other) - set(one))),
        (*notes, *_warnings(one, other, shared)),
    )


def _matching(
    before: Iterable[ResultRow], after: Iterable[ResultRow]
) -> tuple[Matching, list[str]]:
    """Return what pairs cases, and what to say about it.

    A case without a key is called after its row, so a key may name another question in the other
    run. One such key is enough to trust none.
    """
    groups = {row.key: row.group for row in after}
    shared = [row for row in before if row.key in groups]
    moved = [row.key for row in shared if row.group != groups[row.key]]
    if shared and not moved:
        return "key", []
    if not moved:
        return "question", []
    others = f" and {len(moved) - 1} more" if len(moved) > 1 else ""
    return "question", [
        f"paired by question: {moved[0]!r}{others} of {len(shared)} shared keys are of another "
        "question in the other run"
    ]


def _nameless(
    after: Path, before_rows: Iterable[ResultRow], after_rows: Iterable[ResultRow]
) -> list[str]:
    """Return what to say about cases that only their row tells apart.

    Raises:
        ConfigurationError: If one run has more of them: which are missing, nothing can tell.
    """
    counts = [
        sum(is_nameless(row.key, row.group) for row in rows) for rows in (before_rows, after_rows)
    ]
    if counts[0] != counts[1]:
        found = f"{counts[0]} and {counts[1]} cases with neither key nor question"
        raise ConfigurationError(str(after), found, "a key or a question per case")
    if not counts[0]:
        return []
    return [f"{counts[0]} cases with neither key nor question are paired by their row"]


def _of_evaluator(
    before: EvaluatorResults, after: EvaluatorResults, matching: Matching
) -> Iterable[Difference]:
    left, right = _by_partner(before.rows, matching), _by_partner(after.rows, matching)
    partners = [key for key in left if key in right]
    alone = len(left) + len(right) - 2 * len(partners)
    for key, metric in before.metrics.items():
        if key not in after.metrics:
            continue
        groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
        unpaired = alone
        for partner in partners:
            a, b = left[partner].scores[key].value, right[partner].scores[key].value
            if a is None or b is None or not math.isfinite(a + b):
                unpaired += (a is None) != (b is None)
            else:
                groups[left[partner].group].append((a, b))
        if groups:
            means = np.array([np.mean(pairs, axis=0) for pairs in groups.values()])
            yield _difference(before.evaluator, key, metric.direction, means, unpaired)


def _by_partner(rows: Sequence[ResultRow], matching: Matching) -> dict[Any, ResultRow]:
    if matching == "key":
        return {row.key: row for row in rows}
    seen: dict[str, int] = defaultdict(int)
    found = {}
    for row in rows:
        found[row.group, seen[row.group]] = row
        seen[row.group] += 1
    return found


def _difference(
    evaluator: str,
    key: str,
    direction: Direction,
    means: np.ndarray[Any, np.dtype[np.float64]],
    unpaired: int,
) -> Difference:
    change = means[:, 1] - means[:, 0]
    gain = change if direction is Direction.HIGHER else -change
    better, worse = int((gain > 0).sum()), int((gain < 0).sum())
    return Difference(
        evaluator,
        key,
        direction.value,
        len(means),
        float(means[:, 0].mean()),
        float(means[:, 1].mean()),
        float(change.mean()),
        mean_interval(change),
        better,
        worse,
        float(binomtest(better, better + worse).pvalue) if better + worse else 1.0,
        unpaired,
    )


def mean_interval(
    values: np.ndarray[Any, np.dtype[np.float64]], confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """Return Student's t interval of a mean.

    None below two values, and where the values are all the same number other than 0: no spread
    was seen, which is not a spread of 0.
    """
    count = len(values)
    if count < 2:
        return None
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    if spread == 0 and mean != 0:
        return None
    reach = float(t.ppf((1 + confidence) / 2, count - 1)) * spread / math.sqrt(count)
    return mean - reach, mean + reach


def _warnings(
    one: Mapping[str, EvaluatorResults],
    other: Mapping[str, EvaluatorResults],
    shared: Sequence[str],
) -> Iterable[str]:
    for name in shared:
        before, after = one[name], other[name]
        if before.fingerprints != after.fingerprints:
            yield f"{name}: scored with other models or rules; the difference may be theirs"
        if before.about.get("parameters") != after.about.get("parameters"):
            yield f"{name}: scored with other parameters"
    yield "each interval is for one metric: of twenty unchanged metrics one looks changed"
