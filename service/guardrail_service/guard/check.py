"""One sample on its way through the detectors of one policy."""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import NamedTuple

from guardrail_service.detectors.no_answer.detector import abstains
from guardrail_service.detectors.registry import Registry
from guardrail_service.errors import (
    Cancelled,
    NotReady,
    OutOfTime,
    RowFailed,
    raised_at,
)
from guardrail_service.guard.waiting import Cancellation, Turn
from guardrail_service.inference.queue.backlog import RowDone
from guardrail_service.inference.queue.cost import QueuePlace
from guardrail_service.inference.queue.scheduler import Known, RowFuture, Scheduler, Ticket
from guardrail_service.policy.decide import Policy, Rule
from guardrail_service.text.budget import Budget, check_time, spending
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import (
    DetectorResult,
    NoValue,
    Outcome,
    Row,
    RowOutput,
    Span,
    State,
    Timings,
)

_LOG = logging.getLogger(__name__)


class CheckClock(NamedTuple):
    """The start of a check, for measuring and for the deadline."""

    perf: float
    monotonic: float

    @classmethod
    def since(cls, arrived: float | None) -> CheckClock:
        """Return the clock of a check that arrived at a monotonic second; None: now."""
        now = time.monotonic()
        waited = 0.0 if arrived is None else now - arrived
        return cls(time.perf_counter() - waited, now - waited)


ROWS_LOOK_S = 0.5
"""Seconds between two looks at what the rows of a check have taken; it is limited to minutes."""
_COST_ORDER = {"text": 0, "pattern": 1, "model": 2}


class Check:
    """One sample on its way through the detectors of one policy; `known` rows are not run again."""

    def __init__(
        self,
        policy: Policy,
        sample: SegmentedSample,
        registry: Registry,
        turn: Turn,
        deadline: float | None,
        clock: CheckClock,
        budget: Callable[[], Budget],
        rows_s: float = math.inf,
        known: Mapping[Row, RowOutput] | None = None,
    ) -> None:
        self._known = known
        self._started = clock.perf
        self._turn = turn
        self._sample = sample
        self._rules = sorted(policy.rules.values(), key=lambda rule: _COST_ORDER[rule.spec.cost])
        self._detectors = {rule.spec.id: registry.detectors[rule.spec.id] for rule in self._rules}
        self._deadline = deadline
        self._budget = budget
        self._rows_s = rows_s
        self._has_overspent = False
        self.was_ended = False
        """Whether the time was over before every detector was done."""
        self._outcomes: dict[str, Outcome] = {}
        self._rows: dict[str, Sequence[Row]] = {}
        self._latency: dict[str, float] = {}
        self._unique: dict[Row, int] = {}
        self._ticket = _NOTHING_QUEUED
        self._cancellation = _NOBODY_LEFT

    def submit(self, scheduler: Scheduler, cancellation: Cancellation, place: QueuePlace) -> None:
        """Encode every detector's rows and queue each distinct row once, not before `place`."""
        with spending(self._budget()):
            self._prepare()
        for rows in self._rows.values():
            for row in rows:
                self._unique.setdefault(row, len(self._unique))
        rows, owner = tuple(self._unique), cancellation.owner
        if self._known is None:
            self._ticket = scheduler.submit(rows, self._deadline, owner, not_before=place)
        else:
            new = tuple(row for row in rows if row not in self._known)
            ticket = scheduler.submit(new, self._deadline, owner, not_before=place)
            self._ticket = ticket.beside(rows, self._known)
        self._cancellation = cancellation
        cancellation.attach(self._turn, self._ticket)

    def give_up(self) -> None:
        """Note that the sample took too long to be cut: no detector can look at it."""
        for rule in self._rules:
            self._note(rule.spec.id, _TOO_LATE)

    def _prepare(self) -> None:
        try:
            abstained = abstains(self._sample)
        except OutOfTime:
            self.give_up()
            return
        for rule in self._rules:
            name = rule.spec.id
            if abstained and rule.spec.skip_on_abstention:
                self._note(name, _ABSTAINED)
            elif rule.spec.needs and getattr(rule.parameters, rule.spec.needs) is None:
                self._note(name, _NOTHING_ASKED)
            elif rule.spec.cost == "model" and self._is_late():
                self._note(name, _TOO_LATE)
            elif rule.spec.cost == "model":
                self._encode(rule)

    def outcomes(self) -> Mapping[str, Outcome]:
        """Return every detector's outcome: cheap ones while the model rows run."""
        with spending(self._budget()):
            for rule in self._rules:
                if rule.spec.id not in self._outcomes:
                    rows = self._rows.get(rule.spec.id, ())
                    self._note(rule.spec.id, self._reduce(rule, rows))
                if self._cancellation.cancelled:
                    raise Cancelled("the caller left")
        self._ticket.cancel()  # what the deadline left undone is of no use any more
        return self._outcomes

    def finished(self) -> Mapping[Row, RowOutput]:
        """Return the outputs of the rows that ran, or were known, when the check ended."""
        return {
            row: self._ticket.futures[place].result().outputs
            for row, place in self._unique.items()
            if place < len(self._ticket.futures) and _has_outputs(self._ticket.futures[place])
        }

    @property
    def cost_ms(self) -> float:
        """Return the estimated cost of the rows that ran for this check."""
        return self._ticket.cost_ms

    def timed(self, name: str, result: DetectorResult) -> DetectorResult:
        """Return a result with the milliseconds from the start of the check to its outcome."""
        return dataclasses.replace(result, latency_ms=self._latency[name])

    def timings(self) -> Timings:
        """Return where the time went, over the rows that ran. Waiting for turns is queueing."""
        done = self._done()
        total = (time.perf_counter() - self._started) * 1e3
        queued = min((row.queue_ms for row in done if row.queue_ms), default=0.0)
        return Timings(
            queue=min(queued + self._turn.waited_ms, total),
            tokenize=sum(row.tokenize_ms for row in done),
            inference=sum(row.inference_ms for row in done),
            total=total,
        )

    def _note(self, name: str, outcome: Outcome) -> None:
        self.was_ended = self.was_ended or outcome is _TOO_LATE
        self._outcomes[name] = outcome
        self._latency[name] = (time.perf_counter() - self._started) * 1e3

    def _encode(self, rule: Rule) -> None:
        try:
            rows = self._detectors[rule.spec.id].encode(self._sample, rule.parameters)
        except OutOfTime:
            self._note(rule.spec.id, _TOO_LATE)
        except Exception as error:  # noqa: BLE001 - one detector's fault is its own state
            self._note(rule.spec.id, _failed(error))
        else:
            self._rows[rule.spec.id] = rows

    def _reduce(self, rule: Rule, rows: Sequence[Row]) -> Outcome:
        """Wait for the detector's rows as long as there is time, then compute its outcome."""
        futures = [self._ticket.futures[self._unique[row]] for row in rows]
        try:
            if self._is_late():
                check_time()
            outputs = _outputs(futures)
            if outputs is None and self._wait(futures):
                outputs = _outputs(futures)
            if outputs is None:
                return _TOO_LATE
            outcome = self._detectors[rule.spec.id].reduce(self._sample, outputs, rule.parameters)
            return checked(rule, outcome)
        except OutOfTime:
            return _TOO_LATE
        except CancelledError:
            return self._dropped()
        except Exception as error:  # noqa: BLE001 - one detector's fault is its own state
            return _failed(error)

    def _wait(self, futures: Sequence[RowFuture]) -> bool:
        """Return whether rows are done in time; while they run, others may compute."""
        with self._turn.away():
            while not self._ticket.wait(futures, self._until_look_s()):
                self._has_overspent = self._rows_ms() > self._rows_s * 1e3
                if self._has_overspent:
                    self._ticket.cancel()
                if self._has_overspent or self._is_late():
                    return False
        return True

    def _until_look_s(self) -> float | None:
        look_s = None if math.isinf(self._rows_s) else ROWS_LOOK_S
        if self._deadline is None:
            return look_s
        left_s = max(0.0, self._deadline - time.monotonic())
        return left_s if look_s is None else min(left_s, look_s)

    def _rows_ms(self) -> float:
        """Return what the rows took that ran for this check."""
        return sum(row.tokenize_ms + row.inference_ms for row in self._done())

    def _done(self) -> list[RowDone]:
        return [future.result() for future in self._ticket.futures if _has_run(future)]

    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _dropped(self) -> Outcome:
        """Return what dropped rows mean: no time is left, the caller left or the service ends.

        Raises:
            NotReady: If the service shut down.
        """
        if self._has_overspent or self._is_late():
            return _TOO_LATE
        if self._cancellation.cancelled:
            raise Cancelled("the caller left")
        raise NotReady("the service is shutting down")


_NOTHING_QUEUED = Ticket(())
_NOBODY_LEFT = Cancellation()
"""Stand for what a check has only once its rows are queued."""
_TOO_LATE = Outcome(missing=NoValue(State.NOT_EVALUATED, "deadline"))
_ABSTAINED = Outcome.not_applicable("abstention")
_NOTHING_ASKED = Outcome.not_applicable("missing_input")


def _outputs(futures: Sequence[RowFuture]) -> list[RowOutput] | None:
    """Return the outputs of some rows, in order; None while one of them is not done.

    Raises:
        CancelledError: If one was dropped.
        RowFailed: If one failed.
    """
    if any(not isinstance(future, Known) and not future.done() for future in futures):
        return None
    done = [f.row if isinstance(f, Known) else f.result() for f in futures]
    return [row.outputs for row in done]


def _has_outputs(future: RowFuture) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _has_run(future: RowFuture) -> bool:
    """Return whether a row was run for its askers, and gave outputs."""
    if isinstance(future, Known) or not future.done():
        return False
    return not future.cancelled() and future.exception() is None


def _failed(error: Exception) -> Outcome:
    # Not the message: an exception of third-party code may quote the text it choked on.
    _LOG.error("detector failed: %s at %s", type(error).__name__, raised_at(error))
    code = "row_failed" if isinstance(error, RowFailed) else type(error).__name__
    return _error(code)


def _error(reason: str) -> Outcome:
    return Outcome(missing=NoValue(State.ERROR, reason))


def checked(rule: Rule, outcome: Outcome) -> Outcome:
    """Return the outcome, or an error if its scores are not those of the detector's metrics."""
    if outcome.missing is not None:
        return outcome
    for metric in rule.spec.metrics:
        if metric.key not in outcome.scores:
            if metric.optional and metric.key not in rule.cuts:
                continue
            return _error("missing_metric")
        score = outcome.scores[metric.key]
        if not (math.isfinite(score) and metric.low <= score <= metric.high):
            return _error("score_out_of_range")
    if not outcome.scores.keys() <= {metric.key for metric in rule.spec.metrics}:
        return _error("unknown_metric")
    return outcome


def redact(answer: str, spans: Iterable[Span]) -> str:
    """Return the answer with every span that has a replacement replaced.

    Spans of several detectors may overlap. Overlapping spans are replaced together, once: from the
    first start to the last end, by the replacement of the longest of them (of equally long ones,
    the one that starts first, then the smaller replacement), so nothing of any finding stays
    visible. Spans that only touch are replaced one by one. The order of `spans` does not matter.

    Args:
        answer: The text the spans point into.
        spans: Findings with code-point offsets [start, end). Those without replacement, and empty
            ones, are ignored; offsets outside the answer are cut to it.
    """
    parts: list[str] = []
    position = 0
    for start, end, replacement in _merged(len(answer), spans):
        parts += (answer[position:start], replacement)
        position = end
    return "".join((*parts, answer[position:]))


def _merged(size: int, spans: Iterable[Span]) -> list[tuple[int, int, str]]:
    """Return disjoint stretches with what replaces them, in order."""
    wanted = sorted(
        (max(0, s.start), min(size, s.end), s.replacement)
        for s in spans
        if s.replacement is not None and max(0, s.start) < min(size, s.end)
    )
    merged: list[tuple[int, int, str]] = []
    longest = 0
    for start, end, replacement in wanted:
        if merged and start < merged[-1][1]:
            first, last, shown = merged[-1]
            if end - start > longest:
                longest, shown = end - start, replacement
            merged[-1] = (first, max(last, end), shown)
        else:
            merged.append((start, end, replacement))
            longest = end - start
    return merged
