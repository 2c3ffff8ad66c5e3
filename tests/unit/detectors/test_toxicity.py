"""Toxicity: six labels and what wordings say, each the worst over the sentences."""

from __future__ import annotations

import numpy as np
import pytest

from guardrail_service.detectors.safety import (
    HATE,
    LABELS,
    SELF_HARM,
    WORDED,
    Toxicity,
    ToxicityParameters,
)
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
        Sample("You are a complete fool. Beware of me at night."), {"toxicity": Letters()}
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


@pytest.mark.parametrize(
    ("answer", "worded"),
    [
        ("The shop is open. I will kill you.", {"toxicity": 2, "threat": 2}),
        ("You should kill yourself. The shop is open.", {"toxicity": 1, SELF_HARM: 1}),
        ("The word is open. Nobody should ever kill yourself.", {}),
    ],
)
def test_a_wording_decides_its_metrics_and_points_at_its_sentence(
    answer: str, worded: dict[str, int]
) -> None:
    """Whatever the model says of the sentence; self-harm is 0 where no wording is found."""
    sample = SegmentedSample(Sample(answer), {"toxicity": Letters()})
    outputs: list[RowOutput] = [dict.fromkeys(LABELS, np.array(0.01, np.float32))] * 2
    found = Toxicity().reduce(sample, outputs, ToxicityParameters())
    assert {key for key, score in found.scores.items() if score == WORDED} == set(worded)
    assert found.scores[SELF_HARM] in (0.0, WORDED)
    for span in found.spans:
        number = 1 if span.start == 0 else 2
        assert (span.score == WORDED) is (worded.get(span.label) == number)


def test_only_toxicity_gates() -> None:
    """The other labels are reported unless a configuration gives them a threshold."""
    assert [metric.key for metric in Toxicity.spec.metrics if metric.gating] == ["toxicity"]
    assert tuple(metric.key for metric in Toxicity.spec.metrics) == (*LABELS, HATE, SELF_HARM)
