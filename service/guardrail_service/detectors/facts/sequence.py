"""Compares the order of events in a claim with that in the passages.

An event is the set of stems of some words. Events are in order where "before", "after" or "then"
parts them, where steps are numbered, and where each has a year of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.align import PassageFacts, Place, agrees
from guardrail_service.detectors.facts.amounts import Fact
from guardrail_service.detectors.facts.read import ReadSentence
from guardrail_service.detectors.facts.roles import LONGEST
from guardrail_service.text.budget import check_time, in_time

Event = frozenset[str]
Chain = tuple[Event, ...]
"""Events, the earliest first."""
_CONDITIONS = frozenset(("if", "unless", "or", "not", "never", "no", "whether"))
_REFERS = frozenset(("which", "being", "that", "this", "all"))
_BREAKS = frozenset((",", ";", "and", "but", "(", ")", "while"))
_HARD = frozenset((";", ":", "but", "while", "("))
_COVER = 0.6
"""Share of an event's words that make it another one."""
_SHORT = 5
"""Words of an event beyond which one word in common says nothing."""
_DIGITS = 2
_LETTERS = 6
"""Of a stem that are compared: a migration is an event of migrating."""
_JOINTS = (words.EARLIER | words.LATER) - {"since"}
_SPLITS = words.listed("the a an they we you he she it i my our your their his her")
_NEAR = 7
"""Tokens between a break and the "then" or "later" that belongs to it."""
_PATIENCE = 2
"""Sentences without a marker that end a sequence of steps."""


class Disorder(NamedTuple):
    """A claim that tells two events in the wrong order, and the passage that says so."""

    claim: ReadSentence
    place: Place


class _Step(NamedTuple):
    """Words of one sentence; `after` says whether they follow the step before, None if untold."""

    event: Event
    after: bool | None


def disorders(claims: Sequence[ReadSentence], source: PassageFacts) -> Iterator[Disorder]:
    """Yield the claims that tell two events in the order opposite to the passages'.

    Args:
        claims: The claims of an answer, in order: "First ..." may be followed by "Then ...".
        source: Passages and question.
    """
    told = [(False, *row) for row in _parted(claims)] + [(True, *row) for row in _chains(claims)]
    if not told:
        return
    every = list(in_time(list(enumerate(source.passages))))
    known = [
        (context, one, chain)
        for context, part in every
        for one, chain in (*_parted(part), *_chains(part), *_dated(part))
    ]
    listed = [(context, *row) for context, part in every for row in _listed(part)]
    for has_steps, claim, chain in told:
        check_time()
        found = _against(chain, [*known, *listed] if has_steps else known)
        if found is not None:
            context, one = found
            yield Disorder(claim, Place(context, one.start, one.start + len(one.text)))


def _against(
    chain: Chain, known: Iterable[tuple[int, ReadSentence, Chain]]
) -> tuple[int, ReadSentence] | None:
    """Return where two neighbours of a chain stand the other way round, and none as here."""
    for one, other in pairwise(chain):
        if any(part < whole for part in (one, other) for whole in chain):
            continue  # it happens twice
        first, later = one - other, other - one
        wrong = None
        for context, read, theirs in known:
            at, then = _place(first, theirs), _place(later, theirs)
            if at is None or then is None or at == then:
                continue
            if at < then:
                wrong = None
                break
            wrong = wrong or (context, read)
        if wrong is not None:
            return wrong
    return None


def _place(event: Event, chain: Chain) -> int | None:
    """Return which event of a chain one is, or None where none or two may be."""
    best, second, at = 0.0, 0.0, None
    for place, other in enumerate(chain):
        shared = len(event & other) if event & other - _LASTS else 0
        cover = shared / min(len(event), len(other)) if shared else 0.0
        if shared == 1 and max(len(event), len(other)) > _SHORT:
            cover = 0.0
        if cover > best:
            best, second, at = cover, best, place
        else:
            second = max(second, cover)
    return at if best >= _COVER and second < best else None


_LASTS = frozenset(("tak", "second", "minut", "hour"))
"""Stems that tell how long something lasts, and not what happens."""


def _parted(part: Sequence[ReadSentence]) -> Iterator[tuple[ReadSentence, Chain]]:
    """Yield what "before" or "after" parts in each sentence."""
    for one in part:
        if one.tokens and one.tokens[-1].text != "?" and len(one.tokens) <= LONGEST:
            yield from ((one, sides) for sides in _sides(one))


def _chains(part: Sequence[ReadSentence]) -> Iterator[tuple[ReadSentence, Chain]]:
    """Yield the steps that a text puts in order, within sentences and over several."""
    running: list[Event] = []
    last: ReadSentence | None = None
    idle = 0
    for one in part:
        if not one.tokens or one.tokens[-1].text == "?" or len(one.tokens) > LONGEST:
            continue
        steps = _steps(one) if "order" in one.signals else []
        if all(step.after is None for step in steps):
            idle += 1
            if idle >= _PATIENCE and last is not None and len(running) > 1:
                yield last, tuple(running)
            if idle >= _PATIENCE or last is None:
                running, last = [one.content], one
            continue
        idle = 0
        if one.tokens[0].text in _BULLETS and one.tokens[1:2] and one.tokens[1].low not in _STARTS:
            running, last = [], None  # "afterwards" inside a bullet is after no other one
        for step in steps:
            if step.after is False:
                if last is not None and len(running) > 1:
                    yield last, tuple(running)
                running = []
            if step.after is not None or not running:
                running.append(step.event)
            else:
                running = [step.event]
            last = one
    if last is not None and len(running) > 1:
        yield last, tuple(running)


def _steps(one: ReadSentence) -> list[_Step]:
    """Return the steps of a sentence, parted by numbers of lines and by "then"."""
    if not _CONDITIONS.isdisjoint(token.low for token in one.tokens):
        return []
    cuts: dict[int, bool | None] = {0: None}
    lows = [token.low for token in one.tokens]
    for at, low in enumerate(lows):
        if (number := _line_number(one, at)) is not None and not _is_ranked(one, at):
            cuts[at] = number > 1
        elif low in words.THEN and not _is_relative(lows, at):
            near = range(at, max(-1, at - _NEAR), -1)
            cuts[next((k for k in near if lows[k] in _BREAKS or _line(one, k)), at)] = True
        elif low == "after" and lows[at + 1 : at + 2] == ["that"]:
            near = range(at, max(-1, at - _NEAR), -1)
            cuts[next((k for k in near if lows[k] in _BREAKS), at)] = True
        elif low == "followed" and lows[at + 1 : at + 2] == ["by"]:
            cuts[at] = True
        elif (
            low in words.FIRST
            and cuts.get(0) is None
            and len(cuts) == 1
            and (not at or lows[at - 1] not in _SPLITS)
        ):
            cuts[0] = False
    if len(cuts) > 1 or cuts[0] is not None or lows[-3:-1] == ["the", "end"]:
        for at in _commas(one, sorted(cuts)):
            cuts[at] = True
    places = sorted(cuts)
    found = []
    for start, end in pairwise((*places, len(lows))):
        event = _event(one, start, end)
        if event:
            found.append(_Step(event, cuts[start]))
    return found


def _commas(one: ReadSentence, cuts: Sequence[int]) -> Iterator[int]:
    """Yield further commas and "and"s of steps, where words enough stand on both sides."""
    last = 0
    for at, token in enumerate(one.tokens):
        if at in cuts:
            last = at
        elif token.low in (",", "and", ";"):
            end = next((k for k in range(at + 1, len(one.tokens)) if one.tokens[k].low in _BREAKS),
                       len(one.tokens))  # fmt: skip
            behind = [t.low for t in one.tokens[at + 1 : at + 2]]
            is_apart = token.low == ";" and one.tokens[0].low not in words.FIRST
            if (is_apart and not words.THEN.intersection(behind)) or _BESIDE.intersection(behind):
                continue  # ", when the technician closes the dome": not later
            sides = (len(_event(one, last, at)), len(_event(one, at, end)))
            lows = [token.low for token in one.tokens[at:end]]
            is_sum = not _SUMS.isdisjoint(lows) or ("in", "all") in pairwise(lows)
            if min(sides) >= _STEP_WORDS and not is_sum:
                last = at
                yield at


_BESIDE = words.listed("when while as since which who where because so if with at for")
"""Words behind a comma that go on with the same step."""
_STEP_WORDS = 2
_SUMS = frozenset(("total", "altogether"))


def _listed(part: Sequence[ReadSentence]) -> Iterator[tuple[ReadSentence, Chain]]:
    """Yield the steps of sentences that only list them: "Let it rise, fold it, and chill it"."""
    for one in part:
        if not _SEQUENCE.isdisjoint(token.low for token in one.tokens):
            continue
        if len(one.tokens) > LONGEST:
            continue
        places = [0, *_commas(one, ()), len(one.tokens)]
        events = tuple(filter(None, (_event(one, *pair) for pair in pairwise(places))))
        if len(events) > 1:
            yield one, events


_SEQUENCE = words.EARLIER | words.LATER | words.THEN | words.FIRST | _CONDITIONS


def _is_relative(lows: Sequence[str], at: int) -> bool:
    """Return whether "later" or "next" is no step: "no later than", "the next day"."""
    around = lows[max(0, at - 1) : at + 2]
    is_next = lows[at] == "next" and (lows[at - 1 : at] in (["the"], ["until"]) or "to" in around)
    return "than" in around or is_next


def _line(one: ReadSentence, at: int) -> bool:
    """Return whether a token begins a line."""
    start = one.tokens[at].start
    return start == 0 or one.text[start - 1] == "\n"


def _line_number(one: ReadSentence, at: int) -> int | None:
    """Return the number of a line ("2. Install it") that begins at a token."""
    token = one.tokens[at]
    behind = one.tokens[at + 1].text if at + 1 < len(one.tokens) else ""
    if token.kind != "n" or behind not in (".", ")") or not token.text.isdecimal():
        return None
    return int(token.text) if _line(one, at) and len(token.text) <= _DIGITS else None


def _is_ranked(one: ReadSentence, at: int) -> bool:
    """Return whether a numbered line gives a thing its number, and is no step: "2. Orrin: 7"."""
    start = one.tokens[at].start
    line = one.text[start:].partition("\n")[0]
    head, _, value = line.partition(": ")
    told = [f for f in one.facts if start + len(head) <= f.start < start + len(line)]
    lasts = any(fact.kind in ("duration", "time", "date") for fact in told)
    return value[:1].isdecimal() and bool(told) and not lasts


def _event(one: ReadSentence, start: int, end: int) -> Event:
    """Return the stems of some tokens, without words that only order or deny."""
    return frozenset(
        stem[:_LETTERS]
        for stem, token in zip(one.stems[start:end], one.tokens[start:end], strict=True)
        if stem and stem not in words.SEQUENCE_STEMS and token.low not in _SMALL
    )


_SMALL = words.PLACED | words.NEGATORS | {"all", "only", "while"}


def _sides(read: ReadSentence) -> Iterator[Chain]:
    """Yield what a sentence with one "before" or "after" says comes first, and what later."""
    lows = [token.low for token in read.tokens]
    joints = [at for at, low in enumerate(lows) if low in _JOINTS]
    if len(joints) != 1 or not {"if", "unless"}.isdisjoint(lows[:2]) or "?" in lows[-1:]:
        return
    at = joints[0]
    after = read.tokens[at + 1 :]
    is_turned = lows[at] == "followed" and bool(after) and after[0].low == "by"
    if (
        not after
        or after[0].kind == "n"
        or after[0].low in _REFERS
        or any(at < fact.token <= at + 2 and fact.kind != "ordinal" for fact in read.facts)
    ):
        return
    is_earlier = is_turned or lows[at] in words.EARLIER
    opened = next((k for k in range(at - 1, -1, -1) if lows[k] in _BREAKS), -1)
    for (low, high), (start, end) in _around(read, lows, at):
        said = {*lows[low:high], *lows[start:end]}
        waits = lows[at] in _UNTIL and (
            not _DENIALS.isdisjoint(lows[max(low, opened + 1) : high])
            or lows[at - 1] in _WAITS
            or any(lows[k - 1] in _MUST and lows[k] in _WAITS for k in range(low + 1, high))
        )
        if not _UNSAID.isdisjoint(said - _DENIALS if waits else said):
            continue
        left, right = _event(read, low, high) - _WAITING, _event(read, start, end)
        if left and right:
            yield (left, right) if is_earlier and not waits else (right, left)


def _around(
    read: ReadSentence, lows: Sequence[str], at: int
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the tokens on both sides of a joint; of a leading one all places where it may end."""
    opened = next((k for k in range(at - 1, -1, -1) if lows[k] in _BREAKS), -1)
    leads = all(
        low == "only" or not stem
        for low, stem in zip(lows[opened + 1 : at], read.stems[opened + 1 : at], strict=True)
    )
    if not leads:
        low = next((k + 1 for k in range(at - 1, -1, -1) if lows[k] in _HARD), 0)
        low = max(low, 2 if lows[:2] in (["no", ","], ["yes", ","]) else 0)
        yield (low, at), (at + 1, _until(read, lows, at + 1, _BREAKS))
        return
    comma = next((k for k in range(at, len(lows)) if lows[k] == ","), None)
    ends = (
        [comma]
        if comma is not None
        else [
            k
            for k in range(at + 2, min(len(lows), at + _AHEAD))
            if any(read.stems[at:k]) and (lows[k] in _SPLITS or read.tokens[k].text[0].isupper())
        ]
    )  # "After the purchase Brandner became ..."
    for end in ends:
        yield (end, _until(read, lows, end + 1, _HARD)), (at + 1, end)


_STARTS = words.THEN | words.FIRST | words.LATER
_BULLETS = frozenset(("-", "*", "\u2022", "\u2013"))
_UNTIL = frozenset(("until", "till"))
_DENIALS = words.DENYING | {"avoid", "avoids", "avoided"}
"""Words before "until" that put the event behind it first: "nobody eats until it is over"."""
_WAITS = frozenset(("wait", "waits", "waited", "waiting"))
_WAITING = frozenset(("wait",))
_MUST = frozenset(("to", "must", "should"))
_UNSAID = _CONDITIONS | _DENIALS | {"even"}
"""Words that leave the order open: "you need not wait before", "even before"."""
_AHEAD = 12


def _until(read: ReadSentence, lows: Sequence[str], start: int, breaks: frozenset[str]) -> int:
    """Return the place of the first break behind some content, or the end."""
    return next(
        (k for k in range(start, len(lows)) if lows[k] in breaks and any(read.stems[start:k])),
        len(lows),
    )


def _dated(part: Sequence[ReadSentence]) -> Iterator[tuple[ReadSentence, Chain]]:
    """Yield what happened in different years, on different days, or at different times."""
    events: dict[str, dict[float, Event]] = {}
    doubled: set[tuple[str, float]] = set()
    last: dict[str, ReadSentence] = {}
    for one in part:
        for fact in one.facts:
            if len(one.tokens) > LONGEST:
                break
            moment = _moment(fact)
            if moment is None or fact.bound or fact.is_range:
                continue
            (scale, value), clause = moment, one.clauses[fact.token]
            others = [
                f for f in one.facts if f is not fact and one.clauses[f.token] == clause
                and (other := _moment(f)) is not None and other[0] == scale
            ]  # fmt: skip
            event = _clause(one, clause)
            if clause and one.clauses[0] == 0:
                event |= frozenset(sorted(_clause(one, 0), key=one.text.lower().find)[:1])
            if others or not event:
                continue
            if value in events.setdefault(scale, {}):
                doubled.add((scale, value))
            events[scale][value], last[scale] = event, one
    for scale, known in events.items():
        ordered = tuple(known[at] for at in sorted(known) if (scale, at) not in doubled)
        if len(ordered) > 1:
            yield last[scale], ordered


def _moment(fact: Fact) -> tuple[str, float] | None:
    """Return when something is, on a scale of its own: years, days, times or "the 54th minute"."""
    if fact.date is not None:
        year, month, day = fact.date
        if year is not None:
            return "year", float(year)
        return None if month is None or day is None else ("day", month * 31.0 + day)
    if fact.kind == "time":
        return "time", fact.values[0]
    if fact.kind == "ordinal" and fact.nouns[:1] and fact.nouns[0] in _COUNTED_TIMES:
        return fact.nouns[0], fact.raw
    return None


_COUNTED_TIMES = frozenset(("minut", "hour", "day", "week", "month", "year", "round", "lap"))


def misplaced(claims: Sequence[ReadSentence], source: PassageFacts) -> Iterator[Disorder]:
    """Yield the claims that say "before" a year or version what passages say since, or the reverse.

    Args:
        claims: The claims of an answer.
        source: Passages and question.
    """
    every = [
        (context, one, *row) for context, one in source.sentences for row in _eras(one)
    ]  # fmt: skip
    if not every:
        return
    for claim in claims:
        for fact, side, event in _eras(claim):
            same = [
                row for row in every if agrees(fact, row[2]) and _is_event(event, row[4])
            ]  # fmt: skip
            if same and all(row[3] != side for row in same):
                context, one = same[0][:2]
                yield Disorder(claim, Place(context, one.start, one.start + len(one.text)))
                break


def _is_event(event: Event, other: Event) -> bool:
    shared = len(event & other)
    return shared >= _SAME_WORDS and shared >= _COVER * min(len(event), len(other))


_SAME_WORDS = 2


def _eras(one: ReadSentence) -> Iterator[tuple[Fact, int, Event]]:
    """Yield years and versions with the side on which something was so, -1 for before."""
    if "order" not in one.signals or len(one.tokens) > LONGEST or one.tokens[-1].text == "?":
        return
    lows = [token.low for token in one.tokens]
    for fact in one.facts:
        is_version = fact.kind == "number" and "." in one.tokens[fact.token].text
        is_year = fact.date is not None and fact.date[1:] == (None, None)
        if fact.is_range or not (is_version or is_year):
            continue
        ahead = lows[max(0, fact.token - 3) : fact.token]
        side = next((_ERAS[low] for low in reversed(ahead) if low in _ERAS), 0)
        if not side or not _CONDITIONS.isdisjoint(lows):
            continue
        start = next((k + 1 for k in range(fact.token, -1, -1) if lows[k] in _ERA_ENDS), 0)
        end = next((k for k in range(fact.last, len(lows)) if lows[k] in _ERA_ENDS), len(lows))
        event = _event(one, start, fact.token) | _event(one, fact.last, end)
        yield fact, side, frozenset(word for word in event if not word.startswith("#"))


_ERAS = {"before": -1, "until": -1, "till": -1, "since": 1}
_ERA_ENDS = frozenset((";", ".", "but", "while", "whereas", "("))


def _clause(one: ReadSentence, clause: int) -> Event:
    """Return the stems of a clause without its dates."""
    places = [at for at, own in enumerate(one.clauses) if own == clause]
    months = {stem[:_LETTERS] for stem in words.MONTHS}
    event = _event(one, places[0], places[-1] + 1) - months
    return frozenset(stem for stem in event if not stem.startswith("#"))
