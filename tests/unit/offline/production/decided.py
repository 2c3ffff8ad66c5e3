"""Decisions as the service would store them: no model, scores are given."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

from guardrail_service.policy.decide import Policy, decide
from guardrail_service.server.decisions import DecisionRecord, options_hash
from guardrail_service.types import Outcome, Timings
from tests.unit.offline.calibration.labs import FINGERPRINTS

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def record(
    policy: Policy, grounded: float | Outcome = 0.9, relevant: float = 0.9, **more: Any
) -> DecisionRecord:
    """Return a decision of a policy as the service would store it."""
    given = Outcome.evaluated({"groundedness": grounded}) if isinstance(grounded, float) else None
    outcomes = {
        "groundedness": given or grounded,
        "answer_relevancy_sentence": Outcome.evaluated({"answer_relevancy": relevant}),
        "language_mismatch": Outcome.boolean(True),
    }
    decided = decide(policy, outcomes)
    stored = DecisionRecord(
        request_id="r1",
        time=NOON,
        caller="anonymous",
        route="check",
        policy=policy.name,
        policy_version=policy.version,
        policy_hash=policy.sha256,
        decision=decided.decision,
        action=decided.action.label,
        status=decided.status,
        detectors=decided.results,
        timings=Timings(),
        question="Q?",
        answer="A.",
        contexts=("C.",),
        options={name: options_hash(rule) for name, rule in policy.rules.items()},
        fingerprints=FINGERPRINTS,
    )
    return dataclasses.replace(stored, **more)
