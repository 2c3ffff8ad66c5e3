"""Old scores under a new configuration: decisions, problems and flips, without scoring again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from guardrail_offline.calibration.lab import LabCase, ScoredLab
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.decide import Decided, Policy, decide
from guardrail_service.types import NoValue, Outcome, State


@dataclass(frozen=True, slots=True)
class Flip:
    """A decision that changed: between configurations, or between a case and its variant."""

    case: str
    before: str
    after: str
    source: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the flip for a report."""
        return {
            "case": self.case,
            "before": self.before,
            "after": self.after,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Derived:
    """One lab under one configuration.

    Attributes:
        decisions: By case key.
        problems: Cases flagged, by `detector.metric`, or `detector: state` where a missing score
            flags.
        variant_flips: Variants decided otherwise than the case they were made from.
    """

    decisions: dict[str, Decided]
    problems: dict[str, tuple[str, ...]]
    variant_flips: tuple[Flip, ...]

    def changes(self, before: Derived) -> tuple[Flip, ...]:
        """Return the cases that another configuration decides otherwise."""
        return tuple(
            Flip(key, before.decisions[key].decision, now.decision)
            for key, now in self.decisions.items()
            if before.decisions[key].decision != now.decision
        )

    def as_json(self) -> dict[str, Any]:
        """Return the derived results for a report."""
        return {
            "cases": len(self.decisions),
            "flagged": [key for key, d in self.decisions.items() if d.decision == "flag"],
            "actions": dict(
                sorted(Counter(d.action.label for d in self.decisions.values()).items())
            ),
            "problems": {name: list(keys) for name, keys in self.problems.items()},
            "variant_flips": [flip.as_json() for flip in self.variant_flips],
        }


def derive(lab: ScoredLab, policy: Policy) -> Derived:
    """Return what a configuration makes of a lab's scores, by the code that serves.

    Raises:
        ConfigurationError: If the lab has no scores of a detector the configuration runs.
    """
    lacking = sorted(set(policy.rules) - lab.detectors)
    if lacking:
        raise ConfigurationError(
            f"{lab.where}: {policy.name}", f"no scores of {', '.join(lacking)}", "a lab with them"
        )
    decisions = {case.key: decide(policy, _outcomes(case, policy)) for case in lab.cases}
    problems: dict[str, list[str]] = {}
    for key, decided in decisions.items():
        for name in _reasons(decided):
            problems.setdefault(name, []).append(key)
    flips = [
        Flip(case.key, decisions[case.source].decision, decisions[case.key].decision, case.source)
        for case in lab.cases
        if case.source in decisions
        and decisions[case.source].decision != decisions[case.key].decision
    ]
    ordered = sorted(problems, key=lambda name: (-len(problems[name]), name))
    return Derived(decisions, {name: tuple(problems[name]) for name in ordered}, tuple(flips))


def _outcomes(case: LabCase, policy: Policy) -> dict[str, Outcome]:
    return {name: _outcome(case, name) for name in policy.rules}


def _outcome(case: LabCase, detector: str) -> Outcome:
    scores = case.scores.get(detector, {})
    numbers = {key: score.value for key, score in scores.items() if score.value is not None}
    if numbers:
        return Outcome.evaluated(numbers)
    for score in scores.values():
        return Outcome(missing=score.why_missing)
    return Outcome(missing=NoValue(State.NOT_EVALUATED, "not_in_lab"))


def _reasons(decided: Decided) -> list[str]:
    found = []
    for name, result in decided.results.items():
        if not result.flagged:
            continue
        crossed = [f"{name}.{key}" for key, metric in result.metrics.items() if metric.flagged]
        found += crossed or [f"{name}: {result.state.value}"]
    return found
