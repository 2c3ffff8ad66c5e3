"""What a verdict means for a response: shown, redacted or replaced, and which headers say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from guardrail_client.errors import UNAVAILABLE, GuardrailError
from guardrail_client.types import CheckResult

if TYPE_CHECKING:
    from guardrail_client.middleware.routes import Route
    from guardrail_client.stream import AsyncCheckStream, CheckStream

Shown = Literal["as_is", "redacted", "replaced"]
_SEVERITY = ("allow", "flag", "redact", "block")


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """What happened to one answer.

    Attributes:
        path: Of the request.
        shown: Whether it was sent as it is, redacted or replaced.
        result: The verdict; None if there is none.
        error: Code of why there is no verdict; None if there is one.
    """

    path: str
    shown: Shown
    result: CheckResult | None = None
    error: str | None = None

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers that say it: names and numbers, never text."""
        if self.result is None:
            return [
                ("X-Guardrail-Decision", "unchecked"),
                ("X-Guardrail-Error", self.error or "unchecked"),
            ]
        result = self.result
        found = [
            ("X-Guardrail-Decision", result.decision),
            ("X-Guardrail-Action", result.action),
            ("X-Guardrail-Policy", f"{result.policy.name}@{result.policy.version}"),
            ("X-Guardrail-Request-Id", result.request_id),
        ]
        flagged = ",".join(result.flagged_detectors)
        return [*found, ("X-Guardrail-Flagged", flagged)] if flagged else found


def decided(route: Route, path: str, answer: str, result: CheckResult) -> tuple[AnswerOutcome, str]:
    """Return what happens to an answer with a verdict, and the text to send."""
    action = result.action
    if route.mode == "shadow":
        return AnswerOutcome(path, "as_is", result), answer
    if _SEVERITY.index(action) >= _SEVERITY.index(route.stop_on) or _cannot_redact(answer, result):
        return AnswerOutcome(path, "replaced", result), route.fallback
    if action == "redact" and result.redacted_answer is not None:
        return AnswerOutcome(path, "redacted", result), result.redacted_answer
    return AnswerOutcome(path, "as_is", result), answer


def streamed(path: str, stream: CheckStream | AsyncCheckStream) -> AnswerOutcome:
    """Return what happened to an answer that was streamed to its end."""
    if stream.error is not None:
        return AnswerOutcome(path, "as_is", None, stream.error.code)
    if stream.final is None:
        return AnswerOutcome(path, "as_is", None, "unchecked")
    result = stream.final.result
    if stream.blocked:
        return AnswerOutcome(path, "replaced", result)
    return AnswerOutcome(path, "redacted" if result.action == "redact" else "as_is", result)


def _cannot_redact(answer: str, result: CheckResult) -> bool:
    """Return whether what should be redacted would be shown: nothing in the answer was replaced.

    Or a detector that flagged for want of a result may be one that should redact.
    """
    if result.action != "redact":
        return False
    flagged = (d for d in result.detectors.values() if d.flagged)
    return result.redacted_answer in (None, answer) or any(d.state != "evaluated" for d in flagged)


def unchecked(route: Route, path: str, error: Exception | str) -> AnswerOutcome:
    """Return what happens to an answer without a verdict.

    Failing open is for a guard that cannot be asked; a wrong key or request still replaces.
    """
    code = error if isinstance(error, str) else getattr(error, "code", type(error).__name__)
    cannot_ask = isinstance(error, UNAVAILABLE) or not isinstance(error, GuardrailError)
    passes = route.mode == "shadow" or (route.on_error == "open" and cannot_ask)
    return AnswerOutcome(path, "as_is" if passes else "replaced", None, str(code))
