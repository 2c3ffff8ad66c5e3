"""Passages that contradict themselves: behind a true sentence one that says something else."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from guardrail_offline.datasets.cases import Case
from guardrail_offline.perturbation.lexicon import Lexicon
from guardrail_service.text.segmentation.sentences import split_sentences
from guardrail_service.types import Passage

_EDGES = ".,;:!?\"'()[]"
_AUXILIARIES = frozenset(
    [
        "is",
        "are",
        "was",
        "were",
        "can",
        "may",
        "must",
        "should",
        "shall",
        "will",
        "has",
        "have",
        "had",
    ]
)
_LATEST_DAY = 31
_YEARS = range(1000, 2200)


class Contradiction(NamedTuple):
    """A sentence that was put into a passage.

    Attributes:
        passage: Its place, from 0.
        sentence: The true sentence.
        inserted: The sentence behind it that contradicts it.
        before: The words of the true sentence that were changed; empty where one was added.
        after: What stands there instead; empty where a word was left out.
    """

    passage: int
    sentence: str
    inserted: str
    before: str
    after: str


def contradicted(
    case: Case, count: int, rng: random.Random, words: Lexicon
) -> tuple[Case, list[Contradiction]]:
    """Return the case with contradicted passages, and what was put in.

    The sentences that say most of the expected answer, or of the question where there is none, come
    first. A number is changed if there is one, else a word becomes its opposite, else the sentence
    is denied.

    Args:
        case: With passages; without any nothing can be contradicted.
        count: Sentences to contradict at most.
        rng: Draws numbers and opposites.
        words: Knows opposites.
    """
    passages = list(case.contexts or ())
    wanted = set(_content(case.expected or case.question))
    found = []
    for place, sentence in sorted(_sentences(passages), key=lambda at: -_shared(at[1], wanted)):
        changed = _contrary(sentence, wanted, rng, words)
        if changed is None:
            continue
        before, after, text = changed
        passage = passages[place]
        end = passage.text.index(sentence) + len(sentence)
        content = f"{passage.text[:end]} {text}{passage.text[end:]}"
        passages[place] = Passage(content, passage.id)
        found.append(Contradiction(place, sentence, text, before, after))
        if len(found) == count:
            break
    return replace(case, contexts=tuple(passages) if case.contexts else case.contexts), found


def _sentences(passages: Sequence[Passage]) -> Iterator[tuple[int, str]]:
    """Yield the sentences of prose with the places of their passages."""
    for place, passage in enumerate(passages):
        for sentence in split_sentences(passage.text):
            text = sentence.text.strip()
            if text.endswith((".", "!")) and len(text.split()) > 2:
                yield place, text


def _content(text: str) -> list[str]:
    bare = (word.strip(_EDGES).lower() for word in text.split())
    return [word for word in bare if len(word) > 3 or any(map(str.isdigit, word))]


def _shared(sentence: str, wanted: set[str]) -> float:
    """Return how much of what is wanted a sentence says; a number counts as three words."""
    shared = wanted.intersection(_content(sentence))
    return sum(3.0 if any(map(str.isdigit, word)) else 1.0 for word in shared)


def _contrary(
    sentence: str, wanted: set[str], rng: random.Random, words: Lexicon
) -> tuple[str, str, str] | None:
    """Return what was changed, into what, and the sentence; None if nothing can be changed."""
    parts = sentence.split(" ")
    numbers = [i for i, part in enumerate(parts) if _is_number(part.strip(_EDGES))]
    opposites = [i for i, p in enumerate(parts) if words.others(_lower(p), "antonyms")]
    for places, change in ((numbers, other_number), (opposites, None)):
        if not places:
            continue
        first = [i for i in places if _lower(parts[i]) in wanted]
        place = rng.choice(first or places)
        bare = parts[place].strip(_EDGES)
        new = change(bare, rng) if change else rng.choice(words.others(_lower(bare), "antonyms"))
        new = new.capitalize() if bare[:1].isupper() else new
        return bare, new, _joined(parts, place, parts[place].replace(bare, new, 1))
    return _denied(parts)


def _denied(parts: Sequence[str]) -> tuple[str, str, str] | None:
    for place, part in enumerate(parts):
        if part.lower() == "not":
            return part, "", " ".join([*parts[:place], *parts[place + 1 :]])
        if part.lower() in _AUXILIARIES and parts[place + 1 : place + 2] != ["not"]:
            return "", "not", _joined(parts, place, f"{part} not")
    return None


def _joined(parts: Sequence[str], place: int, new: str) -> str:
    return " ".join([*parts[:place], new, *parts[place + 1 :]])


def _lower(word: str) -> str:
    return word.strip(_EDGES).lower()


def _is_number(word: str) -> bool:
    return word[:1].isdigit() and all(c.isdigit() or c in ".,:%" for c in word)


def other_number(word: str, rng: random.Random) -> str:
    """Return a number of the same shape with another first part: hours, thousands, the whole."""
    digits = len(word) - len(word.lstrip("0123456789"))
    value, rest = int(word[:digits]), word[digits:]
    if rest.startswith(":"):
        return f"{(value + rng.choice((2, 3, 5))) % 24:0{digits}d}{rest}"
    if value in _YEARS and not rest:
        return str(value - rng.randint(3, 19))
    if value <= _LATEST_DAY:
        step = rng.choice((2, 3, 5))
        return f"{value + step if value + step <= _LATEST_DAY else value - step}{rest}"
    return f"{rng.choice((value // 2, value * 2))}{rest}"
