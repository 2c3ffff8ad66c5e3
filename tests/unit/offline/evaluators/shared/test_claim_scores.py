"""Known answers of the formulas over verdicts; every verdict is written here, no model runs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import Result
from guardrail_offline.evaluators.retrieval import retrieval_scores
from guardrail_offline.evaluators.shared.claim_scores import (
    average_precision,
    claim_f1,
    correctness,
    f1_of_counts,
    harmonic_mean,
    noise_sensitivity,
    precision_at,
    rag_checker,
    reciprocal_rank,
    share,
)
from guardrail_offline.runs.totals import EvaluatorTally
from guardrail_service.errors import NotScorable

YES_NO = [True, False]
VERDICTS = st.lists(st.booleans(), min_size=1, max_size=12)
UNIT = st.floats(0.001, 1)


Array = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def flags(text: str) -> Array:
    """Return verdicts written as 1 and 0."""
    return np.array([character == "1" for character in text], dtype=np.bool_)


def table(text: str) -> Array:
    """Return rows of verdicts, separated by blanks."""
    return np.array([flags(row) for row in text.split()])


@pytest.mark.parametrize("metric", ["faithfulness", "context recall"])
def test_one_of_two_claims_is_one_half(metric: str) -> None:
    """Ragas' Einstein and France examples. Known answers 1, 4."""
    assert share(YES_NO) == 0.5, metric


@pytest.mark.parametrize("metric", ["context precision", "context utilisation"])
def test_a_relevant_passage_behind_another_halves_the_precision(metric: str) -> None:
    """Verdicts 0, 1 give 0.5 whichever answer they were taken against. Known answers 2, 3."""
    assert average_precision([False, True]) == 0.5, metric


@pytest.mark.parametrize(
    ("grades", "at_3", "mean", "rank"),
    [((3, 2, 3), 1, 1, 1), ((1, 3, 0), 1 / 3, 0.5, 0.5), ((1, 1, 0), 0, 0, 0)],
)
def test_retrieval_metrics_of_three_graded_passages(
    grades: tuple[int, ...], at_3: float, mean: float, rank: float
) -> None:
    """Open RAG Eval's own test cases; relevant from grade 2. Known answers 16, 17, 18."""
    found = retrieval_scores(grades)
    values = [found[key].value for key in ("precision_at_3", "average_precision_at_3", "mrr")]
    assert values == pytest.approx([at_3, mean, rank], rel=1e-9)


def test_average_precision_of_every_second_passage() -> None:
    """(1 + 2/3 + 3/5) / 3 = .755556. Known answer 19."""
    assert average_precision(flags("10101").tolist()) == pytest.approx(34 / 45, rel=1e-9)


@pytest.mark.parametrize(("first", "value"), [(1, 1.0), (5, 0.2), (0, 0.0)])
def test_reciprocal_rank_of_the_first_relevant_passage(first: int, value: float) -> None:
    """Rank 1, rank 5, never. Known answer 11."""
    assert reciprocal_rank([index == first for index in range(1, 8)], 10) == value


def test_a_first_relevant_passage_out_of_range_counts_as_none() -> None:
    """H2O's limit of ten passages. Known answer 12."""
    eleventh = [False] * 10 + [True]
    assert reciprocal_rank(eleventh, 10) == 0.0
    assert reciprocal_rank(eleventh) == pytest.approx(1 / 11)


def test_precision_at_k_needs_k_passages() -> None:
    """Nothing is padded."""
    with pytest.raises(NotScorable):
        precision_at([True], 3)


def test_noise_sensitivity_counts_wrong_claims_from_relevant_passages() -> None:
    """Three claims, one wrong and supported by a relevant passage: 1/3. Known answer 7."""
    found = noise_sensitivity(flags("110"), table("10 10 10"), flags("10"))
    assert found == pytest.approx((1 / 3, 0.0), rel=1e-9)


def test_a_wrong_claim_found_in_both_kinds_of_passage_counts_once() -> None:
    """For the relevant one."""
    assert noise_sensitivity(flags("0"), table("11"), flags("10")) == (1.0, 0.0)


def test_answer_correctness_of_one_right_one_wrong_one_missing_claim() -> None:
    """F1 0.5, and 0.575 with similarity 0.8. Known answer 8."""
    assert f1_of_counts(1, 1, 1) == 0.5
    assert correctness(0.5, 0.8, (0.75, 0.25)) == pytest.approx(0.575, rel=1e-9)


def test_the_harmonic_mean_of_the_quickstart_prints_as_its_ragas_score() -> None:
    """0.817, 0.892 and 0.874 give 0.860. Known answer 9."""
    value = harmonic_mean([0.817, 0.892, 0.874])
    assert value == pytest.approx(0.8597883, abs=5e-8)
    assert f"{value:.3f}" == "0.860"


def test_one_zero_makes_the_harmonic_mean_zero() -> None:
    """Where the arithmetic mean would be 0.5. Known answer 10."""
    assert harmonic_mean([1.0, 0.0]) == 0.0


def checker(response: str, expected: str, correct: str, answered: str) -> dict[str, float]:
    """Return RAGChecker's metrics of verdicts written as text."""
    return rag_checker(flags(correct), flags(answered), table(response), table(expected))


FIRST = checker(
    # Four of eleven claims are in a passage. Of those two are right, as are six of the others.
    response="1000 0100 1000 0010 0000 0000 0000 0000 0000 0000 0000",
    correct="11001111110",
    # Five of 22 expected claims are in three of four passages; the answer has these and six more.
    expected="1000 1000 0100 0100 0010" + 17 * " 0000",
    answered=11 * "1" + 11 * "0",
)
SECOND = checker("10 10 10 10 10", "10 10 10 11", "11110", "1110")
"""Own verdicts that have all metrics of RAGChecker's two published examples."""


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            FIRST,
            {
                "precision": 0.727273,
                "recall": 0.5,
                "f1": 0.592593,
                "claim_recall": 0.227273,
                "context_precision": 0.75,
                "context_utilization": 1.0,
                "noise_sensitivity_in_relevant": 0.181818,
                "noise_sensitivity_in_irrelevant": 0.0,
                "hallucination": 0.090909,
                "self_knowledge": 0.545455,
                "faithfulness": 0.363636,
            },
        ),
        (
            SECOND,
            {
                "precision": 0.8,
                "recall": 0.75,
                "f1": 0.774194,
                "claim_recall": 1.0,
                "context_precision": 1.0,
                "context_utilization": 0.75,
                "noise_sensitivity_in_relevant": 0.2,
                "noise_sensitivity_in_irrelevant": 0.0,
                "hallucination": 0.0,
                "self_knowledge": 0.0,
                "faithfulness": 1.0,
            },
        ),
    ],
    ids=["record-0", "record-1"],
)
def test_rag_checker_has_all_metrics_of_its_published_examples(
    found: dict[str, float], expected: dict[str, float]
) -> None:
    """Known answers 30, 31. The verdicts are our own; the published numbers follow from them."""
    assert found == pytest.approx(expected, abs=1e-6)


def test_rag_checker_averages_are_those_of_its_readme() -> None:
    """What a leaderboard shows, in percent. Known answer 32."""
    tally = EvaluatorTally(configure(["ragchecker"])[0])
    for found in (FIRST, SECOND):
        tally.add("m", Result.of(found))
    means = {key: tally.value("m", key) for key in FIRST}
    assert {key: round((mean or 0) * 100, 1) for key, mean in means.items()} == {
        "precision": 76.4,
        "recall": 62.5,
        "f1": 68.3,
        "claim_recall": 61.4,
        "context_precision": 87.5,
        "context_utilization": 87.5,
        "noise_sensitivity_in_relevant": 19.1,
        "noise_sensitivity_in_irrelevant": 0.0,
        "hallucination": 4.5,
        "self_knowledge": 27.3,
        "faithfulness": 68.2,
    }


def test_rag_checker_tells_noise_of_irrelevant_passages_apart() -> None:
    """A wrong claim from a passage that holds nothing expected."""
    found = checker("10 01", "10", "10", "1")
    assert found["noise_sensitivity_in_irrelevant"] == 0.5
    assert found["noise_sensitivity_in_relevant"] == 0.0


def test_without_a_recalled_claim_context_utilisation_is_zero() -> None:
    """As RAGChecker has it; the passages are at fault, which claim recall shows."""
    assert checker("0", "0", "0", "0")["context_utilization"] == 0.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: share([]),
        lambda: average_precision([]),
        lambda: harmonic_mean([]),
        lambda: f1_of_counts(0, 0, 0),
        lambda: noise_sensitivity(flags(""), table("1 1")[:0], flags("1")),
    ],
)
def test_nothing_to_judge_is_no_number(call: object) -> None:
    """Peers say 0, 1 or NaN here, each differently."""
    with pytest.raises(NotScorable):
        call()  # type: ignore[operator]


@given(VERDICTS)
def test_average_precision_is_one_only_if_the_relevant_come_first(relevant: list[bool]) -> None:
    """And never more than one."""
    value = average_precision(relevant)
    assert 0.0 <= value <= 1.0
    assert (value == 1.0) == (any(relevant) and sorted(relevant, reverse=True) == relevant)


@given(st.lists(UNIT, min_size=1, max_size=6))
def test_the_harmonic_mean_lies_between_the_least_value_and_that_times_their_number(
    values: list[float],
) -> None:
    """It cannot be lifted by one good part."""
    slack = 1e-9
    assert min(values) - slack <= harmonic_mean(values) <= min(values) * len(values) + slack


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9))
def test_f1_does_not_care_which_side_the_errors_are_on(fp: int, fn: int, tp: int) -> None:
    """False positives and false negatives weigh the same."""
    assert f1_of_counts(tp, fp, fn) == f1_of_counts(tp, fn, fp)
    assert claim_f1(0.2, 0.6) == claim_f1(0.6, 0.2)
