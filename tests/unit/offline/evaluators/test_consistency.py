"""Statistics over reruns, and which answers are reruns of each other."""

from __future__ import annotations

import numpy as np
import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.consistency import spread
from guardrail_service.errors import NotScorable
from guardrail_service.types import State
from tests.unit.offline.stand_ins import models

EVALUATOR = CATALOGUE["consistency"]


def test_the_spread_of_three_runs() -> None:
    """Open RAG Eval's example .7, .6, .6; the standard deviation is that of the population.

    Known answer 28.
    """
    found = spread([0.7, 0.6, 0.6])
    assert found.mean == pytest.approx(0.633333, abs=1e-6)
    assert found.std == pytest.approx(0.0471405, abs=1e-7)
    assert found.variance == pytest.approx(0.0022222, abs=1e-7)
    assert found.cv == pytest.approx(0.0744323, abs=1e-7)
    assert found.median == pytest.approx(0.6, rel=1e-9)
    assert found.iqr == pytest.approx(0.05, rel=1e-9)
    assert found.adjusted == pytest.approx(0.6048218, abs=1e-7)


def test_two_runs_have_no_spread() -> None:
    """Open RAG Eval asks for three, too. Known answer 29."""
    with pytest.raises(NotScorable):
        spread([0.7, 0.6])


def test_a_mean_of_zero_has_no_coefficient_of_variation() -> None:
    """Instead of a division by zero."""
    assert spread([0.0, 0.0, 0.0]).cv is None


def test_a_negative_mean_has_a_positive_coefficient_of_variation() -> None:
    """BERTScore may be negative; a spread is not."""
    assert spread([-0.7, -0.6, -0.6]).cv == pytest.approx(0.0744323, abs=1e-7)


def run(*cases: tuple[str, str, str]) -> list[float | None]:
    """Return the mean ROUGE-L of cases (question, model, answer)."""
    shared = models()
    views = [CaseView(Case(str(i), q, a, model=m), shared) for i, (q, m, a) in enumerate(cases)]
    results = EVALUATOR.evaluate(views, EVALUATOR.parameters())
    return [result.scores["rouge_l_mean"].value for result in results]


def test_the_same_answer_three_times_is_consistent() -> None:
    """With no variance at all."""
    shared = models()
    views = [
        CaseView(Case(str(i), "q", "Nine to five daily.", model="m"), shared) for i in range(3)
    ]
    scores = EVALUATOR.evaluate(views, EVALUATOR.parameters())[0].scores
    assert scores["rouge_l_mean"].value == 1.0
    assert scores["bertscore_mean"].value == pytest.approx(1.0)
    assert scores["bertscore_variance"].value == pytest.approx(0.0, abs=1e-12)


def test_reruns_are_answers_of_one_model_to_one_question() -> None:
    """Neither another model's answer nor a variant's question joins them."""
    same = [("q", "m", "Nine to five.")] * 3
    found = run(*same, ("q", "n", "Never."), ("Q?", "m", "Maybe."))
    assert found == [1.0, 1.0, 1.0, None, None]


def test_the_order_of_runs_does_not_matter() -> None:
    """Pairs have no order."""
    answers = [("q", "m", "a b c"), ("q", "m", "a b d"), ("q", "m", "x y z")]
    assert run(*answers)[0] == pytest.approx(run(*reversed(answers))[0])
    assert np.isfinite(run(*answers)[0] or np.nan)


def test_answers_that_share_nothing_have_a_mean_and_a_variation_of_zero() -> None:
    """ROUGE-L can be 0 for every pair."""
    shared = models()
    views = [CaseView(Case(t, "q", t, model="m"), shared) for t in ("aa bb", "cc dd", "ee ff")]
    scores = EVALUATOR.evaluate(views, EVALUATOR.parameters())[0].scores
    assert (scores["rouge_l_mean"].value, scores["rouge_l_cv"].value) == (0.0, 0.0)


def test_answers_to_no_question_are_no_reruns() -> None:
    """Nothing says that they belong together."""
    shared = models()
    views = [CaseView(Case(str(i), "", "Nine to five.", model="m"), shared) for i in range(3)]
    score = EVALUATOR.evaluate(views, EVALUATOR.parameters())[0].scores["rouge_l_mean"]
    assert (score.value, score.state, score.reason) == (None, State.UNVERIFIED, "missing_input")


def test_every_rouge_has_a_spread_with_precision_and_recall() -> None:
    """Lone words have no pairs, which is no disagreement."""
    shared = models()
    for answer, pairs in (("Nine to five.", 1.0), ("Never", None)):
        views = [CaseView(Case(str(i), "q", answer, model="m"), shared) for i in range(3)]
        result = EVALUATOR.evaluate(views, EVALUATOR.parameters())[0]
        assert result.scores["rouge_1_mean"].value == 1.0
        assert result.scores["rouge_2_mean"].value == pairs
        assert result.details["pairs"] == 3
        assert result.details["rouge_1_recall"]["mean"] == 1.0
