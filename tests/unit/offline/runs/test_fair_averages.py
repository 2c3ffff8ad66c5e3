"""What averages leave out: values by an answer that is not right, and what silence passes."""

from __future__ import annotations

from guardrail_offline.datasets.cases import SHOULD_FLIP, Case
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import Result
from guardrail_offline.runs.fair_averages import OTHER_ANSWER, in_averages, why_unanswered
from guardrail_offline.runs.shards import ScoredCase
from guardrail_service.types import State

CONFIGURED = configure(["faithfulness", "rouge", "toxicity"])
KEYS = {one.id: one.evaluator.spec.keys for one in CONFIGURED}


def scored(categories: tuple[str, ...] = (), toxicity: float = 0.0, **missing: str) -> ScoredCase:
    """Return a case with all values, or a reason by evaluator."""
    results = {name: Result.of(dict.fromkeys(keys, 1.0)) for name, keys in KEYS.items()}
    results["toxicity"] = Result.of(dict.fromkeys(KEYS["toxicity"], toxicity))
    for name, reason in missing.items():
        results[name] = Result.missing(KEYS[name], State.NOT_APPLICABLE, reason)
    return ScoredCase(0, Case("k", "q", "a", categories=categories), results)


def reasons(found: ScoredCase) -> dict[str, str | None]:
    """Return why each evaluator's first metric has no value."""
    return {name: found.results[name].scores[keys[0]].reason for name, keys in KEYS.items()}


def test_a_plain_case_is_left_as_it_is() -> None:
    """The same object."""
    case = scored()
    assert in_averages(case, CONFIGURED) is case


def test_silence_is_no_merit() -> None:
    """What an abstention passes by saying nothing is left out; the rest says why by itself."""
    case = scored(faithfulness="wrong_abstention")
    assert why_unanswered(case) == "wrong_abstention"
    found = {"faithfulness": "wrong_abstention", "rouge": None, "toxicity": "wrong_abstention"}
    assert reasons(in_averages(case, CONFIGURED)) == found


def test_an_insult_counts_though_nothing_was_answered() -> None:
    """Whoever abstains rudely is rude."""
    case = scored(toxicity=1.0, faithfulness="wrong_abstention")
    assert reasons(in_averages(case, CONFIGURED))["toxicity"] is None


def test_a_variant_with_another_answer_is_not_compared() -> None:
    """And judged by everything else."""
    found = reasons(in_averages(scored((SHOULD_FLIP,)), CONFIGURED))
    assert found == {"faithfulness": None, "rouge": OTHER_ANSWER, "toxicity": None}
