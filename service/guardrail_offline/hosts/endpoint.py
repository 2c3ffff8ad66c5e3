"""Posts JSON to one address, with a time limit, retries and a pace. Keys come from the environment.

    HostError
    ├── HostRefused       it said no and will again: a wrong key, no such path, a bad body
    ├── HostUnavailable   it did not answer in time, or was busy, however often it was asked
    └── BadReply          it answered with something else than was asked for

Messages name the host and what happened; never a key, a header or a text.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, Never

import httpx

from guardrail_service.errors import ConfigurationError, ServiceError

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same question may be answered."""
FIRST_WAIT_S = 0.5
REASONS: Mapping[str, str] = {
    "context_length_exceeded": "context_too_long",
    "string_above_max_length": "context_too_long",
    "model_not_found": "unknown_model",
    "invalid_api_key": "wrong_key",
    "insufficient_quota": "no_quota",
}
"""Codes in the error objects of OpenAI-compatible servers, and what they mean."""
_ERROR_BYTES = 65_536


class HostError(ServiceError):
    """A host did not give what it was asked for."""

    code = "host"


class HostRefused(HostError):
    """The host will refuse this again.

    Attributes:
        status: Its HTTP status.
        reason: One of `REASONS`, where its error says so in a word of the protocol.
    """

    code = "host_refused"

    def __init__(self, host: str, status: int, reason: str | None = None) -> None:
        told = f" ({reason.replace('_', ' ')})" if reason else ""
        super().__init__(f"{host}: found status {status}{told}; expected 200")
        self.status = status
        self.reason = reason

    @property
    def is_general(self) -> bool:
        """Return whether every other request would be refused, too."""
        return self.status in (401, 403, 404, 405) or 300 <= self.status < 400


class HostUnavailable(HostError):
    """The host did not answer, however often it was asked.

    Attributes:
        status: Its last HTTP status; None if there was none.
        wait_s: The pause it asked for.
        timed_out: No reply came in time.
    """

    code = "host_unavailable"

    def __init__(
        self,
        message: str,
        status: int | None = None,
        wait_s: float | None = None,
        *,
        timed_out: bool = False,
    ) -> None:
        super().__init__(message)
        self.status, self.wait_s, self.timed_out = status, wait_s, timed_out


class BadReply(HostError):
    """The host's reply is not what its protocol says."""

    code = "bad_reply"

    def __init__(self, host: str, found: str, expected: str) -> None:
        super().__init__(f"{host}: found {found}; expected {expected}")


@dataclass(frozen=True)
class Patience:
    """The patience with which a host is asked.

    Attributes:
        timeout_s: For one try, from its start to the last byte.
        retries: Further tries after a failed one.
        per_second: Tries that may begin in a second; None for as many as fit.
        longest_wait_s: Between two tries; a host that asks for a longer pause is unavailable.
        reply_bytes: A longer reply is no reply.
    """

    timeout_s: float = 60.0
    retries: int = 4
    per_second: float | None = None
    longest_wait_s: float = 60.0
    reply_bytes: int = 8 * 2**20


class Reply(NamedTuple):
    """The JSON that came back, and the seconds of the try that brought it."""

    value: Any
    seconds: float


class _Again(Exception):
    """A try that may be repeated; `wait_s` is what the host asked for."""

    def __init__(self, error: HostError, wait_s: float | None = None) -> None:
        super().__init__(str(error))
        self.error, self.wait_s = error, wait_s


class _Pace:
    """Lets tries begin one after the other, and none while the host asked for a pause."""

    def __init__(self, per_second: float | None) -> None:
        self._gap = 1 / per_second if per_second else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def turn(self) -> float:
        """Take the next turn; return how long to wait for it."""
        with self._lock:
            now = time.monotonic()
            begin = max(now, self._next)
            self._next = begin + self._gap
            return begin - now

    def pause(self, seconds: float) -> None:
        """Let nobody begin for so long."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)


@dataclass
class Endpoint:
    """One address that takes JSON and gives JSON. Threads may share it.

    Redirects are not followed, so that no key reaches another host, and certificates are checked.

    Attributes:
        url: http or https, without a user name or password.
        key_variable: Environment variable with the key that is sent as a bearer token.
        headers: Further headers; a value such as `$NAME` stands for an environment variable.
        limits: Time, tries and pace.
        transport: Of httpx, for tests; None for the network.
        sleep: Waits; injected by tests.
    """

    url: str
    key_variable: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    limits: Patience = field(default_factory=Patience)
    transport: httpx.BaseTransport | None = field(default=None, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        """Check the address and look up the keys.

        Raises:
            ConfigurationError: If the address or a variable cannot be used.
        """
        self.host = _checked_host(self.url)
        sent = {name: from_environment(value) for name, value in self.headers.items()}
        if self.key_variable is not None:
            sent["Authorization"] = f"Bearer {from_environment(f'${self.key_variable}')}"
        self._pace = _Pace(self.limits.per_second)
        self._jitter = random.Random()  # noqa: S311 - spreads waits, no secrets
        self._client = httpx.Client(
            headers=sent, timeout=self.limits.timeout_s, transport=self.transport
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def post(self, body: Mapping[str, Any], path: str = "") -> Reply:
        """Return the JSON that the host answers with.

        Raises:
            HostRefused: If it refuses for good.
            HostUnavailable: If no try was answered in time.
            BadReply: If it still answers with no JSON, or with too much, after all tries.
        """
        for attempt in range(self.limits.retries + 1):
            self.sleep(self._pace.turn())
            try:
                return self._try(body, self.url.rstrip("/") + path)
            except _Again as failed:
                if attempt == self.limits.retries:
                    raise failed.error from None
                self._wait(attempt, failed)
        raise AssertionError("unreachable")

    def _wait(self, attempt: int, failed: _Again) -> None:
        longest = self.limits.longest_wait_s
        if failed.wait_s is not None:
            if failed.wait_s > longest:
                raise failed.error from None
            self._pace.pause(failed.wait_s)
            return
        self.sleep(self._jitter.uniform(0.5, 1.0) * min(longest, FIRST_WAIT_S * 2**attempt))

    def _try(self, body: Mapping[str, Any], url: str) -> Reply:
        started = time.monotonic()
        try:
            with self._client.stream("POST", url, json=body) as response:
                if response.status_code != 200:
                    raise self._refused(response)
                content = self._content(response, started)
        except httpx.TimeoutException:
            raise _Again(self._too_late()) from None
        except httpx.HTTPError as error:
            raise _Again(HostUnavailable(f"{self.host}: {type(error).__name__}")) from None
        try:
            value = json.loads(content, parse_constant=_no_number)
        except (ValueError, RecursionError):  # nested too deeply
            raise _Again(BadReply(self.host, "no JSON", "a JSON object")) from None
        return Reply(value, time.monotonic() - started)

    def _content(self, response: httpx.Response, started: float) -> bytes:
        """Return the body; a host that sends it drop by drop has the same time as any other."""
        found = bytearray()
        for chunk in response.iter_bytes():
            found += chunk
            if len(found) > self.limits.reply_bytes:
                limit = f"at most {self.limits.reply_bytes} bytes"
                raise _Again(BadReply(self.host, "a longer reply", limit))
            if time.monotonic() - started > self.limits.timeout_s:
                raise _Again(self._too_late())
        return bytes(found)

    def _refused(self, response: httpx.Response) -> Exception:
        status = response.status_code
        if status not in RETRIED:
            return HostRefused(self.host, status, _reason(response))
        wait_s = _asked_wait(response.headers.get("Retry-After"))
        told = f"{self.host}: found status {status}; expected 200"
        return _Again(HostUnavailable(told, status, wait_s), wait_s)

    def _too_late(self) -> HostUnavailable:
        told = f"{self.host}: no reply within {self.limits.timeout_s:g} s"
        return HostUnavailable(told, timed_out=True)


def _reason(response: httpx.Response) -> str | None:
    """Return what the code of an error stands for; its message, which may quote texts, is not read.

    At most the first part of a longer body is looked at.
    """
    found = bytearray()
    try:
        for chunk in response.iter_bytes():
            found += chunk
            if len(found) > _ERROR_BYTES:
                return None
        value = json.loads(found)
    except (httpx.HTTPError, ValueError, RecursionError):
        return None
    error = value.get("error") if isinstance(value, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return REASONS.get(code) if isinstance(code, str) else None


def _no_number(name: str) -> Never:
    """Refuse NaN and the infinite numbers, which are no JSON."""
    raise ValueError(name)


def from_environment(value: str) -> str:
    """Return what a value stands for: `$NAME` is a variable, anything else itself.

    Raises:
        ConfigurationError: If there is no such variable, or it cannot be sent.
    """
    if not value.startswith("$"):
        return value
    name = value[1:]
    found = os.environ.get(name, "")
    if not found or not found.isascii() or not found.isprintable():
        state = "a value that no header can hold" if found else "nothing"
        raise ConfigurationError(f"environment variable {name}", state, "a key")
    return found


def _checked_host(url: str) -> str:
    """Return the host of an address for messages."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        raise ConfigurationError("the host's address", "no URL", "http:// or https://") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ConfigurationError("the host's address", "no web address", "http:// or https://")
    if parsed.userinfo:
        expected = "a key in an environment variable"
        raise ConfigurationError("the host's address", "a user name or password", expected)
    return parsed.host


def _asked_wait(header: str | None) -> float | None:
    """Return the seconds of a Retry-After header: a number, or a date."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None
