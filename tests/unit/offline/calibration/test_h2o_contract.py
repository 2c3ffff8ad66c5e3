"""H2O's calibration contract, and the seeds' guardrail configuration through the whole loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guardrail_service.detectors  # noqa: F401 - registers the built-in detectors
from guardrail_offline.calibration.fit_options import FitOptions
from guardrail_offline.calibration.h2o_contract import calibrate, guardrail_json, parse_request
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.file import Serving, load_file
from guardrail_service.types import ROLES

TOXICITY = "h2o_sonar.evaluators.toxicity_evaluator.ToxicityEvaluator"
EXAMPLE = Path(__file__).resolve().parents[4] / "configs" / "h2o_example.json"
EVERYTHING = Serving(REGISTRY, "all roles", frozenset(ROLES), {}, {})


def request(n: int = 60, **changes: Any) -> dict[str, Any]:
    """Return a request: answers that should pass have low toxicity."""
    generator = np.random.default_rng(4)
    items = [
        {"name": f"a{i}", "metricValue": float(v), "label": True}
        for i, v in enumerate(generator.beta(1, 12, n))
    ] + [
        {"name": f"b{i}", "metricValue": float(v), "label": False}
        for i, v in enumerate(generator.beta(6, 3, 20))
    ]
    return {
        "originalThreshold": 0.25,
        "evaluator": TOXICITY,
        "metric": "toxicity",
        "trainSet": items,
    } | changes


def answered(content: dict[str, Any], **options: float) -> dict[str, Any]:
    """Return the operation for a request."""
    return calibrate(parse_request(content), REGISTRY, FitOptions(alpha=0.1, **options))


def test_the_threshold_flags_at_most_its_share_of_what_should_pass() -> None:
    """Direction and operator as the metric has them."""
    content = request()
    operation = answered(content)
    response = operation["response"]
    good = [i["metricValue"] for i in content["trainSet"] if i["label"]]
    flagged = sum(value > response["calibratedThreshold"] for value in good)
    assert operation["done"]
    assert response["operator"] == "flag_if_gt"
    assert response["falseFlag"]["x"] == flagged <= 0.1 * len(good)
    assert response["recall"]["x"] >= 15


def test_without_a_metric_the_first_one_is_meant() -> None:
    """As in H2O's contract."""
    content = request()
    del content["metric"]
    assert answered(content)["metadata"]["metric"] == "toxicity"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (request(21), "found 21 answers labelled true; expected at least 22"),
        (request(0), "labels of one kind only"),
    ],
)
def test_too_few_labels_end_the_operation_in_an_error(content: dict[str, Any], says: str) -> None:
    """With how many it takes."""
    operation = answered(content)
    assert "response" not in operation
    assert says in operation["error"]["message"]


def test_missing_scores_are_named_where_they_are_the_reason() -> None:
    """There are labels enough; six of sixty passing answers have no score."""
    content = request()
    for item in content["trainSet"][:6]:
        item["metricValue"] = None
    message = answered(content)["error"]["message"]
    assert "trainSet.metricValue: found null in 6 of 60 answers labelled true" in message
    assert "expected at most 2 for alpha 0.1 and delta 0.1" in message
    for item in content["trainSet"][2:6]:
        item["metricValue"] = 0.01
    assert "response" in answered(content)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"evaluator": TOXICITY.replace("h2o_", "h20_")}, "did you mean"),
        ({"metric": "nope"}, "unknown metric 'nope'"),
        ({"originalThreshold": 7.0}, "found 7"),
        ({"trainSet": []}, "trainSet"),
        ({"extra": 1}, "extra"),
        ({"trainSet": [{"name": "a", "metricValue": 0.5, "label": "yes"}]}, "trainSet.0.label"),
    ],
)
def test_a_request_that_does_not_fit_is_refused(changes: dict[str, Any], says: str) -> None:
    """By field."""
    with pytest.raises(ConfigurationError, match=says):
        answered(request(**changes))


def test_scores_out_of_range_end_the_operation_in_an_error() -> None:
    """And missing ones count as the worst."""
    content = request()
    content["trainSet"][0]["metricValue"] = 1.5
    assert "trainSet.0.metricValue" in answered(content)["error"]["message"]
    content["trainSet"][0]["metricValue"] = None
    with_missing = answered(content)["response"]
    assert with_missing["falseFlag"]["x"] >= 1


def test_the_seeds_example_round_trips(tmp_path: Path) -> None:
    """Loaded as it is, and calibrated metric by metric into a file of the same two keys."""
    example = json.loads(EXAMPLE.read_text())
    load_file(EXAMPLE, EVERYTHING)
    again: dict[str, Any] = {"calibrated_thresholds": {}, "evaluator_ids": []}
    for evaluator, thresholds in example["calibrated_thresholds"].items():
        for metric, threshold in thresholds.items():
            content = request(evaluator=evaluator, metric=metric, originalThreshold=threshold)
            if metric == "model_passes":
                for item in content["trainSet"]:
                    item["metricValue"] = float(item["label"])
            parsed = parse_request(content)
            made = guardrail_json(parsed, calibrate(parsed, REGISTRY, FitOptions(alpha=0.1)))
            again["calibrated_thresholds"] |= made["calibrated_thresholds"]
            again["evaluator_ids"] += made["evaluator_ids"]
    shape = {k: set(v) for k, v in example["calibrated_thresholds"].items()}
    assert {k: set(v) for k, v in again["calibrated_thresholds"].items()} == shape
    assert again["evaluator_ids"] == example["evaluator_ids"]
    path = tmp_path / "again.json"
    path.write_text(json.dumps(again))
    load_file(path, EVERYTHING)
