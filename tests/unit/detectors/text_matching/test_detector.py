"""Text matching: what each boolean metric means, and how a bad condition is refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from guardrail_service.detectors.text_matching.detector import TextMatching, TextMatchingParameters
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Coverage, Outcome, Passage, Sample, State


def judge(
    condition: str | None,
    answer: str = "It costs 30 euros.",
    contexts: tuple[str, ...] = (),
    **more: bool,
) -> Outcome:
    """Run the detector on an answer and passages."""
    sample = SegmentedSample(Sample(answer, contexts=tuple(map(Passage, contexts))))
    return TextMatching().reduce(sample, (), TextMatchingParameters(condition=condition, **more))


def test_without_a_condition_there_is_nothing_to_judge() -> None:
    """None is not the empty condition."""
    outcome = judge(None)
    assert (outcome.state, outcome.reason) == (State.NOT_APPLICABLE, "missing_input")


def test_the_empty_condition_passes() -> None:
    """It asks for nothing."""
    assert judge("").scores["model_passes"] == 1.0


def test_a_failing_answer_names_the_operand() -> None:
    """The whole answer is pointed at; the attributes say which operand, not which text."""
    outcome = judge('"euros" AND "VAT"')
    (span,) = outcome.spans
    assert (span.start, span.end, span.label) == (0, 18, "condition_failed")
    assert span.attributes == {"failed": 2, "column": 13}


# The manual says the context is always checked, H2O's code checks it on request only.
@pytest.mark.parametrize(
    ("answer", "contexts", "reads", "passes", "retrieval"),
    [
        ("30 euros", ("40 euros",), False, 1.0, 0.0),
        ("30 euros", ("40 euros",), True, 1.0, 1.0),
        ("30 euros", ("a", "30 euros"), True, 1.0, 0.0),
        ("free", ("30 euros",), True, 0.0, 0.0),
        ("free", ("40 euros",), True, 0.0, 1.0),
        ("free", (), True, 0.0, 1.0),
    ],
)
def test_passages_have_a_metric_of_their_own(
    answer: str, contexts: tuple[str, ...], reads: bool, passes: float, retrieval: float
) -> None:
    """`model_passes` is about the answer, `model_retrieval_failures` about the passages."""
    outcome = judge('"30 euros"', answer, contexts, evaluate_retrieved_context=reads)
    assert outcome.scores == {
        "model_passes": passes,
        "model_failures": 1.0 - passes,
        "model_retrieval_failures": retrieval,
        "model_generation_failures": 1.0 - passes,
        "model_parse_failures": 0.0,
    }


def test_coverage_counts_the_passages_that_were_read() -> None:
    """All of them or none."""
    assert judge('"a"', "abc", ("de", "f")).coverage == Coverage((3, 3), (0, 0))
    read = judge('"a"', "abc", ("de", "f"), evaluate_retrieved_context=True)
    assert read.coverage == Coverage((3, 3), (3, 3))


def test_a_bad_condition_is_refused_with_its_field_and_column() -> None:
    """At validation, before any answer meets it, and without repeating it."""
    with pytest.raises(ValidationError) as caught:
        TextMatchingParameters(condition='"secretword" "x"')
    (error,) = caught.value.errors(include_input=False, include_url=False)
    assert error["loc"] == ("condition",)
    assert "column 14" in error["msg"]
    assert "secretword" not in str(caught.value)
