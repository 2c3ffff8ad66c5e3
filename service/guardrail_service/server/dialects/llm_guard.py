"""LLM Guard's API for outputs: `analyze` cleans an answer, `scan` only scores it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from guardrail_service.errors import InputError
from guardrail_service.server.dialects.base import (
    Dialect,
    DialectBody,
    DialectCall,
    DialectEndpoint,
)
from guardrail_service.server.dialects.message_sources import (
    AnswerSources,
    PassageRule,
    sources,
)
from guardrail_service.server.error_replies import Shaped
from guardrail_service.server.schemas import CheckReply, DetectorOut, ErrorBody
from guardrail_service.types import State


class OutputRequest(DialectBody):
    """An answer and the prompt that it was written for."""

    prompt: str
    output: str
    scanners_suppress: Annotated[list[str], Field(max_length=1_000)] = Field(default_factory=list)


def dialect() -> Dialect:
    """Return LLM Guard's format."""
    analyze = DialectEndpoint("/analyze/output", OutputRequest, _analyze)
    scan = DialectEndpoint("/scan/output", OutputRequest, _scan)
    return Dialect("llm_guard", [analyze, scan], _error)


async def _analyze(call: DialectCall, body: OutputRequest) -> dict[str, Any]:
    reply = await _judged(call, body)
    shown = {"block": "", "redact": reply.redacted_answer or ""}.get(reply.action, body.output)
    return {**_scores(reply), "sanitized_output": shown}


async def _scan(call: DialectCall, body: OutputRequest) -> dict[str, Any]:
    return _scores(await _judged(call, body))


async def _judged(call: DialectCall, body: OutputRequest) -> CheckReply:
    if body.scanners_suppress:
        expected = "expected none: the policy says which detectors run"
        found = f"found {len(body.scanners_suppress)} names; {expected}"
        raise InputError(found, "scanners_suppress")
    known = _of_prompt(body.prompt)
    return await call.check(body.output, known.question, known.contexts)


def _of_prompt(prompt: str) -> AnswerSources:
    """Return the question around the tagged passages of a prompt.

    A prompt without tags is both, as for LLM Guard's own comparison of an output with its prompt.
    """
    found = sources([{"role": "user", "content": prompt}], PassageRule(roles=["user"]))
    if found.contexts or not prompt.strip():
        return found
    return AnswerSources(prompt, (prompt,))


def _scores(reply: CheckReply) -> dict[str, Any]:
    """Return a risk by detector: 1 is flagged, 0 is not, -1 could not be judged and may pass."""
    return {
        "is_valid": reply.decision == "pass",
        "scanners": {name: _risk(detector) for name, detector in reply.detectors.items()},
    }


def _risk(detector: DetectorOut) -> float:
    if detector.flagged:
        return 1.0
    return 0.0 if detector.state in (State.EVALUATED, State.NOT_APPLICABLE) else -1.0


def _error(status: int, error: ErrorBody) -> Shaped:
    """Return an error in LLM Guard's form."""
    details = {"code": error.code, "request_id": error.request_id}
    return Shaped(status, {"message": error.message, "details": details})
