"""Compares what a claim holds to be so in any case with the conditions that passages set.

"Even if", "including", "without" and "either ... or" claim more than a passage that says "not if",
"except", "needs" or "only". Modal verbs count, too: who may do something does not have to. And
values are told apart that belong to a case to which a passage's rule is applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.align import Held, PassageFacts, Place
from guardrail_service.detectors.facts.amounts import Fact, stem
from guardrail_service.detectors.facts.read import ReadSentence
from guardrail_service.text.budget import check_time, in_time

Stems = frozenset[str]
_LEAST = 2
_SURE = 3
"""Words in common that need no further ones around them."""
_COVER = 0.6
_NEARLY_ALL = 0.75
_LONG = 12
"""Tokens behind "even if" or "including" that belong to it at most."""
_CONCEDES = tuple(tuple(row.split()) for row in (
    "even if", "even when", "even where", "whether or not", "regardless of", "no matter",
    "irrespective of", "with or without", "even without",
))  # fmt: skip
_ENDS = frozenset((".", ";", ":", "!", "?", "(", ")", ",", "\n", "but", "while", "so"))
_HARD_ENDS = frozenset((".", ";", "!", "?", "\n"))
_IF = frozenset(("if", "unless", "provided", "when", "where", "as"))
_DENIES = (
    words.NEGATORS
    | words.CONTRACTED
    | {"none", "excluded", "without", "forfeit", "lapse", "lapses"}
)
_EXCEPT = frozenset(("except", "excluding", "excepted", "unless", "exception"))
_INCLUDES = frozenset(("including", "included", "even"))
_NEEDS = words.listed("need needs needed require requires required")
_WIDENS = words.listed("either or also too both anyone anybody everyone everybody any all")
_ONLY_AT = words.listed("to by in on at from with for after before when if during through via")
_PERMITS = words.listed("may can optional optionally voluntary voluntarily")
_OBLIGES = words.listed("must required obliged mandatory compulsory obligatory")
_SMALL = words.listed("not also even still else must need have require may can allow only")


class Unconditional(NamedTuple):
    """A claim that leaves out the condition of a passage, its kind and the passage's place."""

    kind: str
    place: Place


def unconditional(claim: ReadSentence, source: PassageFacts) -> Iterator[Unconditional]:
    """Yield where passages set a condition that a claim says does not matter."""
    lows = _lows(claim)
    if not lows or lows[-1] == "?":
        return
    conceded = frozenset[str]()
    if not {"because", "since"} & set(lows) or not _EXCEPTS & set(lows):
        conceded = _behind(claim, lows, _CONCEDES)
    included = _included(claim, lows)
    without = _without(claim, lows) if "without" not in _all_words(source) else frozenset()
    widens = not _WIDENS.isdisjoint(lows) and "only" not in lows and _DENIES.isdisjoint(lows)
    obliges = _obliges(lows) and _DENIES.isdisjoint(lows) and "if" not in lows[:1]
    if not (conceded or included or without or widens or obliges):
        return
    asked = source.question.content if source.question is not None else frozenset[str]()
    for context, one in source.sentences:
        if len((claim.content | asked) & one.content) < _LEAST:
            continue
        check_time()
        theirs = _lows(one)
        kind = ""
        if (conceded and _sets_condition(conceded, claim.content | asked, one, theirs, source)) or (
            included and _leaves_out(included, claim.content, one, theirs, source)
        ):
            kind = "quantifier"
        elif without and _demands(without, claim.content, one, theirs):
            kind = "negation"
        elif widens and _limits(claim, one, theirs):
            kind = "quantifier"
        elif obliges and _permits(claim, one, theirs, source):
            kind = "negation"
        if kind:
            yield Unconditional(kind, Place(context, one.start, one.start + len(one.text)))


_EXCEPTS = frozenset(("only", "except", "exclude", "excludes", "apart"))
"""Words by which a claim itself names the exception."""


def is_case(claim: ReadSentence, fact: Fact, rival: Held | None, source: PassageFacts) -> bool:
    """Return whether a value tells of a case that a rule is applied to, not what a passage says.

    "A lorry of 20 tonnes has to go round", "if you order at ten", "your ten-year-old", "in November
    it is shut": passages set limits, and which values occur they leave open. So the passage fact
    that stands in its place, if any, has to be a limit, and the claim's own value none.
    """
    if fact.bound or fact.is_range or (rival is not None and not _is_limit(rival)):
        return False
    lows = _lows(claim)
    start = claim.clauses.index(claim.clauses[fact.token])
    first = next(k for k, token in enumerate(claim.tokens) if token.end > fact.start)
    before = lows[start:first]
    if fact.date is not None and fact.date[0] is not None:  # "had a biopsy in 1998" has happened
        return _is_of_a_year(lows, before, fact, source)
    if not _SUPPOSES.isdisjoint(before):
        return True
    if fact.kind == "duration" and _is_counted_by_rate(claim, fact, source):
        return True
    is_rule = any(t.low in _OF_RULES and t.text != "May" for t in claim.tokens)
    if not is_rule and _tells_what_happened(lows):
        return False  # "a 38-year-old man was arrested"
    if is_age(claim, fact):
        if not is_rule:  # "the patient is a 42-year-old", "a 19-year-old man is in custody"
            anybody = before[-2:] in (["a"], ["an"]) or before[-2:-1] in (["for"], ["to"])
            return anybody and _REPORTED.isdisjoint(lows[fact.last : fact.last + 3])
        return not _ITS_CASE.isdisjoint(before[-1:]) or not before
    if fact.kind == "number" and before[-1:] == ["aged"]:
        return True
    if not before or _is_quantity(claim, start, fact):
        return False
    if fact.kind in ("date", "time") and _is_moment(claim, fact, before, rival, source):
        return True
    is_limited = rival is not None or (fact.unit != "" and _sets_limit(source, fact))
    if not (is_rule or is_limited):
        return False
    article = next((k for k in range(len(before) - 1, -1, -1) if before[k] in _ANY_CASE), None)
    if article is not None and not _has_value(claim, start + article, fact):
        if article < len(before) - 1 and (is_rule or not start + article):
            return before[-1] in _OF_CASE or not _WHO.isdisjoint(before[article:])
        if article == len(before) - 1 and is_limited and fact.kind in ("money", "measure"):
            return _MEASURED.isdisjoint(claim.stems[fact.last : fact.last + 2])  # "a 20 kg parcel"
    if start or len(before) > _NEAR or _has_value(claim, 0, fact):
        return False
    opens = before[1:] if before[0] in _SO else before
    if not opens:
        return False
    if rival is not None and len(opens) <= _SHORT and opens[-1] in ("of", "with"):
        return True  # "gusts of 50 km/h are no reason"
    return opens[0] in _AT_CASE or (
        is_rule and (opens[0].endswith("ing") or (len(opens) <= _SHORT and opens[-1] in _AMOUNTING))
    )


def is_age(claim: ReadSentence, fact: Fact) -> bool:
    """Return whether a duration is how old somebody is: "ten-year-olds"."""
    behind = claim.tokens[fact.last - 1 : fact.last + 2]
    return fact.kind == "duration" and any(token.low in ("old", "olds") for token in behind)


def _is_moment(
    claim: ReadSentence, fact: Fact, before: Sequence[str], rival: Held | None, source: PassageFacts
) -> bool:
    """Return whether a day or an hour is one at which a rule is looked at: "at noon it is shut".

    Not "in July it is open until nine", which says until when.
    """
    if before[-1] not in _AT_MOMENT or any(
        one is not fact and one.unit not in ("", fact.unit) for one in claim.facts
    ):
        return False
    if rival is not None:
        return True
    return _sets_limit(source, fact) or (
        fact.kind == "date" and not _SEASONS.isdisjoint(_all_words(source))
    )


def _is_of_a_year(
    lows: Sequence[str], before: Sequence[str], fact: Fact, source: PassageFacts
) -> bool:
    """Return whether a thing of some year is looked at: "a card from 2018 never runs out"."""
    return (
        before[-1:] in (["from"], ["of"])
        and not _ANY_CASE.isdisjoint(before[:-1])
        and not _tells_what_happened(lows)
        and _sets_limit(source, fact)
    )


def _is_counted_by_rate(claim: ReadSentence, fact: Fact, source: PassageFacts) -> bool:
    """Return whether a passage has a price for each unit of a time that a claim pays for."""
    pays = any(one.kind == "money" or (one is not fact and not one.unit) for one in claim.facts)
    rates = (held.fact.per for held in source.held if held.fact.kind == "money")
    return pays and any(rate is not None and rate[1] == fact.factor for rate in rates)


def _tells_what_happened(lows: Sequence[str]) -> bool:
    """Return whether a sentence is told in the past, as far as its words show."""
    return any(
        (low in _PAST and lows[at : at + 2] != ["had", "better"])
        or (
            len(low) > _SHORTEST_PAST
            and low.endswith("ed")
            and _BE.isdisjoint(lows[max(0, at - 4) : at])
        )
        for at, low in enumerate(lows)
        if at
    )


def _sets_limit(source: PassageFacts, fact: Fact) -> bool:
    """Return whether a passage bounds values that a claim's may be compared with."""
    return any(_is_limit(held) for held in in_time(source.comparable(fact)))


def _is_limit(rival: Held) -> bool:
    """Return whether a passage fact bounds values: "up to 20 kg", "from six hours"."""
    fact = rival.fact
    lows = [token.low for token in rival.read.tokens[max(0, fact.token - 2) : fact.token]]
    return bool(fact.bound) or fact.is_range or not _LIMITING.isdisjoint(lows)


def _has_value(claim: ReadSentence, start: int, fact: Fact) -> bool:
    """Return whether another value stands between a token and a fact."""
    return any(start <= other.token and other.last <= fact.token for other in claim.facts)


def _is_quantity(claim: ReadSentence, start: int, fact: Fact) -> bool:
    """Return whether the noun before a value is what it measures: "a fee of 20 euros"."""
    return not _MEASURED.isdisjoint(claim.stems[max(start, fact.token - 4) : fact.token])


_ANY_CASE = frozenset(("a", "an", "one", "another", "any"))
_ITS_CASE = _ANY_CASE | {"your", "my"}
_OF_CASE = words.listed("of with worth weighing measuring costing at from on in over aged holding")
_OF_RULES = words.listed(
    "you your you'll you'd you're can can't cannot may must mustn't should shouldn't will won't"
    " need needs would wouldn't could couldn't"
)
"""A sentence about cases has one of these words."""
_WHO = frozenset(("who", "that", "which", "whose"))
_SUPPOSES = words.listed("if when suppose supposing assuming say")
_NEAR = 6
"""Tokens before a value that "at", "with" or "keeping" introduces at most."""
_SO = frozenset(("so", "then", "thus", "and", "but"))
_AT_CASE = frozenset(("at", "with", "on", "after", "for"))
_AT_MOMENT = frozenset(("at", "in", "during", "on"))
_SEASONS = words.listed("spring summer autumn fall winter season")
_AMOUNTING = words.listed("worth weighing measuring costing holding")
_REPORTED = words.listed(
    "man woman boy girl male female driver cyclist pedestrian motorist pensioner player student"
    " teenager has"
)
_SHORT = 3
_SHORTEST_PAST = 4
_PAST = words.listed(
    "was were had did been became got went took gave came made said told found won lost left began"
    " wrote built sold bought held kept led met paid ran rose fell grew died"
)
_BE = words.listed(
    "be is are am isn't aren't being get gets to a an the has have if when by of for"
)
"""Words before a participle that tells of no past."""
_LIMITING = words.listed(
    "from until till by between to than every per within before after since through above below"
    " over under beyond up"
)
_MEASURED = frozenset(map(stem, (
    "fee", "charge", "surcharge", "price", "cost", "deposit", "discount", "fine", "penalty",
    "limit", "maximum", "minimum", "period", "deadline", "warranty", "guarantee", "delay",
    "notice", "interest", "rate", "budget", "salary", "total", "sum", "rise", "increase", "drop",
    "fall", "loss", "profit", "share", "average", "range", "term", "allowance", "bonus",
    "reduction", "refund", "payment", "temperature", "distance", "length", "height", "width",
    "speed", "age", "capacity", "ceiling", "cap", "threshold", "quota", "excess", "premium",
    "value", "weight", "deductible", "balance", "size", "population", "area",
)))  # fmt: skip


def _all_words(source: PassageFacts) -> frozenset[str]:
    return frozenset[str]().union(*(one.lows for _, one in source.sentences))


def _lows(read: ReadSentence) -> list[str]:
    return [token.low.replace("\u2019", "'") for token in read.tokens]


def _until(lows: Sequence[str], start: int, ends: frozenset[str] = _ENDS) -> int:
    last = min(len(lows), start + _LONG)
    return next((at for at in range(start, last) if lows[at] in ends), last)


def _said(read: ReadSentence, start: int, end: int) -> Stems:
    return frozenset(read.stems[start:end]) - {""} - _SMALL


def _behind(claim: ReadSentence, lows: Sequence[str], phrases: Sequence[tuple[str, ...]]) -> Stems:
    """Return the stems behind the first of some phrases."""
    for at in range(len(lows)):
        for phrase in phrases:
            if tuple(lows[at : at + len(phrase)]) == phrase:
                start = at + len(phrase)
                return _said(claim, start, _until(lows, start))
    if "whether" in lows and ("or", "not") in pairwise(lows):
        start = lows.index("whether") + 1
        return _said(claim, start, _until(lows, start))
    return frozenset()


def _included(claim: ReadSentence, lows: Sequence[str]) -> Stems:
    """Return the stems of what "including" or "included" adds."""
    for at, low in enumerate(lows):
        if low == "including":
            return _said(claim, at + 1, _until(lows, at + 1))
        if low == "included" and at + 1 < len(lows) and lows[at + 1] in _ENDS:
            start = next((k + 1 for k in range(at - 1, -1, -1) if lows[k] in _ENDS), 0)
            if start:
                return _said(claim, start, at)
    return frozenset()


def _without(claim: ReadSentence, lows: Sequence[str]) -> Stems:
    """Return the stems of what a claim does without."""
    if "without" not in lows or not _DENIES.isdisjoint(set(lows) - {"without"}):
        return frozenset()
    start = lows.index("without") + 1
    end = min(_until(lows, start), start + 4)
    first = [s for s in claim.stems[start:end] if s and s not in _VAGUE]
    return frozenset(first[:1])


_VAGUE = frozenset(map(stem, ("any", "anybody", "anyone", "anything", "further", "additional")))


def _sets_condition(
    said: Stems, around: Stems, one: ReadSentence, theirs: Sequence[str], source: PassageFacts
) -> bool:
    """Return whether a sentence makes something depend on what a claim says is all the same."""
    if not {"even", "whether", "regardless", "also", "too"}.isdisjoint(theirs):
        return False
    for at, low in enumerate(theirs):
        if low not in _IF:
            continue
        condition = _said(one, at + 1, _until(theirs, at + 1, _HARD_ENDS))
        shared = said & condition
        if not shared or source.covered(said, condition) < _COVER:
            continue
        rest = one.content - condition
        if len(shared) >= _SURE or (around - said) & rest:
            return True
    return False


def _leaves_out(
    said: Stems, every: Stems, one: ReadSentence, theirs: Sequence[str], source: PassageFacts
) -> bool:
    """Return whether a sentence excepts what a claim includes."""
    if not said:
        return False
    for at, low in enumerate(theirs):
        if low in _EXCEPT:
            left = _said(one, at + 1, _until(theirs, at + 1))
            rest = one.content - left
            if source.covered(said, left) >= _COVER and (every - said) & rest:
                return True
        elif low in ("not", "never"):
            start = next((k + 1 for k in range(at - 1, -1, -1) if theirs[k] in _ENDS), 0)
            end = _until(theirs, at + 1)
            left = _said(one, start, end)
            if said <= left and len((every - said) & left) >= _LEAST:
                return True
    return False


def _demands(said: Stems, every: Stems, one: ReadSentence, theirs: Sequence[str]) -> bool:
    """Return whether a sentence needs what a claim does without."""
    if not _DENIES.isdisjoint(theirs) or len((every - said) & one.content) < _LEAST:
        return False
    return any(
        low in _NEEDS and said <= _said(one, at + 1, _until(theirs, at + 1))
        for at, low in enumerate(theirs)
    )


def _limits(claim: ReadSentence, one: ReadSentence, theirs: Sequence[str]) -> bool:
    """Return whether a clause says "only" of what a claim says of two or of all."""
    for at, low in enumerate(theirs[:-1]):
        if low != "only" or theirs[at + 1] not in _ONLY_AT:
            continue
        start = next((k + 1 for k in range(at - 1, -1, -1) if theirs[k] in _ENDS), 0)
        end = _until(theirs, at + 1)
        main = _said(one, start, at)
        limit = _said(one, at + 1, end)
        if len(main) < _SURE or "or" in theirs[at:end] or not limit:
            continue
        if main <= claim.content and _joins(claim, limit):
            return True
    return False


def _joins(claim: ReadSentence, limit: Stems) -> bool:
    """Return whether a claim names something besides: "either to the pupil or to a parent"."""
    lows = _lows(claim)
    if "either" in lows and "or" in lows:
        return True
    return not limit <= claim.content and not _ALL.isdisjoint(lows)


_ALL = words.listed("anyone anybody everyone everybody any all")


def _obliges(lows: Sequence[str]) -> bool:
    pairs = set(pairwise(lows))
    return not _OBLIGES.isdisjoint(lows) or ("have", "to") in pairs or ("has", "to") in pairs


def _permits(
    claim: ReadSentence, one: ReadSentence, theirs: Sequence[str], source: PassageFacts
) -> bool:
    """Return whether a clause allows what a claim makes a duty of, and none demands it."""
    for at, low in enumerate(theirs):
        if low not in _PERMITS or theirs[at + 1 : at + 2] == ["only"]:
            continue
        start = next((k + 1 for k in range(at - 1, -1, -1) if theirs[k] in _ENDS), 0)
        end = _until(theirs, at + 1)
        if not _DENIES.isdisjoint(theirs[start:end]) or "only" in theirs[start:end]:
            continue
        deed = _said(one, at + 1, end)
        clause = _said(one, start, end)
        if len(clause) < _SURE or len(deed) < _LEAST:
            continue
        if source.covered(clause, claim.content) < _NEARLY_ALL or not _is_own(claim, deed):
            continue
        if not any(_obliges(_lows(other)) and deed <= other.content for _, other in
                   source.sentences):  # fmt: skip
            return True
    return False


def _is_own(claim: ReadSentence, deed: Stems) -> bool:
    """Return whether the deed follows the claim's own "must"."""
    lows = _lows(claim)
    for at, low in enumerate(lows):
        if low in _OBLIGES or (low in ("have", "has") and lows[at + 1 : at + 2] == ["to"]):
            said = _said(claim, at + 1, _until(lows, at + 1))
            if len(deed & said) >= _LEAST:
                return True
    return False
