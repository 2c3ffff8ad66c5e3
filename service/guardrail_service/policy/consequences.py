"""The consequences of a missing score: for the decision, and for the answer.

A policy file says it for errors, missed deadlines and what cannot be verified (`on_error`,
`on_timeout`, `on_unverified`), as one word, as a word per detector, or as rules by detector and
reason. The most specific rule wins: this detector and reason, this detector, this reason, any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from guardrail_service.types import Action, Decision, OnMissing

ANY = "*"
REASONS = frozenset(
    {
        "deadline",
        "decoding_limit",
        "missing_input",
        "missing_metric",
        "row_failed",
        "score_out_of_range",
        "unknown_metric",
        "unreadable_text",
        "unsupported_language",
    }
)
"""Reasons our own detectors give; a plug-in may have others. A near miss of one is a mistake."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """The consequence of one missing score.

    Attributes:
        decision: For the decision.
        action: For the answer; None: nothing if the decision is pass, else the detector's own
            action, or block where that would be redact: there is nothing to redact.
    """

    decision: Decision = "flag"
    action: Action | None = None


Consequences = Mapping[str, Consequence]
"""By the reason why there is no score; `*` stands for every other reason and is always there."""
FLAG: Consequences = {ANY: Consequence("flag")}
NOTHING_TO_JUDGE = Consequence("pass", Action.ALLOW)


def means(consequences: Consequences, reason: str | None) -> Consequence:
    """Return what a missing score with this reason means."""
    return consequences.get(reason or ANY, consequences[ANY])


class ConsequenceIn(BaseModel):
    """One rule as a policy file writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    decision: OnMissing = Field(description="What the missing score means for the decision.")
    action: Literal["allow", "mark", "flag", "block"] | None = Field(
        None, description="What happens to the answer; the detector's own action if unset."
    )

    @model_validator(mode="after")
    def _agree(self) -> ConsequenceIn:
        if self.decision == "pass" and self.action not in (None, "allow", "mark"):
            raise ValueError("a rule that passes may only allow or mark the answer")
        return self


Reason = Annotated[str, Field(pattern=r"^(\*|[A-Za-z][A-Za-z0-9_]{0,63})$")]
ByReason = dict[Reason, ConsequenceIn]
PerDetector = OnMissing | dict[str, OnMissing | ByReason]


def read(value: OnMissing | ByReason) -> Consequences:
    """Return what a file says about one detector; a reason it does not name may be missing."""
    if isinstance(value, str):
        return {ANY: Consequence(value)}
    return {
        reason: Consequence(rule.decision, Action[rule.action.upper()] if rule.action else None)
        for reason, rule in value.items()
    }


def resolved(own: Consequences | None, general: Consequences) -> Consequences:
    """Return the consequences of one detector from its own rules and those of all detectors."""
    if own is not None and ANY in own:
        return own
    return {**FLAG, **general, **(own or {})}


def written(consequences: Consequences) -> Any:
    """Return consequences as a policy file writes them: a word, or rules by reason."""
    if list(consequences) == [ANY] and consequences[ANY].action is None:
        return consequences[ANY].decision
    return written_as_rules(consequences)


def written_as_rules(consequences: Consequences) -> dict[str, dict[str, str]]:
    """Return consequences as rules by reason, also where a word would do."""
    return {
        reason: {"decision": found.decision}
        | ({} if found.action is None else {"action": found.action.label})
        for reason, found in consequences.items()
    }
