"""SummaC's zero-shot rule, coverage of a source, and the rule in place of a judge."""

from __future__ import annotations

import numpy as np
import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.result import Result
from guardrail_offline.evaluators.summaries import coverage, summac_zero_shot
from guardrail_service.errors import NotScorable
from tests.unit.offline.stand_ins import models, vector

SOURCE = (
    "The dam holds forty million tonnes of water. Its wall is ninety metres high. "
    "Two turbines give power to three villages. Visitors may walk along the crest in summer."
)


def judge(evaluator_id: str, case: Case) -> Result:
    """Return the result of one case."""
    evaluator = CATALOGUE[evaluator_id]
    return evaluator.evaluate([CaseView(case, models())], evaluator.parameters())[0]


def test_the_zero_shot_rule_of_a_small_matrix() -> None:
    """Document x summary: .25. Known answer 47."""
    entailed = np.array([[0.9, 0.1], [0.2, 0.3]])
    contradicted = np.array([[0.0, 0.6], [0.1, 0.2]])
    assert summac_zero_shot(entailed, contradicted) == pytest.approx(0.25, rel=1e-9)


def test_an_empty_matrix_is_zero() -> None:
    """As SummaC has it. Known answer 47."""
    assert summac_zero_shot(np.zeros((0, 0)), np.zeros((0, 0))) == 0.0


POINTS = np.stack([vector(word) for word in "abcdefg"])


def test_a_summary_of_every_sentence_covers_the_source() -> None:
    """All of its spread."""
    assert coverage(POINTS, POINTS) == pytest.approx(1.0)


def test_a_summary_of_nothing_supported_covers_nothing() -> None:
    """Zero, not missing: there is a source."""
    assert coverage(POINTS, POINTS[:0]) == 0.0


def test_one_sentence_spans_no_distance() -> None:
    """A single point has no length."""
    assert coverage(POINTS, POINTS[:1]) == 0.0


def test_coverage_does_not_depend_on_the_order_of_the_summary() -> None:
    """Points are ordered along the source's main direction."""
    assert coverage(POINTS, POINTS[[0, 3, 5]]) == coverage(POINTS, POINTS[[5, 0, 3]])


def test_a_source_of_two_sentences_is_too_small() -> None:
    """Three parts need three points."""
    with pytest.raises(NotScorable):
        coverage(POINTS[:2], POINTS[:2])


def test_a_faithful_summary_scores_higher_than_an_invented_one() -> None:
    """By the best source sentence and by the whole source."""
    good = judge("summarization", Case("1", SOURCE, "The dam holds forty million tonnes of water."))
    bad = judge("summarization", Case("1", SOURCE, "Penguins dance upon glowing chocolate moons."))
    assert (good.scores["faithfulness_zs"].value or 0) > (bad.scores["faithfulness_zs"].value or 0)
    assert good.scores["faithfulness_conv"].value == pytest.approx(1.0)
    assert (bad.scores["faithfulness_conv"].value or 0) < 0.2
    assert bad.scores["completeness"].value == 0.0


def test_support_by_the_whole_source_is_a_mean_over_summary_sentences() -> None:
    """One sentence of the source and one that shares no word with it."""
    half = "The dam holds forty million tonnes of water. Penguins dance upon chocolate moons."
    found = judge("summarization", Case("1", SOURCE, half)).scores["faithfulness_conv"].value
    assert found == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("answer", "passes"),
    [("The dam is ninety metres high and gives power.", 1.0), ("Cats purr loudly at night.", 0.0)],
)
def test_the_rule_in_place_of_a_judge(answer: str, passes: float) -> None:
    """Word overlap and claims both ways."""
    case = Case("1", SOURCE, answer, "The dam is ninety metres high and gives power.")
    assert judge("summarization_judge", case).scores["model_passes"].value == passes
