"""Chooses the metrics that decide, and turns scored cases into rows of oriented numbers.

Minus infinity flags whatever the thresholds are, plus infinity never does. Which states mean which
is the policy's own rule, so calibration and serving cannot differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from guardrail_offline.calibration.joint_rule import Axis, Matrix, Vector
from guardrail_offline.calibration.scored_lab import LabCase, ScoredLab
from guardrail_offline.evaluators.result import Score
from guardrail_service.detectors.registry import MetricSpec
from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.policy.decide import Policy, Rule, crosses
from guardrail_service.policy.fingerprints import used_by

MIDDLE = 0.5
"""The cut of every yes/no metric; it is 1.0 or 0.0, so there is nothing to fit."""


@dataclass(frozen=True, slots=True)
class DecidingMetric:
    """One metric that may flag an answer, under one policy."""

    rule: Rule
    metric: MetricSpec

    @property
    def name(self) -> str:
        """Return `detector.metric`."""
        return f"{self.rule.spec.id}.{self.metric.key}"

    @property
    def evaluator_id(self) -> str:
        """Return the id under which the threshold is written: H2O's where there is one."""
        return self.rule.spec.h2o_id or self.rule.spec.id

    @property
    def axis(self) -> Axis:
        """Return the metric turned so that higher is better."""
        return Axis(self.metric)

    def score(self, case: LabCase) -> Score:
        """Return the case's score; KeyError if the lab has none and no state either."""
        metrics = case.scores[self.rule.spec.id]
        return metrics[self.metric.key] if self.metric.key in metrics else metrics["*"]

    def scores(self, cases: Sequence[LabCase]) -> list[Score]:
        """Return the score of every case."""
        return [self.score(case) for case in cases]

    def values(self, cases: Sequence[LabCase]) -> Vector:
        """Return every case's oriented score, or an infinity that says what its state means."""
        scores = self.scores(cases)
        numbers = np.array([math.nan if s.value is None else s.value for s in scores])
        found = self._checked(numbers) if self.metric.boolean else self.axis.orient(numbers)
        missing = {i: s.why_missing for i, s in enumerate(scores) if s.why_missing is not None}
        flagged = {
            why: self.rule.on_state(why.state, why.reason).decision == "flag"
            for why in set(missing.values())
        }
        for i, why in missing.items():
            found[i] = -math.inf if flagged[why] else math.inf
        return found

    def _checked(self, answers: Vector) -> Vector:
        """Return minus infinity for every failed yes/no check, plus infinity for the others."""
        direction = self.metric.direction
        failed = [answer for answer in np.unique(answers) if crosses(answer, MIDDLE, direction)]
        return np.where(np.isin(answers, failed), -math.inf, math.inf)


def deciding_metrics(
    policy: Policy, lab: ScoredLab, wanted: Sequence[str] = ()
) -> tuple[DecidingMetric, ...]:
    """Return the metrics that decide under a policy, those that can be fitted first.

    Args:
        policy: Every metric it gives a threshold gates, unless its detector is report-only.
        lab: Must have scores of each of them.
        wanted: Restricts them, as `detector` or `detector.metric`; a metric that has no
            threshold in the policy may be named, too.

    Raises:
        ConfigurationError: For a metric that does not exist, is not run by the policy or has no
            scores in the lab.
    """
    gates = _named(policy, wanted) if wanted else _gating(policy)
    for gate in gates:
        if gate.rule.spec.id not in lab.detectors:
            raise ConfigurationError(
                f"{lab.where}: {gate.name}",
                "no scores",
                "a lab scored with it, or --metric without it",
            )
        _refuse_gaps(gate, lab)
    if not gates:
        raise ConfigurationError(policy.name, "no metric that decides", "at least one")
    return tuple(sorted(gates, key=lambda gate: gate.metric.boolean))


def _gating(policy: Policy) -> list[DecidingMetric]:
    rules = [rule for rule in policy.rules.values() if not rule.report_only]
    return [DecidingMetric(rule, rule.spec.metric(key)) for rule in rules for key in rule.cuts]


def _named(policy: Policy, wanted: Iterable[str]) -> list[DecidingMetric]:
    found: dict[str, DecidingMetric] = {}
    for name in wanted:
        detector, _, key = name.partition(".")
        rule = policy.rules.get(detector)
        if rule is None:
            known = choices(detector, policy.rules, "detector")
            raise ConfigurationError("--metric", f"unknown detector {detector!r}", known)
        keys = [metric.key for metric in rule.spec.metrics]
        if key and key not in keys:
            where = f"--metric {detector}"
            raise ConfigurationError(where, f"unknown metric {key!r}", choices(key, keys, "metric"))
        for gate in (
            DecidingMetric(rule, rule.spec.metric(k)) for k in ([key] if key else rule.cuts)
        ):
            found[gate.name] = gate
    return list(found.values())


def _refuse_gaps(gate: DecidingMetric, lab: ScoredLab) -> None:
    for case in lab.cases:
        try:
            gate.score(case)
        except KeyError:
            raise ConfigurationError(
                f"{lab.where}: {gate.name}",
                f"nothing for case {case.key!r}",
                "a score or a state for every case",
            ) from None


def matrix(gates: Sequence[DecidingMetric], cases: Sequence[LabCase]) -> Matrix:
    """Return oriented scores, cases in rows and gates in columns."""
    return np.column_stack([gate.values(cases) for gate in gates])


def used_fingerprints(
    gates: Iterable[DecidingMetric], fingerprints: Mapping[str, str]
) -> dict[str, str]:
    """Return the fingerprints that the gates' scores depend on: roles, rules, what all share."""
    return used_by((gate.rule.spec for gate in gates), fingerprints)
