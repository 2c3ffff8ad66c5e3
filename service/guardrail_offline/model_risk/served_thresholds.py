"""The guardrail configuration of a workflow: calibrated thresholds that the service serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.from_detectors import FromDetector
from guardrail_offline.model_risk.step_data import WorkflowData


@dataclass(frozen=True)
class ServedThresholds:
    """A guardrail configuration in H2O's form, and what could not go into it.

    Attributes:
        content: Of the file; None if there is no threshold for it.
        left_out: Why a metric is not in it.
    """

    content: Mapping[str, Any] | None
    left_out: Mapping[str, str]


def served_thresholds(data: WorkflowData) -> ServedThresholds:
    """Return the thresholds that people's labels gave to metrics that the service computes."""
    thresholds: dict[str, dict[str, float]] = {}
    left_out: dict[str, str] = {}
    known = {spec.id for spec in CATALOGUE.specs()}
    for one in data.results("calibration")["thresholds"]:
        evaluator, key = one["evaluator"].text, one["key"].text
        value = one["threshold"].value
        if not one["calibrated"].value or not isinstance(value, int | float):
            left_out[one["metric"].text] = one["why"].text or "not calibrated by labels"
        elif evaluator not in known or not isinstance(CATALOGUE[evaluator], FromDetector):
            left_out[one["metric"].text] = "judged offline only: the service has no such detector"
        else:
            thresholds.setdefault(evaluator, {})[key] = float(value)
    if not thresholds:
        return ServedThresholds(None, left_out)
    content = {
        "calibrated_thresholds": {name: thresholds[name] for name in sorted(thresholds)},
        "evaluator_ids": sorted(thresholds),
    }
    return ServedThresholds(content, left_out)
