"""One sample in, one verdict out. The only orchestration: API, client and offline runs use it."""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, wait
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple

from pydantic import ValidationError

from guardrail_service.config import check_threshold
from guardrail_service.detectors.no_answer import abstains
from guardrail_service.errors import (
    Cancelled,
    ConfigurationError,
    InputError,
    LimitExceeded,
    OverrideRefused,
    RowFailed,
    UnknownPolicy,
    raised_at,
)
from guardrail_service.inference.scheduler import Scheduler, Ticket
from guardrail_service.policy import Cut, Policy, Rule, decide
from guardrail_service.redaction import redact
from guardrail_service.registry import AnyDetector, Registry
from guardrail_service.text.segmented import SegmentedSample
from guardrail_service.text.windows import Windower
from guardrail_service.types import (
    DetectorResult,
    Mode,
    Outcome,
    Role,
    Row,
    Sample,
    State,
    Timings,
    Verdict,
)

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Override:
    """What one request changes about one detector."""

    thresholds: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)


class Cancellation:
    """Tells a running check that nobody waits for it any more. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ticket: Ticket | None = None
        self.cancelled = False

    def cancel(self) -> None:
        """Drop the check's queued rows; the check raises Cancelled."""
        with self._lock:
            self.cancelled = True
            if self._ticket is not None:
                self._ticket.cancel()

    def attach(self, ticket: Ticket) -> None:
        """Name the rows to drop; drops them at once if the caller is already gone."""
        with self._lock:
            self._ticket = ticket
            if self.cancelled:
                ticket.cancel()


class Guard:
    """Judges samples under named policies.

    Args:
        policies: By name; the first is used where a request names none.
        registry: Where the policies' detectors are found.
        scheduler: Runs model rows.
        windowers: How each role's model counts tokens.
        languages: Languages each role's model reads.
        max_sentences: Sentences of answer and passages together that one sample may have.
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
    ) -> None:
        self.policies = dict(policies)
        self.default_policy = default_policy or next(iter(self.policies))
        self._registry = registry
        self._scheduler = scheduler
        self._windowers = dict(windowers)
        self._languages = dict(languages)
        self._max_sentences = max_sentences

    def check(
        self,
        sample: Sample,
        policy: str | None = None,
        overrides: Mapping[str, Override] | None = None,
        deadline_ms: float | None = None,
        mode: Mode = "enforce",
        cancellation: Cancellation | None = None,
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

        Raises:
            InputError: If the sample or the overrides cannot be judged as they are.
            Overloaded: If other requests' rows fill the queue.
            Cancelled: If the caller left.
        """
        clock = _Clock(time.perf_counter(), time.monotonic())
        rules = self.policy_for(policy, overrides or {})
        check = _Check(rules, self._segmented(sample), self._registry, deadline_ms, clock)
        check.submit(self._scheduler, cancellation or Cancellation())
        outcomes = check.outcomes()
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
        )

    def policy_for(self, name: str | None, overrides: Mapping[str, Override]) -> Policy:
        """Return a loaded policy with a request's changes applied.

        Raises:
            UnknownPolicy: If no such policy is loaded; the message lists those that are.
            InputError: If an override names what the policy does not run, or does not fit.
        """
        policy = self.policies.get(self.default_policy if name is None else name)
        if policy is None:
            known = ", ".join(sorted(self.policies))
            raise UnknownPolicy(f"not loaded; expected one of: {known}", "policy")
        for detector, override in overrides.items():
            policy = policy.with_rule(self._overridden(policy, detector, override))
        return policy

    def _overridden(self, policy: Policy, detector: str, override: Override) -> Rule:
        rule = policy.rules.get(detector)
        if rule is None:
            raise InputError(
                f"policy {policy.name!r} does not run it; expected one of: "
                + ", ".join(policy.rules),
                _field_name(detector, self._registry),
            )
        where = f"detectors.{detector}"
        free = rule.spec.request_parameters
        if not policy.allow_overrides and (override.thresholds or set(override.parameters) - free):
            allowed = ", ".join(sorted(free)) or "nothing"
            raise OverrideRefused(
                f"policy {policy.name!r} lets requests set {allowed} here; expected that, "
                "or a policy with allow_overrides",
                where,
            )
        return _merge(rule, override, self._registry[detector], where)

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


def _field_name(detector: str, registry: Registry) -> str:
    """Return where the unknown key is, without repeating text that only the caller wrote."""
    known = any(detector == spec.id for spec in registry.specs())
    return f"detectors.{detector}" if known else "detectors"


_OUR_WORDS = frozenset({"value_error", "assertion_error", "union_tag_invalid"})
"""Kinds of pydantic errors whose message may quote the value; the others name types and limits."""


def _refused(detector: AnyDetector, failure: ValidationError, where: str) -> InputError:
    """Return the first fault of a request's parameters, without text that the caller wrote.

    Files may be quoted, requests may not. So a detector's own words reach a caller only about its
    request parameters, whose messages are written for that.
    """
    first = failure.errors()[0]
    fields = detector.parameters.model_fields
    ours = {name for key, field in fields.items() for name in (key, field.alias)}
    known = tuple(takewhile(lambda part: isinstance(part, int) or part in ours, first["loc"]))
    place = ".".join((where, *map(str, known)))
    if first["type"] not in _OUR_WORDS:
        return InputError(first["msg"], place)
    if known[:1] and known[0] in detector.spec.request_parameters and "error" in first["ctx"]:
        return InputError(str(first["ctx"]["error"]), place)
    return InputError("does not fit; expected what the documentation lists", place)


def _merge(rule: Rule, override: Override, detector: AnyDetector, where: str) -> Rule:
    cuts = dict(rule.cuts)
    for metric, value in override.thresholds.items():
        try:
            cuts[metric] = Cut(check_threshold(rule.spec, metric, value, where), calibrated=False)
        except ConfigurationError as error:
            raise InputError(f"expected {error.expected}", f"{where}.thresholds") from error
    parameters = rule.parameters
    if override.parameters:
        merged = {**parameters.model_dump(by_alias=True), **override.parameters}
        try:
            parameters = detector.parameters.model_validate(merged)
        except ValidationError as failure:
            raise _refused(detector, failure, f"{where}.parameters") from failure
    return dataclasses.replace(rule, parameters=parameters, cuts=cuts)


class _Clock(NamedTuple):
    """When a check began: for measuring, and for the deadline."""

    perf: float
    monotonic: float


_COST_ORDER = {"text": 0, "pattern": 1, "model": 2}


class _Check:
    """One sample on its way through the detectors of one policy."""

    def __init__(
        self,
        policy: Policy,
        sample: SegmentedSample,
        registry: Registry,
        deadline_ms: float | None,
        clock: _Clock,
    ) -> None:
        self._started = clock.perf
        self._sample = sample
        self._rules = sorted(policy.rules.values(), key=lambda rule: _COST_ORDER[rule.spec.cost])
        self._registry = registry
        budget = policy.deadline_ms if deadline_ms is None else deadline_ms
        self._deadline = (
            None if budget is None or math.isinf(budget) else clock.monotonic + budget / 1e3
        )
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
            elif rule.spec.cost == "model":
                self._encode(rule)
        for rows in self._rows.values():
            for row in rows:
                self._unique.setdefault(row, len(self._unique))
        self._ticket = scheduler.submit(tuple(self._unique), self._deadline)
        self._cancellation = cancellation
        cancellation.attach(self._ticket)

    def outcomes(self) -> Mapping[str, Outcome]:
        """Return every detector's outcome: cheap ones while the model rows run."""
        for rule in self._rules:
            if rule.spec.id not in self._outcomes:
                rows = self._rows.get(rule.spec.id, ())
                self._note(rule.spec.id, self._reduce(rule, rows))
            if self._cancellation.cancelled:
                raise Cancelled("the caller left")
        return self._outcomes

    def timed(self, name: str, result: DetectorResult) -> DetectorResult:
        """Return a result with the milliseconds from the start of the check to its outcome."""
        return dataclasses.replace(result, latency_ms=self._latency[name])

    def timings(self) -> Timings:
        """Return where the time went, over the rows that ran."""
        done = [f.result() for f in self._ticket.futures if f.done() and _succeeded(f)]
        return Timings(
            queue=min((row.queue_ms for row in done), default=0.0),
            tokenize=sum(row.tokenize_ms for row in done),
            inference=sum(row.inference_ms for row in done),
            total=(time.perf_counter() - self._started) * 1e3,
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
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        if wait(futures, timeout=left).not_done:
            return Outcome(State.NOT_EVALUATED, reason="deadline")
        try:
            outputs = [future.result().outputs for future in futures]
            outcome = self._registry[rule.spec.id].reduce(self._sample, outputs, rule.parameters)
            return _checked(rule, outcome)
        except CancelledError:
            return Outcome(State.NOT_EVALUATED, reason="deadline")
        except Exception as error:  # noqa: BLE001 - one detector's fault is its own state
            return _failed(error)


def _succeeded(future: Any) -> bool:
    return not future.cancelled() and future.exception() is None


def _failed(error: Exception) -> Outcome:
    # Not the message: an exception of third-party code may quote the text it choked on.
    _LOG.error("detector failed: %s at %s", type(error).__name__, raised_at(error))
    code = "row_failed" if isinstance(error, RowFailed) else type(error).__name__
    return Outcome(State.ERROR, reason=code)


def _checked(rule: Rule, outcome: Outcome) -> Outcome:
    """Return the outcome, or an error if its scores are not those of the detector's metrics."""
    if outcome.state is not State.EVALUATED:
        return outcome
    for metric in rule.spec.metrics:
        if metric.key not in outcome.scores:
            return Outcome(State.ERROR, reason="missing_metric")
        if not metric.holds(outcome.scores[metric.key]):
            return Outcome(State.ERROR, reason="score_out_of_range")
    if len(outcome.scores) > len(rule.spec.metrics):
        return Outcome(State.ERROR, reason="unknown_metric")
    return outcome
