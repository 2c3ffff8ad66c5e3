"""Judges one answer while it is written: every release by what concerns its part, the end by all.

Blocks its thread while it judges; `server/streams.py` brings it text and carries its records away.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from guardrail_service.detectors.registry import InFlight
from guardrail_service.guard.check import redact
from guardrail_service.guard.guard import Guard
from guardrail_service.guard.waiting import Cancellation
from guardrail_service.policy.decide import (
    Policy,
    Rule,
    asked_action,
    explain,
    findings,
    summarise,
    worst_first,
)
from guardrail_service.policy.served import PolicySet
from guardrail_service.streaming.holdback import Holdback
from guardrail_service.text.language import has_words
from guardrail_service.types import (
    Action,
    Coverage,
    DetectorResult,
    Mode,
    Sample,
    Span,
    State,
    Status,
    Timings,
    Verdict,
)

StopOn = Literal["block", "flag"]


@dataclass(frozen=True, slots=True)
class Release:
    """A part of the answer that may be shown.

    Attributes:
        start: Where the part begins in the answer as it was written, in code points.
        end: Where it ends; everything before has been decided.
        text: What to show: the part, with findings replaced.
        flagged: Detectors that flagged it and let it pass.
        timings: What judging it took.
    """

    start: int
    end: int
    text: str
    flagged: tuple[str, ...]
    timings: Timings


@dataclass(frozen=True, slots=True)
class Ended:
    """The last word on a stream.

    Attributes:
        reason: `complete`, or `blocked`: nothing that was still held may be shown.
        checked: The part of the answer that `verdict` is about, [start, end).
        release: The rest of a complete answer.
        verdict: On a complete stream exactly what `Guard.check` says about the whole answer; on a
            blocked one what stopped it, unless that was the whole answer's verdict.
    """

    reason: Literal["complete", "blocked"]
    checked: tuple[int, int]
    release: Release | None
    verdict: Verdict


class StreamedCheck:
    """One answer on its way from its model to its reader.

    Args:
        guard: Judges.
        policy: Under these rules.
        sample: Question and passages; its answer is not read.
        mode: `shadow` lets everything pass as it is and reports.
        stop_on: The mildest action that ends the stream.
        deadline_ms: Milliseconds for the whole answer's verdict; None takes the policy's.
        sentence_ms: Milliseconds for judging one part; None takes the policy's deadline. A part not
            judged by then counts as the policy's `on_timeout` says.
        served: The policies that it is one of, whose shadows it has; None: those of now.
    """

    def __init__(
        self,
        guard: Guard,
        policy: Policy,
        sample: Sample,
        *,
        mode: Mode = "enforce",
        stop_on: StopOn = "block",
        deadline_ms: float | None = None,
        sentence_ms: float | None = None,
        served: PolicySet | None = None,
    ) -> None:
        self._guard = guard
        self._served = served or guard.served
        self.policy = policy
        self._sample = sample
        self._mode = mode
        self._stops = Action.BLOCK if stop_on == "block" else Action.FLAG
        self._deadline_ms = deadline_ms
        self._sentence_ms = sentence_ms
        self._searched = _part(policy, "search")
        self._read = _part(policy, "parts")
        self._read_from = 0  # where the part before begins: alone, a short one reads differently
        self.state = Holdback(max((r.spec.reach for r in policy.rules.values()), default=0))

    @property
    def in_flight(self) -> tuple[str, ...]:
        """Return the detectors that judge before text leaves."""
        return tuple(name for name, rule in self.policy.rules.items() if not _waits(rule))

    @property
    def at_end(self) -> tuple[str, ...]:
        """Return the detectors that only the whole answer can be judged by."""
        return tuple(name for name, rule in self.policy.rules.items() if _waits(rule))

    @property
    def sample(self) -> Sample:
        """Return question, passages and as much of the answer as has come."""
        return dataclasses.replace(self._sample, answer=self.state.text)

    def feed(self, text: str) -> None:
        """Add what the model wrote."""
        self.state.feed(text)

    def due(self) -> bool:
        """Return whether `step` may have something to say."""
        return self.state.due() or self.state.overflows()

    def step(self, cancellation: Cancellation | None = None) -> Release | Ended | None:
        """Return the next part that may leave, the end if it must not, or None: more is needed.

        Raises:
            ServiceError: If it cannot be judged; then nothing more may leave.
        """
        text = self.state.text
        found = self._judge(self._searched, text, cancellation)
        spans = [(s.start, s.end) for r in found.detectors.values() for s in r.spans]
        start, cut = self.state.released, self.state.furthest(spans)
        if cut == start:
            if not self.state.overflows():
                return None
            if self._must_not_overflow():
                return self._stopped(_unverified(found), start, self.state.size)
            cut = self.state.forced()
        found = _within(found, start, cut)
        parts = [found]
        if has_words(text[start:cut]):
            read = self._judge(self._read, text[self._read_from : cut], cancellation)
            parts.append(_within(_shifted(read, self._read_from, len(text)), start, cut))
        return self._decided(_joined(parts), start, cut)

    def finish(self, cancellation: Cancellation | None = None) -> Ended:
        """Return the verdict on the whole answer, with the rest of it if that may leave.

        Raises:
            ServiceError: If it cannot be judged; then nothing more may leave.
        """
        text = self.state.text
        sample = dataclasses.replace(self._sample, answer=text)
        verdict = self._guard.judge(
            self.policy, sample, self._deadline_ms, self._mode, cancellation, served=self._served
        )
        checked = (0, len(text))
        start = self.state.released
        if self._severity(verdict) >= self._stops:
            return Ended("blocked", checked, None, verdict)
        release = self._release(verdict, start, len(text)) if start < len(text) else None
        return Ended("complete", checked, release, verdict)

    def _judge(self, rules: Policy, text: str, cancellation: Cancellation | None) -> Verdict:
        if not rules.rules or not text:
            return Verdict("pass", Action.ALLOW, "complete", False, rules.ref, {}, Timings())
        sample = dataclasses.replace(self._sample, answer=text)
        return self._guard.judge(rules, sample, self._sentence_ms, self._mode, cancellation)

    def _decided(self, verdict: Verdict, start: int, cut: int) -> Release | Ended:
        if self._severity(verdict) >= self._stops:
            return self._stopped(verdict, start, cut)
        return self._release(verdict, start, cut)

    def _stopped(self, verdict: Verdict, start: int, cut: int) -> Ended:
        results = {name: self._restated(name, r) for name, r in verdict.detectors.items()}
        flagged = worst_first(self.policy, results)
        stopped = dataclasses.replace(
            verdict,
            decision="flag",
            action=Action.BLOCK,
            detectors=results,
            flagged=flagged,
            summary=summarise(Action.BLOCK, flagged, results),
        )
        return Ended("blocked", (start, cut), None, stopped)

    def _restated(self, name: str, result: DetectorResult) -> DetectorResult:
        """Return a part's result with the action and the words that fit what is left of it."""
        rule = self.policy.rules[name]
        return dataclasses.replace(
            result, action=asked_action(rule, result), explanation=explain(rule.spec, result)
        )

    def _release(self, verdict: Verdict, start: int, cut: int) -> Release:
        text = self.state.release(cut)
        self._read_from = start
        if self._mode == "enforce":
            replaced = findings(self.policy, verdict.detectors, Action.REDACT)
            spans = [_moved(s, -start) for s in replaced if start < s.end]
            text = redact(text, spans)
        flagged = tuple(name for name, r in verdict.detectors.items() if r.flagged)
        return Release(start, cut, text, flagged, verdict.timings)

    def _severity(self, verdict: Verdict) -> Action:
        """Return what the detectors ask for."""
        if self._mode == "shadow":
            return Action.ALLOW
        return max((self._asks(n, r) for n, r in verdict.detectors.items()), default=Action.ALLOW)

    def _asks(self, name: str, result: DetectorResult) -> Action:
        return asked_action(self.policy.rules[name], result)

    def _must_not_overflow(self) -> bool:
        """Return whether a run that cannot be searched to its end must not leave."""
        rules = self._searched.rules.values()
        return self._mode == "enforce" and any(
            rule.on_state(State.UNVERIFIED, "unbroken_run").decision == "flag"
            and not rule.report_only
            for rule in rules
        )


def _waits(rule: Rule) -> bool:
    return rule.spec.in_flight == "end"


def _part(policy: Policy, when: InFlight) -> Policy:
    """Return the rules of the detectors that judge at that time."""
    rules = {name: rule for name, rule in policy.rules.items() if rule.spec.in_flight == when}
    return dataclasses.replace(policy, rules=rules)


def _within(verdict: Verdict, start: int, cut: int) -> Verdict:
    """Return a verdict on more of the answer as one on [start, cut)."""
    return _with(verdict, {name: _cropped(r, start, cut) for name, r in verdict.detectors.items()})


def _cropped(result: DetectorResult, start: int, cut: int) -> DetectorResult:
    """Return a result with the findings of one part; without any, it did not flag that part."""
    spans = tuple(span for span in result.spans if start < span.end and span.start < cut)
    if spans == result.spans or result.state is not State.EVALUATED:
        return dataclasses.replace(result, spans=spans)
    metrics = result.metrics if spans else {}
    return dataclasses.replace(
        result, spans=spans, metrics=metrics, flagged=result.flagged and bool(spans)
    )


def _shifted(verdict: Verdict, start: int, size: int) -> Verdict:
    """Return a verdict on a part of the answer with the offsets of the answer."""

    def moved(result: DetectorResult) -> DetectorResult:
        coverage = result.coverage
        if coverage is not None:
            coverage = Coverage((coverage.answer[0], size), coverage.contexts)
        spans = tuple(_moved(span, start) for span in result.spans)
        return dataclasses.replace(result, spans=spans, coverage=coverage)

    return _with(verdict, {name: moved(r) for name, r in verdict.detectors.items()})


def _with(verdict: Verdict, results: Mapping[str, DetectorResult]) -> Verdict:
    """Return a verdict with other results of the same detectors."""
    flagged = any(result.flagged for result in results.values())
    return dataclasses.replace(
        verdict, detectors=results, decision="flag" if flagged else "pass", redacted_answer=None
    )


def _moved(span: Span, by: int) -> Span:
    return dataclasses.replace(span, start=span.start + by, end=span.end + by)


def _joined(parts: list[Verdict]) -> Verdict:
    """Return the verdicts of different detectors on one part of the answer as one."""
    late: Status = "partial" if any(p.status == "partial" for p in parts) else "complete"
    timings = [part.timings for part in parts]
    return dataclasses.replace(
        parts[0],
        decision="flag" if any(p.decision == "flag" for p in parts) else "pass",
        action=max(part.action for part in parts),
        status=late,
        calibrated=all(part.calibrated for part in parts if part.detectors),
        detectors={name: r for part in parts for name, r in part.detectors.items()},
        timings=Timings(
            queue=sum(t.queue for t in timings),
            tokenize=sum(t.tokenize for t in timings),
            inference=sum(t.inference for t in timings),
            total=sum(t.total for t in timings),
        ),
    )


def _unverified(verdict: Verdict) -> Verdict:
    """Return a verdict that says of every search that it did not come to an end."""
    return _with(
        verdict,
        {
            name: dataclasses.replace(
                result, state=State.UNVERIFIED, reason="unbroken_run", flagged=True, metrics={}
            )
            for name, result in verdict.detectors.items()
        },
    )
