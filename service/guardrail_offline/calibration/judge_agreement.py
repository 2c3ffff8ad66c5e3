"""Agreement of a judge with people, with itself, and with what should not matter.

Everything is read from finished runs and a file of labels; nobody is asked. Intervals are 95 % and
draw whole questions anew, because answers to one question are no independent evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from guardrail_offline.agreement import auroc, kappa
from guardrail_offline.intervals import exact_interval
from guardrail_offline.runs.paired import mean_interval
from guardrail_offline.runs.result_files import EvaluatorResults, read_run
from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.policy.decide import crosses
from guardrail_service.types import Direction, MetricSpec

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
DRAWS = 1000
NEAR = 0.1
"""A score is near the threshold within this share of the metric's range."""
_SEED = 20_240_718


@dataclass(frozen=True, slots=True)
class VerdictOnCase:
    """One answer with a judge's score.

    Attributes:
        key: Unique in the run; labels name it.
        group: The question.
        model: Key of the system that wrote the answer.
        score: None where there is none.
        passes: Whether the score is on the good side of the threshold; None beside None.
        person: A person's word; None where nobody labelled it.
        words: Length of the answer; None where the run keeps no texts.
    """

    key: str
    group: str
    model: str
    score: float | None
    passes: bool | None
    person: bool | None
    words: int | None


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """The scores of one metric of a run.

    Attributes:
        where: The run's folder, for messages.
        evaluator: Its id.
        metric: Direction and range.
        threshold: Scores on its good side pass; one that is equal passes.
        judge: What the result file says of the judge; empty where no judge was asked.
        names: The names of the systems under test, by key.
        cases: In the order of the run.
    """

    where: str
    evaluator: str
    metric: MetricSpec
    threshold: float
    judge: Mapping[str, Any]
    names: Mapping[str, str]
    cases: tuple[VerdictOnCase, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """Return `evaluator.metric`."""
        return f"{self.evaluator}.{self.metric.key}"

    @property
    def range(self) -> float:
        """Return the width of the metric's range; 1.0 where an end is open."""
        width = self.metric.high - self.metric.low
        return width if math.isfinite(width) and width > 0 else 1.0

    def by_key(self) -> dict[str, VerdictOnCase]:
        """Return the cases by key."""
        return {case.key: case for case in self.cases}


def read_judged(
    folder: Path,
    metric: str | None = None,
    threshold: float | None = None,
    people: Mapping[str, bool] | None = None,
) -> JudgedRun:
    """Return the scores of one metric of a run, beside what people said.

    Args:
        folder: Of the run.
        metric: `evaluator` or `evaluator.metric`; None for the first that a judge scored.
        threshold: Where scores pass; None for the metric's own, and the middle of a yes/no metric.
        people: By case, whether a person says that the answer may be shown.

    Raises:
        ConfigurationError: If the run has no such metric, or the metric has no threshold.
    """
    results, spec = _metric(folder, read_run(folder), metric)
    cut = spec.threshold if threshold is None else threshold
    if cut is None and spec.boolean:
        cut = 0.5
    if cut is None:
        name = f"{results.evaluator}.{spec.key}"
        raise ConfigurationError("--threshold", f"none, and {name} has none of its own", "a number")
    known = people or {}
    cases = []
    for row in results.rows:
        value = row.scores[spec.key].value
        answer = row.record.get("actual_output")
        cases.append(
            VerdictOnCase(
                key=row.key,
                group=row.group or row.key,
                model=row.model,
                score=value,
                passes=None if value is None else not crosses(value, cut, spec.direction),
                person=known.get(row.key),
                words=len(answer.split()) if isinstance(answer, str) else None,
            )
        )
    return JudgedRun(
        where=str(folder),
        evaluator=results.evaluator,
        metric=spec,
        threshold=cut,
        judge=results.about.get("judge") or {},
        names={model.key: model.name for model in results.models},
        cases=tuple(cases),
    )


def _metric(
    folder: Path, run: Mapping[str, EvaluatorResults], wanted: str | None
) -> tuple[EvaluatorResults, MetricSpec]:
    if wanted is None:
        judged = [name for name, found in run.items() if found.about.get("backend") == "judge"]
        if not judged:
            found = "no evaluator that a judge scored"
            raise ConfigurationError(str(folder), found, "one, or --metric EVALUATOR.METRIC")
        wanted = judged[0]
    evaluator, _, key = wanted.partition(".")
    if evaluator not in run:
        known = choices(evaluator, run, "evaluator")
        raise ConfigurationError("--metric", f"unknown evaluator {evaluator!r}", known)
    metrics = run[evaluator].metrics
    if key and key not in metrics:
        known = choices(key, metrics, "metric")
        raise ConfigurationError(f"--metric {evaluator}", f"unknown metric {key!r}", known)
    return run[evaluator], metrics[key] if key else next(iter(metrics.values()))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval; `low` and `high` are None where none can be given."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    why: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the number for a file."""
        ends = None if self.low is None or self.high is None else [self.low, self.high]
        return {"value": self.value, "ci95": ends, "n": self.n, "why": self.why}


def agreement(run: JudgedRun) -> dict[str, Estimate]:
    """Return share of equal verdicts, Cohen's kappa and the area under the ROC curve.

    Only cases with a score and a person's word count.

    Source:
        Cohen 1960; Hanley and McNeil 1982 for the area as the chance that a good answer has the
        better score, ties counting half.
    """
    cases = [case for case in run.cases if case.passes is not None and case.person is not None]
    if not cases:
        raise ConfigurationError("--labels", "no label of a scored case", "labels of this run")
    judge = np.array([case.passes for case in cases], dtype=np.bool_)
    person = np.array([case.person for case in cases], dtype=np.bool_)
    score = np.array([case.score for case in cases], dtype=np.float64)
    if run.metric.direction is Direction.LOWER:
        score = -score
    groups = [case.group for case in cases]
    return {
        "agree": _drawn(lambda i: float((judge[i] == person[i]).mean()), groups),
        "kappa": _drawn(lambda i: kappa(judge[i], person[i]), groups),
        "area": _drawn(lambda i: _area(score[i], person[i]), groups),
    }


def repeatability(run: JudgedRun, again: Sequence[JudgedRun]) -> dict[str, Estimate]:
    """Return how often a judge contradicts itself over several runs of one lab.

    Returns:
        `flips`: share of cases whose verdict is not the same in all runs, with the exact interval;
        `flips_near`: the same among cases whose first score is near the threshold; `spread`: mean
        standard deviation of a case's scores.
    """
    others = [_same_metric(run, other).by_key() for other in again]
    rows = [
        (case, [found[case.key] for found in others])
        for case in run.cases
        if case.score is not None
        and all(case.key in found and found[case.key].score is not None for found in others)
    ]
    if not rows:
        raise ConfigurationError("--again", "no case scored in all runs", "runs of the same lab")
    flips = np.array([any(o.passes != case.passes for o in more) for case, more in rows])
    near = np.array(
        [abs((case.score or 0.0) - run.threshold) <= NEAR * run.range for case, _ in rows]
    )
    scores = np.array([[case.score, *(o.score for o in more)] for case, more in rows])
    spread = scores.std(axis=1, ddof=1)
    return {
        "flips": _share(flips),
        "flips_near": _share(flips[near]),
        "spread": _mean(spread, [case.group for case, _ in rows]),
    }


def order_effect(run: JudgedRun, swapped: JudgedRun) -> dict[str, Estimate]:
    """Return how far the order of the passages moves verdicts.

    Returns:
        `flips`: share of cases with another verdict; `shift`: mean score in the other order less
        that in the first.
    """
    other = _same_metric(run, swapped).by_key()
    pairs = [
        (case, other[case.key])
        for case in run.cases
        if case.score is not None and case.key in other and other[case.key].score is not None
    ]
    if not pairs:
        raise ConfigurationError("--swapped", "no case scored in both runs", "runs of one lab")
    shift = np.array([(then.score or 0.0) - (case.score or 0.0) for case, then in pairs])
    flips = np.array([case.passes != then.passes for case, then in pairs])
    return {"flips": _share(flips), "shift": _mean(shift, [case.group for case, _ in pairs])}


def verbosity(run: JudgedRun) -> Estimate:
    """Return the change of the score when an answer is twice as long, people's word being equal.

    The slope of a least-squares line over the labelled cases, with a term for the person's word:
    a judge that likes long answers as such has one above 0.
    """
    cases = [c for c in run.cases if c.score is not None and c.person is not None and c.words]
    if len(cases) < 10:
        return Estimate(None, n=len(cases), why="fewer than 10 labelled answers with texts")
    length = np.log2([case.words or 1 for case in cases])
    person = np.array([case.person for case in cases], dtype=np.float64)
    score = np.array([case.score for case in cases], dtype=np.float64)
    if run.metric.direction is Direction.LOWER:
        score = -score
    if np.ptp(length) == 0:
        return Estimate(None, n=len(cases), why="all answers have one length")
    table = np.column_stack([np.ones(len(cases)), length, person])

    def slope(i: npt.NDArray[np.intp]) -> float:
        return float(np.linalg.lstsq(table[i], score[i], rcond=None)[0][1])

    return _drawn(slope, [case.group for case in cases])


def self_preference(run: JudgedRun, own: str | None) -> Estimate:
    """Return by how much more a judge passes answers of its own model than people do.

    The rate of the judge's passes less that of people's, for answers of the judge's own model less
    the same for all others; above 0 it prefers its own.

    Args:
        run: With labels.
        own: Name of the judge's model among the systems under test; None for the one whose name
            is the judge's.
    """
    name = own or str(run.judge.get("model", ""))
    keys = {key for key, model in run.names.items() if name and name in (key, model)}
    cases = [c for c in run.cases if c.passes is not None and c.person is not None]
    mine = np.array([case.model in keys for case in cases], dtype=np.bool_)
    if not mine.any() or mine.all():
        return Estimate(None, n=int(mine.sum()), why="needs answers of the judge's and of others")
    gap = np.array([float(bool(c.passes)) - float(bool(c.person)) for c in cases])

    def difference(i: npt.NDArray[np.intp]) -> float:
        own_ones = mine[i]
        if not own_ones.any() or own_ones.all():
            return math.nan
        return float(gap[i][own_ones].mean() - gap[i][~own_ones].mean())

    return _drawn(difference, [case.group for case in cases])


def _same_metric(run: JudgedRun, other: JudgedRun) -> JudgedRun:
    if run.name != other.name:
        raise ConfigurationError(other.where, f"scores of {other.name}", run.name)
    return other


def _share(flags: Mask) -> Estimate:
    n, x = len(flags), int(flags.sum())
    if not n:
        return Estimate(None, why="no such case")
    return Estimate(x / n, *exact_interval(x, n), n=n)


def _mean(values: Numbers, groups: Sequence[str]) -> Estimate:
    """Return the mean over questions of each one's mean."""
    sums: dict[str, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        sums.setdefault(group, []).append(float(value))
    means = np.array([np.mean(some) for some in sums.values()])
    ends = mean_interval(means)
    low, high = ends or (None, None)
    return Estimate(float(means.mean()), low, high, n=len(values))


def _drawn(statistic: Callable[[npt.NDArray[np.intp]], float], groups: Sequence[str]) -> Estimate:
    """Return a statistic of some cases with percentiles over draws of whole questions."""
    n = len(groups)
    value = statistic(np.arange(n))
    places: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    if len(places) < 2 or math.isnan(value):
        why = "one question only" if len(places) < 2 else "labels of one kind only"
        return Estimate(None if math.isnan(value) else value, n=n, why=why)
    rng = np.random.default_rng(_SEED)
    blocks = [np.array(some, dtype=np.intp) for some in places.values()]
    drawn = [
        statistic(np.concatenate([blocks[j] for j in rng.integers(len(blocks), size=len(blocks))]))
        for _ in range(DRAWS)
    ]
    finite = np.array([one for one in drawn if not math.isnan(one)])
    if len(finite) < DRAWS // 2:
        return Estimate(value, n=n, why="too few questions of both kinds")
    low, high = np.quantile(finite, [0.025, 0.975])
    return Estimate(value, float(low), float(high), n=n)


def _area(score: Numbers, good: Mask) -> float:
    return auroc(score, good) if 0 < good.sum() < len(good) else math.nan
