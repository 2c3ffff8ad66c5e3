"""Records to rows and back. Scores keep every bit: JSON writes floats as Python's `repr` does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from guardrail_decisions.texts import KeptText, TextMode, Texts
from guardrail_service.server.decisions import DecisionRecord, Mark, ShadowDecision
from guardrail_service.types import (
    Action,
    Coverage,
    DetectorResult,
    Direction,
    Evidence,
    MetricResult,
    Span,
    State,
    Timings,
)

Row = dict[str, Any]
COLUMNS = (
    "record_id", "request_id", "item", "time", "caller", "route", "policy", "policy_version",
    "policy_hash", "decision", "action", "status", "flagged", "share", "body",
)  # fmt: skip
"""Columns of `decisions` whose content the chain covers."""
_ACTIONS = {action.label: action for action in Action}


@dataclass(frozen=True, slots=True)
class StoredFeedback:
    """One person's word on one decision; `comment` None: none, or it cannot be read."""

    seq: int
    decision_seq: int
    time: datetime
    caller: str
    label: Mark
    metric: str | None = None
    draw: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """A decision as it is stored.

    Attributes:
        key: Its place in the chain; the order in which decisions were stored.
        record: Texts are empty unless they were asked for and can be read.
        text_mode: What is kept of its texts.
        feedback: What people said of it, in order.
    """

    key: int
    record: DecisionRecord
    text_mode: TextMode = "none"
    feedback: tuple[StoredFeedback, ...] = ()

    @property
    def flagged(self) -> tuple[str, ...]:
        """Return the detectors that flagged."""
        return tuple(name for name, r in self.record.detectors.items() if r.flagged)


def iso(time: datetime) -> str:
    """Return a time as it is stored: always as long, so that texts sort as times do."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def marked(names: Iterable[str]) -> str:
    """Return names between commas, so that one can be looked for."""
    return "".join(f",{name}" for name in names) + ","


def texts_of(record: DecisionRecord) -> dict[str, Any]:
    """Return a record's texts by name."""
    return {
        "question": record.question,
        "answer": record.answer,
        "contexts": list(record.contexts),
    }


def size_of(record: DecisionRecord) -> int:
    """Return about how many bytes a record takes while it waits."""
    texts = len(record.answer) + len(record.question or "") + sum(map(len, record.contexts))
    return 4_096 + 2 * texts


def decision_row(record: DecisionRecord) -> Row:
    """Return a record's columns, without its place and its texts."""
    body = {
        "detectors": {name: _detector(result) for name, result in record.detectors.items()},
        "options": dict(record.options),
        "fingerprints": dict(record.fingerprints),
        "timings_ms": asdict(record.timings),
        "deadline_ms": record.deadline_ms,
        "shadow": [asdict(shadow) for shadow in record.shadow],
    }
    return {
        "record_id": record.record_id,
        "request_id": record.request_id,
        "item": record.item,
        "time": iso(record.time),
        "caller": record.caller,
        "route": record.route,
        "policy": record.policy,
        "policy_version": record.policy_version,
        "policy_hash": record.policy_hash,
        "decision": record.decision,
        "action": record.action,
        "status": record.status,
        "flagged": marked(name for name, r in record.detectors.items() if r.flagged),
        "share": record.share,
        "body": json.dumps(body, separators=(",", ":")),
    }


def content(row: Mapping[str, Any], kept: KeptText) -> Row:
    """Return what the chain's digest of a decision covers.

    The key that wraps an encrypted text's key is left out: rotation renews it.
    """
    return {name: row[name] for name in COLUMNS} | {"texts": [kept.mode, kept.body]}


def record_of(row: Mapping[str, Any], texts: Texts | None = None) -> DecisionRecord:
    """Return the record of a row."""
    body = json.loads(row["body"])
    texts = texts or Texts(None, "", ())
    return DecisionRecord(
        **{name: row[name] for name in COLUMNS if name not in ("time", "flagged", "body")},
        time=datetime.fromisoformat(row["time"]),
        detectors={name: _result(found) for name, found in body["detectors"].items()},
        options=body["options"],
        fingerprints=body["fingerprints"],
        timings=Timings(**body["timings_ms"]),
        deadline_ms=body["deadline_ms"],
        shadow=tuple(
            ShadowDecision(**{**found, "flagged": tuple(found["flagged"])})
            for found in body["shadow"]
        ),
        question=texts.question,
        answer=texts.answer,
        contexts=texts.contexts,
    )


def _detector(result: DetectorResult) -> Row:
    return {
        "state": result.state.value,
        "reason": result.reason,
        "flagged": result.flagged,
        "action": result.action.label,
        "explanation": result.explanation,
        "latency_ms": result.latency_ms,
        "metrics": {
            key: {
                "score": metric.score,
                "direction": metric.direction.value,
                "threshold": metric.threshold,
                "flagged": metric.flagged,
                "calibrated": metric.calibrated,
            }
            for key, metric in result.metrics.items()
        },
        "spans": [_span(span) for span in result.spans],
        "coverage": None if result.coverage is None else asdict(result.coverage),
    }


def _span(span: Span) -> Row:
    """Return a span without what it has by default; never text of the answer."""
    found: Row = {"start": span.start, "end": span.end, "label": span.label}
    for name in ("score", "metric", "crossed", "replacement"):
        if (value := getattr(span, name)) is not None:
            found[name] = value
    if span.evidence:
        found["evidence"] = [[e.context, e.start, e.end, e.score] for e in span.evidence]
    if span.attributes:
        found["attributes"] = dict(span.attributes)
    return found


def _result(found: Mapping[str, Any]) -> DetectorResult:
    coverage = found["coverage"]
    return DetectorResult(
        state=State(found["state"]),
        reason=found["reason"],
        flagged=found["flagged"],
        metrics={
            key: MetricResult(**{**metric, "direction": Direction(metric["direction"])})
            for key, metric in found["metrics"].items()
        },
        spans=tuple(_read_span(span) for span in found["spans"]),
        coverage=coverage and Coverage(tuple(coverage["answer"]), tuple(coverage["contexts"])),
        latency_ms=found["latency_ms"],
        action=_ACTIONS[found["action"]],
        explanation=found["explanation"],
    )


def _read_span(found: Mapping[str, Any]) -> Span:
    evidence = tuple(Evidence(*parts) for parts in found.get("evidence", ()))
    return Span(**{**found, "evidence": evidence})
