"""Builds requests, parses replies and decides retries. No I/O: both clients only send.

A call is one question to the service. It may take several tries, which share one request id, one
idempotency key and one time budget.
"""

from __future__ import annotations

import difflib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import httpx

from guardrail_client._options import ClientOptions, checked_timeout
from guardrail_client._typed_errors import (
    connection_error,
    refusal,
    repeatable,
    repeatable_code,
    retry_after,
)
from guardrail_client.errors import (
    APIError,
    ConnectionFailed,
    GuardrailError,
    InvalidRequest,
    TimeoutExceeded,
    UnexpectedReply,
)
from guardrail_client.passages import Passage, wire_passages
from guardrail_client.types import (
    CheckError,
    CheckItem,
    CheckOptions,
    CheckResult,
    StreamOptions,
)

RETRIED_STATUSES = frozenset({429, 502, 503})
# Longer than a typical check takes (tens of milliseconds), so that a full queue has moved on.
FIRST_BACKOFF = 0.1
LONGEST_BACKOFF = 1.0
# A reply to a full batch of long answers stays well below; only a wrong server sends more.
MAX_REPLY_BYTES = 64 * 1024 * 1024


def check_body(answer: str, options: CheckOptions, policy: str | None) -> dict[str, Any]:
    """Return the body of `POST /v1/check`; what is None or not asked for is not sent.

    Args:
        answer: What the user is about to see.
        options: Everything else about it.
        policy: The client's, for options that name none.

    Raises:
        TypeError: If the answer or an option is of a wrong type, or an option is unknown.
    """
    if not isinstance(answer, str):
        raise TypeError(f"answer: found {type(answer).__name__}, expected str")
    return {"answer": answer, **_about(options, policy, CheckOptions)}


def stream_body(options: StreamOptions, policy: str | None) -> dict[str, Any]:
    """Return the first line of `POST /v1/check/stream`."""
    return _about(options, policy, StreamOptions)


def contexts_body(contexts: Sequence[Passage]) -> dict[str, Any]:
    """Return the body of `POST /v1/contexts`."""
    return {"contexts": wire_passages(contexts)}


def feedback_body(
    request_id: str, label: str, comment: str | None, item: int | None
) -> dict[str, Any]:
    """Return the body of `POST /v1/feedback`, without what was not given."""
    body = {"request_id": request_id, "label": label, "comment": comment, "item": item}
    return {key: value for key, value in body.items() if value is not None}


def batch_body(items: Sequence[CheckItem], policy: str | None) -> dict[str, Any]:
    """Return the body of `POST /v1/check/batch`; items without a policy get the client's."""
    return {"items": [_batch_item(index, item, policy) for index, item in enumerate(items)]}


def _about(options: Any, policy: str | None, known: type) -> dict[str, Any]:
    """Return everything a body says about an answer but the answer itself."""
    if unknown := sorted(options.keys() - known.__annotations__.keys()):
        raise TypeError(_unknown_option(unknown[0], known))
    include = options.get("include") or ()
    if isinstance(include, str):
        raise TypeError("include: found str, expected a list of them")
    body = {
        **options,
        "contexts": wire_passages(options.get("contexts")),
        "policy": options.get("policy") or policy,
        "include": list(include) or None,
    }
    return {key: value for key, value in body.items() if value is not None}


def _unknown_option(name: str, known: type) -> str:
    near = difflib.get_close_matches(name, known.__annotations__, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown option {name!r}, expected one of {', '.join(known.__annotations__)}{hint}"


def _batch_item(index: int, item: CheckItem, policy: str | None) -> dict[str, Any]:
    options: Any = dict(item)
    answer = options.pop("answer", None)
    try:
        return check_body(answer, options, policy)
    except TypeError as error:
        raise TypeError(f"items[{index}]: {error}") from None


def parse_batch(reply: Any, sent: Sequence[Mapping[str, Any]]) -> list[CheckResult | CheckError]:
    """Return one verdict or error per item of the body that was sent, in order.

    Raises:
        UnexpectedReply: If the reply does not hold a result for each item.
    """
    count = len(sent)
    results = parse_list(reply, "results")
    if len(results) != count:
        found = f"reply.results: found {len(results)}, expected {count}"
        raise UnexpectedReply(found, status=200, body=reply)
    return [
        _batch_error(result["error"], item) if "error" in result else CheckResult.from_json(result)
        for result, item in zip(results, sent, strict=True)
    ]


def _batch_error(raw: Any, item: Mapping[str, Any]) -> CheckError:
    """Return an item's error, whose message does not repeat the item's texts."""
    error = CheckError.from_json(raw)
    message = repeatable(error.message, item)
    return replace(
        error,
        code=repeatable_code(error.code, item) or InvalidRequest.code,
        message=InvalidRequest.summary if message is None else message,
    )


def parse_list(reply: Any, key: str) -> list[dict[str, Any]]:
    """Return the list of objects under one key of the reply."""
    items = reply.get(key) if isinstance(reply, dict) else None
    if isinstance(items, list) and all(isinstance(item, dict) for item in items):
        return items
    raise UnexpectedReply(f"reply.{key}: expected a list of objects", status=200, body=reply)


def parse_object(reply: Any) -> dict[str, Any]:
    """Return a reply that is one object."""
    if isinstance(reply, dict):
        return reply
    raise UnexpectedReply("reply: expected an object", status=200, body=reply)


def means_not_ready(error: GuardrailError) -> bool:
    """Return whether waiting could cure what `/readyz` ran into."""
    if isinstance(error, APIError):
        return error.status in RETRIED_STATUSES
    return isinstance(error, ConnectionFailed | TimeoutExceeded)


@dataclass(frozen=True, slots=True)
class RawReply:
    """A complete HTTP reply; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


T = TypeVar("T")
TryOutcome = RawReply | httpx.HTTPError


class Call:
    """One call: its request, what is left of its budget, and what to do after each try."""

    def __init__(
        self,
        options: ClientOptions,
        method: Literal["GET", "POST"],
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        max_retries: int | None = None,
        clock: Callable[[], float],
        jitter: Callable[[], float],
    ) -> None:
        self._options = options
        self._budget = options.timeout if timeout is None else checked_timeout(timeout)
        self._retries_left = options.max_retries if max_retries is None else max_retries
        self._backoff = FIRST_BACKOFF
        self._clock = clock
        self._jitter = jitter
        self._deadline = clock() + self._budget
        self._sent = body
        self.request_id = uuid.uuid4().hex
        self.method = method
        self.path = path
        self.content = None if body is None else _encode(body)
        self.headers = self._headers()

    def _headers(self) -> dict[str, str]:
        headers = {**self._options.headers, "X-Request-Id": self.request_id}
        if self.content is not None:
            headers["Content-Type"] = "application/json"
            headers["Idempotency-Key"] = uuid.uuid4().hex
        return headers

    def left(self) -> float:
        """Return the seconds left.

        Raises:
            TimeoutExceeded: If there are none.
        """
        left = self._deadline - self._clock()
        if left <= 0:
            raise self.expired()
        return left

    def expired(self) -> TimeoutExceeded:
        """Return the error for a spent budget."""
        message = f"no complete reply within {self._budget:g} s"
        return TimeoutExceeded(message, request_id=self.request_id)

    def wait(self, outcome: TryOutcome) -> float | None:
        """Return the seconds to wait before the next try; None if this outcome stands.

        A service that names a `Retry-After` gets at least that. A wait that does not fit into the
        budget is not begun: the caller learns now what it would learn at the end of it.
        """
        if self._retries_left == 0 or not _may_retry(outcome):
            return None
        asked = retry_after(outcome.headers) if isinstance(outcome, RawReply) else None
        # Half to all of it, at random: callers refused together do not return together.
        wait = max(self._backoff * (0.5 + self._jitter() / 2), asked or 0.0)
        self._retries_left -= 1
        self._backoff = min(LONGEST_BACKOFF, 2 * self._backoff)
        return wait if wait < self._deadline - self._clock() else None

    def result(self, outcome: TryOutcome, parse: Callable[[Any], T]) -> T:
        """Return what `parse` makes of the reply's JSON.

        Raises:
            GuardrailError: For every outcome but a 200 with JSON that `parse` accepts.
        """
        try:
            return parse(self._json(outcome))
        except UnexpectedReply as error:
            error.request_id = self.request_id
            raise

    def _json(self, outcome: TryOutcome) -> Any:
        if isinstance(outcome, httpx.TimeoutException):
            raise self.expired() from outcome
        if isinstance(outcome, httpx.HTTPError):
            raise connection_error(outcome, self._options.place, self.request_id) from outcome
        parsed = _decode(outcome.content)
        if outcome.status != 200:
            raise self._refusal(outcome, parsed)
        if parsed is None:
            raise self.unexpected("the reply is not JSON", outcome.content)
        return parsed

    def _refusal(self, reply: RawReply, parsed: Any) -> APIError:
        body = reply.content if parsed is None else parsed
        return refusal(
            reply.status, reply.headers, body, sent=self._sent, request_id=self.request_id
        )

    def unexpected(self, message: str, body: Any = None) -> UnexpectedReply:
        """Return the error for a 200 that cannot be read."""
        return UnexpectedReply(message, status=200, request_id=self.request_id, body=body)


class ReplyBody:
    """Collects one reply's bytes within the call's budget and a size limit."""

    def __init__(self, call: Call, limit: int = MAX_REPLY_BYTES) -> None:
        self._call = call
        self._room = limit
        self._chunks: list[bytes] = []

    def add(self, chunk: bytes) -> None:
        """Keep a chunk.

        Raises:
            TimeoutExceeded: If it comes too late.
            UnexpectedReply: If it is too much.
        """
        self._call.left()
        self._room -= len(chunk)
        if self._room < 0:
            raise self._call.unexpected("the reply is too large")
        self._chunks.append(chunk)

    def joined(self) -> bytes:
        """Return everything kept."""
        return b"".join(self._chunks)


def _may_retry(outcome: TryOutcome) -> bool:
    # A read that timed out has spent the budget, and its work may still be running over there.
    if isinstance(outcome, RawReply):
        return outcome.status in RETRIED_STATUSES
    return isinstance(outcome, httpx.ConnectError)


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return _dump(body, ascii_only=False)
    except UnicodeEncodeError:  # half of an emoji: UTF-8 cannot carry it, an escape can
        return _dump(body, ascii_only=True)


def _dump(body: Mapping[str, Any], *, ascii_only: bool) -> bytes:
    text = json.dumps(body, ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":"))
    return text.encode()


def _decode(content: bytes) -> Any:
    """Return parsed JSON; None for anything else, NaN included."""
    try:
        return json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)
