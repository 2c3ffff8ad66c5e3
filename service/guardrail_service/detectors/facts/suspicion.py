"""A second look at facts that the rules let pass: do passages say another value there?

The rules say why a number may stand: it is in a passage, follows from others, or nothing
contradicts it surely enough. All of that happens by chance, too: "six months" is "3 + 3". So what
stands for and against a fact is weighed once more, by trees that were fitted on true sentences and
on the same with one number changed (`models/training/facts/fit_suspicion.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from guardrail_service.detectors.facts.align import (
    Held,
    PassageFacts,
    agrees,
    alone,
    around,
    rivals,
    same_things,
)
from guardrail_service.detectors.facts.amounts import Fact
from guardrail_service.detectors.facts.read import ReadSentence
from guardrail_service.text.budget import in_time

KINDS: Final = (
    "number", "money", "percentage", "measure", "duration", "date", "time", "ordinal", "weekday"
)  # fmt: skip
NAMES: Final = (
    "other", "other_sentence", "other_near", "other_things", "other_words", "other_is_taken",
    "other_shared", "other_bound", "other_spelled", "other_range", "other_facts", "other_small",
    "other_far", "same", "same_sentence", "same_near", "same_things", "same_words", "stands",
    "more", "asked", "derived", "sum", "share", "difference", "product", "days", "score", "small",
    "spelled", "bound", "range", "facts", "words", "round", "unit", "things", "lead",
    *KINDS,
)  # fmt: skip
"""Features by column: of the likeliest other value, of the equal one, of the fact itself."""
_SMALL, _FAR = 10, 5.0
FILE: Final = "suspicion.json"
MOST: Final = 2.75
"""Value up to which a fact passes, chosen out of fold; `docs/facts.md` has what it costs."""
Tree = list[list[float] | float]
"""A node is a leaf or: column, largest value that goes left, node on the left, on the right."""


class Standing(NamedTuple):
    """Where a passage fact stands beside a claim's.

    Attributes:
        value: How much speaks for its being the same fact; about 0 to 1.3.
        sentence: Share of the claim's words in its sentence.
        near: Share of the words near the claim's fact that are near it.
        things: Both count the same things.
        words: Neighbouring words that are equal, 0 to 2.
    """

    value: float
    sentence: float
    near: float
    things: float
    words: float


class Suspicion(NamedTuple):
    """What a second look finds: features in the order of `NAMES`, and the likeliest other value."""

    features: list[float]
    other: Held | None

    @property
    def value(self) -> float:
        """The sum of the trees: the log odds that the fact was changed, among as many of either."""
        return sum(leaf(tree, self.features) for tree in trees())


def second_look(
    claim: ReadSentence,
    fact: Fact,
    source: PassageFacts,
    verdict: tuple[float, str],
    is_taken: Callable[[Fact], bool],
    is_of_another_time: Callable[[Held], bool],
) -> Suspicion:
    """Weigh what passages have in place of a fact that was let pass.

    Args:
        claim: The claim.
        fact: Its fact.
        source: The passages.
        verdict: Score (0 to 1) and derivation ("" for none) that the rules gave.
        is_taken: Whether another fact of the claim says a passage fact.
        is_of_another_time: Whether a passage fact's sentence names other dates than the claim.

    Returns:
        No features and no other value where passages have none of the fact's kind.
    """
    near, every = around(claim, fact), alone(claim, fact)
    beside = _beside(claim, fact)
    same = Standing(0.0, 0.0, 0.0, 0.0, 0.0)
    agreeing = source.agreeing(fact)
    for held in agreeing:
        same = max(same, _standing(fact, held, source, near, every, beside))
    best: tuple[float, Standing, Held] | None = None
    for held in in_time(source.held, every=16):
        if not rivals(fact, held.fact) or agrees(fact, held.fact) or is_of_another_time(held):
            continue
        standing = _standing(fact, held, source, near, every, beside)
        value = standing.value - 0.5 * is_taken(held.fact)
        if best is None or value > best[0]:
            best = (value, standing, held)
    if best is None:
        return Suspicion([], None)
    features = [
        *_of_other(fact, best, every, is_taken(best[2].fact)),
        *same, bool(agreeing), best[0] - same.value, source.is_asked(fact),
        *_of_fact(claim, fact, verdict, len(every)),
    ]  # fmt: skip
    return Suspicion([float(one) for one in features], best[2])


def _of_other(
    fact: Fact, best: tuple[float, Standing, Held], every: set[str], is_taken: bool
) -> tuple[float, ...]:
    value, standing, held = best
    theirs = held.fact
    far = abs(theirs.raw - fact.raw) / (abs(theirs.raw) + 1)
    return (
        value, *standing[1:], is_taken, len(every & held.read.content),
        theirs.bound == fact.bound, theirs.is_word == fact.is_word,
        theirs.is_range == fact.is_range, len(held.read.facts), theirs.raw < _SMALL,
        min(far, _FAR),
    )  # fmt: skip


def _of_fact(
    claim: ReadSentence, fact: Fact, verdict: tuple[float, str], words: int
) -> tuple[float, ...]:
    score, told = verdict
    return (
        bool(told), "+" in told and "%" not in told, "%" in told, " - " in told, "\u00d7" in told,
        "date" in told, score, fact.raw < _SMALL, fact.is_word, bool(fact.bound), fact.is_range,
        len(claim.facts), words, fact.raw % 10 == 0, bool(fact.unit), bool(fact.nouns),
        bool(fact.lead), *(fact.kind == kind for kind in KINDS),
    )  # fmt: skip


def _standing(
    fact: Fact,
    held: Held,
    source: PassageFacts,
    near: set[str],
    every: set[str],
    beside: tuple[str, str],
) -> Standing:
    sentence = source.covered(every, held.read.content)
    close = source.covered(near, held.near) if near else sentence
    things = bool(fact.nouns and held.fact.nouns) and same_things(fact, held.fact)
    both = zip(beside, _beside(held.read, held.fact), strict=True)
    equal = sum(ours == theirs and ours.isalpha() for ours, theirs in both)
    value = 0.6 * sentence + 0.4 * close + 0.15 * things + 0.1 * equal
    return Standing(value, sentence, close, float(things), float(equal))


def _beside(read: ReadSentence, fact: Fact) -> tuple[str, str]:
    """Return the words right before and behind a fact."""
    before = read.tokens[fact.token - 1].low if fact.token else ""
    behind = read.tokens[fact.last].low if fact.last < len(read.tokens) else ""
    return before, behind


@cache
def trees() -> tuple[Tree, ...]:
    """Return the trees that ship."""
    return tuple(json.loads(files(__package__).joinpath(FILE).read_text("utf-8"))["trees"])


def leaf(tree: Tree, features: Sequence[float]) -> float:
    """Return the leaf where a tree's questions lead."""
    node = tree[0]
    while isinstance(node, list):
        column, most, left, right = node
        node = tree[int(left if features[int(column)] <= most else right)]
    return node
