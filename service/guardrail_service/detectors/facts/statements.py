"""Compares statements without numbers: denied, for all or some, before or after, who did what.

A statement is compared only with a passage clause that says nearly the same words; whatever makes
either of them conditional leaves both alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.align import PassageFacts, Place
from guardrail_service.detectors.facts.amounts import stem
from guardrail_service.detectors.facts.languages import Token
from guardrail_service.detectors.facts.read import ReadSentence
from guardrail_service.text.budget import check_time

_BREAKS = frozenset(";:,()|!?\u2013\u2014")
_LINKS = frozenset(("but", "and", "while", "whereas", "so"))
_LEAST = 2


class Part(NamedTuple):
    """A clause: its tokens, its content with opposites made one word, and its signal words."""

    read: ReadSentence
    tokens: tuple[Token, ...]
    content: frozenset[str]
    denials: int
    is_open: bool
    amount: tuple[float, str] | None

    def place(self, context: int) -> Place:
        """Return where it stands in a passage."""
        start = self.read.start
        return Place(context, start + self.tokens[0].start, start + self.tokens[-1].end)


class ContradictedStatement(NamedTuple):
    """A statement that a passage contradicts; offsets are those of the answer."""

    start: int
    end: int
    kind: str
    place: Place


def parts(read: ReadSentence) -> tuple[Part, ...]:
    """Return a sentence's clauses; a clause of a word or two belongs to the one before."""
    cuts = [0]
    for at, token in enumerate(read.tokens):
        if token.text in _BREAKS or token.low in _LINKS:
            cuts.append(at)
    cuts.append(len(read.tokens))
    found: list[tuple[Token, ...]] = []
    for start, end in pairwise(cuts):
        piece = read.tokens[start:end]
        if not piece:
            continue
        size = sum(t.kind == "w" and t.low not in words.STOP for t in piece)
        if found and size < _LEAST:
            found[-1] += piece
        else:
            found.append(piece)
    return tuple(_part(read, piece) for piece in found)


def _part(read: ReadSentence, tokens: tuple[Token, ...]) -> Part:
    content: set[str] = set()
    denials = 0
    is_open = "?" in (read.tokens[-1].text, tokens[-1].text) or any(t.text == "|" for t in tokens)
    amounts: list[tuple[float, str]] = []
    for at, token in enumerate(tokens):
        low = token.low.replace("\u2019", "'")
        is_not = low == "non" and _is_prefix(tokens, at)
        if is_not or low in words.NEGATORS or low in words.CONTRACTED:
            denials += 1
            if low in words.AMOUNTS:
                amounts.append((words.AMOUNTS[low], _next(tokens, at)))
        elif low in words.HEDGED:
            is_open = True
        elif low in words.AMOUNTS:
            amounts.append((words.AMOUNTS[low], _next(tokens, at)))
        elif low in words.OPPOSITES:
            content.add(stem(words.OPPOSITES[low]))
            denials += low not in words.SAME_SIDE
        elif token.kind == "w" and low not in words.STOP:
            content.add(stem(low))
        elif token.kind == "n":
            content.add("#" + token.text)
    amount = amounts[0] if len(amounts) == 1 else None
    return Part(read, tokens, frozenset(content), denials, is_open, amount)


def _is_prefix(tokens: Sequence[Token], place: int) -> bool:
    """Return whether "non" denies an ordinary word: "non-certified", not "non-ST"."""
    word = tokens[place + 2].text if place + 2 < len(tokens) else ""
    return tokens[place + 1 : place + 2] != () and word.islower() and len(word) > _PREFIXED


_PREFIXED = 4


def _next(tokens: Sequence[Token], place: int) -> str:
    """Return the stem of the next content word."""
    for token in tokens[place + 1 : place + 4]:
        if token.kind == "w" and token.low not in words.STOP:
            return stem(token.low)
    return ""


def contradicted(claim: ReadSentence, source: PassageFacts) -> Iterator[ContradictedStatement]:
    """Yield the clauses of a claim that a passage contradicts."""
    own = parts(claim)
    for context, one in source.sentences:
        if len(claim.content & one.content) < _LEAST and not _shares(claim, one):
            continue
        check_time()
        others = parts(one)
        for part in own:
            for other in others:
                kind = _difference(part, other)
                if kind and not _said_elsewhere(part, other, source):
                    start, end = part.tokens[0].start, part.tokens[-1].end
                    yield ContradictedStatement(
                        claim.start + start, claim.start + end, kind, other.place(context)
                    )
        for kind in (_order(claim, one), _role(claim, one), _excepted(claim, one)):
            if kind:
                place = Place(context, one.start, one.start + len(one.text))
                end = claim.start + len(claim.text)
                yield ContradictedStatement(claim.start, end, kind, place)


def _shares(claim: ReadSentence, one: ReadSentence) -> bool:
    """Return whether a word of one is the opposite of a word of the other."""
    shared = len(claim.content & one.content)
    turned = any(t.low in words.OPPOSITES for t in (*claim.tokens, *one.tokens))
    return shared >= 1 and turned


def _difference(part: Part, other: Part) -> str:
    """Return "negation" or "quantifier" if one clause denies the other or narrows it; else ""."""
    if part.is_open or other.is_open or _begins_anew(other) or _begins_anew(part):
        return ""
    if part.amount and other.amount and part.amount[1] == other.amount[1]:
        return _narrowed(part, other)
    if part.denials % 2 == other.denials % 2 or max(part.denials, other.denials) > 1:
        return ""
    denied, plain = (part, other) if part.denials else (other, part)
    shared = len(denied.content & plain.content)
    if shared < _LEAST or shared < len(denied.content) or shared + 1 < len(plain.content):
        return ""
    return "negation" if shared > _LEAST or shared == len(plain.content) else ""


def _narrowed(part: Part, other: Part) -> str:
    assert part.amount is not None  # noqa: S101 - asked by the caller
    assert other.amount is not None  # noqa: S101
    ours, theirs = part.amount[0], other.amount[0]
    shared = part.content & other.content
    if len(shared) < _LEAST or 4 * len(shared) < 3 * max(len(part.content), len(other.content)):
        return ""
    if part.denials + (ours == 0) * -1 or other.denials + (theirs == 0) * -1:
        return ""
    wrong = (ours == 4 and theirs < 4) or (ours == 0) != (theirs == 0)
    wrong = wrong or (ours == 3 and theirs < 1) or (ours < 1 and theirs >= 3)
    return "quantifier" if wrong else ""


_CONDITIONS = frozenset(("if", "unless", "not", "never", "no", "or"))
_ANEW = words.listed("it they he she this that these those which who")


def _begins_anew(part: Part) -> bool:
    """Return whether a clause leaves its subject to another one."""
    first = next((t.low for t in part.tokens if t.kind == "w"), "")
    return first in _ANEW


def _said_elsewhere(part: Part, other: Part, source: PassageFacts) -> bool:
    """Return whether another passage sentence has all words of the clause, undenied alike."""
    for _, one in source.sentences:
        if one is not other.read and part.content <= one.content:
            denied = sum(t.low in words.NEGATORS or t.low in words.CONTRACTED for t in one.tokens)
            if denied % 2 == part.denials % 2:
                return True
    return False


_WITHOUT_EXCEPTION = (
    ("without", "exception"), ("without", "exceptions"), ("no", "exceptions"),
    ("in", "every", "case"), ("in", "all", "cases"), ("every", "single"), ("without", "limit"),
    ("no", "exception"), ("regardless", "of"), ("under", "any", "circumstances"),
)  # fmt: skip
_EXCEPT = frozenset(("except", "unless", "excepted", "excluding"))


def _excepted(claim: ReadSentence, one: ReadSentence) -> str:
    """Return "quantifier" if a claim allows of no exception where a passage names one."""
    lows = [token.low for token in claim.tokens]
    firm = any(
        tuple(lows[at : at + len(phrase)]) == phrase
        for phrase in _WITHOUT_EXCEPTION
        if phrase[0] in lows
        for at in range(len(lows))
    )
    if not firm or not _EXCEPT.isdisjoint(lows) or claim.tokens[-1].text == "?":
        return ""
    if _EXCEPT.isdisjoint(token.low for token in one.tokens):
        return ""
    return "quantifier" if len(claim.content & one.content) >= _LEAST else ""


def _sides(read: ReadSentence) -> tuple[frozenset[str], frozenset[str]] | None:
    """Return what a sentence says comes first, and what comes later."""
    joints = [
        at for at, t in enumerate(read.tokens) if t.low in words.EARLIER or t.low in words.LATER
    ]
    if len(joints) != 1 or any(t.low in _CONDITIONS or t.text == "?" for t in read.tokens):
        return None
    at = joints[0]
    after = read.tokens[at + 1 :]
    is_turned = read.tokens[at].low == "followed" and bool(after) and after[0].low == "by"
    if (
        not after
        or after[0].kind == "n"
        or after[0].low in _REFERS
        or any(at < fact.token <= at + 2 for fact in read.facts)
    ):
        return None
    left = frozenset(filter(None, read.stems[:at]))
    right = frozenset(filter(None, read.stems[at + 1 :]))
    if not left:
        comma = next((k for k in range(at, len(read.tokens)) if read.tokens[k].text == ","), None)
        if comma is None:
            return None
        left = frozenset(filter(None, read.stems[comma:]))
        right = frozenset(filter(None, read.stems[at + 1 : comma]))
    is_first = is_turned or read.tokens[at].low in words.EARLIER
    return (left, right) if is_first else (right, left)


_REFERS = frozenset(("which", "being", "that", "this"))


def _order(claim: ReadSentence, one: ReadSentence) -> str:
    ours, theirs = _sides(claim), _sides(one)
    if ours is None or theirs is None:
        return ""
    common = (ours[0] & ours[1]) | (theirs[0] & theirs[1])
    first, later = ours[0] - common, ours[1] - common
    their_first, their_later = theirs[0] - common, theirs[1] - common
    straight = len(first & their_first) + len(later & their_later)
    crossed_1, crossed_2 = len(first & their_later), len(later & their_first)
    if straight or 2 * crossed_1 < min(len(first), len(their_later)):
        return ""
    return "order" if crossed_1 and 2 * crossed_2 >= min(len(later), len(their_first)) > 0 else ""


class Deed(NamedTuple):
    """A deed with doer and object: stems of two names and of the words between them."""

    who: frozenset[str]
    what: frozenset[str]
    whom: frozenset[str]


def _names(read: ReadSentence) -> list[tuple[int, int]]:
    """Return the runs of capitalised words as tokens [first, last)."""
    found: list[tuple[int, int]] = []
    for at, token in enumerate(read.tokens):
        if token.kind != "w" or not token.text[0].isupper() or token.low in words.STOP:
            continue
        if found and found[-1][1] == at:
            found[-1] = (found[-1][0], at + 1)
        else:
            found.append((at, at + 1))
    return found


_BETWEEN = 7
_PREPOSITIONS = frozenset(["of", "at", "in", "from", "on", "for", "into", "under", "by"])
"""Before the second name they make it no object: "starts at the confluence of the Allegheny"."""


def _deed(read: ReadSentence) -> Deed | None:
    """Return the deed of a sentence with two names and a verb between them."""
    names = _names(read)
    if len(names) < 2:
        return None
    (start, end), (other, last) = names[0], names[1]
    middle = read.tokens[end:other]
    if not middle or len(middle) > _BETWEEN or any(t.kind == "n" or t.text in ",;" for t in middle):
        return None
    low = {t.low for t in middle}
    what = frozenset(filter(None, read.stems[end:other]))
    if not what or low & words.MUTUAL - {"was", "were", "is", "are"}:
        return None
    if low & words.NEGATORS or low & words.CONTRACTED or low & words.HEDGED:
        return None
    by = [t.low for t in middle if t.low != "the"][-1:] == ["by"]
    passive = by and bool(low & {"was", "were", "is", "are", "been", "be"})
    if not passive and low & _PREPOSITIONS:
        return None
    if not passive and low & {"was", "were", "is", "are", "by"}:
        return None
    who, whom = (
        frozenset(filter(None, read.stems[start:end])),
        frozenset(filter(None, read.stems[other:last])),
    )
    return Deed(whom, what, who) if passive else Deed(who, what, whom)


def _role(claim: ReadSentence, one: ReadSentence) -> str:
    ours, theirs = _deed(claim), _deed(one)
    if ours is None or theirs is None or not ours.what & theirs.what:
        return ""
    if max(len(ours.what), len(theirs.what)) > _LEAST:
        return ""
    exchanged = ours.who & theirs.whom and ours.whom & theirs.who
    return "role" if exchanged and not (ours.who & theirs.who or ours.whom & theirs.whom) else ""
