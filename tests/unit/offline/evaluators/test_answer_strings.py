"""Exact match, SQuAD's F1 and the rest, over one right answer and several."""

from __future__ import annotations

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.answer_strings import contains, exact_match, token_f1
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.configured import configure
from tests.unit.offline.stand_ins import models


def values(
    evaluator_id: str, answer: str, *expected: str, option: str = ""
) -> dict[str, float | None]:
    """Return an evaluator's metrics of an answer against one right answer or more."""
    case = Case("1", "What is it?", answer, expected[0], references=expected[1:])
    evaluator = CATALOGUE[evaluator_id]
    options = [f"{evaluator_id}.{option}"] if option else []
    parameters = configure([evaluator_id], options)[0].parameters
    (found,) = evaluator.evaluate([CaseView(case, models())], parameters)
    return {key: score.value for key, score in found.scores.items()}


@pytest.mark.parametrize(
    ("expected", "actual", "f1", "same"),
    [
        ("the Seine", "Seine.", 1.0, True),
        ("Denver Broncos", "The Broncos of Denver won", 2 * 0.5 * 1 / 1.5, False),
        ("Paris", "Lyon", 0.0, False),
        ("", "", 1.0, True),
        ("", "x", 0.0, False),
        ("\u6771\u4eac", "\u6771\u4eac\u90fd", 2 * (2 / 3) / (5 / 3), False),
    ],
)
def test_words_are_compared_as_squad_does(
    expected: str, actual: str, f1: float, same: bool
) -> None:
    """Without case, punctuation and articles; Japanese sign by sign."""
    assert token_f1(expected, actual) == pytest.approx(f1)
    assert exact_match(expected, actual) is same


def test_an_answer_may_contain_the_expected_one() -> None:
    """In a row, and whole words only."""
    assert contains("Jane Austen", "It was Jane Austen's novel, by Jane Austen.")
    assert not contains("art", "A cart")


@pytest.mark.parametrize(
    ("answer", "found"),
    [("4,000 seats", 1.0), ("four thousand", 1.0), ("4,500 seats", 0.0), ("many", 0.0)],
)
def test_values_are_compared_however_they_are_written(answer: str, found: float) -> None:
    """All values of the expected answer."""
    assert values("answer_strings", answer, "4000")["value_match"] == found


def test_without_a_value_there_is_no_value_match() -> None:
    """Which is no 0."""
    assert values("answer_strings", "5", "Paris")["value_match"] is None


def test_the_best_of_several_right_answers_counts() -> None:
    """Metric by metric, and for every evaluator that compares with the expected answer."""
    found = values("answer_strings", "The United States", "USA", "United States")
    assert found["exact_match"] == found["token_f1"] == 1.0
    for name in ("rouge", "bleu", "answer_semantic_similarity", "bertscore", "answer_correctness"):
        one = values(name, "red wine from France", "white beer", "red wine from France")
        assert next(iter(one.values())) == pytest.approx(1.0), name
    assert values("summarization_judge", "6", "5", "6")["model_passes"] == 1.0


def test_similarity_and_correctness_can_be_verdicts() -> None:
    """Ragas' `threshold` and `weights`."""
    for name, metric in (
        ("answer_semantic_similarity", "answer_similarity"),
        ("answer_correctness", "answer_correctness"),
    ):
        assert values(name, "red wine", "red wine", option="threshold=0.9")[metric] == 1.0
        assert values(name, "red wine", "blue cheese", option="threshold=0.9")[metric] == 0.0
    only_claims = values("answer_correctness", "5", "6", option="weights=[1, 0]")
    assert only_claims["answer_correctness"] == 0.0


@pytest.mark.parametrize("name", ["rouge", "bleu"])
@pytest.mark.parametrize(
    "text",
    [
        "\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd\u3067\u3059\u3002",
        "\u041c\u043e\u0441\u043a\u0432\u0430 \u044d\u0442\u043e "
        "\u0441\u0442\u043e\u043b\u0438\u0446\u0430 \u0420\u043e\u0441\u0441\u0438\u0438",
        "\uc11c\uc6b8\uc740 \ub300\ud55c\ubbfc\uad6d\uc758 \uc218\ub3c4 \uc785\ub2c8\ub2e4",
    ],
)
def test_identical_texts_in_any_script_are_no_silent_zero(name: str, text: str) -> None:
    """The reference implementation of ROUGE finds no word in them."""
    assert set(values(name, text, text).values()) == {1.0}


def test_a_reference_without_words_has_no_rouge() -> None:
    """Nothing to share is not the same as nothing shared."""
    assert values("rouge", "x", "\U0001f937")["rouge_l"] is None
