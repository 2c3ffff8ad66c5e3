"""Perturbations of whole words: commas, swapped neighbours, synonyms, opposites."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

Relation = Literal["synonyms", "antonyms"]
_EDGES = ".,;:!?\"'()[]"


def with_commas(text: str, share: float, rng: random.Random) -> str:
    """Return the text with a comma behind a share of its words that have no mark there."""
    words = text.split(" ")
    places = [i for i, word in enumerate(words[:-1]) if word and word[-1].isalnum()]
    for place in _chosen(places, share, rng):
        words[place] += ","
    return " ".join(words)


def with_swaps(text: str, share: float, rng: random.Random) -> str:
    """Return the text with a share of its words exchanged with the word behind them.

    No word moves twice; a pair of equal words is no swap.
    """
    words = text.split(" ")
    places = [i for i in range(len(words) - 1) if words[i] != words[i + 1]]
    moved: set[int] = set()
    count = max(1, round(share * len(words) / 2))
    for place in rng.sample(places, len(places)):
        if len(moved) >= 2 * count:
            break
        if not {place, place + 1} & moved:
            words[place], words[place + 1] = words[place + 1], words[place]
            moved |= {place, place + 1}
    return " ".join(words)


def with_related(text: str, share: float, rng: random.Random, relation: Relation) -> str:
    """Return the text with a share of its known words replaced by a synonym or an opposite.

    The shipped lexicon knows everyday English words; others stay.
    """
    known = lexicon()[relation]
    words = text.split(" ")
    places = [i for i, word in enumerate(words) if word.strip(_EDGES).lower() in known]
    for place in _chosen(places, share, rng):
        words[place] = _swapped(words[place], known, rng)
    return " ".join(words)


@cache
def lexicon() -> Mapping[Relation, Mapping[str, Sequence[str]]]:
    """Return the shipped synonyms and opposites."""
    text = files(__package__).joinpath("lexicon.json").read_text("utf-8")
    content: Mapping[Relation, Mapping[str, Sequence[str]]] = json.loads(text)
    return content


def _swapped(word: str, known: Mapping[str, Sequence[str]], rng: random.Random) -> str:
    bare = word.strip(_EDGES)
    new = rng.choice(known[bare.lower()])
    new = new.capitalize() if bare[:1].isupper() else new
    at = word.index(bare)
    return word[:at] + new + word[at + len(bare) :]


def _chosen(places: Sequence[int], share: float, rng: random.Random) -> list[int]:
    if not places:
        return []
    count = min(len(places), max(1, round(share * len(places))))
    return sorted(rng.sample(list(places), count))
