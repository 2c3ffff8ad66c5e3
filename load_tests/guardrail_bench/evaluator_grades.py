"""Grades evaluators: how far their numbers agree with labels of people.

The area under the ROC curve says how well a metric ranks, Cohen's kappa how well it decides at its
threshold: 0 is chance, 1 is agreement. Each set counts equally. Intervals draw the groups of each
set anew: answers about one passage stay together.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import guardrail_offline.evaluators  # noqa: F401 - importing registers the evaluators
from guardrail_bench.grade_sets import (
    NOT_MEASURED,
    GradeSet,
    LabelledCase,
    grade_sets,
    graded_by,
)
from guardrail_bench.quality import Array, Bools, auroc
from guardrail_offline.agreement import kappa
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.configured import Configured, configure
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.runs.worker import models_for, score
from guardrail_service.errors import InputError
from guardrail_service.types import Direction

DRAWS = 1000
SEED = 20261123
COMMAND = "guardrail bench grades --data FOLDER"
CUTS: Mapping[tuple[str, str], float] = {("umbrela", "umbrela"): 2.0}
"""Thresholds of the suites themselves where a metric has no other: a grade of 2 is relevant."""


@dataclass(frozen=True, slots=True)
class Column:
    """One metric's scores on one set, without the rows that have none.

    Attributes:
        scores: Turned so that higher is better.
        good: The labels.
        groups: What rows are drawn together by.
        unscored: How many rows have no score.
    """

    scores: Array
    good: Bools
    groups: tuple[str, ...]
    unscored: int

    def has_both(self) -> bool:
        """Return whether some rows are good and some are bad."""
        return 0 < int(self.good.sum()) < len(self.good)


def run(
    folder: Path,
    limit: int,
    kept: Path | None = None,
    pack: str = "embedded",
    note: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Return the grades of every evaluator that some set in a folder has labels for.

    Args:
        folder: As `grade_sets` describes it.
        limit: Rows of a set at most, half of them good.
        kept: Where scores are kept, so that a run that was stopped goes on.
        pack: Model pack.
        note: Told which set begins.

    Raises:
        InputError: If the folder has none of the sets.
    """
    sets = [one for one in grade_sets() if one.path(folder) is not None]
    if len(sets) == 1:  # the one of the project, which is always there
        found = "found none of the sets"
        raise InputError(f"{folder.name}: {found}; expected grounding, safety, pii or qa.jsonl")
    known = _Kept(kept)
    wanted = sorted({evaluator for evaluator, _, _ in graded_by(sets)})
    models = models_for(configure(wanted), pack)
    columns: dict[tuple[str, str], dict[str, Column]] = defaultdict(dict)
    drawn: dict[str, list[LabelledCase]] = {}
    for one in sets:
        note(one.name)
        drawn[one.name] = one.rows(folder, limit, SEED)
        values = _scored(one, drawn[one.name], models, known)
        for evaluator, metric, _ in graded_by([one]):
            columns[evaluator, metric][one.name] = _column(
                drawn[one.name], values, evaluator, metric
            )
    return {
        "measured": datetime.now(tz=UTC).date().isoformat(),
        "command": COMMAND,
        "rows_per_set": limit,
        "pack": dict(sorted(models.fingerprints.items())),
        "sets": {one.name: _about(one, drawn[one.name]) for one in sets},
        "grades": _grades(columns),
        "not_measured": dict(sorted(NOT_MEASURED.items())),
    }


class _Kept:
    """Scores in a file of JSON lines, each row with its values written at once."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.values: dict[tuple[str, str], dict[str, float | None]] = {}
        if path is not None and path.exists():
            for line in path.read_text("utf-8").splitlines():
                row = json.loads(line)
                self.values[row["set"], row["key"]] = row["values"]

    def add(self, name: str, key: str, values: dict[str, float | None]) -> None:
        self.values[name, key] = values
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"set": name, "key": key, "values": values}) + "\n")


def _scored(
    one: GradeSet, rows: Sequence[LabelledCase], models: PackModels, known: _Kept
) -> dict[str, dict[str, float | None]]:
    """Return each row's values by `evaluator.metric`."""
    configured = configure(list(one.graded))
    for row in sorted(rows, key=lambda row: row.group):
        if (one.name, row.case.key) in known.values:
            continue
        (found,) = score([(0, row.case)], configured, models).values()
        values = {
            f"{evaluator}.{metric}": found[evaluator].scores[metric].value
            for evaluator, metric, _ in graded_by([one])
        }
        known.add(one.name, row.case.key, values)
    return {row.case.key: known.values[one.name, row.case.key] for row in rows}


def _column(
    rows: Sequence[LabelledCase],
    values: Mapping[str, Mapping[str, float | None]],
    evaluator: str,
    metric: str,
) -> Column:
    spec = CATALOGUE[evaluator].spec.metric(metric)
    sign = 1.0 if spec.direction is Direction.HIGHER else -1.0
    found = [(values[row.case.key].get(f"{evaluator}.{metric}"), row) for row in rows]
    scored = [(value * sign, row) for value, row in found if value is not None]
    return Column(
        np.array([value for value, _ in scored], dtype=np.float64),
        np.array([row.good for _, row in scored], dtype=np.bool_),
        tuple(row.group for _, row in scored),
        len(rows) - len(scored),
    )


def _about(one: GradeSet, rows: Sequence[LabelledCase]) -> dict[str, Any]:
    return {
        "file": one.file,
        "good": one.good,
        "labels": one.labels,
        "rows": len(rows),
        "good_rows": sum(row.good for row in rows),
        "groups": len({row.group for row in rows}),
        "seen_before": one.seen,
    }


def _grades(columns: Mapping[tuple[str, str], Mapping[str, Column]]) -> dict[str, Any]:
    found: dict[str, Any] = defaultdict(dict)
    for (evaluator, metric), by_set in sorted(columns.items()):
        usable = {name: one for name, one in by_set.items() if one.has_both()}
        if usable:
            found[evaluator][metric] = _grade(evaluator, metric, usable)
    return dict(found)


def threshold_of(evaluator: str, metric: str) -> float | None:
    """Return what a metric is decided at where nobody calibrated it; None if nothing is known."""
    own = CUTS.get((evaluator, metric))
    one = CATALOGUE[evaluator]
    cuts = Configured(evaluator, configure([evaluator])[0].common, one.parameters()).thresholds()
    cut = cuts[metric] if own is None else own
    if cut is None and one.spec.metric(metric).boolean:
        return 0.5
    return cut


def _grade(evaluator: str, metric: str, columns: Mapping[str, Column]) -> dict[str, Any]:
    cut = threshold_of(evaluator, metric)
    higher = CATALOGUE[evaluator].spec.metric(metric).direction is Direction.HIGHER
    turned = None if cut is None else cut if higher else -cut
    each = {name: _statistics(one.scores, one.good, turned) for name, one in columns.items()}
    rng = np.random.default_rng(SEED)
    draws = [_draw(columns.values(), turned, rng) for _ in range(DRAWS)]
    area, agreement = (_mean([pair[i] for pair in each.values()]) for i in (0, 1))
    grade: dict[str, Any] = {
        "area": _rounded(area),
        "area_95": _interval([draw[0] for draw in draws]),
        "kappa": _rounded(agreement),
        "kappa_95": _interval([draw[1] for draw in draws]),
        "threshold": cut,
        "n": sum(len(one.scores) for one in columns.values()),
        "unscored": sum(one.unscored for one in columns.values()),
        "sets": {
            name: {
                "area": _rounded(each[name][0]),
                "kappa": _rounded(each[name][1]),
                "n": len(one.scores),
                "unscored": one.unscored,
            }
            for name, one in columns.items()
        },
    }
    return grade


def _statistics(scores: Array, good: Bools, cut: float | None) -> tuple[float, float]:
    """Return area and kappa; a score on the threshold is on the good side if higher is better."""
    agreement = math.nan if cut is None else kappa(scores >= cut, good)
    return auroc(scores, good), agreement


def _draw(
    columns: Iterable[Column], cut: float | None, rng: np.random.Generator
) -> tuple[float, float]:
    pairs = []
    for one in columns:
        names, inverse = np.unique(np.array(one.groups), return_inverse=True)
        chosen = rng.integers(0, len(names), len(names))
        times = np.bincount(chosen, minlength=len(names))[inverse]
        rows = np.repeat(np.arange(len(one.scores)), times)
        if 0 < int(one.good[rows].sum()) < len(rows):
            pairs.append(_statistics(one.scores[rows], one.good[rows], cut))
    return _mean([area for area, _ in pairs]), _mean([agreement for _, agreement in pairs])


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _interval(values: Sequence[float]) -> list[float] | None:
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return None
    low, high = np.quantile(np.array(known), [0.025, 0.975])
    return [round(float(low), 3), round(float(high), 3)]


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 3)
