"""Compares statements without numbers: denied, or for all or some.

A statement is compared only with a passage clause that says nearly the same words; whatever makes
either of them conditional leaves both alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.align import BEGINNING, PassageFacts, Place, labels
from guardrail_service.detectors.facts.amounts import stem
from guardrail_service.detectors.facts.languages import Token
from guardrail_service.detectors.facts.read import ReadSentence
from guardrail_service.text.budget import check_time, in_time

_BREAKS = frozenset(";:,()|!?\u2013\u2014")
_LINKS = frozenset(("but", "and", "while", "whereas", "so"))
_LEAST = 2


class Part(NamedTuple):
    """A clause: its tokens, its content with opposites made one word, and its signal words."""

    start: int
    """Offset of its sentence. Not the sentence, which keeps its parts: see `ReadSentence.once`."""
    sentence: tuple[Token, ...]
    """All tokens of its sentence."""
    tokens: tuple[Token, ...]
    content: frozenset[str]
    denials: int
    is_open: bool
    placed: frozenset[str]
    amount: tuple[float, str] | None
    first: str = ""
    """Its first word."""

    def place(self, context: int) -> Place:
        """Return where it stands in a passage."""
        return Place(context, self.start + self.tokens[0].start, self.start + self.tokens[-1].end)


class ContradictedStatement(NamedTuple):
    """A statement that a passage contradicts; offsets are those of the answer."""

    start: int
    end: int
    kind: str
    place: Place


def parts(read: ReadSentence) -> tuple[Part, ...]:
    """Return a sentence's clauses; a clause of a word or two belongs to the one before."""
    return read.once("parts", _parts)


def _parts(read: ReadSentence) -> tuple[Part, ...]:
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
    placed: set[str] = set()
    denied_at = -1
    for at, token in enumerate(tokens):
        low = token.low.replace("\u2019", "'")
        is_not = low == "non" and _is_prefix(tokens, at)
        if low == "no" and not at and len(tokens) > 1 and tokens[1].low in _BEHIND_NO:
            continue  # "No. The service ..."
        if low == "not" and at and tokens[at - 1].low == "or" and not any(_next(tokens, at)):
            continue  # "with a warranty or not"
        if low == "nor" and any(t.low == "neither" for t in tokens[:at]):
            continue
        is_not |= low == "free" and _is_without(tokens, at)
        is_not |= low == "off" and tokens[at + 1 : at + 2] != () and tokens[at + 1].low == "limits"
        if is_not or low in words.NEGATORS or low in words.CONTRACTED:
            denials += 1
            behind = tokens[at + 1].low if at + 1 < len(tokens) else ""
            is_form = at > 0 and tokens[at - 1].low in _FORMS
            is_open |= behind == "to" or (behind in ("being", "having") and not is_form)
            is_open |= low == "no" and at > 0 and tokens[at - 1].low in ("in", "under", "that")
            denied_at = at
            if low in words.AMOUNTS:
                amounts.append((words.AMOUNTS[low], _next(tokens, at)))
        elif low in words.PLACED:
            placed.add(low)
        elif low in _LINKS and not at and len(tokens) > 1 and tokens[1].low in _VERBS:
            continue  # "but do pay"
        elif low in words.HEDGED:
            is_open |= not (
                (low == "longer" and at > 0 and tokens[at - 1].low in ("no", "not"))
                or (low == "either" and denials and not any(_next(tokens, at)))
            )
        elif low in words.AMOUNTS:
            amounts.append((words.AMOUNTS[low], _next(tokens, at)))
        elif low in words.OPPOSITES and not (low == "lost" and _is_quality(tokens, at)):
            content.add(stem(words.OPPOSITES[low]))
            denials += low not in words.SAME_SIDE
        elif low == "like" and at and tokens[at - 1].low in _WISHES:
            continue  # who "would like to see it" need not like it
        elif token.kind == "w" and low not in words.STOP:
            content.add(stem(low))
        elif token.kind == "n":
            content.add("#" + token.text)
    if (
        denied_at > 0
        and tokens[denied_at - 1].low in _VERBS
        and not any(_next(tokens, at) for at in range(denied_at, len(tokens)))
    ):
        is_open = True  # "The party shall not,"
    if tokens[0].text == ":" and _is_label_denied(read.tokens, tokens[0]):
        is_open = True  # "Not allowed: programmable calculators"
    if denied_at >= 0 and _is_elliptic(tokens[denied_at + 1 :]):
        is_open = True  # "and engineering data never do"
    if denials and (tokens[-1].low in _OPEN_ENDS or tokens[0].low == "why"):
        is_open = True  # "no information that (a) ..."
    amount = amounts[0] if len(amounts) == 1 else None
    first = next((t.low for t in tokens if t.kind == "w"), "")
    said = frozenset(content)
    return Part(
        read.start, read.tokens, tokens, said, denials, is_open, frozenset(placed), amount, first
    )


def _is_label_denied(tokens: Sequence[Token], colon: Token) -> bool:
    """Return whether the words before a colon deny something."""
    before = [token.low for token in tokens if token.end <= colon.start]
    return not _NEGATED.isdisjoint(before[-_LABEL:])


_LABEL = 4


def _is_elliptic(tokens: Sequence[Token]) -> bool:
    """Return whether only an auxiliary verb follows a denial."""
    lows = [token.low for token in tokens if token.kind == "w"]
    return len(lows) == 1 and lows[0] in _VERBS


def _is_quality(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a participle stands before what it tells of: "for lost items"."""
    behind = tokens[place + 1] if place + 1 < len(tokens) else None
    is_behind = place > 0 and tokens[place - 1].low in _BEFORE_THINGS
    return is_behind and behind is not None and behind.kind == "w"


_BEFORE_THINGS = words.listed("for the a any of your or and with such every all no their our")


def _is_prefix(tokens: Sequence[Token], place: int) -> bool:
    """Return whether "non" denies an ordinary word: "non-certified", not "non-ST"."""
    word = tokens[place + 2].text if place + 2 < len(tokens) else ""
    is_quality = word.endswith(("able", "ible", "ed", "ing", "ual", "ous", "ive", "ent"))
    return (
        tokens[place + 1 : place + 2] != ()
        and word.islower()
        and (is_quality and len(word) > _PREFIXED)
    )


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
    is_firm, is_total = claim.once("firm", _is_firm), claim.once("total", _is_total)
    for context, one in source.sentences:
        if len(claim.content & one.content) < _LEAST and not _shares(claim, one):
            continue
        check_time()
        others = parts(one)
        for part in own:
            for other in others:
                kind = _difference(part, other)
                if not kind or _said_elsewhere(part, other, source):
                    continue
                is_of_another = kind == "negation" and (
                    _is_said_beside(part, other, others)
                    or _is_said_both_ways(claim, part, other, source, context)
                )
                if not is_of_another:
                    start, end = part.tokens[0].start, part.tokens[-1].end
                    yield ContradictedStatement(
                        claim.start + start, claim.start + end, kind, other.place(context)
                    )
        found = (
            _excepted(claim, one) if is_total else "",
            _excluded(claim, one) if is_firm else "",
        )
        for kind in found:
            if kind:
                place = Place(context, one.start, one.start + len(one.text))
                end = claim.start + len(claim.text)
                yield ContradictedStatement(claim.start, end, kind, place)


def _shares(claim: ReadSentence, one: ReadSentence) -> bool:
    """Return whether a word of one is the opposite of a word of the other."""
    if claim.content.isdisjoint(one.content):
        return False
    may_turn = (read for read in (claim, one) if "denial" in read.signals)
    return any(t.low in words.OPPOSITES for read in may_turn for t in read.tokens)


def _difference(part: Part, other: Part) -> str:
    """Return "negation" or "quantifier" if one clause denies the other or narrows it; else ""."""
    if part.is_open or _begins_anew(other) or _begins_anew(part):
        return ""
    if _speak_of_others(part, other):
        return ""
    if _too_wide(part, other):
        return "quantifier"
    if other.is_open:
        return ""
    is_denied = part.denials % 2 != other.denials % 2 and part.amount == other.amount
    if part.amount and other.amount and part.amount[1] == other.amount[1] and not is_denied:
        return _narrowed(part, other)
    if part.denials % 2 == other.denials % 2 or max(part.denials, other.denials) > 1:
        return ""
    denied, plain = (part, other) if part.denials else (other, part)
    if plain.tokens[0].low in ("and", "or") and not _NEGATED.isdisjoint(
        token.low for token in plain.sentence
    ):
        return ""
    if not denied.placed <= plain.placed or _has_ended(denied, plain):
        return ""
    if plain is other and plain.sentence[0].low in ("if", "when", "unless"):
        return ""  # in that case it is so, and in others not
    if not _ENDED.isdisjoint(t.low for t in plain.tokens) and _ENDED.isdisjoint(
        t.low for t in denied.tokens
    ):
        return ""  # "there are no rides", "the rides are cancelled"
    if denied is part and denied.first == "not" and denied.tokens[0] is not denied.sentence[0]:
        return ""  # "the cold room, not the dry store": what is denied of it stands elsewhere
    if denied is part and _sets_case(part) and _is_bounded(other):
        return ""  # "as long as there is no photo", "photos must come before a part is ordered"
    if (
        denied is other
        and "neither" in {token.low for token in denied.tokens}
        and plain.content <= denied.content
        and len(plain.content) >= _LEAST
    ):
        return "negation"
    if _is_case(denied, plain):
        return ""
    shared = len(denied.content & plain.content)
    told = len(denied.content) if _has_common_word(denied) else 0
    told -= sum(word.startswith("#") for word in denied.content)
    if told < _LEAST or shared < len(denied.content):
        return ""
    if shared == _LEAST and len(plain.content) > shared + _FURTHER:
        return ""
    if shared == len(plain.content) == _LEAST and plain.tokens[0].text == "(":
        return ""  # a heading: "(Right of withdrawal)"
    return "negation"


def _is_case(denied: Part, plain: Part) -> bool:
    """Return whether a clause tells the case that what is forbidden was done: it forbids nothing.

    "Applied files must not be edited" and "code 4 means that somebody edited one".
    """
    forbids = {token.low for token in denied.tokens} & _FORBIDDING
    return bool(forbids) and not _CASES.isdisjoint(token.low for token in plain.tokens)


_ENDED = words.listed(
    "cancelled canceled scrapped discontinued suspended postponed absence shortage lack want"
)
"""Words that deny a thing without a denial."""


def _sets_case(part: Part) -> bool:
    """Return whether a sentence begins with a case: "As long as ...", "Without ..."."""
    lows = [token.low for token in part.sentence[:3]]
    return lows[:1] in (["without"], ["until"], ["till"], ["while"]) or lows == _AS_LONG_AS


def _is_bounded(part: Part) -> bool:
    """Return whether a clause says before what something happens."""
    lows = [token.low for token in part.tokens]
    return not _BOUNDED.isdisjoint(lows) and "even" not in lows


_AS_LONG_AS = ["as", "long", "as"]
_BOUNDED = frozenset(("before", "until", "till"))


_FORBIDDING = frozenset(("must", "may", "should", "shall", "mustn't", "shouldn't"))
_CASES = frozenset(("if", "when", "means", "meaning", "somebody", "someone", "whoever", "case"))
_FURTHER = 6
"""Words that a statement has beyond the two of its denial."""


def _speak_of_others(part: Part, other: Part) -> bool:
    """Return whether two clauses begin with "I" and "you"."""
    return part.first != other.first and part.first in _PERSONS and other.first in _PERSONS


_PERSONS = frozenset(("i", "you", "we"))


_NEGATED = words.DENYING


def _has_ended(denied: Part, plain: Part) -> bool:
    """Return whether one clause says "no longer" and the other that it was so once."""
    if "longer" not in {token.low for token in denied.tokens}:
        return False
    return not _PAST.isdisjoint(token.low for token in plain.tokens)


_PAST = frozenset(("was", "were", "had", "used", "once", "until"))


def _has_common_word(part: Part) -> bool:
    """Return whether a clause has a word in small letters: names alone deny nothing."""
    small = (t.low for t in part.tokens if t.kind == "w" and t.text.islower())
    return any(low not in words.STOP and low not in words.NEGATORS for low in small)


_SIMPLE = 4
"""Words of a statement about all of them that is simple enough to compare."""


def _is_without(tokens: Sequence[Token], at: int) -> bool:
    """Return whether "free" denies what it stands by: "free of gluten", "gluten-free"."""
    behind = [token.low for token in tokens[at + 1 : at + 3]]
    if len(behind) > 1 and behind[0] in ("of", "from"):
        return behind[1] not in ("charge", "cost")
    return at > 1 and tokens[at - 1].text == "-" and tokens[at - 2].end == tokens[at - 1].start


def _too_wide(part: Part, other: Part) -> bool:
    """Return whether a clause says of all of them what another denies of some: "pay nothing"."""
    if part.amount is None or part.amount[0] < 4 or part.denials or "?" in other.tokens[-1].text:
        return False
    lows = {token.low for token in other.tokens}
    shared = part.content & other.content
    return bool(
        lows & {"nothing", "not", "never"}
        and lows.isdisjoint(_INFIRM)
        and part.amount[1] in other.content
        and len(shared) >= _LEAST
        and len(shared) >= len(part.content) - 1
        and part.tokens[0].low in _UNIVERSAL  # not "Give each thread its own connection"
        and len(part.content) <= _SIMPLE
        and len(other.content) > len(shared)
    )


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


_ANEW = words.listed("it they he she this that these those which who")


_BEHIND_NO = words.listed(". , : you i we it the that this they there he she")
_FORMS = words.listed("is are was were am be been has have had will would")
"""Before "not being": something is denied, and not only named."""
_WISHES = frozenset(("would", "d", "i'd", "they'd", "we'd", "he'd", "she'd", "you'd"))
_OPEN_ENDS = _ANEW | words.listed("include includes mean means :")
_WITHOUT_SUBJECT = words.listed("is are was were has had will would could should")


def _begins_anew(part: Part) -> bool:
    """Return whether a clause leaves its subject to another one."""
    return part.first in _ANEW or part.first in _WITHOUT_SUBJECT


def _said_elsewhere(part: Part, other: Part, source: PassageFacts) -> bool:
    """Return whether another passage sentence has all words of the clause, undenied alike."""
    for _, one in source.sentences:
        if one.tokens is not other.sentence and part.content <= one.content:
            denied = sum(t.low in words.NEGATORS or t.low in words.CONTRACTED for t in one.tokens)
            if denied % 2 == part.denials % 2:
                return True
    return False


def _is_said_beside(part: Part, other: Part, others: Sequence[Part]) -> bool:
    """Return whether another clause of the sentence says what a claim says: of another thing."""
    key = (part if part.denials else other).content
    return any(
        one is not other and one.denials % 2 == part.denials % 2 and key <= one.content
        for one in others
    )


def _is_said_both_ways(
    claim: ReadSentence, part: Part, other: Part, source: PassageFacts, context: int
) -> bool:
    """Return whether another passage says what one denies, or the reverse: they tell of two things.

    "Boundary wire required" of one mower and "No boundary wire" of another. A claim with a name
    that only the passage against it has is of that thing.
    """
    denied = part if part.denials else other
    if denied.first == "not":
        return False  # "the head, not the manager": what is denied of it stands elsewhere
    key = {word[:BEGINNING] for word in denied.content}
    names = labels(claim, set(claim.content))
    here = source.contents[context]
    for place, stems, is_denied in in_time(source.cut_sentences):
        is_alike = place != context and key <= stems and is_denied == bool(part.denials)
        if is_alike and not names & here - source.contents[place]:
            return True
    return False


_WITHOUT_EXCEPTION = (
    ("without", "exception"), ("without", "exceptions"), ("no", "exceptions"),
    ("in", "every", "case"), ("in", "all", "cases"), ("every", "single"), ("without", "limit"),
    ("no", "exception"), ("regardless", "of"), ("under", "any", "circumstances"),
)  # fmt: skip
_EXCEPT = frozenset(("except", "unless", "excepted", "excluding"))
_UNIVERSAL = frozenset(("all", "every", "both", "each", "everyone", "always", "any"))


def _is_total(claim: ReadSentence) -> bool:
    """Return whether a claim allows of no exception."""
    lows = [token.low for token in claim.tokens]
    firm = any(
        tuple(lows[at : at + len(phrase)]) == phrase
        for phrase in _WITHOUT_EXCEPTION
        if phrase[0] in lows
        for at in range(len(lows))
    )
    return firm and _EXCEPT.isdisjoint(lows) and claim.tokens[-1].text != "?"


def _excepted(claim: ReadSentence, one: ReadSentence) -> str:
    """Return "quantifier" if a passage names an exception to a claim that allows of none."""
    if _EXCEPT.isdisjoint(one.lows):
        return ""
    return "quantifier" if len(claim.content & one.content) >= _LEAST else ""


def _excluded(claim: ReadSentence, one: ReadSentence) -> str:
    """Return "negation" if a claim says of a thing what a passage says of others, "but not" of it.

    "Quantifier" if it says so of all of them.
    """
    at, size = one.once("exclusion", _exclusion)
    if not size:
        return ""
    lows = [token.low for token in one.tokens]
    end = next((k for k in range(at + size, len(lows)) if lows[k] in _BREAKS or lows[k] == "."), -1)
    main = frozenset(one.stems[:at]) - {""}
    left_out = frozenset(one.stems[at + size : end]) - main - {""}
    shared = claim.content & main
    if not left_out or len(shared) < _LEAST:
        return ""
    said = claim.lows
    if words.PLACED & set(lows[at:end]) != words.PLACED & said - set(lows[:at]):
        return ""
    if left_out <= claim.content:
        is_told = 3 * len(claim.content & frozenset(one.stems)) >= 2 * len(claim.content)
        is_told = (is_told or _affirms(claim)) and _TURNED.isdisjoint(said)
        return "negation" if is_told and not _denies(claim, left_out) else ""
    if not said & _UNIVERSAL or 2 * len(shared) < len(claim.content):
        return ""
    return "quantifier"


def _denies(claim: ReadSentence, things: frozenset[str]) -> bool:
    """Return whether a claim denies some things: "free of gluten", "no gluten"."""
    return any(
        (token.low in _NEGATED or (token.low == "free" and _is_without(claim.tokens, at)))
        and not things.isdisjoint(claim.stems[at + 1 : at + _REACH])
        for at, token in enumerate(claim.tokens)
    )


_REACH = 5


def _affirms(claim: ReadSentence) -> bool:
    """Return whether a claim allows something or adds to it: "can", "as well", "even".

    A claim in other words may deny something with none of the usual words: "stay out of it".
    """
    lows = [token.low for token in claim.tokens]
    return any(
        low in _AFFIRMING
        or (low == "too" and not _next(claim.tokens, at))
        or (low == "free" and lows[at + 1 : at + 2] == ["to"])
        for at, low in enumerate(lows)
    )


_AFFIRMING = words.listed("can may also even either both each every any all alike allowed well")
_TURNED = words.listed("out off away forbidden banned prohibited closed excluded")
"""Words that deny though they are no denial: "stay out", "off limits"."""

_INFIRM = words.listed("if unless whether except excluding although but only hardly without nor")
_CONTRASTS = words.listed("rather instead neither none nothing exception exceptions apart")
"""Words by which a claim may deny the same as a passage."""


def _exclusion(one: ReadSentence) -> tuple[int, int]:
    """Return where a sentence begins to exclude something, and in how many tokens; or 0, 0."""
    lows = [token.low for token in one.tokens]
    return next(((k, n) for k in range(len(lows)) if (n := _leaves_out(lows, k))), (0, 0))


def _leaves_out(lows: Sequence[str], at: int) -> int:
    """Return how many tokens begin an exclusion: "but not", "but are not", ", never by"; or 0."""
    behind = lows[at + 1 : at + 4]
    if lows[at] == "but":
        for size in (1, 2):
            is_verb = size == 1 or not _VERBS.isdisjoint(behind[:1])
            if is_verb and behind[size - 1 : size] in (["not"], ["no"], ["never"]):
                return size + 1
    if (
        lows[at] == ","
        and behind[:1] in (["not"], ["never"])
        and behind[1:2]
        and (behind[1] in _PREPOSITIONS)
    ):
        return 2
    return 0


_VERBS = words.listed(
    "is are was were do does did can could will would may must should shall has have"
)
_PREPOSITIONS = words.listed("by in on at for with to from during under")


def _is_firm(claim: ReadSentence) -> bool:
    """Return whether a claim denies nothing, makes no exception and does not ask."""
    lows = {token.low.replace("\u2019", "'") for token in claim.tokens}
    return (
        claim.tokens[-1:] != ()
        and claim.tokens[-1].text != "?"
        and lows.isdisjoint(words.DENYING | _INFIRM | _CONTRASTS)
    )
