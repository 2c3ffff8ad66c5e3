"""Tokens of a text, its words' stems, and numbers as they are written in digits and in words."""

# Signs of several scripts are the data.
# ruff: noqa: RUF001

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import re2

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.languages import (
    JAPANESE_DAYS,
    KOREAN_DAYS,
    in_english,
    weekday_of,
)
from guardrail_service.text.budget import check_time

DASHES = frozenset("-–—−‐‑")
_GROUPED = re2.compile(r"[1-9]\d{0,2}(?:['\x{2019}\x{a0}\x{202f}\x{2009}]\d{3})+(?:[.,]\d+)?")
_EXACT_DIGITS = 15
"""Longer runs of digits are names of something, and a float cannot hold them."""


class Token(NamedTuple):
    """One number, word or sign; `low` is its text in lower case."""

    kind: str
    text: str
    low: str
    start: int
    end: int


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
        readings, step = readings_of(text)
        return Number(last, readings, step, False, text.isdecimal()) if readings else None
    if token.low in words.NUMBER_WORDS:
        return _number_words(tokens, place)
    return None


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


def _is_one(tokens: Sequence[Token], place: int) -> bool:
    return place < len(tokens) and 0 < words.NUMBER_WORDS.get(tokens[place].low, 99) < 10


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
                found += _without_blanks(word, start + at)
            else:
                found.append(Token("w", word, word.lower(), start + at, start + end))
        else:
            found.append(Token("s", sign, sign, start + at, start + end))
        at = end


_IN_NUMBERS = frozenset(".,'\u2019")


def _add_number(own: str, start: int, found: list[Token]) -> None:
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


def in_language(found: Sequence[Token], language: str) -> Iterator[Token]:
    """Yield tokens with the English words that they mean."""
    for place, token in enumerate(found):
        if token.kind != "w" or token.text[0] >= "\u3040":
            yield token
            continue
        behind = "".join(t.low for t in found[place + 1 : place + 3])
        low = in_english(token.low, language, behind)
        kind = "n" if low.isdecimal() else "w"
        yield Token(kind, low if kind == "n" else token.text, low, token.start, token.end)


_HAN_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {
    "〇": 0,
    "两": 2,
    "兩": 2,
}
_HAN_PLACES = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000}
_HAN_NUMERALS = frozenset((*_HAN_DIGITS, *_HAN_PLACES)) - {"〇"}
_COUNTED = frozenset(
    "元块点點月日号年时時天分小周週个個人位次折岁歳名张台层階楼件本冊枚回円度米公千万百家间条室段名回米"
)
"""Signs behind which a single Chinese numeral is an amount."""
_COUNTERS = frozenset("원년월일시분초개회명주점세만천억")


def _without_blanks(word: str, start: int) -> Iterator[Token]:
    """Yield the tokens of Chinese, Japanese or Korean letters without a blank."""
    if "가" <= word[0] <= "힣":
        yield from _hangul(word, start)
        return
    at = 0
    while at < len(word):
        end = at + 1
        if word[at] in _HAN_NUMERALS:
            while end < len(word) and word[end] in _HAN_NUMERALS:
                end += 1
            if (day := weekday_of(word[at - 1 : at] if at else "", word[at])) and end == at + 1:
                yield Token("w", word[at:end], day, start + at, start + end)
            elif end < len(word) and word[end] in _COUNTED:
                value = str(_han_number(word[at:end]))
                yield Token("n", value, value, start + at, start + end)
            else:
                yield Token("w", word[at:end], word[at:end], start + at, start + end)
        elif word[at + 1 : at + 2] == "曜" and word[at] in JAPANESE_DAYS:
            end = at + 2
            yield Token("w", word[at:end], JAPANESE_DAYS[word[at]], start + at, start + end)
        elif "぀" <= word[at] <= "ヿ":
            while end < len(word) and "぀" <= word[end] <= "ヿ":
                end += 1
            yield Token("w", word[at:end], word[at:end], start + at, start + end)
        else:
            yield Token("w", word[at], word[at], start + at, start + end)
        at = end


def _han_number(numeral: str) -> int:
    """Return what a Chinese numeral means: 八十八 is 88, 二〇 is 20."""
    if not any(sign in _HAN_PLACES for sign in numeral):
        return int("".join(str(_HAN_DIGITS[sign]) for sign in numeral))
    total = part = digit = 0
    for sign in numeral:
        if sign in _HAN_DIGITS:
            digit = _HAN_DIGITS[sign]
        elif _HAN_PLACES[sign] == 10_000:
            total, part, digit = (total + part + digit) * 10_000, 0, 0
        else:
            part, digit = part + max(digit, 1) * _HAN_PLACES[sign], 0
    return total + part + digit


def _hangul(word: str, start: int) -> Iterator[Token]:
    """Yield a counter apart from what follows it, and of other words the first two syllables."""
    end = start + len(word)
    if word[1:3] == "요일" and word[0] in KOREAN_DAYS:
        yield Token("w", word, KOREAN_DAYS[word[0]], start, end)
        return
    long = next((name for name in ("시간", "개월") if word.startswith(name)), "")
    size = len(long) or (1 if word[0] in _COUNTERS else 0)
    if not size or size == len(word):
        yield Token("w", word, word if size else word[:2], start, end)
        return
    yield Token("w", word[:size], word[:size], start, start + size)
    yield Token("w", word[size:], word[size:][:2], start + size, end)
