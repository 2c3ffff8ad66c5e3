"""Systems that `guardrail ask` can ask: the smallest there are.

    guardrail ask lab.json --target python:answer:first_sentence --out asked.json

A system that takes the passages of the lab has two arguments; one that searches by itself has one
and returns {"answer": ..., "contexts": [...]}.
"""

from __future__ import annotations

from collections.abc import Sequence


def first_sentence(question: str, contexts: Sequence[str] | None) -> str:
    """Return the sentence of the passages that has most of the question's words."""
    asked = set(question.lower().rstrip("?").split())
    sentences = [part for text in contexts or () for part in text.split(". ")]
    if not sentences:
        return "I do not know."
    best = max(sentences, key=lambda sentence: len(asked.intersection(sentence.lower().split())))
    return best.rstrip(".") + "."
