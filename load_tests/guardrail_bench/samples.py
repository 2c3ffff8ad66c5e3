"""The load: three kinds of answers over passages that were never seen before, or were.

Imports nothing outside the standard library and `text`, so that locust can use it, too.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from guardrail_service.errors import InputError
from guardrail_service.resources import shipped
from guardrail_service.text.segmentation.sentences import split_sentences

Passages = Literal["cold", "warm"]
SHELF = 40
"""Passages that `warm` samples are retrieved from: a reader's topic, not a whole corpus."""
VERBATIM = 0.25
"""Share of answer sentences copied from a passage. The rest are reworded, because a service may
settle copies without a model, and an answer of copies alone would flatter it."""
_LEAST_WORDS = 8
"""Sentences shorter than this cannot be cut into two clauses worth the name."""

_OTHER_LANGUAGES = frozenset(
    {"non_english", "translated", "translation_requested", "language_switch"}
)
"""Kinds of labelled answers whose texts the embedded model does not read."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of answer; lengths in words."""

    name: str
    title: str
    answer_words: int
    passages: int
    passage_words: int


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("chat", "short chat answer", 40, 2, 90),
        Scenario("rag", "typical RAG", 120, 5, 180),
        Scenario("report", "long report", 800, 20, 180),
    )
}


class SampleTexts:
    """Sentences of our own to build samples from.

    Args:
        sentences: At least two of eight words or more.
        questions: At least one.

    Raises:
        InputError: If there are fewer.
    """

    def __init__(self, sentences: Iterable[str], questions: Iterable[str]) -> None:
        known = sorted(set(sentences))
        long = [text for text in known if len(text.split()) >= _LEAST_WORDS]
        self.questions = sorted(set(questions))
        if len(long) < 2 or not self.questions:
            raise InputError(
                f"found {len(long)} sentences of {_LEAST_WORDS} words and {len(self.questions)} "
                "questions; expected two and one"
            )
        self._heads = sorted({_halves(text)[0] for text in long})
        self._tails = sorted({_halves(text)[1] for text in long})
        self.sentences = known
        self._step = _far_step(self.combinations)

    @property
    def combinations(self) -> int:
        """Return how many sentences a head and a tail can make."""
        return len(self._heads) * len(self._tails)

    def fresh(self, number: int) -> str:
        """Return a sentence that no other number gives: the head of one, the tail of another."""
        again, place = divmod(number, self.combinations)
        head, tail = divmod(place * self._step % self.combinations, len(self._tails))
        lead = f"In edition {again + 1}, " if again else ""
        return f"{lead}{self._heads[head]} {self._tails[tail]}"

    def reworded(self, sentence: str, rng: random.Random) -> str:
        """Return a passage's sentence with another ending."""
        return f"{_halves(sentence)[0]} {rng.choice(self._tails)}"


def _far_step(count: int) -> int:
    """Return a step that visits each of `count` places once, neighbours far apart."""
    return next(k for k in range(int(count * 0.618), count + 2) if math.gcd(k, count) == 1)


def _halves(text: str) -> tuple[str, str]:
    words = text.split()
    half = len(words) // 2
    return " ".join(words[:half]), " ".join(words[half:])


def default_texts_file() -> Path:
    """Return the project's own labelled answers, which a checkout has and a wheel does not."""
    return shipped("thresholds", "models/thresholds") / "answers.jsonl"


def read_texts(path: Path) -> SampleTexts:
    """Return the sentences and questions of labelled answers.

    Args:
        path: JSON lines with `contexts` (a list of texts) and `question`.

    Raises:
        InputError: If the file cannot be read or a line is not such a record.
    """
    try:
        with path.open(encoding="utf-8") as stream:
            lines = stream.readlines()  # splitlines also divides at U+2028, which JSON may hold
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}; expected JSON lines with contexts and question. Only a "
            "checkout has the default file"
        ) from error
    passages: dict[str, None] = {}
    questions: dict[str, None] = {}
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if record.get("kind") not in _OTHER_LANGUAGES:
                passages |= dict.fromkeys(record["contexts"])
                questions[record["question"]] = None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path.name}:{number}: expected an object with contexts and question"
            ) from error
    found = (sentence.text for text in passages for sentence in split_sentences(text))
    return SampleTexts((" ".join(text.split()) for text in found), questions)


class SampleSource:
    """Samples by number: the same number gives the same sample in every process.

    Args:
        texts: What samples are made of.
        scenario: How long they are.
        passages: `cold`: no passage sentence occurs in two samples. `warm`: passages come from one
            shelf, which `shelf` lists, so that a service can have met them.
        seed: Another seed gives other samples.
    """

    def __init__(
        self, texts: SampleTexts, scenario: Scenario, passages: Passages, seed: int
    ) -> None:
        self.scenario = scenario
        self.passages: Passages = passages
        self._texts = texts
        self._seed = seed
        self._shelf = [self._passage(n) for n in range(SHELF)] if passages == "warm" else []

    def sample(self, number: int, variant: int = 0) -> dict[str, Any]:
        """Return the body of one `/v1/check` request.

        Args:
            number: Which sample.
            variant: Others have a cold sample's passages and another question and answer.
        """
        key = f"{self._seed}/{self.scenario.name}/{number}/{variant}"
        rng = random.Random(key)  # noqa: S311 - no secret
        chosen = self._retrieved(number, rng)
        answer = self._answer([sentence for passage in chosen for sentence in passage], rng)
        return {
            "question": rng.choice(self._texts.questions),
            "answer": answer,
            "contexts": [" ".join(passage) for passage in chosen],
        }

    def shelf(self) -> list[dict[str, Any]]:
        """Return requests that between them show a service every warm passage; none if cold."""
        size = self.scenario.passages
        groups = [self._shelf[i : i + size] for i in range(0, len(self._shelf), size)]
        return [
            {
                "question": self._texts.questions[0],
                "answer": group[0][0],
                "contexts": [" ".join(passage) for passage in group],
            }
            for group in groups
        ]

    def _retrieved(self, number: int, rng: random.Random) -> Sequence[list[str]]:
        if self.passages == "warm":
            return rng.sample(self._shelf, self.scenario.passages)
        first = number * self.scenario.passages
        return [self._passage(first + n) for n in range(self.scenario.passages)]

    def _passage(self, number: int) -> list[str]:
        """Return the sentences of one passage; no other number shares one of them."""
        most = self.scenario.passage_words // 4 + 1
        first = self._seed % 1000 + number * most
        found: list[str] = []
        while _words(found) < self.scenario.passage_words:
            found.append(self._texts.fresh(first + len(found)))
        return found

    def _answer(self, evidence: Sequence[str], rng: random.Random) -> str:
        found: list[str] = []
        while _words(found) < self.scenario.answer_words:
            sentence = rng.choice(evidence)
            copied = rng.random() < VERBATIM
            found.append(sentence if copied else self._texts.reworded(sentence, rng))
        return " ".join(found)


def _words(sentences: Iterable[str]) -> int:
    return sum(len(sentence.split()) for sentence in sentences)
