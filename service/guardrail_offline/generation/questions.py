"""Turns clauses into questions about one fact: how many, when, where, who, what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import re2

from guardrail_offline.generation import english_words as words
from guardrail_offline.generation.clauses import Clause, RestFact
from guardrail_offline.generation.plain_statements import Statement
from guardrail_service.detectors.facts.amounts import Fact
from guardrail_service.detectors.facts.vocabulary import listed

_YEARS = range(1000, 2200)
_PLACED = listed(
    "located based headquartered situated born held buried stored kept hosted installed "
    "stationed registered"
)
_OF_PEOPLE = listed(
    "found develop write design invent create publish compose paint lead win own sign elect "
    "discover direct produce establish introduce propose organise organize launch manage host "
    "fund finance buy purchase acquire appoint adopt approve start build construct"
)
"""Verbs whose doer is a person or a body of persons, so that "who" is right."""
_DIMENSIONS = frozenset(("long", "wide", "high", "tall", "deep", "old", "thick"))
_BY_SIZE = {"by": "by", "to": "to", "at": "at", "for": "for", "within": "within", "after": "after",
            "in": "in", "over": "over"}  # fmt: skip
_QUANTITIES = ("number", "measure", "duration")
_UNIT = re2.compile(r"^[\d.,\s]+(.*)$")


@dataclass(frozen=True)
class WhQuestion:
    """A question whose answer is one place of a statement.

    Attributes:
        kind: `numeric`, `temporal`, `where`, `who` or `what`.
        direct: "when was Veltra founded", without a mark.
        indirect: "when Veltra was founded".
        answer: The words of the document that answer it.
        statement: Where it came from.
        fact: What is asked for, if it is an exact fact.
        skeleton: The question without its subject, to find others of the same form.
    """

    kind: str
    direct: str
    indirect: str
    answer: str
    statement: Statement
    fact: Fact | None = None
    skeleton: str = ""

    @property
    def text(self) -> str:
        """Return the question as it is asked."""
        asked = f"{self.statement.scope}{self.direct}?"
        return asked[:1].upper() + asked[1:]


def wh_questions(statement: Statement) -> Iterator[WhQuestion]:
    """Yield the questions about single facts of a statement; none where the rules are not sure."""
    clause = statement.clause
    if clause is None:
        return
    for found in clause.facts:
        asked = _temporal(clause, found) or _numeric(clause, found)
        if asked is not None:
            kind, phrase, left = asked
            if not _dangles(left):
                yield _made(statement, clause, kind, phrase, left, found)
    yield from _where(statement, clause)
    yield from _who(statement, clause)
    yield from _what(statement, clause)


def _made(
    statement: Statement, clause: Clause, kind: str, phrase: str, left: str, found: RestFact
) -> WhQuestion:
    answer = clause.rest[found.start : found.end]
    if kind == "numeric" and (noun := _noun_behind(clause.rest, found)) and found.fact.unit == "":
        answer = f"{answer} {noun}"
    return WhQuestion(
        kind, f"{phrase} {clause.question(left)}", f"{phrase} {clause.statement(left)}", answer,
        statement, found.fact, f"{phrase} {clause.verb} {left}",
    )  # fmt: skip


def _cut(rest: str, start: int, end: int) -> str:
    return " ".join(f"{rest[:start]} {rest[end:]}".split())


def _dangles(left: str) -> bool:
    """Return whether what is left of a rest ends with a word that wants another."""
    last = left.split()[-1:]
    return bool(last) and last[0].lower().strip(",") in _WANTING


_WANTING = (words.PREPOSITIONS | words.DETERMINERS | words.CLAUSE_WORDS | {"and", "or", "up"}) - {
    "in"
}


def _is_single(fact: Fact) -> bool:
    return not (fact.is_range or fact.other is not None or fact.minus)


def _last_word(text: str) -> tuple[str, str]:
    """Return the last word of a text and what stands before it."""
    before, _, last = text.rstrip().rpartition(" ")
    return last, before


def is_year(fact: Fact) -> bool:
    """Return whether a fact is a year and nothing else."""
    if fact.kind == "date" and fact.date is not None:
        return fact.date[0] is not None and fact.date[1] is None
    plain = fact.kind == "number" and not fact.unit and not fact.nouns and not fact.is_word
    return plain and fact.raw in _YEARS and fact.end - fact.start == 4


def _temporal(clause: Clause, found: RestFact) -> tuple[str, str, str] | None:
    """Return kind, wh-phrase and what is left of the rest, for a date, a time or a weekday."""
    fact, rest = found.fact, clause.rest
    year = is_year(fact)
    if not (year or fact.kind in ("date", "time", "weekday")) or not _is_single(fact):
        return None
    prep, before = _last_word(rest[: found.start])
    if sum(is_year(f.fact) or f.fact.kind == "date" for f in clause.facts) > 1:
        return None
    if found.start != fact.start or _joined(rest, found) or not _ends_phrase(rest, found.end):
        return None
    phrase = {
        ("in", "date"): "in which year" if year else "when", ("in", "number"): "in which year",
        ("on", "date"): "when", ("on", "weekday"): "on which day of the week",
        ("since", "date"): "since when", ("since", "number"): "since when",
        ("until", "date"): "until when", ("until", "number"): "until when",
        ("by", "date"): "by when", ("at", "time"): "at what time", ("since", "time"): "since when",
        ("until", "time"): "until what time",
    }.get((prep, fact.kind))  # fmt: skip
    if phrase is None or (prep == "in" and not year and fact.kind != "date"):
        return None
    if not _may_be_dated(clause, before, prep, fact.kind):
        return None
    return "temporal", phrase, _cut(rest, len(before), found.end)


def _may_be_dated(clause: Clause, before: str, prep: str, kind: str) -> bool:
    """Return whether a date belongs to the verb and not to a noun before it."""
    if prep in ("since", "until", "by"):
        return True
    if {"after", "before", "since", "until", "from"}.intersection(before.split()):
        return False  # "after the king's death in 1227" dates the death
    if kind in ("time", "weekday"):
        return True
    if clause.base:
        return clause.tense == "past"
    group = [word for word in before.split() if word not in words.ADVERBS]
    passive = bool(group) and (words.is_participle(group[0]) or group[0] in ("born", "been"))
    return passive and clause.verb in ("was", "were", "will", "has", "have", "is", "are")


def _joined(rest: str, found: RestFact) -> bool:
    """Return whether a fact is a part of a longer word or of a pair."""
    around = rest[found.start - 1 : found.start] + rest[found.end : found.end + 1]
    after = rest[found.end :].split()[:1]
    return any(sign.isalnum() or sign in "-–/%'’" for sign in around) or after in (  # noqa: RUF001
        ["to"], ["and"], ["or"], ["±"],
    )  # fmt: skip


def _ends_phrase(rest: str, end: int) -> bool:
    """Return whether a new phrase begins behind a fact, or nothing."""
    after = rest[end:].strip(" ,").split()[:1]
    return not after or after[0].lower() in words.PREPOSITIONS


def _noun_behind(rest: str, found: RestFact) -> str:
    """Return the plural noun that a number counts, with the words before it; "" without one."""
    taken: list[str] = []
    for word in rest[found.end :].split():
        bare = word.strip(",")
        if bare.lower() in words.PREPOSITIONS | words.AUXILIARIES | {
            "and",
            "or",
            "per",
            "a",
            "each",
        }:
            break
        if bare in words.ADVERBS or not bare.replace("-", "").isalpha():
            break
        taken.append(bare)
        if bare != word or len(taken) == 3:
            break
    plural = bool(taken) and (taken[-1].endswith("s") or taken[-1] in ("people", "children"))
    return " ".join(taken) if plural and not words.is_participle(taken[-1]) else ""


def _numeric(clause: Clause, found: RestFact) -> tuple[str, str, str] | None:
    """Return kind, wh-phrase and what is left of the rest, for an amount."""
    fact, rest = found.fact, clause.rest
    if not _is_single(fact) or _joined(rest, found) or (fact.is_word and fact.raw == 1):
        return None
    if fact.kind not in (*_QUANTITIES, "money", "percentage") or is_year(fact):
        return None
    end = found.end
    noun = _noun_behind(rest, found) if not fact.unit else ""
    if noun:
        end = rest.index(noun, found.end) + len(noun)
    before = rest[: found.start].rstrip()
    behind = rest[end:].strip()
    phrase = _amount_phrase(fact, rest[fact.start : fact.end], noun)
    if not before and clause.verb in words.BE:
        return _of_being(clause, fact, phrase, behind)
    if phrase is None:
        return None
    prep, earlier = _last_word(before)
    if not before or _is_verb_group(before, clause):
        if fact.kind == "percentage":
            if not behind.startswith("of ") or len(behind.split()) > 5:
                return None
            return "numeric", f"{phrase} {behind}", before
        follows = (words.PREPOSITIONS | {"a", "per", "each"}) - {"of"}
        if behind and behind.split()[0].lower() not in follows:
            return None
        return "numeric", phrase, _cut(rest, found.start, end)
    if prep in _BY_SIZE and earlier and (not behind or behind.split()[0] in words.PREPOSITIONS):
        if fact.kind in ("money", "percentage") and prep not in ("by", "to"):
            return None
        if behind.startswith("of ") or not _attaches_to_verb(clause, earlier, prep):
            return None
        return "numeric", f"{prep} {phrase}", _cut(rest, len(earlier), end)
    return None


def _attaches_to_verb(clause: Clause, earlier: str, prep: str) -> bool:
    """Return whether a phrase such as "for 24 months" belongs to the verb or the predicate."""
    group = [word for word in earlier.split() if word not in words.ADVERBS]
    if len(group) == 1:
        return True
    return (
        prep in ("within", "after", "by")
        and len(group) <= 4
        and "of" not in group
        and "to" not in group
    )


def _of_being(
    clause: Clause, fact: Fact, phrase: str | None, behind: str
) -> tuple[str, str, str] | None:
    """Return the question for "is 25 metres long" or "is 12 euros"."""
    if behind in _DIMENSIONS and fact.kind in ("measure", "duration"):
        return "numeric", f"how {behind}", ""
    if behind or fact.kind not in ("money", "measure", "duration", "percentage"):
        return None
    article = clause.subject.split()[0].lower()
    return ("numeric", "what", "") if article in ("the", "a", "an") else None


def _amount_phrase(fact: Fact, text: str, noun: str) -> str | None:
    if fact.kind == "money":
        return "how much"
    if fact.kind == "percentage":
        return "what percentage"
    if noun:
        return f"how many {noun}"
    unit = _UNIT.match(text)
    if fact.kind not in ("measure", "duration") or unit is None or not unit[1]:
        return None
    name = unit[1]
    if " " in name or not name[0].isalpha():
        return None
    plural = name if len(name) <= 3 or name.endswith(("s", "feet", "hertz")) else f"{name}s"
    return f"how many {plural}"


def _is_verb_group(before: str, clause: Clause) -> bool:
    """Return whether only the full verb of a compound stands before: "pay" of "must pay"."""
    if clause.base or clause.verb in words.BE:
        return False
    group = [word for word in before.split() if word not in words.ADVERBS]
    if len(group) != 1:
        return False
    forms = words.verb_forms().get(group[0], ())
    if clause.verb in words.MODALS:
        return any(form.tense == "base" for form in forms)
    return clause.verb in words.HAVE and words.is_participle(group[0])


def _where(statement: Statement, clause: Clause) -> Iterator[WhQuestion]:
    parts = clause.rest.split()
    if clause.verb not in words.BE or len(parts) < 3 or parts[0] not in _PLACED:
        return
    if parts[1] not in ("in", "at", "on", "near") or clause.facts or len(parts) > 8:
        return
    answer = " ".join(parts[1:])
    if words.CLAUSE_WORDS.intersection(parts) or "and" in parts:
        return
    if not (parts[2][0].isupper() or parts[2] in ("the", "a", "an")):
        return
    yield WhQuestion(
        "where", f"where {clause.question(parts[0])}", f"where {clause.statement(parts[0])}",
        answer, statement, None, f"where {clause.verb} {parts[0]}",
    )  # fmt: skip


def _who(statement: Statement, clause: Clause) -> Iterator[WhQuestion]:
    verb, by, agent = clause.rest.partition(" by ")
    base = words.participles().get(verb)
    if clause.verb not in ("was", "were") or not by or base not in _OF_PEOPLE:
        return
    name, joint, behind = _agent(agent)
    if not name:
        return
    tail = f" {joint} {behind}" if joint else ""
    asked = f"who {words.past_of(base)} {clause.subject}{tail}"
    yield WhQuestion("who", asked, asked, name, statement, None, f"who {base}{tail}")


def _agent(text: str) -> tuple[str, str, str]:
    """Return a name at the beginning of a text, the preposition behind it and the rest."""
    taken: list[str] = []
    parts = text.split()
    for place, word in enumerate(parts):
        if word.lower() in ("in", "on", "at", "for", "during", "after", "before"):
            return " ".join(taken), word, " ".join(parts[place + 1 :])
        if not (word[0].isupper() or (word in ("the", "of", "and", "de", "van", "von") and taken)):
            return "", "", ""
        taken.append(word)
    return (" ".join(taken), "", "") if len(taken) <= 6 and taken[-1][0].isupper() else ("", "", "")


def _what(statement: Statement, clause: Clause) -> Iterator[WhQuestion]:
    """Yield "what is a detector" where a sentence says what something is."""
    if clause.verb not in words.BE or clause.rest.split()[:1] not in (["a"], ["an"], ["the"]):
        return
    first = clause.subject.split()[0].lower()
    if len(clause.subject.split()) > 4 or not (clause.named or first in ("a", "an")):
        return
    if " or " in clause.rest:
        return
    if clause.is_plural or len(clause.rest.split()) < 3 or "'" in clause.subject:
        return
    noun = head_of(clause.rest)
    if noun in words.PERSON_NOUNS:
        who = "who"
    elif noun.endswith(("er", "or", "ist", "ian", "man", "ess", "ant", "ee")) and clause.named:
        return
    else:
        who = "what"
    if noun in ("number", "part", "one", "result", "same", "case", "example", "way", "first"):
        return
    yield WhQuestion(
        who, f"{who} {clause.verb} {clause.subject}", f"{who} {clause.subject} {clause.verb}",
        clause.rest, statement, None, f"{who} {clause.verb}",
    )  # fmt: skip


def head_of(phrase: str) -> str:
    """Return the last word of a noun phrase before a preposition, a participle or a comma."""
    parts = phrase.split()[1:]
    head = ""
    for word in parts:
        low = word.rstrip(",").lower()
        if low in words.PREPOSITIONS or low in words.CLAUSE_WORDS or low in ("and", "or"):
            break
        if head and (words.is_participle(low) or low.endswith("ing")):
            break
        head = low
        if word.endswith(","):
            break
    return head
