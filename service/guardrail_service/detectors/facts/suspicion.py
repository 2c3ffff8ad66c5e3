"""Looks once more at numbers that the rules let pass.

Rules say why a number may stand, but reasons hold by chance, too ("six months" is "3 + 3"). So what
stands for and against it is weighed once more, by trees that were fitted on true sentences and on
the same with one number changed (`models/training/facts/fit_suspicion.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence, Set
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import re2

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.align import (
    Held,
    PassageFacts,
    agrees,
    alone,
    around,
    labels,
    rivals,
    same_things,
)
from guardrail_service.detectors.facts.amounts import Fact
from guardrail_service.detectors.facts.read import ReadSentence
from guardrail_service.text.budget import in_time

_KINDS: Final = (
    "number", "money", "percentage", "measure", "duration", "date", "time", "ordinal", "weekday"
)  # fmt: skip
COLUMNS: Final = (
    "other", "other_sentence", "other_near", "other_things", "other_words", "other_is_taken",
    "other_shared", "other_bound", "other_spelled", "other_range", "other_facts", "other_small",
    "other_far", "same", "same_sentence", "same_near", "same_things", "same_words", "stands",
    "more", "asked", "derived", "sum", "share", "difference", "product", "days", "score", "small",
    "spelled", "bound", "range", "facts", "words", "round", "unit", "things", "lead",
    "other_kind", "same_kind", "other_names", "same_names", "equal", "repeated", "operands",
    "operand_said", "operand_unit", "operand_sentence", "cue", "other_given", "same_given",
    "other_per",
    *_KINDS,
)  # fmt: skip
"""Features by column: of the likeliest other value, of the equal one, of the fact itself."""
_SMALL, _MOST_FAR = 10, 5.0
_LOOSE_KINDS = frozenset(("number", "money", "percentage", "measure", "duration"))
TREES_FILE: Final = "suspicion.json"
MOST_SUSPICION: Final = 2.6
"""Value up to which a fact passes, chosen out of fold (decision 26)."""
Tree = list[list[float] | float]
"""A node is a leaf or: column, largest value that goes left, node on the left, on the right."""


class Standing(NamedTuple):
    """The place of a passage fact beside a claim's fact.

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
    """The find of a second look.

    Attributes:
        features: As in `COLUMNS`; none where passages have no other value of the fact's kind.
        other: The likeliest other value.
        value: The sum of the trees: log odds that the fact was changed, among as many of either.
    """

    features: list[float]
    other: Held | None
    value: float


def second_look(
    claim: ReadSentence,
    fact: Fact,
    source: PassageFacts,
    given: Sequence[ReadSentence],
    verdict: tuple[float, str],
    is_taken: Callable[[Fact], bool],
    is_of_another_time: Callable[[Held], bool],
) -> Suspicion:
    """Weigh what passages have in place of a fact that was let pass.

    Args:
        claim: The claim.
        fact: Its fact.
        source: The passages.
        given: The sentence of the answer before the claim.
        verdict: Score (0 to 1) and derivation ("" for none) that the rules gave.
        is_taken: Whether another fact of the claim says a passage fact.
        is_of_another_time: Whether a passage fact's sentence names other dates than the claim.
    """
    near, every = around(claim, fact), alone(claim, fact)
    beside = _beside(claim, fact)
    same = Standing(0.0, 0.0, 0.0, 0.0, 0.0)
    agreeing = source.agreeing(fact)
    for held in agreeing:
        same = max(same, _standing(fact, held, source, near, every, beside))
    dated = [one for one in claim.facts if one.date is not None and fact.date is None]
    has_others = len(claim.facts) > 1
    best: tuple[float, Standing, Held, bool] | None = None
    for held in in_time(source.held, every=16):
        is_loose = not rivals(fact, held.fact)
        if (is_loose and not may_stand_for(fact, held.fact)) or agrees(fact, held.fact):
            continue
        if dated and is_of_another_time(held):
            continue
        standing = _standing(fact, held, source, near, every, beside)
        taken = has_others and is_taken(held.fact)
        value = standing.value - 0.5 * taken - 0.2 * is_loose
        if best is None or value > best[0]:
            best = (value, standing, held, taken)
    if best is None:
        return Suspicion([], None, 0.0)
    columns = (
        *_of_other(fact, best, every),
        *same, bool(agreeing), best[0] - same.value, source.is_asked(fact),
        *_of_fact(claim, fact, verdict, len(every)),
        best[2].fact.kind == fact.kind, any(one.fact.kind == fact.kind for one in agreeing),
        *_names_in(claim, source, best[2], agreeing), min(len(agreeing), 4),
        sum(one is not fact and one.raw == fact.raw for one in claim.facts),
        *_of_operands(claim, fact, source, verdict[1], every),
        *_of_given(source, given, best[2], agreeing), best[2].fact.per == fact.per,
    )  # fmt: skip
    features = [float(one) for one in columns]
    return Suspicion(features, best[2], sum(leaf(tree, features) for tree in trees()))


def may_stand_for(fact: Fact, held: Fact) -> bool:
    """Return whether a bare number may be a passage's in other words.

    "pays 11" for "a fee of 15 euros", "50 seats" for "seats 45".
    """
    if fact.kind != "number":
        return False
    if not fact.nouns:
        return held.kind in _LOOSE_KINDS
    return held.kind == "number" and bool(held.lead) and held.lead == fact.nouns[0]


def _names_in(
    claim: ReadSentence, source: PassageFacts, other: Held, agreeing: Sequence[Held]
) -> tuple[float, float]:
    """Return the shares of the claim's names in the other value's and the equal one's sentence."""
    told = (
        held.read.content | (held.before.content if held.before else set())
        for held in (other, *agreeing)
    )
    return _shares(source, labels(claim, set(claim.content)), told)


def _of_given(
    source: PassageFacts, given: Sequence[ReadSentence], other: Held, agreeing: Sequence[Held]
) -> tuple[float, float]:
    """Return how much of the answer's sentence before stands in either value's passage sentence."""
    said = frozenset[str]().union(*(one.content for one in given))
    return _shares(source, said, (held.read.content for held in (other, *agreeing)))


def _shares(
    source: PassageFacts, wanted: Set[str], told: Iterable[frozenset[str]]
) -> tuple[float, float]:
    """Return which share of some stems the first text has, and the most that another has."""
    if not wanted:
        return -1.0, -1.0
    first, *others = (source.covered(wanted, stems) for stems in told)
    return first, max(others, default=-1.0)


def _of_operands(
    claim: ReadSentence, fact: Fact, source: PassageFacts, told: str, every: set[str]
) -> tuple[float, ...]:
    """Return what the numbers have to do with the claim that a fact is said to follow from."""
    lows = {token.low for token in claim.tokens}
    cue = not lows.isdisjoint(_CUES)
    values = [float(one) for one in _OPERAND.findall(told.split(" = ")[0])]
    if not values:
        return 0.0, 0.0, 0.0, 0.0, cue
    said = {one.raw for one in claim.facts if one is not fact}
    said |= {one.raw for one in source.asked}
    held = [one for one in source.held if one.fact.raw in values]
    units = {one.fact.raw for one in held if one.fact.unit == fact.unit}
    return (
        len(values), sum(one in said for one in values) / len(values),
        sum(one in units for one in values) / len(values),
        max((source.covered(every, one.read.content) for one in held), default=0.0), cue,
    )  # fmt: skip


_OPERAND = re2.compile(r"\d+(?:\.\d+)?(?:e\+\d+)?")
_CUES = words.listed(
    "total altogether together left remaining difference more less fewer longer shorter later"
    " earlier each per half double twice times triple average combined sum makes plus minus"
    " leaves leaving saves saving rest other others both extra additional next already after"
    " before older younger higher lower cheaper dearer by"
)


def _of_other(
    fact: Fact, best: tuple[float, Standing, Held, bool], every: set[str]
) -> tuple[float, ...]:
    value, standing, held, taken = best
    theirs = held.fact
    far = abs(theirs.raw - fact.raw) / (abs(theirs.raw) + 1)
    return (
        value, *standing[1:], taken, len(every & held.read.content),
        theirs.bound == fact.bound, theirs.is_word == fact.is_word,
        theirs.is_range == fact.is_range, len(held.read.facts), theirs.raw < _SMALL,
        min(far, _MOST_FAR),
    )  # fmt: skip


def _of_fact(
    claim: ReadSentence, fact: Fact, verdict: tuple[float, str], words: int
) -> tuple[float, ...]:
    score, told = verdict
    return (
        bool(told), "+" in told and "%" not in told, "%" in told, " - " in told, "\u00d7" in told,
        "date" in told, score, fact.raw < _SMALL, fact.is_word, bool(fact.bound), fact.is_range,
        len(claim.facts), words, fact.raw % 10 == 0, bool(fact.unit), bool(fact.nouns),
        bool(fact.lead), *(fact.kind == kind for kind in _KINDS),
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
    return tuple(json.loads(files(__package__).joinpath(TREES_FILE).read_text("utf-8"))["trees"])


def leaf(tree: Tree, features: Sequence[float]) -> float:
    """Return the leaf where a tree's questions lead."""
    node = tree[0]
    while isinstance(node, list):
        column, most, left, right = node
        node = tree[int(left if features[int(column)] <= most else right)]
    return node
