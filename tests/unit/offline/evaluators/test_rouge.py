"""ROUGE's digits are those of the reference implementation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.rouge import longest_common_subsequence, rouge
from guardrail_offline.runs.totals import EvaluatorTally
from tests.unit.offline.stand_ins import models

PAIRS = json.loads(
    (Path(__file__).parents[3] / "golden" / "evaluators" / "overlap.json").read_text("utf-8")
)["pairs"]
WORDS = st.lists(st.sampled_from("abcde"), max_size=12)


@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_all_digits_equal_the_reference(pair: dict[str, object]) -> None:
    """Long answers against short ones included: own texts with the property of a known lab.

    Known answers 33, 34.
    """
    found = rouge(str(pair["expected"]), str(pair["actual"]))
    assert {key: list(value) for key, value in found.items()} == pair["rouge"]


def test_a_models_scores_are_the_means_over_its_cases() -> None:
    """Of the reference's F1, for own pairs in threes. Known answers 33, 34."""
    evaluator = CATALOGUE["rouge"]
    for start in range(0, len(PAIRS) - 2, 3):
        tally, three = EvaluatorTally(configure(["rouge"])[0]), PAIRS[start : start + 3]
        for pair in three:
            view = CaseView(Case("1", "?", pair["actual"], pair["expected"]), models())
            tally.add("m", evaluator.evaluate([view], evaluator.parameters())[0])
        for key in evaluator.spec.keys:
            mean = sum(pair["rouge"][key][2] for pair in three) / 3
            assert tally.value("m", key) == pytest.approx(mean, rel=1e-15)


def test_the_readme_pair_of_the_reference() -> None:
    """rouge-score's own example: P .75 R .6667 F .7059, .2667 and .5882. Known answer 35."""
    found = rouge(
        "The quick brown fox jumps over the lazy dog", "The quick brown dog jumps on the log."
    )
    assert found["rouge_1"] == pytest.approx((0.75, 2 / 3, 12 / 17), rel=1e-9)
    assert found["rouge_2"].f1 == pytest.approx(4 / 15, rel=1e-9)
    assert found["rouge_l"].f1 == pytest.approx(10 / 17, rel=1e-9)


@given(WORDS.filter(bool))
def test_a_text_shares_all_of_itself(words: list[str]) -> None:
    """Identity gives 1."""
    text = " ".join(words)
    assert rouge(text, text)["rouge_1"].f1 == 1.0
    assert rouge(text, text)["rouge_l"].f1 == 1.0


@pytest.mark.parametrize(("expected", "actual"), [("", "a"), ("a", ""), ("!", "?")])
def test_nothing_to_share_is_zero(expected: str, actual: str) -> None:
    """As the reference has it; the evaluator never gets an empty text."""
    assert all(value.f1 == 0 for value in rouge(expected, actual).values())


@given(WORDS, WORDS)
def test_the_longest_common_subsequence_is_that_of_the_table(
    left: list[str], right: list[str]
) -> None:
    """Against the textbook recurrence."""
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left, start=1):
        for j, b in enumerate(right, start=1):
            above = max(table[i - 1][j], table[i][j - 1])
            table[i][j] = table[i - 1][j - 1] + 1 if a == b else above
    assert longest_common_subsequence(left, right) == table[-1][-1]


def test_lone_surrogates_are_no_words_and_no_error() -> None:
    """re2 takes UTF-8 only."""
    assert rouge("\ud800 cat", "cat")["rouge_1"].f1 == 1.0
