"""Retrieval and answers: BM25 over a small corpus, and an answer made of its sentences.

No model and no network. A real application has a language model here; the guard does not care.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import bm25s

CORPUS = Path(__file__).with_name("corpus.jsonl")
Habit = Literal["honest", "careless", "repetitive", "german"]
INVENTED = "Every guest also gets a free boat trip with the captain on Sundays."
CONTACT = "Write to anna.berg@harbour-house.example if you want to know more."
GERMAN = "Der Pool öffnet um sieben Uhr morgens und schließt um neun Uhr abends."
REPEATS = 12


class Rag:
    """Finds passages and answers from them."""

    def __init__(self, corpus: Path = CORPUS) -> None:
        lines = corpus.read_text("utf-8").splitlines()
        self._passages: list[dict[str, str]] = [json.loads(line) for line in lines]
        self._index = bm25s.BM25()
        self._index.index(_tokens([p["text"] for p in self._passages]), show_progress=False)

    def retrieve(self, question: str, count: int = 3) -> list[dict[str, str]]:
        """Return the passages nearest to a question, best first; none if no word of it occurs."""
        found, scores = self._index.retrieve(
            _tokens([question]), k=count, show_progress=False, n_threads=1
        )
        ranked = zip(found[0], scores[0], strict=True)
        return [self._passages[int(number)] for number, score in ranked if score > 0]

    def write(
        self, question: str, passages: list[dict[str, str]], habit: Habit = "honest"
    ) -> Iterator[str]:
        """Yield an answer word by word.

        Args:
            question: What was asked.
            passages: What was found.
            habit: `careless` adds what no passage says and an address that nobody asked for, and
                `repetitive` says its sentences over and over, as language models do; without them
                there would be nothing to stop here. `german` answers about the pool in a language
                that the shipped models do not read.
        """
        yield from _words(" ".join(self._sentences(question, passages, habit)))

    def _sentences(
        self, question: str, passages: list[dict[str, str]], habit: Habit
    ) -> Iterator[str]:
        if not passages:
            yield "I could not find this in the documents."
            return
        if habit == "german":
            yield GERMAN
            return
        for _ in range(REPEATS if habit == "repetitive" else 1):
            yield passages[0]["text"]
        if habit == "careless":
            yield INVENTED
            yield CONTACT


def _tokens(texts: list[str]) -> object:
    return bm25s.tokenize(texts, stopwords="en", show_progress=False)


def _words(text: str) -> Iterator[str]:
    for number, word in enumerate(text.split(" ")):
        yield word if number == 0 else f" {word}"
