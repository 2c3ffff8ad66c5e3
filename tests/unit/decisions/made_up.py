"""Made-up decisions, and a store that keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from guardrail_decisions.reading import Decisions, open_decisions
from guardrail_decisions.store import SqlStore, open_store
from guardrail_service.server.decisions import DecisionRecord, Feedback, Mark
from guardrail_service.settings import DecisionSettings
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

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
SCORED = DetectorResult(
    state=State.EVALUATED,
    reason=None,
    flagged=True,
    metrics={"groundedness": MetricResult(0.1 + 0.2, Direction.HIGHER, 0.5, True, False)},
    spans=(
        Span(0, 4, "unsupported", 0.25, "groundedness", (Evidence(1, 2, 9, 0.125),)),
        Span(5, 9, "email", replacement="[EMAIL_1]", attributes={"validated": True}),
    ),
    coverage=Coverage((9, 9), (20, 20)),
    latency_ms=1.5,
    action=Action.BLOCK,
    explanation="One of two sentences is not supported.",
)
LATE = DetectorResult(State.NOT_EVALUATED, "deadline", False, {}, (), None)


def record(number: int = 0, **changes: Any) -> DecisionRecord:
    """Return a decision; every third one is flagged."""
    flags = number % 3 == 0
    given: dict[str, Any] = {
        "request_id": f"request-{number}",
        "time": NOON,
        "caller": "app",
        "route": "check",
        "policy": "default",
        "policy_version": "3",
        "policy_hash": "a" * 64,
        "decision": "flag" if flags else "pass",
        "action": "block" if flags else "allow",
        "status": "complete",
        "detectors": {"groundedness": SCORED, "looping": LATE} if flags else {"looping": LATE},
        "timings": Timings(1.0, 2.0, 3.0, 6.5),
        "question": "Who?",
        "answer": "Ann did.",
        "contexts": ("Ann did it.", "Bob did not."),
        "options": {"groundedness": "0" * 16},
        "fingerprints": {"embedding": "abc"},
        "deadline_ms": 250.0,
    }
    return DecisionRecord(**{**given, **changes})


def settings(url: str, **changes: Any) -> DecisionSettings:
    """Return the settings of a store."""
    return DecisionSettings(url=SecretStr(url), **changes)


@contextmanager
def store(url: str, **changes: Any) -> Iterator[SqlStore]:
    """Give a store that is written to; what waits is written at the end."""
    opened = open_store(settings(url, **changes))
    try:
        yield opened
    finally:
        opened.close(20)


def filled(url: str, count: int, **changes: Any) -> None:
    """Store so many decisions."""
    with store(url, **changes) as opened:
        for number in range(count):
            assert opened.offer(record(number))


def word(number: int, label: Mark = "pass", **changes: Any) -> Feedback:
    """Return what somebody says of a decision."""
    return Feedback(
        **{"request_id": f"request-{number}", "label": label, "caller": "ann", **changes}
    )


@contextmanager
def reader(url: str, keys_file: Path | None = None, **changes: Any) -> Iterator[Decisions]:
    """Give a store that is read."""
    with open_decisions(url, keys_file, **changes) as opened:
        yield opened
