"""Compares names, and what is said of each, between a claim and the passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.align import PassageFacts, Place
from guardrail_service.detectors.facts.read import ReadSentence
from guardrail_service.text.budget import check_time

Stems = frozenset[str]
_NO_NAMES = (
    words.STOP
    | words.AMOUNTS.keys()
    | words.WEEKDAYS.keys()
    | {"both", "either"}
    | {m for m in words.MONTHS if len(m) > 3}
)
_PARTICLES = words.listed("de van von di da del della dos du")
_BETWEEN = 8
_PREPOSITIONS = words.listed("of at in from on for into under by")
"""Before the second name they make it no object: "starts at the confluence of the Allegheny"."""
_BE = words.listed("was were is are been be being")
_LEAST = 2
LONGEST = 300
"""Tokens of a sentence beyond which it is no sentence: names are compared in pairs."""
_SURE = 4
"""Words that two names in different places must have between them to count as exchanged."""
_MOST_NAMES = 12
_MOST_HELD = 48
_COVERED = 0.8
"""Weighted share of what a claim says of a name that a passage says of another one."""


class Misattributed(NamedTuple):
    """A claim that says of one name what a passage says of another, and the passage's place."""

    claim: ReadSentence
    place: Place


class Deed(NamedTuple):
    """A deed with doer and object: stems of two names and of the verb between them."""

    who: Stems
    what: str
    whom: Stems


class _Said(NamedTuple):
    """A name, its place in the clause, and the stems of the rest of its clause."""

    name: Stems
    place: str
    rest: Stems
    read: ReadSentence
    context: int
    tokens: tuple[int, int]


def _is_same(name: Stems, other: Stems) -> bool:
    """Return whether two names may be one: "Lorne" and "Ada Lorne"."""
    return name <= other or other <= name


def _verb(stem: str) -> str:
    return words.SAME_DEED.get(stem, stem)


def _names(read: ReadSentence) -> Sequence[tuple[int, int]]:
    """Return the runs of capitalised words as tokens [first, last)."""
    return read.once("names", _runs_of_capitals)


def _runs_of_capitals(read: ReadSentence) -> Sequence[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for at, token in enumerate(read.tokens):
        if token.kind != "w" or not token.text[0].isupper() or token.low in _NO_NAMES:
            continue
        if token.low.replace("\u2019", "'").partition("'")[0] in words.STOP:
            continue  # "We've"
        if token.low in words.MONTHS and "n" in {t.kind for t in read.tokens[at - 1 : at + 2]}:
            continue
        if found and _is_one_name(read, found[-1][1], at):
            found[-1] = (found[-1][0], at + 1)
        else:
            found.append((at, at + 1))
    return found


def _is_one_name(read: ReadSentence, end: int, at: int) -> bool:
    """Return whether only particles stand between two capitalised words: "Joost de Wit"."""
    between = read.tokens[end:at]
    if len(between) == 1 and between[0].text == "." and read.stems[end - 1] in words.TITLES:
        return True  # "Dr. Amina Sow"
    return len(between) <= _LEAST and all(t.text in _PARTICLES for t in between)


def _stems(read: ReadSentence, start: int, end: int) -> Stems:
    return frozenset(read.stems[start:end]) - words.TITLES - {""}


def _deeds(read: ReadSentence) -> Iterator[Deed]:
    """Yield the deeds of a sentence: two neighbouring names with a verb between them."""
    for (start, end), (other, last) in pairwise(_names(read)):
        middle = read.tokens[end:other]
        if not middle or len(middle) > _BETWEEN:
            continue
        if any(t.kind == "n" or t.text in ",;:()|" for t in middle):
            continue
        what = [
            stem
            for stem, token in zip(read.stems[end:other], middle, strict=True)
            if stem and not token.low.endswith("ly")
        ]
        low = {t.low for t in middle}
        if not what or low & words.MUTUAL - _BE:
            continue
        if low & words.NEGATORS or low & words.CONTRACTED or low & words.HEDGED:
            continue
        passive = "by" in low and bool(low & _BE)
        if not passive and low & (_PREPOSITIONS | _BE):
            continue
        who, whom = _stems(read, start, end), _stems(read, other, last)
        if not who or not whom or who & whom:
            continue
        verb = _verb(what[0])
        if verb in words.CONVERSE and "to" in low:
            verb, passive = words.CONVERSE[verb], not passive
        yield Deed(whom, verb, who) if passive else Deed(who, verb, whom)


def _all_deeds(read: ReadSentence) -> tuple[Deed, ...]:
    return tuple(_deeds(read))


def misattributed(
    claim: ReadSentence, source: PassageFacts, language: str = ""
) -> Misattributed | None:
    """Return where passages have the names of a claim the other way round, or None.

    Args:
        claim: The claim.
        source: Passages and question.
        language: Its code of two letters where it is not English. There a name of two words that
            no passage has is compared, too: no model judges it.
    """
    own = claim.once("deeds", _all_deeds)
    wrong: Misattributed | None = None
    for context, one in source.sentences:
        if not own or len(claim.content & one.content) < _LEAST:
            continue
        check_time()
        for ours in own:
            for theirs in one.once("deeds", _all_deeds):
                if ours.what != theirs.what:
                    continue
                straight = bool(ours.who & theirs.who), bool(ours.whom & theirs.whom)
                if all(straight):
                    return None
                if any(straight):
                    continue
                if _is_same(ours.who, theirs.whom) and _is_same(ours.whom, theirs.who):
                    place = Place(context, one.start, one.start + len(one.text))
                    wrong = Misattributed(claim, place)
    return wrong or _bound_to_another(claim, source, language)


def _bound_to_another(
    claim: ReadSentence, source: PassageFacts, language: str
) -> Misattributed | None:
    """Return where passages say of another name what a claim says of one, or None.

    The claim's name must stand in the passages, too, and nothing of it there.
    """
    if not _plain(claim) or len(claim.tokens) > LONGEST:
        return None
    every = [
        said
        for context, one in source.sentences
        if len(claim.content & one.content) >= _LEAST and len(one.tokens) <= LONGEST
        if "|" not in one.text and "\n" not in one.text
        for said in _said(one, context)
    ][:_MOST_HELD]
    if (place := _office(claim, source)) is not None:
        return Misattributed(claim, place)
    if not every:
        return None
    own = list(_said(claim, 0))[:_MOST_NAMES]
    if (place := _exchanged(own, every, source)) is not None:
        return Misattributed(claim, place)
    if (place := _turned(own, every, source)) is not None:
        return Misattributed(claim, place)
    for ours in own:
        found = _other(ours, every, source, language) or _elsewhere(ours, every, source)
        if found is not None:
            one = found.read
            return Misattributed(claim, Place(found.context, one.start, one.start + len(one.text)))
    return None


_NO_OFFICE = frozenset(("-", "vice", "deputy", "former", "ex", "then"))


def _offices(read: ReadSentence) -> Iterator[tuple[str, Stems]]:
    """Yield each office with the name behind it: "captain Ruth Odom"."""
    for start, end in _names(read):
        for at in (start - 1, start):
            if at > 0 and read.tokens[at - 1].low in _NO_OFFICE:
                continue
            office = read.tokens[at].low if at >= 0 else ""
            name = _stems(read, at + 1, end)
            if office in words.OFFICES and name:
                yield office, name


def _office(claim: ReadSentence, source: PassageFacts) -> Place | None:
    """Return where the passages give the claim's office to somebody else alone, or None."""
    for office, name in _offices(claim):
        holders = [
            (context, one, other)
            for context, one in source.sentences
            if len(claim.content & one.content) >= _LEAST or name & one.content
            for title, other in _offices(one)
            if title == office
        ]
        if not holders or any(name & other for _, _, other in holders):
            continue
        known = any(name & one.content for _, one in source.sentences)
        apart = not any(
            name & one.content and office in {t.low for t in one.tokens} and one is not read
            for _, one in source.sentences
            for _, read, _ in holders[:1]
        )
        if known and apart and all(other & holders[0][2] for _, _, other in holders):
            context, one, _ = holders[0]
            return Place(context, one.start, one.start + len(one.text))
    return None


def _exchanged(own: Sequence[_Said], every: Sequence[_Said], source: PassageFacts) -> Place | None:
    """Return where two names of a claim have each what the claim says of the other, or None."""
    for one, other in combinations(own, 2):
        if one.name & other.name or one.rest & other.name or not one.rest or not other.rest:
            continue
        if one.rest == other.rest or other.rest & one.name:
            continue
        known = frozenset(filter(source.is_known, one.rest ^ other.rest)) - _named(one.read)
        first = one.rest & known or one.rest - other.rest
        second = other.rest & known or other.rest - one.rest
        if one.place != other.place and len(first) + len(second) < _SURE:
            continue
        if 2 * len(first | second) < len((one.rest ^ other.rest) - _named(one.read)):
            continue
        if not first or not second or not _has(every, other.name, one.name, first, source):
            continue
        if (held := _has(every, one.name, other.name, second, source)) is not None:
            read = held.read
            return Place(held.context, read.start, read.start + len(read.text))
    return None


def _has(
    every: Sequence[_Said], name: Stems, without: Stems, rest: Stems, source: PassageFacts
) -> _Said | None:
    """Return where passages say something of one name and not of another; None if of both."""
    found = None
    for said in every:
        if source.covered(rest, said.rest) < _COVERED:
            continue
        if said.name & without or said.rest & without:
            return None
        if _is_same(said.name, name):
            found = said
    return found


def _plain(read: ReadSentence) -> bool:
    return read.lows.isdisjoint(words.NEGATORS | words.CONTRACTED | {"?", "if", "or", "|"})


def _said(read: ReadSentence, context: int) -> tuple[_Said, ...]:
    """Return each name of a sentence with what its clause says besides."""
    return tuple(
        _Said(name, place, rest, read, context, tokens)
        for name, place, rest, tokens in read.once("said", _said_of_names)
    )


_Clause = tuple[Stems, str, Stems, tuple[int, int]]
"""Name, place, rest and tokens of a `_Said`."""


def _said_of_names(read: ReadSentence) -> tuple[_Clause, ...]:
    return tuple(_clauses_of_names(read))


def _clauses_of_names(read: ReadSentence) -> Iterator[_Clause]:
    parts = read.once("parts_of_names", _parts)
    for start, end in _names(read):
        part = parts[start]
        name = _stems(read, start, end)
        place, skipped = _position(read, start)
        rest = frozenset(
            _verb(stem)
            for at, (stem, own) in enumerate(zip(read.stems, parts, strict=True))
            if stem and own == part and not skipped <= at < end and stem not in words.TITLES
        )
        behind = read.tokens[end].text if end < len(read.tokens) else ""
        if name and behind != "-":
            yield name, place, rest, (start, end)


def _parts(read: ReadSentence) -> list[int]:
    """Return the clause of each token; "after", "when" and the like before a name begin one."""
    found, more = [], 0
    starts = {start for start, _ in _names(read)}
    for at, (token, clause) in enumerate(zip(read.tokens, read.clauses, strict=True)):
        more += token.low in _OPENING and at + 1 in starts
        found.append(clause + more)
    return found


_OPENING = words.listed("after before when while because since until although whereas once")


def _position(read: ReadSentence, start: int) -> tuple[str, int]:
    """Return "by" for a name that does something, its preposition or "" for another, and a token.

    A name does something where it begins its clause but for a few words, or follows "by". The
    token is the first that belongs to the name: "by [the architect] Carl Berge".
    """
    parts = read.once("parts_of_names", _parts)
    clause = parts[start]
    first = start
    while first and parts[first - 1] == clause and start - first < _AHEAD:
        first -= 1
        if read.tokens[first].low in _PLACES:
            return read.tokens[first].low, first + 1
        if read.tokens[first].low in _BE or read.tokens[first].kind != "w":
            break
    begins = not first or parts[first - 1] != clause
    if (beside := _beside(read, start)) is not None:
        where, _ = _position(read, beside)
        if where in _WHERE:
            return where, start
    lows = [token.low for token in read.tokens[first:start]]
    if begins and _BE.isdisjoint(lows) and len(lows) < _AHEAD and lows[:1] != [","]:
        begins = not any(read.stems[first + 1 : start])
    elif begins:
        begins = read.tokens[first].kind != "w" and not any(read.stems[first + 1 : start])
    is_passive = _is_passive(read, start)
    if begins:
        return ("" if is_passive else "by"), start
    before = read.stems[start - 1] if read.tokens[start - 1].text.islower() else ""
    return ("=" + before if before else ""), start


def _beside(read: ReadSentence, name: int) -> int | None:
    """Return where the name begins that stands before a name and a comma: "in Fier, Albania"."""
    if name < 2 or read.tokens[name - 1].text != ",":
        return None
    return next((start for start, end in _names(read) if end == name - 1), None)


def _is_passive(read: ReadSentence, start: int) -> bool:
    clause = read.clauses[start]
    lows = {t.low for t, own in zip(read.tokens, read.clauses, strict=True) if own == clause}
    return "by" in lows and not _BE.isdisjoint(lows)


_AHEAD = 4
_PLACES = words.listed("by in to from with at on of for near into under over than as")


def _turned(own: Sequence[_Said], every: Sequence[_Said], source: PassageFacts) -> Place | None:
    """Return where a passage has two names of a clause in each other's place, or None."""
    pairs = [
        (one, other)
        for one, other in combinations(own, 2)
        if _slot(one) != _slot(other)
        and _words_between(one, other)
        and one.rest & other.name
        and other.rest & one.name
        and not one.name & other.name
        and _is_deed(one)
    ]
    for one, other in pairs:
        about = (one.rest & other.rest) - one.name - other.name
        if not about:
            continue
        found: Place | None = None
        check_time()
        for x, y in combinations(every, 2):
            if x.read is not y.read or not _words_between(x, y):
                continue
            if len(x.rest) > len(one.rest) + _FURTHER or not x.rest & y.name or not y.rest & x.name:
                continue
            if source.covered(filter(source.is_known, about), x.rest & y.rest) < _SAME_DEED:
                continue
            if _is_same(y.name, one.name):
                x, y = y, x
            if not (_is_same(x.name, one.name) and _is_same(y.name, other.name)):
                continue
            if x.name & other.name or y.name & one.name or x.name & y.name:
                continue
            if not _is_deed(x):
                continue
            if _is_passive(x.read, x.tokens[0]) != _is_passive(one.read, one.tokens[0]):
                continue
            if (_slot(x), _slot(y)) == (_slot(one), _slot(other)):
                return None
            if (_slot(x), _slot(y)) == (_slot(other), _slot(one)):
                read = x.read
                found = Place(x.context, read.start, read.start + len(read.text))
        if found is not None:
            return found
    return None


def _is_deed(said: _Said) -> bool:
    """Return whether a clause tells what is done, not what somebody is."""
    if _is_passive(said.read, said.tokens[0]):
        return True
    clause = said.read.clauses[said.tokens[0]]
    pairs = zip(said.read.tokens, said.read.clauses, strict=True)
    return _BE.isdisjoint(token.low for token, own in pairs if own == clause)


def _words_between(one: _Said, other: _Said) -> bool:
    """Return whether a word parts two names: no sign of a trade mark alone."""
    return any(t.kind == "w" for t in one.read.tokens[one.tokens[1] : other.tokens[0]])


def _slot(said: _Said) -> str:
    return "" if said.place.startswith("=") else said.place


_FURTHER = 4
"""Words that a passage's clause may have beyond the claim's."""
_SAME_DEED = 0.6


def _other(
    ours: _Said, every: Sequence[_Said], source: PassageFacts, language: str
) -> _Said | None:
    if len(ours.rest) < _LEAST or not (ours.place == "by" or ours.place.startswith("=")):
        return None
    named = _named(ours.read)
    told = ours.rest - named if len(ours.rest - named) >= _LEAST else ours.rest
    best: _Said | None = None
    for theirs in every:
        if theirs.place != ours.place or theirs.name & ours.name:
            continue
        own_clauses = _clauses_with(ours.name, theirs.read)
        apart = (theirs.rest & told) - own_clauses
        setting = _beginning(theirs.read) - theirs.rest
        if ours.name & theirs.rest or theirs.name & ours.read.content:
            continue
        if not apart or 2 * len(apart) < len(told - setting) or _is_adjective(theirs):
            continue
        if len(theirs.rest & ours.rest) < _LEAST:
            continue
        around = theirs.rest | (_beginning(theirs.read) - own_clauses)
        if source.covered(told, around) < _COVERED:
            continue
        best = theirs
        break
    if best is None:
        return None
    asked = source.question.content if source.question is not None else frozenset()
    if not any(source.is_known(stem) for stem in ours.name):
        is_new = language and len(ours.name) > 1 < len(best.name) and not ours.name & asked
        return best if is_new else None
    for part in source.passages:
        follows = False
        for one in part:
            names_it = bool(ours.name & one.content)
            follows = follows and bool(one.tokens) and one.tokens[0].low in _PRONOUNS
            if (names_it or follows) and not _speaks_of_it_apart(ours, one, best):
                return None
            follows = names_it
    return best


def _elsewhere(ours: _Said, every: Sequence[_Said], source: PassageFacts) -> _Said | None:
    """Return where passages say of another place what a claim says of one that nobody names."""
    if ours.place not in _WHERE or len(ours.rest) < _LEAST or any(map(source.is_known, ours.name)):
        return None
    if source.question is not None and ours.name & source.question.content:
        return None
    for theirs in every:
        if theirs.place != ours.place or theirs.name & ours.read.content:
            continue
        if len(theirs.rest) > len(ours.rest) + _FURTHER or _is_adjective(theirs):
            continue
        if source.covered(ours.rest, theirs.rest) >= _COVERED:
            return theirs
    return None


_WHERE = frozenset(("in", "at", "near", "from"))


_PRONOUNS = words.listed("it they he she its their his her this these")


def _is_adjective(said: _Said) -> bool:
    """Return whether a name only tells of what kind something is: "by Italian rapper Fedez"."""
    start, end = said.tokens
    behind = said.read.tokens[end : end + 1]
    follows_by = start > 0 and said.read.tokens[start - 1].low == "by"
    return end - start == 1 and follows_by and bool(behind) and behind[0].text.islower()


def _speaks_of_it_apart(ours: _Said, one: ReadSentence, best: _Said) -> bool:
    """Return whether a sentence that names it, or follows one, says nothing of the claim's."""
    if one is not best.read:
        verbs = frozenset(map(_verb, one.content))
        return len((ours.rest - best.name) & verbs) < max(1, len(ours.rest) // 2)
    own = [said for said in _said(one, 0) if said.name & ours.name]
    if not own:
        return not ours.name & one.content  # "bush and alba": there in small letters
    common = _shared(one)
    return all(said.rest and not (ours.rest & said.rest) - common for said in own)


def _named(read: ReadSentence) -> Stems:
    """Return the stems of all names of a sentence."""
    return read.once("named", _stems_of_names)


def _stems_of_names(read: ReadSentence) -> Stems:
    return frozenset().union(*(_stems(read, *run) for run in _names(read)))


def _beginning(read: ReadSentence) -> Stems:
    """Return the stems of a sentence's first clause: "At Harbour Clinic, ..."."""
    pairs = zip(read.stems, read.clauses, strict=True)
    return frozenset(_verb(stem) for stem, clause in pairs if stem and not clause)


def _clauses_with(name: Stems, read: ReadSentence) -> Stems:
    """Return the stems of a sentence's clauses that have a name."""
    clauses = {
        own for stem, own in zip(read.stems, read.clauses, strict=True) if stem and stem in name
    }
    return frozenset(
        _verb(stem) for stem, own in zip(read.stems, read.clauses, strict=True) if own in clauses
    )


def _shared(one: ReadSentence) -> Stems:
    """Return the stems that stand in more than one clause of a sentence."""
    seen: dict[str, set[int]] = {}
    for stem, clause in zip(one.stems, one.clauses, strict=True):
        seen.setdefault(_verb(stem), set()).add(clause)
    return frozenset(stem for stem, clauses in seen.items() if len(clauses) > 1)
