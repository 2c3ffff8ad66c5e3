"""ROUGE-1, ROUGE-2 and ROUGE-L: how many words, pairs and ordered words two texts share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import re2

from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import (
    Evaluator,
    EvaluatorSpec,
    NoParameters,
    evaluator,
)
from guardrail_offline.evaluators.shared.answer_words import words
from guardrail_offline.evaluators.shared.stemmer import stem
from guardrail_service.text.patterns.search import encodable
from guardrail_service.types import MetricSpec, State

T = TypeVar("T")
_WORD = re2.compile(r"[a-z0-9]+")
_APART = {code: " " for code in range(128) if not chr(code).isalnum()}
"""Leaves of a plain text in small letters the words that `_WORD` finds, with blanks between."""
_STEMMED_FROM = 4
"""ROUGE's reference implementation leaves words of up to three letters as they are."""


class Overlap(NamedTuple):
    """The overlap of two texts: precision, recall and F1, each in [0, 1]."""

    precision: float
    recall: float
    f1: float


def rouge(expected: str, actual: str) -> dict[str, Overlap]:
    """Return `rouge_1`, `rouge_2` and `rouge_l` of a text against the expected one.

    Words are runs of a-z and 0-9 in lower case, stemmed. A text without words, or without pairs
    for `rouge_2`, shares nothing: 0. Digits equal those of the rouge-score package with its
    stemmer on.

    Source:
        C.-Y. Lin, "ROUGE: a package for automatic evaluation of summaries", 2004.
    """
    reference, hypothesis = rouge_words(expected), rouge_words(actual)
    return {
        "rouge_1": _shared(Counter(reference), Counter(hypothesis)),
        "rouge_2": _shared(_pairs(reference), _pairs(hypothesis)),
        "rouge_l": overlap(
            longest_common_subsequence(reference, hypothesis), len(reference), len(hypothesis)
        ),
    }


@lru_cache(maxsize=256)
def rouge_words(text: str) -> tuple[str, ...]:
    """Return a text's words as ROUGE counts them.

    The reference implementation knows a-z only. A text whose letters are mostly others has its own
    words, unstemmed; signs of scripts without blanks are a word each.
    """
    plain = encodable(text.lower())
    if _is_other_script(plain):
        return words(plain)
    found = plain.translate(_APART).split() if plain.isascii() else _WORD.findall(plain)
    return tuple(stem(word) if len(word) >= _STEMMED_FROM else word for word in found)


def _is_other_script(text: str) -> bool:
    if text.isascii():
        return False
    letters = [letter for letter in text if letter.isalpha()]
    return 2 * sum(letter <= _LAST_LATIN for letter in letters) < len(letters)


_LAST_LATIN = "\u024f"


def longest_common_subsequence(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of two word lists.

    Bit-parallel: a row of the table is one integer, so a pair costs len(right) additions.

    Source:
        H. Hyyrö, "Bit-parallel LCS-length computation revisited", 2004.
    """
    places: dict[str, int] = {}
    for index, word in enumerate(left):
        places[word] = places.get(word, 0) | 1 << index
    mask = (1 << len(left)) - 1
    row = mask
    for word in right:
        hits = row & places.get(word, 0)
        row = (row + hits | row - hits) & mask
    return len(left) - row.bit_count()


def overlap(shared: int, reference: int, hypothesis: int) -> Overlap:
    """Return precision, recall and F1 of so many shared items; nothing to share is 0."""
    precision = shared / hypothesis if hypothesis else 0.0
    recall = shared / reference if reference else 0.0
    total = precision + recall
    return Overlap(precision, recall, 2 * precision * recall / total if total else 0.0)


def _pairs(words: Sequence[str]) -> Counter[tuple[str, str]]:
    return Counter(pairwise(words))


def _shared(reference: Counter[T], hypothesis: Counter[T]) -> Overlap:
    both = sum((reference & hypothesis).values())
    return overlap(both, reference.total(), hypothesis.total())


@evaluator
class Rouge(Evaluator[NoParameters]):
    """F1 of each against the expected answer."""

    spec = EvaluatorSpec(
        id="rouge",
        name="ROUGE",
        summary="How many words, word pairs and ordered words are those of the expected answer?",
        metrics=(
            MetricSpec("rouge_l", threshold=0.75),
            MetricSpec("rouge_1", threshold=0.75),
            MetricSpec("rouge_2", threshold=0.75),
        ),
        inputs=frozenset({"expected", "answer"}),
        run_class="D",
        h2o_id="h2o_sonar.evaluators.rouge_evaluator.RougeEvaluator",
        original="D",
        scores="0.2.0",
        tags=("ngram", "nist:valid-reliable", "sr11-7:outcomes-analysis"),
    )
    parameters = NoParameters

    def judge(self, view: CaseView, parameters: NoParameters) -> Mapping[str, float]:
        """Return the three F1 values, each the best over all right answers.

        Raises:
            Unavailable: If no right answer has a word.
        """
        answer, known = view.answer, [text for text in view.right_answers if rouge_words(text)]
        if not known:
            raise Unavailable(State.NOT_APPLICABLE, "no_words")
        found = [rouge(expected, answer) for expected in known]
        return {key: max(one[key].f1 for one in found) for key in found[0]}
