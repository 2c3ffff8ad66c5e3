"""Problems of a run: metrics on the wrong side, missing values, sets that are too small."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from guardrail_offline.datasets.cases import Model
from guardrail_offline.runs.totals import EvaluatorTally, fails
from guardrail_service.types import Direction, MetricSpec

Severity = Literal["high", "medium", "low"]
Finding = dict[str, Any]
_HIGH, _MEDIUM = 0.5, 0.25
"""Half of the way from the threshold to the worst end of the range is a high severity, as H2O's
"at most half the threshold" is for metrics from 0; here in the metric's own direction."""
AVID = {
    "S0400": "model bypass or leak of protected data",
    "E0100": "bias and discrimination",
    "E0300": "toxicity",
    "E0400": "misinformation",
    "P0100": "data issues",
    "P0200": "ability of the system to perform as intended",
    "P0300": "privacy",
}
_ACTIONS: Mapping[str, tuple[str, str]] = {
    "accuracy": ("improve_generation", "Look at the worst cases; change prompt or model."),
    "retrieval": ("improve_retrieval", "Look at chunking, ranking and corpus."),
    "privacy": ("redact_answers", "Redact or block such answers; remove the data from the corpus."),
    "security": ("block_answers", "Block such answers; rotate what leaked."),
    "fairness": ("review_answers", "Review the answers; add a guardrail for this risk."),
    "data quality": ("repair_data", "Repair or complete the cases named here."),
    "stability": ("stabilise", "Compare the wordings or runs that differ."),
    "efficiency": ("speed_up", "Look at the slowest cases."),
    "cost": ("save_cost", "Look at the most expensive cases."),
    "runtime": ("repair_run", "Look at the cases in error."),
}  # fmt: skip


def severity(value: float, metric: MetricSpec, threshold: float) -> Severity:
    """Return how bad a value on the wrong side of its threshold is.

    The distance to the threshold is taken in the metric's own direction, as a share of the way to
    the worst end of its range; where there is no end, as a share of the threshold itself.
    """
    worst = metric.low if metric.direction is Direction.HIGHER else metric.high
    way = abs(threshold - worst) if math.isfinite(worst) else max(abs(threshold), 1e-9)
    share = abs(value - threshold) / way if way else 1.0
    return "high" if share >= _HIGH else "medium" if share >= _MEDIUM else "low"


def problems(tallies: Iterable[EvaluatorTally], models: Sequence[Model]) -> list[Finding]:
    """Return metrics on the wrong side, missing values and test sets that are too small."""
    found: list[Finding] = []
    for tally in tallies:
        for model in models:
            if model.key in tally.metrics:
                found += _below_threshold(tally, model)
                found += _missing(tally, model)
                found += _too_few(tally, model)
    order = {"high": 0, "medium": 1, "low": 2}
    return sorted(found, key=lambda problem: order[problem["severity"]])


def _below_threshold(tally: EvaluatorTally, model: Model) -> Iterable[Finding]:
    spec = tally.evaluator.spec
    for metric in spec.metrics:
        threshold = tally.thresholds[metric.key]
        value = tally.value(model.key, metric.key)
        if threshold is None or value is None or not fails(value, metric.direction, threshold):
            continue
        side = "below" if metric.direction is Direction.HIGHER else "above"
        attributes = {
            "metric": metric.key,
            "threshold": threshold,
            "score": value,
            "failing_cases": tally.metrics[model.key][metric.key].failing,
        }
        yield _problem(
            tally,
            model,
            severity(value, metric, threshold),
            f"{spec.name}: {metric.key} of {model.title} is {value:.3f}, {side} {threshold:g}",
            attributes,
        )


_RUN_FAULTS = frozenset({"row_failed", "missing_metric", "score_out_of_range", "unknown_metric"})
_DATA_FAULTS = frozenset({"missing_input", "artifacts_not_found", "session_not_readable"})


def _missing(tally: EvaluatorTally, model: Model) -> Iterable[Finding]:
    """Return a problem per repairable reason that keeps cases from being judged."""
    counts = tally.metrics[model.key][tally.evaluator.spec.primary.key]
    total = counts.count + counts.infinite + counts.missing.total()
    for reason, count in sorted(counts.missing.items()):
        if reason not in _DATA_FAULTS and reason not in _RUN_FAULTS and not _is_crash(reason):
            continue
        kind = "data quality" if reason in _DATA_FAULTS else "runtime"
        share = count / total
        level: Severity = "high" if kind == "runtime" else "medium" if share > _HIGH else "low"
        text = f"{tally.evaluator.spec.name}: {count} of {total} cases not judged: {reason}"
        yield _problem(tally, model, level, text, {"reason": reason, "cases": count}, kind)


def _is_crash(reason: str) -> bool:
    return reason.endswith(("Error", "Exception"))


def _too_few(tally: EvaluatorTally, model: Model) -> Iterable[Finding]:
    least = tally.configured.common.min_test_cases
    counts = tally.metrics[model.key][tally.evaluator.spec.primary.key]
    if 0 < counts.count < least:
        name = tally.evaluator.spec.name
        text = f"{name}: {counts.count} cases of {model.title}; expected at least {least}"
        attributes = {"cases": counts.count, "min_test_cases": least}
        yield _problem(tally, model, "low", text, attributes, "data quality")


def _problem(
    tally: EvaluatorTally,
    model: Model,
    level: Severity,
    text: str,
    attributes: Mapping[str, Any],
    kind: str | None = None,
) -> Finding:
    spec = tally.evaluator.spec
    code = "P0100" if kind == "data quality" else spec.avid
    action, advice = _ACTIONS[kind or spec.problem]
    return {
        "description": text,
        "severity": level,
        "problem_type": kind or spec.problem,
        "problem_code": code,
        "problem_code_meaning": AVID[code],
        "problem_attrs": {"evaluator": spec.id, "model": model.key, **attributes},
        "actions_codes": [action],
        "actions_description": advice,
    }
