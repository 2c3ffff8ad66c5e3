"""The remains of a check, by which other policies can be asked for their word on its sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from guardrail_service.guard.check import Check, checked
from guardrail_service.policy.decide import Policy
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Decision, Outcome, PolicyRef, Row, RowOutput


@dataclass(frozen=True, slots=True)
class ShadowVerdict:
    """The word of a policy that decided nothing; `flagged` names detectors, the worst first."""

    policy: PolicyRef
    decision: Decision
    flagged: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckedSample:
    """A sample with a verdict.

    Attributes:
        rules: The policy that decided.
        shadows: Those to be asked as well.
        sample: As it was cut.
        outcomes: What each detector of `rules` found.
        check: The check that found it; it is done.
    """

    rules: Policy
    shadows: tuple[Policy, ...]
    sample: SegmentedSample
    outcomes: Mapping[str, Outcome]
    check: Check

    def shared(self, policy: Policy) -> dict[str, Outcome]:
        """Return the outcomes that another policy's detectors would have, parameters and all."""
        own = self.rules.rules
        return {
            name: checked(rule, self.outcomes[name])
            for name, rule in policy.rules.items()
            if name in own and own[name].parameters == rule.parameters
        }

    def rows(self) -> Mapping[Row, RowOutput]:
        """Return the outputs of the rows that its models ran."""
        return self.check.finished()
