"""Numbers as written and what they measure: amounts, currencies, rates, counts, ordinals."""

# Signs of several scripts are the data.
# ruff: noqa: RUF001

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import re2

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.languages import Token

DASHES = frozenset("-–—−‐‑")
_GROUPED = re2.compile(r"[1-9]\d{0,2}(?:['\x{2019}\x{a0}\x{202f}\x{2009}]\d{3})+(?:[.,]\d+)?")
_EXACT_DIGITS = 15
"""Longer runs of digits are names of something, and a float cannot hold them."""


@lru_cache(8192)
def stem(word: str) -> str:
    """Return a word without its commonest English endings."""
    if word.endswith(("'s", "\u2019s")):
        word = word[:-2]
    if not word.isascii() or len(word) <= 3:
        return word
    for ending, put in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + put
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word


def stems(words: Iterable[str]) -> list[str]:
    """Return the stem of each word."""
    return [stem(word) for word in words]


_ENDINGS = (
    ("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("ches", "ch"),
    ("shes", "sh"), ("xes", "x"), ("ss", "ss"), ("us", "us"), ("s", ""), ("ly", ""),
)  # fmt: skip


class Number(NamedTuple):
    """One number at some tokens [first, last): its readings and the step of its last digit."""

    last: int
    readings: tuple[float, ...]
    step: float
    is_word: bool
    plain: bool


def readings_of(text: str) -> tuple[tuple[float, ...], float]:
    """Return what a written number may mean, likeliest first, and the step of its last digit."""
    if text.isdecimal():
        return _whole(text)
    if _GROUPED.fullmatch(text):
        digits = "".join(c for c in text if c.isdecimal() or c in ".,").replace(",", ".")
        return _decimal(digits)
    signs = [c for c in text if not c.isdecimal()]
    if any(c not in ".," for c in signs):
        return (), 1.0
    if len(text) > 1 and text[0] == "0" and text[1].isdecimal():
        return (), 1.0
    groups = text.replace(",", ".").split(".")
    grouped = all(len(g) == 3 for g in groups[1:]) and 1 <= len(groups[0]) <= 3
    if len(set(signs)) == 1 and len(signs) > 1:
        return _whole("".join(groups)) if grouped else ((), 1.0)
    if len(set(signs)) == 2:
        if signs.count(signs[-1]) != 1 or not all(len(g) == 3 for g in groups[1:-1]):
            return (), 1.0
        return _decimal("".join(groups[:-1]) + "." + groups[-1])
    decimal, step = _decimal(".".join(groups))
    if not grouped or groups[0] == "0":
        return decimal, step
    whole, coarse = _whole("".join(groups))
    return ((*whole, *decimal), coarse) if signs[0] == "," else ((*decimal, *whole), step)


def _whole(digits: str) -> tuple[tuple[float, ...], float]:
    if len(digits) > _EXACT_DIGITS:
        return (), 1.0
    zeros = len(digits) - len(digits.rstrip("0"))
    return (float(int(digits)),), 10.0 ** min(zeros, max(0, len(digits) - 1))


def _decimal(digits: str) -> tuple[tuple[float, ...], float]:
    if len(digits) > _EXACT_DIGITS + 1:
        return (), 1.0
    return (float(digits),), 10.0 ** -len(digits.rpartition(".")[2]) if "." in digits else 1.0


def number_at(tokens: Sequence[Token], place: int) -> Number | None:
    """Return the number that begins at a token, or None."""
    found = _plain_number(tokens, place)
    if found is None or found.last >= len(tokens):
        return found
    last = found.last
    sign = tokens[last]
    is_spoken = found.is_word and sign.low == "point"
    is_spoken &= not place or tokens[place - 1].low != "at"  # "at one point five of us"
    if is_spoken and (digits := decimals(tokens, last + 1)):
        last += 1 + len(digits)
        value = found.readings[0] + float("0." + digits)
        return Number(last, (value,), 10.0 ** -len(digits), True, False)
    if sign.text in words.FRACTION_SIGNS and sign.start == tokens[last - 1].end:
        part = words.FRACTION_SIGNS[sign.text]
        readings = tuple(value + part for value in found.readings)
        return found._replace(last=last + 1, readings=readings, step=0.05, plain=False)
    low = [token.low for token in tokens[last : last + 6] if token.text != "-"][:3]
    if low != ["and", "a", "half"]:
        return found
    while tokens[last].low != "half":
        last += 1
    readings = tuple(value + 0.5 for value in found.readings)
    return found._replace(last=last + 1, readings=readings, step=0.1, plain=False)


def decimals(tokens: Sequence[Token], place: int) -> str:
    """Return the digits behind a spoken point: "twelve point five"."""
    found = ""
    for token in tokens[place : place + 4]:
        value = words.NUMBER_WORDS.get(token.low)
        if value is None or value >= 10:
            break
        found += str(int(value))
    return found


def _plain_number(tokens: Sequence[Token], place: int) -> Number | None:
    """Return a number without "and a half", or None."""
    token = tokens[place]
    if token.kind == "n":
        last = place + 1
        text = token.text
        if len(text) <= 3 and text.isdecimal() and text[0] != "0":
            while _continues(tokens, last, len(text)):
                text += "\u00a0" + tokens[last].text
                last += 1
        if (myriads := _myriads(tokens, place)) is not None:
            return myriads
        readings, step = readings_of(text)
        return Number(last, readings, step, False, text.isdecimal()) if readings else None
    if token.low in words.NUMBER_WORDS:
        return _number_words(tokens, place)
    return None


def _myriads(tokens: Sequence[Token], place: int) -> Number | None:
    """Return "1万3970" as one number, or None."""
    own = tokens[place : place + 3]
    if len(own) < len(("1", "万", "3970")) or own[1].text not in ("万", "萬", "만"):
        return None
    if own[0].end != own[1].start or own[1].end != own[2].start or len(own[2].text) > _IN_MYRIAD:
        return None
    if not (own[0].text.isdecimal() and own[2].text.isdecimal()):
        return None
    value = int(own[0].text) * 10_000.0 + int(own[2].text)
    return Number(place + 3, (value,), 1.0, False, False)


_IN_MYRIAD = 4


def _continues(tokens: Sequence[Token], place: int, so_far: int) -> bool:
    """Return whether "12 500" goes on at a token: exactly three digits behind one blank."""
    if place >= len(tokens):
        return False
    here, before = tokens[place], tokens[place - 1]
    head = here.text[:3]
    if here.kind != "n" or not head.isdecimal() or here.start - before.end != 1:
        return False
    rest = here.text[3:]
    return len(head) == 3 and (
        not rest or (rest[0] in ".," and rest[1:].isdecimal() and len(rest) < 4)
    )


def _number_words(tokens: Sequence[Token], place: int) -> Number:
    total, part, last = 0.0, 0.0, place
    while last < len(tokens):
        low = tokens[last].low
        if low in words.NUMBER_WORDS:
            value: float = words.NUMBER_WORDS[low]
            if last > place and value >= 10 and part in _CENTURIES and not total:
                part = part * 100 + value  # "nineteen eighty-nine"
                last += 1
                continue
            joins = last == place or tokens[last - 1].low in (
                "-", "and", "hundred", "thousand", "million", "billion",
            ) or (tokens[last - 1].low in words.TENS and value < 10)  # fmt: skip
            if not joins:
                break
            part += value
        elif low == "hundred" and part:
            part *= 100
        elif low in ("thousand", "million", "billion") and part:
            total += part * words.SCALES[low]
            part = 0.0
        elif (
            (low == "-" and tokens[last - 1].low in words.TENS and _is_one(tokens, last + 1))
            or (
                low == "-" and part and last + 1 < len(tokens) and tokens[last + 1].low == "hundred"
            )
            or (
                low == "and"
                and (
                    tokens[last - 1].low in ("hundred", "thousand")
                    or (tokens[last].text in ("y", "e") and tokens[last - 1].low in words.TENS)
                )
                and (last + 1 < len(tokens) and tokens[last + 1].low in words.NUMBER_WORDS)
            )
        ):
            pass
        else:
            break
        last += 1
    value = total + part
    return Number(last, (value,), 1.0, True, False)


_CENTURIES = frozenset((18.0, 19.0, 20.0))


def _is_one(tokens: Sequence[Token], place: int) -> bool:
    return place < len(tokens) and 0 < words.NUMBER_WORDS.get(tokens[place].low, 99) < 10


_NOUNS = 4

Date = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class Fact:
    """One exact statement; offsets are code points of the text it was read in.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        kind: `number`, `money`, `percentage`, `measure`, `duration`, `date`, `time`, `ordinal`,
            `weekday`.
        unit: Its dimension; empty: a bare number or a count.
        values: What it may mean in the base unit: "1.234" has two readings.
        raw: The number as it is written, scale words applied.
        factor: From the raw number to the base unit.
        step: Of its last written digit, on the scale of `raw`.
        bound: The rounding word or bound before it, "" for none.
        nouns: Stems of the words right behind a count.
        lead: Stem of the word right before it ("room 12").
        date: Year, month and day where it is a date.
        per: Dimension and factor of the unit that an amount is for ("a month"); None: none.
        minus: A minus stands before it.
        is_word: Written as a word, such as "two".
        is_range: It is one end of a range.
        other: The other end's value.
        token: Its place among the sentence's tokens.
    """

    start: int
    end: int
    kind: str
    unit: str
    values: tuple[float, ...]
    raw: float
    factor: float = 1.0
    step: float = 1.0
    bound: str = ""
    nouns: tuple[str, ...] = ()
    lead: str = ""
    date: Date | None = None
    per: tuple[str, float] | None = None
    minus: bool = False
    is_word: bool = False
    is_range: bool = False
    other: float | None = None
    token: int = 0
    last: int = 0


def _is_cased(letter: str) -> bool:
    return letter.lower() != letter.upper()


def _is_code(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a number is a part of a name: "A4", "COVID-19", "v2.1", "192.168.0.1"."""
    token = tokens[place]
    before = tokens[place - 1] if place else None
    if before is not None and before.end == token.start:
        if before.kind == "w" and before.low not in words.BEFORE_NUMBER:
            return _is_cased(before.text[-1])  # scripts without capitals have no blanks, either
        if before.text in ("#", "_", "@", "\\", "["):
            return True
        if before.text in (".", ",", ")") and place > 1 and tokens[place - 2].end == before.start:
            word = tokens[place - 2]
            return word.kind == "w" and len(word.text) > 2  # a footnote: "as a therapy.16"
        if before.text in DASHES and place > 1 and tokens[place - 2].end == before.start:
            word = tokens[place - 2]
            if (
                word.kind == "w"
                and word.text[0].isupper()
                and word.low not in words.MONTHS
                and (word.text not in words.SHORT_WEEKDAYS)
            ):
                return True
    return False


def measured(tokens: Sequence[Token], place: int) -> Fact | None:
    """Return the amount that begins at a token, or None."""
    number = number_at(tokens, place)
    if number is None or (tokens[place].kind == "n" and _is_code(tokens, place)):
        return None
    if number.plain and tokens[place].text[0] == "0" and len(tokens[place].text) > 1:
        return None
    if (number.plain and _is_second_year(tokens, place)) or _is_list_mark(tokens, place):
        return None
    return amount(tokens, place, number)


def _is_second_year(tokens: Sequence[Token], place: int) -> bool:
    """Return whether two digits end a season: "2011-12"."""
    return (
        len(tokens[place].text) == 2
        and place > 1
        and (tokens[place - 1].text in DASHES or tokens[place - 1].text == "/")
        and year_of(tokens[place - 2]) is not None
    )


def _is_list_mark(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a number only counts lines: "3. Open the lid", "(2) Close it"."""
    token = tokens[place]
    if token.kind != "n" or len(token.text) > 2 or place + 1 >= len(tokens):
        return False
    after = tokens[place + 1]
    if after.text not in (".", ")", "]") or after.start != token.end:
        return False
    before = tokens[place - 1] if place else None
    return before is None or before.text in ("(", "[", "\n", "-", "*", "#", "|", "^")


def amount(tokens: Sequence[Token], place: int, number: Number) -> Fact | None:
    """Return what a number means with the signs and words around it; None for part of a name."""
    last = number.last
    attached = last < len(tokens) and tokens[last].start == tokens[last - 1].end
    if attached and tokens[last].low in words.ORDINAL_ENDS and not number.is_word:
        return _numeric_ordinal(tokens, place, number)
    if attached and tokens[last].low == "s" and _is_round_year(tokens[place], number):
        return None  # "the 1990s"
    prefix = _prefix(tokens, place)
    scale, last = _scale(tokens, last, prefix is not None)
    unit, after = _unit(tokens, last, number.is_word)
    if unit is None and _is_inches(tokens, place, last):
        unit, after = ("length", 0.0254), last + 1
    if unit is None and attached and _makes_a_name(tokens, last):
        return None
    start = tokens[place].start
    if prefix is not None and (unit is None or not unit[0].startswith("money")):
        unit, after, start = prefix[0], last, prefix[1]
    readings = tuple(value * scale for value in number.readings)
    fact = Fact(
        start, tokens[last - 1].end, "number", "", readings, readings[0], 1.0, number.step * scale,
        bound_at(tokens, place - (1 if start < tokens[place].start else 0), after),
        nouns_at(tokens, after), is_word=number.is_word, token=place, last=after,
        minus=_is_minus(tokens, place),
    )  # fmt: skip
    if unit is not None:
        return _with_unit(fact, unit, tokens, max(after, number.last))
    if number.plain and scale == 1 and len(tokens[place].text) == 4:
        year = int(number.readings[0])
        if 1000 <= year <= 2199 and _is_year(tokens, place, last):
            return replace(
                fact, kind="date", unit="date", date=(year, None, None), nouns=(), step=1.0
            )
    return replace(fact, lead=_lead(tokens, place), per=_count_per(tokens, after))


def _is_round_year(token: Token, number: Number) -> bool:
    return len(token.text) in (2, 4) and number.readings[0] % 10 == 0


def _makes_a_name(tokens: Sequence[Token], last: int) -> bool:
    """Return whether letters right behind a number make it a name: "3D", "4K"."""
    behind = tokens[last] if last < len(tokens) else None
    return (
        behind is not None
        and tokens[last - 1].kind == "n"
        and behind.kind == "w"
        and behind.start == tokens[last - 1].end
        and behind.low not in ("s", "x", "er")
        and _is_cased(behind.text[0])
    )


def _is_inches(tokens: Sequence[Token], place: int, last: int) -> bool:
    """Return whether "in" behind a number means inches: "5 ft 7 in"."""
    return (
        place > 0
        and last < len(tokens)
        and tokens[last].low == "in"
        and tokens[place - 1].low in ("ft", "feet", "foot")
    )


def _is_minus(tokens: Sequence[Token], place: int) -> bool:
    before = tokens[place - 1] if place else None
    if before is None or (before.low != "minus" and before.text not in DASHES):
        return False
    if before.low == "minus":
        return True
    apart = place < 2 or tokens[place - 2].end < before.start or tokens[place - 2].text in "(|,:="
    return apart and before.end == tokens[place].start


def _with_unit(fact: Fact, unit: tuple[str, float], tokens: Sequence[Token], after: int) -> Fact:
    """Return a number as an amount of a unit that ends before a token."""
    dimension, factor = unit
    if dimension == "pound":
        is_weight = any(stem(token.low) in words.HEAVY for token in tokens)
        dimension, factor = ("mass", 0.45359237) if is_weight else ("money:GBP", 1.0)
    values = tuple(value * factor for value in fact.values)
    if dimension in _DEGREES:
        signed = [-value for value in fact.values] if fact.minus else fact.values
        values = _temperature(dimension, signed)
        dimension, factor = "temperature", _DEGREES[dimension]
    return replace(
        fact, end=tokens[after - 1].end, kind=_kind(dimension), unit=dimension, values=values,
        factor=factor, per=_per(tokens, after),
    )  # fmt: skip


def _per(tokens: Sequence[Token], place: int) -> tuple[str, float] | None:
    """Return the unit that an amount before a token is for, or None."""
    if place >= len(tokens):
        return None
    low = tokens[place].low
    if low in words.ADVERBS:
        return "duration", words.ADVERBS[low]
    own = tokens[place].text.lower()  # "al minuto": in other languages `low` is its meaning
    if own.startswith("all'"):  # "130 km all'ora"
        return words.UNITS.get((own[4:],))
    if not {low, own} & words.PER or place + 1 >= len(tokens):
        return None
    unit, _ = _unit(tokens, place + 1, False)
    if unit is None and tokens[place + 1].low not in words.NEVER_AFTER_BLANK:
        unit = words.UNITS.get((tokens[place + 1].low,))
    return unit if unit is not None and not unit[0].startswith("money") else None


def _count_per(tokens: Sequence[Token], place: int) -> tuple[str, float] | None:
    """Return the time that a count before a token is for ("300 requests per minute"), or None."""
    for at in range(place + 1, min(place + 1 + _NOUNS, len(tokens) - 1)):
        if tokens[at - 1].kind != "w":
            return None
        if tokens[at].low in ("per", "a", "an", "each"):
            found = _per(tokens, at)
            return found if found is not None and found[0] == "duration" else None
    return None


def _lead(tokens: Sequence[Token], place: int) -> str:
    """Return the stem of the word before a number; of the name before a comma ("Ann, 12,")."""
    before = tokens[place - 1] if place else None
    if before is not None and before.text == "," and place > 1 and place + 1 < len(tokens):
        name = tokens[place - 2]
        if name.kind == "w" and name.text[0].isupper() and tokens[place + 1].text in ",).":
            return stem(name.low)
    if before is None or before.kind != "w" or before.low in words.STOP:
        return ""
    return stem(before.low)


def _temperature(dimension: str, readings: Sequence[float]) -> tuple[float, ...]:
    """Return degrees Celsius."""
    if dimension == "celsius":
        return tuple(readings)
    if dimension == "kelvin":
        return tuple(value - 273.15 for value in readings)
    return tuple((value - 32) * 5 / 9 for value in readings)


_DEGREES = {"celsius": 1.0, "kelvin": 1.0 + 1e-12, "fahrenheit": 5 / 9}
"""A degree of each scale in degrees Celsius; two scales are told apart by it."""


def _kind(dimension: str) -> str:
    if dimension.startswith("money"):
        return "money"
    if dimension == "times":
        return "number"
    if dimension == "percent":
        return "percentage"
    return "duration" if dimension in ("duration", "workdays") else "measure"


def _numeric_ordinal(tokens: Sequence[Token], place: int, number: Number) -> Fact:
    last = number.last + 1
    value = number.readings[0]
    return Fact(tokens[place].start, tokens[last - 1].end, "ordinal", "ordinal", (value,), value,
                nouns=nouns_at(tokens, last), token=place, last=last)  # fmt: skip


def _prefix(tokens: Sequence[Token], place: int) -> tuple[tuple[str, float], int] | None:
    """Return the currency before a number and where it begins, or None."""
    if not place:
        return None
    before = tokens[place - 1]
    if before.low not in words.BEFORE_NUMBER or tokens[place].start - before.end > 1:
        return None
    if before.text == "$" and place > 1 and tokens[place - 2].end == before.start:
        named = words.UNITS.get((tokens[place - 2].low, "$"))
        if named is not None:
            return named, tokens[place - 2].start
    return words.UNITS[(before.low,)], before.start


_MYRIADS = frozenset("万萬亿億千")


def _scale(tokens: Sequence[Token], place: int, is_money: bool) -> tuple[float, int]:
    """Return the factor of the scale words at a token, and where the next thing begins."""
    factor = 1.0
    while place < len(tokens):
        token = tokens[place]
        attached = token.start == tokens[place - 1].end
        if token.low in words.SCALES and (token.low != "k" or attached):
            factor *= words.SCALES[token.low]
        elif attached and token.kind == "w" and token.text[0] in _MYRIADS:
            return factor * words.SCALES[token.text[0]], place + 1
        elif token.low in ("m", "b") and attached and is_money:
            factor *= 1e6 if token.low == "m" else 1e9
        elif (
            token.text in DASHES
            and place + 1 < len(tokens)
            and (tokens[place + 1].low in ("million", "billion", "thousand", "hundred"))
        ):
            pass
        else:
            break
        place += 1
    return factor, place


def _unit(
    tokens: Sequence[Token], place: int, is_word: bool
) -> tuple[tuple[str, float] | None, int]:
    """Return the unit at a token and the place behind it."""
    at = place
    if at < len(tokens) and tokens[at].text in DASHES and tokens[at].start == tokens[at - 1].end:
        at += 1
    if at >= len(tokens) or tokens[at].low not in words.UNIT_STARTS:
        return None, place
    gap = tokens[at].start - tokens[at - 1].end
    for size in range(min(words.LONGEST_UNIT, len(tokens) - at), 0, -1):
        name = tuple(token.low for token in tokens[at : at + size])
        if name not in words.UNITS or (name == ("s",) and _is_age_group(tokens, at - 1)):
            continue
        is_close = not gap or (gap == 1 and name[0] not in words.NEVER_AFTER_BLANK)
        if size == 1 and name[0] in words.ONLY_ATTACHED and (is_word or not is_close):
            continue
        return words.UNITS[name], at + size
    return None, place


def _is_age_group(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a number is that of "under-18s"."""
    before = [token.low for token in tokens[max(0, place - 2) : place] if token.text not in DASHES]
    return before[-1:] in (["under"], ["over"], ["the"])


def nouns_at(tokens: Sequence[Token], place: int) -> tuple[str, ...]:
    """Return the stems of the next few words, up to a sign or a word that begins anew."""
    found: list[str] = []
    for at, token in enumerate(tokens[place : place + _NOUNS + 2], place):
        if token.text == "-" and token.start == tokens[at - 1].end:
            continue
        if token.kind != "w" or (token.low in words.STOP and found) or len(found) == _NOUNS:
            break
        if token.low not in words.STOP:
            found.append(stem(token.low))
        elif token.low not in ("of", "the", "other", "more", "such"):
            break
    return tuple(found)


_OR_MORE = frozenset(
    (joint, word) for joint in ("or", "and") for word in ("more", "older", "above", "over", "up")
)


def bound_at(tokens: Sequence[Token], place: int, after: int = -1) -> str:
    """Return the rounding word or bound before a number, or behind it ("or more")."""
    if place > 0:
        before = tokens[place - 1].low
        if before in ("a", "an", "the", "another", "only", ".") and place > 1:
            place -= 1
            before = tokens[place - 1].low
        for phrase, bound in words.BOUND_ENDS.get(before, ()):
            size = len(phrase)
            if place >= size and all(
                tokens[place - size + k].low == word for k, word in enumerate(phrase)
            ):
                ahead = bound == "most" and phrase[-2:] == ("later", "than")
                next_ones = tokens[after : after + 3] if ahead and after > 0 else ()
                turns = any(token.low in ("before", "ahead") for token in next_ones)
                if bound in _DENIED and _is_denied(tokens, place - size):
                    return _DENIED[bound]
                return "least" if turns else bound  # "no later than ten weeks before"
    if 0 < after < len(tokens):
        behind = tuple(token.low for token in tokens[after : after + 4])
        if behind[:1] == ("+",) or behind[:2] in _OR_MORE:
            return "least"
        if behind[:2] in (("or", "less"), ("or", "fewer"), ("or", "younger"), ("and", "under")):
            return "most"
    return ""


_DENIED = {"over": "most", "under": "least"}


def _is_denied(tokens: Sequence[Token], place: int) -> bool:
    """Return whether "not be" stands before a bound: "may not be older than", "must not exceed"."""
    before = [token.low for token in tokens[max(0, place - 2) : place]]
    return bool(before) and (before[-1] == "not" or (before[0] == "not" and before[-1] == "be"))


_BEFORE_YEARS = words.listed(
    "in of since by until till from to during before after year early late mid and "
    "season spring summer autumn fall winter ( – - , / ; : | | en im seit bis von le "
    "el anno año année rok between circa around about as fiscal fy through the for "
    "dezember"
)


def _is_year(tokens: Sequence[Token], place: int, after: int) -> bool:
    """Return whether four digits are likelier a year than an amount."""
    value = int(tokens[place].text)
    behind = tokens[after] if after < len(tokens) else None
    if behind is not None and behind.text in ("年", "x", "\u00d7"):
        return behind.text == "年"
    if not 1500 <= value <= 2100:
        return False
    if behind is None or behind.kind != "w" or behind.low in words.STOP or behind.text[0].isupper():
        return True
    before = tokens[place - 1].low if place else ""
    return value >= 1700 and value % 100 != 0 and before in _BEFORE_YEARS


def year_of(token: Token) -> int | None:
    """Return the year that four digits may be, or None."""
    if token.kind == "n" and len(token.text) == 4 and token.text.isdecimal():
        value = int(token.text)
        return value if 1000 <= value <= 2199 else None
    return None


def in_unit_of(fact: Fact, other: Fact) -> Fact:
    """Return a bare number in the unit of its neighbour."""
    if other.unit == "time":
        hour = fact.raw
        if hour > 24 or hour != int(hour):
            return fact
        clock = (hour * 60 % 1440, (hour * 60 + 720) % 1440)
        return replace(fact, kind="time", unit="time", values=clock)
    factor = other.factor
    if other.unit == "temperature":
        dimension = next(name for name, degree in _DEGREES.items() if degree == factor)
        signed = [-value for value in fact.values] if fact.minus else fact.values
        values = _temperature(dimension, signed)
    else:
        values = tuple(value * factor for value in fact.values)
    return replace(
        fact, kind=other.kind, unit=other.unit, values=values, factor=factor, per=other.per
    )
