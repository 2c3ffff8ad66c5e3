"""BLEU: how many runs of n words of an answer are in the expected one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import (
    Evaluator,
    EvaluatorSpec,
    NoParameters,
    evaluator,
)
from guardrail_offline.evaluators.shared.answer_words import has_signs, words
from guardrail_service.types import MetricSpec

ORDERS = (1, 2, 3, 4)


def bleu(
    references: Sequence[Sequence[str]], actual: Sequence[str], weights: Sequence[float]
) -> float:
    """Return BLEU of words against one reference or more, in [0, 1].

    The geometric mean, by weight, of the clipped precisions for runs of 1, 2, ... words, times a
    penalty for answers shorter than the reference of the nearest length. A precision of 0 with any
    weight gives 0; there is no smoothing.

    Args:
        references: Words of each reference.
        actual: Words to judge.
        weights: One per order, from single words upwards; together 1.

    Source:
        K. Papineni et al., "BLEU: a method for automatic evaluation of machine translation", 2002.
    """
    total = 0.0
    for order, weight in enumerate(weights, start=1):
        if not weight:
            continue
        share = precision(references, actual, order)
        if not share:
            return 0.0
        total += weight * math.log(share)
    nearest = min(map(len, references), key=lambda size: (abs(size - len(actual)), size))
    return brevity_penalty(nearest, len(actual)) * math.exp(total)


def precision(references: Sequence[Sequence[str]], actual: Sequence[str], order: int) -> float:
    """Return the share of runs of `order` words that a reference has at least as often."""
    hypothesis = _runs(actual, order)
    allowed: Counter[tuple[str, ...]] = Counter()
    for reference in references:
        allowed |= _runs(reference, order)
    count = hypothesis.total()
    return (hypothesis & allowed).total() / count if count else 0.0


def brevity_penalty(expected: int, actual: int) -> float:
    """Return 1 for an answer at least as long as expected, less for a shorter one, 0 for none."""
    if actual >= expected:
        return 1.0
    return math.exp(1 - expected / actual) if actual else 0.0


def _runs(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + order]) for i in range(len(words) - order + 1))


@evaluator
class Bleu(Evaluator[NoParameters]):
    """Each order alone: `bleu_3` looks at runs of three words only, as H2O's weights do.

    Words are what whitespace separates, and each sign of a script without blanks.
    """

    spec = EvaluatorSpec(
        id="bleu",
        name="BLEU",
        summary="How many runs of one to four words are in the expected answer?",
        metrics=tuple(MetricSpec(f"bleu_{order}", threshold=0.75) for order in ORDERS),
        inputs=frozenset({"expected", "answer"}),
        run_class="D",
        h2o_id="h2o_sonar.evaluators.bleu_evaluator.BleuEvaluator",
        original="D",
        scores="0.2.0",
        tags=("ngram", "nist:valid-reliable", "sr11-7:outcomes-analysis"),
    )
    parameters = NoParameters

    def judge(self, view: CaseView, parameters: NoParameters) -> Mapping[str, float]:
        """Return BLEU for each order by itself, against all right answers together."""
        answer, known = view.answer, view.right_answers
        cut = words if any(map(has_signs, (answer, *known))) else str.split
        expected, actual = [list(cut(text)) for text in known], list(cut(answer))
        return {
            f"bleu_{order}": bleu(expected, actual, [float(order == n) for n in ORDERS])
            for order in ORDERS
        }
