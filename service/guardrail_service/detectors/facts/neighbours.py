"""Dates that passages tell by others: "the year after", "the next day", "until 31 March"."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.align import Held, PassageFacts
from guardrail_service.detectors.facts.amounts import Date, Fact
from guardrail_service.detectors.facts.derive import NO_YEAR
from guardrail_service.detectors.facts.read import ReadSentence
from guardrail_service.text.budget import in_time

_STEPS = {"year": 1, "week": 7, "day": 1}
_BACK = 4
"""Sentences before "the next day" in which its date may stand."""
_FROM = frozenset(("from", "after", "since"))
_UNTIL = frozenset(("until", "till", "to", "through"))
_UNITS = frozenset(("year", "week", "day"))


def neighbouring(claim: ReadSentence, fact: Fact, source: PassageFacts) -> str:
    """Return how a date is one that a passage tells by the date beside it, or "".

    The claim has to speak of what happened then: of a word in the clause of "the next day" that the
    other date's clause has not.
    """
    if fact.date is None:
        return ""
    if fact.is_range and fact.date[2] is None:
        return ""
    if fact.date[1] is not None and fact.date[2] is None:
        return _month_behind(claim, fact, source)
    if told := _day_before(claim, fact, source):
        return told
    wanted = ("year",) if fact.date[2] is None else ("day", "week")
    for unit, step, event, other in _steps(source):
        if unit in wanted and claim.content & event and _is_next(fact.date, other, step):
            return f"from the {unit} beside it"
    return ""


def _day_before(claim: ReadSentence, fact: Fact, source: PassageFacts) -> str:
    """Return which first day a range's last one is a year behind: "1 April 2025 to 31 March 2026".

    Only where no passage gives the range another end.
    """
    first = next((one for one in claim.facts if one.is_range and one.other == fact.values[0]), None)
    if not fact.is_range or first is None or first.date is None or fact.date is None:
        return ""
    if first.values[0] >= fact.values[0] or not _is_a_year(first.date, fact.date):
        return ""
    begins = [held.fact for held in in_time(source.held) if held.fact.date is not None]
    if any(one.is_range and one.date == first.date and one.other for one in begins):
        return ""
    told = [one.date for one in begins if one.date is not None]
    if any(one[1:] == first.date[1:] for one in told):
        return f"a year from {first.date[2]}.{first.date[1]}."
    return ""


def _is_a_year(first: Date, last: Date) -> bool:
    """Return whether two days are the first and the last one of a year."""
    if None in first or None in last:
        return False
    try:
        start, end = (date(one[0] or 1, one[1] or 1, one[2] or 1) for one in (first, last))
        behind = end + timedelta(days=1)
    except (ValueError, OverflowError):
        return False
    return (behind.year - 1, behind.month, behind.day) == (start.year, start.month, start.day)


def _steps(source: PassageFacts) -> Iterator[tuple[str, int, frozenset[str], Date]]:
    """Yield each phrase: its unit, the days or years it moves, its clause's words, and its date."""
    for number, (context, one) in enumerate(in_time(source.sentences)):
        if _UNITS.isdisjoint(one.lows):
            continue
        lows = [token.low for token in one.tokens]
        for at in range(len(lows) - 1):
            for unit, steps in words.NEIGHBOURING.items():
                step = next((s for s, told in steps.items() if (lows[at], lows[at + 1]) in told), 0)
                if not step:
                    continue
                near = [
                    (held, fact)
                    for c, held in source.sentences[max(0, number - _BACK) : number + 1]
                    if c == context
                    for fact in held.facts
                    if fact.date is not None and (held is not one or fact.token < at)
                ]
                if near:
                    held, fact = near[-1]
                    own = _clause(held, fact.token)
                    event = _clause(one, at)
                    yield unit, step * _STEPS[unit], event - own, fact.date or (None, None, None)


def _clause(one: ReadSentence, place: int) -> frozenset[str]:
    own = one.clauses[place]
    return frozenset(
        stem for stem, clause in zip(one.stems, one.clauses, strict=True) if stem and clause == own
    )


def _month_behind(claim: ReadSentence, fact: Fact, source: PassageFacts) -> str:
    """Return how "from April onward" follows from "until 31 March", or ""."""
    ahead = [token.low for token in claim.tokens[max(0, fact.token - 2) : fact.token]]
    behind = [token.low for token in claim.tokens[fact.last : fact.last + 1]]
    if fact.date is None or fact.date[1] is None:
        return ""
    is_from = not _FROM.isdisjoint(ahead[-1:])
    if not is_from and ahead != ["as", "of"] and behind not in (["onward"], ["onwards"], ["on"]):
        return ""
    month = (fact.date[1] - 2) % 12 + 1
    last = monthrange(NO_YEAR, month)[1]
    for held in in_time(source.held):
        told = held.fact.date
        if told is not None and told[1] == month and told[2] in (None, last) and _is_end(held):
            return f"from the day behind {last}.{month}."
    return ""


def _is_end(held: Held) -> bool:
    before = held.read.tokens[held.fact.token - 1].low if held.fact.token else ""
    return before in _UNTIL or (held.fact.is_range and held.fact.date is not None)


def _is_next(wanted: Date, other: Date, step: int) -> bool:
    """Return whether a date is so many years, or days, behind another one."""
    if wanted[2] is None:
        return other[0] is not None and wanted[0] == other[0] + step
    if other[2] is None or None in (wanted[1], other[1]):
        return False
    year = wanted[0] or other[0] or NO_YEAR
    try:
        first, last = (date(one[0] or year, one[1] or 1, one[2] or 1) for one in (other, wanted))
    except ValueError:
        return False
    return (last - first).days in (step, step - 365 if step > 0 else step + 365)
