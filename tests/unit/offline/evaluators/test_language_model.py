"""Perplexity and GPTScore through the role `causal_lm`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE, unmet
from guardrail_offline.evaluators.language_model import mean_nll, perplexity
from guardrail_service.errors import NotScorable
from tests.unit.offline.stand_ins import Session, models

IDS = [
    "perplexity",
    "machine_translation_gptscore",
    "question_answering_gptscore",
    "summarization_with_reference_gptscore",
    "summarization_without_reference_gptscore",
]


def value(evaluator_id: str, metric: str, case: Case) -> float | None:
    """Return a metric of one case with a made-up language model."""
    view = CaseView(case, models("embedding", causal_lm=Session("causal_lm")))
    evaluator = CATALOGUE[evaluator_id]
    return evaluator.evaluate([view], evaluator.parameters())[0].scores[metric].value


def test_perplexity_is_the_exponential_of_the_mean_negative_log_likelihood() -> None:
    """NLLs 1, 2, 3 give e^2 = 7.389056. Known answer 48."""
    assert perplexity(np.array([-1.0, -2.0, -3.0])) == pytest.approx(math.e**2, rel=1e-9)


@pytest.mark.parametrize("values", [[], [math.nan], [-math.inf]])
def test_no_token_and_no_number_have_no_score(values: list[float]) -> None:
    """An answer that could not be read must not become the best one."""
    with pytest.raises(NotScorable):
        mean_nll(np.array(values))


def test_a_surer_text_has_a_lower_perplexity_and_never_below_one() -> None:
    """Lower is better; certainty is 1."""
    assert perplexity(np.array([-0.1])) < perplexity(np.array([-4.0]))
    assert perplexity(np.array([0.0])) == 1.0


def test_gptscore_with_a_reference_is_the_mean_of_both_ways() -> None:
    """Answer after expected: -1 for the shared word, -3 for others; and the other way round."""
    case = Case("1", "q", "alpha beta", "alpha")
    both = value("machine_translation_gptscore", "accuracy", case)
    assert both == pytest.approx(((1 + 3) / 2 + 1) / 2)


def test_a_summary_that_repeats_its_source_scores_better_than_one_that_does_not() -> None:
    """Lower is better."""
    key = ("summarization_without_reference_gptscore", "factuality")
    good = value(*key, Case("1", "The dam was built in spring.", "dam built spring"))
    bad = value(*key, Case("1", "The dam was built in spring.", "cats purr loudly"))
    assert good is not None
    assert bad is not None
    assert good < bad


def test_every_aspect_of_question_answering_is_asked_with_its_own_prompt() -> None:
    """Eight metrics, each the likelihood of "Yes"."""
    evaluator = CATALOGUE["question_answering_gptscore"]
    assert len(evaluator.spec.keys) == 8
    assert value(evaluator.spec.id, "fluency", Case("1", "q", "a")) == 1.0


@pytest.mark.parametrize("evaluator_id", IDS)
def test_without_the_role_it_is_said_so(evaluator_id: str) -> None:
    """Before any case is looked at."""
    assert unmet(CATALOGUE[evaluator_id].spec, models()) == "missing_role:causal_lm"
