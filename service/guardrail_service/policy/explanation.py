"""Verdicts in plain words: one sentence on an answer, one or two on each detector.

Words name detectors, scores, thresholds and places. They never repeat what stands there: a reply
is kept in logs, and what was found may be somebody's personal data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from guardrail_service.detectors.registry import DetectorSpec
from guardrail_service.types import Action, DetectorResult, Direction, MetricResult, Span, State

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
    told = f"characters {span.start} to {span.end} of the answer: {span.label.replace('_', ' ')}"
    if not span.evidence:
        return told
    near = span.evidence[0]
    against = "says otherwise" if span.label == "contradicted" else "is nearest"
    return f"{told}; passage {near.context + 1} {against}, characters {near.start} to {near.end}"
