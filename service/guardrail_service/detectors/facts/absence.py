"""A number or a name that no passage mentions: how sure it is that somebody invented it."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import NamedTuple

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.align import (
    LONG_NAME,
    MOST_LETTERS,
    Held,
    PassageFacts,
    Place,
    is_amount,
    is_other_unit,
    is_rate,
)
from guardrail_service.detectors.facts.amounts import Fact, readings_of
from guardrail_service.detectors.facts.calculation import Calculation
from guardrail_service.detectors.facts.languages import LATIN, Token, folded, is_han
from guardrail_service.detectors.facts.read import ReadSentence
from guardrail_service.text.budget import in_time

SURELY, LIKELY, HARDLY, UNSURE = 0.3, 0.4, 0.6, 0.8
"""Scores of a number that no passage mentions."""
_MINUTE_S, _HOUR_S = 60.0, 3600.0
_CENTS = 0.01
_FEW, _SPELLED, _SPELLED_TOKENS = 2.0, 20.0, 4
_UNTIL_NOW = frozenset(("past", "last", "next", "previous", "coming"))
_DATING = words.listed(
    "in on since by until till from to between during after before ( born died mid middle end start"
    " beginning early late"
)


class Numbered(NamedTuple):
    """A place where passages number with a claim's word.

    Attributes:
        place: The first such place, or that of the claim's number.
        is_same: It is the claim's number, alone or in a range.
    """

    place: Place
    is_same: bool


def numbered(claim: ReadSentence, fact: Fact, source: PassageFacts) -> Numbered | None:
    """Return what passages number with the word that a claim has before a number without a unit.

    "the Runa 66" is none of "Runa 45" and "Runa 60", "room 13" one of "rooms 11 to 16".
    """
    if fact.bound or fact.is_range or not fact.token:
        return None
    label = _label(claim, fact.token - 1)
    if not label or fact.is_word or source.is_asked(fact):
        return None
    first: Place | None = None
    for context, one in in_time(source.sentences, every=16):
        if label not in one.content:
            continue
        for at, (token, behind) in enumerate(pairwise(one.tokens), 1):
            if token.kind != "w" or behind.kind != "n" or one.stems[at - 1] != label:
                continue
            place = Place(context, one.start + token.start, one.start + behind.end)
            numbers = _numbers_behind(one, at)
            if any(low <= fact.raw <= high for low, high in numbers):
                return Numbered(place, is_same=True)
            first = first or place
    return None if first is None else Numbered(first, is_same=False)


def _label(claim: ReadSentence, at: int) -> str:
    """Return the stem of a word that a number behind it belongs to, "" if it is none."""
    token = claim.tokens[at]
    if token.kind != "w" or claim.text[token.end : token.end + 1] != " ":
        return ""
    begins = not claim.text[: token.start].strip(_MARKS) or claim.text[token.start - 1] == "\n"
    is_name = token.text[0].isupper() and not begins and token.low not in _NO_LABELS
    return claim.stems[at] if is_name else ""


def _numbers_behind(one: ReadSentence, at: int) -> list[tuple[float, float]]:
    """Return the numbers of "rooms 4, 7 and 11 to 16", each as a range."""
    found: list[tuple[float, float]] = []
    while at < len(one.tokens) and one.tokens[at].kind == "n":
        readings, _ = readings_of(one.tokens[at].text)
        if not readings:
            break
        joint = one.tokens[at - 1].low
        if found and joint in _TO:
            found[-1] = (found[-1][0], readings[0])
        found += [(value, value) for value in readings]
        at += 1
        behind = [token.low for token in one.tokens[at : at + 2]]
        if behind[:1] == ["+"] or (behind[:1] == ["or"] and behind[1:] in _AND_UP):
            found[-1] = (found[-1][0], math.inf)
        while at < len(one.tokens) and one.tokens[at].low in _AND_SO_ON:
            at += 1
    return found


_TO = frozenset(("to", "-", "\u2013", "through", "until"))
_AND_SO_ON = _TO | {",", "and", "or", "&", "/"}
_AND_UP = [[word] for word in ("newer", "later", "higher", "above", "up", "more")]
_MARKS = "-*#>|+ \t\u2022"
_NO_LABELS = words.listed(
    "step option tip part note example question answer table figure phase stage reason item case"
    " monday tuesday wednesday thursday friday saturday sunday january february march april may"
    " june july august september october november december the of in on at by for from to and or"
    " over under about only all with until between than version release year month week day level"
    " grade band class tier zone size force age node python java android ios windows macos php"
)
"""Words that number the parts of an answer, words before dates, and what is counted upwards: "Year
3" and "Version 4" are spoken of where passages say "from Year 7" and "since version 5"."""


def in_foreign_unit(source: PassageFacts, fact: Fact) -> Held | None:
    """Return the same number in a passage's unit where nobody uses the claim's."""
    if not is_amount(fact) or fact.kind == "percentage":
        return None
    if fact.per is not None and (other := _per_another_time(source, fact)) is not None:
        return other
    if source.has_unit(fact):
        return None
    return next(
        (
            held
            for held in in_time(source.comparable(fact))
            if held.fact.kind == fact.kind and is_other_unit(fact, held.fact)
        ),
        None,
    )


def in_other_unit(claim: ReadSentence, source: PassageFacts, fact: Fact) -> Held | None:
    """Return where passages have a number in another unit alone, among the claim's words."""
    if fact.kind == "money":
        return _in_other_currency(claim, source, fact)
    if fact.kind != "measure" or fact.raw <= 1 or fact.unit in ("degree", "temperature"):
        return None
    equal = [
        held for held in in_time(source.held) if held.fact.raw == fact.raw and is_amount(held.fact)
    ]
    others = [held for held in equal if held.fact.kind == "measure" != held.fact.unit]
    if not others or any(held.fact.unit == fact.unit for held in equal):
        return None
    return next(
        (held for held in others if len(claim.content & (held.read.content | held.near)) > 1), None
    )


def _in_other_currency(claim: ReadSentence, source: PassageFacts, fact: Fact) -> Held | None:
    """Return where every passage that has an amount has it in another currency."""
    equal = [
        held
        for held in in_time(source.comparable(fact))
        if held.fact.kind == "money" and held.fact.values[0] == fact.values[0]
    ]
    if not equal or any(_may_be_one(held.fact.unit, fact.unit) for held in equal):
        return None
    return next(
        (held for held in equal if len(claim.content & (held.read.content | held.near)) > 1), None
    )


def _may_be_one(one: str, other: str) -> bool:
    """Return whether two signs may mean one currency: dollars are of many countries."""
    return one == other or (one.endswith("D") and other.endswith("D")) or "kr" in one + other


def _per_another_time(source: PassageFacts, fact: Fact) -> Held | None:
    """Return where every passage that has the number has it per another unit of time."""
    equal = [
        held
        for held in in_time(source.comparable(fact))
        if held.fact.raw == fact.raw and held.fact.unit == fact.unit
    ]
    if not equal or not all(is_other_unit(fact, held.fact) for held in equal):
        return None
    return equal[0]


def _is_length(claim: ReadSentence, fact: Fact) -> bool:
    """Return whether a duration in words tells how long something is, not for what a price is.

    Beyond twenty people write digits, but for "one hour and two minutes".
    """
    if fact.kind != "duration" or fact.bound or fact.per or not fact.token:
        return False
    is_sum = fact.factor == _MINUTE_S and fact.last - fact.token > _SPELLED_TOKENS
    if not _FEW < fact.raw <= _SPELLED and not is_sum:
        return False
    if claim.tokens[fact.token - 1].low in _UNTIL_NOW:
        return False
    return all(one.kind not in ("money", "percentage", "measure") for one in claim.facts)


def _is_clock(claim: ReadSentence, fact: Fact) -> bool:
    """Return whether a number may be a time of day: "by 10.05"."""
    if fact.step != _CENTS or fact.raw >= _HOURS or fact.raw % 1 >= _SIXTY or not fact.token:
        return False
    return claim.tokens[fact.token - 1].low in _AT


_HOURS, _SIXTY = 24, 0.6
_AT = frozenset(("by", "at", "until", "till", "from", "before", "after", "about", "around"))


def _depends_on_today(asked: ReadSentence) -> bool:
    """Return whether a question names a time by today: "last year's invoices"."""
    lows = [token.low.removesuffix("'s").removesuffix("\u2019s") for token in asked.tokens]
    return any(pair in _BY_TODAY for pair in pairwise(lows)) or not _TODAY.isdisjoint(lows)


_TODAY = frozenset(("today", "yesterday", "tomorrow", "tonight"))
_BY_TODAY = frozenset(
    product(("last", "this", "next"), ("day", "week", "month", "year", "quarter"))
)


def _is_within(fact: Fact, source: PassageFacts) -> bool:
    """Return whether a year lies within a few years that a passage tells of: "2020 to 2023"."""
    year = fact.values[0]
    ranges = (one.fact for one in in_time(source.held) if one.fact.is_range and one.fact.date)
    return any(
        one.values[0] <= year <= (one.other or 0) <= one.values[0] + _FEW_YEARS for one in ranges
    )


_FEW_YEARS = 10


def _is_whole(claim: ReadSentence, fact: Fact) -> bool:
    """Return whether a number is known to everybody: "the five weekdays", "all twelve months"."""
    if fact.raw not in _WHOLES or not fact.token:
        return False
    named = claim.text[fact.start : fact.end].lower() + "".join(fact.nouns)
    behind = claim.tokens[fact.last : fact.last + 1]
    if fact.kind == "duration" and behind and behind[0].low in ("week", "weeks"):
        return True  # "of a five-day week"
    return claim.tokens[fact.token - 1].low in ("the", "all") and any(
        name in named for name in _WHOLES[fact.raw]
    )


_WHOLES = {
    5.0: ("weekday", "working day"), 7.0: ("day",), 12.0: ("month",), 24.0: ("hour",),
    52.0: ("week",), 60.0: ("minute", "second"), 4.0: ("quarter", "season"),
}  # fmt: skip


def _key_of(claim: ReadSentence, fact: Fact, source: PassageFacts) -> str:
    """Return the last word of the key of passages whose value a number is: `retention_days: 30`."""
    at = fact.token
    if not at or claim.tokens[at - 1].text not in (":", "="):
        return ""
    line = claim.text.rfind("\n", 0, fact.start) + 1
    key = [
        stem
        for stem, token in zip(claim.stems[:at], claim.tokens, strict=False)
        if token.start >= line and token.kind == "w" and stem
    ]
    is_identifier = "_" in claim.text[line : fact.start] or '"' in claim.text[line : fact.start]
    return key[-1] if is_identifier and key and all(map(source.is_known, key)) else ""


def _is_scaled_from_question(fact: Fact, source: PassageFacts) -> bool:
    """Return whether a number is one of the question's in smaller units: 100 euros are 10000."""
    scales = (10, 100, 1000, 60, 3600)
    return any(one.raw * scale == fact.raw for one in source.asked for scale in scales)


def _lies_between(fact: Fact, source: PassageFacts, key: str) -> bool:
    """Return whether a passage sets limits for a key around a number: "fontSize, from 10 to 32"."""
    behind = [(away, one.fact) for one in in_time(source.held) if (away := _away(one, key))]
    nearest = min((away for away, held in behind if held.is_range or held.bound), default=0)
    for away, held in behind:
        if away != nearest or held.kind not in (fact.kind, "number"):
            continue
        if held.is_range and held.raw <= fact.raw <= (held.other or 0):
            return True
        if held.bound == "least" and held.raw <= fact.raw:
            return True  # "a number of milliseconds, at least 500"
        if held.bound == "most" and held.raw >= fact.raw:
            return True
    return False


def _away(held: Held, key: str) -> int:
    """Return how many tokens a number stands behind a key of its sentence, 0 for none."""
    stems = held.read.stems[: held.fact.token]
    return next((n for n, stem in enumerate(reversed(stems), 1) if stem == key), 0)


def _is_cell(claim: ReadSentence, fact: Fact) -> bool:
    """Return whether a number with decimals fills a cell of a table of the answer."""
    before, after = claim.text[: fact.start].rstrip(), claim.text[fact.end :].lstrip()
    return fact.step < 1 and before[-1:] == "|" == after[:1]


def stands_bare(source: PassageFacts, fact: Fact) -> bool:
    """Return whether a passage holds the number, whatever it means there."""
    if fact.date is not None:
        year, month, _ = fact.date
        return month is None and year in source.numbers
    if fact.kind == "time":
        return _stands_as_digits(source, fact)
    scales = [1.0, 1e-3, 1e-6, 1e-9, 1e3, 1e6]
    if fact.raw % 1 or fact.unit == "percent":
        scales += [0.01, 100.0]
    numbers = source.numbers_for(fact)
    return any(value * scale in numbers for value in (fact.raw, *fact.values) for scale in scales)


def _stands_as_digits(source: PassageFacts, fact: Fact) -> bool:
    """Return whether a passage holds a time's digits, or its hour where it has no times."""
    numbers = source.numbers
    hours = [(value // 60, value % 60) for value in fact.values]
    if any(hour + minute / 100 in numbers for hour, minute in hours if minute):
        return True
    if all(minute == 0 for _, minute in hours) and any(
        one.fact.is_range
        and not one.fact.unit
        and one.fact.raw in {hour for hour, _ in hours}
        and not any(other.nouns for other in one.read.facts if other.is_range)
        for one in in_time(source.held)
    ):
        return True  # "10 to 15 or 16 to 21"
    return not source.has_unit(fact) and any(hour in numbers for hour, _ in hours)


def absence(
    claim: ReadSentence, fact: Fact, source: PassageFacts, calculation: Calculation, language: str
) -> float:
    """Return how sure it is that a number nobody mentions is invented, as a score.

    Round hundreds per cent are figures of speech, a year before a noun and a number behind a
    name are parts of names, and how long ago something was depends on today.
    """
    tokens = claim.tokens
    before = tokens[fact.token - 1] if fact.token else None
    after = tokens[fact.last].low if fact.last < len(tokens) else ""
    if language and fact.unit == "times" and source.has_unit(fact):
        return LIKELY
    if (
        is_rate(claim, fact)
        or (fact.is_word and not _is_length(claim, fact))
        or _is_whole(claim, fact)
        or fact.kind in ("ordinal", "weekday")
        or (fact.raw in (0.0, 1.0, 100.0) and fact.kind != "time")
    ):
        return UNSURE
    if fact.kind == "date":
        is_digits = "-" in claim.text[fact.start : fact.end]
        if is_digits and source.question is not None and _depends_on_today(source.question):
            return UNSURE
        if fact.date is not None and fact.date[1] is None and _is_within(fact, source):
            return UNSURE
        if fact.date is not None and fact.date[1] in source.months and fact.date[2] is None:
            return UNSURE
        if fact.date is not None and None not in fact.date and source.has_dates:
            return LIKELY
        if language and fact.date is not None and fact.date[2] is not None:
            return LIKELY
        if fact.is_range and fact.date is not None and fact.date[::2] == (None, None):
            return HARDLY  # "April to June" for the second quarter
        if before is not None and before.low == "of" and fact.token > 1:
            before = tokens[fact.token - 2]  # "by the middle of June"
        return LIKELY if before is not None and before.low in _DATING else HARDLY
    if fact.kind == "number":
        is_name = before is not None and before.kind == "w" and before.text[0].isupper()
        if _is_clock(claim, fact):
            return UNSURE
        if not fact.nouns and fact.step == _CENTS and fact.raw >= 10 and calculation.computes:
            return LIKELY  # "altogether 563.00"
        if not fact.is_word and (key := _key_of(claim, fact, source)):
            is_free = _is_scaled_from_question(fact, source) or _lies_between(fact, source, key)
            return UNSURE if is_free else LIKELY
        if not fact.is_word and _is_cell(claim, fact):
            return LIKELY
        is_vague = fact.bound in ("over", "under", "least", "most")
        if is_name or is_vague or fact.raw < 10 or not fact.nouns:
            return UNSURE if is_name else HARDLY
        return LIKELY
    if fact.kind == "duration":
        if language and fact.factor == _HOUR_S and source.has_times:
            return HARDLY  # "7 uur" is a time, too
        vague = fact.bound in ("about", "nearly", "over") or after in ("ago", "old", "later")
        return HARDLY if vague else LIKELY
    if fact.kind == "percentage":  # on labels half of these are true
        return HARDLY
    return LIKELY if fact.raw < 10 else SURELY


class Strange(NamedTuple):
    """A `name` or a `sentence` that nobody has said; offsets from the start of its claim."""

    start: int
    end: int
    kind: str


def strange_name(claim: ReadSentence, source: PassageFacts, language: str) -> Strange | None:
    """Return a name in a language that no model reads, or a sentence, that nobody has said.

    Two words in a row with capitals inside a sentence are a name, in German behind a title or a
    "by". Of a Chinese or Japanese sentence the signs are looked at: one that has hardly any in
    common with passages and question tells of something else.

    Args:
        claim: A claim of the answer.
        source: Passages and question, in the claim's language.
        language: Its code of two letters.
    """
    if language in ("zh", "ja"):
        is_new = _is_new_sentence(claim, source)
        return Strange(0, len(claim.text), "sentence") if is_new else None
    if language not in LATIN or claim.text.startswith("#"):
        return None
    taken = {place for fact in claim.facts for place in range(fact.token, fact.last)}
    for place in in_time(range(1, len(claim.tokens) - 1), every=256):
        first, second = claim.tokens[place : place + 2]
        if first.end + 1 < second.start or not {place, place + 1}.isdisjoint(taken):
            continue
        if not (_is_inner(claim, place) and _may_be_name(second)):
            continue
        if language == "de" and not _is_introduced(claim, place, source):
            continue
        long = [one for one in (first, second) if len(one.text) > LONG_NAME]
        if long and not any(_is_said(folded(one.text), source, language) for one in long):
            return Strange(first.start, second.end, "name")
    return None


_TOLD_SIGNS, _KNOWN_SIGNS, _FEW_SHARED = 8, 20, 0.25
_ENDING = 2
"""Letters at a name's end that may differ: "Petra", "Petry"."""
_OPENING = frozenset(
    ".!?:;|#>([)/\"'\u00ab\u00bb\u201e\u201c\u201d\u2018\u2019\u00bf\u00a1\u2022\u2013\u2014"
)
_EMPHASIS = frozenset("*_")
_NO_NAMES = words.listed(
    # forms of address
    "ciebie tobie tobą twój twoja twoje twojego twojej pan pani pana panu panem panią państwo"
    " państwa państwu usted ustedes señor señora don doña lei sua suo suoi vostro signor signora"
    " senhor senhora você vocês monsieur madame mevrouw meneer sie ihr ihre ihren ihrem ihrer ihres"
    " ihnen deine deinen deinem deiner deines cliente clientes client klant kunde kunden"
    # what an answer needs no passage for
    " internet web wifi email mail online app google team equipo equipe équipe servizio servicio"
    " service atención assistenza assistance kundenservice support navidad natal natale noël pâques"
    " kerst pasen wielkanoc pasqua páscoa semana santa deutschland österreich schweiz france españa"
    " italia portugal nederland polska polsce europa europe unie unión unione união"
    # german words that stand before or behind another noun
    " anfang mitte ende glas tasse flasche packung liter kilo gramm stück paar prozent euro cent"
    " stunde stunden minute minuten tag tage woche wochen monat monate jahr jahre uhr januar"
    " februar märz april juni juli august september oktober november dezember montag dienstag"
    " mittwoch donnerstag freitag samstag sonntag person personen hilfe punkt paragraf absatz"
)
_INTRODUCED = words.listed("frau herr herrn dr prof bei von durch beim vom")
_COURTESY = ("希望", "请随时", "放心", "祝您", "お気軽", "幸いです", "ございます", "お役に立")
_ASKS = ("?", "\uff1f", "吗", "か\u3002")


def _is_new_sentence(claim: ReadSentence, source: PassageFacts) -> bool:
    """Return whether passages and question have hardly a sign of a sentence that states a thing."""
    if claim.facts or any(told in claim.text for told in (*_COURTESY, *_ASKS)):
        return False
    own = set(filter(is_han, claim.text))
    is_long = len(own) >= _TOLD_SIGNS and len(source.han) >= _KNOWN_SIGNS
    return is_long and len(own & source.han) <= _FEW_SHARED * len(own)


def _is_said(name: str, source: PassageFacts, language: str) -> bool:
    """Return whether a word of passages begins like a name; Polish names change inside, too."""
    size = LONG_NAME if language == "pl" else max(LONG_NAME + 1, len(name) - _ENDING)
    return name[: min(size, MOST_LETTERS)] in source.beginnings


def _may_be_name(token: Token) -> bool:
    is_name = token.kind == "w" and token.text[0].isupper() and token.text[1:].islower()
    return is_name and token.text.lower() not in _NO_NAMES


def _is_inner(claim: ReadSentence, place: int) -> bool:
    """Return whether a token may be a name: a capital that no beginning of a sentence needs."""
    token = claim.tokens[place]
    if not _may_be_name(token):
        return False
    before = [one for one in claim.tokens[max(0, place - 4) : place] if one.text not in _EMPHASIS]
    if not before or before[-1].text in _OPENING:
        return False
    return "\n" not in claim.text[before[-1].end : token.start]


def _is_introduced(claim: ReadSentence, place: int, source: PassageFacts) -> bool:
    """Return whether a title, or a "by", stands before a German noun: "Kassenwart Jens Merz"."""
    before = claim.tokens[place - 1]
    is_title = _may_be_name(before) and _is_said(folded(before.text), source, "de")
    return is_title or before.text.lower() in _INTRODUCED
