"""One sample in, one verdict out. The only orchestration: API, client and offline runs use it."""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, NamedTuple

from guardrail_service.detectors.no_answer.detector import abstains
from guardrail_service.detectors.registry import Registry
from guardrail_service.errors import (
    Cancelled,
    LimitExceeded,
    NotReady,
    RowFailed,
    UnknownPolicy,
    choices,
    raised_at,
)
from guardrail_service.guard.overrides import Override, overridden
from guardrail_service.guard.redaction import redact
from guardrail_service.guard.turns import Turn, Turns
from guardrail_service.inference.queue.backlog import BACKGROUND_S, RowFuture, Ticket, order_of
from guardrail_service.inference.queue.scheduler import Scheduler
from guardrail_service.policy.decide import Policy, Rule, decide
from guardrail_service.text.sample import SegmentedSample, Windower
from guardrail_service.types import (
    DetectorResult,
    Mode,
    NoValue,
    Outcome,
    Passage,
    Role,
    Row,
    Sample,
    State,
    Timings,
    Verdict,
)

_LOG = logging.getLogger(__name__)


class Cancellation:
    """Tells a running check that nobody waits for it any more. Thread-safe.

    Args:
        owner: Whose rows the check's are; those of one owner (the items of a batch) are never
            refused because of each other. None: the check's own.
    """

    def __init__(self, owner: object | None = None) -> None:
        self._owner = owner
        self._lock = threading.Lock()
        self._waits: tuple[Ticket | Turn, ...] = ()
        self.cancelled = False

    @property
    def owner(self) -> object:
        """Return whose rows the check's are."""
        return self if self._owner is None else self._owner  # not kept: that would be a cycle

    def cancel(self) -> None:
        """Drop the check's queued rows; the check raises Cancelled."""
        with self._lock:
            self.cancelled = True
            self._drop()

    def attach(self, *waits: Ticket | Turn) -> None:
        """Name what the check waits for as of now; dropped if the caller is already gone."""
        with self._lock:
            self._waits = waits
            if self.cancelled:
                self._drop()

    def _drop(self) -> None:
        for waits in self._waits:
            waits.cancel()


WARM_AT_ONCE = 256
"""Texts queued at a time: fewer than the encoder's memory holds, so that what reads its states
finds them there."""


class Warmed(NamedTuple):
    """How many distinct sentences of some passages were new, known already, or failed."""

    new: int
    known: int
    failed: int


class Guard:
    """Judges samples under named policies.

    Attributes:
        turns: Which checks compute; `close` lets those that wait go on to where they end.

    Args:
        policies: By name; the first is used where a request names none.
        registry: Where the policies' detectors are found.
        scheduler: Runs model rows.
        windowers: How each role's model counts tokens.
        languages: Languages each role's model reads.
        max_sentences: Sentences of answer and passages together that one sample may have.
        default_policy: Which policy requests mean that name none; None: the first.
        warming: What makes of a passage's text the rows that compute ahead what models need of it.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy],
        registry: Registry,
        scheduler: Scheduler,
        windowers: Mapping[Role, Windower],
        languages: Mapping[Role, frozenset[str]],
        max_sentences: int,
        default_policy: str | None = None,
        warming: Sequence[Callable[[str], Row]] = (),
    ) -> None:
        self.policies = dict(policies)
        self.default_policy = default_policy or next(iter(self.policies))
        self._registry = registry
        self._scheduler = scheduler
        self._windowers = dict(windowers)
        self._languages = dict(languages)
        self._max_sentences = max_sentences
        self._warming = tuple(warming)
        self.turns = Turns()

    def check(
        self,
        sample: Sample,
        policy: str | None = None,
        overrides: Mapping[str, Override] | None = None,
        deadline_ms: float | None = None,
        mode: Mode = "enforce",
        cancellation: Cancellation | None = None,
        arrived: float | None = None,
    ) -> Verdict:
        """Return the verdict on one sample. Blocks its thread until done, due or cancelled.

        Args:
            sample: The answer to judge.
            policy: Name of a loaded policy; None takes the default one.
            overrides: Changes this request makes, by detector id.
            deadline_ms: Reply after this long with what is known; None takes the policy's own
                deadline, infinity waits for everything.
            mode: `shadow` reports the decision and always allows.
            cancellation: Lets the caller drop the check.
            arrived: Monotonic second from which the deadline counts; None: now.

        Raises:
            InputError: If the sample or the overrides cannot be judged as they are.
            Overloaded: If other requests' rows fill the queue or make the deadline impossible.
            Cancelled: If the caller left.
            NotReady: If the service shut down first.
        """
        rules = self.policy_for(policy, overrides or {})
        return self.judge(rules, sample, deadline_ms, mode, cancellation, arrived)

    def judge(
        self,
        rules: Policy,
        sample: Sample,
        deadline_ms: float | None = None,
        mode: Mode = "enforce",
        cancellation: Cancellation | None = None,
        arrived: float | None = None,
    ) -> Verdict:
        """Return the verdict under a policy at hand, such as the part of one that runs in flight.

        Raises:
            InputError: If the sample cannot be judged as it is.
            Overloaded: If other requests' rows fill the queue or make the deadline impossible.
            Cancelled: If the caller left.
            NotReady: If the service shut down first.
        """
        clock = _Clock.since(arrived)
        cancellation = cancellation or Cancellation()
        due = _due(rules, deadline_ms, clock.monotonic)
        with self._turn(order_of(due, clock.monotonic), due, cancellation) as turn:
            working_ms = time.thread_time() * -1e3
            check = _Check(rules, self._segmented(sample), self._registry, turn, due, clock)
            check.submit(self._scheduler, cancellation)
            outcomes = check.outcomes()
            working_ms += time.thread_time() * 1e3
            self._scheduler.costs.learn(CHECK, size(sample), check.cost_ms + working_ms)
            decided = decide(rules, outcomes, mode)
            results = {name: check.timed(name, result) for name, result in decided.results.items()}
            spans = [span for result in results.values() for span in result.spans]
            return Verdict(
                decision=decided.decision,
                action=decided.action,
                status=decided.status,
                calibrated=decided.calibrated,
                policy=rules.ref,
                detectors=results,
                timings=check.timings(),
                redacted_answer=redact(sample.answer, spans),
                summary=decided.summary,
                flagged=decided.flagged,
            )

    def warm(self, contexts: Sequence[Passage], cancellation: Cancellation) -> Warmed:
        """Compute ahead what models need of passages. Blocks; gives way to every check.

        Raises:
            InputError: If there are too many sentences.
            Overloaded: If other requests' rows fill the queue.
            Cancelled: If the caller left.
            NotReady: If the service shut down first.
        """
        order = order_of(None, time.monotonic(), BACKGROUND_S)
        with self._turn(order, None, cancellation):
            sample = self._segmented(Sample("", contexts=tuple(contexts)))
            found = sample.context_windows("embedding") if self._warming else ()
        texts = list(dict.fromkeys(window.text for windows in found for window in windows))
        parts = [
            self._warm(texts[start : start + WARM_AT_ONCE], cancellation)
            for start in range(0, len(texts), WARM_AT_ONCE)
        ]
        return Warmed(*(sum(part[n] for part in parts) for n in range(3)))

    def _warm(self, texts: Sequence[str], cancellation: Cancellation) -> Warmed:
        rows = [row(text) for row in self._warming for text in texts]
        ticket = self._scheduler.submit(rows, owner=cancellation.owner, patience_s=BACKGROUND_S)
        cancellation.attach(ticket)
        ticket.wait()
        if any(future.cancelled() for future in ticket.futures):
            if cancellation.cancelled:
                raise Cancelled("the caller left")
            raise NotReady("the service is shutting down")
        pairs = list(zip(rows, ticket.futures, strict=True))
        failed = {row.text for row, future in pairs if future.exception() is not None}
        new = {row.text for row, f in pairs if row.text not in failed and f.result().inference_ms}
        return Warmed(len(new), len(texts) - len(new) - len(failed), len(failed))

    def expect(
        self,
        sample_size: int,
        policy: str | None,
        deadline_ms: float | None,
        arrived: float,
        owner: object,
    ) -> None:
        """Refuse, before anything is read, a check that others' work makes impossible in time.

        Args:
            sample_size: See `size`.
            policy: Name of a loaded policy; an unknown one is refused later.
            deadline_ms: As for `check`.
            arrived: Monotonic second from which the deadline counts.
            owner: Whose check it is; `Scheduler.forget` ends the expectation.

        Raises:
            Overloaded: If it cannot be done in time and could be on an idle service.
        """
        rules = self.policies.get(self.default_policy if policy is None else policy)
        due = None if rules is None else _due(rules, deadline_ms, arrived)
        self._scheduler.expect(self._scheduler.costs.estimate(CHECK, sample_size), due, owner)

    def policy_for(self, name: str | None, overrides: Mapping[str, Override]) -> Policy:
        """Return a loaded policy with a request's changes applied.

        Raises:
            UnknownPolicy: If no such policy is loaded; the message lists those that are.
            InputError: If an override names what the policy does not run, or does not fit.
        """
        policy = self.policies.get(self.default_policy if name is None else name)
        if policy is None:
            expected = choices(name or "", sorted(self.policies), "policy", "GET /v1/policies")
            raise UnknownPolicy(f"not loaded; expected {expected}", "policy")
        for detector, override in overrides.items():
            policy = policy.with_rule(overridden(policy, detector, override, self._registry))
        return policy

    @contextmanager
    def _turn(self, order: float, due: float | None, cancellation: Cancellation) -> Iterator[Turn]:
        turn = self.turns.turn(order, due)
        cancellation.attach(turn)
        with turn:
            if cancellation.cancelled:
                raise Cancelled("the caller left")
            if self.turns.is_closed:
                raise NotReady("the service is shutting down")
            yield turn

    def _segmented(self, sample: Sample) -> SegmentedSample:
        segmented = SegmentedSample(sample, self._windowers, self._languages)
        count = segmented.sentence_count()
        if count > self._max_sentences:
            raise LimitExceeded(
                f"answer and passages have {count} sentences; expected at most "
                f"{self._max_sentences}",
                "contexts" if sample.contexts else "answer",
            )
        return segmented


CHECK = "check"
"""Kind of work under which the cost model learns whole checks: model rows and everything else."""


def size(sample: Sample) -> int:
    """Return the code points of a sample, by which the cost of a check is estimated."""
    passages = sum(len(passage.text) for passage in sample.contexts)
    return len(sample.answer) + len(sample.question or "") + passages


def _due(policy: Policy, deadline_ms: float | None, start: float) -> float | None:
    """Return the monotonic second at which the reply must leave; None: when it is complete."""
    budget = policy.deadline_ms if deadline_ms is None else deadline_ms
    return None if budget is None or math.isinf(budget) else start + budget / 1e3


class _Clock(NamedTuple):
    """When a check began: for measuring, and for the deadline."""

    perf: float
    monotonic: float

    @classmethod
    def since(cls, arrived: float | None) -> _Clock:
        """Return the clock of a check that arrived at a monotonic second; None: now."""
        now = time.monotonic()
        waited = 0.0 if arrived is None else now - arrived
        return cls(time.perf_counter() - waited, now - waited)


_COST_ORDER = {"text": 0, "pattern": 1, "model": 2}


class _Check:
    """One sample on its way through the detectors of one policy."""

    def __init__(
        self,
        policy: Policy,
        sample: SegmentedSample,
        registry: Registry,
        turn: Turn,
        deadline: float | None,
        clock: _Clock,
    ) -> None:
        self._started = clock.perf
        self._turn = turn
        self._sample = sample
        self._rules = sorted(policy.rules.values(), key=lambda rule: _COST_ORDER[rule.spec.cost])
        self._registry = registry
        self._deadline = deadline
        self._outcomes: dict[str, Outcome] = {}
        self._rows: dict[str, Sequence[Row]] = {}
        self._latency: dict[str, float] = {}
        self._unique: dict[Row, int] = {}
        self._ticket = Ticket(())
        self._cancellation = Cancellation()

    def submit(self, scheduler: Scheduler, cancellation: Cancellation) -> None:
        """Encode every detector's rows and queue each distinct row once."""
        abstained = abstains(self._sample)
        for rule in self._rules:
            name = rule.spec.id
            if abstained and rule.spec.skip_on_abstention:
                self._note(name, Outcome.not_applicable("abstention"))
            elif rule.spec.cost == "model" and self._is_late():
                self._note(name, _TOO_LATE)
            elif rule.spec.cost == "model":
                self._encode(rule)
        for rows in self._rows.values():
            for row in rows:
                self._unique.setdefault(row, len(self._unique))
        self._ticket = scheduler.submit(tuple(self._unique), self._deadline, cancellation.owner)
        self._cancellation = cancellation
        cancellation.attach(self._turn, self._ticket)

    def outcomes(self) -> Mapping[str, Outcome]:
        """Return every detector's outcome: cheap ones while the model rows run."""
        for rule in self._rules:
            if rule.spec.id not in self._outcomes:
                rows = self._rows.get(rule.spec.id, ())
                self._note(rule.spec.id, self._reduce(rule, rows))
            if self._cancellation.cancelled:
                raise Cancelled("the caller left")
        self._ticket.cancel()  # what the deadline left undone is of no use any more
        return self._outcomes

    @property
    def cost_ms(self) -> float:
        """Return the estimated cost of the rows that ran for this check."""
        return self._ticket.cost_ms

    def timed(self, name: str, result: DetectorResult) -> DetectorResult:
        """Return a result with the milliseconds from the start of the check to its outcome."""
        return dataclasses.replace(result, latency_ms=self._latency[name])

    def timings(self) -> Timings:
        """Return where the time went, over the rows that ran. Waiting for turns is queueing."""
        done = [f.result() for f in self._ticket.futures if f.done() and _succeeded(f)]
        total = (time.perf_counter() - self._started) * 1e3
        queued = min((row.queue_ms for row in done if row.queue_ms), default=0.0)
        return Timings(
            queue=min(queued + self._turn.waited_ms, total),
            tokenize=sum(row.tokenize_ms for row in done),
            inference=sum(row.inference_ms for row in done),
            total=total,
        )

    def _note(self, name: str, outcome: Outcome) -> None:
        self._outcomes[name] = outcome
        self._latency[name] = (time.perf_counter() - self._started) * 1e3

    def _encode(self, rule: Rule) -> None:
        try:
            rows = self._registry[rule.spec.id].encode(self._sample, rule.parameters)
        except Exception as error:  # noqa: BLE001 - one detector's fault is its own state
            self._note(rule.spec.id, _failed(error))
        else:
            self._rows[rule.spec.id] = rows

    def _reduce(self, rule: Rule, rows: Sequence[Row]) -> Outcome:
        """Wait for the detector's rows as long as there is time, then compute its outcome."""
        futures = [self._ticket.futures[self._unique[row]] for row in rows]
        if not self._wait(futures):
            return _TOO_LATE
        try:
            outputs = [future.result().outputs for future in futures]
            outcome = self._registry[rule.spec.id].reduce(self._sample, outputs, rule.parameters)
            return _checked(rule, outcome)
        except CancelledError:
            return self._dropped()
        except Exception as error:  # noqa: BLE001 - one detector's fault is its own state
            return _failed(error)

    def _wait(self, futures: Sequence[RowFuture]) -> bool:
        """Return whether rows are done in time; while they run, others may compute."""
        if all(future.done() for future in futures):
            return True
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        with self._turn.away():
            return self._ticket.wait(futures, left)

    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _dropped(self) -> Outcome:
        """Return what dropped rows mean: the deadline passed, the caller left or the service ends.

        Raises:
            NotReady: If the service shut down.
        """
        if self._is_late():
            return _TOO_LATE
        if self._cancellation.cancelled:
            raise Cancelled("the caller left")
        raise NotReady("the service is shutting down")


_TOO_LATE = Outcome(missing=NoValue(State.NOT_EVALUATED, "deadline"))


def _succeeded(future: Any) -> bool:
    return not future.cancelled() and future.exception() is None


def _failed(error: Exception) -> Outcome:
    # Not the message: an exception of third-party code may quote the text it choked on.
    _LOG.error("detector failed: %s at %s", type(error).__name__, raised_at(error))
    code = "row_failed" if isinstance(error, RowFailed) else type(error).__name__
    return _error(code)


def _error(reason: str) -> Outcome:
    return Outcome(missing=NoValue(State.ERROR, reason))


def _checked(rule: Rule, outcome: Outcome) -> Outcome:
    """Return the outcome, or an error if its scores are not those of the detector's metrics."""
    if outcome.state is not State.EVALUATED:
        return outcome
    for metric in rule.spec.metrics:
        if metric.key not in outcome.scores:
            if metric.optional and metric.key not in rule.cuts:
                continue
            return _error("missing_metric")
        score = outcome.scores[metric.key]
        if not (math.isfinite(score) and metric.holds(score)):
            return _error("score_out_of_range")
    if not outcome.scores.keys() <= {metric.key for metric in rule.spec.metrics}:
        return _error("unknown_metric")
    return outcome
