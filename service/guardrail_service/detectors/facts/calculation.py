"""The numbers that a claim's number may be computed from, and the calculation that gives it."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import chain, combinations, pairwise, permutations, product, zip_longest

import re2

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.align import Held, PassageFacts, is_amount
from guardrail_service.detectors.facts.amounts import Date, Fact
from guardrail_service.detectors.facts.derive import (
    MONTH_S,
    MOST,
    NO_AMOUNT,
    NO_YEAR,
    SAID_ELSEWHERE,
    ComputedFrom,
    by_formula,
    derived,
    from_own,
    in_unit,
    is_exactly,
    rounded_up,
    scaled,
    shown,
    times_of_day,
)
from guardrail_service.detectors.facts.languages import Token
from guardrail_service.detectors.facts.neighbours import neighbouring
from guardrail_service.detectors.facts.read import ReadSentence
from guardrail_service.text.budget import check_time, in_time
from guardrail_service.text.cached import cached_property
from guardrail_service.text.patterns.search import encodable


class Calculation:
    """Explains the numbers of one claim by those of passages, question and claim.

    Args:
        claim: The claim.
        source: Passages and question.
        given: The sentence of the answer before the claim.
        others: Numbers of the answer's other sentences.
        lines: The last amounts of the answer's sentences or lines, and the first ones.
        tells_sums: Whether words of calculation are known in the language.
        language: A code of two letters, "" for English.
        shares: What portions the answer speaks of, of the passages' "per 100 g".
    """

    def __init__(
        self,
        claim: ReadSentence,
        source: PassageFacts,
        given: Sequence[ReadSentence],
        tells_sums: bool,
        shares: Sequence[tuple[float, float, str]],
        language: str = "",
        others: Sequence[Fact] = (),
        lines: Sequence[Sequence[Fact]] = (),
    ) -> None:
        self.claim = claim
        self.source = source
        self.given = given
        self.tells_sums = tells_sums
        self.shares = shares
        self.language = language
        self.in_english = not language
        self.others = others[:_MOST_OTHERS]
        self.lines = lines

    def derived(self, fact: Fact, certain: bool = False) -> str:
        """Return how a number follows from numbers of passages, question and claim, or "".

        Args:
            fact: The number.
            certain: Whether a passage says another one among the same words. Then the claim must
                speak of a calculation itself, or multiply by a number that it or the question says.
        """
        between = _between(fact) if fact.is_range else None
        if between is not None and (told := self.derived(between, certain)):
            return told
        if fact.is_range and between is None and fact.kind == "duration" and self.computes:
            return self._gap(fact)
        if told := self._of_tier(fact):
            return told
        if fact.kind == "date":
            return neighbouring(self.claim, fact, self.source)
        if fact.is_range or fact.kind in ("weekday", "ordinal"):
            return ""
        operands, multipliers, combined = self._operands(fact)
        if fact.kind == "time":
            own = [ComputedFrom(other, SAID_ELSEWHERE) for other in self.others]
            return times_of_day(fact, [*own, *operands])
        if told := self._of_its_own(fact) or self._of_dates(fact) or self._listed_counts(fact):
            return told
        if not certain and (told := self._of_listed_ones(fact)):
            return told
        if self.shares and (told := scaled(fact, operands, self.shares)):
            return told
        if told := _for_one(fact, operands):
            return told
        if not self.in_english and (told := self._told_abroad(fact)):
            return told
        if certain and not self._computes_itself:
            return self._multiplied(fact, operands)
        held = [one for one in operands if one.group >= 0 or self._is_held(one.fact)]
        if told := by_formula(fact, held) or self._days_of_weeks(fact):
            return told
        for value in fact.values[:1] if self.in_english else fact.values:
            told = derived(
                replace(fact, raw=value / fact.factor),
                operands,
                multipliers,
                self.computes,
                self._speaks_of(words.CHANGES),
                self._halves,
                combined if self._announces else (),
                self._speaks_of(words.MEANS),
                self._announced and not self._shows_amounts(fact),
            )
            if told:
                return told
        return ""

    def _of_tier(self, fact: Fact) -> str:
        """Return which amount a tier begins right above: "1,000.01 to 2,000 euros"."""
        below = round(fact.values[0] - _ONE_CENT, 2)
        if not fact.is_range or fact.kind != "money" or round(fact.raw % 1, 2) != _ONE_CENT:
            return ""
        is_told = any(
            one.fact.unit == fact.unit and below in (*one.fact.values, one.fact.other)
            for one in in_time(self.source.held)
        )
        return f"{shown(below)} + 0.01 = {fact.raw:.2f}" if is_told else ""

    def _gap(self, fact: Fact) -> str:
        """Return which neighbouring years of a passage sentence a time lies between, or ""."""
        for _, one in in_time(self.source.sentences):
            years = sorted(f.date[0] for f in one.facts if f.date is not None and f.date[0])
            for first, last in pairwise(years):
                if is_exactly(fact, (last - first) * 12 * MONTH_S / fact.factor):
                    return f"{last} - {first} = {shown(fact.raw)}"
        return ""

    def _of_its_own(self, fact: Fact) -> str:
        """Return how a number follows from others of the answer and the question alone, or ""."""
        near = [one.fact for one in self._said_nearby(fact)]
        every = near if fact.unit == "duration" else [*near, *self.others]
        if not is_amount(fact) and fact.raw < _MANY:
            return ""
        if self._rounds and (told := rounded_up(fact, [*near, *self.others])):
            return told
        if told := self._rounded(fact, near):
            return told
        if fact.kind in ("number", "duration", "measure") and not self.computes:
            if self.in_english:
                return ""
            # Words of calculation are known of few languages.
            return from_own(fact, [one for one in every if self.source.agreeing(one)])
        if fact.kind == "money":  # "What if I repay 30,000?"
            bare = filter(_is_bare, self.source.asked)
            every = [*every, *(replace(one, kind="money", unit=fact.unit) for one in bare)]
        return from_own(fact, every, self.lines)

    def by_to(self, fact: Fact) -> str:
        """Return how "by 28 to 412" follows from 412 and the passages' 384, or ""."""
        tokens = self.claim.tokens
        ahead = next((t.low for t in reversed(tokens) if t.end <= fact.start), "")
        behind = next((one for one in self.claim.facts if one.token > fact.token), None)
        if behind is None or behind.unit != fact.unit:
            return ""
        between = [t.low for t in tokens if fact.end <= t.start and t.end <= behind.start]
        if ahead not in _BY or between[:1] != ["to"]:
            return ""
        whole = behind.values[0] / fact.factor
        known: set[float] = set()
        for _, read in in_time(self.source.sentences):
            told = {
                value / fact.factor
                for one in read.facts
                if one.unit in ("", fact.unit)
                for value in (one.values[0] if one.unit else one.raw * fact.factor, one.other or 0)
            }
            known |= told if whole in told else set()
        for before in sorted(known - {0.0}):
            if is_exactly(fact, abs(whole - before)):
                high, low = max(whole, before), min(whole, before)
                return f"{shown(high)} - {shown(low)} = {shown(fact.raw)}"
        return ""

    def _of_dates(self, fact: Fact) -> str:
        """Return which two days of the claim lie a duration apart: "two days, to 23 April"."""
        if fact.unit != "duration" or fact.factor not in _DAYS:
            return ""
        days = [f.date for f in self.claim.facts if f.date is not None]
        for one, other in combinations(days[:MOST], 2):
            start, end = _day(one, other[0]), _day(other, one[0])
            if start and end and abs((end - start).days) * 86_400 == fact.values[0]:
                return f"{end.day}. - {start.day}. = {shown(fact.raw)}"
        return ""

    def _of_listed_ones(self, fact: Fact) -> str:
        """Return how a number follows from amounts that passages list, or ""."""
        if fact.raw >= _MANY and self.source.is_sum_of_column(fact):
            return f"the sum of a column = {shown(fact.raw)}"
        return self._of_listed(fact) or self._of_shares(fact)

    def _of_listed(self, fact: Fact) -> str:
        """Return which neighbouring amounts of a passage come to a number: stages of a way."""
        if not is_amount(fact) or fact.raw < _MANY or fact.unit == "duration":
            return ""
        if self.source.is_sum_of_run(fact):
            return f"the sum of neighbouring amounts = {shown(fact.raw)}"
        return ""

    def _of_shares(self, fact: Fact) -> str:
        """Return which two shares of a passage sentence are so many points apart."""
        if fact.unit or not {"point", "points"} & set(fact.nouns[:2]):
            return ""
        for _, one in in_time(self.source.sentences):
            shares = [f.raw for f in one.facts if f.unit == "percent"]
            for a, b in combinations(shares[:MOST], 2):
                if is_exactly(fact, abs(a - b)):
                    return f"{shown(max(a, b))} - {shown(min(a, b))} = {shown(fact.raw)}"
        return ""

    def _told_abroad(self, fact: Fact) -> str:
        """Return which two numbers an answer in another language compares, or "".

        Differences where it says so ("um 5.500 höher", "3 km más"), and shares of its own numbers.
        """
        if fact.unit == "percent":
            own = [one.fact for one in self._said_nearby(fact)]
            own = [one for one in own if one.unit != "percent" and self.source.agreeing(one)]
            for one, other in permutations(own[:MOST], 2):
                a, b = one.values[0], other.values[0]
                if one.unit == other.unit and 0 < a < b and is_exactly(fact, 100 * a / b):
                    return f"{shown(a)} / {shown(b)} = {shown(fact.raw)} %"
            return ""
        tokens = self.claim.tokens
        ahead = next((t.text.lower() for t in reversed(tokens) if t.end <= fact.start), "")
        behind = [token.text.lower() for token in tokens[fact.last : fact.last + 1]]
        if ahead != _MORE_BY.get(self.language) and not _MORE_BEHIND.intersection(behind):
            return ""
        values = [one.fact.values[0] / fact.factor for one in self.source.held
                  if _same_unit(one.fact, fact)]  # fmt: skip
        for a, b in combinations(values[:MOST], 2):
            if is_exactly(fact, abs(a - b)):
                return f"{shown(max(a, b))} - {shown(min(a, b))} = {shown(fact.raw)}"
        return ""

    def _listed_counts(self, fact: Fact) -> str:
        """Return which counts of one passage sentence come to a number: "4 patients, 3, and 4"."""
        if fact.kind != "number" or fact.unit or not fact.nouns:
            return ""
        for _, one in in_time(self.source.sentences):
            counts = [f for f in one.facts if f.kind == "number" and not f.unit]
            at = next((k for k, f in enumerate(counts) if fact.nouns[0] in f.nouns[:1]), None)
            if at is None:
                continue
            row = [counts[at]]
            for count in counts[at + 1 :]:
                if count.nouns and count.nouns[0] != fact.nouns[0]:
                    break
                row.append(count)
            if len(row) > 1 and sum(f.raw for f in row) == fact.raw:
                return " + ".join(shown(f.raw) for f in row) + f" = {shown(fact.raw)}"
        return ""

    def _rounded(self, fact: Fact, near: Sequence[Fact]) -> str:
        """Return which number of the claim another one is rounded from: "49.56 → 49.60"."""
        if _ROUNDS.isdisjoint(token.low for token in self.claim.tokens):
            return ""
        for one in near:
            value = one.values[0] / fact.factor
            is_near = one.unit == fact.unit and 0 < abs(value - fact.raw) <= _ROUNDED * fact.raw
            if is_near and any(abs(round(value / to) * to - fact.raw) < 1e-9 for to in _TO):
                return f"{shown(value)} rounded = {shown(fact.raw)}"
        return ""

    def _is_held(self, fact: Fact) -> bool:
        """Return whether passages or the question have a number of the answer."""
        before = self.claim.tokens[max(0, fact.token - _RATED) : fact.token]
        if any(one is fact for one in self.claim.facts) and any(t.low == "at" for t in before):
            return True  # "at a steady 400 W"
        return bool(self.source.agreeing(fact)) or self.source.is_asked(fact)

    def _days_of_weeks(self, fact: Fact) -> str:
        """Return how many days "5 days in each of 51 weeks" are, or ""."""
        lengths = [one for one in self.claim.facts if one.unit == "duration" and one is not fact]
        for short, long in pairwise(lengths):
            between = {token.low for token in self.claim.tokens[short.last : long.token]}
            is_rate = not between.isdisjoint(("each", "every", "a", "per"))
            is_days = is_rate and short.factor == fact.factor < long.factor
            if is_days and is_exactly(fact, short.raw * long.raw):
                return f"{shown(long.raw)} \u00d7 {shown(short.raw)} = {shown(fact.raw)}"
        return ""

    def in_row(self, fact: Fact) -> str:
        """Return how a cell follows from two others of its row that passages have, or ""."""
        row = self.claim.text.rfind("\n", 0, fact.start)
        cells = [
            one
            for one in self.claim.facts
            if one is not fact
            and one.start > row
            and self.claim.text.find("\n", row + 1, one.end) < 0
            if one.kind not in NO_AMOUNT and self.source.agreeing(one)
        ]
        for one, other in combinations(cells, 2):
            a, b = one.raw, other.raw
            both = [("+", a + b), ("-", abs(a - b))] if one.unit == other.unit == fact.unit else []
            if one.unit != other.unit or not one.unit:
                both += [("\u00d7", a * b), ("/", max(a, b) / max(min(a, b), 1e-9))]
            for sign, result in both:
                if is_exactly(fact, result):
                    return f"{shown(a)} {sign} {shown(b)} = {shown(fact.raw)}"
        reliefs = [
            held.fact.raw
            for held in in_time(self.source.held, every=64)
            if held.fact.unit == fact.unit and not words.RELATIVE.isdisjoint(held.read.lows)
        ]
        for one, other in in_time(permutations(cells[:MOST], 2)):
            if one.unit == other.unit == fact.unit and is_exactly(fact, 12 * one.raw + other.raw):
                return f"12 \u00d7 {shown(one.raw)} + {shown(other.raw)} = {shown(fact.raw)}"
        times = {held.fact.raw for held in in_time(self.source.held, every=64)
                 if held.fact.unit == "times" and _is_factor(held)}  # fmt: skip
        for one, count in product(cells, sorted(times)):
            if one.unit == fact.unit and is_exactly(fact, one.raw * count):
                return f"{shown(count)} \u00d7 {shown(one.raw)} = {shown(fact.raw)}"
        for one in cells:
            for b in reliefs if one.unit == fact.unit and is_amount(fact) else ():
                for sign, result in (("+", one.raw + b), ("-", one.raw - b)):
                    if is_exactly(fact, result):
                        return f"{shown(one.raw)} {sign} {shown(b)} = {shown(fact.raw)}"
        return ""

    def plausible(self, fact: Fact) -> str:
        """Return a calculation of one step that gives the fact, or ""."""
        if fact.kind in ("weekday", "ordinal", "percentage") or (fact.is_range and not fact.date):
            return ""
        every = frozenset[str]().union(*(one.content for one in self._nearby()))
        halves = not (_TWOFOLD.isdisjoint(every) and _HALVES.isdisjoint(self.source.known))
        operands = self._operands(fact)[0]
        own = self._announces_itself
        values = fact.values[1:] if not self.in_english and is_amount(fact) else ()
        readings = (fact, *(replace(fact, raw=value / fact.factor) for value in values))
        telling = None if self._announced else self._telling(operands)
        found = (
            _one_step(one, operands, halves, not self.in_english, own, telling) for one in readings
        )
        return next((told for told in found if told), "")

    def told_by_another(self, fact: Fact) -> str:
        """Return how a number follows from two that a passage tells one by the other, or "".

        "46 nests, nine more than last year" tells of 37, "12 of 840 differ" of 828.
        """
        if fact.is_range and fact.other is not None and fact.other < fact.values[0]:
            fact = replace(fact, is_range=False)  # "fell from 3,280 to 2,870"
        if fact.is_range or fact.kind not in ("number", "money", "measure", "duration"):
            return ""
        every = [
            held
            for held in in_time(self.source.held, every=64)
            if held.fact.unit in ("", fact.unit) and held.fact.kind not in NO_AMOUNT
        ]
        for part, whole in pairwise(every):
            rest = whole.fact.raw - part.fact.raw
            if _is_part(part, whole) and is_exactly(fact, rest):
                return f"{shown(whole.fact.raw)} - {shown(part.fact.raw)} = {shown(rest)}"
            high, low = sorted((part.fact.raw, whole.fact.raw), reverse=True)
            if _are_readings(part, whole) and is_exactly(fact, high - low):
                return f"{shown(high)} - {shown(low)} = {shown(high - low)}"
        telling = [one for one in every if not words.TELLING.isdisjoint(one.read.lows)][:MOST]
        for change, base in in_time(product(telling, every), every=64):
            if change.fact is base.fact or not _may_be_added(fact, change, base):
                continue
            a, b = in_unit(fact, base.fact), in_unit(fact, change.fact)
            for sign, result in (("+", a + b), ("-", a - b)):
                if result > 0 and abs(result - fact.raw) < _EQUAL * fact.raw:
                    return f"{shown(a)} {sign} {shown(b)} = {shown(fact.raw)}"
        return ""

    @cached_property
    def computes(self) -> bool:
        """True if the claim or the question speaks of a calculation."""
        return (
            not self.tells_sums
            or self._compares
            or any(
                token.low in words.ARITHMETIC or token.text in "=+\u00d7"
                for one in self._nearby()
                for token in one.tokens
            )
        )

    def _speaks_of(self, listed: frozenset[str]) -> bool:
        """Return whether claim, question or the sentence before have one of some words."""
        return not self.tells_sums or any(not listed.isdisjoint(one.lows) for one in self._nearby())

    def _telling(self, operands: Sequence[ComputedFrom]) -> frozenset[int]:
        """Return the near passage sentences that tell a number by another: "3.1 seconds later"."""
        near = {one.group for one in operands[:_NEAREST] if one.group >= 0}
        tells = {
            at
            for at, (_, one) in enumerate(self.source.sentences)
            if {at - 1, at, at + 1} & near and not words.RELATIVE.isdisjoint(one.lows)
        }
        return frozenset(at for at in near if {at - 1, at, at + 1} & tells)

    @cached_property
    def _announced(self) -> bool:
        """True if somebody surely speaks of a calculation."""
        return self._compares or self._speaks_of(words.ANNOUNCED) or "=" in self.claim.text

    @cached_property
    def _rounds(self) -> bool:
        """True if a passage tells to round."""
        return "round" in self.source.known

    def _shows_amounts(self, fact: Fact) -> bool:
        """Return whether the answer says further amounts in a fact's unit, to compute with."""
        said = (one for read in (self.claim, *self.given) for one in read.facts)
        return is_amount(fact) and any(
            one.unit == fact.unit and one.factor == fact.factor and one.values[0] != fact.values[0]
            for one in said
        )

    @cached_property
    def _compares(self) -> bool:
        """True if a comparative stands beside a number: "2.8 kg heavier", "cheaper by 12"."""
        return any(
            any(_COMPARATIVE.fullmatch(encodable(token.low)) for token in self._behind_amount(fact))
            or self._is_by(fact)
            for fact in self.claim.facts
        )

    def _is_by(self, fact: Fact) -> bool:
        """Return whether "by" stands before a number, and a comparative somewhere before that."""
        before = [token.low for token in self.claim.tokens if token.end <= fact.start]
        return before[-1:] == ["by"] and any(map(_COMPARATIVE.fullmatch, map(encodable, before)))

    def _behind_amount(self, fact: Fact) -> Sequence[Token]:
        """Return the token behind a number and its rate: "150 dollars a year more"."""
        last = fact.last
        if [t.text for t in self.claim.tokens[last : last + 1]] == ["("]:  # "5.2 kg (11.5 lb) less"
            ends = (k for k, t in enumerate(self.claim.tokens) if k > last and t.text == ")")
            last = next(ends, last - 1) + 1
        after = self.claim.tokens[last : last + 3]
        is_rate = len(after) > _RATE and after[0].low in ("a", "an", "per", "each", "/")
        return after[_RATE:] if is_rate else after[:1]

    @cached_property
    def _halves(self) -> bool:
        """True if claim or question speak of a half or of two, or the sentence before of a half."""
        if not self.tells_sums:
            return True
        asked = [self.source.question] if self.source.question is not None else []
        if any(not words.TWOFOLD.isdisjoint(_halving(one)) for one in (self.claim, *asked)):
            return True
        return any(not words.HALVED.isdisjoint(_halving(one)) for one in self.given)

    @cached_property
    def _computes_itself(self) -> bool:
        """True if the claim by itself speaks of a calculation."""
        return self._compares or any(
            t.low in words.ARITHMETIC or t.text in "=+\u00d7" for t in self.claim.tokens
        )

    def _multiplied(self, fact: Fact, operands: Sequence[ComputedFrom]) -> str:
        """Return the product or quotient with a number that claim or question say, or ""."""
        counts = {
            one.fact.raw
            for one in operands
            if one.group < 0 and one.fact.kind in ("number", "duration") and one.fact.raw > 1
        }
        shares = [one.fact.raw for one in operands if one.group < 0 and one.fact.unit == "percent"]
        for one in operands:
            if one.fact.unit != fact.unit or one.fact.kind in NO_AMOUNT:
                continue
            base = one.fact.values[0] / fact.factor
            for share in shares if one.group < 0 else ():
                if is_exactly(fact, base * share / 100):
                    return f"{shown(share)} % of {shown(base)} = {shown(fact.raw)}"
            if one.group < 0 and not self.source.agreeing(one.fact):
                continue
            for count in sorted(counts):
                for sign, result in (("\u00d7", base * count), ("/", base / count)):
                    if is_exactly(fact, result):
                        return f"{shown(base)} {sign} {shown(count)} = {shown(fact.raw)}"
        return ""

    @cached_property
    def _announces_itself(self) -> bool:
        """True if the claim by itself does."""
        announced = words.ARITHMETIC - words.MENTIONED
        return any(t.low in announced or t.text in "=+\u00d7" for t in self.claim.tokens)

    @cached_property
    def _announces(self) -> bool:
        """True if claim or question speak of a calculation with more than a word by the way."""
        announced = words.ARITHMETIC - words.MENTIONED
        return not self.tells_sums or any(
            token.low in announced or token.text in "=+\u00d7"
            for one in self._nearby()
            for token in one.tokens
        )

    def _operands(self, fact: Fact) -> tuple[list[ComputedFrom], list[float], list[float]]:
        """Return the numbers to compute with, nearest first, counts, and those of the answer."""
        every = self.claim.content | (
            self.source.question.content if self.source.question else set()
        )
        ranked = sorted(
            (
                (-len(every & one.content), number, one)
                for number, (_, one) in enumerate(self.source.sentences)
                if one.facts
            ),
            key=lambda row: row[:2],
        )
        operands = self._said_nearby(fact)
        if self._computes_itself:
            said = [one.fact for one in operands]
            operands += [
                ComputedFrom(other, SAID_ELSEWHERE)
                for other in self.others
                if not any(_is_one(other, one) for one in said)
            ]
        own = [one.fact for one in operands]
        for _, number, one in ranked:
            operands += [
                ComputedFrom(other, number)
                for other in one.facts
                if other.date is not None or not any(_is_one(other, said) for said in own)
            ]
            if len(operands) >= MOST:
                break
        counts = [
            other.raw
            for other in chain(
                chain.from_iterable(one.facts for one in self._nearby()),
                self.others if self._computes_itself else (),
            )
            if other is not fact and other.kind in ("number", "duration", "percentage", "measure")
            if not fact.unit or other.unit != fact.unit  # no months times weeks
        ]
        combined = list(dict.fromkeys(c for c in counts if 1 < c <= 10_000))
        if not (counts and self._announces_itself):  # else it says itself how many
            counts += [
                o.fact.raw
                for o in operands[:8]
                if o.fact.kind in ("number", "duration")
                if not fact.unit or o.fact.unit != fact.unit
            ]
        return operands, list(dict.fromkeys(c for c in counts if 1 < c <= 10_000))[:12], combined

    def _said_nearby(self, fact: Fact) -> list[ComputedFrom]:
        """Return the other numbers of the claim, the sentence before it and the question."""
        return [
            ComputedFrom(other, -1 - number)
            for number, one in enumerate(self._nearby())
            for other in one.facts
            if other is not fact and not _is_end(other, fact)
        ]

    def _nearby(self) -> list[ReadSentence]:
        asked = [self.source.question] if self.source.question is not None else []
        return [self.claim, *self.given, *asked]


def _between(fact: Fact) -> Fact | None:
    """Return what lies between two neighbouring numbers: "17 to 18 minutes on average"."""
    other = None if fact.other is None else fact.other / fact.factor
    if other is None or abs(other - fact.raw) != 1 or not is_amount(fact):
        return None
    middle = (fact.raw + other) / 2
    return replace(
        fact, raw=middle, values=(middle * fact.factor,), step=0.9, is_range=False, other=None
    )


def _day(told: Date, year: int | None) -> date | None:
    """Return the day that is told, in another one's year if it has none."""
    own, month, day = told
    if month is None or day is None:
        return None
    try:
        return date(own or year or NO_YEAR, month, day)
    except ValueError:
        return None


def _is_end(one: Fact, fact: Fact) -> bool:
    """Return whether a number is an end of the range in whose middle another one lies."""
    return one.is_range and one.unit == fact.unit and abs(one.raw - fact.raw) == _MIDDLE


_MIDDLE = 0.5
_ONE_CENT = 0.01
_MORE_BY = {"de": "um", "pl": "o"}
_MORE_BEHIND = words.listed(
    "mehr weniger länger kürzer höher niedriger teurer billiger más menos mais più meno plus moins"
    " meer minder więcej mniej dłużej krócej"
)
"""Words beside a number that make it a difference, in other languages."""
_BY = frozenset(("by", "up", "down"))
_DAYS = (86_400.0, 604_800.0)
_ROUNDS = frozenset(("\u2192", "\u2248", "rounded", "rounding", "rounds"))
_ROUNDED, _TO = 0.03, (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 100.0)
"""How far a number lies from what it is rounded from, and to what."""


def _is_part(part: Held, whole: Held) -> bool:
    """Return whether a number is of another: "12 of 840", "raised by 6 metres to 31"."""
    if part.read is not whole.read:
        return False
    between = part.read.text[part.fact.end : whole.fact.start].split()
    before = part.read.tokens[part.fact.token - 1].low if part.fact.token else ""
    return (between[:1] == ["of"] and len(between) <= _OF_THE) or (
        between == ["to"] and before == "by"
    )


def _are_readings(first: Held, second: Held) -> bool:
    """Return whether two numbers are one thing's before and after: "210 and 262"."""
    if first.read is not second.read:
        return False
    between = first.read.text[first.fact.end : second.fact.start].split()
    return between == ["and"] and not _READINGS.isdisjoint(first.read.lows)


_READINGS = frozenset(("reading", "readings", "meter", "meters", "odometer", "counter"))


def _is_factor(held: Held) -> bool:
    """Return whether "five times" multiplies: "the daily price", and no "three times a week"."""
    behind = held.read.tokens[held.fact.last : held.fact.last + 1]
    return bool(behind) and behind[0].low in ("the", "as")


def _same_unit(fact: Fact, other: Fact) -> bool:
    """Return whether two amounts are of one unit, bare numbers included."""
    return fact.unit == other.unit and {fact.kind, other.kind}.isdisjoint(NO_AMOUNT)


def _for_one(fact: Fact, operands: Sequence[ComputedFrom]) -> str:
    """Return how an amount follows from one for a unit: "40 l give 1 l of syrup", 120 l for 3."""
    counts = [one.fact for one in operands if one.group < 0 and one.fact.unit == fact.unit]
    ones = {one.group for one in operands if one.group >= 0 and one.fact.raw == 1
            and one.fact.unit == fact.unit and one.fact.factor == fact.factor}  # fmt: skip
    for base in operands if fact.unit and ones else ():
        if base.group in ones and base.fact.unit == fact.unit:
            for count in counts:
                if count.factor == fact.factor and is_exactly(fact, base.fact.raw * count.raw):
                    return f"{shown(count.raw)} \u00d7 {shown(base.fact.raw)} = {shown(fact.raw)}"
    return ""


def _is_bare(fact: Fact) -> bool:
    """Return whether a number without a unit may be an amount of money."""
    return fact.kind == "number" and not fact.nouns and fact.raw >= _LARGE


_LARGE = 100
_RATED = 3
"""Tokens before an amount in which "at" makes it one of a case."""


def _may_be_added(fact: Fact, change: Held, base: Held) -> bool:
    """Return whether two passage numbers may tell of one thing: those of neighbouring sentences.

    Bare ones of two sentences only with a noun.
    """
    if change.read is base.read:
        return True
    if not (change.before is base.read or base.before is change.read):
        return False
    return bool(fact.unit or fact.nouns)


def _halving(one: ReadSentence) -> set[str]:
    """Return a sentence's words without the half of "half an hour" and "half past"."""
    return {
        token.low
        for token, behind in zip_longest(one.tokens, one.tokens[1:])
        if token is not None
        and not (token.low == "half" and behind is not None and behind.low in _NO_HALF)
    }


_NO_HALF = frozenset(("a", "an", "past", "hour", "year", "litre", "liter"))
_COMPARATIVE = re2.compile(r"[a-z]{3,}er|more|less|apart|off")
_EQUAL = 1e-6
_OF_THE = 3
"""Words between a part and its whole at most: "of the planned"."""
_RATE = 2
"""Tokens of "a year" behind an amount."""
_MANY = 10
"""From here on a bare number is computed from others of the answer: small ones fit too often."""
_MOST_OTHERS = 24
"""Numbers of an answer's other sentences that are computed with."""


def _is_one(fact: Fact, said: Fact) -> bool:
    """Return whether a passage's number is one that the claim repeats."""
    return fact.unit == said.unit and fact.values == said.values and fact.nouns == said.nouns


def _one_step(
    fact: Fact,
    operands: Sequence[ComputedFrom],
    halves: bool,
    cycles: bool = False,
    own: bool = False,
    telling: frozenset[int] | None = None,
) -> str:
    """Return a single step by which a fact may follow though its claim speaks of none, or "".

    It proves nothing: of many numbers some fit. It only says that the fact need not be invented.

    Args:
        fact: The number or date to explain.
        operands: Numbers of the passages, the question and the claim, the nearest first.
        halves: Whether somebody speaks of a half or of two of a thing.
        cycles: Whether a rate may be meant though none is read ("al mes").
        own: Whether to multiply by numbers of claim and question alone, if they have any.
        telling: Passage sentences that tell one number by another ("3.1 seconds later"). In others
            one of its numbers must be one that answer or question say; None: somebody speaks of a
            calculation, and all may be computed with.
    """
    near = operands[:_NEAREST]
    if fact.unit == "time":
        free = [one._replace(group=-1) for one in near]
        return times_of_day(fact, free)
    if fact.date is not None:
        return _date_by_span(fact.date, near)
    same = [one for one in near if one.fact.unit == fact.unit and one.fact.kind not in NO_AMOUNT]
    for told, result in _steps(fact, same, near, halves, cycles, own, telling):
        if result > 0 and is_exactly(fact, result):
            return f"{told} = {shown(fact.raw)}"
    return ""


_TWOFOLD = frozenset(["half", "halv", "doubl", "twic", "both", "pair", "coupl", "return", "radius"])
"""Stems of words with which a number may be twice or half of another."""
_COUNTING = ("number", "duration", "measure")
_HALVES = frozenset(["half", "halv", "doubl", "twic"])
_NEAREST = 14
_CYCLES = frozenset((12.0, 52.0, 365.0))
"""Months, weeks and days: what a claim need not say to have multiplied a rate by it."""


def _is_apart(one: ComputedFrom, telling: frozenset[int] | None) -> bool:
    """Return whether a passage's number is computed with by nobody."""
    return telling is not None and one.group >= 0 and one.group not in telling


def _steps(
    fact: Fact,
    same: Sequence[ComputedFrom],
    near: Sequence[ComputedFrom],
    halves: bool,
    cycles: bool,
    own: bool,
    telling: frozenset[int] | None,
) -> Iterator[tuple[str, float]]:
    counting = [
        one
        for one in near
        if one.fact.kind in (_COUNTING if fact.kind == "money" else _COUNTING[:1])
        if not fact.unit or one.fact.unit != fact.unit
    ]
    said = {one.fact.raw for one in counting if one.group < 0}
    if halves:
        said.add(2.0)
    if cycles or fact.per or any(one.fact.per for one in same):
        said |= _CYCLES
    percent = [one for one in near if one.fact.unit == "percent"]
    amounts = [(one.fact, one.fact.values[0] / fact.factor) for one in same]
    if fact.unit != "temperature":
        for base, (held, a) in zip(same, amounts, strict=True):
            counts, is_apart = said, _is_apart(base, telling)
            if not (own and said) and not is_apart:  # other sentences' numbers are of other things
                counts = said | {
                    one.fact.raw
                    for one in counting
                    if one.group == base.group or base.group < 0 or one.fact.nouns
                }
            for count in sorted(counts - {held.raw, 1.0, 0.0}):
                yield f"{shown(count)} \u00d7 {shown(a)}", a * count
                yield f"{shown(a)} / {shown(count)}", a / count
            for one in percent:
                passed_over = is_apart or one.group not in (base.group, *(telling or ()))
                if telling is not None and one.group >= 0 and passed_over:
                    continue
                share = one.fact.raw
                part = share / 100
                yield f"{shown(share)} % of {shown(a)}", a * part
                yield f"{shown(a)} + {shown(share)} %", a * (1 + part)
                yield f"{shown(a)} - {shown(share)} %", a * (1 - part)
                yield f"{shown(a)} / {shown(1 + part)}", a / (1 + part)
                if part < 1:
                    yield f"{shown(a)} / {shown(1 - part)}", a / (1 - part)
    bare = [one.fact.raw for one in near if one.group < 0 and not one.fact.unit]
    for _, a in amounts:
        for b in bare:  # "(12 x 10 = 120)" leaves the unit out
            yield f"{shown(max(a, b))} - {shown(min(a, b))}", abs(a - b)
    for (one, a), (other, b) in combinations(zip(same, (a for _, a in amounts), strict=True), 2):
        if min(one.group, other.group) >= 0 and (
            _is_apart(one, telling) or one.group != other.group
        ):
            continue
        yield f"{shown(max(a, b))} - {shown(min(a, b))}", abs(a - b)
        if fact.unit != "temperature":
            yield f"{shown(a)} + {shown(b)}", a + b
            for count in bare:
                yield f"{shown(count)} \u00d7 {shown(a)} + {shown(b)}", count * a + b
                yield f"{shown(count)} \u00d7 {shown(b)} + {shown(a)}", count * b + a
    if fact.unit != "temperature" and 2 < len(amounts) <= _SUMMED:
        yield "the sum", sum(a for _, a in amounts)


_SUMMED = 6


def _date_by_span(wanted: Date, near: Sequence[ComputedFrom]) -> str:
    """Return how a date follows from another and a duration, give or take a day, or ""."""
    if wanted[1] is None:
        return _year_by_span(wanted[0], near)
    least = MONTH_S if wanted[2] is None else 0.0  # a month does not follow from some days
    spans = [o.fact for o in near if o.fact.unit == "duration" and o.fact.factor >= least]
    starts = [one.fact.date for one in near if one.fact.date is not None]
    for start, span in ((start, span) for start in starts for span in spans):
        check_time()
        for sign in (1, -1):
            for end in _moved(start, sign, span):
                if _is_same_day(wanted, end):
                    return f"{shown(span.raw)} from the other date"
    return ""


def _year_by_span(wanted: int | None, near: Sequence[ComputedFrom]) -> str:
    """Return how a year follows from another and a number of years, or ""."""
    if wanted is None:
        return ""
    years = {one.fact.date[0] for one in near if one.fact.date is not None}
    for span in (one.fact for one in near if one.fact.unit == "duration"):
        length = round(span.values[0] / (12 * MONTH_S), 2)
        if length >= 1 and {wanted - length, wanted + length} & years:
            return f"{shown(length)} years from the other date"
    return ""


def _moved(start: Date, sign: int, span: Fact) -> Iterator[date]:
    """Yield the days around a date's distance; of a month the first and the last day."""
    year, month, day = start
    if month is None:
        return
    months = round(span.values[0] / MONTH_S, 2) if span.factor >= MONTH_S else 0.0
    for own in (day,) if day is not None else (1, 31):
        try:
            if months and months == int(months):
                at = (year or NO_YEAR) * 12 + month - 1 + sign * int(months)
                last = monthrange(at // 12, at % 12 + 1)[1]
                moved = date(at // 12, at % 12 + 1, min(own, last))
            else:
                of_month = min(own, monthrange(year or NO_YEAR, month)[1])
                moved = date(year or NO_YEAR, month, of_month)
                moved += timedelta(seconds=sign * span.values[0])
            yield from (moved + timedelta(days=off) for off in (0, -1, 1))
        except (ValueError, OverflowError):
            continue


def _is_same_day(wanted: Date, day: date) -> bool:
    parts = zip(wanted, (day.year, day.month, day.day), strict=True)
    return all(a is None or a == b for a, b in parts)
