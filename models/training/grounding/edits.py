"""Changes one fact of a text, or only its wording: what training pairs are made from.

A *change* makes a text false where the original is true: another number, date, unit, name or
opposite, a negation put in or taken out, two things exchanged. A *rewording* keeps it true. Every
function returns None where a text offers nothing to change.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Sequence

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w]|\.\d)")
NAME = re.compile(r"(?:(?<=[a-z,;(\"] )|^)[A-Z][a-zà-ÿ]+(?: (?:of |de |van |the )?[A-Z][a-zà-ÿ]+)*")
_CONTENT = re.compile(r"[a-z][\w'-]{3,}|\d+")
OPENING = frozenset(
    "The A An In On At It He She They This That These Those There When While After Before If As"
    " His Her Its Their We You I For From By With And But Or Not No Some Many Most All Two One"
    " Both Since During Although However Because Where What Who How Why Is Are Was Were Do Does"
    " January February March April May June July August September October November December"
    " Monday Tuesday Wednesday Thursday Friday Saturday Sunday Throughout Within Among".split()
)
_MONTHS = (
    "January February March April June July August September October November December".split()
)
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_DIGITS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_UNITS = (
    "seconds minutes hours days weeks months years decades".split(),
    "second minute hour day week month year decade".split(),
    "grams kilograms tonnes".split(),
    "millimetres centimetres metres kilometres miles feet".split(),
    "hundred thousand million billion".split(),
    "euros dollars pounds yen".split(),
    "daily weekly monthly yearly".split(),
)
_FLIPS = [tuple(pair.split("/")) for pair in (
    "increased/decreased increase/decrease increases/decreases higher/lower more/fewer more/less"
    " before/after first/last largest/smallest larger/smaller bigger/smaller greater/lower"
    " always/never north/south northern/southern east/west eastern/western won/lost with/without"
    " most/least above/below old/new older/younger male/female opened/closed open/closed"
    " start/end started/ended early/late earlier/later allowed/forbidden permitted/prohibited"
    " minimum/maximum can/cannot optional/required optional/mandatory included/excluded"
    " include/exclude including/excluding inside/outside indoors/outdoors left/right"
    " rise/fall rose/fell gained/lost improved/worsened better/worse best/worst strong/weak"
    " stronger/weaker high/low long/short longer/shorter fast/slow faster/slower hot/cold"
    " warm/cool wet/dry full/empty rich/poor free/paid cheap/expensive cheaper/dearer"
    " positive/negative active/inactive present/absent possible/impossible likely/unlikely"
    " able/unable legal/illegal public/private upper/lower top/bottom front/back black/white"
    " accepted/rejected approved/rejected bought/sold buy/sell borrowed/lent employer/employee"
    " buyer/seller sender/recipient parent/child parents/children mother/father husband/wife"
    " son/daughter brother/sister man/woman men/women boy/girl boys/girls king/queen he/she"
    " teacher/student doctor/patient morning/evening day/night summer/winter alive/dead"
    " born/died married/divorced entered/left arrived/departed attacked/defended"
    " standing/sitting sleeping/running indoor/outdoor same/different similar/different"
    " everyone/nobody everybody/nobody something/nothing ancient/modern international/domestic"
    " remains/leaves confirmed/denied succeeded/failed success/failure victory/defeat"
    " safe/dangerous healthy/sick common/rare simple/complex original/final senior/junior"
    " online/offline automatic/manual automatically/manually temporary/permanent"
).split()]  # fmt: skip
_QUANTIFIERS = [tuple(pair.split("/")) for pair in (
    "all/no every/no some/no many/no most/no both/neither all/none_of everyone/no_one"
    " more_than/less_than at_least/at_most up_to/at_least"
).split()]  # fmt: skip
_PAST = dict(pair.split("/") for pair in (
    "won/win became/become began/begin wrote/write made/make took/take gave/give led/lead"
    " left/leave lost/lose met/meet sold/sell bought/buy built/build held/hold kept/keep"
    " got/get went/go came/come grew/grow rose/rise fell/fall found/find had/have told/tell"
    " said/say saw/see sent/send spent/spend won/win played/play starred/star directed/direct"
    " produced/produce released/release received/receive served/serve worked/work lived/live"
    " moved/move opened/open closed/close started/start ended/end joined/join married/marry"
    " created/create developed/develop increased/increase decreased/decrease showed/show"
    " included/include reached/reach attended/attend signed/sign published/publish"
    " appeared/appear performed/perform recorded/record founded/found died/die used/use"
    " needed/need wanted/want required/require allowed/allow caused/cause helped/help"
).split())  # fmt: skip
_PRESENT = dict(pair.split("/") for pair in (
    "has/have plays/play works/work lives/live makes/make takes/take gives/give includes/include"
    " contains/contain requires/require allows/allow needs/need causes/cause shows/show"
    " uses/use starts/start ends/end opens/open closes/close provides/provide remains/remain"
    " stars/star features/feature tells/tell follows/follow covers/cover costs/cost runs/run"
    " holds/hold keeps/keep says/say wants/want offers/offer receives/receive applies/apply"
).split())  # fmt: skip
_BE = "is was are were can could will would should must may has been have been had been".split()
_SHORT = {
    "is not": "isn't", "was not": "wasn't", "are not": "aren't", "were not": "weren't",
    "did not": "didn't", "does not": "doesn't", "do not": "don't", "has not": "hasn't",
    "will not": "won't", "cannot": "can't", "could not": "couldn't", "would not": "wouldn't",
}  # fmt: skip
_SAME = [tuple(pair.split("/")) for pair in (
    "approximately/about about/around began/started started/began purchase/buy bought/purchased"
    " large/big big/large permitted/allowed prohibited/forbidden required/needed children/kids"
    " however/but physician/doctor employees/staff primarily/mainly mainly/mostly movie/film"
    " film/movie located/situated error/mistake assist/help obtain/get received/got"
    " immediately/at_once annually/every_year per_cent/percent via/through near/close_to"
    " constructed/built built/constructed created/made founded/established"
).split()]  # fmt: skip
Draw = random.Random
Edit = Callable[[str, Sequence[str], Draw], str | None]


def _put(text: str, old: str, new: str) -> str | None:
    """Return the text with a whole word or phrase replaced once, case kept at its beginning."""
    hit = re.search(rf"(?<![\w'-]){re.escape(old)}(?![\w'-])", text, re.IGNORECASE)
    if hit is None:
        return None
    if hit.group()[0].isupper():
        new = new[0].upper() + new[1:]
    return text[: hit.start()] + new + text[hit.end() :]


def _exchange(text: str, a: str, b: str) -> str:
    pattern = re.compile(rf"(?<!\w)({re.escape(a)}|{re.escape(b)})(?!\w)")
    return pattern.sub(lambda hit: b if hit.group() == a else a, text)


def _listed(text: str, pairs: list[tuple[str, ...]], rng: Draw) -> str | None:
    """Return the text with a word of a listed pair replaced by the other, exchanged if both occu"""
    words = set(re.findall(r"[\w'-]+", text.lower()))
    fits = [p for pair in pairs for p in (pair, pair[::-1]) if p[0].split("_")[0] in words]
    rng.shuffle(fits)
    for old, new in fits:
        if old in words and new in words:
            return _exchange(text, old, new)
        changed = _put(text, old.replace("_", " "), new.replace("_", " "))
        if changed:
            return changed
    return None


def content(text: str) -> frozenset[str]:
    """Return a text's longer words and its numbers."""
    return frozenset(_CONTENT.findall(text.lower()))


def names(text: str) -> list[str]:
    """Return the text's names, by their capitals."""
    found = dict.fromkeys(NAME.findall(text))
    return [n for n in found if n not in OPENING and len(n) > 2]


def change_number(text: str, context: Sequence[str], rng: Draw) -> str | None:
    """Return the text with a number changed: to another one of the passage, or to any."""
    hits = list(NUMBER.finditer(text))
    if not hits:
        worded = [w for w in _DIGITS[2:] if _put(text, w, w)]
        if not worded:
            return None
        old = rng.choice(worded)
        return _put(text, old, rng.choice([d for d in _DIGITS[1:] if d != old]))
    hit = rng.choice(hits)
    old = hit.group()
    others = [n for s in context for n in NUMBER.findall(s) if n != old and len(n) == len(old)]
    taken = others and rng.random() < 0.45
    new = rng.choice(others) if taken else _other_number(old, rng)
    return None if new == old else text[: hit.start()] + new + text[hit.end() :]


def _other_number(old: str, rng: Draw) -> str:
    plain = old.replace(",", "").rstrip(".")
    if "." in plain:
        decimals = len(plain.split(".")[1])
        return f"{float(plain) * rng.choice((0.1, 0.5, 1.3, 2.0, 3.1, 10)):.{decimals}f}"
    value = int(plain)
    if len(plain) == 4 and plain[:2] in ("16", "17", "18", "19", "20"):
        if rng.random() < 0.2:
            return plain[:2] + plain[3] + plain[2]
        return str(value + rng.choice((-100, -31, -12, -7, -3, -1, 1, 2, 4, 9, 15, 10)))
    new = max(0, rng.choice((value + 1, value * 2, value + 5, value * 10, value - 1, value // 2)))
    return f"{new:,}" if "," in old else str(new)


def exchange_numbers(text: str, _context: Sequence[str], rng: Draw) -> str | None:
    """Return the text with two of its numbers exchanged."""
    found = list(dict.fromkeys(n.rstrip(",") for n in NUMBER.findall(text)))
    pairs = [(a, b) for a in found for b in found if a < b and (len(a) == 4) == (len(b) == 4)]
    return _exchange(text, *rng.choice(pairs)) if pairs else None


def change_date(text: str, _context: Sequence[str], rng: Draw) -> str | None:
    """Return the text with another month or day of the week."""
    for listed in rng.sample([_MONTHS, _DAYS], 2):
        here = [name for name in listed if name in text]
        if here:
            return _put(text, here[0], rng.choice([name for name in listed if name != here[0]]))
    return None


def change_unit(text: str, _context: Sequence[str], rng: Draw) -> str | None:
    """Return the text with a unit replaced by another of its kind."""
    here = [(u, kind) for kind in _UNITS for u in kind if _put(text, u, u)]
    if not here:
        return None
    unit, kind = rng.choice(here)
    return _put(text, unit, rng.choice([other for other in kind if other != unit]))


def change_name(text: str, context: Sequence[str], rng: Draw) -> str | None:
    """Return the text with one name replaced by another one of the context."""
    here = names(text)
    others = [
        n for s in context for n in names(s) if n not in text and not any(h in n for h in here)
    ]
    if not here or not others:
        return None
    return _put(text, rng.choice(here), rng.choice(others))


def exchange_names(text: str, _context: Sequence[str], rng: Draw) -> str | None:
    """Return the text with two names exchanged, unless they are merely listed side by side."""
    here = [n for n in names(text) if text.count(n) == 1]
    if len(here) < 2 or re.search(r"\b(between|married|with|both|and)\b", text):
        return None
    a, b = rng.sample(here, 2)
    first, second = sorted((text.index(a), text.index(b)))
    between = text[first + len(a if text.index(a) == first else b) : second]
    if a in b or b in a or not between.split() or re.search(r"[,;]|\b(or|of|in|at)\b", between):
        return None
    return _exchange(text, a, b)


def flip(text: str, _context: Sequence[str], rng: Draw) -> str | None:
    """Return the text with one word turned into its opposite, or an opposite pair exchanged."""
    return _listed(text, _FLIPS, rng)


def requantify(text: str, _context: Sequence[str], rng: Draw) -> str | None:
    """Return the text with another quantifier or bound."""
    return _listed(text, _QUANTIFIERS, rng)


def negate(text: str, _context: Sequence[str], rng: Draw) -> str | None:
    """Return the text with a negation taken out or put in."""
    for old, new in (("n't ", " "), (" not ", " "), (" never ", " "), ("cannot ", "can ")):
        if old in text and "only" not in text and "won't" not in text and "can't" not in text:
            return text.replace(old, new, 1)
    words = re.findall(r"[A-Za-z']+", text)
    ways: list[tuple[str, str]] = []
    for before, word in dict.fromkeys(itertools.pairwise(words)):
        if before.lower() in _BE:
            continue  # a participle: its auxiliary takes the negation
        if word in _BE[:11]:
            ways += [(word, f"{word} not"), (word, f"{word} never"), (word, f"{word} no longer")]
            if f"{word} not" in _SHORT:
                ways.append((word, _SHORT[f"{word} not"]))
        if word in _PAST:
            base = _PAST[word]
            ways += [(word, f"did not {base}"), (word, f"didn't {base}"), (word, f"never {word}")]
        if word in _PRESENT:
            base = _PRESENT[word]
            ways += [(word, f"does not {base}"), (word, f"doesn't {base}"), (word, f"never {word}")]
    return _put(text, *rng.choice(ways)) if ways else None


def reword(text: str, _context: Sequence[str], rng: Draw) -> str | None:
    """Return the text, same in meaning: a number in words, a contraction, a synonym, a date."""
    ways = [_numbers_in_words, _contractions, _synonyms, _date_order, _shorter]
    for way in rng.sample(ways, len(ways)):
        changed = way(text, rng)
        if changed and changed != text:
            return changed
    return None


def _numbers_in_words(text: str, _rng: Draw) -> str | None:
    for value, word in enumerate(_DIGITS):
        if value >= 2 and _put(text, word, str(value)):
            return _put(text, word, str(value))
        if value >= 2 and re.search(rf"(?<![\d.,:/ -]) {value} (?=[a-z])", text):
            return text.replace(f" {value} ", f" {word} ", 1)
    return None


def _contractions(text: str, _rng: Draw) -> str | None:
    for long, short in _SHORT.items():
        for old, new in ((long, short), (short, long)):
            if f" {old} " in text:
                return text.replace(f" {old} ", f" {new} ", 1)
    return None


def _synonyms(text: str, rng: Draw) -> str | None:
    for old, new in rng.sample(_SAME, len(_SAME)):
        changed = _put(text, old.replace("_", " "), new.replace("_", " "))
        if changed:
            return changed
    return None


def _date_order(text: str, _rng: Draw) -> str | None:
    months = "|".join([*_MONTHS, "May"])
    changed = re.sub(rf"\b(\d{{1,2}}) ({months}) (\d{{4}})", r"\2 \1, \3", text, count=1)
    if changed == text:
        changed = re.sub(rf"\b({months}) (\d{{1,2}}), (\d{{4}})", r"\2 \1 \3", text, count=1)
    return changed


def _shorter(text: str, _rng: Draw) -> str | None:
    at = text.rfind(", ")
    return text[:at] + "." if at > 40 and " not " not in text[at:] else None


CHANGES: dict[str, tuple[Edit, float]] = {
    "number": (change_number, 2.0), "numbers": (exchange_numbers, 1.5), "date": (change_date, 0.7),
    "unit": (change_unit, 1.0), "name": (change_name, 1.2), "names": (exchange_names, 2.0),
    "flip": (flip, 3.0), "quantifier": (requantify, 1.0), "negate": (negate, 2.5),
}  # fmt: skip
"""How facts are changed, and how often each way is tried."""


def changed(text: str, context: Sequence[str], rng: Draw) -> tuple[str, str] | None:
    """Return the name of a change and the changed text."""
    kinds = list(CHANGES)
    for kind in rng.choices(kinds, [CHANGES[k][1] for k in kinds], k=4):
        found = CHANGES[kind][0](text, context, rng)
        if found and found != text:
            return kind, found
    return None
