"""Finding evaluators by their names, and results that break the contract."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import (
    Catalogue,
    Evaluator,
    EvaluatorSpec,
    NoParameters,
    verdict,
)
from guardrail_offline.evaluators.result import Result, Score
from guardrail_service.errors import ConfigurationError, NotScorable
from guardrail_service.types import MetricSpec, State
from tests.unit.offline.stand_ins import models


class Given(Evaluator[NoParameters]):
    """Returns what it was given."""

    parameters = NoParameters

    def __init__(self, found: Result | Mapping[str, float] | Exception) -> None:
        self.found = found
        self.spec = EvaluatorSpec(
            "given",
            "Given",
            "Given.",
            (MetricSpec("one"), MetricSpec("two")),
            frozenset({"answer"}),
            "D",
            h2o_id="h2o.Given",
            also=("ragas:given",),
        )

    def judge(self, view: CaseView, parameters: NoParameters) -> Result | Mapping[str, float]:
        """Return or raise it."""
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def result(found: Result | Mapping[str, float] | Exception) -> Result:
    """Return the checked result of an evaluator that found this."""
    return Given(found).evaluate([CaseView(Case("k", "q", "a"), models())], NoParameters())[0]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ({"one": 1.0}, "missing_metric"),
        ({"one": 1.0, "two": 2.0}, "score_out_of_range"),
        ({"one": 1.0, "two": 1.0, "three": 1.0}, "unknown_metric"),
        ({"one": float("nan"), "two": 1.0}, "ValueError"),
        (RuntimeError("secret text"), "RuntimeError"),
    ],
)
def test_a_result_that_breaks_the_contract_is_an_error_for_its_case(
    found: Mapping[str, float] | Exception, reason: str
) -> None:
    """Never a number; never the exception's words."""
    scores = result(found).scores
    assert {(s.value, s.state, s.reason) for s in scores.values()} == {(None, State.ERROR, reason)}


def test_nothing_to_score_is_not_applicable() -> None:
    """A formula that has no input says so."""
    assert result(NotScorable("no claim")).scores["one"].state is State.NOT_APPLICABLE


def test_scores_come_in_the_order_of_the_spec() -> None:
    """The same input gives the same bytes."""
    found = result(Result({"two": Score(0.2), "one": Score(0.1)}))
    assert list(found.scores) == ["one", "two"]


def test_an_evaluator_is_found_by_any_name_and_near_misses_are_suggested() -> None:
    """Ours, H2O's, another suite's."""
    catalogue = Catalogue()
    catalogue.add(Given({}))
    for name in ("given", "h2o.Given", "ragas:given"):
        assert catalogue.find(name).spec.id == "given"
    with pytest.raises(ConfigurationError, match="did you mean 'given'"):
        catalogue.find("givne")
    with pytest.raises(ConfigurationError, match=r"one of given, h2o\.Given, ragas:given"):
        catalogue.find("something else")


@pytest.mark.parametrize("passes", [True, False])
def test_a_verdict_is_a_pass_or_a_generation_failure(passes: bool) -> None:
    """Retrieval is not judged by rules over the answer."""
    found = verdict(passes)
    assert found["model_passes"] == float(passes)
    assert found["model_failures"] == found["model_generation_failures"] == float(not passes)
    assert found["model_retrieval_failures"] == found["model_parse_failures"] == 0.0
