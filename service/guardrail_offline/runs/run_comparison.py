"""Runs of one lab side by side: paired differences with intervals, against a first run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from guardrail_offline.datasets.cases import is_nameless
from guardrail_offline.runs.paired import (
    Numbers,
    holm,
    mean_interval,
    p_value,
    sign_test,
)
from guardrail_offline.runs.result_files import EvaluatorResults, ResultRow, read_run
from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.types import Direction

Matching = Literal["key", "question"]
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric after against before.

    Attributes:
        model: Key of the model whose cases these are; None for the cases of all models.
        questions: Pairs that count; reruns and variants of a question are one, their mean.
        before: Mean over the pairs.
        after: Mean over the pairs.
        difference: after - before.
        interval: Of the difference at 95 %, by drawing questions anew; None below two questions
            and where all differences are equal and not 0.
        p: Two-sided, of this metric alone; see `paired.p_value`.
        p_holm: Corrected for all metrics, models and runs of the comparison.
        better: Questions that got better in the metric's direction.
        worse: Questions that got worse.
        sign_p: Two-sided sign test of better against worse; 1.0 if neither occurred.
        unpaired: Cases with a number on one side only, or without a partner.
    """

    evaluator: str
    metric: str
    direction: str
    model: str | None
    questions: int
    before: float
    after: float
    difference: float
    interval: tuple[float, float] | None
    p: float
    p_holm: float
    better: int
    worse: int
    sign_p: float
    unpaired: int

    @property
    def drop(self) -> float:
        """Return how much worse it got, in the metric's own direction; negative for a gain."""
        is_up = self.direction == Direction.HIGHER.value
        return -self.difference if is_up else self.difference

    @property
    def largest_drop(self) -> float | None:
        """Return the largest drop that is not ruled out at 95 %; None where nothing rules any."""
        if self.interval is None:
            return self.drop if self.questions > 1 and self.drop <= 0 else None
        is_up = self.direction == Direction.HIGHER.value
        return -self.interval[0] if is_up else self.interval[1]

    @property
    def verdict(self) -> str:
        """Return better, worse, unclear or same: at 5 %, corrected for all that were compared."""
        if self.p_holm >= ALPHA:
            return "unclear" if self.difference else "same"
        return "worse" if self.drop > 0 else "better"

    def is_regression(self, max_drop: float = 0.0, *, strict: bool = False) -> bool:
        """Return whether it got clearly worse, and by more than `max_drop`.

        Args:
            max_drop: What may be lost, in the metric's unit.
            strict: Also where so large a loss cannot be ruled out.
        """
        if strict:
            return self.largest_drop is None or self.largest_drop > max_drop
        return self.verdict == "worse" and self.drop > max_drop


@dataclass(frozen=True)
class Comparison:
    """A run's differences from the first, what could not be compared, and what to keep in mind."""

    matched_by: Matching
    differences: tuple[Difference, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    warnings: tuple[str, ...]
    run: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        content = asdict(self)
        for difference, record in zip(self.differences, content["differences"], strict=True):
            record["verdict"] = difference.verdict
        return content


def as_json(found: Sequence[Comparison], regressions: int) -> dict[str, Any]:
    """Return one comparison as its own keys, several under `runs`; and how many regressions."""
    content = [one.as_json() for one in found]
    return {**(content[0] if len(content) == 1 else {"runs": content}), "regressions": regressions}


def compare(before: Path, after: Path, *, by_model: bool = False) -> Comparison:
    """Return the differences of two finished runs; see `compare_runs`."""
    (found,) = compare_runs(before, [after], by_model=by_model)
    return found


def compare_runs(
    before: Path, others: Sequence[Path], *, by_model: bool = False, only: Sequence[str] = ()
) -> tuple[Comparison, ...]:
    """Return what distinguishes each of some finished runs from a first one.

    Cases are paired by key; if the runs share no key, or a key is another question in the other
    run, by question and order.

    Args:
        before: Folder of the run that the others are compared with.
        others: Their folders.
        by_model: Whether each model of the first run is compared by itself.
        only: What is compared, as `evaluator` or `evaluator.metric`; everything if empty. The
            fewer metrics, the smaller the differences that stand out from chance.

    Raises:
        ConfigurationError: If a folder holds no run, `only` names nothing of it, the runs have
            nothing in common, or their cases have neither keys nor questions and are not equally
            many.
    """
    first = _wanted(read_run(before), only)
    found = [_compared(first, after, by_model=by_model) for after in others]
    corrected = iter(holm([d.p for comparison in found for d in comparison.differences]))
    return tuple(
        replace(
            comparison,
            differences=tuple(replace(d, p_holm=next(corrected)) for d in comparison.differences),
        )
        for comparison in found
    )


def _wanted(
    run: Mapping[str, EvaluatorResults], only: Sequence[str]
) -> Mapping[str, EvaluatorResults]:
    """Return a run with the metrics that are named, all if none is."""
    if not only:
        return run
    names = {name: {name, *(f"{name}.{key}" for key in run[name].metrics)} for name in run}
    for name in only:
        if not any(name in known for known in names.values()):
            hint = choices(name, set().union(*names.values()), "metric")
            raise ConfigurationError("--metrics", repr(name), hint)
    found = {}
    for name, results in run.items():
        keys = [key for key in results.metrics if {name, f"{name}.{key}"} & set(only)]
        if keys:
            found[name] = replace(results, metrics={key: results.metrics[key] for key in keys})
    return found


def _compared(one: Mapping[str, EvaluatorResults], after: Path, *, by_model: bool) -> Comparison:
    other = read_run(after)
    both = [name for name in one if name in other]
    shared = [name for name in both if backend_of(one[name]) == backend_of(other[name])]
    if not shared:
        found = "another backend" if both else "no evaluator of the other run"
        raise ConfigurationError(str(after), found, "one evaluator in common")
    rows = one[shared[0]].rows, other[shared[0]].rows
    matching, notes = _matching(*rows)
    notes += _nameless(after, *rows)
    differences = [
        difference
        for name in shared
        for difference in _of_evaluator(one[name], other[name], matching, by_model=by_model)
    ]
    if not differences:
        raise ConfigurationError(str(after), "no case with a value in both", "runs of one lab")
    return Comparison(
        matching,
        tuple(differences),
        tuple(sorted(set(one) - set(other))),
        tuple(sorted(set(other) - set(one))),
        (*notes, *_not_compared(one, other, both), *_warnings(one, other, shared)),
        after.name,
    )


def backend_of(results: EvaluatorResults) -> str:
    """Return how an evaluator got its numbers, as far as that makes them others."""
    judge = "judge" if results.about.get("backend") == "judge" else "no judge"
    served = results.about.get("embeddings")
    if served is None:
        return judge
    return f"{judge}, embeddings {served['model']} at {served['address']}"


def _not_compared(
    one: Mapping[str, EvaluatorResults],
    other: Mapping[str, EvaluatorResults],
    both: Sequence[str],
) -> Iterator[str]:
    """Yield a note for each evaluator that two runs have by different backends."""
    for name in both:
        before, after = backend_of(one[name]), backend_of(other[name])
        if before != after:
            yield f"{name}: not compared, by {before} before and by {after} after"


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
    before: EvaluatorResults, after: EvaluatorResults, matching: Matching, *, by_model: bool
) -> Iterable[Difference]:
    left, right = _by_partner(before.rows, matching), _by_partner(after.rows, matching)
    partners = [key for key in left if key in right]
    alone = len(left) + len(right) - 2 * len(partners)
    for key, metric in before.metrics.items():
        if key not in after.metrics:
            continue
        groups: dict[str | None, dict[str, list[tuple[float, float]]]] = {}
        unpaired: dict[str | None, int] = defaultdict(int)
        for partner in partners:
            a, b = left[partner].scores[key].value, right[partner].scores[key].value
            model = left[partner].model if by_model else None
            if a is None or b is None or not math.isfinite(a + b):
                unpaired[model] += (a is None) != (b is None)
            else:
                pairs = groups.setdefault(model, {})
                pairs.setdefault(left[partner].group, []).append((a, b))
        for model, found in groups.items():
            means = np.array([np.mean(pairs, axis=0) for pairs in found.values()])
            apart = unpaired[model] + (0 if by_model else alone)
            yield _difference(before.evaluator, key, metric.direction, model, means, apart)


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
    model: str | None,
    means: Numbers,
    unpaired: int,
) -> Difference:
    change = means[:, 1] - means[:, 0]
    gain = change if direction is Direction.HIGHER else -change
    better, worse = int((gain > 0).sum()), int((gain < 0).sum())
    p = p_value(change)
    return Difference(
        evaluator,
        key,
        direction.value,
        model,
        len(means),
        float(means[:, 0].mean()),
        float(means[:, 1].mean()),
        float(change.mean()),
        mean_interval(change),
        p,
        p,
        better,
        worse,
        sign_test(better, worse),
        unpaired,
    )


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
        judges = [run.about.get(key) for run in (before, after) for key in ("judge", "prompts")]
        if judges[:2] != judges[2:]:
            yield f"{name}: scored by another judge or with other prompts"
    yield "an interval is for one metric; verdicts are corrected for all of them (Holm)"
