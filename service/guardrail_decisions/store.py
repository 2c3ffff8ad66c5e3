"""The store as the service sees it: a bounded queue, and one thread that writes what gathers.

    offer --> queue --> prepare (texts are protected here) --> database
                                                          \\-> spool, while the database is away

A decision is lost only if the queue is full, or if the service ends while neither database nor
spool take it; both are counted. Everything acknowledged (`keep`, feedback) is on the disk.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from sqlalchemy import make_url
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from guardrail_decisions.database import Database
from guardrail_decisions.keys import Keys
from guardrail_decisions.monitor.watch import Watching
from guardrail_decisions.rows import decision_row, size_of, texts_of
from guardrail_decisions.spool import Prepared, Spool
from guardrail_decisions.texts import TextKeeper
from guardrail_decisions.upkeep import purge_older
from guardrail_decisions.writing import Writer
from guardrail_service.errors import NotRecorded, raised_at
from guardrail_service.server.decisions import DecisionRecord, Feedback, FeedbackState

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from guardrail_service.policy.decide import Policy
    from guardrail_service.settings import DecisionSettings

_LOG = logging.getLogger(__name__)
MOST_AT_ONCE = 256
"""Decisions of one transaction."""
GATHER_S = 0.5
"""Seconds that the writer lets decisions gather while nobody waits for one. Alone, a decision takes
1.2 ms of processor time to write; of eight together each takes 0.6 ms."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
"""Seconds between two tries of a database that is away: twice as long each time."""
UPKEEP_S = 600.0
"""Seconds between two looks for decisions that are too old."""
REASONS = ("queue", "fault", "spool", "closing")
REFUSED = (DataError, IntegrityError, ValueError, OverflowError)
"""A database or its driver says so of a row that it will never take, however often it is tried."""


@dataclass
class _Waiting:
    """Something to write, and who waits for it."""

    what: DecisionRecord | Feedback
    bytes: int
    done: threading.Event | None = None
    stored: bool = False
    state: FeedbackState = "unknown"

    def end(self, *, stored: bool) -> None:
        self.stored = stored
        if self.done is not None:
            self.done.set()


@dataclass
class _Batch:
    """Rows that are written together; `again`: some of it may have been written before."""

    decisions: list[Prepared] = field(default_factory=list)
    of: list[_Waiting] = field(default_factory=list)
    feedback: list[_Waiting] = field(default_factory=list)
    again: bool = False


def open_store(settings: DecisionSettings) -> SqlStore:
    """Return the store that the settings name.

    Raises:
        ConfigurationError: If it cannot be opened.
    """
    url = settings.url.get_secret_value() if settings.url is not None else ""
    keys = None if settings.keys_file is None else Keys.of_file(settings.keys_file)
    keeper = TextKeeper(settings.texts, keys)  # refuses before anything is written
    required = settings.audit == "required"
    database = Database(url, synchronous=required)
    make_private(url)
    database.ready()
    spool = None
    if settings.spool is not None:
        spool = Spool(settings.spool, settings.spool_mb * 2**20)
    return SqlStore(settings, Writer(database, keys, keeper), spool)


def make_private(url: str) -> None:
    """Let nobody else read a SQLite file that is made now."""
    path = make_url(url).database if url.startswith("sqlite") else None
    if path and path != ":memory:" and not Path(path).exists() and Path(path).parent.is_dir():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


class SqlStore:
    """Keeps decisions in a database.

    Args:
        settings: How much may wait, for how long.
        writer: Writes.
        spool: Takes decisions while the database is away; None: the queue alone does.
    """

    def __init__(
        self, settings: DecisionSettings, writer: Writer, spool: Spool | None = None
    ) -> None:
        self.required = settings.audit == "required"
        self._settings = settings
        self._writer = writer
        self._spool = spool
        self._limit = settings.queue_mb * 2**20
        self._queue: deque[_Waiting] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._closing = threading.Event()
        self._deadline = float("inf")
        self._stored = 0
        self._lost: Counter[str] = Counter()
        self._is_away = False
        self._policies: dict[str, Policy] = {}
        self._next_upkeep = 0.0
        self._watching = Watching(writer)
        self._thread = threading.Thread(target=self._run, name="decisions", daemon=True)
        self._thread.start()
        self._watching.start()

    def offer(self, record: DecisionRecord) -> bool:
        """Take a record for writing and return at once; False: there is no room, it is lost."""
        return self._put(_Waiting(record, size_of(record)))

    def keep(self, record: DecisionRecord) -> bool:
        """Return whether a record is durable; waits for it."""
        waiting = _Waiting(record, size_of(record), threading.Event())
        return self._put(waiting) and self._waited(waiting) and waiting.stored

    def add_feedback(self, feedback: Feedback) -> FeedbackState:
        """Return what became of a word; waits until it is durable.

        Raises:
            NotRecorded: If the store cannot be reached.
        """
        waiting = _Waiting(feedback, 1_024 + 2 * len(feedback.comment or ""), threading.Event())
        if not (self._put(waiting) and self._waited(waiting) and waiting.stored):
            raise NotRecorded("the feedback could not be stored; try again later")
        return waiting.state

    def serving(self, policies: Collection[Policy]) -> None:
        """Note what is served from now on."""
        self._policies |= {policy.sha256: policy for policy in policies}
        self._wake.set()

    def figures(self) -> Iterable[Metric]:
        """Return what `/metrics` shows of the store."""
        stored = CounterMetricFamily("guardrail_decisions_stored", "Decisions stored.")
        stored.add_metric([], self._stored)
        lost = CounterMetricFamily(
            "guardrail_decisions_lost", "Decisions lost, by reason.", labels=["reason"]
        )
        for reason in REASONS:
            lost.add_metric([reason], self._lost[reason])
        yield stored
        yield lost
        gauges = {
            "queue": ("Decisions that wait to be written.", len(self._queue)),
            "queue_bytes": ("Bytes of decisions that wait to be written.", self._bytes),
            "spool_bytes": ("Bytes in the spool.", self._spool.size if self._spool else 0),
            "away": ("1 while the database of decisions does not take any.", int(self._is_away)),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(f"guardrail_decisions_{name}", text, value)
        yield from self._watching.watch.figures()

    def problem(self) -> str | None:
        """Return what is wrong right now; None: nothing."""
        if not self._thread.is_alive() and not self._closing.is_set():
            return "the writer of decisions has stopped"
        if self._is_away and (self._spool is None or self._queue):
            return f"the database of decisions is away; {len(self._queue)} wait"
        if len(self._queue) >= self._settings.queue or self._bytes >= self._limit:
            return "the queue of decisions is full"
        return None

    def close(self, timeout_s: float) -> None:
        """Write what waits, for at most so many seconds, and close."""
        self._deadline = time.monotonic() + timeout_s
        self._closing.set()
        self._wake.set()
        self._hurry.set()
        self._watching.close(min(timeout_s, 2.0))
        self._thread.join(timeout_s + 1.0)
        if self._thread.is_alive():
            _LOG.error("the store of decisions did not close in time")
            return
        self._writer.database.close()
        if self._spool is not None:
            self._spool.close()

    def _put(self, waiting: _Waiting) -> bool:
        with self._lock:
            full = len(self._queue) >= self._settings.queue
            if full or self._bytes + waiting.bytes > self._limit or self._closing.is_set():
                self._lost["queue"] += isinstance(waiting.what, DecisionRecord)
                return False
            self._queue.append(waiting)
            self._bytes += waiting.bytes
        if waiting.done is not None or len(self._queue) >= MOST_AT_ONCE:
            self._hurry.set()
        self._wake.set()
        return True

    def _waited(self, waiting: _Waiting) -> bool:
        return waiting.done is not None and waiting.done.wait(self._settings.wait_s)

    def _run(self) -> None:
        """Write until the store closes and nothing waits."""
        if self._spool is not None and self._spool.size:
            self._empty_spool()
        while not (self._closing.is_set() and not self._queue):
            self._wake.wait(1.0)
            self._wake.clear()
            if self._queue and not self._closing.is_set():
                self._hurry.wait(GATHER_S)
            self._hurry.clear()
            try:
                self._note_policies()
                while self._queue:
                    self._write(self._taken())
                self._look_after()
            except Exception as error:  # noqa: BLE001 - the thread must live: others wait for it
                _LOG.error("writing decisions: %s at %s", type(error).__name__, raised_at(error))

    def _taken(self) -> list[_Waiting]:
        with self._lock:
            count = min(len(self._queue), MOST_AT_ONCE)
            return [self._queue.popleft() for _ in range(count)]

    def _write(self, taken: list[_Waiting]) -> None:
        """Store what was taken from the queue, however long the database is away."""
        batch = self._prepared(taken)
        pause = FIRST_PAUSE_S
        try:
            while True:
                if self._stored_in_database(batch) or self._is_spooled(batch):
                    return
                batch.again = True
                if time.monotonic() + pause > self._deadline:
                    self._lose(batch.of, "closing")
                    return
                self._closing.wait(pause) if not self._closing.is_set() else time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
        finally:
            for waiting in taken:
                waiting.end(stored=waiting.stored)
            with self._lock:
                self._bytes -= sum(waiting.bytes for waiting in taken)

    def _prepared(self, taken: Sequence[_Waiting]) -> _Batch:
        """Return rows with protected texts; one that cannot be made is lost alone."""
        batch = _Batch()
        for waiting in taken:
            if isinstance(waiting.what, Feedback):
                batch.feedback.append(waiting)
                continue
            try:
                batch.decisions.append(self._row(waiting.what))
                batch.of.append(waiting)
            except Exception as error:  # noqa: BLE001 - see above; the error may quote a text
                _LOG.error("a decision: %s at %s", type(error).__name__, raised_at(error))
                self._lose([waiting], "fault")
        return batch

    def _row(self, record: DecisionRecord) -> Prepared:
        keeper = self._writer.keeper
        if keeper.mode == "none":
            return Prepared(decision_row(record), keeper.keep({}, ""))
        kept = keeper.keep(texts_of(record), record.record_id, record.redacted_answer)
        return Prepared(decision_row(record), kept)

    def _stored_in_database(self, batch: _Batch) -> bool:
        if self._spool is not None and self._spool.size and not self._empty_spool():
            return False
        words = [w.what for w in batch.feedback if isinstance(w.what, Feedback)]
        try:
            states = self._writer.write(batch.decisions, words, again=batch.again)
        except REFUSED:
            return self._stored_one_by_one(batch)
        except SQLAlchemyError as error:
            self._went_away(error)
            return False
        for waiting, state in zip(batch.feedback, states, strict=True):
            waiting.state = state
            waiting.end(stored=True)
        self._came_back()
        self._acknowledge(batch)
        return True

    def _stored_one_by_one(self, batch: _Batch) -> bool:
        """Store each row of a batch alone, because one is refused; only that one is lost.

        Rows that are done leave the batch. Returns False if the database went away meanwhile.
        """
        try:
            while batch.decisions:
                if self._is_taken(batch.decisions[0]):
                    self._acknowledge(_Batch(of=batch.of[:1]))
                else:
                    self._lose(batch.of[:1], "fault")
                del batch.decisions[0], batch.of[0]
            while batch.feedback:
                self._say_alone(batch.feedback[0])
                del batch.feedback[0]
        except SQLAlchemyError as error:
            self._went_away(error)
            return False
        self._came_back()
        return True

    def _is_taken(self, decision: Prepared) -> bool:
        try:
            self._writer.write([decision], again=True)
        except REFUSED as error:
            _LOG.error("a decision is lost: the database refuses its row (%s)", _cause(error))
            return False
        return True

    def _say_alone(self, waiting: _Waiting) -> None:
        if not isinstance(waiting.what, Feedback):
            return
        try:
            (waiting.state,) = self._writer.write([], [waiting.what], again=False)
        except REFUSED as error:
            _LOG.error("feedback is lost: the database refuses its row (%s)", _cause(error))
            waiting.end(stored=False)
        else:
            waiting.end(stored=True)

    def _is_spooled(self, batch: _Batch) -> bool:
        """Return whether the spool took the decisions; feedback has to wait for the database."""
        if self._spool is None or not self._spool.add(batch.decisions):
            return False
        for waiting in batch.feedback:
            waiting.end(stored=False)
        self._acknowledge(batch)
        return True

    def _acknowledge(self, batch: _Batch) -> None:
        self._stored += len(batch.of)
        for waiting in batch.of:
            waiting.end(stored=True)

    def _empty_spool(self) -> bool:
        """Move everything from the spool into the database; some of it may be there already."""
        if self._spool is None:
            return True
        lines = self._spool.read()
        try:
            for part in iter(lambda: list(islice(lines, MOST_AT_ONCE)), []):
                self._lost["spool"] += part.count(None)
                self._from_spool([found for found in part if found is not None])
        except SQLAlchemyError as error:
            self._went_away(error)
            return False
        self._spool.clear()
        return True

    def _from_spool(self, decisions: Sequence[Prepared]) -> None:
        try:
            self._writer.write(decisions, again=True)
        except REFUSED:
            self._lost["fault"] += sum(not self._is_taken(found) for found in decisions)

    def _lose(self, waiting: Iterable[_Waiting], reason: str) -> None:
        for lost in waiting:
            self._lost[reason] += 1
            lost.end(stored=False)

    def _went_away(self, error: SQLAlchemyError) -> None:
        if not self._is_away:
            _LOG.error("the database of decisions is away (%s); decisions wait", _cause(error))
        self._is_away = True

    def _came_back(self) -> None:
        if self._is_away:
            _LOG.warning("the database of decisions is back")
        self._is_away = False

    def _note_policies(self) -> None:
        if not self._policies:
            return
        noted = dict(self._policies)
        try:
            self._writer.serve(list(noted.values()))
        except SQLAlchemyError as error:
            self._went_away(error)
            return
        for sha256 in noted:
            self._policies.pop(sha256, None)

    def _look_after(self) -> None:
        """Delete what is too old, now and then."""
        days = self._settings.retention_days
        if days is None or time.monotonic() < self._next_upkeep or self._closing.is_set():
            return
        self._next_upkeep = time.monotonic() + UPKEEP_S
        try:
            purge_older(self._writer.database, self._writer.keys, days)
        except SQLAlchemyError as error:
            self._went_away(error)


def _cause(error: Exception) -> str:
    """Return what kind of fault it is; its message may have values of the row."""
    return type(getattr(error, "orig", None) or error).__name__
