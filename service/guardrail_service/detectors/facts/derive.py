"""Finds how a number follows from others: sums, differences, products, shares and spans."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import chain, combinations, pairwise, permutations
from typing import NamedTuple

from guardrail_service.detectors.facts.amounts import Fact
from guardrail_service.text.budget import check_time

MOST = 32
"""Numbers tried in pairs; the nearest to the claim come first."""
_YEAR_S = 86_400 * 365.25
MONTH_S = _YEAR_S / 12


class ComputedFrom(NamedTuple):
    """One number to compute with; numbers of one `group` stand in one sentence."""

    fact: Fact
    group: int


def derived(
    fact: Fact,
    operands: Sequence[ComputedFrom],
    multipliers: Sequence[float],
    computes: bool,
    changes: bool = True,
    halves: bool = True,
    combined: Sequence[float] = (),
    means: bool = True,
    announced: bool = True,
) -> str:
    """Return the calculation whose result a fact is ("2 x 35 = 70"), or "".

    Args:
        fact: The number to explain.
        operands: Numbers of the passages, the question and the claim, the nearest first.
        multipliers: Counts that may multiply or divide ("two rooms").
        computes: Whether the claim says that it computed something. Otherwise a number of its own
            or of the question must be in the calculation: of many numbers some always fit.
        changes: Whether claim or question speak of a change or difference.
        halves: Whether they speak of a half or of two of a thing.
        combined: Counts by which one number may be multiplied before another is added.
        means: Whether they speak of a mean.
        announced: Whether they announce a calculation ("in total") and do not only use a word that
            may belong to one ("later", "extra"). Otherwise a number of the answer or the question
            must be in a sum, too.
    """
    operands = [_in_its_currency(one, fact) for one in operands[:MOST]]
    steps = multipliers, changes, combined, means
    found = _results(fact, operands, *steps) if computes else _plain(fact, operands)
    halved = _halves(fact, operands) if computes and halves else ()
    for result, told, *own in chain(found, halved, _by_rate(fact, operands)):
        if _is(fact, result) and (announced or own != [False]):
            return f"{told} = {shown(fact.raw)}"
    return ""


def rounded_up(fact: Fact, own: Sequence[Fact]) -> str:
    """Return the number of the answer that a fact is rounded up from, to a half, five or ten."""
    for one in own:
        value = one.values[0] / fact.factor if one.unit == fact.unit else one.raw
        if one.unit not in ("", fact.unit) or value >= fact.raw:
            continue
        if any(abs(math.ceil(value / to) * to - fact.raw) < 1e-9 for to in _ROUNDS_TO):
            return f"{shown(value)} rounded up = {shown(fact.raw)}"
    return ""


_ROUNDS_TO = (0.5, 1.0, 5.0, 10.0)


def from_own(fact: Fact, own: Sequence[Fact], lines: Sequence[Sequence[Fact]] = ()) -> str:
    """Return how a number follows from others that answer and question say, or "".

    An answer that shows its numbers need not say that it computed.

    Args:
        fact: The number.
        own: The others, in order.
        lines: Those that end a line or a sentence, and those that begin one: what is added up, in
            a table or list.
    """
    same = _of_one_unit(fact, own)
    columns = [_of_one_unit(fact, column) or _bare(column) for column in lines]
    counts = {
        one.raw
        for one in own
        if one.unit != fact.unit and one.kind in _COUNTED and 1 < one.raw <= _MOST_TIMES
        if not {one.unit, fact.unit} <= _LENGTHS
    }
    kinds = ("number", "measure", "duration") if fact.per is not None else ("number", "measure")
    divisors = {one.raw for one in own if one.unit != fact.unit and one.kind in kinds}
    divisors |= {12.0, 52.0, 365.0}
    shares = {one.raw for one in own if one.unit == "percent" and fact.unit != "percent"}
    for told, result in chain(
        _of_two(same),
        _of_runs(same),
        _times(same, sorted(counts), divisors),
        *map(_of_runs, columns),
        *map(_less, columns[:1]),
        _parts(same, sorted(shares)),
        _rounded_up(fact, same),
    ):
        if is_exactly(fact, result):
            return f"{told} = {shown(fact.raw)}"
    return ""


def _bare(column: Sequence[Fact]) -> list[float]:
    """Return numbers whose unit a heading may tell."""
    return [one.raw for one in column if one.kind == "number" and not one.unit]


def _of_one_unit(fact: Fact, own: Sequence[Fact]) -> list[float]:
    """Return the amounts in a fact's unit, without those of its own value."""
    changed = (_in_its_currency(ComputedFrom(one, -1), fact).fact for one in own)
    return [
        one.values[0] / fact.factor
        for one in changed
        if one.unit == fact.unit and one.kind not in NO_AMOUNT and one.values[0] != fact.values[0]
    ]


_LENGTHS = frozenset(("duration", "workdays"))
_COUNTED = ("number", "duration", "measure")
_MOST_TIMES = 100_000


def is_exactly(fact: Fact, result: float) -> bool:
    """Return whether a result is a fact's value to its last digit, and within two per cent."""
    if result <= 0 or fact.raw <= 0:
        return False
    slack = 0.5000001 * fact.step if result % 1 or fact.bound else 1e-9 * result
    return abs(result - fact.raw) <= max(slack, 1e-9) and abs(result / fact.raw - 1) <= _NEAR


_NEAR = 0.02


def _of_two(same: Sequence[float]) -> Iterator[tuple[str, float]]:
    for a, b in combinations(same, 2):
        check_time()
        yield f"{shown(a)} + {shown(b)}", a + b
        yield f"{shown(max(a, b))} - {shown(min(a, b))}", abs(a - b)


def _of_runs(same: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Yield sums of neighbours: the answer lists what it adds."""
    for size in range(3, min(len(same), 8) + 1):
        for start in range(len(same) - size + 1):
            part = same[start : start + size]
            yield " + ".join(map(shown, part)), sum(part)


def _less(ends: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Yield sums from which the last line is taken off: a credit, a discount."""
    for size in range(3, min(len(ends), 6) + 1):
        for start in range(len(ends) - size + 1):
            *added, off = ends[start : start + size]
            yield " + ".join(map(shown, added)) + f" - {shown(off)}", sum(added) - off


def _times(
    same: Sequence[float], counts: Sequence[float], divisors: set[float]
) -> Iterator[tuple[str, float]]:
    for a in same:
        check_time()
        for times in counts:
            yield f"{shown(times)} \u00d7 {shown(a)}", a * times
            if times in divisors:
                yield f"{shown(a)} / {shown(times)}", a / times
        for first, second in combinations(counts, 2):
            if max(first, second) <= _FEW:
                yield f"{shown(first)} \u00d7 {shown(second)} \u00d7 {shown(a)}", a * first * second


_FEW = 31


def _parts(same: Sequence[float], shares: Sequence[float]) -> Iterator[tuple[str, float]]:
    for a in same:
        for share in shares:
            yield f"{shown(share)} % of {shown(a)}", a * share / 100
            yield f"{shown(a)} - {shown(share)} %", a * (1 - share / 100)
            yield f"{shown(a)} + {shown(share)} %", a * (1 + share / 100)


def _rounded_up(fact: Fact, same: Sequence[float]) -> Iterator[tuple[str, float]]:
    for a in same:
        if 0 < fact.raw - a < min(fact.step, 1.0) and a % 1:
            yield f"{shown(a)} rounded up", fact.raw


def _in_its_currency(one: ComputedFrom, fact: Fact) -> ComputedFrom:
    """Return an amount in cents as one in the fact's currency, or the reverse."""
    own, wanted = one.fact.unit, fact.unit
    if own == wanted or not (own.startswith("money") and wanted.startswith("money")):
        return one
    if _CENT not in (own, wanted):
        return one
    scale = 0.01 if own == _CENT else 100.0
    values = tuple(value * scale for value in one.fact.values)
    changed = replace(one.fact, unit=wanted, values=values, raw=one.fact.raw * scale, factor=1.0)
    return one._replace(fact=changed)


_CENT = "money:cent"


def _by_rate(fact: Fact, operands: Sequence[ComputedFrom]) -> Iterator[tuple[float, str]]:
    """Yield how long a count lasts at a rate, if the answer says one of both: 900 at 3 a minute.

    Or how many days five a week come to in 51 weeks.
    """
    if fact.unit != "duration":
        return
    rates = [
        (one, one.fact.per[1])
        for one in operands
        if one.fact.per is not None and one.fact.per[0] == fact.unit
    ]
    counts = [o.fact for o in operands if o.group < 0 and o.fact.kind == "number" and o.fact.per]
    for count in counts:  # "20 a minute, one every 3 seconds"
        if count.per is not None and count.per[0] == "duration" and count.raw > 0:
            yield count.per[1] / count.raw / fact.factor, f"1 / {shown(count.raw)}"
    for rate, per in rates:
        for one in operands:
            if (
                one.fact.unit == rate.fact.unit == "duration"
                and one.fact.per is None
                and one.fact.values[0] > per > rate.fact.values[0]
                and (one.group == rate.group or min(one.group, rate.group) < 0)
            ):
                a, b = rate.fact.values[0], one.fact.values[0] / per
                yield a * b / fact.factor, f"{shown(b)} \u00d7 {shown(rate.fact.raw)}"
            if one.fact.unit != rate.fact.unit or one.fact is rate.fact:
                continue
            if min(one.group, rate.group) < 0 and one.fact.kind not in NO_AMOUNT:
                a, b = one.fact.values[0], rate.fact.values[0]
                if b > 0:
                    yield a / b * per / fact.factor, f"{shown(a)} / {shown(b)}"


def by_formula(fact: Fact, operands: Sequence[ComputedFrom]) -> str:
    """Return how an amount follows from a power or speed and a time, or a time from them, or "".

    Of two that passages have one must be the answer's or the question's, too: 9.6 kWh last 24 hours
    at 400 W.
    """
    for one, other in permutations(operands[:MOST], 2):
        if min(one.group, other.group) >= 0:
            continue
        a, b = one.fact.values[0], other.fact.values[0]
        pair = one.fact.unit, other.fact.unit
        result = 0.0
        if fact.unit == "duration" and pair in _RATED and b > 0:
            result = a / b * _RATED[pair] / fact.factor
        elif (fact.unit, pair[0]) in _RATED and pair[1] == "duration":
            result = a * b / _RATED[fact.unit, pair[0]] / fact.factor
        if result and _is(fact, result):
            sign = "/" if fact.unit == "duration" else "\u00d7"
            return f"{shown(one.fact.raw)} {sign} {shown(other.fact.raw)} = {shown(fact.raw)}"
    return ""


_RATED = {("energy", "power"): 3_600_000.0, ("length", "speed"): 3.6}
"""Seconds that an amount lasts at a rate, both in their basic units: kWh and W, m and km/h."""


def _is(fact: Fact, result: float) -> bool:
    """Return whether a result is the fact's value, up to its last digit."""
    if result <= 0 or fact.raw <= 0:
        return False
    if fact.raw >= 1e5 and fact.step >= 10 and result < 1e6:
        for scale in (1e3, 1e6, 1e9):
            if abs(result * scale - fact.raw) <= max(0.5000001 * min(fact.step, scale), 1e-9):
                return True
    half = 0.5000001 * min(fact.step, 1.0 if fact.step >= 1 else fact.step)
    if abs(result - fact.raw) <= max(1e-9 * result, half if result % 1 else 1e-9):
        is_share = fact.unit == "percent"
        return is_share or bool(fact.bound) or abs(result / fact.raw - 1) <= _ROUNDED
    if fact.step > 1 and abs(result - fact.raw) <= 0.5 * fact.step:
        return abs(result / fact.raw - 1) <= 0.02
    return fact.bound in ("about", "nearly", "over", "under") and abs(result / fact.raw - 1) <= 0.05


NO_YEAR = 2023
"""Stands for the year of a date that names none."""
_ROUNDED = 0.1
"""How far a result may lie from a number that does not say it is rounded."""


def _plain(fact: Fact, operands: Sequence[ComputedFrom]) -> Iterator[tuple[float, str]]:
    """Yield products, quotients and shares with a number that claim or question say, and spans."""
    own = [
        one
        for one in operands
        if one.group < 0
        and (
            one.fact.kind in ("number", "duration")
            or (one.fact.kind == "measure" and one.fact.unit != fact.unit)
        )
    ]
    yield from _shares_of_own(fact, operands)
    for one in operands:
        if one.group >= 0 and one.fact.unit == fact.unit and one.fact.kind not in NO_AMOUNT:
            if not fact.unit and one.fact.nouns[:1] != fact.nouns[:1]:
                continue
            a = one.fact.values[0] / fact.factor
            for other in own:
                if other.fact.raw > 1:
                    yield a * other.fact.raw, f"{shown(other.fact.raw)} \u00d7 {shown(a)}"
                    yield a / other.fact.raw, f"{shown(a)} / {shown(other.fact.raw)}"
    for one, other in combinations(operands, 2):  # "21 counts of ... and six counts of ..."
        if (
            one.group == other.group >= 0
            and one.fact.unit == fact.unit == other.fact.unit
            and (one.fact.nouns[:1] == other.fact.nouns[:1] == fact.nouns[:1] != ())
        ):
            a, b = one.fact.values[0] / fact.factor, other.fact.values[0] / fact.factor
            yield a + b, f"{shown(a)} + {shown(b)}"
        if (
            one.group == other.group >= 0
            and one.fact.unit == fact.unit == other.fact.unit
            and (fact.unit == "duration")
        ):
            a, b = one.fact.values[0] / fact.factor, other.fact.values[0] / fact.factor
            yield abs(a - b), f"{shown(max(a, b))} - {shown(min(a, b))}"
    if fact.unit == "duration":
        yield from _spans(fact, operands)
    if fact.unit == "percent":
        said = [one for one in operands if one.group < 0 and one.fact.kind in ("number", "money")]
        for one in said:
            for other in operands:
                if other.group >= 0 and other.fact.unit == one.fact.unit and other.fact.values[0]:
                    a, b = one.fact.values[0], other.fact.values[0]
                    yield 100 * a / b, f"{shown(a)} / {shown(b)}"


def _shares_of_own(fact: Fact, operands: Sequence[ComputedFrom]) -> Iterator[tuple[float, str]]:
    """Yield a passage's shares of what claim or question say: 8 % of 50 euros."""
    if fact.kind not in ("money", "measure", "duration"):
        return
    told = [one for one in operands if one.group < 0 and one.fact.unit == fact.unit]
    shares = [one for one in operands if one.group >= 0 and one.fact.unit == "percent"]
    for one in told:
        for share in shares:
            part = one.fact.values[0] / fact.factor * share.fact.raw / 100
            yield part, f"{shown(share.fact.raw)} % of {shown(one.fact.raw)}"


SAID_ELSEWHERE = -9
"""Group of the numbers of an answer's other sentences."""
NO_AMOUNT = frozenset(("date", "time", "ordinal", "weekday"))


def _results(
    fact: Fact,
    operands: Sequence[ComputedFrom],
    multipliers: Sequence[float],
    changes: bool,
    combined: Sequence[float],
    means: bool,
) -> Iterator[tuple[float, str, bool] | tuple[float, str]]:
    """Yield results on the scale of the fact's own unit, and how they come about.

    Of sums and products it says, too, whether a number of the answer or the question is in them.
    """
    amounts = [one for one in operands if one.fact.kind not in NO_AMOUNT]
    chosen = [one for one in amounts if one.fact.unit == fact.unit]
    if len(chosen) < 2 or not fact.unit:
        bare = [
            one
            for one in amounts
            if fact.unit != "percent"
            and (
                not one.fact.unit
                or (not fact.unit and not fact.is_word and one.fact.kind == "money")
            )
        ]
        chosen += [one for one in bare if one not in chosen]
    same = [(one.fact, in_unit(fact, one.fact), one.group) for one in chosen]
    if fact.unit != "temperature":
        yield from _sums(same, means)
        yield from _products(same, multipliers, operands)
        yield from _combined(same, combined)
        yield from _of_shares(same, operands, combined)
    if fact.unit == "percent":
        yield from _shares(operands, changes)
    if fact.unit in ("", "duration"):
        yield from _spans(fact, operands)
    if fact.unit == "":
        yield from _ratios(operands)


def in_unit(fact: Fact, other: Fact) -> float:
    """Return a number in a fact's unit; one without any is meant in it: "8 hours, 18 on low"."""
    return other.values[0] / fact.factor if other.unit else other.raw


def _sums(
    same: Sequence[tuple[Fact, float, int]], means: bool
) -> Iterator[tuple[float, str, bool]]:
    for (_, a, first), (_, b, second) in combinations(same, 2):
        own = min(first, second) < 0
        yield a + b, f"{shown(a)} + {shown(b)}", own
        if a != b:
            high, low = (a, b) if a > b else (b, a)
            yield high - low, f"{shown(high)} - {shown(low)}", own
        if means:
            yield (a + b) / 2, f"({shown(a)} + {shown(b)}) / 2", own
    groups: dict[int, list[float]] = {}
    for _, value, group in same:
        groups.setdefault(group, []).append(value)
    for group, values in groups.items():
        for size in range(3, min(len(values), 8) + 1):
            for start in range(len(values) - size + 1):
                part = values[start : start + size]
                yield sum(part), " + ".join(map(shown, part)), group < 0
        if means and 3 <= len(values) <= 12:
            yield sum(values) / len(values), f"the mean of {len(values)} numbers", group < 0
    if 3 <= len(same) <= 6:
        own = any(group < 0 for *_, group in same)
        yield sum(a for _, a, _ in same), " + ".join(shown(a) for _, a, _ in same), own


def _halves(fact: Fact, operands: Sequence[ComputedFrom]) -> Iterator[tuple[float, str, bool]]:
    """Yield half and twice of the amounts in the fact's unit."""
    for one in operands:
        if one.fact.unit == fact.unit and fact.unit != "percent":
            value = one.fact.values[0] / fact.factor
            yield value / 2, f"{shown(value)} / 2", one.group < 0
            yield value * 2, f"2 \u00d7 {shown(value)}", one.group < 0


def _products(
    same: Sequence[tuple[Fact, float, int]],
    multipliers: Sequence[float],
    operands: Sequence[ComputedFrom],
) -> Iterator[tuple[float, str, bool]]:
    said = {one.fact.raw for one in operands if one.group < 0}
    for _, a, group in same:
        for times in multipliers:
            if times > 1:
                own = group < 0 or times in said
                yield a * times, f"{shown(times)} \u00d7 {shown(a)}", own
                yield a / times, f"{shown(a)} / {shown(times)}", own
        for one, other in combinations(sorted(t for t in multipliers if 1 < t <= _FEW), 2):
            if {one, other} <= said:
                yield a * one * other, f"{shown(one)} \u00d7 {shown(other)} \u00d7 {shown(a)}", True


def _combined(
    same: Sequence[tuple[Fact, float, int]], counts: Sequence[float]
) -> Iterator[tuple[float, str]]:
    """Yield "2 x 35 + 12"; where the answer names two amounts itself, they are the ones."""
    own = sum(group < 0 for _, _, group in same)
    for (_, a, first), (_, b, second) in combinations(same, 2):
        if own > 1 and first != second and max(first, second) >= 0:
            continue
        for times in counts[:4]:
            yield a * times + b, f"{shown(times)} \u00d7 {shown(a)} + {shown(b)}"
            yield b * times + a, f"{shown(times)} \u00d7 {shown(b)} + {shown(a)}"


def _of_shares(
    same: Sequence[tuple[Fact, float, int]],
    operands: Sequence[ComputedFrom],
    counts: Sequence[float],
) -> Iterator[tuple[float, str]]:
    shares = [one.fact.values[0] for one in operands if one.fact.unit == "percent"]
    said = [one.fact.values[0] for one in operands if one.fact.unit == "percent" and one.group < 0]
    for _, a, _ in same:
        yield from ((result, told) for told, result in _parts([a], tuple(dict.fromkeys(shares))))
        for share in dict.fromkeys(said):
            for times in counts[:4]:
                less = a * times * (1 - share / 100)
                yield less, f"{shown(times)} \u00d7 {shown(a)} - {shown(share)} %"


def _shares(operands: Sequence[ComputedFrom], changes: bool) -> Iterator[tuple[float, str, bool]]:
    plain = [one for one in operands if one.fact.unit != "percent"]
    for one, other in combinations(plain, 2):
        first, second = one.fact.values[0], other.fact.values[0]
        if one.fact.unit != other.fact.unit or not (first and second):
            continue
        own = min(one.group, other.group) < 0
        for a, b in ((first, second), (second, first)):
            yield 100 * a / b, f"{shown(a)} / {shown(b)}", own
            if changes:
                yield abs(100 * (a - b) / b), f"({shown(a)} - {shown(b)}) / {shown(b)}", own
    for one in operands:
        if one.fact.unit == "percent":
            yield 100 - one.fact.values[0], f"100 - {shown(one.fact.values[0])}", True


def _ratios(operands: Sequence[ComputedFrom]) -> Iterator[tuple[float, str]]:
    for one, other in combinations((o.fact for o in operands), 2):
        if one.unit == other.unit and one.values[0] and other.values[0] and one.kind != "date":
            high, low = sorted((one.values[0], other.values[0]), reverse=True)
            yield high / low, f"{shown(high)} / {shown(low)}"


def times_of_day(fact: Fact, operands: Sequence[ComputedFrom]) -> str:
    """Return how a time of day follows from another and a duration; one of them is the claim's."""
    times = [one for one in operands if one.fact.unit == "time"]
    lengths = [one for one in operands if one.fact.unit == "duration"]
    for start in times[:MOST]:
        for length in lengths[:MOST]:
            check_time()
            if min(start.group, length.group) >= 0:
                continue
            passed = length.fact.values[0] / 60
            for sign, value in (("+", passed), ("-", -passed)):
                if max(start.group, length.group) == SAID_ELSEWHERE and sign == "-":
                    continue  # of many numbers of an answer some always fit
                result = (start.fact.values[0] + value) % 1440
                if any(abs(result - own) < 0.5 for own in fact.values):
                    told = f"{_clock(start.fact.values[0])} {sign} {_clock(passed)}"
                    return f"{told} = {_clock(result)}"
    return ""


def portions(asked: Sequence[Fact], bases: Sequence[Fact]) -> list[tuple[float, float, str]]:
    """Return the shares of a stated base that portions are, and bases: 45 g per 100 g is 0.45."""
    return [
        (one.values[0] / base.values[0], base.values[0], f"{shown(one.raw)} / {shown(base.raw)}")
        for base in bases
        for one in asked
        if one.unit == base.unit and base.values[0] > 0 and one.values[0] != base.values[0]
    ][:MOST]


def scaled(
    fact: Fact, operands: Sequence[ComputedFrom], shares: Sequence[tuple[float, float, str]]
) -> str:
    """Return how an amount follows from one of the passages for another portion, or ""."""
    for one in operands:
        if one.group < 0 or one.fact.unit != fact.unit or one.fact.kind in NO_AMOUNT:
            continue
        for share, base, told in shares:
            if one.fact.values[0] == base:
                continue
            result = one.fact.values[0] / fact.factor * share
            if _is(fact, result) or abs(result - fact.raw) <= 0.5000001 * fact.step:
                return f"{shown(one.fact.raw)} \u00d7 {told} = {shown(fact.raw)}"
    return ""


def _spans(fact: Fact, operands: Sequence[ComputedFrom]) -> Iterator[tuple[float, str]]:
    dates = [one.fact.date for one in operands if one.fact.date is not None]
    found = {date[0] for date in dates if date[0] is not None}
    if fact.unit and fact.factor >= 12 * MONTH_S - 1:
        found |= {int(one.fact.raw) for one in operands if _may_be_year(one.fact)}
    years = sorted(found)
    to_years = _YEAR_S / fact.factor if fact.unit else 1.0
    for first, last in combinations(years, 2):
        span = f"{last} - {first}"
        yield (last - first) * to_years, span
        yield (last - first - 1) * to_years, span  # before the birthday
    if fact.unit:
        for early, late in _spanned_times(operands):
            check_time()
            passed = (late - early) % 1440
            for lasts, told in (
                (passed, f"{_clock(late)} - {_clock(early)}"),
                (1440 - passed, f"24:00 - {_clock(late)} + {_clock(early)}"),
            ):
                hours = lasts * 60 / fact.factor
                if fact.bound or abs(hours - fact.raw) < _MINUTE:  # a clock is not rounded
                    yield hours, told
        weekdays = [one.fact.raw for one in operands if one.fact.unit == "weekday"]
        for first_day, last_day in combinations(weekdays, 2):
            for more in (0, 1):
                passed = (last_day - first_day) % 7 + more
                yield passed * 86_400 / fact.factor, "from the one weekday to the other"
        months = [d[1] for d in (one.fact.date for one in operands if one.fact.is_range)
                  if d is not None and d[::2] == (None, None) and d[1] is not None]  # fmt: skip
        for start, end in pairwise(months):
            yield (
                ((end - start) % 12 + 1) * MONTH_S / fact.factor,
                "from the one month to the other",
            )
        whole = sorted({date for date in dates if None not in date[1:]}, key=_known_parts)
        for one, other in combinations(whole, 2):
            days = _days(one, other)
            if days is not None:
                yield days * 86_400 / fact.factor, "from the one date to the other"
                yield (days + 1) * 86_400 / fact.factor, "from the one date to the other"


def _may_be_year(fact: Fact) -> bool:
    """Return whether a bare number may be a year that nothing says is one: "from 1411 to 1439"."""
    return fact.kind == "number" and not fact.nouns and fact.step == 1 and 1000 <= fact.raw <= 2100


def _spanned_times(operands: Sequence[ComputedFrom]) -> list[tuple[float, float]]:
    """Return two times of one sentence, or with one of the answer, the earlier one first."""
    times = [one for one in operands if one.fact.unit == "time"]
    pairs = {
        (min(a, b), max(a, b))
        for one, other in combinations(times, 2)
        if one.group == other.group or min(one.group, other.group) < 0
        for a, b in ((one.fact.values[0], other.fact.values[0]),)
        if a != b
    }
    return sorted(pairs)


_MINUTE = 1 / 60


def _known_parts(date: tuple[int | None, ...]) -> tuple[int, ...]:
    return tuple(part or 0 for part in date)


def _days(one: tuple[int | None, ...], other: tuple[int | None, ...]) -> int | None:
    if (one[0] is None) != (other[0] is None):
        return None
    first, last = ((part[0] or NO_YEAR, *part[1:]) for part in (one, other))
    try:
        start, end = (date(*map(int, filter(None, part))) for part in (first, last))
        return abs((end - start).days)
    except (ValueError, TypeError):
        return None


def shown(value: float) -> str:
    """Return a number as a calculation shows it."""
    return f"{value:.6g}"


def _clock(minutes: float) -> str:
    return f"{int(minutes) // 60}:{int(minutes) % 60:02d}"
