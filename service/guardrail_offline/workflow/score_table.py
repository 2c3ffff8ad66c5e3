"""The scores of a step's run as columns, with what every case is known by: topic, generator ..."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from guardrail_offline.calibration.scored_lab import facts_of
from guardrail_offline.calibration.split import chance
from guardrail_offline.intervals import exact_interval
from guardrail_offline.report.run_data import Column, RunData, beyond, read_run_data
from guardrail_offline.runs.paired import mean_interval
from guardrail_service.policy.provenance import sha256_of
from guardrail_service.types import Direction, MetricSpec

Mask = np.ndarray[Any, np.dtype[np.bool_]]
_QUESTION_WORDS = ((8, "up to 7 words"), (15, "8 to 14 words"))


@dataclass(frozen=True)
class MetricColumn:
    """One metric of a run.

    Attributes:
        values: NaN where a case has none. Shape (cases,).
        reasons: Why, by place.
        origin: Of the threshold in `metric`: `yours`, `fitted`, `rule` or `suite`; None for none.
    """

    evaluator: str
    metric: MetricSpec
    values: Column
    reasons: Sequence[str | None]
    origin: str | None

    @property
    def name(self) -> str:
        """Return `evaluator.metric`."""
        return f"{self.evaluator}.{self.metric.key}"

    def failing(self, cut: float) -> Mask:
        """Return which cases are on the wrong side of a threshold."""
        return beyond(self.values, cut, self.metric.direction)


@dataclass(frozen=True)
class ScoreTable:
    """The primary metrics of a run and the facts of its cases, in the order of the run.

    Attributes:
        cases: As `cases.jsonl` has them.
        columns: By name.
        facts: Of each case, by dimension.
        units: Places of one case per question, drawn by hash: what statistics count.
    """

    cases: Sequence[Mapping[str, Any]]
    columns: Mapping[str, MetricColumn]
    facts: Sequence[Mapping[str, str]]
    units: np.ndarray[Any, np.dtype[np.intp]]

    @property
    def keys(self) -> list[str]:
        """Return the keys of the cases."""
        return [str(case["key"]) for case in self.cases]

    def digest(self) -> str:
        """Return the hash of all scores, answers and facts; how long answers took is no part."""
        names = sorted(self.columns)
        rows = [
            [
                case["key"],
                case.get("input"),
                case.get("actual_output"),
                dict(self.facts[place]),
                *(_plain(self.columns[name], place) for name in names),
            ]
            for place, case in enumerate(self.cases)
        ]
        return sha256_of([names, rows])


def read_table(run: Path, seed: int = 7) -> ScoreTable:
    """Return the primary metrics of a finished run.

    Args:
        run: Its folder.
        seed: Of the draw of one case per question.

    Raises:
        ConfigurationError: If it is no finished run.
    """
    data = read_run_data(run)
    units: dict[str, int] = {}
    for place in sorted(range(len(data.cases)), key=lambda n: _draw(seed, data, n)):
        units.setdefault(str(data.cases[place]["group"]), place)
    return ScoreTable(
        data.cases,
        {column.name: column for column in _columns(data)},
        [case_facts(case) for case in data.cases],
        np.array(sorted(units.values()), dtype=np.intp),
    )


def case_facts(case: Mapping[str, Any]) -> dict[str, str]:
    """Return what a case is known by: its categories that read `name:value`, texts, documents."""
    contexts, categories = case.get("context"), list(map(str, case.get("categories") or ()))
    passages = None if contexts is None else len(contexts)
    facts = facts_of(None, passages, categories)
    plain = [name for name in categories if ":" not in name and name not in _OURS]
    if plain:
        facts.setdefault("category", plain[0])
    words = len(str(case.get("input") or "").split())
    facts["length"] = next((name for end, name in _QUESTION_WORDS if words < end), "15 words and "
                           "more")  # fmt: skip
    language = facts_of(str(case.get("input") or ""), None, ()).get("language")
    facts["language"] = language or "undetermined"
    spans = [one["target"] for one in case.get("relationships") or () if one["type"] == _SPAN]
    if spans:
        facts["document"] = str(spans[0]).rpartition("[")[0]
    return facts


_SPAN = "source_span"
_OURS = ("generated", "perturbed")


def rate(count: int, of: int) -> dict[str, Any]:
    """Return a share with its exact 95 % interval."""
    return {
        "x": int(count),
        "n": int(of),
        "rate": count / of if of else None,
        "interval95": list(exact_interval(int(count), int(of))),
    }


def mean(values: Column) -> dict[str, Any]:
    """Return a mean over the finite values with its bootstrap interval."""
    known = values[np.isfinite(values)]
    found = mean_interval(known) if len(known) else None
    return {
        "n": len(known),
        "mean": float(known.mean()) if len(known) else None,
        "interval95": None if found is None else list(found),
    }


def metric_json(column: MetricColumn) -> dict[str, Any]:
    """Return what a metric is called."""
    higher = column.metric.direction is Direction.HIGHER
    return {
        "metric": column.name,
        "evaluator": column.evaluator,
        "key": column.metric.key,
        "direction": "higher_is_better" if higher else "lower_is_better",
    }


def finite(value: float) -> float | None:
    """Return a number that strict JSON has; None for what has no place in a mean."""
    return float(value) if np.isfinite(value) else None


def _columns(data: RunData) -> list[MetricColumn]:
    found = []
    for name, one in data.evaluators.items():
        metric = one.primary
        values = one.values[metric.key]
        if one.has_values and not np.isnan(values).all():
            cut = one.cuts.get(metric.key)
            origin = cut.origin if cut else None if metric.threshold is None else "suite"
            found.append(MetricColumn(name, metric, values, one.reasons[metric.key], origin))
    return found


def _draw(seed: int, data: RunData, place: int) -> float:
    return float(chance(seed, "unit", str(data.cases[place]["key"])))


def _plain(column: MetricColumn, place: int) -> float | str | None:
    value = float(column.values[place])
    if np.isnan(value):
        return column.reasons[place]
    return value if np.isfinite(value) else str(value)
