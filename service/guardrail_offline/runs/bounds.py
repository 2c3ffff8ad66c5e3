"""Bounds that a run has to meet: what `--fail-under` and `assert_rag` ask for, and what came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from guardrail_offline.evaluators.catalogue import EvaluatorSpec
from guardrail_offline.runs.totals import fails
from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.types import Direction

Outcome = Literal["met", "missed", "no value", "too few cases"]
OPTION = "--fail-under"


@dataclass(frozen=True, slots=True)
class Bound:
    """The least a metric may be; the most, where lower is better.

    Attributes:
        evaluator: Our id.
        metric: One of its metrics.
        value: In the metric's unit.
        model: Key or name of the model it is for; None for each of them.
    """

    evaluator: str
    metric: str
    value: float
    model: str | None = None


@dataclass(frozen=True, slots=True)
class BoundCheck:
    """One bound, held against one model.

    Attributes:
        value: Mean over the cases that have one; None where none has.
        judged: Cases with a value.
        cases: All cases of the model.
        missing: Why the others have none, with counts.
        worst: Keys of the cases with the worst values, where they are known, and the values.
    """

    evaluator: str
    metric: str
    model: str
    bound: float
    higher_is_better: bool
    value: float | None
    judged: int
    cases: int
    missing: Mapping[str, int]
    outcome: Outcome
    worst: tuple[tuple[str, float], ...] = ()

    @property
    def asked(self) -> str:
        """Return what was asked for, such as `faithfulness >= 0.8`."""
        name = self.metric if self.metric == self.evaluator else f"{self.evaluator}.{self.metric}"
        return f"{name} {'>=' if self.higher_is_better else '<='} {self.bound:g}"

    @property
    def found(self) -> str:
        """Return what came, in one line without any text of the lab."""
        value = "no value" if self.value is None else f"{self.value:.3f}"
        text = f"{value} over {self.judged} of {self.cases} cases"
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.missing.items())
        return f"{text} ({reasons})" if reasons else text

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def bounds_of(options: Iterable[str], specs: Sequence[EvaluatorSpec]) -> tuple[Bound, ...]:
    """Return the bounds that options such as `faithfulness=.8` set.

    Args:
        options: Each `[MODEL:][EVALUATOR.]METRIC=VALUE`. An evaluator's id stands for its metric
            of that name, or its primary one.
        specs: The evaluators that run.

    Raises:
        ConfigurationError: If one cannot be read, names nothing that runs, or could mean several.
    """
    return tuple(_bound(option, specs) for option in options)


def _bound(option: str, specs: Sequence[EvaluatorSpec]) -> Bound:
    name, equals, text = option.rpartition("=")
    model, colon, metric = name.strip().rpartition(":")
    if not equals or not metric:
        raise ConfigurationError(OPTION, repr(option), "[MODEL:][EVALUATOR.]METRIC=VALUE")
    spec, key = _named(metric, specs)
    try:
        value = float(text)
    except ValueError as error:
        raise ConfigurationError(f"{OPTION} {name}", repr(text), "a number") from error
    found = spec.metric(key)
    if not found.holds(value):
        raise ConfigurationError(f"{OPTION} {name}", text, f"{found.low} to {found.high}")
    return Bound(spec.id, key, value, model if colon else None)


def _named(name: str, specs: Sequence[EvaluatorSpec]) -> tuple[EvaluatorSpec, str]:
    """Return the evaluator and the metric that a name stands for."""
    evaluator, _, metric = name.rpartition(".")
    for spec in specs:
        if not evaluator and name == spec.id:
            return spec, name if name in spec.keys else spec.primary.key
    found = [s for s in specs if metric in s.keys and evaluator in ("", s.id)]
    if len(found) == 1:
        return found[0], metric
    where = f"{OPTION} {name}"
    if found:
        ways = " or ".join(f"{spec.id}.{metric}" for spec in found[:4])
        raise ConfigurationError(where, f"a metric of {len(found)} evaluators", ways)
    known = {spec.id for spec in specs} | {key for spec in specs for key in spec.keys}
    raise ConfigurationError(where, "nothing of this run", choices(name, known, "metric"))


def checks(
    bounds: Iterable[Bound], boards: Sequence[Mapping[str, Any]], min_coverage: float = 0.0
) -> list[BoundCheck]:
    """Return how each model stands against each bound.

    Args:
        bounds: What is asked for.
        boards: The content of `leaderboards.json`.
        min_coverage: Share of a model's cases that have to have a value. A model that answers
            little is not the better for it.

    Raises:
        ConfigurationError: If a bound names a model that the run does not have.
    """
    by_id = {board["evaluator"]: board for board in boards}
    return [
        _check(bound, by_id[bound.evaluator], row, min_coverage)
        for bound in bounds
        for row in _rows(bound, by_id[bound.evaluator])
    ]


def _rows(bound: Bound, board: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = sorted(board["rows"], key=lambda row: str(row["model"]))
    if bound.model is None:
        return rows
    found = [row for row in rows if bound.model in (row["model"], row["name"])]
    if not found:
        known = {str(row["model"]) for row in rows}
        hint = choices(bound.model, known, "model")
        raise ConfigurationError(OPTION, f"the model {bound.model!r}", hint)
    return found


def _check(
    bound: Bound, board: Mapping[str, Any], row: Mapping[str, Any], min_coverage: float
) -> BoundCheck:
    cell = row["metrics"][bound.metric]
    direction = Direction(board["directions"][bound.metric])
    per_case = cell if cell["n"] or cell["value"] is None else row["metrics"][_primary(board)]
    judged = per_case["n"] + per_case["infinite"]
    cases = judged + sum(per_case["missing"].values())
    outcome: Outcome = "met"
    if cell["value"] is None:
        outcome = "no value"
    elif fails(cell["value"], direction, bound.value):
        outcome = "missed"
    elif judged < min_coverage * cases:
        outcome = "too few cases"
    return BoundCheck(
        bound.evaluator,
        bound.metric,
        row["name"],
        bound.value,
        direction is Direction.HIGHER,
        cell["value"],
        judged,
        cases,
        dict(per_case["missing"]),
        outcome,
    )


def _primary(board: Mapping[str, Any]) -> str:
    return str(board["primary_metric"])
