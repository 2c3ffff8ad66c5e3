"""Turns what went wrong into a typed error, without letting submitted text into its message."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import httpx

from guardrail_client.errors import APIError, ConnectionFailed, UnexpectedReply, error_class
from guardrail_client.types import StreamOptions

# A shorter overlap between a message and the submitted text is common words.
ECHO_CHARS = 24
# A shorter text of ASCII stands inside other words by chance.
WHOLE_WORD_CHARS = 8
MESSAGE_CHARS = 500
ELSEWHERE = "[...]"
FIELDS = frozenset(
    {*StreamOptions.__annotations__, "answer", "items", "text", "line", "item", "label", "comment"}
)


def connection_error(
    error: httpx.HTTPError, place: str, request_id: str
) -> ConnectionFailed | UnexpectedReply:
    """Return the typed form of an httpx error that is not a time-out."""
    if isinstance(error, httpx.DecodingError):
        return UnexpectedReply("the reply's compression is broken", request_id=request_id)
    if isinstance(error, httpx.ConnectError):
        return ConnectionFailed(f"cannot connect to {place}: {error}", request_id=request_id)
    # Only the class: h11 quotes bytes it received in its messages.
    found = f"connection to {place} broke before the reply was complete ({type(error).__name__})"
    return ConnectionFailed(found, request_id=request_id)


def refusal(
    status: int,
    headers: Mapping[str, str],
    body: Any,
    *,
    sent: Mapping[str, Any] | None,
    request_id: str,
) -> APIError:
    """Return the typed form of a reply that is not a 200.

    Args:
        status: HTTP status.
        headers: HTTP headers, keys in lower case.
        body: The reply's JSON, or its bytes if it is not JSON.
        sent: The request's JSON, whose texts the message must not repeat.
        request_id: Our id of the call, for a reply that carries none.
    """
    detail = body.get("error") if isinstance(body, dict) else None
    detail = detail if isinstance(detail, dict) else {}
    identity = _token(detail.get("request_id")) or _token(headers.get("x-request-id"))
    return error_class(status)(
        repeatable(detail.get("message"), sent),
        status=status,
        code=repeatable_code(detail.get("code"), sent),
        request_id=identity or request_id,
        body=body,
        retry_after=retry_after(headers),
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds the reply asks to wait; None if it does not say."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:  # absent, or a date, which the service never sends
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _token(value: Any) -> str | None:
    """Return an id or a code if it looks like one; a sentence does not."""
    if isinstance(value, str) and 0 < len(value) <= 128 and value.isascii():
        return value if value.isprintable() and " " not in value else None
    return None


def repeatable(message: Any, sent: Mapping[str, Any] | None) -> str | None:
    """Return a message of a reply without submitted text; None if nothing of it may be repeated.

    The service keeps submitted text out of its messages; a proxy in between may not. The name of a
    field in front is never a submitted text, and a short text is taken out where it stands as a
    word of its own: the service's own words often hold an answer such as "a" or "42".
    """
    if not isinstance(message, str):
        return None
    field, said = _split_field(message)
    for text in sorted(_texts(sent), key=len, reverse=True):
        if len(text) > ECHO_CHARS and _echoes(said, text):
            return None
        if len(text) <= ECHO_CHARS:
            said = _without(said, text)
    return (field + said)[:MESSAGE_CHARS]


def repeatable_code(code: Any, sent: Mapping[str, Any] | None) -> str | None:
    """Return a reply's error code; None if it is none, or a submitted text."""
    found = _token(code)
    return found if found is not None and repeatable(found, sent) == found else None


def _split_field(message: str) -> tuple[str, str]:
    """Return the field that a message begins with, as `contexts[3]: `, and the rest."""
    name, colon, rest = message.partition(": ")
    first, bracket, index = name.partition("[")
    is_field = first in FIELDS and (not bracket or index.removesuffix("]").isdecimal())
    return (name + colon, rest) if colon and is_field else ("", message)


def _without(message: str, text: str) -> str:
    """Return a message in which a short text is not said."""
    is_word = text.isascii() and len(text) < WHOLE_WORD_CHARS
    kept, begin = "", 0
    while (at := message.find(text, begin)) >= 0:
        end = at + len(text)
        inside = is_word and (message[at - 1 : at].isalnum() or message[end : end + 1].isalnum())
        kept += message[begin:at] + (text if inside else ELSEWHERE)
        begin = end
    return kept + message[begin:]


def _texts(sent: Mapping[str, Any] | None) -> list[str]:
    texts: list[Any] = []
    for item in (sent or {}).get("items", [sent] if sent else []):
        passages = [p if isinstance(p, str) else p["text"] for p in item.get("contexts", ())]
        texts += [*map(item.get, ("answer", "question", "comment")), *passages]
    return [text.strip() for text in texts if isinstance(text, str) and text.strip()]


def _echoes(message: str, text: str) -> bool:
    windows = range(len(message) - ECHO_CHARS + 1)
    return any(message[i : i + ECHO_CHARS] in text for i in windows)
