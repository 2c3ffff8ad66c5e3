"""The cost of work, learned while it runs; what callers have had of it; the place that follows.

Milliseconds are a * size + b for each kind of work. Work has its place by deadline and cost. A
caller's account grows by what its work takes, in seconds of one thread. Where several callers wait,
the one goes first whose account plus the slack of its most urgent work is least; among the work of
one caller only the order counts. So one caller alone, or all behind one address, wait for nobody.
A small request passes huge ones of other callers as well, whose slack is long. Nothing starves: who
is passed does not pay meanwhile.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from guardrail_service.inference.queue.batch import Batch
from guardrail_service.types import Role, Row, RowResult

EVIDENCE_TOKENS = 176
"""A grounding row reads at most this much evidence, however much there is: the same number as in
`models/encoder.py`, which loads a model library that a cost needs not."""
_CHARS_PER_TOKEN = 4
"""Of English text. Tokens are estimated: counting costs more than the error, and `a` learns it."""
_MEMORY = 0.02
"""Weight of a new row: the last fifty or so count. A machine that slows down is noticed within
seconds, one slow row changes little."""
_OUTLIER = 5.0
"""A row counts as at most this many times its estimate, so one stalled row cannot close the door.
Work that really became slower reaches any cost in a few steps of five."""
_LEAST_MS, _MOST_MS = 0.01, 60_000.0
_FAR = 4.0
"""Times the usual size as of which a line says too little: where all work is of one size, its slope
is noise, and a text of a hundred times that size must not pass for an ordinary one."""


def tokens(row: Row) -> int:
    """Return about how many tokens a row has, special tokens included."""
    read = len(row.text) + len(row.second or "")
    evidence = 0
    for text in row.evidence:
        evidence += len(text)
        if evidence >= EVIDENCE_TOKENS * _CHARS_PER_TOKEN:
            evidence = EVIDENCE_TOKENS * _CHARS_PER_TOKEN
            break
    return 2 + (read + evidence) // _CHARS_PER_TOKEN


class RowCost(NamedTuple):
    """The cost of a row.

    Attributes:
        tokens: About how many tokens it has.
        ms: About how many milliseconds it takes on one thread.
        length: How many tokens it has in a call, if it shares calls with rows of its length only.
    """

    tokens: int
    ms: float
    length: int | None = None


@dataclass(slots=True)
class _Line:
    """A weighted least-squares line through what was seen, kept as running means."""

    x: float
    y: float
    xx: float
    xy: float
    seen: int = 0

    def at(self, size: float) -> float:
        """Return the milliseconds the line gives, never below zero slope or intercept."""
        variance = self.xx - self.x * self.x
        slope = (self.xy - self.x * self.y) / variance if variance > 1e-9 else 0.0
        # Through the mean either way: steeper than through the origin would make small rows free.
        mean = self.y / self.x if self.x else 0.0
        slope = mean if size > _FAR * self.x else min(max(0.0, slope), mean)
        return min(max(self.y + slope * (size - self.x), _LEAST_MS), _MOST_MS)

    def add(self, size: float, spent_ms: float) -> None:
        """Move the means towards one observation."""
        weight = max(_MEMORY, 1.0 / (self.seen + 1))
        bounded = min(spent_ms, _OUTLIER * self.at(size)) if self.seen else spent_ms
        self.seen += 1
        self.x += weight * (size - self.x)
        self.y += weight * (bounded - self.y)
        self.xx += weight * (size * size - self.xx)
        self.xy += weight * (size * bounded - self.xy)


class CostModel:
    """One line per kind of work. Thread-safe; estimates are finite and above zero.

    Args:
        first_ms: What a kind of work costs of which nothing has been seen.
    """

    def __init__(self, first_ms: float = 10.0) -> None:
        self._first_ms = first_ms
        self._lock = threading.Lock()
        self._lines: dict[str, _Line] = {}

    def learn(self, kind: str, size: float, spent_ms: float) -> None:
        """Note what one piece of work took; nonsense (negative, not a number) is left out."""
        if not (0.0 <= spent_ms <= _MOST_MS and size >= 0):
            return
        with self._lock:
            self._lines.setdefault(kind, _Line(0.0, 0.0, 0.0, 0.0)).add(size, spent_ms)

    def learning(self, run: Callable[[Row], RowResult]) -> Callable[[Row], RowResult]:
        """Return a runner that also teaches this model what its rows take."""

        def timed(row: Row) -> RowResult:
            result = run(row)
            self.learn(row.role, tokens(row), result.tokenize_ms + result.inference_ms)
            return result

        return timed

    def estimate(self, kind: str, size: float) -> float:
        """Return about how many milliseconds work of a size takes on one thread."""
        with self._lock:
            line = self._lines.get(kind)
            return self._first_ms if line is None else line.at(size)

    def rows(
        self,
        rows: Sequence[Row],
        batches: Mapping[Role, Batch] | None = None,
        known: Sequence[object | None] | None = None,
    ) -> list[RowCost]:
        """Return what each row costs.

        Args:
            rows: What is submitted together.
            batches: By role, how several rows run in one call; the rows of other roles run alone.
                Rows that run together share what a call costs by itself.
            known: For each row something if it runs in no call.
        """
        sizes = list(map(tokens, rows))
        costs = [
            RowCost(size, self.estimate(row.role, size))
            for row, size in zip(rows, sizes, strict=True)
        ]
        for role, batch in (batches or {}).items():
            own = [
                place
                for place, row in enumerate(rows)
                if row.role == role and (known is None or known[place] is None)
            ]
            if not own:
                continue
            lengths = _lengths(batch, [rows[place] for place in own])
            total = sum(costs[place].tokens for place in own)
            calls = _calls(batch.tokens, lengths, total, len(own))
            per_token = self.estimate(role, total / calls) * calls / total
            for number, place in enumerate(own):
                size = costs[place].tokens
                length = lengths[number] if lengths else None
                costs[place] = RowCost(size, size * per_token, length)
        return costs


def _lengths(batch: Batch, rows: Sequence[Row]) -> list[int] | None:
    if batch.lengths is None or isinstance(batch.lengths, int):
        return None if batch.lengths is None else [batch.lengths] * len(rows)
    return batch.lengths(rows)


def _calls(budget: int, lengths: Sequence[int] | None, total: int, rows: int) -> int:
    """Return how many calls rows are.

    Args:
        budget: Tokens of one call, at most.
        lengths: Of each row, if only rows of one length share a call.
        total: Tokens of all rows together.
        rows: How many there are.
    """
    if lengths is None:
        return min(rows, math.ceil(total / budget))
    return sum(
        math.ceil(count / max(1, budget // length)) for length, count in Counter(lengths).items()
    )


PATIENCE_S = 1.0
"""A row is as urgent as its deadline, but at least as one due this long after it came. So nothing
starves: after one second a row without a deadline is ahead of everything that comes later."""
BACKGROUND_S = 30.0
"""The same for work that nobody waits for, such as encoding passages ahead of traffic."""
PASSED = 5.0
"""By how many times its own cost work lets other work pass, so that ordinary requests do not stand
behind huge ones. It is fixed on arrival, so none waits for ever."""
CREDIT_S = 0.25
"""How far a caller that asked for little may be behind the others, seconds of one thread: so much
of its work goes first when it comes again. Two short chat answers; more would let a crowd that has
just come pass a caller that was there before."""
MOST_SLACK_S = 3.0
"""How much sooner than a huge request of another caller a small one comes, at the most: no caller
waits for long because the first of its requests is huge. More than `CREDIT_S` and its patience."""
_KNOWN = 1024
"""Accounts beyond which those that say nothing more are dropped."""


class QueuePlace(NamedTuple):
    """The place of work among others.

    Attributes:
        order: Among work of its caller the least comes first; a monotonic second.
        slack_s: How many seconds of another caller's work may pass it, if both had as much before.
        caller: Whose work it is; callers take turns.
        since: When it came, a monotonic second.
    """

    order: float
    slack_s: float = 0.0
    caller: str = ""
    since: float = -math.inf


class Urgency(NamedTuple):
    """The settings that the rows of one submission share.

    Attributes:
        deadline: Monotonic second after which a row not yet started is dropped; None: never.
        owner: Whose rows these are; rows of one owner never stand in each other's way. None: alone.
        patience_s: How long the rows may be overtaken by more urgent ones.
        caller: Who sent it; callers take turns.
    """

    deadline: float | None = None
    owner: object | None = None
    patience_s: float = PATIENCE_S
    caller: str = ""


def place_of(request: Urgency, now: float, cost_ms: float = 0.0) -> QueuePlace:
    """Return the place of work among others.

    Args:
        request: How urgent it is, and whose.
        now: When it came, a monotonic second.
        cost_ms: What it takes; for `PASSED` times as long others may pass it as well.
    """
    due = now + request.patience_s
    if request.deadline is not None:
        due = min(request.deadline, due)
    order = due + PASSED * cost_ms / 1e3
    return QueuePlace(order, min(order - now, MOST_SLACK_S), request.caller, now)


class Shares:
    """Accounts of what each caller has had, in seconds of one thread. Thread-safe.

    Attributes:
        lock: Held while accounts change.
        accounts: By caller; only differences mean something.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.accounts: dict[str, float] = {}
        self._waiting: Counter[str] = Counter()
        self._level = 0.0  # what those who waited last had had, at the least

    def charge(self, caller: str, spent_ms: float) -> None:
        """Add what work took."""
        with self.lock:
            self.accounts[caller] = self.had(caller) + spent_ms / 1e3

    def enter(self, caller: str) -> None:
        """Note that a caller waits in a queue; who comes anew keeps no more credit than allowed."""
        with self.lock:
            self._rise()
            had = self.had(caller)
            is_new = not self._waiting[caller]
            self.accounts[caller] = max(had, self._level - CREDIT_S) if is_new else had
            self._waiting[caller] += 1
            if len(self.accounts) > _KNOWN:
                self._forget()

    def leave(self, caller: str) -> None:
        """Note that it waits there no longer."""
        with self.lock:
            self._rise()
            self._waiting[caller] -= 1
            if not self._waiting[caller]:
                del self._waiting[caller]

    def had(self, caller: str) -> float:
        """Return what a caller has had."""
        return self.accounts.get(caller, self._level - CREDIT_S)

    def ahead_s(self, one: QueuePlace, other: QueuePlace) -> float:
        """Return by how many seconds one place is ahead of another; negative if it is behind."""
        if one.caller == other.caller:
            return other.order - one.order
        return self.had(other.caller) + other.slack_s - self.had(one.caller) - one.slack_s

    def ahead_ms(
        self, place: QueuePlace, own_ms: float, works: Iterable[tuple[QueuePlace, float]]
    ) -> float:
        """Return the milliseconds of one thread that come before work at a place is done.

        Args:
            place: Of the work that asks.
            own_ms: What it takes itself: those who are level with its caller get as much meanwhile.
            works: QueuePlace and milliseconds of what waits.
        """
        before = 0.0
        others: dict[str, tuple[QueuePlace, float]] = {}
        for at, ms in works:
            if at.caller == place.caller:
                before += ms if at.order <= place.order else 0.0
            else:
                first, total = others.get(at.caller, (at, 0.0))
                others[at.caller] = (first if first.slack_s <= at.slack_s else at, total + ms)
        level_ms = before + own_ms
        for first, total in others.values():
            before += min(total, max(0.0, level_ms + self.ahead_s(first, place) * 1e3))
        return before

    def _rise(self) -> None:
        """Move the level up to those who wait: nobody who comes anew is far behind them."""
        if self._waiting:
            self._level = max(self._level, min(map(self.had, self._waiting)))

    def _forget(self) -> None:
        """Drop the accounts that say no more than none would."""
        least = self._level - CREDIT_S
        known = self.accounts.items()
        self.accounts = {c: had for c, had in known if had > least or c in self._waiting}


WELL_S = 1.0
"""Slack of one caller's work as of which it is huge beside another's: a long report beside a short
chat answer, not chat answers among themselves, whenever they came."""
_WELL_BEHIND_S = 0.1
"""The same between callers, whose accounts count too: less than `CREDIT_S`, and more than callers
that get the same differ by."""
STANDS_S = 1.0
"""Seconds after work has come in which it stands still for checks that are small beside it: longer
than deadlines that a huge text cannot meet, and so short that a report can wait for as long."""


class UnderWay:
    """Checks that have come and are not done. Not thread-safe alone.

    Work that is well behind one of them leaves a worker free: the rows of a check do not come all
    at once, and each would wait for a call that cannot be interrupted, and for the processor.
    Work that is huge beside it stands still altogether, in the first second after it has come.

    Attributes:
        places: By owner, from when its check is expected until it is done.

    Args:
        shares: What callers have had.
    """

    def __init__(self, shares: Shares) -> None:
        self.places: dict[object, QueuePlace] = {}
        self._shares = shares

    def stops(self, owner: object, place: QueuePlace, now: float) -> bool:
        """Return whether huge work at a place stands still now, for a small check of anybody's."""
        return now < place.since + STANDS_S and any(
            place.slack_s - first.slack_s > WELL_S for first in self._ahead(owner, place)
        )

    def keeps_back(
        self, owner: object, place: QueuePlace, running: Sequence[QueuePlace], workers: int
    ) -> bool:
        """Return whether work at a place waits, though a worker is free.

        Args:
            owner: Whose work it is; it does not wait for its own check.
            place: Of the work.
            running: The places of what runs.
            workers: How many there are; a single one is never kept free.
        """
        most = workers - 1
        if most < 1 or len(running) < most:
            return False
        return any(
            sum(self._is_well_ahead(first, other) for other in running) >= most
            for first in self._ahead(owner, place)
        )

    def _ahead(self, owner: object, place: QueuePlace) -> Iterator[QueuePlace]:
        """Yield the checks of others that work at a place is well behind."""
        return (
            first
            for check, first in self.places.items()
            if check is not owner and self._is_well_ahead(first, place)
        )

    def _is_well_ahead(self, one: QueuePlace, other: QueuePlace) -> bool:
        if one.caller == other.caller:
            return one.order < other.order and other.slack_s - one.slack_s > WELL_S
        return self._shares.ahead_s(one, other) > _WELL_BEHIND_S
