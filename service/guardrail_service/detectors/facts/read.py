"""Reads a sentence: its tokens, stems and clauses, and the exact facts it states."""

# Signs of several scripts are the data.
# ruff: noqa: RUF001

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.amounts import (
    DASHES,
    Fact,
    Number,
    amount,
    bound_at,
    decimals,
    in_unit_of,
    measured,
    nouns_at,
    readings_of,
    stem,
    stems,
)
from guardrail_service.detectors.facts.dates import dated, spoken_time, timed
from guardrail_service.detectors.facts.languages import Token, in_language, without_blanks
from guardrail_service.text.budget import check_time
from guardrail_service.text.segmentation.sentences import Sentence

T = TypeVar("T")
_CLAUSE = frozenset(';:()[]|!?"–—')


@dataclass(frozen=True, slots=True)
class ReadSentence:
    """A sentence with its facts.

    Attributes:
        start: Offset of the sentence in its text.
        text: The sentence.
        tokens: Its tokens, offsets from the sentence's start.
        stems: The stem of each token; "" for signs and stop words.
        clauses: The number of the clause each token stands in.
        facts: Its facts in order, offsets from the sentence's start.
        numbers: Every number that stands in it, whatever it means.
        content: All of its stems.
        signals: Which of `denial`, `amount`, `order`, `condition` and `names` its words may be
            about.
    """

    start: int
    text: str
    tokens: tuple[Token, ...]
    stems: tuple[str, ...]
    clauses: tuple[int, ...]
    facts: tuple[Fact, ...]
    numbers: frozenset[float]
    content: frozenset[str] = field(default_factory=frozenset)
    signals: frozenset[str] = frozenset()
    _known: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def once(self, key: str, compute: Callable[[ReadSentence], T]) -> T:
        """Return what `compute` gave the first time: a sentence is compared with many others.

        It must not refer to the sentence. Such a cycle outlives both until the garbage collector
        looks at everything, which in a service it seldom does: 8,000 requests left 180 MB.
        """
        if key not in self._known:
            self._known[key] = compute(self)
        known: T = self._known[key]
        return known

    @property
    def lows(self) -> frozenset[str]:
        """Return its words and signs in small letters."""
        return self.once("lows", _lows)


def read(text: str, start: int = 0, language: str = "") -> ReadSentence:
    """Return a sentence with its facts; `language` is empty for English."""
    return (_kept if len(text) <= KEPT_CHARS else _read)(text, start, language)


KEPT_SENTENCES = 1_024
KEPT_CHARS = 1_000
"""Claims are compared one by one with the same passages, and passages repeat across requests; 1,024
sentences of 25 words take about 8 MB, and more with what is worked out of them."""


def _read(text: str, start: int, language: str) -> ReadSentence:
    tokens = tokenised(text, language)
    found, loose = _facts(tokens) if _may_have_facts(tokens) else ((), frozenset())
    stems = _stems(tokens)
    return ReadSentence(
        start,
        text,
        tokens,
        stems,
        _clauses(tokens),
        found,
        loose,
        frozenset(filter(None, stems)),
        _signals(tokens),
    )


_kept = lru_cache(KEPT_SENTENCES)(_read)


def _lows(one: ReadSentence) -> frozenset[str]:
    return frozenset(token.low for token in one.tokens)


def _signals(tokens: Sequence[Token]) -> frozenset[str]:
    lows = {token.low for token in tokens}
    found = {name for name, listed in words.SIGNALS.items() if not lows.isdisjoint(listed)}
    if sum(t.kind == "w" and t.text[0].isupper() for t in tokens) > 1:
        found.add("names")
    if len(tokens) > 1 and tokens[0].kind == "n" and tokens[1].text in (".", ")"):
        found.add("order")
    return frozenset(found)


def read_all(*groups: Sequence[Sentence], language: str = "") -> list[list[ReadSentence]]:
    """Return the sentences of each group, read."""
    return [[read(one.text, one.start, language) for one in group] for group in groups]


def _stems(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return each token's stem; a number right behind a name ("Home 500") is a part of it."""
    told = [
        token.low if token.kind == "w" and token.low not in words.STOP else "" for token in tokens
    ]
    return tuple(
        _part_of_name(tokens, place) if tokens[place].kind == "n" else found
        for place, found in enumerate(stems(told))
    )


def _part_of_name(tokens: Sequence[Token], place: int) -> str:
    """Return what stands for a number behind a name, "" for any other."""
    token = tokens[place]
    if place and len(token.text) <= 5:
        before = tokens[place - 1]
        named = before.kind == "w" and before.text[0].isupper() and before.low not in words.MONTHS
        if named and before.low not in words.STOP and token.start - before.end <= 1:
            return "#" + token.text
        if before.end == token.start and before.kind == "w":
            return "#" + token.text
    return ""


def tokenised(text: str, language: str = "") -> tuple[Token, ...]:
    """Return numbers, words and signs in order; digits of any script become ASCII ones.

    Args:
        text: The text.
        language: Its code of two letters where it is not English; then `low` is the English word
            that a number word, weekday or function word means, and of others the first letters.
    """
    plain = text if text.isascii() else _ascii_digits(text)
    found: list[Token] = []
    at = 0
    for count, piece in enumerate(plain.split()):
        if count % 1024 == 1023:
            check_time()
        at = plain.index(piece, at)
        end = at + len(piece)
        if piece.isalpha() and piece[0] < "\u3040":
            found.append(Token("w", piece, piece.lower(), at, end))
        elif piece[:-1].isalpha() and piece[-1] in _ENDS and piece[0] < "\u3040":
            found.append(Token("w", piece[:-1], piece[:-1].lower(), at, end - 1))
            found.append(Token("s", piece[-1], piece[-1], end - 1, end))
        else:
            _pieces(piece, at, found)
        at = end
    return tuple(in_language(found, language)) if language else tuple(found)


_ENDS = frozenset(".,;:!?)")


def _pieces(piece: str, start: int, found: list[Token]) -> None:
    """Add the numbers, words and signs of a piece of text without blanks."""
    at, size = 0, len(piece)
    while at < size:
        if at % 1024 == 1023:
            check_time()
        sign = piece[at]
        end = at + 1
        if "0" <= sign <= "9":
            while end < size and (
                "0" <= piece[end] <= "9"
                or (piece[end] in _IN_NUMBERS and "0" <= piece[end + 1 : end + 2] <= "9")
            ):
                end += 1
            _add_number(piece[at:end], start + at, found)
        elif sign.isalpha():
            while end < size and (
                piece[end].isalpha()
                or (piece[end] in "'\u2019" and piece[end + 1 : end + 2].isalpha())
                or (not piece[end].isascii() and unicodedata.category(piece[end])[0] == "M")
            ):
                end += 1
            word = piece[at:end]
            if word[0] >= "\u3040":
                found += without_blanks(word, start + at)
            else:
                found.append(Token("w", word, word.lower(), start + at, start + end))
        else:
            found.append(Token("s", sign, sign, start + at, start + end))
        at = end


_IN_NUMBERS = frozenset(".,'\u2019\u00b7")


def _add_number(own: str, start: int, found: list[Token]) -> None:
    own = own.replace("\u00b7", ".")
    parts = own.split(",") if "," in own and _is_column(own, found, start) else [own]
    for part in parts:
        found.append(Token("n", part, part, start, start + len(part)))
        start += len(part) + 1


def _is_column(own: str, before: Sequence[Token], start: int) -> bool:
    """Return whether a comma parts two numbers: "2020-04-12,141.5", "3,4"."""
    if (
        len(before) > 1
        and before[-1].text == "-"
        and before[-2].kind == "n"
        and (before[-1].end == start and before[-2].end == before[-1].start)
    ):
        return True
    return all(own.split(",")) and not readings_of(own)[0]


def _ascii_digits(text: str) -> str:
    if not any(c.isdecimal() and not c.isascii() for c in text):
        return text
    return "".join(
        str(unicodedata.decimal(c)) if c.isdecimal() and not c.isascii() else c for c in text
    )


def _may_have_facts(tokens: Sequence[Token]) -> bool:
    return any(t.kind == "n" or t.low in _TRIGGERS for t in tokens)


_TRIGGERS = frozenset((
    *words.NUMBER_WORDS, *words.ORDINALS, *words.WEEKDAYS, *words.FRACTIONS, "noon", "midnight",
    "twice", "thrice", "once", "point", *(day.lower() for day in words.SHORT_WEEKDAYS),
    *(m.lower() for m in words.LONE_MONTHS),
    "hundred", "thousand", "million", "billion", "dozen", "hour", "day", "week", "month", "year",
    "fortnight",
))  # fmt: skip


def _clauses(tokens: Sequence[Token]) -> tuple[int, ...]:
    found, clause = [], 0
    for place, token in enumerate(tokens):
        if (
            (token.text in _BULLETS and _is_apart(tokens, place))
            or (
                token.kind == "s"
                and not _is_score(tokens, place)
                and (token.text in _CLAUSE or (token.text == "," and not _is_joined(tokens, place)))
            )
            or token.low in ("and", "but", "while", "whereas", "or", "y", "und", "et")
        ):
            clause += 1
        found.append(clause)
    return tuple(found)


_BULLETS = frozenset("-*\u2022")


def _is_apart(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a sign has blanks on both sides."""
    token = tokens[place]
    before = tokens[place - 1].end if place else -1
    return token.start > before and token.end < (
        tokens[place + 1].start if place + 1 < len(tokens) else token.end + 1
    )


def _is_score(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a dash joins two numbers: "26\u201326"."""
    if tokens[place].text not in ("\u2013", "\u2014") or not 0 < place < len(tokens) - 1:
        return False
    before, after = tokens[place - 1], tokens[place + 1]
    return before.kind == after.kind == "n" and before.end + 1 == after.start


def _is_joined(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a comma stands inside a date ("May 5, 2020")."""
    after = tokens[place + 1] if place + 1 < len(tokens) else None
    return (
        after is not None
        and after.kind == "n"
        and len(after.text) == 4
        and place > 0
        and (tokens[place - 1].kind == "n" or tokens[place - 1].low in words.MONTHS)
    )


def _facts(tokens: tuple[Token, ...]) -> tuple[tuple[Fact, ...], frozenset[float]]:
    found: list[Fact] = []
    numbers: set[float] = set()
    place = 0
    while place < len(tokens):
        token = tokens[place]
        fact: Fact | None = None
        if token.kind == "n":
            if (end := _past_phone(tokens, place)) > place:
                place = end
                continue
            numbers.update(readings_of(token.text)[0])
            fact = dated(tokens, place) or timed(tokens, place) or measured(tokens, place)
        elif token.kind == "w":
            fact = _worded(tokens, place)
        if fact is None:
            place += 1
            continue
        numbers.update(fact.values if not fact.unit else (fact.raw, *fact.values))
        found.append(fact)
        place = max(fact.last, place + 1)
    found = _in_currency(_day_ranges(_summed(_sides(found, tokens), tokens), tokens))
    return tuple(_ranged(found, tokens)), frozenset(numbers)


_PHONE_DIGITS = 7
_YEAR = 4
_IN_PHONES = frozenset(("-", "/", "(", ")", "\u2013"))


def _past_phone(tokens: Sequence[Token], place: int) -> int:
    """Return the place behind a phone number that begins at a token, or the token's place."""
    first = tokens[place]
    opened = place > 0 and tokens[place - 1].text in "+("
    if not (first.text[0] == "0" or opened) or not first.text.isdecimal():
        return place
    digits, at = first.text, place + 1
    while at < len(tokens):
        token = tokens[at]
        if token.start - tokens[at - 1].end > 1:
            break
        if token.kind == "n" and token.text.isdecimal():
            digits += token.text
        elif token.text not in _IN_PHONES:
            break
        at += 1
    is_span = len(digits) == 2 * _YEAR == 2 * len(first.text)  # "(1884-1969)"
    return at if len(digits) > _PHONE_DIGITS and not is_span else place


def _day_ranges(found: Sequence[Fact], tokens: Sequence[Token]) -> list[Fact]:
    """Return the facts with both days of "16 to Thursday 18 September" as dates."""
    facts = list(found)
    for at in reversed(range(len(facts))):  # "24, 25 and 26 December": the last one first
        fact = facts[at]
        if fact.unit or fact.kind != "number" or fact.is_word or not 1 <= fact.raw <= 31:
            continue
        after = next((one for one in facts[at + 1 : at + 3] if one.kind != "weekday"), None)
        if after is not None and after.date is not None and after.date[2] is not None:
            joint = tokens[fact.last : after.token]
            is_listed = [token.text for token in joint] == [","] and after.kind == "date"
            if _joins_days(joint) or (is_listed and after != found[facts.index(after)]):
                facts[at] = _as_day(fact, after)
                continue
        before = facts[at - 1] if at else None
        if before is not None and before.date is not None and before.date[2] is not None:
            joint = tokens[before.last : fact.token]
            if joint and _joins_days(joint) and not fact.nouns and before.date[2] < fact.raw:
                facts[at] = _as_day(fact, before)
    return facts


_MILLION = 1e6
_YEARS = frozenset(("year", "quart", "month"))


def _in_currency(found: Sequence[Fact]) -> list[Fact]:
    """Return the facts with "from 1.1 million euros to 3.8 million" in one currency."""
    paid = [fact for fact in found if fact.kind == "money"]
    if len({(fact.unit, fact.factor) for fact in paid}) != 1:
        return list(found)
    return [
        in_unit_of(fact, paid[0])
        if not fact.unit
        and fact.kind == "number"
        and fact.raw >= _MILLION > fact.raw / fact.step
        and (not fact.nouns or fact.nouns[0] in _YEARS)
        else fact
        for fact in found
    ]


def _joins_days(joint: Sequence[Token]) -> bool:
    lows = [token.low for token in joint if token.low not in words.WEEKDAYS]
    lows = [low for low in lows if low not in (".", "the", "th", "st", "nd", "rd")]
    return len(lows) == 1 and (lows[0] in _JOINTS or lows[0] in ("\ubd80\ud130", "\ubd80"))


def _as_day(fact: Fact, other: Fact) -> Fact:
    year, month, _ = other.date or (None, None, None)
    day = int(fact.raw)
    value = (year or 0) * 372.0 + (month or 0) * 31.0 + day
    return replace(
        fact,
        kind="date",
        unit="date",
        values=(value,),
        raw=value,
        date=(year, month, day),
        nouns=(),
    )


def _sides(found: Sequence[Fact], tokens: Sequence[Token]) -> list[Fact]:
    """Return the facts with "55 x 40 x 20 cm" in one unit."""
    facts = list(found)
    joined = [
        [token.low for token in tokens[one.last : other.token]] in (["x"], ["\u00d7"], ["by"])
        for one, other in pairwise(facts)
    ]
    for at in reversed(range(len(joined))):
        one, other = facts[at], facts[at + 1]
        is_box = joined[at] and any(joined[max(0, at - 1) : at] + joined[at + 1 : at + 2])
        if is_box and not one.unit and other.unit == "length" and one.kind == "number":
            facts[at] = in_unit_of(one, other)
    return facts


def _summed(found: Sequence[Fact], tokens: Sequence[Token]) -> list[Fact]:
    """Return the facts with "11 hours and 35 minutes" as one."""
    facts: list[Fact] = []
    for fact in found:
        before = facts[-1] if facts else None
        if (
            before is not None
            and fact.unit == before.unit
            and before.factor > fact.factor
            and (
                fact.unit in ("duration", "length", "mass")
                and "".join(t.low for t in tokens[before.last : fact.token]) in ("", "and", ",")
            )
        ):
            value = before.values[0] + fact.values[0]
            facts[-1] = replace(
                fact, start=before.start, token=before.token, values=(value,), bound=before.bound,
                raw=value / fact.factor,
            )  # fmt: skip
        else:
            behind = tokens[fact.last : fact.last + 1]
            if fact.unit == "duration" and behind and behind[0].text[0] in "\u534a\ubc18":
                half = fact.values[0] + fact.factor / 2  # "1.5 hours" in Chinese, Japanese, Korean
                fact = replace(
                    fact, values=(half,), raw=half / fact.factor, end=behind[0].end, nouns=(),
                    last=fact.last + 1,
                )  # fmt: skip
            facts.append(fact)
    return facts


_OF_NOON = words.listed("break breaks sun heat pause closure")
"""What a "midday break" is of: no time is told."""


def _worded(tokens: Sequence[Token], place: int) -> Fact | None:
    """Return the fact that begins with a word, or None."""
    token = tokens[place]
    low = token.low
    if low in words.WEEKDAYS:
        return _named(tokens, place, "weekday", words.WEEKDAYS[low])
    if token.text in words.SHORT_WEEKDAYS:
        return _named(tokens, place, "weekday", words.SHORT_WEEKDAYS[token.text])
    if low in words.MONTHS:
        found = dated(tokens, place)
        if token.text[0].isupper() or (found and found.date and all(found.date)):
            return found  # "march 13th 2015" is one, "they march 13 miles" is not
    behind = tokens[place + 1] if place + 1 < len(tokens) else None
    is_kind = behind is not None and behind.kind == "w" and behind.low in _OF_NOON
    if low in ("noon", "midnight", "midday") and not is_kind:
        value = 0.0 if low == "midnight" else 720.0
        return Fact(token.start, token.end, "time", "time", (value,), value, token=place,
                    last=place + 1)  # fmt: skip
    if low in _SPOKEN and (spoken := _spoken(tokens, place)) is not None:
        return spoken
    if low in ("twice", "thrice") or (low == "once" and _is_counted(tokens, place)):
        value = {"once": 1.0, "twice": 2.0, "thrice": 3.0}[low]
        return Fact(token.start, token.end, "number", "times", (value,), value, is_word=True,
                    token=place, last=place + 1)  # fmt: skip
    if low in words.ORDINALS:
        return _ordinal_word(tokens, place)
    if low in ("half", "quarter") or (
        low in ("one", "two", "three", "four", "a") and _fraction_at(tokens, place) is not None
    ):
        return _fraction(tokens, place)
    if low in words.NUMBER_WORDS:
        return measured(tokens, place)
    if low == "point" and (part := decimals(tokens, place + 1)):  # "point six milligrams"
        last = place + 1 + len(part)
        number = Number(last, (float("0." + part),), 10.0 ** -len(part), True, False)
        found = amount(tokens, place, number)
        return found if found is not None and found.kind == "measure" else None
    if low == "a" and place + 1 < len(tokens) and tokens[place + 1].low == "fortnight":
        return amount(tokens, place, Number(place + 1, (1.0,), 1.0, True, False))
    if low in ("a", "an", "per") and place + 1 < len(tokens):
        return None
    if low in ("hundred", "thousand", "million", "billion", "dozen") and (
        place and tokens[place - 1].low in ("a", "one", "per")
    ):
        return amount(tokens, place, Number(place, (1.0,), 1.0, True, False))
    return None


def _spoken(tokens: Sequence[Token], place: int) -> Fact | None:
    """Return the time of day that begins with a word, or None."""
    if tokens[place].low == "one" and place and tokens[place - 1].low not in _AT_ONE:
        return None  # "two races, one in the morning"
    behind = (token.low for token in tokens[place + 1 : place + 5])
    return None if _TIME_WORDS.isdisjoint(behind) else spoken_time(tokens, place)


_AT_ONE = words.listed("at by until till around about from to before after past")
_SPOKEN = frozenset(words.NUMBER_WORDS) | {"quarter", "half"}
_TIME_WORDS = frozenset(
    ("past", "to", "o'clock", "o\u2019clock", "morning", "afternoon", "evening")
)


def _ordinal_word(tokens: Sequence[Token], place: int) -> Fact | None:
    token = tokens[place]
    after = tokens[place + 1] if place + 1 < len(tokens) else None
    before = tokens[place - 1].low if place else ""
    value = float(words.ORDINALS[token.low])
    if stem(before) in _RANKED and value > 1:
        after = None
    elif after is None or after.kind != "w" or (after.low in words.STOP and before != "the"):
        return None
    return Fact(
        token.start, token.end, "ordinal", "ordinal", (value,), value,
        nouns=nouns_at(tokens, place + 1), is_word=True, token=place, last=place + 1,
    )  # fmt: skip


_RANKED = frozenset(("finish", "com", "plac", "rank", "cam", "was", "been", "is", "end"))


def _is_counted(tokens: Sequence[Token], place: int) -> bool:
    """Return whether "once" counts: "once a week", "only once"."""
    before = tokens[place - 1].low if place else ""
    after = tokens[place + 1].low if place + 1 < len(tokens) else "."
    return before in ("only", "just") or after in ("a", "per", "every", "each")


def _fraction_at(tokens: Sequence[Token], place: int) -> int | None:
    """Return where the fraction word of "two thirds" stands, or None."""
    at = place + 1
    if at < len(tokens) and tokens[at].text == "-":
        at += 1
    if at >= len(tokens) or tokens[at].low not in words.FRACTIONS:
        return None
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    is_share = after is not None and after.low in ("of", "the", "more", "less")
    return at if tokens[at].low.endswith("s") or is_share else None


def _fraction(tokens: Sequence[Token], place: int) -> Fact | None:
    at = place if tokens[place].low in ("half", "quarter") else _fraction_at(tokens, place)
    if at is None:
        return None
    times = words.NUMBER_WORDS.get(tokens[place].low, 1) if at != place else 1
    after = tokens[at + 1].low if at + 1 < len(tokens) else ""
    behind = at + 1
    while behind < len(tokens) and tokens[behind].low in ("a", "an", "of", "-"):
        behind += 1
    if behind < len(tokens) and behind - at <= _PART_OF:
        unit = words.UNITS.get((tokens[behind].low,))
        if unit is not None and unit[0] in _PARTED:
            value = times * words.FRACTIONS[tokens[at].low] / 100
            return Fact(
                tokens[place].start, tokens[behind].end, _PARTED[unit[0]], unit[0],
                (value * unit[1],), value, unit[1], 0.1, token=place, last=behind + 1, is_word=True,
                bound="" if unit[0] == "duration" else bound_at(tokens, place) or "about",
            )  # fmt: skip
    if after not in ("of", "the", "off", "more", "less"):
        return None
    value = times * words.FRACTIONS[tokens[at].low]
    return Fact(
        tokens[place].start, tokens[at].end, "percentage", "percent", (value,), value, 1.0, 5.0,
        bound_at(tokens, place) or "about", token=place, last=at + 1, is_word=True,
    )  # fmt: skip


_PARTED = {"duration": "duration", "volume": "measure", "mass": "measure", "length": "measure"}
"""Dimensions whose units are halved in words, and the kind of such a fact."""
_PART_OF = 3
"""Tokens from "half" to its unit at most: "half a day", "quarter of an hour", "half-hour"."""


def _named(tokens: Sequence[Token], place: int, kind: str, value: float) -> Fact:
    token = tokens[place]
    return Fact(token.start, token.end, kind, kind, (float(value),), float(value), token=place,
                last=place + 1)  # fmt: skip


def _ranged(found: Sequence[Fact], tokens: Sequence[Token]) -> list[Fact]:
    """Return the facts with both ends of a range in one unit: "5 to 10 km", "Monday to Friday"."""
    facts = list(found)
    for at in range(len(facts) - 1):
        one, other = facts[at], facts[at + 1]
        between = tokens[one.last : other.token]
        while between and (between[-1].low in words.BEFORE_NUMBER or between[-1].low in _SIGNS):
            between = between[:-1]
        joint = "".join(token.low for token in between)
        if joint not in _JOINTS:
            continue
        before = tokens[one.token - 1].low if one.token else ""
        if before in words.BEFORE_NUMBER and one.token > 1:
            before = tokens[one.token - 2].low
        is_span = joint not in _LISTS and (joint != "and" or before == "between")
        span = _clock_span(one, other, tokens)
        if span is not None and (is_span or "time" in (one.kind, other.kind)):
            one, other = span
        elif one.unit == other.unit or (one.kind == other.kind == "date"):
            pass
        elif not one.unit and other.unit and other.kind not in ("date", "ordinal", "weekday"):
            one = in_unit_of(one, other)
        elif not other.unit and one.unit and one.kind == "money":
            other = in_unit_of(other, one)
        else:
            continue
        if is_span:
            bound = one.bound if one.bound in words.LOOSE else ""
            one = replace(one, is_range=True, bound=bound, other=other.values[0])
            other = replace(other, is_range=True, bound=bound, other=one.values[0])
        facts[at], facts[at + 1] = one, other
    return facts


def _clock_span(one: Fact, other: Fact, tokens: Sequence[Token]) -> tuple[Fact, Fact] | None:
    """Return both ends of "8.30 to 12.00" as times of day, or None."""
    found = [_clock(fact, tokens) for fact in (one, other)]
    if None in found or one.kind == other.kind == "time":
        return None
    times = [
        replace(fact, kind="time", unit="time", values=_both_halves(minutes), raw=minutes, nouns=())
        for fact, minutes in zip((one, other), found, strict=True)
        if minutes is not None
    ]
    return times[0], times[1]


def _clock(fact: Fact, tokens: Sequence[Token]) -> float | None:
    """Return the minutes since midnight that a number with two decimals may mean."""
    if fact.kind == "time":
        return fact.raw
    head, _, tail = tokens[fact.token].text.partition(".")
    if fact.unit or len(tail) != 2 or not (head.isdecimal() and tail.isdecimal()):
        return None
    hour, minute = int(head), int(tail)
    return float(hour * 60 + minute) if hour <= 24 and minute < 60 and minute % 5 == 0 else None


def _both_halves(minutes: float) -> tuple[float, ...]:
    return (minutes, (minutes + 720) % 1440) if minutes < 780 else (minutes % 1440,)


_LISTS = frozenset(("or", "und", "et", "y"))
_SIGNS = frozenset(("plus", "minus", "+"))
_JOINTS = frozenset(
    (*DASHES, "to", "and", "or", "bis", "through", "until", "till", "und", "à", "et")
)
