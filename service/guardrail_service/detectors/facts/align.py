"""Finds the passage facts that a claim's fact may be compared with, and says which are alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

import re2

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.amounts import Date, Fact
from guardrail_service.detectors.facts.languages import folded, is_han
from guardrail_service.detectors.facts.read import ReadSentence
from guardrail_service.text.budget import in_time
from guardrail_service.text.cached import cached_property
from guardrail_service.text.patterns.search import encodable

_SEASON = re2.compile(r"\b(?:19|20)\d\d[-/\x{2013}]\d\d\b")
LONG_NAME = 3
"""Letters of a name at least that is looked for."""
MOST_LETTERS = 20
"""Letters of a word that are compared at most."""


class Place(NamedTuple):
    """A piece of a passage: passage `context`, code points [start, end)."""

    context: int
    start: int
    end: int


class Held(NamedTuple):
    """A passage fact with its sentence, the one before, and the passage's number."""

    fact: Fact
    read: ReadSentence
    before: ReadSentence | None
    context: int

    @property
    def near(self) -> set[str]:
        """Return the stems near it."""
        return around(self.read, self.fact, self.before)

    @property
    def place(self) -> Place:
        """Return where it stands."""
        return Place(
            self.context, self.read.start + self.fact.start, self.read.start + self.fact.end
        )


class PassageFacts:
    """Everything the passages and the question hold.

    Args:
        passages: The sentences of each passage, read.
        question: The question, read.
    """

    def __init__(
        self, passages: Sequence[Sequence[ReadSentence]], question: ReadSentence | None
    ) -> None:
        self.passages = passages
        self._run_sums: dict[tuple[str, float], frozenset[float]] = {}
        self.question = question
        self.sentences = [(number, one) for number, part in enumerate(passages) for one in part]
        self.held = [
            Held(fact, one, part[place - 1] if place else None, number)
            for number, part in enumerate(passages)
            for place, one in enumerate(part)
            for fact in one.facts
        ]

    @cached_property
    def signals(self) -> frozenset[str]:
        """Return the signals of all passage sentences."""
        return frozenset[str]().union(*(one.signals for _, one in self.sentences))

    @cached_property
    def bases(self) -> list[Fact]:
        """Return the amounts that others are told for: "per 100 g"."""
        return [
            held.fact
            for held in self.held
            if held.fact.token
            and held.read.tokens[held.fact.token - 1].low in ("per", "for", "serves")
            and (held.fact.unit or _is_portion(held))
        ] + [base for _, one in self.sentences if (base := _list_base(one)) is not None]

    def agreeing(self, fact: Fact) -> list[Held]:
        """Return the passage facts that may be one value with a claim's."""
        found = [held for held in in_time(self.comparable(fact)) if agrees(fact, held.fact)]
        if found and fact.date is not None and fact.bound in ("before", "after"):
            found = self._bounded(fact, fact.date, found)
        if not found and is_amount(fact) and self._scales:
            found = [
                held
                for scale in self._scales
                for held in in_time(self.comparable(fact))
                if agrees(_scaled(fact, scale), held.fact)
            ]
        return found

    def _bounded(self, fact: Fact, date: Date, found: list[Held]) -> list[Held]:
        """Return the equal dates only where a passage has the claim's "after" with a date, too."""
        if not any(held.fact.date and held.fact.bound == fact.bound for held in self.held):
            return found
        return [held for held in found if held.fact.date and dates_agree(date, held.fact.date)]

    def comparable(self, fact: Fact) -> Sequence[Held]:
        """Return the passage facts of a unit that a claim's may be equal to."""
        if not fact.unit:
            return self.held
        return self._comparable(_family(fact.unit))

    @cached_property
    def _families(self) -> dict[str, list[Held]]:
        found: dict[str, list[Held]] = {}
        for held in self.held:
            found.setdefault(_family(held.fact.unit), []).append(held)
        return found

    def _comparable(self, family: str) -> Sequence[Held]:
        bare = self._families.get("", [])
        return [*self._families.get(family, []), *bare] if bare else self._families.get(family, [])

    @cached_property
    def _scales(self) -> tuple[float, ...]:
        """Return by what tables are scaled: "(in thousands)"."""
        found = set()
        for _, one in self.sentences:
            for first, second in pairwise(one.tokens):
                if first.low == "in" and second.low in _TABLE_SCALES:
                    found.add(words.SCALES[second.low])
        return tuple(found)

    def has_unit(self, fact: Fact) -> bool:
        """Return whether passages or question use the unit or currency of an amount."""
        return any(
            one.unit == fact.unit and (one.factor == fact.factor or one.kind == "money")
            for one in chain((held.fact for held in self.held), self.asked)
        )

    def is_alone(self, fact: Fact) -> bool:
        """Return whether no other passage fact has a fact's unit."""
        return bool(fact.unit) and sum(one.fact.unit == fact.unit for one in self.held) == 1

    @cached_property
    def contents(self) -> list[frozenset[str]]:
        """Return the stems of each passage."""
        return [frozenset[str]().union(*(read.content for read in part)) for part in self.passages]

    @cached_property
    def cut_sentences(self) -> list[tuple[int, frozenset[str], bool]]:
        """Return each sentence's passage, how its stems begin, and whether it denies something."""
        return [
            (
                place,
                frozenset(stem[:BEGINNING] for stem in one.stems),
                not words.DENYING.isdisjoint(token.low for token in one.tokens),
            )
            for place, one in in_time(self.sentences)
        ]

    def is_sum_of_run(self, fact: Fact) -> bool:
        """Return whether three to eight neighbouring amounts of a passage come to a number."""
        key = fact.unit, fact.factor
        if key not in self._run_sums:
            sums: set[float] = set()
            for passage in in_time(self.passages):
                row = [
                    one.raw
                    for read in passage
                    for one in read.facts
                    if (one.unit, one.factor) == key and not one.is_range
                ]
                total = [0.0, *accumulate(row)]
                for size in range(_STAGES, _MOST_STAGES + 1):
                    ends = zip(total, total[size:], strict=False)
                    sums.update(round(high - low, _PLACES) for low, high in ends)
            self._run_sums[key] = frozenset(sums)
        return round(fact.raw, _PLACES) in self._run_sums[key]

    def is_sum_of_column(self, fact: Fact) -> bool:
        """Return whether a column of a passage's table comes to a number."""
        return (fact.unit, round(fact.values[0], _PLACES)) in self._column_sums

    @cached_property
    def _column_sums(self) -> frozenset[tuple[str, float]]:
        found: set[tuple[str, float]] = set()
        for passage in in_time(self.passages):
            rows: list[tuple[Fact, ...]] = [()]
            for read in passage:
                for line in _table_rows(read):
                    if len(line) != len(rows[-1]):
                        found |= _sums(rows)
                        rows = []
                    rows.append(line)
            found |= _sums(rows)
        return frozenset(found)

    def is_turned(self, claim: ReadSentence, fact: Fact) -> Held | None:
        """Return where "at most" stands in place of the claim's "at least", or the reverse."""
        turned = _TURNED.get(fact.bound)
        if turned is None:
            return None
        equal = [
            one
            for one in in_time(self.held)
            if one.fact.unit == fact.unit and one.fact.values[0] == fact.values[0]
        ]
        if not equal or not all(one.fact.bound in turned for one in equal):
            return None
        if self._has_other_side(claim, fact, equal[0]):
            return None
        near = around(claim, fact)
        return equal[0] if self.covered(near, equal[0].read.content) > 0.5 else None

    @staticmethod
    def _has_other_side(claim: ReadSentence, fact: Fact, held: Held) -> bool:
        """Return whether a claim tells of a bound's other side.

        "42 for plots over 200 m2" of "28 for plots up to 200 m2, 42 for larger ones".
        """
        tokens = held.read.tokens[held.fact.last :]
        if _OTHER_SIDE.get(fact.bound, frozenset[str]()).isdisjoint(token.low for token in tokens):
            return False
        beside = [one for one in claim.facts if one is not fact]
        behind = [one for one in held.read.facts if one.token > held.fact.token]
        return not beside or any(agrees(one, other) for one in beside for other in behind)

    def of_other_unit(self, fact: Fact, agreeing: Sequence[Held]) -> Held | None:
        """Return the bare number whose sentence names another unit than a claim's amount has.

        "ttl is given in seconds; the default is 300" is not "300 milliseconds".
        """
        if fact.kind not in ("measure", "duration") or any(held.fact.unit for held in agreeing):
            return None
        if self.has_unit(fact):
            return None
        behind = [(token.low,) for token in agreeing[0].read.tokens[1:]]  # no title: "Minutes, ..."
        units = [words.UNITS[low] for low in behind if low in words.UNITS]
        same = [factor for dimension, factor in units if dimension == fact.unit]
        return agreeing[0] if same and fact.factor not in same else None

    def nearest(self, claim: ReadSentence, fact: Fact, held: Sequence[Held]) -> Held:
        """Return the passage fact that stands among most of the claim's own words."""
        if len(held) == 1:
            return held[0]
        near = around(claim, fact)
        return max(
            held,
            key=lambda one: (
                self.covered(near, one.near) + 0.5 * self.covered(near, one.read.content)
            ),
        )

    @cached_property
    def numbers(self) -> frozenset[float]:
        """Return every number that stands in a passage or the question."""
        asked = (self.question,) if self.question else ()
        return frozenset(chain.from_iterable(
            one.numbers for one in (*(read for _, read in self.sentences), *asked)
        ))  # fmt: skip

    def numbers_for(self, fact: Fact) -> frozenset[float]:
        """Return the numbers of passages and question that are no durations, times or shares."""
        if not is_amount(fact) or fact.kind == "percentage":
            return self.numbers
        others: set[float] = set()
        own: set[float] = set()
        for one in chain((held.fact for held in self.held), self.asked):
            is_other = one.unit != fact.unit and one.kind in _NO_AMOUNTS
            (others if is_other else own).update((one.raw, *one.values))
        return self.numbers - (others - own)

    @cached_property
    def months(self) -> frozenset[int]:
        """Return the months that passages name in any form: "Apr" in a table."""
        every = frozenset[str]().union(*(one.lows for _, one in self.sentences))
        return frozenset(words.MONTHS[low] for low in every & words.MONTHS.keys())

    @cached_property
    def years(self) -> frozenset[int]:
        """Return the years of passages."""
        dates = (held.fact.date for held in self.held)
        return frozenset(date[0] for date in dates if date is not None and date[0] is not None)

    @cached_property
    def has_seasons(self) -> bool:
        """True if a passage names a season of two years: "2018-19"."""
        return any(_SEASON.search(encodable(one.text)) for _, one in self.sentences)

    @cached_property
    def has_dates(self) -> bool:
        """True if a passage names a day with its month and year."""
        return any(held.fact.date is not None and None not in held.fact.date for held in self.held)

    @cached_property
    def _counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for _, one in self.sentences:
            for stem in one.content:
                counts[stem] = counts.get(stem, 0) + 1
        return counts

    @cached_property
    def has_times(self) -> bool:
        """Return whether a passage tells a time of day."""
        return any(held.fact.unit == "time" for held in self.held)

    @cached_property
    def named(self) -> frozenset[str]:
        """Return the stems of words that have a capital inside a sentence."""
        return frozenset(
            stem
            for _, one in self.sentences
            for stem, token, before in zip(one.stems[1:], one.tokens[1:], one.tokens, strict=False)
            if stem and token.kind == "w" and token.text[0].isupper() and before.kind == "w"
        )

    @property
    def known(self) -> frozenset[str]:
        """Return every stem of the passages."""
        return frozenset(self._counts)

    def weight(self, stem: str) -> float:
        """Return how much a word tells: rare ones more, unknown ones most."""
        return math.log(1 + (len(self.sentences) + 1) / (self._counts.get(stem, 0) + 0.5))

    def is_known(self, stem: str) -> bool:
        """Return whether a passage has a word."""
        return stem in self._counts

    @cached_property
    def beginnings(self) -> frozenset[str]:
        """The beginnings of the words of passages and question, from `LONG_NAME` letters on."""
        found: set[str] = set()
        for one in self._every():
            for token in in_time(one.tokens, every=256):
                if token.kind == "w":
                    word = folded(token.text)
                    sizes = range(LONG_NAME, min(len(word), MOST_LETTERS) + 1)
                    found.update(word[:size] for size in sizes)
        return frozenset(found)

    @cached_property
    def han(self) -> frozenset[str]:
        """The Chinese signs of passages and question."""
        return frozenset(sign for one in self._every() for sign in one.text if is_han(sign))

    @property
    def asked(self) -> tuple[Fact, ...]:
        """The question's facts."""
        return self.question.facts if self.question is not None else ()

    def is_asked(self, fact: Fact) -> bool:
        """Return whether the question says a fact."""
        return any(agrees(fact, one) for one in self.asked)

    def _every(self) -> list[ReadSentence]:
        asked = [] if self.question is None else [self.question]
        return [*(one for _, one in self.sentences), *asked]

    def covered(self, wanted: Iterable[str], by: frozenset[str] | set[str]) -> float:
        """Return the weighted share of some stems that others hold; 0 without any."""
        total = shared = 0.0
        for stem in wanted:
            weight = self.weight(stem)
            total += weight
            shared += weight if stem in by else 0.0
        return shared / total if total else 0.0


def _table_rows(read: ReadSentence) -> Iterator[tuple[Fact, ...]]:
    """Yield the facts of each table row of a sentence."""
    lines: dict[int, list[Fact]] = {}
    for fact in read.facts if "|" in read.text else ():
        lines.setdefault(read.text.count("\n", 0, fact.start), []).append(fact)
    whole = read.text.split("\n")
    yield from (tuple(facts) for at, facts in sorted(lines.items()) if "|" in whole[at])


def _sums(rows: Sequence[tuple[Fact, ...]]) -> set[tuple[str, float]]:
    columns = zip(*rows, strict=True) if len(rows) > 1 and rows[0] else ()
    return {
        (column[0].unit, round(sum(fact.values[0] for fact in column), _PLACES))
        for column in columns
        if len({fact.unit for fact in column}) == 1 and is_amount(column[0])
    }


BEGINNING = 6
"""Letters of stems that are compared: "detection" is of detecting."""
_STAGES, _MOST_STAGES, _PLACES = 3, 8, 6
"""Amounts that come to another: of two too many do."""
_MORE = words.listed("larger bigger higher longer older heavier dearer")
_LESS = words.listed("smaller lower shorter younger lighter cheaper otherwise")
_OTHER_SIDE = {"over": _MORE, "least": _MORE, "under": _LESS, "most": _LESS}
"""Words behind a bound that tell of its other side."""


def _is_portion(held: Held) -> bool:
    """Return whether a count tells for how many eaters something is: "serves 4"."""
    before = held.read.tokens[held.fact.token - 1].low
    return before == "serves" or not _EATERS.isdisjoint(held.fact.nouns[:1])


_EATERS = frozenset(("person", "peopl", "serv", "port", "portion", "guest", "head"))
_NO_AMOUNTS = frozenset(("duration", "time", "percentage", "weekday"))
_TURNED = {
    "least": ("most", "under"), "most": ("least", "over"), "after": ("before",),
    "before": ("after",), "over": ("under", "most"), "under": ("over", "least"),
}  # fmt: skip
_TABLE_SCALES = frozenset(("thousands", "millions", "billions"))


def _family(unit: str) -> str:
    """Return what units that may agree have in common."""
    return "money" if unit.startswith("money") else unit


def _scaled(fact: Fact, scale: float) -> Fact:
    """Return an amount as a table in thousands or millions writes it."""
    values = tuple(value / scale for value in fact.values)
    return replace(fact, values=values, raw=fact.raw / scale, step=fact.step / scale)


def _list_base(one: ReadSentence) -> Fact | None:
    """Return the unit for which a price list tells its amounts: "Prices per kilogram: ..."."""
    for at, token in enumerate(one.tokens[:_HEADING]):
        if token.text == ":":
            return None
        named = one.tokens[at + 1 : at + 3]
        unit = words.UNITS.get((named[0].low,)) if token.low == "per" and named else None
        if unit is not None and unit[0] in _SOLD_BY and [t.text for t in named[1:]] == [":"]:
            return Fact(token.start, named[0].end, "measure", unit[0], (unit[1],), 1.0, unit[1])
    return None


_HEADING = 16
_SOLD_BY = frozenset(("mass", "volume", "length", "area"))


def agrees(claim: Fact, held: Fact) -> bool:
    """Return whether two facts of any kind may be one value."""
    if claim.date is not None and held.date is not None:
        return dates_agree(claim.date, held.date) or _in_order(claim, held)
    if claim.unit == held.unit:
        if claim.unit == "ordinal" and claim.nouns and held.nouns and not _share_noun(claim, held):
            return False
        slack = _slack(claim, held) if claim.factor != held.factor else 0.0
        scale = _rate_scale(claim, held)
        if scale is not None and scale != 1.0:
            slack = max(slack, 0.035)
            held = replace(held, step=held.step * scale)
            return any(
                _close(a, b * scale, claim, held, slack) for a in claim.values for b in held.values
            )
        if claim.unit == "temperature" and claim.factor != held.factor:
            near = 1.5 if claim.bound in words.LOOSE else 0.6
            if claim.values[0] > _OVEN and _are_marks(claim, held):
                near = _OVEN_STEP
            return abs(claim.values[0] - held.values[0]) <= max(
                near, 0.5000001 * claim.step * claim.factor
            )
        return any(_close(a, b, claim, held, slack) for a in claim.values for b in held.values)
    if "" in (claim.unit, held.unit):
        if _are_apart(claim, held):
            return False
        ours = (claim.raw, *claim.values) if claim.date is None else (claim.values[0],)
        theirs = (held.raw, *held.values)
        if held.date is not None:
            theirs = (float(held.date[0] or 0),)
        return any(_close(a, b, claim, held, 0.0, bare=True) for a in ours for b in theirs)
    if claim.unit.startswith("money") and held.unit.startswith("money"):
        if "money:cent" in (claim.unit, held.unit):
            scale = 0.01 if claim.unit == "money:cent" else 100.0
            return abs(claim.raw * scale - held.raw) < 1e-6
        if "money:kr" in (claim.unit, held.unit):
            return {claim.unit, held.unit} <= _CROWNS and claim.raw == held.raw
        return False
    if {claim.unit, held.unit} == {"mass", "money:GBP"}:  # "pounds" are both
        return claim.raw == held.raw
    return False


_OVEN, _OVEN_STEP = 120.0, 4.5
"""Degrees Celsius from which ovens are set in steps, and how far apart these are: 180 is 350 F."""


def _are_marks(claim: Fact, held: Fact) -> bool:
    """Return whether two temperatures are marks of ovens: tens of Celsius, 25 of Fahrenheit."""
    return all(one.raw % (10 if one.factor == 1 else 25) == 0 for one in (claim, held))


def _rate_scale(claim: Fact, held: Fact) -> float | None:
    """Return by what to multiply "a year" to have it "a month"; None without two such rates."""
    if claim.per is None or held.per is None or claim.per[0] != held.per[0]:
        return None
    return claim.per[1] / held.per[1]


def _are_apart(claim: Fact, held: Fact) -> bool:
    """Return whether a number without a unit is none of the other's: "two loaves", "two hours"."""
    bare, other = (claim, held) if not claim.unit else (held, claim)
    if other.kind == "number":
        return not bare.is_word and bare.raw > _FEW
    if other.date is not None:
        return bool(claim.bound or bare.is_word or bare.nouns)
    return bare.is_word or (bool(bare.nouns) and other.kind in ("money", "percentage"))


_FEW = 20


def _slack(claim: Fact, held: Fact) -> float:
    """Return by how much, relatively, two amounts in different units may differ."""
    if claim.unit == "duration" and max(claim.factor, held.factor) < words.MONTH_S:
        return 1e-6
    return words.SLACK.get(claim.unit, 0.02)


_CROWNS = frozenset(("money:kr", "money:SEK", "money:NOK", "money:DKK"))


def dates_agree(one: Date, other: Date) -> bool:
    """Return whether two dates are equal in every part that both have."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    return bool(pairs) and all(a == b for a, b in pairs)


def _in_order(claim: Fact, held: Fact) -> bool:
    """Return whether a passage's date lies on the side of the claim's that the claim says."""
    if claim.date is None or held.date is None:
        return False
    if claim.bound not in ("before", "after", "under", "over"):
        return False
    ours, theirs = _comparable(claim.date, held.date)
    if claim.bound in ("before", "under"):
        return theirs < ours
    return theirs > ours


def _comparable(one: Date, other: Date) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the leading parts that both dates have."""
    shared = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    return tuple(a for a, _ in shared), tuple(b for _, b in shared)


def _close(
    ours: float, theirs: float, claim: Fact, held: Fact, slack: float, bare: bool = False
) -> bool:
    if ours == theirs:
        return True
    if min(ours, theirs) <= 0:
        return abs(ours - theirs) < 1e-9
    ratio = ours / theirs
    if abs(ratio - 1) < 1e-9:
        return True
    if claim.unit in ("time", "weekday", "ordinal") or held.unit in ("time", "weekday", "ordinal"):
        return False
    if claim.bound in ("over", "under"):
        if held.bound in ("over", "under", "least", "most") and held.bound != claim.bound:
            return ours < theirs if claim.bound == "over" else theirs < ours
        if held.bound == claim.bound and max(ratio, 1 / ratio) > _NEAR_BOUND:
            return False  # "below 2,500" for "below 1,500"
        return _in_bound(ours, theirs, claim, held)
    difference = abs(ours - theirs)
    loose = claim.bound in words.LOOSE or held.bound in words.LOOSE
    half = min(0.5000001 * claim.step * claim.factor, 0.06 * ours)
    if (
        difference <= half
        and held.step < claim.step
        and abs(ratio - 1) <= (0.12 if loose else 0.025)
    ):
        return True
    if loose and abs(ratio - 1) <= 0.06:
        return True
    return bool(slack) and abs(ratio - 1) <= slack and not bare


_NEAR_BOUND = 1.25


def _in_bound(ours: float, theirs: float, claim: Fact, held: Fact) -> bool:
    """Return whether a passage's exact value lies near the claim's bound, on its right side."""
    if claim.unit != held.unit:
        return False
    if claim.unit == "" and not same_things(claim, held):
        return not held.is_word and 1 / 1.25 <= ours / theirs <= 1.25
    if claim.bound == "over":
        return ours <= theirs <= ours * 2.5
    return ours >= theirs >= ours / 2.5


def rivals(claim: Fact, held: Fact) -> bool:
    """Return whether a passage fact could be the claim's value in another version."""
    if claim.unit == held.unit:
        if claim.unit == "":
            if claim.is_range and held.is_range and claim.other == held.other:
                return True
            return same_things(claim, held)
        if claim.unit == "ordinal":
            return bool(claim.nouns and held.nouns and claim.nouns[0] == held.nouns[0])
        if claim.date is not None and held.date is not None:
            return any(a and b for a, b in zip(claim.date, held.date, strict=True))
        return True
    if {claim.unit, held.unit} == _DAYS:
        return True
    return claim.unit.startswith("money") and held.unit.startswith("money")


_DAYS = {"duration", "workdays"}


def is_amount(fact: Fact) -> bool:
    """Return whether a fact has a unit or a currency."""
    return fact.kind in ("money", "percentage", "measure", "duration")


def is_rate(claim: ReadSentence, fact: Fact) -> bool:
    """Return whether a claim's fact is an amount per another amount: "14 kWh per 100 km"."""
    after = claim.tokens[fact.last : fact.last + 2]
    return len(after) == 2 and after[0].low in ("per", "/") and after[1].kind == "n"


def is_other_unit(claim: Fact, held: Fact) -> bool:
    """Return whether two amounts differ in nothing but their unit or currency."""
    scale = _rate_scale(claim, held)
    if claim.kind == "measure" and (claim.per is None) != (held.per is None):
        return False  # 5 MB a second and 5 TB
    return (
        claim.raw == held.raw
        and claim.unit != ""
        and held.unit != ""
        and (
            claim.unit != held.unit
            or claim.factor != held.factor
            or (scale is not None and scale != 1.0)
        )
        and is_amount(claim)
        and is_amount(held)
    )


def same_things(claim: Fact, held: Fact) -> bool:
    """Return whether two counts count the same: they share a noun."""
    if claim.lead and claim.lead == held.lead and not claim.nouns:
        return True
    if not claim.nouns or not held.nouns:
        return False
    return claim.nouns[0] in held.nouns[:3] or held.nouns[0] in claim.nouns[:3]


def _share_noun(claim: Fact, held: Fact) -> bool:
    return not set(claim.nouns).isdisjoint(held.nouns)


WINDOW = 8
"""Tokens on either side of a number that may say what it is about."""


_PRONOUNS = frozenset(["it", "they", "he", "she", "its", "their", "this", "these", "both"])


def around(read: ReadSentence, fact: Fact, before: ReadSentence | None = None) -> set[str]:
    """Return the stems of a fact's own clause, near it.

    A clause without a subject of its own ("..., and costs 10 euros") has the sentence's first
    words; a sentence that begins with a pronoun has the first words of the one before.
    """
    clause = read.clauses[fact.token]
    low, high = max(0, fact.token - WINDOW), min(len(read.stems), fact.last + WINDOW)
    found = {
        read.stems[at]
        for at in range(low, high)
        if read.stems[at] and read.clauses[at] == clause and not fact.token <= at < fact.last
    }
    if "|" in read.text:
        found |= _row_label(read, fact)
    ahead = [
        stem
        for at in range(low, fact.token)
        if (stem := read.stems[at]) and read.clauses[at] == clause
    ]
    if clause and len(ahead) <= 1:
        found.update(_subject(read))
    if before is not None and read.tokens and read.tokens[0].low in _PRONOUNS:
        found.update(_subject(before))
    return found


def _row_label(read: ReadSentence, fact: Fact) -> set[str]:
    """Return the stems of the first cell of the table row that a fact stands in."""
    line = read.text.rfind("\n", 0, fact.start) + 1
    row = read.text[line : fact.start]
    if "|" not in row:
        return set()
    cell = row.lstrip("| \t")
    start = line + len(row) - len(cell)
    end = start + len(cell.split("|", 1)[0])
    return {
        stem
        for stem, token in zip(read.stems, read.tokens, strict=True)
        if stem and start <= token.start < end
    }


def dated_words(read: ReadSentence, fact: Fact, before: ReadSentence | None = None) -> set[str]:
    """Return what stands near a fact, years and other dates of its clause included."""
    clause = read.clauses[fact.token]
    dates = {
        str(other.date)
        for other in read.facts
        if other.date is not None and read.clauses[other.token] == clause
    }
    return around(read, fact, before) | dates


def clause_words(read: ReadSentence, fact: Fact) -> set[str]:
    """Return the stems of a fact's clause, however far from it."""
    clause = read.clauses[fact.token]
    return {
        stem for stem, own in zip(read.stems, read.clauses, strict=True) if stem and own == clause
    }


def labels(read: ReadSentence, near: set[str]) -> set[str]:
    """Return the stems that are names: capitalised inside a sentence, or a number behind one."""
    found = {stem for stem in near if stem.startswith("#")}
    for at, token in enumerate(read.tokens):
        if at and token.kind == "w" and token.text[0].isupper() and read.stems[at] in near:
            found.add(read.stems[at])
    return found


def _subject(read: ReadSentence) -> list[str]:
    """Return the stems that a sentence begins with."""
    return [stem for stem in read.stems[:7] if stem][:3]


def alone(read: ReadSentence, fact: Fact) -> set[str]:
    """Return a sentence's stems without those of the fact itself."""
    return {stem for at, stem in enumerate(read.stems) if stem and not fact.token <= at < fact.last}


_OPERATORS = {"+": "+", "-": "-", "\u2013": "-", "\u2212": "-", "\u00d7": "*", "x": "*", "*": "*",
              "/": "/", "\u00f7": "/"}  # fmt: skip


def equations(read: ReadSentence) -> Iterator[Equation]:
    """Yield what a sentence computes: "890 + 160 = 1,150", "1,150 (890 + 260)"."""
    yield from _bracketed(read)
    for place, token in enumerate(read.tokens):
        if token.text not in _RESULTS or (
            token.text == "|"
            and _OPERATORS.keys().isdisjoint(t.low for t in read.tokens[max(0, place - 6) : place])
        ):
            continue
        result = next(
            (
                fact
                for fact in read.facts
                if place < fact.last and place < fact.token + 1 <= place + 3
            ),
            None,
        )
        terms = [fact for fact in read.facts if fact.last <= place][-4:]
        if result is None or len(terms) < 2 or _is_fraction(read, result):
            continue
        signs = []
        for one, other in zip(terms, [*terms[1:], None], strict=True):
            until = place if other is None else other.token
            found = [
                _OPERATORS[t.low]
                for t in read.tokens[one.last : until]
                if t.low in _OPERATORS and not _begins_line(read.text, t.start)
                if not (t.text == "/" and read.text[t.end : t.end + 1].isalpha())  # a path
            ]
            signs.append(found[0] if len(found) == 1 else "")
        while len(signs) > 2 and not signs[0]:
            terms, signs = terms[1:], signs[1:]
        if signs[-1] or not all(signs[:-1]) or any(f.unit == "%" or f.date for f in terms):
            continue
        value = _computed([_in_unit_of(fact, result) for fact in terms], signs[:-1])
        opened = [t.text for t in read.tokens[max(0, terms[0].token - 2) : terms[0].token]]
        if "(" in opened and ")" in [t.text for t in read.tokens[terms[1].last : place]]:
            first = _computed([_in_unit_of(fact, result) for fact in terms[:2]], signs[:1])
            rest = [_in_unit_of(fact, result) for fact in terms[2:]]
            value = None if first is None else _computed([first, *rest], signs[1:-1])
        if value is None or any(fact.unit == "percent" for fact in (*terms, result)):
            continue
        slack = max(0.5000001 * min(result.step, 1.0), 0.005 * abs(value)) if value % 1 else 1e-6
        told = f"{terms[0].raw:.6g}" + "".join(
            f" {_SHOWN[sign]} {fact.raw:.6g}" for sign, fact in zip(signs, terms[1:], strict=False)
        )
        is_right = abs(value - result.raw) <= slack or (
            any(term.factor >= _KILO > result.factor for term in terms)
            and abs(result.raw / (value or 1.0) / _KILO - 1) < _EXACT  # tonnes, and a kilo's price
        )
        if is_right or not (token.text == "|" or result.bound or result.step > _ROUNDED):
            yield Equation(result.token, f"{told} = {value:.6g}", is_right)


def _bracketed(read: ReadSentence) -> Iterator[Equation]:
    """Yield the amounts behind which a calculation that gives them stands in brackets.

    "4.3 solid metres (6 / 1.4)".
    """
    for one, first, second in zip(read.facts, read.facts[1:], read.facts[2:], strict=False):
        between = [token.text for token in read.tokens[one.last : first.token]]
        sign = [_OPERATORS.get(t.low, "") for t in read.tokens[first.last : second.token]]
        after = [token.text for token in read.tokens[second.last : second.last + 1]]
        if "(" not in between or len(between) > _NOUNS or after != [")"] or len(sign) != 1:
            continue
        terms = [_in_unit_of(fact, one) for fact in (first, second)]
        value = _computed(terms, sign) if sign[0] else None
        if value is not None and abs(value - one.raw) <= max(0.5000001 * one.step, 1e-6):
            yield Equation(
                one.token, f"{first.raw:.6g} {_SHOWN[sign[0]]} {second.raw:.6g} = {one.raw:.6g}",
                True,
            )  # fmt: skip


_NOUNS = 3
"""Tokens between an amount and its calculation, its noun included."""


_KILO, _EXACT = 1e3, 1e-9
_RESULTS = frozenset(("=", "|"))
"""What a result stands behind; in a table the next cell may have it."""
_ROUNDED = 100
"""Step of a last digit from which on a result is rounded somehow."""


class Equation(NamedTuple):
    """A calculation that a sentence shows: the token of its result, and what comes out."""

    token: int
    told: str
    is_right: bool


def _is_fraction(read: ReadSentence, result: Fact) -> bool:
    """Return whether a number goes on: "= 5/6", "= .833"."""
    after = read.text[result.end : result.end + 2]
    return (after[:1] == "/" and after[1:].isdigit()) or read.text[: result.start].endswith(".")


def _in_unit_of(term: Fact, result: Fact) -> float:
    """Return a term of an equation in the unit of its result: "3,200 x 31 ct = 992 euros"."""
    if term.unit == _CENT and result.unit.startswith("money:") and result.unit != _CENT:
        return term.raw / 100
    is_same = term.unit == result.unit and term.factor != result.factor
    return term.values[0] / result.factor if is_same and term.unit != "temperature" else term.raw


_CENT = "money:cent"


def remainders(read: ReadSentence) -> Iterator[tuple[int, str]]:
    """Yield the tokens of rests that are not what is left: "nine, five of them, leaves three"."""
    lows = [token.low for token in read.tokens]
    if _REST.isdisjoint(lows) or len(read.facts) != len(("all", "part", "rest")):
        return
    every, part, rest = read.facts
    behind = lows[part.last : part.last + 2]
    near = lows[max(part.last, rest.token - 3) : rest.last + 3]
    if len({fact.unit for fact in (part, rest) if fact.unit != every.unit}) or every.bound:
        return
    if behind[:1] != ["of"] or behind[1:] not in (["them"], ["these"], ["those"], ["which"]):
        return
    left = every.values[0] - part.values[0]
    if not _REST.isdisjoint(near) and left > 0 and abs(left - rest.values[0]) > 1e-9:
        yield rest.token, f"{every.raw:.6g} - {part.raw:.6g} = {left / rest.factor:.6g}"


def _begins_line(text: str, at: int) -> bool:
    """Return whether nothing stands before a sign in its line: a list's mark is no minus."""
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


_REST = words.listed("leaves leaving left remaining remain remains")


_SHOWN = {"+": "+", "-": "-", "*": "\u00d7", "/": "/"}


def _computed(terms: Sequence[float], signs: Sequence[str]) -> float | None:
    """Return what some terms give, products first; None for a division by zero."""
    sums = [terms[0]]
    for sign, term in zip(signs, terms[1:], strict=True):
        if sign == "*":
            sums[-1] *= term
        elif sign == "/":
            if not term:
                return None
            sums[-1] /= term
        else:
            sums.append(term if sign == "+" else -term)
    return sum(sums)


def in_slot(
    claim: ReadSentence, fact: Fact, source: PassageFacts, agreeing: Sequence[Held]
) -> Held | None:
    """Return the passage number between the same words as a claim's, in a sentence without it."""
    if fact.is_range or fact.bound in words.LOOSE or fact.kind in ("date", "percentage"):
        return None
    ours = _neighbours(claim, fact)
    if ours is None or is_operand(claim, fact):
        return None
    if agreeing and "|" in claim.text:
        return None  # all cells stand between lines
    every = alone(claim, fact)
    for held in in_time(source.comparable(fact)):
        if held.fact.kind != fact.kind or held.fact.unit != fact.unit or agrees(fact, held.fact):
            continue
        if held.fact.bound != fact.bound or _neighbours(held.read, held.fact) != ours:
            continue
        if any(one.read is held.read for one in agreeing) or len(every & held.read.content) < 2:
            continue
        if source.covered(every, held.read.content) >= _SAME_SENTENCE:
            return held
    return None


def is_operand(claim: ReadSentence, fact: Fact) -> bool:
    """Return whether a number stands in a calculation: "240 + 45 = 285"."""
    beside = (*claim.tokens[max(0, fact.token - 2) : fact.token], *claim.tokens[fact.last :][:1])
    return any(token.text in _CALCULATES for token in beside)


_CALCULATES = frozenset("+=\u00d7*\u00f7")
_SAME_SENTENCE = 0.75


def _neighbours(read: ReadSentence, fact: Fact) -> tuple[str, ...] | None:
    """Return the two tokens before a number and the one behind it; None at either end."""
    lows = [token.low for token in read.tokens[max(0, fact.token - 2) : fact.last + 1]]
    before = min(2, fact.token)
    if before < 2:
        return None
    behind = lows[before + fact.last - fact.token :]
    return (*lows[:before], "" if not behind or behind[0] in _SIGNS_BEHIND else behind[0])


_SIGNS_BEHIND = frozenset(".,;:!)(")
