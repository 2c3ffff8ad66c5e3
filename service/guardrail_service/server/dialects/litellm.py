"""LiteLLM's generic guardrail API: calls before and after the model, joined by their id."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from guardrail_service.errors import InputError
from guardrail_service.server.dialects.base import (
    Dialect,
    DialectBody,
    DialectCall,
    DialectEndpoint,
)
from guardrail_service.server.dialects.message_sources import AnswerSources, PassageRule, sources
from guardrail_service.server.error_replies import Shaped
from guardrail_service.server.schemas import CheckReply, ErrorBody, ErrorReply

KEPT_S = 1_800.0
"""From the question to the last answer: longer than LiteLLM waits for a model unless told to."""
KEPT_CHARS = 16_000_000
"""Of all calls in flight: some sixty megabytes. The oldest go first."""
KEPT_CALLS = 20_000
_REASON = "the answer was stopped by the guardrail"
_PICTURE = "the answer holds pictures, which the guardrail cannot check"
_NO_SOURCES = (
    "no passages are known of this call: register the guardrail with mode [pre_call, post_call], "
    "and see docs/integrations/litellm.md for where passages are looked for"
)


class LiteLLMRequest(DialectBody):
    """The body that LiteLLM sends before a model is asked and after it answered."""

    input_type: Literal["request", "response"]
    litellm_call_id: str | None = Field(None, max_length=256)
    texts: Annotated[list[str], Field(max_length=1_000)] | None = None
    images: list[str] | None = None
    tool_calls: list[dict[str, Any]] | None = None
    structured_messages: Annotated[list[dict[str, Any]], Field(max_length=10_000)] | None = None
    request_data: dict[str, Any] = Field(default_factory=dict)
    additional_provider_specific_params: dict[str, Any] | None = None


class _Kept(NamedTuple):
    sources: AnswerSources
    until: float


class Calls:
    """Questions and passages of the calls in flight, in bounded memory and for some time.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, ...], _Kept] = OrderedDict()
        self._size = 0

    def keep(self, call: tuple[str, ...], found: AnswerSources) -> None:
        """Remember a call's sources in place of what was known of it."""
        self._drop(call)
        if found.size > KEPT_CHARS:
            return
        self._kept[call] = _Kept(found, self._clock() + KEPT_S)
        self._size += found.size
        while self._size > KEPT_CHARS or len(self._kept) > KEPT_CALLS or self._is_over():
            self._drop(next(iter(self._kept)))

    def of(self, call: tuple[str, ...]) -> AnswerSources | None:
        """Return a call's sources; streams and repeated answers ask for them several times."""
        kept = self._kept.get(call)
        return kept.sources if kept and kept.until > self._clock() else None

    def _is_over(self) -> bool:
        return next(iter(self._kept.values())).until <= self._clock()

    def _drop(self, call: tuple[str, ...]) -> None:
        if (kept := self._kept.pop(call, None)) is not None:
            self._size -= kept.sources.size


def dialect() -> Dialect:
    """Return LiteLLM's format, with calls in flight of its own."""
    calls = Calls()

    async def answer(call: DialectCall, body: LiteLLMRequest) -> dict[str, Any]:
        options = body.additional_provider_specific_params or {}
        known = _id(call, body)
        policy, rule = _policy(options), _rule(options)
        if body.input_type == "request":
            if known is not None:
                calls.keep(known, sources(body.structured_messages or [], rule))
            return {"action": "NONE"}
        return await _judged(call, body, calls.of(known) if known else None, policy)

    path = "/beta/litellm_basic_guardrail_api"
    return Dialect(
        "litellm", [DialectEndpoint(path, LiteLLMRequest, answer)], _error, ["x-api-key"]
    )


def _id(call: DialectCall, body: LiteLLMRequest) -> tuple[str, ...] | None:
    """Return what a call is known by; an end user may choose the id, so whose it is counts too."""
    if not body.litellm_call_id:
        return None
    whose = body.request_data.get("user_api_key_hash")
    return call.caller, str(whose or "")[:256], body.litellm_call_id


def _policy(options: Mapping[str, Any]) -> str | None:
    found = options.get("policy")
    if found is not None and not isinstance(found, str):
        raise InputError("expected a policy's name", "additional_provider_specific_params.policy")
    return found


def _rule(options: Mapping[str, Any]) -> PassageRule:
    try:
        return PassageRule.model_validate(options.get("passages") or {})
    except ValidationError:
        expected = "expected roles and tags, see docs/integrations/litellm.md"
        raise InputError(expected, "additional_provider_specific_params.passages") from None


async def _judged(
    call: DialectCall, body: LiteLLMRequest, known: AnswerSources | None, policy: str | None
) -> dict[str, Any]:
    """Return what happens to an answer: every text and every argument for a tool is judged."""
    found = known or AnswerSources(None, ())
    if body.images:
        return _blocked(call, _PICTURE)
    texts = list(body.texts or [])
    for index, text in enumerate(texts):
        if text:
            reply = await call.check(text, found.question, found.contexts, policy)
            if reply.action == "block":
                return _blocked(call, _why(reply, found))
            if reply.action == "redact":
                texts[index] = reply.redacted_answer or ""
    for arguments in map(_arguments, body.tool_calls or []):
        if arguments.strip() not in ("", "{}"):
            reply = await call.check(arguments, found.question, found.contexts, policy)
            if reply.action in ("block", "redact"):  # arguments cannot be rewritten here
                return _blocked(call, _why(reply, found))
    # Of a stream that is judged in parts nothing leaves before its end; see the page about LiteLLM.
    held = {"stream_holdback_chars": [len(text) for text in texts]}
    if texts != (body.texts or []):
        return {"action": "GUARDRAIL_INTERVENED", "texts": texts, **held}
    return {"action": "NONE", **held}


def _arguments(tool_call: Mapping[str, Any]) -> str:
    function = tool_call.get("function")
    found = function.get("arguments") if isinstance(function, Mapping) else None
    return found if isinstance(found, str) else ""


def _why(reply: CheckReply, found: AnswerSources) -> str:
    missing = any(result.reason == "missing_input" for result in reply.detectors.values())
    hint = f" {_NO_SOURCES[0].upper()}{_NO_SOURCES[1:]}." if missing and not found.contexts else ""
    return f"{_REASON}. {reply.summary}{hint}"


def _blocked(call: DialectCall, reason: str) -> dict[str, Any]:
    return {"action": "BLOCKED", "blocked_reason": f"{reason} (request {call.request_id})"}


def _error(status: int, error: ErrorBody) -> Shaped:
    """Return the native form: LiteLLM reads the status alone."""
    return Shaped(status, ErrorReply(error=error).model_dump())
