"""Azure AI Content Safety's groundedness detection, with offsets in its three encodings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from guardrail_service.errors import InputError
from guardrail_service.server.dialects.base import (
    Dialect,
    DialectBody,
    DialectCall,
    DialectEndpoint,
)
from guardrail_service.server.error_replies import Shaped
from guardrail_service.server.schemas import CheckReply, ErrorBody

_SUPPORTED = "supported"


class GroundednessQuestion(DialectBody):
    """The question of a task `QnA`."""

    query: str | None = None


class GroundednessRequest(DialectBody):
    """A text and the sources that it should follow from."""

    domain: Literal["Generic", "Medical"] = "Generic"
    task: Literal["QnA", "Summarization"] = "Summarization"
    qna: GroundednessQuestion | None = None
    text: str
    groundingSources: Annotated[list[str], Field(max_length=10_000)]  # noqa: N815 - Azure's word
    reasoning: bool = False
    correction: bool = False


def dialect() -> Dialect:
    """Return Azure's format."""
    path = "/contentsafety/text:detectGroundedness"
    endpoint = DialectEndpoint(path, GroundednessRequest, _answer)
    keys = ["ocp-apim-subscription-key"]
    return Dialect("azure", [endpoint], _error, keys, id_header="apim-request-id")


async def _answer(call: DialectCall, body: GroundednessRequest) -> dict[str, Any]:
    if body.correction:
        raise InputError("found true; expected false: nothing here writes answers", "correction")
    question = body.qna.query if body.qna and body.task == "QnA" else None
    reply = await call.check(body.text, question, body.groundingSources)
    flagged = reply.decision == "flag"
    details = _details(reply, body.text, with_reasons=body.reasoning) if flagged else []
    covered = _union((d["offset"]["codePoint"], d["length"]["codePoint"]) for d in details)
    return {
        "ungroundedDetected": flagged,
        "ungroundedPercentage": covered / len(body.text) if body.text else 0.0,
        "ungroundedDetails": details,
        "guardrail": {
            "decision": reply.decision,
            "action": reply.action,
            "flagged": reply.flagged,
            "summary": reply.summary,
        },
    }


def _details(reply: CheckReply, text: str, *, with_reasons: bool) -> list[dict[str, Any]]:
    """Return the places that flagging detectors point at; the whole text for those without one."""
    places: dict[tuple[int, int], str] = {}
    for name in reply.flagged:
        spans = [span for span in reply.detectors[name].spans if span.label != _SUPPORTED]
        found = [(span.start, span.end, span.label) for span in spans] or [(0, len(text), "whole")]
        for start, end, label in found:
            places.setdefault((start, end), f"{name}: {label}")
    marks = encoded_offsets(text, (mark for place in places for mark in place))
    details = []
    for (start, end), reason in sorted(places.items()):
        first, last = marks[start], marks[end]
        detail: dict[str, Any] = {
            "text": text[start:end],
            "offset": first,
            "length": {key: last[key] - first[key] for key in first},
        }
        details.append(detail | ({"reason": reason} if with_reasons else {}))
    return details


def encoded_offsets(text: str, marks: Iterable[int]) -> dict[int, dict[str, int]]:
    """Return places, given in code points, in bytes of UTF-8 and units of UTF-16, too."""
    found: dict[int, dict[str, int]] = {}
    at = utf8 = utf16 = 0
    for mark in sorted(set(marks)):
        part = text[at:mark]
        utf8 += len(part.encode())
        utf16 += len(part.encode("utf-16-le")) // 2
        at = mark
        found[mark] = {"utf8": utf8, "utf16": utf16, "codePoint": mark}
    return found


def _union(places: Iterable[Sequence[int]]) -> int:
    """Return how many characters lie in at least one place, given by start and length in order."""
    covered = at = 0
    for start, length in places:
        covered += max(0, start + length - max(at, start))
        at = max(at, start + length)
    return covered


_CODES = {
    401: "401",
    404: "NotFound",
    413: "InvalidRequestBody",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
}


def _error(status: int, error: ErrorBody) -> Shaped:
    """Return an error as Azure's clients parse it."""
    code = _CODES.get(status, "InternalError" if status >= 500 else "InvalidRequestBody")
    inner = {"code": error.code}
    body = {"error": {"code": code, "message": error.message, "details": [], "innererror": inner}}
    headers = {"x-ms-error-code": code, "apim-request-id": error.request_id}
    return Shaped({422: 400}.get(status, status), body, headers)
