"""BLEU as nltk's sentence_bleu computes it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from guardrail_offline.evaluators.bleu import ORDERS, bleu, brevity_penalty

PAIRS = json.loads(
    (Path(__file__).parents[3] / "golden" / "evaluators" / "overlap.json").read_text("utf-8")
)["pairs"]
REFERENCE = ["Brazil", "revenue", "was", "15,969", "million", "."]


def alone(order: int) -> list[float]:
    """Return the weights that look at one order only."""
    return [float(order == n) for n in ORDERS]


@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_each_order_equals_the_reference(pair: dict[str, object]) -> None:
    """nltk reports numbers below 1e-300 where nothing is shared; here that is 0."""
    expected, actual = str(pair["expected"]).split(), str(pair["actual"]).split()
    found = [bleu([expected], actual, alone(order)) for order in ORDERS]
    assert found == pytest.approx(pair["bleu_by_order"], rel=1e-9, abs=1e-300)


def test_one_order_alone_is_its_precision_where_nothing_is_short() -> None:
    """.75, .428571, .333333, .2 with H2O's weights. Known answer 37."""
    actual = ["The", "revenue", "of", "Brazil", "was", "15,969", "million", "."]
    found = [bleu([REFERENCE], actual, alone(order)) for order in ORDERS]
    assert found == pytest.approx([0.75, 3 / 7, 1 / 3, 0.2], rel=1e-9)


def test_a_short_answer_pays_the_brevity_penalty() -> None:
    """e^(1 - 6/4) = .606531. Known answer 38."""
    found = bleu([REFERENCE], ["Brazil", "revenue", "was", "15,969"], alone(1))
    assert found == pytest.approx(math.exp(-0.5), rel=1e-9)


def test_several_references_and_all_orders() -> None:
    """The example of the 2002 paper that nltk's documentation repeats: 0.5046. Known answer 36."""
    references = [
        "It is a guide to action that ensures that the military will forever heed Party commands",
        "It is the guiding principle which guarantees the military forces always being under the "
        "command of the Party",
        "It is the practical guide for the army always to heed the directions of the party",
    ]
    actual = (
        "It is a guide to action which ensures that the military always obeys the commands of "
        "the party"
    )
    found = bleu([text.split() for text in references], actual.split(), [0.25] * 4)
    assert found == pytest.approx(0.5045666840058485, rel=1e-9)


def test_no_words_give_zero() -> None:
    """An empty answer is as short as can be."""
    assert bleu([REFERENCE], [], alone(1)) == 0.0
    assert brevity_penalty(3, 0) == 0.0
