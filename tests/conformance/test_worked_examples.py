"""The worked examples of Ragas' introduction as texts: what the suite says, and what is given here.

With the embedded pack: an evaluator is tested, and no formula with verdicts put in. Where the two
numbers differ, a sentence is one claim here that a judge takes apart; the evaluator's grade says
how far it is to be trusted.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest

import guardrail_offline.evaluators  # noqa: F401 - importing registers the evaluators
from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.grades import UNKNOWN, grade_of
from guardrail_offline.evaluators.pack_models import PackModels, load_models
from guardrail_offline.runs.worker import score
from guardrail_service.types import Passage

EINSTEIN = (
    "Albert Einstein (born 14 March 1879) was a German-born theoretical physicist, widely held to "
    "be one of the greatest and most influential scientists of all time."
)
WINE = (
    "The country is also known for its wines and its cuisine. Cave drawings, Roman theatres and a "
    "vast palace attest to its history."
)
FRANCE = (
    "France, in Western Europe, encompasses medieval cities and beaches. The country is also "
    "renowned for its wines. Lyon's Roman theatre attests to its history."
)
PARIS = (
    "France, in Western Europe, encompasses medieval cities, alpine villages and beaches. Paris, "
    "its capital, is famed for its fashion houses, its museums and the Eiffel Tower."
)
CAPITAL = "France is in Western Europe and its capital is Paris."
TAJ_MAHAL = (
    "The Taj Mahal is a marble mausoleum on the bank of the river Yamuna in the Indian city of "
    "Agra. It was commissioned in 1631 by the Mughal emperor Shah Jahan to house the tomb of his "
    "wife Mumtaz Mahal."
)
BUILT = (
    "The Taj Mahal is a symbol of love and a marvel of building in Agra, India. The Mughal emperor "
    "Shah Jahan built it in memory of his wife, Mumtaz Mahal."
)
LISTED = (
    "The Taj Mahal is a landmark of India. It is on UNESCO's list, draws millions of visitors, and "
    "its white marble and gardens are admired."
)
LIC = (
    "The Life Insurance Corporation of India (LIC) was established in 1956 following the "
    "nationalization of the insurance industry in India.",
    "LIC is the largest insurance company in India, with a vast network of policyholders and a "
    "significant role in the financial sector.",
    "As the largest institutional investor in India, LIC manages a substantial funds, contributing "
    "to the financial stability of the country.",
)
LIC_EXPECTED = (
    "The Life Insurance Corporation of India (LIC) is the largest insurance company in India, "
    "established in 1956 through the nationalization of the insurance industry. It is known "
    "for managing a large portfolio of investments."
)
LIC_ANSWER = (
    "The Life Insurance Corporation of India (LIC) is the largest insurance company in India, "
    "known for its vast portfolio of investments. LIC contributes to the financial stability "
    "of the country."
)
BORN, PLACE = "Where and when was Einstein born?", "Where is France and what is its capital?"


class Example(NamedTuple):
    """A worked example: what is asked of which evaluator, the suite's number, and ours."""

    name: str
    evaluator: str
    question: str
    answer: str
    expected: str | None
    passages: tuple[str, ...]
    suite: float
    ours: float
    metric: str = ""


EXAMPLES = [
    Example("a wrong birthday, two sentences", "faithfulness", BORN,
            "Einstein was born in Germany. Einstein was born on 20th March 1879.", None,
            (EINSTEIN,), 0.5, 0.5),
    Example("a wrong birthday, one sentence", "faithfulness", BORN,
            "Einstein was born in Germany on 20th March 1879.", None, (EINSTEIN,), 0.5, 0.0),
    Example("the right birthday", "faithfulness", BORN,
            "Einstein was born in Germany on 14th March 1879.", None, (EINSTEIN,), 1.0, 1.0),
    Example("the relevant passage second", "context_precision", PLACE, "x", CAPITAL,
            (WINE, PARIS), 0.5, 0.5),
    Example("the relevant passage first", "context_precision", PLACE, "x", CAPITAL,
            (PARIS, WINE), 1.0, 1.0),
    Example("the passage that was used second", "context_utilization", PLACE, CAPITAL, None,
            (WINE, PARIS), 0.5, 0.5),
    Example("no capital in the passage", "context_recall", PLACE, "x",
            "France is in Western Europe. Its capital is Paris.", (FRANCE,), 0.5, 0.5),
    Example("all in the passage", "context_recall", PLACE, "x",
            "France is in Western Europe. Its capital is Paris.", (PARIS,), 1.0, 1.0),
    # Here "Indian" and "Mughal" are entities, too: 5 of 8 and 1 of 8.
    Example("most entities", "context_entities_recall", "What is it?", "x", TAJ_MAHAL, (BUILT,),
            4 / 6, 5 / 8),
    Example("few entities", "context_entities_recall", "What is it?", "x", TAJ_MAHAL, (LISTED,),
            1 / 6, 1 / 8),
    # The judge counts three claims and calls all three passages relevant; here the two sentences
    # are two, and the passage that the wrong one is from counts as irrelevant.
    Example("one of three claims is noise", "noise_sensitivity", "What is LIC known for?",
            LIC_ANSWER, LIC_EXPECTED, LIC, 1 / 3, 0.0, "noise_sensitivity_relevant"),
    Example("noise from other passages", "noise_sensitivity", "What is LIC known for?",
            LIC_ANSWER, LIC_EXPECTED, LIC, 0.0, 0.5, "noise_sensitivity_irrelevant"),
    # The suite: F1 of one right, one wrong and one missing statement, and a cosine of 0.83.
    Example("the wrong country", "answer_correctness", BORN, "Einstein was born in Spain in 1879.",
            "Einstein was born in 1879 in Germany.", (), 0.58, 0.2066),
    Example("the same in other words", "answer_correctness", BORN,
            "In 1879, Einstein was born in Germany.", "Einstein was born in 1879 in Germany.", (),
            1.0, 1.0),
]  # fmt: skip


@cache
def models() -> PackModels:
    """The pack that ships."""
    return load_models("embedded")


def value(example: Example) -> float | None:
    """Return what an evaluator gives for an example."""
    case = Case("1", example.question, example.answer, example.expected,
                tuple(map(Passage, example.passages)) or None)  # fmt: skip
    found = score([(0, case)], configure([example.evaluator]), models())[0][example.evaluator]
    return found.scores[example.metric or example.evaluator].value


@pytest.mark.parametrize("example", [pytest.param(one, id=one.name) for one in EXAMPLES])
def test_a_worked_example_has_the_number_that_is_said(example: Example) -> None:
    """That of the suite, or another one of an evaluator that says it is a surrogate."""
    assert value(example) == pytest.approx(example.ours, abs=5e-4)
    if example.suite != pytest.approx(example.ours, abs=0.05):
        spec = CATALOGUE[example.evaluator].spec
        assert spec.surrogate
        assert grade_of(spec)["grade"] != UNKNOWN or grade_of(spec)["reason"]


def test_the_better_answers_of_the_examples_are_better() -> None:
    """A complete answer is more to the point, the same sentence is more alike."""
    relativity = "theory of relativity revolutionised our understanding of the universe."
    pairs = [
        ("answer_relevancy", "France is in Western Europe.",
         "France is in Western Europe and Paris is its capital.", None),
        ("answer_semantic_similarity", "Isaac Newton's laws of motion greatly influenced physics.",
         f"Einstein's {relativity}", f"Albert Einstein's {relativity}"),
    ]  # fmt: skip
    for evaluator, low, high, expected in pairs:
        metric = CATALOGUE[evaluator].spec.primary.key
        worse, better = (
            value(Example("", evaluator, PLACE, answer, expected, (), 0, 0, metric))
            for answer in (low, high)
        )
        assert worse is not None
        assert better is not None
        assert worse < better
