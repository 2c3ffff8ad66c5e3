"""Step 9: compares scores on adversarial questions with those on the others, metric by metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from guardrail_offline.report.run_data import Column
from guardrail_offline.runs.paired import holm
from guardrail_offline.workflow.definition import AdversarialParameters
from guardrail_offline.workflow.evaluation import (
    RUN,
    answered,
    judged_by,
    notes,
    run_files,
    scored,
)
from guardrail_offline.workflow.generated_tests import adversarial_cases
from guardrail_offline.workflow.score_table import (
    MetricColumn,
    ScoreTable,
    mean,
    metric_json,
    rate,
    read_table,
)
from guardrail_offline.workflow.step_engine import StepContext, StepOutcome

_LEAST = 5
_CURVE = 64
"""Places at which the curves of a picture are read."""
_NO_ANSWERS = "the answers are given: there is nobody to ask adversarial questions"


class Shift(NamedTuple):
    """The distance of two samples of one metric.

    Attributes:
        ks: Largest distance of the two distribution functions, 0 to 1.
        ks_interval: At 95 %.
        wasserstein: Area between the distribution functions, in the metric's unit.
        wasserstein_interval: At 95 %.
        p: Of the Kolmogorov-Smirnov test, by permutation: ties are no matter.
    """

    ks: float
    ks_interval: tuple[float, float]
    wasserstein: float
    wasserstein_interval: tuple[float, float]
    p: float


def challenge(context: StepContext) -> StepOutcome:
    """Return how the scores of the target move when it is asked adversarial questions."""
    parameters: AdversarialParameters = context.parameters
    target = context.definition.target
    if target is None or target.answers is not None:
        return StepOutcome({"metrics": [], "cases": 0}, skipped=_NO_ANSWERS)
    cases, told = adversarial_cases(context)
    if len(cases) < _LEAST:
        why = f"{len(cases)} adversarial cases, {_LEAST} are needed"
        return StepOutcome({"metrics": [], "cases": len(cases)}, notes=told, skipped=why)
    cases = answered(context, cases)
    run = scored(context, cases)
    baseline = read_table(context.folder.step_folder("evaluation") / RUN, parameters.seed)
    attacked = read_table(run, parameters.seed)
    thresholds = context.results("calibration")["thresholds"]
    found = shifts(baseline, attacked, thresholds, parameters)
    return StepOutcome(
        {"metrics": found, "cases": len(cases)},
        {"baseline": len(baseline.units), "adversarial": len(attacked.units)},
        run_files(context, run),
        [*told, *notes(context, cases)],
        judged_by(context),
    )


def shifts(
    baseline: ScoreTable,
    attacked: ScoreTable,
    thresholds: Sequence[Mapping[str, Any]],
    parameters: AdversarialParameters,
) -> list[dict[str, Any]]:
    """Return a comparison per metric that both have, corrected for all of them (Holm)."""
    cuts = {one["metric"]: one["threshold"] for one in thresholds}
    pairs: list[tuple[MetricColumn, Column, Column, Shift]] = []
    for name in baseline.columns:
        if name in attacked.columns and name in cuts:
            before, after = _known(baseline, name), _known(attacked, name)
            if min(len(before), len(after)) >= _LEAST:
                found = shift(before, after, parameters.resamples, parameters.seed)
                pairs.append((baseline.columns[name], before, after, found))
    corrected = holm([found.p for *_, found in pairs])
    rows = []
    for (column, before, after, found), p_holm in zip(pairs, corrected, strict=True):
        cut = cuts[column.name]
        moved = float(after.mean() - before.mean())
        worse = moved * _sign(column) < 0
        rows.append({
            **metric_json(column),
            "threshold": cut,
            "baseline": mean(before),
            "adversarial": mean(after),
            "difference": moved,
            "ks": found.ks,
            "ks_interval95": list(found.ks_interval),
            "wasserstein": found.wasserstein,
            "wasserstein_interval95": list(found.wasserstein_interval),
            "p": found.p,
            "p_holm": p_holm,
            "shifted": p_holm < parameters.alpha,
            "worse": worse,
            "failing": None if cut is None else {
                "baseline": _failing(column, before, cut),
                "adversarial": _failing(column, after, cut),
            },
            "by_generator": _by_generator(attacked, column, cut),
            "curves": _curves(before, after),
        })  # fmt: skip
    return rows


def shift(before: Column, after: Column, resamples: int, seed: int) -> Shift:
    """Return how far two samples are apart, with bootstrap intervals and a permutation test.

    Both statistics of resamples are too large by about as much as those of the samples are. So the
    intervals are the basic ones, mirrored at the estimate, which takes that off; they end at 0.

    Args:
        before: Finite values. Shape (n,).
        after: Finite values. Shape (m,).
        resamples: Draws, for intervals and for the test.
        seed: Of the draws; the same values and seed give the same result.

    Source:
        A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their Application" (1997), 5.2.
    """
    ks, wasserstein = distances(before, after)
    rng = np.random.default_rng(seed)
    drawn = np.empty((resamples, 2))
    for row in range(resamples):
        left = before[rng.integers(0, len(before), len(before))]
        right = after[rng.integers(0, len(after), len(after))]
        drawn[row] = distances(left, right)
    pooled = np.concatenate([before, after])
    as_far = 0
    for _ in range(resamples):
        mixed = rng.permutation(pooled)
        as_far += distances(mixed[: len(before)], mixed[len(before) :])[0] >= ks - 1e-12
    return Shift(
        ks,
        _basic(ks, drawn[:, 0], 1.0),
        wasserstein,
        _basic(wasserstein, drawn[:, 1], np.inf),
        (as_far + 1) / (resamples + 1),
    )


def distances(left: Column, right: Column) -> tuple[float, float]:
    """Return the Kolmogorov-Smirnov statistic and the Wasserstein distance of two samples."""
    points = np.sort(np.concatenate([left, right]))
    here = np.searchsorted(np.sort(left), points, side="right") / len(left)
    there = np.searchsorted(np.sort(right), points, side="right") / len(right)
    apart = np.abs(here - there)
    return float(apart.max()), float((apart[:-1] * np.diff(points)).sum())


def _basic(value: float, drawn: Column, most: float) -> tuple[float, float]:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return max(0.0, 2 * value - float(high)), min(most, max(0.0, 2 * value - float(low)))


def _known(table: ScoreTable, name: str) -> Column:
    values = table.columns[name].values[table.units]
    known: Column = values[np.isfinite(values)]
    return known


def _sign(column: MetricColumn) -> int:
    return 1 if metric_json(column)["direction"] == "higher_is_better" else -1


def _failing(column: MetricColumn, values: Column, cut: float) -> dict[str, Any]:
    bad = values < cut if _sign(column) > 0 else values > cut
    return rate(int(bad.sum()), len(values))


def _by_generator(
    table: ScoreTable, column: MetricColumn, cut: float | None
) -> list[dict[str, Any]]:
    own = table.columns[column.name].values[table.units]
    names = np.array([table.facts[place].get("generator", "") for place in table.units])
    found = []
    for name in sorted(set(names) - {""}):
        values = own[(names == name) & np.isfinite(own)]
        if len(values):
            bad = None if cut is None else _failing(column, values, cut)
            found.append({"generator": str(name), **mean(values), "failing": bad})
    return found


def _curves(before: Column, after: Column) -> dict[str, list[float]]:
    """Return both distribution functions at the same places."""
    both = np.concatenate([before, after])
    grid = np.linspace(both.min(), both.max(), _CURVE)

    def curve(values: Column) -> list[float]:
        shares = np.searchsorted(np.sort(values), grid, side="right") / len(values)
        return [round(float(share), 4) for share in shares]

    places = [round(float(place), 6) for place in grid]
    return {"grid": places, "baseline": curve(before), "adversarial": curve(after)}
