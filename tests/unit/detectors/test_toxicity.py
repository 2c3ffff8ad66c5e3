"""Toxicity: six labels, each the worst over the sentences."""

from __future__ import annotations

import numpy as np
import pytest

from guardrail_service.detectors.safety import LABELS, Toxicity, ToxicityParameters
from guardrail_service.text.sample import SegmentedSample, TokenSpan
from guardrail_service.types import RowOutput, Sample


class Letters:
    """A windower for which every character is a token."""

    max_tokens = 200

    def tokens(self, text: str) -> list[TokenSpan]:
        """Return the tokens."""
        return [TokenSpan(i, i + 1, True) for i in range(len(text))]


def test_each_label_takes_its_own_worst_sentence() -> None:
    """An insult and a threat may stand in different sentences."""
    sample = SegmentedSample(
        Sample("You are a complete fool. I will come and hurt you."), {"toxicity": Letters()}
    )
    detector, parameters = Toxicity(), ToxicityParameters()
    assert len(detector.encode(sample, parameters)) == 2
    low: RowOutput = dict.fromkeys(LABELS, np.array(0.01, np.float32))
    outputs = [
        {**low, "insult": np.array(0.9, np.float32)},
        {**low, "threat": np.array(0.8, np.float32)},
    ]
    found = detector.reduce(sample, outputs, parameters)
    assert found.scores["insult"] == pytest.approx(0.9)
    assert found.scores["threat"] == pytest.approx(0.8)
    assert found.scores["obscene"] == pytest.approx(0.01)


def test_only_toxicity_gates() -> None:
    """The other labels are reported unless a configuration gives them a threshold."""
    assert [metric.key for metric in Toxicity.spec.metrics if metric.gating] == ["toxicity"]
    assert tuple(metric.key for metric in Toxicity.spec.metrics) == LABELS
