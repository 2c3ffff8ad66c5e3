"""Compares answers with the expected ones without a model: words, letters and values."""

from __future__ import annotations

from collections import Counter

from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import (
    Evaluator,
    EvaluatorSpec,
    NoParameters,
    evaluator,
)
from guardrail_offline.evaluators.result import Result, Score
from guardrail_offline.evaluators.shared.answer_match import has_values
from guardrail_offline.evaluators.shared.answer_words import squad_words, words
from guardrail_offline.evaluators.shared.string_similarity import (
    chrf,
    edit_similarity,
    jaro_similarity,
)
from guardrail_service.types import MetricSpec, State

BOOLEAN = ("exact_match", "value_match", "contains_expected")


def exact_match(expected: str, actual: str) -> bool:
    """Return whether two texts have the same words in the same order, as SQuAD counts them."""
    return squad_words(expected) == squad_words(actual)


def token_f1(expected: str, actual: str) -> float:
    """Return SQuAD's F1 of the words of two texts, in [0, 1]; of two without words, 1 or 0.

    Source:
        P. Rajpurkar et al., "Know what you don't know" (SQuAD 2.0), 2018, `compute_f1`.
    """
    reference, hypothesis = squad_words(expected), squad_words(actual)
    if not reference or not hypothesis:
        return float(reference == hypothesis)
    shared = (Counter(reference) & Counter(hypothesis)).total()
    if not shared:
        return 0.0
    precision, recall = shared / len(hypothesis), shared / len(reference)
    return 2 * precision * recall / (precision + recall)


def contains(expected: str, actual: str) -> bool:
    """Return whether the words of one text stand in another in a row; case does not matter."""
    wanted, given = words(expected), words(actual)
    size = len(wanted)
    return bool(size) and any(
        given[at : at + size] == wanted for at in range(len(given) - size + 1)
    )


def string_scores(expected: str, actual: str) -> dict[str, float | None]:
    """Return every metric of one pair; `value_match` is None where nothing has a value."""
    matches = has_values(expected, actual)
    return {
        "token_f1": token_f1(expected, actual),
        "exact_match": float(exact_match(expected, actual)),
        "value_match": None if matches is None else float(matches),
        "contains_expected": float(contains(expected, actual)),
        "edit_similarity": edit_similarity(expected.strip(), actual.strip()),
        "jaro_similarity": jaro_similarity(expected.strip(), actual.strip()),
        "chrf": chrf(expected, actual),
    }


@evaluator
class AnswerStrings(Evaluator[NoParameters]):
    """Of several right answers the best value counts, metric by metric, as in SQuAD."""

    spec = EvaluatorSpec(
        id="answer_strings",
        name="Answer strings",
        summary="Is the answer the expected one, word by word, letter by letter, or in its values?",
        metrics=(
            MetricSpec("token_f1"),
            *(MetricSpec(key, boolean=True) for key in BOOLEAN),
            MetricSpec("edit_similarity"),
            MetricSpec("jaro_similarity"),
            MetricSpec("chrf"),
        ),
        inputs=frozenset({"expected", "answer"}),
        run_class="D",
        also=(
            "ragas:exact_match",
            "ragas:string_presence",
            "ragas:non_llm_string_similarity",
            "ragas:chrf_score",
        ),
        original="D",
        tags=("rule-based", "ngram", "nist:valid-reliable", "sr11-7:outcomes-analysis"),
    )
    parameters = NoParameters

    def judge(self, view: CaseView, parameters: NoParameters) -> Result:
        """Return all of them."""
        answer = view.answer
        found = [string_scores(expected, answer) for expected in view.right_answers]
        return Result({key: _best([one[key] for one in found]) for key in found[0]})


def _best(values: list[float | None]) -> Score:
    numbers = [value for value in values if value is not None]
    return Score(max(numbers)) if numbers else Score.missing(State.NOT_APPLICABLE, "no_value")
