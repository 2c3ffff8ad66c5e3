"""One submission: what its rows have in common, and how they enter the backlog."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import NamedTuple

from guardrail_service.inference.queue.backlog import Backlog
from guardrail_service.inference.queue.job import Barrier, Job, RowDone, Waiter
from guardrail_service.types import Role, Row

PATIENCE_S = 1.0
"""A row is as urgent as its deadline, but at least as one due this long after it came. So nothing
starves: after one second a row without a deadline is ahead of everything that comes later."""
BACKGROUND_S = 30.0
"""The same for work that nobody waits for, such as encoding passages ahead of traffic."""


class Request(NamedTuple):
    """What the rows of one submission have in common.

    Attributes:
        deadline: Monotonic second after which a row not yet started is dropped; None: never.
        owner: Whose rows these are; rows of one owner never stand in each other's way. None: alone.
        patience_s: How long the rows may be overtaken by more urgent ones.
    """

    deadline: float | None = None
    owner: object | None = None
    patience_s: float = PATIENCE_S


def order_of(deadline: float | None, now: float, patience_s: float = PATIENCE_S) -> float:
    """Return the monotonic second as of which work is due; the least comes first."""
    return now + patience_s if deadline is None else min(deadline, now + patience_s)


class Entry:
    """One submission on its way into the backlog; the scheduler's lock is held."""

    def __init__(
        self,
        backlog: Backlog,
        request: Request,
        now: float,
        after: Mapping[Role, Role],
        sequence: Iterator[int],
    ) -> None:
        self._backlog = backlog
        self._request = request
        self._now = now
        self._after = after
        self._sequence = sequence
        self._order = order_of(request.deadline, now, request.patience_s)
        self._barriers = {role: Barrier(0, []) for role in after.values()}

    def place(self, row: Row, cost_ms: float, future: Future[RowDone]) -> None:
        """Let a row join an equal one, or queue it. Readers come last."""
        due = math.inf if self._request.deadline is None else self._request.deadline
        waiter = Waiter(future, due, self._now)
        job = self._backlog.find(row, self._now)
        if job is not None:
            job.waiters.append(waiter)
            self._backlog.hasten(job, self._order)
        else:
            sequence = next(self._sequence)
            job = Job(row, self._order, sequence, cost_ms, self._request.owner, [waiter])
            needs = self._after.get(row.role)
            self._backlog.add(job, None if needs is None else self._barriers[needs])
        barrier = self._barriers.get(row.role)
        if barrier is not None:
            barrier.left += 1
            job.barriers.append(barrier)
