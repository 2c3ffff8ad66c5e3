"""H2O Eval Studio's calibration contract: one metric, scores with labels in, one threshold out.

The request is `{originalThreshold, evaluator, metric, trainSet: [{name, metricValue, label}]}`,
`label` true where the answer should pass; without `metric` the evaluator's first one is meant. The
answer is a long-running operation; ours is done at once. The layout of H2O's own response is not
public, so `response` holds the threshold under our names beside what it promises.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NoReturn

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guardrail_offline.calibration.fit_options import FitOptions
from guardrail_offline.calibration.joint_rule import Axis, Vector, between
from guardrail_offline.calibration.single_rules import false_flag_cut
from guardrail_offline.calibration.split import Mask
from guardrail_offline.calibration.statistics import guaranteed_rank, labels_needed, rate
from guardrail_service.detectors.registry import DetectorSpec, MetricSpec, Registry
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.file import check_threshold


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class H2oAnswer(_Strict):
    """One answer: its name, its score (null where there is none) and whether it should pass."""

    name: str = ""
    metric_value: Annotated[float | None, Field(alias="metricValue")] = None
    label: bool


class H2oRequest(_Strict):
    """A calibration request."""

    original_threshold: Annotated[float | None, Field(alias="originalThreshold")] = None
    evaluator: str
    metric: str | None = None
    train_set: Annotated[tuple[H2oAnswer, ...], Field(alias="trainSet", strict=False, min_length=1)]


def parse_request(content: Any) -> H2oRequest:
    """Return a checked request.

    Raises:
        ConfigurationError: Naming the first field that does not fit.
    """
    try:
        return H2oRequest.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "request"
        raise ConfigurationError(where, "a value that does not fit", first["msg"]) from error


def calibrate(request: H2oRequest, registry: Registry, options: FitOptions) -> dict[str, Any]:
    """Return a finished operation: the threshold and its promise, or why there is none."""
    spec = registry.spec(request.evaluator, "evaluator")
    metric = _metric(spec, request)
    operation: dict[str, Any] = {
        "name": f"operations/calibrate-{spec.id}-{metric.key}",
        "done": True,
        "metadata": {"evaluator": request.evaluator, "metric": metric.key},
    }
    try:
        return {**operation, "response": _response(request, metric, options)}
    except ConfigurationError as error:
        return {**operation, "error": {"code": error.code, "message": str(error)}}


def guardrail_json(request: H2oRequest, operation: dict[str, Any]) -> dict[str, Any]:
    """Return the threshold as a guardrail configuration of the two keys H2O's has."""
    response = operation["response"]
    threshold = {response["metric"]: response["calibratedThreshold"]}
    return {
        "calibrated_thresholds": {request.evaluator: threshold},
        "evaluator_ids": [request.evaluator],
    }


def _metric(spec: DetectorSpec, request: H2oRequest) -> MetricSpec:
    key = request.metric or spec.metrics[0].key
    if request.original_threshold is not None:
        check_threshold(spec, key, request.original_threshold, "originalThreshold")
    try:
        return spec.metric(key)
    except KeyError:
        known = ", ".join(m.key for m in spec.metrics)
        raise ConfigurationError("metric", f"unknown metric {key!r}", known) from None


def _response(request: H2oRequest, metric: MetricSpec, options: FitOptions) -> dict[str, Any]:
    axis = Axis(metric)
    values = np.array([_oriented(axis, item, i) for i, item in enumerate(request.train_set)])
    good: Mask = np.array([item.label for item in request.train_set], dtype=np.bool_)
    if good.all() or not good.any():
        raise ConfigurationError("trainSet", "labels of one kind only", "both true and false")
    cut = false_flag_cut(values[good], options.alpha, options.delta)
    if cut is None:
        needed = labels_needed(options.alpha, options.delta)
        raise ConfigurationError(
            "trainSet", f"{int(good.sum())} answers labelled true", f"at least {needed}"
        )
    if cut == -math.inf:
        _refuse_missing(values[good], options)
    placed = between(cut, values, axis)
    if not math.isfinite(placed):
        raise ConfigurationError("trainSet", "no score to cut at", "scores of answers that pass")
    return {
        "originalThreshold": request.original_threshold,
        "calibratedThreshold": axis.orient(placed),
        "metric": metric.key,
        "operator": "flag_if_lt" if axis.orient(1.0) > 0 else "flag_if_gt",
        "promise": {"falseFlagRate": options.alpha, "confidence": 1 - options.delta},
        "falseFlag": rate(values[good] < placed).as_json(),
        "recall": rate(values[~good] < placed).as_json(),
    }


def _refuse_missing(good: Vector, options: FitOptions) -> NoReturn:
    """Say that answers without a score, which count as flagged, use up all that may be flagged."""
    most = guaranteed_rank(len(good), options.alpha, options.delta) - 1
    raise ConfigurationError(
        "trainSet.metricValue",
        f"null in {int(np.sum(good == -math.inf))} of {len(good)} answers labelled true",
        f"at most {most} for alpha {options.alpha:g} and delta {options.delta:g}: an answer "
        "without a score counts as flagged",
    )


def _oriented(axis: Axis, item: H2oAnswer, index: int) -> float:
    if item.metric_value is None:
        return -math.inf  # a missing score is the worst one, as a service that fails closed has it
    if not axis.spec.holds(item.metric_value):
        expected = f"a number in [{axis.spec.low:g}, {axis.spec.high:g}]"
        where = f"trainSet.{index}.metricValue"
        raise ConfigurationError(where, f"{item.metric_value:g}", expected)
    return axis.orient(item.metric_value)
