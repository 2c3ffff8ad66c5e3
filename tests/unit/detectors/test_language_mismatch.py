"""Language mismatch: which language counts, what is not judged, and what may differ."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from guardrail_service.detectors.relevancy import (
    LanguageMismatch,
    LanguageMismatchParameters,
)
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Outcome, Sample, State

ENGLISH_QUESTION = "What is the notice period for ending the rental contract?"
GERMAN_QUESTION = "Wie lange ist die Kündigungsfrist für den Mietvertrag der Wohnung?"
ENGLISH_ANSWER = "The notice period is three months, counted from the end of the calendar month."
GERMAN_ANSWER = "Die Kündigungsfrist beträgt drei Monate zum Ende des Kalendermonats."


def judge(question: str | None, answer: str, allowed_languages: tuple[str, ...] = ()) -> Outcome:
    """Run the detector on a question and an answer."""
    parameters = LanguageMismatchParameters(allowed_languages=allowed_languages)
    return LanguageMismatch().reduce(SegmentedSample(Sample(answer, question)), (), parameters)


@pytest.mark.parametrize(
    ("question", "answer", "passes"),
    [
        (ENGLISH_QUESTION, ENGLISH_ANSWER, 1.0),
        (GERMAN_QUESTION, GERMAN_ANSWER, 1.0),
        (ENGLISH_QUESTION, GERMAN_ANSWER, 0.0),
        (GERMAN_QUESTION, ENGLISH_ANSWER, 0.0),
        (ENGLISH_QUESTION, "解約通知の期間は三か月で、月末から数えます。", 0.0),
    ],
)
def test_the_answer_must_be_in_the_questions_language(
    question: str, answer: str, passes: float
) -> None:
    """Five boolean metrics; nothing is parsed, so nothing fails to parse."""
    outcome = judge(question, answer)
    assert outcome.scores == {
        "model_passes": passes,
        "model_failures": 1.0 - passes,
        "model_retrieval_failures": 0.0,
        "model_generation_failures": 1.0 - passes,
        "model_parse_failures": 0.0,
    }


def test_the_span_names_both_languages() -> None:
    """The whole answer is pointed at, with the codes and not with text."""
    (span,) = judge(ENGLISH_QUESTION, GERMAN_ANSWER).spans
    assert (span.start, span.end, span.label) == (0, len(GERMAN_ANSWER), "language_mismatch")
    assert span.attributes == {"question": "en", "answer": "de"}


@pytest.mark.parametrize("question", [None, "", "  \n"])
def test_without_a_question_there_is_nothing_to_compare(question: str | None) -> None:
    """Not applicable, never a pass by default."""
    outcome = judge(question, ENGLISH_ANSWER)
    assert (outcome.state, outcome.reason) == (State.NOT_APPLICABLE, "missing_input")


@pytest.mark.parametrize(
    ("question", "answer"),
    [(ENGLISH_QUESTION, "1987"), (ENGLISH_QUESTION, "OK"), ("42?", ENGLISH_ANSWER)],
)
def test_a_text_too_short_to_tell_is_not_judged(question: str, answer: str) -> None:
    """A number or a word has no language."""
    outcome = judge(question, answer)
    assert (outcome.state, outcome.reason) == (State.NOT_APPLICABLE, "language_undetermined")


def test_a_foreign_title_inside_an_answer_is_no_mismatch() -> None:
    """The language of the answer as a whole counts."""
    answer = (
        "The notice period is explained in the leaflet 'Kündigung des Mietvertrags', which the "
        "tenants' association hands out free of charge at its office."
    )
    assert judge(ENGLISH_QUESTION, answer).scores["model_passes"] == 1.0


def test_an_allowed_language_passes_whatever_the_question_is_in() -> None:
    """A product that always answers in German can say so."""
    assert judge(ENGLISH_QUESTION, GERMAN_ANSWER, ("de",)).scores["model_passes"] == 1.0
    assert judge(ENGLISH_QUESTION, GERMAN_ANSWER, ("fr",)).scores["model_passes"] == 0.0


def test_a_language_name_is_refused_where_a_code_is_expected() -> None:
    """`German` would never match and silently allow nothing."""
    with pytest.raises(ValidationError):
        LanguageMismatchParameters(allowed_languages=("German",))
