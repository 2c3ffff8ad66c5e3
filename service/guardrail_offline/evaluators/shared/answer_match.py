"""The ladder: rules that say whether two texts are one answer, before any model is asked.

Rungs from the surest down: words at all, equality, yes or no, numbers, dates and amounts, aliases,
the same items, the same words, containment. A rung decides or passes on; what none decides is the
model's. Numbers, dates and units are read by the detector of exact facts.

Exact match and token overlap come first in evaluations of short answers for the same reason: an
entailment model is asked about sentences and "565 °C" is none.

Source:
    P. Rajpurkar et al., "SQuAD", 2016 (normalised equality, overlap); V. Karpukhin et al., "DPR",
    2020 (a passage that holds the answer's words answers).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

import re2

from guardrail_offline.evaluators.shared.answer_words import words
from guardrail_service.detectors.facts import vocabulary
from guardrail_service.detectors.facts.align import agrees
from guardrail_service.detectors.facts.amounts import Fact, stem
from guardrail_service.detectors.facts.read import ReadSentence, read
from guardrail_service.detectors.facts.vocabulary import listed
from guardrail_service.text.language import has_words
from guardrail_service.text.patterns.search import encodable

Rung = Literal[
    "no_words", "equal", "yes_no", "number", "date", "unit", "alias", "same_items", "same_words",
    "contained", "denied", "contradicted", "nothing_shared", "model",
]  # fmt: skip
MODEL: Rung = "model"


class AnswerMatch(NamedTuple):
    """The verdict of a rung about two texts, and the rung's name."""

    same: bool
    by: Rung


_YES = listed("yes yeah yep true ja oui sí si sim tak はい 是 是的 да")
_NO = listed("no nope false nein non não nie いいえ 否 不 不是 нет")
_POLAR = re2.compile(
    r"(?i)^[^\p{L}\p{N}]*(" + "|".join(sorted(_YES | _NO, key=len, reverse=True)) + ")"
    r"\s*(?:$|[,.;:!\x{2013}\x{2014}\x{3001}\x{3002}\x{FF0C}]|-\s)"
)
_SILENT = listed(
    "is are was were be been being am do does did has have had of in on at to for from by with as"
    " and that this these those it its he she they them there his her their which who will would"
    " into about so such"
)
"""Words without which a sentence says the same. Unlike a list of stop words it holds none that
says when, where, how many or whether."""
_KINDS: dict[str, Rung] = {
    "date": "date", "weekday": "date", "time": "date", "number": "number", "ordinal": "number",
}  # fmt: skip
_ALIASES = {
    "usa": "united states", "us": "united states", "united states of america": "united states",
    "america": "united states", "uk": "united kingdom", "great britain": "united kingdom",
    "britain": "united kingdom", "uae": "united arab emirates", "ussr": "soviet union",
    "prc": "china", "people's republic of china": "china", "drc": "democratic republic of congo",
    "holland": "netherlands", "czechia": "czech republic", "burma": "myanmar",
    "ivory coast": "côte d'ivoire", "cote d'ivoire": "côte d'ivoire", "swaziland": "eswatini",
    "türkiye": "turkey", "nyc": "new york city", "la": "los angeles", "un": "united nations",
    "eu": "european union", "who": "world health organization",
    "world health organisation": "world health organization", "ww1": "world war 1",
    "wwi": "world war 1", "first world war": "world war 1", "world war i": "world war 1",
    "world war one": "world war 1", "ww2": "world war 2", "wwii": "world war 2",
    "second world war": "world war 2", "world war ii": "world war 2",
    "world war two": "world war 2", "tv": "television", "ok": "okay", "&": "and", "dr": "doctor",
    "mt": "mount", "st": "saint", "jr": "junior", "vs": "versus",
}  # fmt: skip
"""One answer under two names; whole runs of words only. Own list: countries, bodies, wars."""
_ALIAS_WORDS = {
    first: max(len(name.split()) for name in _ALIASES if name.split()[0] == first)
    for first in {name.split()[0] for name in _ALIASES}
}
"""How many words the longest name has that begins with a word."""
_CAPITALS = re2.compile(r"\s*\p{Lu}{2,6}\s*")
_BULLET = re2.compile(r"(?m)^\s*(?:[-*\x{2022}]|\d+[.)])\s+")
_BETWEEN_ITEMS = re2.compile(
    r"\s*\n\s*|\s*[,;]\s+(?:(?:and|und|et|y|e|or)\s+)?|\s*[\x{3001}\x{FF0C}]\s*|\s+(?:and|und|et|y|&)\s+"
)
_ORDERED = re2.compile(r"(?i)\b(?:order|first|rank\w*|sort\w*|sequence|steps?|before|after)\b")
_ASKS_VALUE = re2.compile(
    r"(?i)\bhow (?:many|much|long|old|tall|high|deep|wide|far|fast|big|large|heavy|hot|cold|late|"
    r"early|soon)\b|\bwhen\b|\b(?:what|which) (?:year|date|day|month|time|percentage|share|age)\b|"
    r"\bwhat (?:is|was|are|were) the (?:\w+ ){0,4}(?:price|cost|fee|rate|temperature|speed|height|"
    r"length|width|depth|weight|age|period|duration|deadline|date|year|population|number|capacity|"
    r"distance|limit|size|area|boiling point|melting point)\b"
)
"""Own list: questions whose answer is one number, date or amount."""
_ASKING = re2.compile(r"(?i)\b(?:how|what|when|where|which|who|whom|whose|why)\b")
_LONGEST_SENTENCE = 25
_LEAST_TURNED = 3
_SHORT = 8
"""Words a text may have beside another value than the reference's and still be wrong as a whole."""
_CONTAINED_WORDS = 8
"""Longest expected answer that is taken as given where another text holds it word for word."""


def match(expected: str, actual: str, question: str | None = None) -> AnswerMatch | None:
    """Return whether an answer is the expected one, or None if no rung can tell.

    Args:
        expected: The reference.
        actual: The text to judge.
        question: What was asked. Its words may stand in one text and lack in the other: "14 days"
            and "Guests may stay for 14 days" are one answer to "How long may guests stay?". To a
            question for one value an answer with that value alone is the expected one, whatever
            its words.
    """
    return same_statement(expected, actual, question) or _asked_value(
        expected, actual, question or ""
    )


@lru_cache(maxsize=4096)
def same_statement(one: str, other: str, question: str | None = None) -> AnswerMatch | None:
    """Return whether two texts say the same as answers to a question, or None.

    Every word of either that is not the question's has to be in the other, so it also compares a
    claim with a sentence of a passage.
    """
    if " ".join(one.split()) == " ".join(other.split()):
        return AnswerMatch(True, "equal")
    if not has_words(other) or not words(other):
        return AnswerMatch(False, "no_words")
    if words(one) == words(other):
        return AnswerMatch(True, "equal")
    for rung in (_yes_or_no, _fact, _alias, _items, _same_words):
        if (found := rung(one, other, question or "")) is not None:
            return found
    return None


def best_match(
    expected: Sequence[str], actual: str, question: str | None = None
) -> AnswerMatch | None:
    """Return the match with the reference that it fits best: one that is the same, if any is."""
    found = [match(one, actual, question) for one in expected]
    same = next((one for one in found if one is not None and one.same), None)
    return same if same is not None or None in found or not found else found[0]


def holds(sentence: str, expected: str) -> bool:
    """Return whether a sentence has a short expected answer in it and denies nothing more.

    Word for word, or all of its content in a row: "France, in Western Europe, ..." holds "France is
    in Western Europe."
    """
    wanted = canonical(expected)
    said, inside = _says(sentence), _says(expected)
    if not 0 < len(wanted) <= _CONTAINED_WORDS or said.denials != inside.denials:
        return False
    if _has_run(canonical(sentence), wanted):
        return True
    return len(inside.content) > 1 and _has_run(said.content, inside.content)


def shares_nothing(claim: str, texts: Sequence[str], question: str | None = None) -> bool:
    """Return whether no word and no value of a claim is in some texts: lorem ipsum, "x".

    A claim of small words only ("Yes, it is.") says what the question asks: then its words count.
    """
    held = [_vocabulary(text) for text in texts]
    own = _vocabulary(claim)
    if not own.words and any(one.words for one in held):
        own = _vocabulary(question or "")
    if not own.words or any(own.words & one.words or _are_akin(own, one) for one in held):
        return False
    facts = read(claim).facts
    told = [fact for text in texts for fact in read(text).facts]
    return not any(agrees(fact, other) for fact in facts for other in told)


class _Vocabulary(NamedTuple):
    """The stems of a text's content, and those that begin some of them."""

    words: frozenset[str]
    beginnings: frozenset[str]


@lru_cache(maxsize=512)
def _vocabulary(text: str) -> _Vocabulary:
    found = frozenset(_content(text))
    parts = (word[:size] for word in found for size in range(_LEAST_ALIKE, len(word) + 1))
    return _Vocabulary(found, frozenset(parts))


_LEAST_ALIKE = 4


def _are_akin(one: _Vocabulary, other: _Vocabulary) -> bool:
    """Return whether a stem of one begins one of the other ("german", "germany")."""
    return not (one.words.isdisjoint(other.beginnings) and other.words.isdisjoint(one.beginnings))


@lru_cache(maxsize=512)
def canonical(text: str) -> tuple[str, ...]:
    """Return a text's words with one name for what has several."""
    found = words(text)
    kept: list[str] = []
    at = 0
    while at < len(found):
        longest = _ALIAS_WORDS.get(found[at], 0)
        for size in range(min(longest, len(found) - at), 0, -1):
            name = " ".join(found[at : at + size])
            if name in _ALIASES and not (name in _LOWER_WORDS and not _capital(text, name)):
                kept += _ALIASES[name].split()
                at += size
                break
        else:
            kept.append(found[at])
            at += 1
    return tuple(kept)


_LOWER_WORDS = frozenset(("us", "who", "la", "un", "st", "mt", "dr", "america"))


def _capital(text: str, name: str) -> bool:
    """Return whether a name that is a word, too, stands in a text as a name."""
    shown = name.capitalize() if name in ("america", "dr", "mt", "st") else name.upper()
    return shown in text or ".".join(name.upper()) in text


class _Said(NamedTuple):
    """A text's content in order, its facts, and how often it denies."""

    content: tuple[str, ...]
    read: ReadSentence
    denials: int


@lru_cache(maxsize=512)
def _says(text: str) -> _Said:
    denials = 0
    content: list[str] = []
    for word in canonical(text):
        if word in vocabulary.NEGATORS or word in vocabulary.CONTRACTED:
            denials += 1
        elif word in vocabulary.OPPOSITES:
            denials += word not in vocabulary.SAME_SIDE
            content.append(stem(vocabulary.OPPOSITES[word]))
        elif word not in _SILENT:
            content.append(stem(word))
    return _Said(tuple(content), read(encodable(text)), denials)


def denies(text: str) -> bool:
    """Return whether a text denies something: "not", "never", "isn't", an odd number of times."""
    return _says(text).denials % 2 == 1


@lru_cache(maxsize=512)
def _content(text: str) -> tuple[str, ...]:
    return tuple(w for w in _says(text).content if w not in vocabulary.STOP)


@lru_cache(maxsize=512)
def polarity(text: str) -> bool | None:
    """Return whether a text begins with a yes or a no, or None: "No dogs" and "No. 5" do not."""
    found = _POLAR.match(encodable(text))
    if found is None or text[found.end() :].lstrip()[:1].isdigit():
        return None
    return found[1].casefold() in _YES


def _yes_or_no(expected: str, actual: str, question: str) -> AnswerMatch | None:
    wanted, given = polarity(expected), polarity(actual)
    if wanted is None or given is None:
        return _said_of_question(expected, actual, question)
    if wanted != given:
        return AnswerMatch(False, "yes_no")
    if not _is_lone(expected):
        return None
    adds = set(_content(actual)) - set(_content(question)) - _YES - _NO
    return None if adds else AnswerMatch(True, "yes_no")


def _said_of_question(expected: str, actual: str, question: str) -> AnswerMatch | None:
    """Compare a lone yes or no with a statement that says what the question asks, or denies it."""
    lone, other = (expected, actual) if _is_lone(expected) else (actual, expected)
    if not _is_lone(lone):
        return None
    asked, said = _says(question), _says(other)
    if not asked.content or asked.denials:
        return None
    if asked.content != said.content and not _is_turned(asked.content, said.content):
        return None
    return AnswerMatch(polarity(lone) == (said.denials % 2 == 0), "yes_no")


@lru_cache(maxsize=512)
def _is_lone(text: str) -> bool:
    found = _POLAR.match(encodable(text))
    return found is not None and not words(text[found.end() :])


def _fact(expected: str, actual: str, question: str) -> AnswerMatch | None:
    """Compare the one value that the reference is with the one of its kind in the other text."""
    wanted, given = _says(expected), _says(actual)
    if len(wanted.read.facts) != 1:
        return None
    asked = set(_says(question).content)
    if set(_beside_facts(expected)) - asked:
        return None
    fact = wanted.read.facts[0]
    alike = [other for other in given.read.facts if _same_kind(fact, other)]
    if len(alike) != 1 or wanted.denials != given.denials or fact.bound != alike[0].bound:
        return None
    by = _kind(fact)
    if (same := _one_value(fact, alike[0])) is None:
        return None
    if _minuses(expected) != _minuses(actual):
        return AnswerMatch(False, by)
    adds = set(_beside_facts(actual)) - asked - set(wanted.content)
    if len(adds) > (0 if same else _SHORT) or (same and len(given.read.facts) > 1):
        return None
    return AnswerMatch(same, by)


def _asked_value(expected: str, actual: str, question: str) -> AnswerMatch | None:
    """Compare the only value in each of two sentences that answer a question for a value alone.

    Not where each has a name that the other lacks: "in Spain in 1879", "in 1879 in Germany".
    """
    if not _ASKS_VALUE.search(encodable(question)) or len(words(actual)) > _LONGEST_SENTENCE:
        return None
    if len(_ASKING.findall(encodable(question))) > 1:
        return None
    ours, theirs = _names(expected), _names(actual)
    if ours - theirs and theirs - ours:
        return None
    wanted, given = _says(expected), _says(actual)
    asked = read(encodable(question)).facts
    new = [
        [fact for fact in said.read.facts if not any(agrees(fact, known) for known in asked)]
        for said in (wanted, given)
    ]
    if any(len(facts) != 1 for facts in new) or (wanted.denials - given.denials) % 2:
        return None
    (one,), (two,) = new
    if one.bound != two.bound or not _same_kind(one, two) or not _one_value(one, two):
        return None
    return None if _minuses(expected) != _minuses(actual) else AnswerMatch(True, _kind(one))


def _names(text: str) -> set[str]:
    """Return the capitalised words inside a text's sentences, months and weekdays aside."""
    tokens = _says(text).read.tokens
    return {
        token.low
        for before, token in pairwise(tokens)
        if token.kind == "w" and token.text[0].isupper() and before.text not in ".!?"
        and token.low not in vocabulary.MONTHS and token.low not in vocabulary.WEEKDAYS
    }  # fmt: skip


def has_values(expected: str, actual: str) -> bool | None:
    """Return whether every number, date and amount of one text is in another; None without any."""
    wanted = read(encodable(expected)).facts
    if not wanted:
        return None
    given = read(encodable(actual)).facts
    return all(
        any(_same_kind(one, two) and _one_value(one, two) is True for two in given)
        for one in wanted
    ) and _minuses(expected) <= _minuses(actual)


@lru_cache(maxsize=512)
def _beside_facts(text: str) -> tuple[str, ...]:
    """Return the content of a text without its facts."""
    said = _says(text)
    inside = {place for fact in said.read.facts for place in range(fact.token, max(fact.last, 1))}
    kept = [
        token.low for place, token in enumerate(said.read.tokens)
        if token.kind == "w" and place not in inside
    ]  # fmt: skip
    return tuple(stem(word) for word in kept if word not in _SILENT and word not in _ARTICLES)


_ARTICLES = frozenset(("a", "an", "the"))


def _kind(fact: Fact) -> Rung:
    return _KINDS.get(fact.kind, "unit")


def _same_kind(one: Fact, other: Fact) -> bool:
    if one.date is not None or other.date is not None:
        return (one.date is None) == (other.date is None)
    money = one.unit.startswith("money") and other.unit.startswith("money")
    return money or one.unit == other.unit or "" in (one.unit, other.unit)


def _one_value(wanted: Fact, given: Fact) -> bool | None:
    """Return whether a value is the wanted one; None where it is only rounded or coarser."""
    if wanted.date is not None and given.date is not None:
        pairs = list(zip(wanted.date, given.date, strict=True))
        if any(one is not None and two is not None and one != two for one, two in pairs):
            return False
        return None if any(one is not None and two is None for one, two in pairs) else True
    if not agrees(given, wanted):
        return None if given.is_word or given.kind == "percentage" != wanted.kind else False
    if wanted.factor != given.factor or set(wanted.values) & set(given.values):
        return True
    return True if {wanted.bound, given.bound} & vocabulary.LOOSE else None


def _minuses(text: str) -> int:
    return sum(word.startswith("-") for word in words(text))


def _alias(expected: str, actual: str, question: str) -> AnswerMatch | None:
    if canonical(expected) == canonical(actual):
        return AnswerMatch(True, "alias")
    for short, long in ((expected, actual), (actual, expected)):
        if _is_capitals(short) and short.strip() == _initials(long):
            return AnswerMatch(True, "alias")
    return None


@lru_cache(maxsize=512)
def _is_capitals(text: str) -> bool:
    return _CAPITALS.fullmatch(encodable(text)) is not None


@lru_cache(maxsize=512)
def _initials(text: str) -> str:
    named = [word for word in text.split() if word[:1].isalpha() and word.lower() not in _SILENT]
    if len(named) < 2 or not all(word[0].isupper() for word in named):
        return ""
    return "".join(word[0] for word in named if word.lower() not in _ARTICLES)


def _items(expected: str, actual: str, question: str) -> AnswerMatch | None:
    if min(len(_pieces(expected)), len(_pieces(actual))) < 2:
        return None
    wanted, given = items_of(expected), items_of(actual)
    if len(wanted) < 2 or len(wanted) != len(given) or sorted(wanted) != sorted(given):
        return None
    return None if _ORDERED.search(encodable(question)) else AnswerMatch(True, "same_items")


@lru_cache(maxsize=512)
def items_of(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of each item of a list: lines, or what commas and "and" keep apart."""
    return tuple(found for piece in _pieces(text) if (found := canonical(piece)))


@lru_cache(maxsize=512)
def _pieces(text: str) -> tuple[str, ...]:
    """Return what commas, lines and "and" keep apart, with words or without."""
    return tuple(filter(None, _BETWEEN_ITEMS.split(_BULLET.sub("", encodable(text)))))


def _same_words(expected: str, actual: str, question: str) -> AnswerMatch | None:
    """Compare what two texts say beyond their question, word for word and in one order."""
    wanted, given = _says(expected), _says(actual)
    ours, theirs = _beyond(expected, question), _beyond(actual, question)
    has_more = bool(ours or theirs)
    if not has_more:
        ours, theirs = wanted.content, given.content
    if not ours or not (ours == theirs or _is_turned(ours, theirs)):
        return None
    if has_more:
        asked = set(_says(question).content) - {"or"}
        dropped, other = set(wanted.content) & asked, set(given.content) & asked
        if not (dropped <= other or other <= dropped):
            return None
    ways, others = _ways(expected), _ways(actual)
    if any(others.get(word, way) != way for word, way in ways.items()):
        return None
    if (wanted.denials - given.denials) % 2:
        return AnswerMatch(False, "denied")
    return AnswerMatch(True, "same_words") if wanted.denials == given.denials else None


@lru_cache(maxsize=512)
def _beyond(text: str, question: str) -> tuple[str, ...]:
    """Return what a text says beyond its question, in order."""
    asked = set(_says(question).content) - {"or"}
    return tuple(word for word in _says(text).content if word not in asked)


@lru_cache(maxsize=512)
def _ways(text: str) -> dict[str, str]:
    """Return what each word is after: "by", "from" or "to", which a silent word may hide."""
    found = canonical(text)
    return {after: word for word, after in pairwise(found) if word in ("by", "from", "to")}


def _is_turned(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return whether one begins in the middle of the other: "In Paris flows the Seine"."""
    size = len(ours)
    if size != len(theirs) or size < _LEAST_TURNED:
        return False
    twice = [*ours, *ours]
    return any(twice[at : at + size] == list(theirs) for at in range(1, size))


def _has_run(text: Sequence[str], run: Sequence[str]) -> bool:
    size = len(run)
    return any(tuple(text[at : at + size]) == tuple(run) for at in range(len(text) - size + 1))
