"""Reads a plain English statement into subject, verb and rest, and turns it into questions.

The rules know a few hundred verbs and no parser. They leave what they are not sure about:
`read_clause` returns None for most sentences, and a question is made of the others only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import re2

from guardrail_offline.generation import english_words as words
from guardrail_service.detectors.facts.amounts import Fact
from guardrail_service.detectors.facts.read import read
from guardrail_service.detectors.facts.vocabulary import listed

_CLOCK = re2.compile(r"\b\d{1,2}:\d{2}\b")
MOST_WORDS, FEWEST_WORDS = 32, 3
MOST_SUBJECT_WORDS = 8
_SIGNS = frozenset('{}[]<>=_`\\|#*@^~;:?!()…→/"“”«»§+&')
_APART = (". ", " ,", " '", " - ", " – ", "—")  # noqa: RUF001 - of texts that were taken apart
_PLURAL_WORDS = frozenset(("people", "children", "men", "women", "police", "data", "media"))
_SINGULAR_ENDS = ("ss", "us", "is", "ics")


@dataclass(frozen=True)
class Clause:
    """A statement as questions need it; texts are normalised to single blanks.

    Attributes:
        text: The whole statement with its full stop, its first word as inside a sentence.
        subject: As inside a sentence: "the warranty", "Veltra".
        verb: The finite verb: "is", "must", "covers".
        base: Infinitive of a full verb; empty for an auxiliary.
        tense: `third`, `base` or `past` of a full verb; empty for an auxiliary.
        rest: What follows the verb, without the full stop; may be empty.
        facts: Exact facts of `rest`, offsets in it, with rounding words before them included.
        is_plural: Of the subject, as far as the verb or its last word says.
        named: The subject begins with a name.
    """

    text: str
    subject: str
    verb: str
    base: str
    tense: str
    rest: str
    facts: tuple[RestFact, ...]
    is_plural: bool
    named: bool

    @property
    def head(self) -> str:
        """Return the last word of the subject's first phrase: "ticket" of "ticket for adults"."""
        parts = self.subject.split()
        for place, word in enumerate(parts[1:], start=1):
            if word in words.PREPOSITIONS:
                return parts[place - 1]
        return parts[-1]

    def statement(self, rest: str | None = None, *, negated: bool = False) -> str:
        """Return subject, verb and rest as a clause; `negated` denies it."""
        rest = self.rest if rest is None else rest
        verb = self.verb
        if negated:
            verb = f"{self._do()} not {self.base}" if self.base else f"{self.verb} not"
        return " ".join(filter(None, (self.subject, verb, rest)))

    def question(self, rest: str | None = None) -> str:
        """Return the inverted clause without a mark: "is the warranty valid for 24 months"."""
        rest = self.rest if rest is None else rest
        if self.base:
            return " ".join(filter(None, (self._do(), self.subject, self.base, rest)))
        return " ".join(filter(None, (self.verb, self.subject, rest)))

    def _do(self) -> str:
        if self.tense == "past":
            return "did"
        return "does" if self.tense == "third" else "do"


class RestFact(NamedTuple):
    """An exact fact in the rest of a clause.

    Attributes:
        fact: As the service reads it.
        start: In the rest, rounding words included.
        end: Behind it, without a count's noun.
    """

    fact: Fact
    start: int
    end: int


Names = Callable[[str, bool], bool]
"""Says whether a capitalised first word keeps its capital inside a sentence; where the flag is set,
only if it is known for a name."""


def plain_sentence(text: str) -> str | None:
    """Return a statement on one line that stands by itself; None if it is no such.

    Pronouns and pointing words lean on other sentences; code, lists and quotations are no plain
    statements.
    """
    line = " ".join(text.split())
    if not line.endswith(".") or line.endswith(("..", "etc.")) or not line[:1].isupper():
        return None
    if not _SIGNS.isdisjoint(_CLOCK.sub("", line)) or any(sign in line[:-1] for sign in _APART):
        return None
    parts = line[:-1].split()
    if not FEWEST_WORDS <= len(parts) <= MOST_WORDS:
        return None
    lows = [part.strip(",.'’").lower() for part in parts]  # noqa: RUF001
    leaning = words.PRONOUNS | words.POINTING | {"also"}
    if lows[0] in words.POSSESSIVES:
        return None
    return None if any(low in leaning or "n't" in low or "n’t" in low for low in lows) else line  # noqa: RUF001


def without_opening(line: str) -> str:
    """Return "The firm moved in 2019." for "In 2019, the firm moved."; others as they are."""
    comma = line.find(", ")
    opening = line[:comma] if comma > 0 else ""
    if not opening.startswith(("In ", "On ", "Since ", "By ", "Until ")):
        return line
    found = read(opening).facts
    if len(opening.split()) > 5 or len(found) != 1 or found[0].kind not in ("date", "number"):
        return line
    fact = found[0]
    is_year = fact.kind == "date" or (1000 <= fact.raw <= 2199 and len(opening.split()) == 2)
    if not is_year or opening[fact.end :].strip():
        return line
    rest = line[comma + 2 : -1]
    if rest[:1].isdigit():
        return line
    return f"{rest[:1].upper()}{rest[1:]} {opening[0].lower()}{opening[1:]}."


def read_clause(line: str, keeps_capital: Names) -> Clause | None:
    """Return the parts of a plain statement; None where the rules are not sure of them."""
    line = without_opening(line)
    if "," in line.replace(",000", "000") and not _commas_are_dates_or_lists(line):
        return None
    parts = line[:-1].split()
    lows = [part.rstrip(",").lower() for part in parts]
    if lows[0] in words.OPENERS | words.PREPOSITIONS | words.POSSESSIVES or lows[0].endswith(
        ("ly", "ing")
    ):
        return None
    found = _verb_at(parts, lows)
    if found is None:
        return None
    place, form = found
    subject_words, rest_words = parts[:place], parts[place + 1 :]
    if not _is_subject(subject_words, lows[:place]) or _runs_on(rest_words, form):
        return None
    verb = lows[place]
    plural = _is_plural(subject_words, verb, form)
    if plural is None:
        return None
    named = _is_named(subject_words, keeps_capital) and not _is_bare_plural(subject_words, plural)
    first = subject_words[0] if named else subject_words[0][0].lower() + subject_words[0][1:]
    subject = " ".join([first, *subject_words[1:]])
    rest = " ".join(rest_words)
    if rest_words and rest_words[-1].lower() in words.PREPOSITIONS | {"be", "a", "an", "the"}:
        return None
    clause = Clause(
        "", subject, verb, form.base if form else "", form.tense if form else "", rest,
        _facts_of(rest), plural, named and subject_words[0].lower() not in words.DETERMINERS,
    )  # fmt: skip
    return replace(clause, text=f"{clause.statement()}.")


def _commas_are_dates_or_lists(line: str) -> bool:
    """Return whether every comma stands before a year, or in "A, B and C" at the sentence's end."""
    pieces = line[:-1].split(", ")
    if all(piece[:4].isdecimal() for piece in pieces[1:]):
        return True
    return list_items(line[:-1]) is not None


def list_items(text: str) -> tuple[int, tuple[str, ...]] | None:
    """Return where an enumeration at the end of a text begins, and its items; None without one.

    Items are at most four words long and at least three; the first begins behind the last word that
    cannot be part of it.
    """
    pieces = text.split(", ")
    if len(pieces) < 2:
        return None
    last = pieces[-1].removeprefix("and ").removeprefix("or ")
    joint = " and " if " and " in pieces[-1] else " or "
    final = [last] if last != pieces[-1] else pieces[-1].split(joint)
    if len(final) > 2 or (last == pieces[-1] and len(final) != 2):
        return None
    middle = [*pieces[1:-1], *final]
    if len(middle) < 2 or any(not 1 <= len(item.split()) <= 4 for item in middle):
        return None
    if any(
        word.lower() in words.AUXILIARIES | words.CLAUSE_WORDS for m in middle for word in m.split()
    ):
        return None
    opening = pieces[0].split()
    taken: list[str] = []
    stop = words.PREPOSITIONS | words.AUXILIARIES | set(words.verb_forms()) | {"are", "is"}
    while opening and len(taken) < 4 and opening[-1].lower() not in stop:
        taken.insert(0, opening.pop())
    if not taken or not opening:
        return None
    first = " ".join(taken)
    return len(text) - len(first) - sum(map(len, pieces[1:])) - 2 * len(pieces[1:]), (
        first,
        *middle,
    )


def _verb_at(parts: Sequence[str], lows: Sequence[str]) -> tuple[int, words.VerbForm | None] | None:
    """Return the place of the finite verb and its form, None for an auxiliary's form."""
    known = words.verb_forms()
    for place in range(1, min(len(lows), MOST_SUBJECT_WORDS + 1)):
        low = lows[place]
        if parts[place - 1].endswith(","):
            return None
        following = lows[place + 1] if place + 1 < len(lows) else ""
        if low in words.AUXILIARIES:
            return _auxiliary(lows, place)
        if low not in known or parts[place][0].isupper():
            continue
        if following in words.AUXILIARIES:
            continue  # "the reports are": a noun
        forms = [form for form in known[low] if _agrees(form, parts[:place], lows[:place])]
        if (
            not forms
            or lows[place - 1] in words.PREPOSITIONS | words.DETERMINERS | words.POSSESSIVES
        ):
            continue
        form = forms[0]
        if form.nounlike and not _is_sure_verb(parts, lows, place + 1):
            return None
        if form.tense == "past" and following == "by":
            return None
        return (place, form) if following not in known or not _may_be_verb(following) else None
    return None


def _may_be_verb(low: str) -> bool:
    return any(not form.nounlike for form in words.verb_forms()[low])


def _auxiliary(lows: Sequence[str], place: int) -> tuple[int, words.VerbForm | None] | None:
    following = next((low for low in lows[place + 1 :] if low not in words.ADVERBS), "")
    if lows[place] in words.DO:
        return None
    if lows[place] in words.HAVE and following != "been" and not words.is_participle(following):
        tense = {"has": "third", "have": "base", "had": "past"}[lows[place]]
        return (
            (place, words.VerbForm("have", tense, False)) if following not in ("to", "") else None
        )
    return place, None


def _is_sure_verb(parts: Sequence[str], lows: Sequence[str], place: int) -> bool:
    """Return whether what follows a word that may be a noun shows that it is a verb."""
    if _begins_phrase(parts, lows, place):
        return True
    behind = parts[place + 1 : place + 3]
    valued = any(part[0].isdigit() or part.rstrip(".s") in _WEEKDAYS for part in behind)
    known = words.verb_forms()
    verbs = [low for low in lows[place:] if low in known and _may_be_verb(low)]
    return place < len(lows) and lows[place] in words.PREPOSITIONS and valued and not verbs


_WEEKDAYS = frozenset(
    ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
)


def _begins_phrase(parts: Sequence[str], lows: Sequence[str], place: int) -> bool:
    """Return whether a noun phrase or a number begins at a place."""
    if place >= len(parts):
        return False
    low = lows[place]
    opened = low in words.DETERMINERS | words.POSSESSIVES or parts[place][0].isdigit()
    return opened or parts[place][0] in "€$£" or low in _NUMBER_WORDS


_NUMBER_WORDS = listed(
    "one two three four five six seven eight nine ten eleven twelve twenty thirty fifty"
)


def _agrees(form: words.VerbForm, subject: Sequence[str], lows: Sequence[str]) -> bool:
    if form.tense == "past":
        return True
    plural = _looks_plural(lows)
    return plural if form.tense == "base" else not plural


def _looks_plural(lows: Sequence[str]) -> bool:
    """Return whether the head of a subject looks like a plural."""
    if "and" in lows:
        return True
    head = lows[-1]
    for place, low in enumerate(lows[1:], start=1):
        if low in words.PREPOSITIONS:
            head = lows[place - 1]
            break
    if lows[0] in ("a", "an", "every", "each", "another"):
        return False
    return head in _PLURAL_WORDS or (head.endswith("s") and not head.endswith(_SINGULAR_ENDS))


def _is_plural(subject: Sequence[str], verb: str, form: words.VerbForm | None) -> bool | None:
    """Return the number of the subject; None where verb and subject do not agree."""
    looks = _looks_plural([word.lower() for word in subject])
    if form is not None:
        return form.tense == "base" if form.tense != "past" else looks
    if verb in ("is", "was", "has"):
        return False if "and" not in subject else None
    if verb in ("are", "were", "have"):
        return True
    return looks


def _is_subject(subject: Sequence[str], lows: Sequence[str]) -> bool:
    if not 1 <= len(subject) <= MOST_SUBJECT_WORDS or any(word.endswith(",") for word in subject):
        return False
    barred = words.CLAUSE_WORDS | words.AUXILIARIES | {"to", "not", "or"}
    if not barred.isdisjoint(lows):
        return False
    if not _VAGUE.isdisjoint(lows):
        return False
    if lows[0] in ("no", "any", "neither", "either", "another", "few", "some", "most", "many"):
        return False
    if lows[-1] in words.PREPOSITIONS | words.DETERMINERS | words.ADVERBS | words.POSSESSIVES:
        return False
    if any(low in words.participles() and low not in words.verb_forms() for low in lows[1:]):
        return False
    if lows[0] not in words.DETERMINERS and len(lows) == 1 and not subject[0][0].isalpha():
        return False
    return not any(low.endswith("ing") and low not in _ING_NOUNS for low in lows[1:])


_VAGUE = listed("rest first second third last next present own remaining whole")
_ING_NOUNS = listed(
    "building meeting king spring ring wing string opening heating training parking ceiling "
    "evening morning"
)
_FURTHER = listed(
    "which who whose whom because but although though while whereas so if unless where when that "
    "whether how what why"
)


def _runs_on(rest: Sequence[str], form: words.VerbForm | None) -> bool:
    """Return whether the rest holds another statement, so that a question would be odd."""
    lows = [word.rstrip(",").lower() for word in rest]
    known = words.verb_forms()
    if not rest and form is None:
        return True
    for place, low in enumerate(lows):
        before = lows[place - 1] if place else ""
        if rest[place] != "May" and low in words.AUXILIARIES | _FURTHER:
            return True
        if before in ("and", "or", "then"):
            finite = low in known and any(f.tense != "base" or form is None for f in known[low])
            unknown = low.endswith(("s", "ed")) and _begins_phrase(rest, lows, place + 1)
            if (finite and form is not None) or unknown:
                return True
            if (
                finite
                and form is None
                and any(f.tense == "third" for f in known[low])
                and _begins_phrase(rest, lows, place + 1)
            ):
                return True
    behind = lows[lows.index("and") :] if "and" in lows else []
    pasts = (form for low in behind for form in known.get(low, ()) if form.tense == "past")
    if form is not None and any(pasts):
        return True
    return any(low in words.POSSESSIVES - {"its", "their", "his", "her"} for low in lows)


def _is_named(subject: Sequence[str], keeps_capital: Names) -> bool:
    first = subject[0]
    if first.lower() in words.DETERMINERS or first.lower() in _NUMBER_WORDS:
        return False
    if len(subject) > 1 and subject[1][0].isupper() and not first.endswith(("s", "ing")):
        return True
    if any(c.isupper() for c in first[1:]) or any(map(str.isdigit, first)) or len(first) == 1:
        return True
    modifies = len(subject) > 1 and subject[1] not in words.PREPOSITIONS
    return keeps_capital(first, modifies)  # "Passenger ferries" is no name


def _is_bare_plural(subject: Sequence[str], plural: bool) -> bool:
    """Return whether a subject is a plural without an article: "Guests", "Members of the club"."""
    first, second = subject[0], subject[1] if len(subject) > 1 else ""
    lone = not second or second in words.PREPOSITIONS
    many = first.endswith("s") or first.lower() in _PLURAL_WORDS
    return plural and lone and many and first[1:].islower()


def _facts_of(rest: str) -> tuple[RestFact, ...]:
    found = []
    for fact in read(rest).facts:
        start = fact.start
        before = rest[:start].rstrip()
        for bound in sorted(words.BOUND_WORDS, key=len, reverse=True):
            if before.lower().endswith(bound) and before[: -len(bound)][-1:] in ("", " "):
                start = len(before) - len(bound)
                break
        found.append(RestFact(fact, start, fact.end))
    return tuple(found)
