"""Drift and promises of every policy in a store, kept up to date as decisions and labels come."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from guardrail_decisions.monitor import drift as drifting
from guardrail_decisions.monitor import promise as promising
from guardrail_decisions.monitor.drift import DriftFinding, DriftWatch, Reference, judge_drift
from guardrail_decisions.monitor.promise import (
    LabelledDecision,
    Promise,
    PromiseFinding,
    Step,
    Stratum,
    judge_promise,
    promises,
    stratified_steps,
)
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.errors import ConfigurationError
from guardrail_service.server.decisions import DecisionRecord, Feedback

ADJUDICATOR = "adjudicator"
"""Name of the annotator whose word is final, as in label files."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A policy's part of a drawn sample: what people were asked about, and what it stands for.

    Attributes:
        id: Stands in the feedback that was given for it.
        policy_hash: Of the policy that decided.
        members: Record ids of the decisions drawn.
        flagged: Flagged decisions that could have been drawn, and those that were.
        passed: The same of decisions that passed. Neither counts decisions that were late.
    """

    id: str
    policy_hash: str
    members: Collection[str]
    flagged: Stratum
    passed: Stratum


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """A policy that decided: its name, its version, and what its calibration says."""

    name: str
    version: str
    calibration: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolicyFindings:
    """The state of one policy's promises and scores.

    Attributes:
        disputed: Drawn decisions left out because people disagree about them.
    """

    policy: str
    version: str
    policy_hash: str
    decisions: int
    promises: tuple[PromiseFinding, ...]
    drift: tuple[DriftFinding, ...]
    disputed: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the findings for reports and the studio."""
        return {
            "policy": self.policy,
            "version": self.version,
            "policy_hash": self.policy_hash,
            "decisions": self.decisions,
            "promises": [finding.as_json() for finding in self.promises],
            "drift": [finding.as_json() for finding in self.drift],
            "disputed": self.disputed,
        }


class ScoreWatch:
    """Every score of one policy that has a reference; see `drift`."""

    def __init__(self, facts: PolicyFacts) -> None:
        self.decisions = 0
        self._watches: dict[tuple[str, str], DriftWatch | None] = {
            (detector, key): None if found is None else DriftWatch(found)
            for detector, key, found in references(facts.calibration)
        }

    def add(self, records: Sequence[DecisionRecord]) -> None:
        """Take the policy's decisions in the order in which they were stored."""
        self.decisions += len(records)
        for (detector, key), watch in self._watches.items():
            if watch is not None:
                values = np.array([_score(record, detector, key) for record in records])
                chances = np.array([chance(record.record_id, key) for record in records])
                watch.add(values, chances)

    def findings(self, delta: float = drifting.DELTA) -> tuple[DriftFinding, ...]:
        """Return the state of every metric."""
        watched = sum(watch is not None for watch in self._watches.values())
        return tuple(
            judge_drift(f"{detector}.{key}", watch, watched, delta)
            for (detector, key), watch in self._watches.items()
        )


def references(block: Mapping[str, Any]) -> Iterator[tuple[str, str, Reference | None]]:
    """Yield detector, metric and reference of every metric that a calibration speaks of.

    A calibration that was written before references were kept has None.
    """
    for evaluator, metrics in sorted(block.get("per_metric", {}).items()):
        try:
            detector = REGISTRY.spec(evaluator, "calibration.per_metric").id
        except ConfigurationError:  # a plug-in that is not installed here
            detector = evaluator
        for key, entry in sorted(metrics.items()):
            stored = entry.get("baseline")
            yield detector, key, None if stored is None else Reference.of(stored)


def _score(record: DecisionRecord, detector: str, key: str) -> float:
    result = record.detectors.get(detector)
    metric = None if result is None else result.metrics.get(key)
    return math.nan if metric is None else metric.score


def chance(record_id: str, key: str) -> float:
    """Return a number in [0, 1) that is as good as random, and the same at every reading."""
    found = hashlib.blake2b(f"{key}\0{record_id}".encode(), digest_size=8).digest()
    return int.from_bytes(found, "big") / 2**64


@dataclass(frozen=True, slots=True)
class LabelledRecord:
    """A decision with everything that people said about it, in the order in which they did."""

    record: DecisionRecord
    feedback: Sequence[Feedback]


def word(feedback: Iterable[Feedback]) -> tuple[bool | None, bool]:
    """Return whether people would show an answer, and whether they disagree.

    The first is None where nobody could tell, or where people disagree and nobody settled it.
    """
    words = {one.caller: one.label for one in feedback if one.metric is None}
    final = words.get(ADJUDICATOR)
    said = {final} if final not in (None, "abstain") else set(words.values()) - {"abstain"}
    if len(said) > 1:
        return None, True
    return (said == {"pass"} if said else None), False


def steps_of(promise: Promise, draw: Draw, labelled: Sequence[LabelledRecord]) -> list[Step]:
    """Return what the labels of one draw say about a promise of the policy that decided.

    Only labels that were given for the draw count: those whom an answer annoyed write unasked.
    """
    own = [
        one
        for one in labelled
        if one.record.record_id in draw.members and one.record.status == "complete"
    ]
    found = []
    for one in own:
        given = [said for said in one.feedback if said.draw == draw.id]
        good, _ = word(given)
        if good is not None:
            found.append(
                LabelledDecision(
                    flagged=one.record.decision == "flag",
                    good=good,
                    at=max(said.time.timestamp() for said in given),
                    by_metric=_by_metric(promise, one.record),
                )
            )
    found.sort(key=lambda one: one.at)
    return stratified_steps(promise.kind, found, draw.flagged, draw.passed)


def _by_metric(promise: Promise, record: DecisionRecord) -> bool | None:
    if promise.metric is None:
        return None
    detector, _, key = promise.metric.rpartition(".")
    result = record.detectors.get(detector)
    return result is not None and key in result.metrics and result.metrics[key].flagged


def judge_promises(
    facts: PolicyFacts,
    policy_hash: str,
    draws: Sequence[Draw],
    labelled: Sequence[LabelledRecord],
    delta: float = promising.DELTA,
) -> tuple[PromiseFinding, ...]:
    """Return what the labels of all draws say about every promise of a policy.

    Args:
        facts: Of the policy.
        policy_hash: Its hash.
        draws: All of them.
        labelled: All labelled decisions.
        delta: Chance that any promise that is kept is ever called broken.
    """
    made = promises(facts.calibration)
    own = [draw for draw in draws if draw.policy_hash == policy_hash]
    return tuple(
        judge_promise(
            promise,
            [step for draw in own for step in steps_of(promise, draw, labelled)],
            delta / len(made),
        )
        for promise in made
    )


def count_disputed(draws: Iterable[Draw], labelled: Sequence[LabelledRecord]) -> int:
    """Return the decisions of some draws about which people disagree."""
    return sum(
        word(said for said in one.feedback if said.draw == draw.id)[1]
        for draw in draws
        for one in labelled
        if one.record.record_id in draw.members
    )
