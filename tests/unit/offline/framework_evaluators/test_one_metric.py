"""One metric of one answer: the suite's own number, its direction and its threshold."""

from __future__ import annotations

import pytest

from guardrail_offline.framework_evaluators.one_metric import OneMetric
from guardrail_service.errors import ConfigurationError

LOOP = "It opens at seven. " * 20
ANSWER = (
    "The pool opens at seven in the morning. Guests may stay for two weeks at most. Towels are in "
    "the locker beside the door, and the sauna is warm from noon."
)
ROW = {"question": "When?", "answer": ANSWER, "contexts": [ANSWER]}


@pytest.mark.parametrize(
    ("metric", "good_end"),
    [("unique_sentences", 1.0), ("longest_repeated_substring", 0.0)],
)
def test_the_good_side_follows_the_direction(metric: str, good_end: float) -> None:
    """Of one metric more is better, of the other less."""
    judge = OneMetric("looping", metric, threshold=0.5)
    good, bad = judge(ROW), judge({**ROW, "answer": LOOP})
    assert (good.passes, bad.passes) == (True, False)
    assert good.value is not None
    assert abs(good.value - good_end) < 0.2
    assert judge.name == f"looping.{metric}"


def test_the_threshold_counts_as_good() -> None:
    """Equal passes, as everywhere."""
    exact = OneMetric("ragas:exact_match", threshold=1.0)
    assert exact({**ROW, "reference": ROW["answer"]}).passes is True
    assert exact({**ROW, "reference": "At eight."}).passes is False


def test_a_missing_score_has_its_reason_and_no_verdict() -> None:
    """An expected answer that is not there."""
    found = OneMetric("ragas:exact_match", threshold=1.0)(ROW)
    assert (found.value, found.passes) == (None, None)
    assert found.reason == "missing_input"


def test_an_unknown_metric_is_refused_with_the_known_ones() -> None:
    """Before anything is judged."""
    with pytest.raises(ConfigurationError, match="did you mean 'unique_sentences'"):
        OneMetric("looping", "unique_sentence")
