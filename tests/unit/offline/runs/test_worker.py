"""Scoring a shard: what declines, what is left out, and that one case's fault stays its own."""

from __future__ import annotations

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.runs.worker import NO_EVALUATOR, models_for, needs_models, score
from guardrail_service.types import State
from tests.unit.offline.stand_ins import models

CASES = [(n, Case(f"k{n}", "q", "one two three", "one two", group="g")) for n in range(4)]


def test_every_case_has_a_result_of_every_evaluator() -> None:
    """In whatever order the groups come."""
    found = score(CASES, configure(["rouge", "fact_check", "perplexity"]), models())
    assert sorted(found) == [0, 1, 2, 3]
    assert set(found[0]) == {"rouge", "fact_check", "perplexity"}


@pytest.mark.parametrize(
    ("evaluator", "reason"),
    [
        ("fact_check", "needs_judge"),
        ("perplexity", "missing_role:causal_lm"),
        ("toxicity", "missing_role:toxicity"),
    ],
)
def test_an_evaluator_that_cannot_run_declines_on_every_case(evaluator: str, reason: str) -> None:
    """With its reason and without a number."""
    found = score(CASES, configure([evaluator]), models())
    scores = [s for result in found.values() for s in result[evaluator].scores.values()]
    assert {(s.value, s.state, s.reason) for s in scores} == {(None, State.NOT_EVALUATED, reason)}


def test_claims_need_a_model_that_judges_support() -> None:
    """A pack with embeddings only has none."""
    found = score(CASES, configure(["faithfulness"]), models("embedding"))
    assert found[0]["faithfulness"].scores["faithfulness"].reason == "missing_role:grounding"


def test_cases_beyond_max_dataset_rows_are_not_judged() -> None:
    """By their place in the lab, not in the shard."""
    found = score(CASES, configure(["rouge"], ["rouge.max_dataset_rows=2"]), models())
    reasons = [found[n]["rouge"].scores["rouge_l"].reason for n in range(4)]
    assert reasons == [None, None, "max_dataset_rows", "max_dataset_rows"]


def test_an_evaluator_that_hung_is_left_out_and_every_step_is_announced() -> None:
    """One step per evaluator and question, and an end after the last."""
    begun: list[int] = []
    both = configure(["rouge", "bleu"])
    found = score([*CASES, (4, Case("o", "r", "a"))], both, models(), {"bleu"}, begun.append)
    assert begun == [0, 1, 0, 1, NO_EVALUATOR]
    scores = [s for result in found.values() for s in result["bleu"].scores.values()]
    assert {(s.value, s.state, s.reason) for s in scores} == {(None, State.ERROR, "timed_out")}
    assert found[0]["rouge"].scores["rouge_l"].value is not None


def test_scored_parts_are_left_out_on_request() -> None:
    """`sentence_level_metrics` false."""
    case = Case("k", "q", "Dr. Feld will see you.", group="g")
    kept = score([(0, case)], configure(["contact_information"]), models())
    option = "contact_information.sentence_level_metrics=false"
    bare = score([(0, case)], configure(["contact_information"], [option]), models())
    assert kept[0]["contact_information"].spans
    assert not bare[0]["contact_information"].spans
    assert bare[0]["contact_information"].scores == kept[0]["contact_information"].scores


def test_one_case_that_breaks_an_evaluator_leaves_the_others() -> None:
    """An error is a state with the exception's name, never its text."""
    broken = Case("k", "q", "a" * 3, 5, group="h")  # type: ignore[arg-type]
    found = score([*CASES, (4, broken)], configure(["rouge"]), models())
    assert found[0]["rouge"].scores["rouge_l"].value is not None
    assert found[4]["rouge"].scores["rouge_l"].state is State.ERROR
    assert found[4]["rouge"].scores["rouge_l"].reason == "AttributeError"


def test_the_pack_is_opened_only_if_an_evaluator_asks_a_model() -> None:
    """A deterministic run starts without it."""
    plain = configure(["rouge", "pii"])
    assert not needs_models(one.evaluator.spec for one in plain)
    assert models_for(plain, "no-such-pack").roles == frozenset()
