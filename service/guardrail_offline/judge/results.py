"""An answer of the judge, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from guardrail_offline.judge.judge_tasks import Task

JudgeStatus = Literal[
    "ok", "parse_failure", "refused", "timeout", "rate_limited", "budget", "error"
]
STATUSES: tuple[JudgeStatus, ...] = get_args(JudgeStatus)
FINAL: frozenset[JudgeStatus] = frozenset({"ok", "parse_failure", "refused"})
"""Said by the judge itself. Anything else may be otherwise the next time, and is asked again."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of all tries of one question, as the server counts them.

    Attributes:
        prompt: Of what was sent, cached ones included.
        completion: Of what came back.
        cached: Of those sent, how many the server had cached.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        """Return both together."""
        return TokenUsage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
        )


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """The outcome of one question to the judge.

    Attributes:
        status: `ok` if there is a value.
        value: What the task's schema describes; None unless the status is `ok`.
        raw: The judge's last message as it came; None if there was none, or it was not kept.
        usage: Tokens.
        latency: Seconds of the tries that were answered, without waiting for a turn.
        cached: The answer was remembered; nobody was asked.
        attempts: How often it was asked, now or when it was remembered.
        model: The judge, as it is called where it is served.
        fingerprint: Of the served system, where the server gives one.
        detail: Why there is no value, in a word.
        weights: Of each labelled place of the value, the probability of each label, where the
            server gives log probabilities: {"/verdict": {"yes": 0.9, "no": 0.1}}.
    """

    status: JudgeStatus
    value: Any = None
    raw: str | None = None
    usage: TokenUsage = TokenUsage()
    latency: float = 0.0
    cached: bool = False
    attempts: int = 0
    model: str = ""
    fingerprint: str | None = None
    detail: str | None = None
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


class Asks(Protocol):
    """Answers the questions of evaluators: a judge, or a test's stand-in."""

    def ask(
        self,
        task: Task,
        inputs: Mapping[str, Any],
        schema: Mapping[str, Any] | None = None,
        vote: int = 0,
    ) -> JudgeResult:
        """Return what became of one question; a bad answer is no exception."""
        ...
