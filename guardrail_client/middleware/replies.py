"""Chooses the texts of a whole reply to check, and the reply that their verdicts send. Pure.

Every body on a guarded route has one of three outcomes: it is checked, it is known to hold no
answer, or it cannot be checked and the route's `on_error` decides.
"""

from __future__ import annotations

import http
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from guardrail_client.errors import GuardrailError
from guardrail_client.middleware import bodies
from guardrail_client.middleware.bodies import Header, UnreadableBody
from guardrail_client.middleware.documents import (
    Document,
    dumped,
    strict_json,
    without_sentences,
)
from guardrail_client.middleware.exchange import Exchange
from guardrail_client.middleware.outcome import (
    NO_ANSWER,
    AnswerOutcome,
    decided,
    redacted_values,
    streamed,
    unchecked,
    worst,
)
from guardrail_client.middleware.route_options import Route
from guardrail_client.middleware.withheld import Withheld
from guardrail_client.stream import AsyncCheckStream, CheckStream
from guardrail_client.types import CheckError, CheckItem, CheckResult

LOG = logging.getLogger("guardrail_client.middleware")
Verdict = CheckResult | CheckError | GuardrailError | TypeError | ValueError
INCLUDE = ("spans", "redacted_answer")
ERROR_KEYS = frozenset(
    {"detail", "details", "error", "errors", "message", "code", "status", "statusCode", "title",
     "type", "instance", "path", "timestamp", "request_id"}
)  # fmt: skip
"""Of the documents with which frameworks say that a request failed."""


def read_reply(
    route: Route, headers: Sequence[Header], data: bytes, exchange: Exchange
) -> Document:
    """Return a JSON reply with its texts.

    Raises:
        UnreadableBody: If it cannot be checked.
    """
    if not bodies.is_utf8(headers):
        raise UnreadableBody("charset_of_json")  # some readers follow it, others do not
    encoding = bodies.single(headers, b"content-encoding")
    plain = bodies.decoded(data, encoding, route.max_bytes)
    if not plain.strip():
        return Document(None, [])
    exchange.response = strict_json(plain)
    return route.read(exchange)


def items(route: Route, exchange: Exchange, document: Document) -> list[CheckItem]:
    """Return what to ask the guard about a document.

    Raises:
        TypeError: If what the route finds are no passages.
    """
    about = route.about(exchange)
    return [CheckItem(answer=found.text, include=INCLUDE, **about) for found in document.texts]


def answered(
    route: Route, path: str, document: Document, verdicts: Sequence[Verdict]
) -> tuple[AnswerOutcome, bytes | None]:
    """Return what happened to a reply, and the bytes to send if they are others.

    Raises:
        UnreadableBody: If a text cannot be put where it was found.
    """
    if not document.texts:
        return AnswerOutcome(path, "as_is", None, NO_ANSWER), None
    outcomes, texts, values = [], [], []
    for found, verdict in zip(document.texts, verdicts, strict=True):
        outcome, text = treated(route, path, found.text, verdict)
        outcomes.append(outcome)
        texts.append(text)
        if outcome.shown == "redacted" and outcome.result is not None:
            values += redacted_values(found.text, outcome.result)
    old = [found.text for found in document.texts]
    outcome = worst(outcomes)
    if texts == old:
        return outcome, None
    stopped = [outcome.shown == "replaced" for outcome in outcomes]
    withheld = Withheld([text for text, out in zip(old, stopped, strict=True) if out], values)
    return outcome, dumped(document.with_texts(texts, stopped, withheld))


def redacted(document: Document, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield the values that the verdicts on a document's texts redact."""
    for found, verdict in zip(document.texts, verdicts, strict=True):
        if isinstance(verdict, CheckResult) and verdict.action == "redact":
            yield from redacted_values(found.text, verdict)


def treated(route: Route, path: str, text: str, verdict: Verdict) -> tuple[AnswerOutcome, str]:
    """Return what happens to a text, and what is shown in its place."""
    if isinstance(verdict, CheckResult):
        return decided(route, path, text, verdict)
    outcome = unchecked(route, path, verdict)
    LOG.warning("answer not checked, %s: %s", outcome.shown, outcome.error)
    return outcome, text if outcome.shown == "as_is" else route.fallback_for(outcome)


def ended(path: str, stream: CheckStream | AsyncCheckStream) -> AnswerOutcome:
    """Return what happened to an answer that was streamed to its end."""
    outcome = streamed(path, stream)
    if outcome.error is not None:
        LOG.warning("stream not checked to its end, %s: %s", outcome.shown, outcome.error)
    return outcome


def without_verdict(route: Route, path: str, code: str) -> tuple[AnswerOutcome, bytes]:
    """Return what happens to a body that cannot be checked, and what stands in for it."""
    outcome = unchecked(route, path, code)
    LOG.warning("answer not checked, %s: %s", outcome.shown, code)
    said = {"code": "guardrail_unchecked", "reason": code, "message": route.fallback_for(outcome)}
    return outcome, dumped({"error": said})


def refusing(headers: Sequence[Header], body: bytes) -> list[Header]:
    """Return the headers of a body that stands in for one that cannot be checked."""
    kept = bodies.rewritten(headers, len(body))
    return bodies.added(kept, [("content-type", "application/json")])


def failed(
    route: Route, path: str, status: int, headers: Sequence[Header], data: bytes
) -> tuple[AnswerOutcome, bytes | None]:
    """Return what happened to the body of a failed request, and the bytes to send if others.

    Raises:
        UnreadableBody: If it is not one that frameworks write.
    """
    outcome = AnswerOutcome(path, "as_is", None, NO_ANSWER)
    kind = bodies.media_type(headers)
    if not data.strip() or (
        kind == "text/plain" and data.strip().decode("latin-1") == phrase(status)
    ):
        return outcome, None
    if not bodies.is_json(kind) or bodies.value(headers, b"content-encoding"):
        raise UnreadableBody("unread_error")
    document: Any = strict_json(data)
    if not isinstance(document, Mapping) or not document.keys() <= ERROR_KEYS:
        raise UnreadableBody("unread_error")
    said = document if route.errors == "unchecked" else without_sentences(document, phrase(status))
    if said == document:
        return outcome, None
    LOG.info("sentences of an error not sent")
    return outcome, dumped(said)


def phrase(status: int) -> str:
    """Return how HTTP calls a status."""
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def bodiless(method: str, status: int) -> bool:
    """Return whether a response has no body, whatever the application sends."""
    return method == "HEAD" or status in (204, 304) or status < 200
