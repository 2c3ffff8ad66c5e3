"""Citations: read from square brackets, scored by passage and by part."""

from __future__ import annotations

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.citations import citation_scores, cited
from guardrail_offline.evaluators.result import Result
from guardrail_service.types import Passage
from tests.unit.offline.stand_ins import models

EVALUATOR = CATALOGUE["citations"]
PASSAGES = (Passage("Parking costs five euros."), Passage("The pool opens at seven.", "doc-7#3"))


def test_the_scores_of_three_parts_and_two_passages() -> None:
    """Part 1 cites c1 (full) and c2 (none), part 2 cites c1 (partial), part 3 nothing.

    Known answer 27.
    """
    found = citation_scores([[("c1", 1.0), ("c2", 0.0)], [("c1", 0.5)], []])
    assert found == pytest.approx((0.375, 1 / 3, 0.352941), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("It costs five euros [1].", ["1"]),
        ("So it is [1, 3][2].", ["1", "3", "2"]),
        ("See [doc-7#3]; again [doc-7#3].", ["doc-7#3"]),
        ("No citation (1).", []),
        ("It is so [sic], he said [Emphasis added] in [2019].", []),
        ("As [a note, 2] says.", ["2"]),
    ],
)
def test_citations_are_names_in_square_brackets(text: str, names: list[str]) -> None:
    """Numbers from 1 or the passages' own ids."""
    assert cited(text) == names


def judge(answer: str, **parameters: str) -> Result:
    """Return the result for an answer to two passages."""
    view = CaseView(Case("1", "?", answer, contexts=PASSAGES), models())
    return EVALUATOR.evaluate([view], EVALUATOR.parameters(**parameters))[0]


def test_a_passage_is_cited_by_number_or_by_id() -> None:
    """Both lead to the text."""
    found = judge("Parking costs five euros [1]. The pool opens at seven [doc-7#3].")
    assert found.scores["citation_f1"].value == 1.0


def test_a_citation_of_a_passage_that_does_not_exist_is_unsupported() -> None:
    """Unless the caller wants it ignored, as Open RAG Eval does."""
    answer = "Parking costs five euros [1][9]."
    assert judge(answer).scores["citation_precision"].value == 0.5
    assert judge(answer, dangling="ignored").scores["citation_precision"].value == 1.0


def test_an_answer_without_any_citation_is_not_applicable() -> None:
    """It was not asked to cite."""
    assert judge("Parking costs five euros.").scores["citation_f1"].reason == "no_citation"
