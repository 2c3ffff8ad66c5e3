"""Turns a verdict into a response: shown, redacted or replaced, with the headers that say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Literal

from guardrail_client.errors import BY_CODE, UNAVAILABLE
from guardrail_client.types import CheckError, CheckResult, StreamFinal

if TYPE_CHECKING:
    from guardrail_client.middleware.route_options import Route
    from guardrail_client.stream import AsyncCheckStream, CheckStream

Shown = Literal["as_is", "redacted", "replaced"]
NO_ANSWER = "no_answer"
"""Stands in `AnswerOutcome.error` of a body that is known to hold no answer."""
SHORTEST_VALUE = 3
"""Characters of a value that is looked for elsewhere though no span names it."""
_SEVERITY = ("allow", "mark", "flag", "redact", "block")
_SHOWN: Sequence[Shown] = ("as_is", "redacted", "replaced")


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """The fate of one answer.

    Attributes:
        path: Of the request.
        shown: Whether it was sent as it is, redacted or replaced.
        result: The verdict; None if there is none.
        error: Code of why there is no verdict; None if there is one.
        retract_from: Of a stream that was stopped for what had already been shown: the code point
            of the text from which on it should be taken back.
    """

    path: str
    shown: Shown
    result: CheckResult | None = None
    error: str | None = None
    retract_from: int | None = None

    @property
    def reason(self) -> Literal["blocked", "outage"]:
        """Return why an answer was replaced: for its verdict, or for want of one."""
        return "outage" if self.result is None else "blocked"

    def told(self) -> dict[str, Any]:
        """Return what the last event of a stopped or marked stream says."""
        action = self.result.action if self.result else None
        if self.shown != "replaced":
            return {"action": action}
        return {"reason": self.reason, "action": action, "retract_from": self.retract_from}

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers that say it: names and numbers, never text."""
        if self.result is None:
            if self.error == NO_ANSWER:
                return [("X-Guardrail-Decision", NO_ANSWER)]
            code = self.error or "unchecked"
            return [("X-Guardrail-Decision", "unchecked"), ("X-Guardrail-Error", _token(code))]
        result = self.result
        found = [
            ("X-Guardrail-Decision", result.decision),
            ("X-Guardrail-Action", result.action),
            ("X-Guardrail-Shown", self.shown),
            ("X-Guardrail-Policy", _token(f"{result.policy.name}@{result.policy.version}")),
            ("X-Guardrail-Request-Id", _token(result.request_id)),
        ]
        flagged = ",".join(map(_token, result.flagged))
        return [*found, ("X-Guardrail-Flagged", flagged)] if flagged else found


def _token(value: str) -> str:
    """Return a name as a header can carry it; the service's replies are not trusted to be names."""
    kept = (c if c.isascii() and c.isprintable() and c != " " else "_" for c in value)
    return "".join(kept)[:128]


def decided(route: Route, path: str, answer: str, result: CheckResult) -> tuple[AnswerOutcome, str]:
    """Return what happens to an answer with a verdict, and the text to send."""
    action = result.action
    if route.mode == "shadow":
        return AnswerOutcome(path, "as_is", result), answer
    if is_severe(route, action) or _cannot_redact(answer, result):
        outcome = AnswerOutcome(path, "replaced", result)
        return outcome, route.fallback_for(outcome)
    if action == "redact" and result.redacted_answer is not None:
        return AnswerOutcome(path, "redacted", result), result.redacted_answer
    if action == "mark" and route.mark is not None:
        return AnswerOutcome(path, "as_is", result), f"{answer}\n\n{route.mark}"
    return AnswerOutcome(path, "as_is", result), answer


def is_severe(route: Route, action: str) -> bool:
    """Return whether an answer with an action is replaced on a route that enforces."""
    return _SEVERITY.index(action) >= _SEVERITY.index(route.stop_on or "block")


def streamed(path: str, stream: CheckStream | AsyncCheckStream) -> AnswerOutcome:
    """Return what happened to an answer that was streamed to its end."""
    if stream.error is not None:
        return AnswerOutcome(path, "as_is", None, stream.error.code)
    if stream.final is None:
        return AnswerOutcome(path, "as_is", None, "unchecked")
    result = stream.final.result
    if stream.blocked:
        return AnswerOutcome(path, "replaced", result, retract_from=_to_retract(stream.final))
    return AnswerOutcome(path, "redacted" if result.action == "redact" else "as_is", result)


def _to_retract(final: StreamFinal) -> int | None:
    """Return from where on shown text should be taken back; None if no finding is in it."""
    flagged = [found for found in final.result.detectors.values() if found.flagged]
    behind = all(
        found.spans and min(span.start for span in found.spans) >= final.processed_index
        for found in flagged
    )
    is_seen = final.checked[0] < final.processed_index
    return None if not is_seen or (flagged and behind) else final.checked[0]


def worst(outcomes: Sequence[AnswerOutcome]) -> AnswerOutcome:
    """Return the outcome that says most about a reply of several texts."""

    def rank(outcome: AnswerOutcome) -> tuple[int, bool, int]:
        action = outcome.result.action if outcome.result else "allow"
        shown = _SHOWN.index(outcome.shown)
        return shown, outcome.result is None, _SEVERITY.index(action)

    return max(outcomes, key=rank)


def _cannot_redact(answer: str, result: CheckResult) -> bool:
    """Return whether what should be redacted would be shown: nothing in the answer was replaced.

    Or a detector that flagged for want of a result may be one that should redact.
    """
    if result.action != "redact":
        return False
    flagged = (d for d in result.detectors.values() if d.flagged)
    return result.redacted_answer in (None, answer) or any(d.state != "evaluated" for d in flagged)


def redacted_values(answer: str, result: CheckResult) -> list[str]:
    """Return the values of an answer that its redacted form does not show, spans or none."""
    redacted = result.redacted_answer or ""
    spans = [span for detector in result.detectors.values() for span in detector.spans]
    values = {answer[span.start : span.end] for span in spans} | set(gone(answer, redacted))
    return [value for value in values if value.strip() and value not in redacted]


def gone(answer: str, redacted: str) -> Iterator[str]:
    """Yield runs of words that stand in a text and not in its redacted form."""
    old, new = answer.split(), redacted.split()
    ends, at = [], 0
    for word in old:
        at = answer.index(word, at) + len(word)
        ends.append(at)
    for what, start, end, other, until in SequenceMatcher(None, old, new).get_opcodes():
        if what == "equal" or start == end:
            continue
        run = answer[ends[start] - len(old[start]) : ends[end - 1]]
        instead = " ".join(new[other:until])
        for is_border in (lambda letter: not letter.isalnum(), lambda letter: True):
            if len(value := _between(run, instead, is_border)) >= SHORTEST_VALUE:
                yield value


def _between(run: str, instead: str, is_border: Callable[[str], bool]) -> str:
    """Return a run of words without the letters around it that stand in its place, too."""
    while run and instead and run[0] == instead[0] and is_border(run[0]):
        run, instead = run[1:], instead[1:]
    while run and instead and run[-1] == instead[-1] and is_border(run[-1]):
        run, instead = run[:-1], instead[:-1]
    return run


def unchecked(route: Route, path: str, error: Exception | CheckError | str) -> AnswerOutcome:
    """Return what happens to an answer without a verdict.

    Failing open is for a guard that cannot be asked; a wrong key or request still replaces.
    """
    code = error if isinstance(error, str) else getattr(error, "code", type(error).__name__)
    cannot_ask = isinstance(error, (str, *UNAVAILABLE)) or (
        isinstance(error, CheckError) and error.code in BY_CODE
    )
    passes = route.mode == "shadow" or (route.on_error == "open" and cannot_ask)
    return AnswerOutcome(path, "as_is" if passes else "replaced", None, str(code))
