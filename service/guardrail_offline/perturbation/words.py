"""Perturbations of whole words: commas, swapped neighbours, synonyms, opposites."""

from __future__ import annotations

import random
from collections.abc import Sequence

from guardrail_offline.perturbation.lexicon import Lexicon
from guardrail_offline.perturbation.wordnet import Relation

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


def with_related(
    text: str, share: float, rng: random.Random, relation: Relation, words: Lexicon
) -> str:
    """Return the text with a share of its known words replaced by a synonym or an opposite.

    A lexicon knows English words only; others stay.
    """
    parts = text.split(" ")
    known = {i: words.others(part.strip(_EDGES).lower(), relation) for i, part in enumerate(parts)}
    places = [i for i, others in known.items() if others]
    for place in _chosen(places, share, rng):
        parts[place] = _swapped(parts[place], rng.choice(known[place]))
    return " ".join(parts)


def _swapped(word: str, new: str) -> str:
    bare = word.strip(_EDGES)
    new = new.capitalize() if bare[:1].isupper() else new
    at = word.index(bare)
    return word[:at] + new + word[at + len(bare) :]


def _chosen(places: Sequence[int], share: float, rng: random.Random) -> list[int]:
    if not places:
        return []
    count = min(len(places), max(1, round(share * len(places))))
    return sorted(rng.sample(list(places), count))
