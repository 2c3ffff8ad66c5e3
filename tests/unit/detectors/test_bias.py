"""Bias: a combined score and its three parts."""

from __future__ import annotations

import numpy as np
import pytest

from guardrail_service.detectors.safety import Bias, BiasParameters
from guardrail_service.text.sample import SegmentedSample, TokenSpan
from guardrail_service.types import Sample


class Letters:
    """A windower for which every character is a token."""

    max_tokens = 200

    def tokens(self, text: str) -> list[TokenSpan]:
        """Return the tokens."""
        return [TokenSpan(i, i + 1, True) for i in range(len(text))]


def test_the_combined_score_is_the_models_own() -> None:
    """It is combined inside the graph, where the parts are calibrated."""
    sample = SegmentedSample(Sample("Women cannot lead teams of engineers."), {"bias": Letters()})
    detector, parameters = Bias(), BiasParameters()
    assert [row.role for row in detector.encode(sample, parameters)] == ["bias"]
    values = {"fairness_bias": 0.7, "gender": 0.6, "group": 0.2, "framing": 0.1}
    outputs = [{key: np.array(value, np.float32) for key, value in values.items()}]
    found = detector.reduce(sample, outputs, parameters)
    assert found.scores == pytest.approx(values)
    assert {span.label for span in found.spans} == set(values)


def test_a_model_without_the_parts_gives_the_combined_score_alone() -> None:
    """Such as the reference pack's; a part it does not know is left out, not invented."""
    sample = SegmentedSample(Sample("Women cannot lead teams of engineers."), {"bias": Letters()})
    outputs = [{"fairness_bias": np.array(0.7, np.float32)}]
    found = Bias().reduce(sample, outputs, BiasParameters())
    assert found.scores == pytest.approx({"fairness_bias": 0.7})
    with pytest.raises(KeyError):
        Bias().reduce(sample, [{"gender": np.array(0.7, np.float32)}], BiasParameters())


def test_only_the_combined_score_gates() -> None:
    """The parts say why."""
    assert [metric.key for metric in Bias.spec.metrics if metric.gating] == ["fairness_bias"]
