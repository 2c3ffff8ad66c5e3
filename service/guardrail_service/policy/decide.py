"""Scores and thresholds in, decision out. Pure, and the only place that compares the two.

The decision comes with plain words: one sentence on an answer, one or two on each detector. They
name detectors, scores, thresholds and places, and never repeat what stands there: a reply is kept
in logs, and what was found may be somebody's personal data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from guardrail_service.detectors.registry import DetectorSpec, Parameters
from guardrail_service.policy.consequences import (
    FLAG,
    NOTHING_TO_JUDGE,
    Consequence,
    Consequences,
    means,
    written,
)
from guardrail_service.types import (
    Action,
    Decision,
    DetectorResult,
    Direction,
    MetricResult,
    Mode,
    Outcome,
    PolicyRef,
    Span,
    State,
    Status,
)


@dataclass(frozen=True, slots=True)
class Cut:
    """A threshold and whether it was fitted on human labels."""

    threshold: float
    calibrated: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy's rule for one detector.

    Attributes:
        cuts: Thresholds by metric key; a metric without one is reported and never gates.
        report_only: Score and report, but leave the decision alone.
        preset: Which of the shipped thresholds it has; None: its own, or the defaults.
    """

    spec: DetectorSpec
    parameters: Parameters
    cuts: Mapping[str, Cut]
    action: Action = Action.FLAG
    on_error: Consequences = field(default_factory=lambda: FLAG)
    on_timeout: Consequences = field(default_factory=lambda: FLAG)
    on_unverified: Consequences = field(default_factory=lambda: FLAG)
    report_only: bool = False
    preset: str | None = None

    def on_state(self, state: State, reason: str | None) -> Consequence:
        """Return what a state without a score means, given the reason for it."""
        by_reason = {
            State.ERROR: self.on_error,
            State.NOT_EVALUATED: self.on_timeout,
            State.UNVERIFIED: self.on_unverified,
        }.get(state)
        if by_reason is None:
            return NOTHING_TO_JUDGE
        return means(by_reason, reason)


@dataclass(frozen=True, slots=True)
class Policy:
    """A named, versioned guardrail configuration, checked and ready to decide."""

    name: str
    version: str
    sha256: str
    rules: Mapping[str, Rule]
    allow_overrides: bool = False
    deadline_ms: int | None = None
    warnings: tuple[str, ...] = ()
    calibration: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ref(self) -> PolicyRef:
        """Return how a reply names this policy."""
        return PolicyRef(self.name, self.version, self.sha256)

    def with_rule(self, rule: Rule) -> Policy:
        """Return a copy in which one detector's rule is replaced."""
        return dataclasses.replace(self, rules={**self.rules, rule.spec.id: rule})


@dataclass(frozen=True, slots=True)
class Decided:
    """The policy's word on one sample; `flagged` names detectors, the worst first."""

    decision: Decision
    action: Action
    status: Status
    calibrated: bool
    results: Mapping[str, DetectorResult]
    flagged: tuple[str, ...]
    summary: str


def crosses(score: float, threshold: float, direction: Direction) -> bool:
    """Return whether a score is on the bad side of a threshold; equal passes."""
    return score < threshold if direction is Direction.HIGHER else score > threshold


def decide(policy: Policy, outcomes: Mapping[str, Outcome], mode: Mode = "enforce") -> Decided:
    """Return the decision for one sample.

    Args:
        policy: The rules; every rule needs an outcome of its detector.
        outcomes: What each detector found, by detector id.
        mode: In `shadow` the decision is reported and the action is always allow.
    """
    results = {name: judge(rule, outcomes[name]) for name, rule in policy.rules.items()}
    flagged = worst_first(policy, results)
    severest = max((result.action for result in results.values()), default=Action.ALLOW)
    action = Action.ALLOW if mode == "shadow" else severest
    late = any(result.state is State.NOT_EVALUATED for result in results.values())
    gating = [rule for rule in policy.rules.values() if not rule.report_only]
    cuts = [cut for rule in gating for cut in rule.cuts.values()]
    return Decided(
        decision="flag" if flagged else "pass",
        action=action,
        status="partial" if late else "complete",
        calibrated=bool(cuts) and all(cut.calibrated for cut in cuts),
        results=results,
        flagged=flagged,
        summary=summarise(action, flagged, results),
    )


def judge(rule: Rule, outcome: Outcome) -> DetectorResult:
    """Return one detector's result: its scores beside their cuts, or its state."""
    state, reason = State.EVALUATED, None
    if outcome.missing is not None:
        state, reason = outcome.missing.state, outcome.missing.reason
    good_ends = {metric.key: metric.direction for metric in rule.spec.metrics}
    metrics = {
        key: _compare(score, good_ends[key], rule.cuts.get(key))
        for key, score in outcome.scores.items()
        if state is State.EVALUATED
    }
    crossed = any(metric.flagged for metric in metrics.values())
    missing = rule.on_state(state, reason).decision == "flag"
    result = DetectorResult(
        state=state,
        reason=reason,
        flagged=(crossed or missing) and not rule.report_only,
        metrics=metrics,
        spans=tuple(
            labelled(span, crossed=span.metric is not None and span.score is not None)
            for span in outcome.spans
            if _kept(rule, span, good_ends)
        ),
        coverage=outcome.coverage,
    )
    return dataclasses.replace(
        result, action=asked_action(rule, result), explanation=explain(rule.spec, result)
    )


def worst_first(policy: Policy, results: Mapping[str, DetectorResult]) -> tuple[str, ...]:
    """Return the detectors that flagged: severest action first, then what was found before what
    could not be judged, then by how far the worst metric is beyond its threshold."""

    def order(name: str) -> tuple[int, bool, float]:
        result = results[name]
        ranges = {spec.key: spec.high - spec.low for spec in policy.rules[name].spec.metrics}
        beyond = [
            abs(m.score - m.threshold) / ranges[key]
            for key, m in result.metrics.items()
            if m.flagged and m.threshold is not None
        ]
        return -result.action, result.state is not State.EVALUATED, -max(beyond, default=0.0)

    return tuple(sorted((name for name, r in results.items() if r.flagged), key=order))


def _compare(score: float, direction: Direction, cut: Cut | None) -> MetricResult:
    if cut is None:
        return MetricResult(score, direction, None, flagged=False, calibrated=False)
    flagged = crosses(score, cut.threshold, direction)
    return MetricResult(score, direction, cut.threshold, flagged, cut.calibrated)


def _kept(rule: Rule, span: Span, good_ends: Mapping[str, Direction]) -> bool:
    """Return whether a proposed span is worth showing: no metric of its own, or a crossed one."""
    if span.metric is None or span.score is None:
        return True
    cut = rule.cuts.get(span.metric)
    if cut is None:
        return False
    return crosses(span.score, cut.threshold, good_ends[span.metric])


def labelled(span: Span, crossed: bool) -> Span:
    """Return a span with the label that fits the side of the threshold its score is on."""
    return dataclasses.replace(span, label=label_of(span, crossed), crossed=None)


def label_of(span: Span, crossed: bool) -> str:
    """Return the label that fits the side of the threshold a span's score is on."""
    return span.crossed if crossed and span.crossed else span.label


def asked_action(rule: Rule, result: DetectorResult) -> Action:
    """Return what one detector asks for.

    That is the severest of its findings' actions, where a finding that names none asks for the
    detector's own; or what the policy says about a missing score. A detector that should redact
    and could not look says nothing about where, and one whose findings have no replacement would
    show them: both block.
    """
    if rule.report_only:
        return Action.ALLOW
    if result.state is not State.EVALUATED:
        named = rule.on_state(result.state, result.reason).action
        if named is not None:
            return named
        own = rule.action if rule.action < Action.REDACT else Action.BLOCK
        return own if result.flagged else Action.ALLOW
    if not result.flagged:
        return Action.ALLOW
    asked = max((span_action(rule, span) for span in result.spans), default=rule.action)
    return Action.BLOCK if asked is Action.REDACT and not _can_redact(rule, result) else asked


def _can_redact(rule: Rule, result: DetectorResult) -> bool:
    """Return whether there is something to redact, and what to show in the place of all of it."""
    wanted = [span for span in result.spans if span_action(rule, span) is Action.REDACT]
    return bool(wanted) and all(span.replacement is not None for span in wanted)


def span_action(rule: Rule, span: Span) -> Action:
    """Return what one finding asks for: the action it names, else its detector's."""
    named = span.attributes.get("action")
    return rule.action if named is None else Action[str(named).upper()]


def findings(policy: Policy, results: Mapping[str, DetectorResult], least: Action) -> list[Span]:
    """Return the findings for which the policy asks for `least` or more.

    Spans it allows to be shown are never replaced, and a report-only detector changes nothing.
    """
    return [
        span
        for name, result in results.items()
        if not (rule := policy.rules[name]).report_only
        for span in result.spans
        if span_action(rule, span) >= least
    ]


MOST_PLACES = 3
"""Places one explanation names; the reply's spans have all of them."""
_REASONS = {
    "missing_input": "the question or the passages it needs are missing",
    "unsupported_language": "its model does not read the language of this text",
    "unreadable_text": "its model cannot read this text",
    "decoding_limit": "the text hides more encoded parts than it may decode",
    "unbroken_run": "a run of characters without a break is too long to search",
    "deadline": "the time for this check was over",
}
_STATES = {
    State.UNVERIFIED: "could not be judged",
    State.NOT_EVALUATED: "was not judged in time",
    State.ERROR: "failed",
}
_OUTCOMES = {
    Action.ALLOW: "Shown",
    Action.MARK: "Shown with a mark",
    Action.FLAG: "Flagged",
    Action.REDACT: "Shown with parts replaced",
    Action.BLOCK: "Not shown",
}


def explain(spec: DetectorSpec, result: DetectorResult) -> str | None:
    """Return why a detector flagged or could not judge; None if it did neither."""
    if result.state in _STATES:
        why = _REASONS.get(result.reason or "", (result.reason or "unknown").replace("_", " "))
        return f"{spec.id} {_STATES[result.state]}: {why}."
    crossed = {key: metric for key, metric in result.metrics.items() if metric.flagged}
    if not crossed:
        return None
    booleans = {metric.key for metric in spec.metrics if metric.boolean}
    told = [_score(key, metric) for key, metric in crossed.items() if key not in booleans]
    found = "; ".join(_place(span) for span in result.spans[:MOST_PLACES])
    more = len(result.spans) - MOST_PLACES
    if more > 0:
        found += f"; and {more} more"
    first = f"{spec.id}: {' and '.join(told)}." if told else f"{spec.id} found a fault."
    return f"{first} {found[:1].upper()}{found[1:]}." if found else first


def summarise(action: Action, flagged: Sequence[str], results: Mapping[str, DetectorResult]) -> str:
    """Return one sentence: what happens to the answer, and because of which detectors.

    Args:
        action: What the policy does with the answer.
        flagged: Detectors that flagged, the worst first.
        results: Every detector's result.
    """
    unjudged = [name for name, r in results.items() if r.state in _STATES and name not in flagged]
    outcome = _OUTCOMES[action]
    if not flagged and not unjudged:
        return f"{outcome}: no check found a fault."
    parts = []
    if found := [n for n in flagged if results[n].state is State.EVALUATED]:
        parts.append(f"{_listed(found)} flagged it")
    if missed := [n for n in flagged if results[n].state is not State.EVALUATED]:
        parts.append(f"{_listed(missed)} {_unjudged(missed, results)}, which counts as a flag")
    if unjudged:
        parts.append(f"{_listed(unjudged)} {_unjudged(unjudged, results)}")
    return f"{outcome}: {'; '.join(parts)}."


def _unjudged(names: Sequence[str], results: Mapping[str, DetectorResult]) -> str:
    reasons = sorted({results[name].reason or "unknown" for name in names})
    return f"could not be judged ({', '.join(reasons)})"


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _score(key: str, metric: MetricResult) -> str:
    side = "below" if metric.direction is Direction.HIGHER else "above"
    return f"{key} is {metric.score:.3g}, {side} the threshold {metric.threshold:.3g}"


def _place(span: Span) -> str:
    label = span.label.replace("_", " ")
    about = [str(span.attributes[key]) for key in ("kind", "derivation") if key in span.attributes]
    kind = f" ({': '.join(about)})" if about else ""
    told = f"characters {span.start} to {span.end} of the answer: {label}{kind}"
    if not span.evidence:
        return told
    near = span.evidence[0]
    against = "says otherwise" if span.label == "contradicted" else "is nearest"
    return f"{told}; passage {near.context + 1} {against}, characters {near.start} to {near.end}"


def describe(policy: Policy) -> dict[str, Any]:
    """Return what `/v1/policies` and `config check` show of a policy, ready for JSON."""
    return {
        "name": policy.name,
        "version": policy.version,
        "sha256": policy.sha256,
        "allow_overrides": policy.allow_overrides,
        "deadline_ms": policy.deadline_ms,
        "warnings": list(policy.warnings),
        "detectors": {name: _describe_rule(rule) for name, rule in policy.rules.items()},
    }


def _describe_rule(rule: Rule) -> dict[str, Any]:
    return {
        "h2o_id": rule.spec.h2o_id,
        "action": rule.action.label,
        "report_only": rule.report_only,
        "preset": rule.preset,
        "on_error": written(rule.on_error),
        "on_timeout": written(rule.on_timeout),
        "on_unverified": written(rule.on_unverified),
        "metrics": {
            metric.key: {
                "direction": metric.direction.value,
                "threshold": cut.threshold if (cut := rule.cuts.get(metric.key)) else None,
                "status": _status(rule.cuts.get(metric.key)),
            }
            for metric in rule.spec.metrics
        },
    }


def _status(cut: Cut | None) -> str:
    if cut is None:
        return "reported"
    return "calibrated" if cut.calibrated else "uncalibrated"
