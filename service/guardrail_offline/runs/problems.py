"""Problems of a run: metrics on the wrong side, missing values, sets that are too small."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from guardrail_offline.datasets.cases import Model
from guardrail_offline.evaluators.case_view import ERROR_ANSWER, NO_ANSWER
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.runs.model_figures import KEPT_CASES, ModelFigures
from guardrail_offline.runs.shards import ScoredCase
from guardrail_offline.runs.totals import EvaluatorTally, fails
from guardrail_service.types import Direction, MetricSpec

Severity = Literal["high", "medium", "low"]
LEVELS: tuple[Severity, ...] = ("high", "medium", "low")
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
    "storage": ("reduce_files", "Look at the files that the largest cases leave."),
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


class WorstCases:
    """The worst failing cases of each model and metric; filled by question."""

    def __init__(self, configured: Iterable[Configured]) -> None:
        self._cuts = {one.id: one.deciding_thresholds() for one in configured}
        self._specs = {one.id: one.evaluator.spec for one in configured}
        self._worst: dict[tuple[str, str, str], list[tuple[float, str]]] = {}

    def add(self, group: Iterable[ScoredCase]) -> None:
        """Note the cases of one question."""
        for scored in group:
            for evaluator, cuts in self._cuts.items():
                for key, cut in cuts.items():
                    value = scored.results[evaluator].scores[key].value
                    direction = self._specs[evaluator].metric(key).direction
                    if value is not None and fails(value, direction, cut):
                        self._note((evaluator, key, scored.case.model), value, scored.case.key)

    def _note(self, place: tuple[str, str, str], value: float, key: str) -> None:
        metric = self._specs[place[0]].metric(place[1])
        bad = -value if metric.direction is Direction.HIGHER else value
        heap = self._worst.setdefault(place, [])
        heapq.heappush(heap, (bad, key))
        if len(heap) > KEPT_CASES:
            heapq.heappop(heap)

    def keys(self, evaluator: str, metric: str, model: str) -> list[str]:
        """Return the keys of at most ten cases, the worst first."""
        heap = self._worst.get((evaluator, metric, model), [])
        return [key for _, key in sorted(heap, reverse=True)]


def problems(
    tallies: Sequence[EvaluatorTally],
    models: Sequence[Model],
    worst: WorstCases | None = None,
    figures: ModelFigures | None = None,
) -> list[Finding]:
    """Return what is wrong: at most one problem of a type per model and evaluator.

    These are metrics on the wrong side of a threshold that means something for the models at
    hand, cases that could not be judged, and what stands out of speed, cost, files and lengths.
    """
    found: list[Finding] = []
    for tally in tallies:
        for model in models:
            if model.key in tally.metrics:
                found += _below_threshold(tally, model, worst)
                found += _missing(tally, model)
    for model in models:
        found += _too_few(tallies, model)
    for kind, level, text, attributes in figures.stands_out(models) if figures else ():
        found.append(_finding(text, level, kind, "P0200", attributes))
    return sorted(found, key=lambda problem: LEVELS.index(problem["severity"]))


def _below_threshold(
    tally: EvaluatorTally, model: Model, worst: WorstCases | None
) -> Iterable[Finding]:
    """Return one problem: of the primary metric, or of the one that is furthest off."""
    spec = tally.evaluator.spec
    failing = []
    for key, threshold in tally.configured.deciding_thresholds().items():
        metric = spec.metric(key)
        value = tally.value(model.key, key)
        if value is None or not fails(value, metric.direction, threshold):
            continue
        count = tally.metrics[model.key][key].failing
        attributes = {"metric": key, "threshold": threshold, "score": value, "failing_cases": count}
        failing.append((severity(value, metric, threshold), attributes, metric))
    if not failing:
        return
    leads = [one for one in failing if one[2] is spec.primary]
    level, lead, metric = (leads or sorted(failing, key=lambda one: LEVELS.index(one[0])))[0]
    side = "below" if metric.direction is Direction.HIGHER else "above"
    text = (
        f"{spec.name}: {metric.key} of {model.title} is {lead['score']:.3f}, "
        f"{side} {lead['threshold']:g}"
    )
    also = [attributes["metric"] for _, attributes, other in failing if other is not metric]
    keys = worst.keys(spec.id, metric.key, model.key) if worst else []
    more = ({"also_failing": also} if also else {}) | ({"row_keys": keys} if keys else {})
    yield _problem(tally, model, level, text, lead | more)


_RUN_FAULTS = frozenset(
    {ERROR_ANSWER, "row_failed", "missing_metric", "score_out_of_range", "unknown_metric"}
)
_DATA_FAULTS = frozenset(
    {"missing_input", NO_ANSWER, "artifacts_not_found", "session_not_readable"}
)


def _missing(tally: EvaluatorTally, model: Model) -> Iterable[Finding]:
    """Return a problem per repairable reason that keeps cases from being judged."""
    counts = tally.metrics[model.key][tally.evaluator.spec.primary.key]
    total = counts.count + counts.infinite + counts.missing.total()
    for reason, count in sorted(counts.missing.items()):
        if reason in _DATA_FAULTS and not tally.computed:
            continue  # the whole lab is without: the evaluator is not meant for it
        if reason not in _DATA_FAULTS and reason not in _RUN_FAULTS and not _is_crash(reason):
            continue
        kind = "data quality" if reason in _DATA_FAULTS else "runtime"
        share = count / total
        level: Severity = "high" if kind == "runtime" else "medium" if share > _HIGH else "low"
        text = f"{tally.evaluator.spec.name}: {count} of {total} cases not judged: {reason}"
        yield _problem(tally, model, level, text, {"reason": reason, "cases": count}, kind)


def _is_crash(reason: str) -> bool:
    return reason.endswith(("Error", "Exception"))


def _too_few(tallies: Iterable[EvaluatorTally], model: Model) -> Iterable[Finding]:
    """Return one problem for all evaluators that have judged too few cases of a model."""
    few, wanted = {}, 0
    for tally in tallies:
        if model.key in tally.metrics:
            count = tally.metrics[model.key][tally.evaluator.spec.primary.key].count
            if 0 < count < tally.configured.common.min_test_cases:
                few[tally.configured.id] = count
                wanted = max(wanted, tally.configured.common.min_test_cases)
    if few:
        least = min(few, key=lambda name: few[name])
        text = (
            f"{len(few)} evaluators judged fewer than {wanted} cases of {model.title}: "
            f"{least} {few[least]}"
        )
        attributes = {
            "evaluator": least, "model": model.key, "cases": few, "min_test_cases": wanted,
        }  # fmt: skip
        yield _finding(text, "low", "data quality", "P0100", attributes)


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
    named = {"evaluator": spec.id, "model": model.key, **attributes}
    return _finding(text, level, kind or spec.problem, code, named)


def _finding(text: str, level: str, kind: str, code: str, attributes: Mapping[str, Any]) -> Finding:
    action, advice = _ACTIONS[kind]
    return {
        "description": text,
        "severity": level,
        "problem_type": kind,
        "problem_code": code,
        "problem_code_meaning": AVID[code],
        "problem_attrs": dict(attributes),
        "actions_codes": [action],
        "actions_description": advice,
    }
