"""Dates and times of day, in digits and in words."""

# Signs of several scripts are the data.

from __future__ import annotations

from collections.abc import Sequence

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.amounts import Date, Fact, bound_at, year_of
from guardrail_service.detectors.facts.languages import Token


def _day(token: Token) -> int | None:
    if token.kind == "n" and len(token.text) <= 2 and token.text.isdecimal():
        value = int(token.text)
        return value if 1 <= value <= 31 else None
    return None


def _past(tokens: Sequence[Token], place: int) -> int:
    """Return the place behind what may stand between the parts of a date."""
    while place < len(tokens) and (
        tokens[place].low in words.IN_DATES or tokens[place].low in words.ORDINAL_ENDS
    ):
        place += 1
    return place


def dated(tokens: Sequence[Token], place: int) -> Fact | None:
    """Return the date that begins at a token, or None."""
    return _written_date(tokens, place) if tokens[place].kind == "w" else _digit_date(tokens, place)


def _digit_date(tokens: Sequence[Token], place: int) -> Fact | None:
    token = tokens[place]
    if (found := _all_digits(tokens, place)) is not None:
        return found
    day = _day(token)
    if day is not None:
        month = _past(tokens, place + 1)
        if (
            month < len(tokens)
            and month - place <= 3
            and tokens[month].low in words.MONTHS
            and (
                tokens[month].text[0].isupper()
                or not token.text.isascii()
                or tokens[month].low != "may"
            )
        ):
            last = month + 1
            year = _past(tokens, last)
            value = year_of(tokens[year]) if year < len(tokens) and year - last <= 2 else None
            last = year + 1 if value is not None else last
            return _date(tokens, place, last, (value, words.MONTHS[tokens[month].low], day))
    return None


def _all_digits(tokens: Sequence[Token], place: int) -> Fact | None:
    """Return a date of digits and signs: 2015-11-20, 20.11.2015, 11/20/2015, 2015年11月20日."""
    token = tokens[place]
    if "." in token.text:
        parts = token.text.split(".")
        if len(parts) == 3 and len(parts[2]) in (2, 4) and all(map(str.isdecimal, parts)):
            first, second, third = map(int, parts)
            if 1 <= first <= 31 and 1 <= second <= 12:
                full = third if third > 99 else 2000 + third
                return _date(tokens, place, place + 1, (full, second, first))
        return None
    year = year_of(token)
    rest = tokens[place + 1 : place + 6]
    texts = [t.text for t in rest]
    if (
        year is not None
        and len(texts) >= 4
        and texts[0] == texts[2]
        and texts[0] in "-/."
        and (_day(rest[1]) is not None and _day(rest[3]) is not None and int(texts[1]) <= 12)
    ):
        return _date(tokens, place, place + 5, (year, int(texts[1]), int(texts[3])))
    if day_of := _month_day(tokens, place):
        return day_of
    if year is not None and texts[:1] in (["年"], ["년"]):
        is_month = len(texts) > 2 and texts[2] in ("月", "월") and texts[1].isdecimal()
        month = int(texts[1]) if is_month else None
        day = int(texts[3]) if month and len(texts) > 4 and texts[3].isdecimal() else None
        return _date(tokens, place, place + 2 + 2 * (month is not None) + (day is not None),
                     (year, month, day))  # fmt: skip
    if len(texts) >= 4 and texts[0] == texts[2] and texts[0] in "/-" and _day(token) is not None:
        one, other, full_year = int(token.text), _day(rest[1]), year_of(rest[3])
        if other is not None and full_year is not None and min(one, other) <= 12:
            # Day or month first: what cannot be a month is the day; else both stay open.
            if one > 12:
                return _date(tokens, place, place + 5, (full_year, other, one))
            if other > 12:
                return _date(tokens, place, place + 5, (full_year, one, other))
            same = (full_year, one, other) if one == other else (full_year, None, None)
            return _date(tokens, place, place + 5, same)
        short = _short_year(rest[3]) if texts[0] == "/" else None
        if other is not None and short is not None and min(one, other) <= 12:
            day, month = (one, other) if one > 12 else (other, one)
            known = one == other or max(one, other) > 12
            date = (short, month, day) if known else (short, None, None)
            return _date(tokens, place, place + 5, date)
    return None


def _short_year(token: Token) -> int | None:
    """Return the year that two digits behind a day and a month mean, or None."""
    if len(token.text) != 2 or not token.text.isdecimal():
        return None
    value = int(token.text)
    return value + (1900 if value > 40 else 2000)


def _month_day(tokens: Sequence[Token], place: int) -> Fact | None:
    """Return a date without a year in signs: 6月28日, 6월 28일."""
    marks = ("月", "日号號"), ("월", "일")
    rest = tokens[place + 1 : place + 4]
    month, day = _day(tokens[place]), _day(rest[1]) if len(rest) > 2 else None
    if month is None or day is None or month > 12:
        return None
    if not any(rest[0].text == one and rest[2].text[0] in other for one, other in marks):
        return None
    return _date(tokens, place, place + 4, (None, month, day))


def _written_date(tokens: Sequence[Token], place: int) -> Fact | None:
    """Return a date that begins with a month's name."""
    month = words.MONTHS[tokens[place].low]
    at = _past(tokens, place + 1)
    if at < len(tokens) and tokens[at - 1].low == "of" and year_of(tokens[at]) is None:
        at = len(tokens)  # "in February of 21 counts"
    if at < len(tokens) and at - place <= 3:
        year, day = year_of(tokens[at]), _day(tokens[at])
        if year is not None:
            return _date(tokens, place, at + 1, (year, month, None))
        is_amount = at + 1 < len(tokens) and (tokens[at + 1].low,) in words.UNITS
        if day is not None and not (is_amount and tokens[at - 1].text == ","):
            last = at + 1
            if last < len(tokens) and tokens[last].low in words.ORDINAL_ENDS:
                last += 1
            behind = _past(tokens, last)
            year = year_of(tokens[behind]) if behind < len(tokens) and behind - last <= 1 else None
            return _date(tokens, place, behind + 1 if year is not None else last,
                         (year, month, day))  # fmt: skip
    if tokens[place].text in words.LONE_MONTHS:
        return _date(tokens, place, place + 1, (None, month, None))
    return None


def _date(tokens: Sequence[Token], place: int, last: int, date: Date) -> Fact:
    year, month, day = date
    value = (year or 0) * 372.0 + (month or 0) * 31.0 + (day or 0)
    return Fact(tokens[place].start, tokens[last - 1].end, "date", "date", (value,), value,
                date=date, last=last, token=place, bound=bound_at(tokens, place))  # fmt: skip


def timed(tokens: Sequence[Token], place: int) -> Fact | None:
    """Return the time of day that begins at a number, or None."""
    text = tokens[place].text
    last, minute = place + 1, 0
    marked = False
    if len(text) == 4 and text.isdecimal() and _are_military(tokens, place):
        hour, minute, marked = int(text[:2]), int(text[2:]), True  # "at 1300 hours"
        last += 1
    elif "." in text and len(text) <= 5:
        head, _, tail = text.partition(".")
        if not (head.isdecimal() and len(tail) == 2 and tail.isdecimal()):
            return None
        hour, minute = int(head), int(tail)
        marked = place > 0 and tokens[place - 1].low in _BEFORE_HOURS and minute % 5 == 0
    elif text.isdecimal() and len(text) <= 2:
        hour = int(text)
        if _is_at(tokens, last, ":") and last + 1 < len(tokens):
            tail = tokens[last + 1].text
            if (
                not (tail.isdecimal() and len(tail) == 2)
                or tokens[last + 1].start != tokens[last].end
            ):
                return None
            minute, marked, last = int(tail), True, last + 2
        elif (
            last < len(tokens)
            and tokens[last].low == "h"
            and last + 1 < len(tokens)
            and (
                tokens[last + 1].text.isdecimal()
                and len(tokens[last + 1].text) == 2
                and tokens[last].start - tokens[place].end
                == tokens[last + 1].start - tokens[last].end
                <= 1  # "15h30", "15 h 30"
            )
            and not (last + 2 < len(tokens) and tokens[last + 2].low in _MINUTES)
        ):
            minute, marked, last = int(tokens[last + 1].text), True, last + 2
    else:
        return None
    if marked and _is_at(tokens, last, ":") and last + 1 < len(tokens):
        seconds = tokens[last + 1]
        if seconds.text.isdecimal() and len(seconds.text) == 2:
            value = hour * 3600.0 + minute * 60 + int(seconds.text)
            return Fact(tokens[place].start, seconds.end, "duration", "duration", (value,), value,
                        token=place, last=last + 2)  # fmt: skip
    if (
        marked
        and last < len(tokens)
        and tokens[last].low in _PACED
        and tokens[last - 2].text == ":"
    ):
        value = hour * 60.0 + minute
        return Fact(tokens[place].start, tokens[last].end, "duration", "duration", (value,), value,
                    token=place, last=last + 1, bound=bound_at(tokens, place))  # fmt: skip
    half, last = _half_of_day(tokens, last)
    if half == "clock":
        marked = True
        minute, last = _minutes_behind(tokens, last, minute)
    if (not half and not marked) or hour > 24 or minute > 59:
        return None
    value = float((hour % 24) * 60 + minute)
    if half in ("am", "pm"):
        value = float((hour % 12 + (12 if half == "pm" else 0)) * 60 + minute)
        values: tuple[float, ...] = (value,)
    elif hour <= 12:
        values = (value, float((value + 720) % 1440))
    else:
        values = (value,)
    return Fact(tokens[place].start, tokens[last - 1].end, "time", "time", values, values[0],
                token=place, last=last, bound=bound_at(tokens, place))  # fmt: skip


def spoken_time(tokens: Sequence[Token], place: int) -> Fact | None:
    """Return an English time of day that begins with a word: "half past four", or None."""
    minute, at = 0.0, place
    low = tokens[place].low
    if low in _PARTS_OF_AN_HOUR:
        minute, at = _PARTS_OF_AN_HOUR[low], place + 1
    elif (found := _small(tokens, place)) is not None:
        minute, at = found
        at += at < len(tokens) and tokens[at].low in ("minute", "minutes")
    joint = tokens[at].low if at < len(tokens) else ""
    if at > place and (joint == "past" or (joint == "to" and low != "half")):
        before = tokens[place - 1].low if place else ""
        before = tokens[place - 2].low if before == "a" and place > 1 else before
        hour = _small(tokens, at + 1)
        if hour is None or not 1 <= hour[0] <= 12:
            return None
        ends = hour[1] >= len(tokens) or tokens[hour[1]].kind == "s"
        if joint == "to" and not (before in _AT and (ends or tokens[hour[1]].low in _BEHIND)):
            return None  # "five to ten days"
        clock = hour[0] * 60 + (minute if joint == "past" else -minute)
        return _spoken(tokens, place, hour[1], clock)
    hour = _small(tokens, place)
    if hour is None or not 1 <= hour[0] <= 12:
        return None
    behind = [token.low for token in tokens[hour[1] : hour[1] + 3]]
    if behind[:1] == ["o'clock"] or behind[:1] == ["o\u2019clock"]:
        return _spoken(tokens, place, hour[1] + 1, hour[0] * 60)
    if behind[:2] == ["in", "the"] and behind[2:] and behind[2] in _HALVES:
        return _spoken(tokens, place, hour[1], hour[0] * 60)
    return None


def _small(tokens: Sequence[Token], place: int) -> tuple[float, int] | None:
    """Return a number below sixty in words or digits, and the place behind it."""
    if place >= len(tokens):
        return None
    token = tokens[place]
    if token.kind == "n":
        return (float(token.text), place + 1) if token.text.isdecimal() else None
    value = words.NUMBER_WORDS.get(token.low)
    if value is None or value >= 60:
        return None
    at = place + 1 + (place + 1 < len(tokens) and tokens[place + 1].text == "-")
    more = words.NUMBER_WORDS.get(tokens[at].low, 99) if at < len(tokens) else 99
    if value in (20, 30, 40, 50) and 0 < more < 10:
        return float(value + more), at + 1
    return float(value), place + 1


def _spoken(tokens: Sequence[Token], place: int, last: int, clock: float) -> Fact:
    half = ""
    behind = [token.low for token in tokens[last : last + 3]]
    if behind[:2] == ["in", "the"] and behind[2:] and behind[2] in _HALVES:
        half, last = _HALVES[behind[2]], last + 3
    elif behind[:2] == ["at", "night"]:
        half, last = "pm", last + 2
    else:
        half, last = _half_of_day(tokens, last)
    clock %= 720
    values = (clock, clock + 720.0)
    if half in ("am", "pm"):
        values = (values[half == "pm"],) * 2
    return Fact(tokens[place].start, tokens[last - 1].end, "time", "time", values, values[0],
                token=place, last=last, bound=bound_at(tokens, place))  # fmt: skip


_MINUTES = frozenset(("min", "mins", "minutes", "minuten", "minuti", "minutos", "minut"))
"""Behind "1 h 15" they make it a duration."""
_PARTS_OF_AN_HOUR = {"quarter": 15.0, "half": 30.0}
_HALVES = {"morning": "am", "afternoon": "pm", "evening": "pm"}
_AT = frozenset(("at", "by", "until", "till", "before", "after", "about", "around"))
_BEHIND = frozenset(("in", "and", "or", "on", "until", "till", "a", "p", "when", "but"))


def _minutes_behind(tokens: Sequence[Token], place: int, minute: int) -> tuple[int, int]:
    """Return the minutes of "16時30分" or "4時半", and the place behind them."""
    if place >= len(tokens) or tokens[place - 1].text not in _HOUR_SIGNS:
        return minute, place
    token = tokens[place]
    if token.text[0] == "半":
        return 30, place + 1
    behind = tokens[place + 1].text if place + 1 < len(tokens) else ""
    if behind[:1] in ("分", "분") and token.text.isdecimal() and int(token.text) < 60:
        return int(token.text), place + 2
    return minute, place


_PACED = frozenset(("min", "minutes", "mins"))
"""Behind "7:49" they mean minutes and seconds."""
_BEFORE_HOURS = frozenset(("alle", "ore", "dalle", "um", "kl", "om"))
_HOUR_SIGNS = frozenset("点點時时시")


def _are_military(tokens: Sequence[Token], place: int) -> bool:
    """Return whether four digits are a time of day: "at 1300 hours"."""
    before = tokens[place - 1].low if place else ""
    behind = tokens[place + 1].low if place + 1 < len(tokens) else ""
    last = tokens[place + 2].low if place + 2 < len(tokens) else ""
    return behind == "hours" and before == "at" and last != "of"


def _is_at(tokens: Sequence[Token], place: int, sign: str) -> bool:
    return (
        place < len(tokens)
        and tokens[place].text == sign
        and tokens[place].start == tokens[place - 1].end
    )


_CLOCKS = frozenset(("uhr", "o'clock", "o\u2019clock", "点", "點", "時", "时", "시"))


def _half_of_day(tokens: Sequence[Token], place: int) -> tuple[str, int]:
    """Return "am", "pm", "clock" or "" and the place behind it."""
    low = [token.low for token in tokens[place : place + 4]]
    if low[:1] in (["am"], ["pm"]):
        return low[0], place + 1
    if low[:3] in (["a", ".", "m"], ["p", ".", "m"]):
        return low[0] + "m", place + (4 if low[3:] == ["."] else 3)
    if low[:2] == ["in", "the"] and low[2:3] in (["morning"], ["afternoon"], ["evening"]):
        return "am" if low[2] == "morning" else "pm", place + 3
    if low[:1] and low[0] in _CLOCKS and low[1:2] not in (["間"], ["间"]):
        return "clock", place + 1
    return "", place
