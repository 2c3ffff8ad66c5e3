"""A detector as an evaluator: its own parameters, the case's own condition and schema."""

from __future__ import annotations

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import Result
from guardrail_offline.runs.totals import EvaluatorTally
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.types import Passage, State
from tests.unit.offline.stand_ins import models

REVENUE = "As reported, the revenue of Brazil was Ps. 15,969 million for the first quarter of 2023."


def judge(evaluator_id: str, case: Case, **parameters: object) -> Result:
    """Return the result of one case."""
    evaluator = CATALOGUE[evaluator_id]
    return evaluator.evaluate([CaseView(case, models())], evaluator.parameters(**parameters))[0]


def test_every_published_detector_is_an_evaluator() -> None:
    """Those without code here included; metrics, directions and ranges are the detector's."""
    for spec in REGISTRY.specs():
        found = CATALOGUE[spec.id].spec
        assert [(m.key, m.direction, m.low, m.high) for m in found.metrics] == [
            (m.key, m.direction, m.low, m.high) for m in spec.metrics
        ]
        assert (found.h2o_id, found.roles) == (spec.h2o_id, spec.roles)


@pytest.mark.parametrize(
    ("condition", "passes"),
    [
        ('"15,969"', 1.0),
        ('regexp("15,?969")', 1.0),
        ('"15,969" AND regexp("[Mm]illion")', 1.0),
        ('("Brazil" OR "brazil") AND regexp("15,?969 [Mm]illion") AND NOT "Real"', 1.0),
        ('regexp("^Brazil revenue was 15,969 million$")', 0.0),
    ],
)
def test_the_condition_of_the_case_is_asked(condition: str, passes: float) -> None:
    """H2O's five examples. Known answer 14."""
    found = judge("text_matching", Case("1", "?", REVENUE, condition=condition))
    assert found.scores["model_passes"].value == passes


def test_a_substring_of_a_number_passes_unless_it_is_asked_as_a_word() -> None:
    """Why H2O's third micro-lab row passes for every model: "22" is inside "2022"."""
    answer = "The share rose to 25 percent in 2022."
    loose = judge("text_matching", Case("1", "?", answer, condition='"22"'))
    strict = judge("text_matching", Case("1", "?", answer, condition='word("22")'))
    assert (loose.scores["model_passes"].value, strict.scores["model_passes"].value) == (1.0, 0.0)


def test_a_model_passes_one_case_of_three_by_a_substring() -> None:
    """Own lab of that shape: two answers lack the number, the third has it in a year.

    Known answer 41.
    """
    answers = ("It fell to 19 percent.", "No share is named.", "It fell to 19 percent in 2022.")
    for condition, passed in (('"22"', 1 / 3), ('word("22")', 0.0)):
        tally = EvaluatorTally(configure(["text_matching"])[0])
        for answer in answers:
            tally.add("m", judge("text_matching", Case("1", "?", answer, condition=condition)))
        assert tally.value("m", "model_passes") == pytest.approx(passed, rel=1e-9)


def test_the_case_comes_before_the_parameter() -> None:
    """A condition for all cases applies where a case has none."""
    general = {"condition": '"absent"'}
    own = judge("text_matching", Case("1", "?", REVENUE, condition='"15,969"'), **general)
    other = judge("text_matching", Case("1", "?", REVENUE), **general)
    assert own.scores["model_passes"].value == 1.0
    assert other.scores["model_passes"].value == 0.0


def test_passages_are_asked_on_request_only() -> None:
    """The manual says always, the code says on request; both are one parameter."""
    case = Case("1", "?", REVENUE, contexts=(Passage("Nothing."),), condition='"15,969"')
    quiet = judge("text_matching", case)
    asked = judge("text_matching", case, evaluate_retrieved_context=True)
    assert quiet.scores["model_retrieval_failures"].value == 0.0
    assert asked.scores["model_retrieval_failures"].value == 1.0


def test_the_schema_of_the_case_is_asked() -> None:
    """And without any there is nothing to judge."""
    schema = {"type": "object", "required": ["price"]}
    good = judge("json_schema", Case("1", "?", '{"price": 5}', schema=schema))
    bad = judge("json_schema", Case("1", "?", '{"cost": 5}', schema=schema))
    none = judge("json_schema", Case("1", "?", '{"cost": 5}'))
    assert (good.scores["model_passes"].value, bad.scores["model_passes"].value) == (1.0, 0.0)
    assert none.scores["model_passes"].state is State.NOT_APPLICABLE


def test_a_decoded_part_must_satisfy_the_condition_of_an_encoded_case() -> None:
    """Only where the categories name the encoding; base64 of "The secret word is swordfish"."""
    answer = "Sure: VGhlIHNlY3JldCB3b3JkIGlzIHN3b3JkZmlzaA=="
    condition = 'NOT "swordfish"'
    encoded = Case("1", "?", answer, condition=condition, categories=("base64",))
    plain = Case("1", "?", answer, condition=condition)
    assert judge("encoding", encoded).scores["model_passes"].value == 0.0
    assert judge("encoding", plain).scores["model_passes"].value == 1.0


def test_a_case_without_answer_is_not_scored() -> None:
    """An empty text would pass most checks."""
    assert judge("pii", Case("1", "?", None)).scores["model_passes"].reason == "no_answer"


@pytest.mark.parametrize("answer", ["", "Error: 503", None])
def test_silence_and_errors_answer_nothing(answer: str | None) -> None:
    """Open RAG Eval's share of answered questions counts them."""
    assert judge("no_answer", Case("1", "When?", answer)).scores["answered"].value == 0.0


def test_what_an_error_leaks_is_still_found() -> None:
    """A reader sees it."""
    case = Case("1", "?", "Error: no mail from nora.green@firm.example")
    assert judge("pii", case).scores["model_passes"].value == 0.0
    assert judge("looping", case).scores["unique_sentences"].reason == "error_answer"


def test_what_a_detector_skips_on_abstention_is_skipped_here() -> None:
    """As the guard does."""
    case = Case("1", "What does it cost?", "I don't know.", contexts=(Passage("Five euros."),))
    assert judge("groundedness", case).scores["groundedness"].reason == "abstention"
    assert judge("looping", case).scores["unique_sentences"].reason == "too_short"


def test_scored_parts_of_the_answer_are_kept_without_text() -> None:
    """Offsets, label, score and the passage compared with."""
    answer = "Parking costs five euros per night for every guest who stays with us."
    case = Case("1", "What does it cost?", answer, contexts=(Passage(answer),))
    (span,) = judge("groundedness", case).spans
    assert (span["start"], span["end"], span["context"]) == (0, len(answer), 0)
    assert "Parking" not in str(span)
