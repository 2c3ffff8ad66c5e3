"""Counts which names, numbers and dates of the expected answer the passages have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

import re2

from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import (
    Evaluator,
    EvaluatorSpec,
    NoParameters,
    evaluator,
)
from guardrail_offline.evaluators.pack_models import sentences_of
from guardrail_service.errors import NotScorable
from guardrail_service.text.patterns.search import encodable
from guardrail_service.types import MetricSpec, State

_WORD = r"\p{Lu}[\p{L}\p{N}'\x{2019}-]*"
_NAME = re2.compile(rf"{_WORD}(?:\s+(?:(?:of|de|la|del|van|von|der)\s+)?{_WORD})*")
_NUMBER = re2.compile(r"[$€£]?\d+(?:[.,:/-]\d+)*(?:\s?%|\p{L}{1,3}\b)?")
_SMALL = frozenset(
    {
        "a", "an", "the", "this", "that", "these", "those", "it", "he", "she", "they", "we", "you",
        "i", "in", "on", "at", "of", "for", "to", "by", "from", "as", "if", "when", "while",
        "after", "before", "since", "because", "although", "however", "there", "here", "what",
        "who", "which", "where", "how", "why", "is", "are", "was", "were", "do", "does", "did",
        "has", "have", "be", "and", "or", "but", "not", "no", "yes", "all", "each", "every", "most",
        "some", "many", "its", "his", "her", "their", "our", "your", "my", "with", "without",
        "under", "over", "during", "between", "also", "only",
    }
)  # fmt: skip
"""Words that a capital at the start of a sentence does not make a name."""


def entity_recall(expected: AbstractSet[str], found: AbstractSet[str]) -> float:
    """Return the share of expected entities that were found.

    Both are sets. (Ragas' code counts the expected ones as a list, so that an entity named twice
    lowers its score.)

    Raises:
        NotScorable: If nothing is expected.
    """
    if not expected:
        raise NotScorable("no entity")
    return len(expected & found) / len(expected)


def entities(texts: Iterable[str]) -> frozenset[str]:
    """Return names (runs of capitalised words), numbers and dates, case-folded.

    A word that is capitalised only because it begins a sentence counts if it is no small word.
    """
    found: set[str] = set()
    for text in texts:
        for sentence in sentences_of(text):
            plain = encodable(sentence.text)
            found.update(_names(plain))
            found.update(" ".join(n.split()).casefold() for n in _NUMBER.findall(plain))
    return frozenset(found)


def _names(sentence: str) -> Iterable[str]:
    for name in _NAME.findall(sentence):
        words = name.split()
        while words and words[0].casefold() in _SMALL:
            words = words[1:]
        if words:
            yield " ".join(words).casefold()


@evaluator
class ContextEntitiesRecall(Evaluator[NoParameters]):
    """Entities of the expected answer that are in the passages / entities of it."""

    spec = EvaluatorSpec(
        id="context_entities_recall",
        name="Context entities recall",
        summary="Which share of the expected names, numbers and dates is in the passages?",
        metrics=(MetricSpec("context_entities_recall"),),
        inputs=frozenset({"expected", "contexts"}),
        run_class="D",
        also=("ragas:context_entities_recall",),
        original="J",
        surrogate="capitalised words, numbers and dates in place of a judge's entities",
        problem="retrieval",
        tags=("rule-based", "nist:valid-reliable"),
    )
    parameters = NoParameters

    def judge(self, view: CaseView, parameters: NoParameters) -> Mapping[str, float]:
        """Return the share; an entity is found if the passages have it as an entity or as text."""
        wanted = entities([view.expected])
        if not wanted:
            raise Unavailable(State.NOT_APPLICABLE, "no_entity")
        texts = [passage.text for passage in view.contexts]
        plain = "\n".join(texts).casefold()
        named = view.of_question("entities", lambda: entities(texts))
        found = named | {entity for entity in wanted if entity in plain}
        return {"context_entities_recall": entity_recall(wanted, found)}
