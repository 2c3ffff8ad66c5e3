"""OpenAI's moderations: a text or several, and whether each is flagged."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from guardrail_service.errors import InputError, LimitExceeded, UnknownPolicy
from guardrail_service.server.dialects.base import (
    MISSING,
    Dialect,
    DialectBody,
    DialectCall,
    DialectEndpoint,
    only_text,
)
from guardrail_service.server.error_replies import Shaped
from guardrail_service.server.schemas import CheckReply, Contexts, ErrorBody

SERVED = ("omni-moderation", "text-moderation")
"""Beginnings of OpenAI's own names of models: they mean the default policy."""
CATEGORIES: dict[str, tuple[str, ...]] = {
    "harassment": ("toxicity", "severe_toxicity", "insult"),
    "harassment/threatening": ("threat",),
    "hate": ("identity_attack", "hate"),
    "hate/threatening": (),
    "illicit": (),
    "illicit/violent": (),
    "self-harm": (),
    "self-harm/instructions": (),
    "self-harm/intent": (),
    "sexual": (),
    "sexual/minors": (),
    "violence": ("threat",),
    "violence/graphic": (),
}
"""OpenAI's categories with the metrics of `toxicity` that stand for them; without one: null."""


class ModerationRequest(DialectBody):
    """Texts to judge; `question` and `contexts` are ours, sent as the SDK's `extra_body`."""

    input: str | Annotated[list[str | dict[str, Any]], Field(min_length=1, max_length=10_000)]
    model: str | None = Field(None, max_length=64)
    question: str | None = None
    contexts: Contexts = Field(default_factory=list)


def dialect() -> Dialect:
    """Return OpenAI's format."""
    return Dialect(
        "openai", [DialectEndpoint("/v1/moderations", ModerationRequest, _answer)], _error
    )


async def _answer(call: DialectCall, body: ModerationRequest) -> dict[str, Any]:
    texts = _texts(body)
    most = call.service.runtime.settings.limits.batch_items
    if len(texts) > most:
        raise LimitExceeded(f"found {len(texts)} texts; expected at most {most}", "input")
    named = body.model is not None and not body.model.startswith(SERVED)
    results, model = [], ""
    for text in texts:
        reply = await call.check(text, body.question, body.contexts, body.model if named else None)
        model = f"{reply.policy.name}@{reply.policy.version}"
        results.append(_result(reply, has_passages=bool(body.contexts)))
    return {"id": f"modr-{call.request_id}", "model": model, "results": results}


def _texts(body: ModerationRequest) -> list[str]:
    if isinstance(body.input, str):
        return [body.input]
    strings = [part for part in body.input if isinstance(part, str)]
    if len(strings) == len(body.input):
        return strings
    if strings:
        raise InputError("found texts and parts in one list; expected one of both", "input")
    return [only_text(body.input, "input")]


def _result(reply: CheckReply, *, has_passages: bool) -> dict[str, Any]:
    toxicity = reply.detectors.get("toxicity")
    metrics = toxicity.metrics if toxicity else {}
    found = {
        category: [metrics[name] for name in names if name in metrics]
        for category, names in CATEGORIES.items()
    }
    return {
        "flagged": _is_flagged(reply, has_passages=has_passages),
        "categories": {
            name: any(m.flagged for m in of) if of else None for name, of in found.items()
        },
        "category_scores": {
            name: max(m.score for m in of) if of else None for name, of in found.items()
        },
        "category_applied_input_types": {
            name: ["text"] if of else [] for name, of in found.items()
        },
        "guardrail": {
            "decision": reply.decision,
            "action": reply.action,
            "flagged": reply.flagged,
            "summary": reply.summary,
        },
    }


def _is_flagged(reply: CheckReply, *, has_passages: bool) -> bool:
    """Return the decision; who sends no passages asks about the text alone.

    A moderation has no place for passages, so a detector that only lacks them does not count.
    """
    if has_passages:
        return reply.decision == "flag"
    return any(result.flagged for result in reply.detectors.values() if result.reason != MISSING)


_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def _error(status: int, error: ErrorBody) -> Shaped:
    """Return an error as the SDK parses it; it takes the request's id from the header."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    code, param = error.code, error.message.partition(": ")[0].partition(".")[0]
    if error.code == UnknownPolicy.code:
        code, param = "model_not_found", "model"
    if error.code == "unauthorized":
        code = "invalid_api_key"
    field = param if param in ModerationRequest.model_fields else None
    return Shaped(
        {422: 400}.get(status, status),
        {"error": {"message": error.message, "type": kind, "param": field, "code": code}},
    )
