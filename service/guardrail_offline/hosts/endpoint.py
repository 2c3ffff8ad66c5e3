"""Asks one address for JSON, with a time limit, retries and a pace. Keys come from the environment.

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

from guardrail_offline.hosts.errors import (
    MOST_OF_A_REFUSAL,
    BadReply,
    ContextTooLong,
    HostError,
    HostUnavailable,
    NeedsVision,
    NoQuota,
    RateLimited,
    SchemaUnsupported,
    TimedOut,
    Unreachable,
    refusal,
)
from guardrail_service.errors import ConfigurationError

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same question may be answered."""
FIRST_WAIT_S = 0.5


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
    """The JSON that came back, the seconds of the try that brought it, and how many there were."""

    value: Any
    seconds: float
    attempts: int = 1


class _Again(Exception):
    """A try that may be repeated; `wait_s` is what the host asked for."""

    def __init__(self, error: HostError, wait_s: float | None = None) -> None:
        super().__init__(str(error))
        self.error, self.wait_s = error, wait_s


class Pace:
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
        key_variable: Environment variable with the key that is sent.
        headers: Further headers; a value such as `$NAME` stands for an environment variable.
        limits: Time, tries and pace.
        key_header: Header of the key: a bearer token in `Authorization`, bare in others.
        query: Sent with every request.
        transport: Of httpx, for tests; None for the network.
        sleep: Waits; injected by tests.
    """

    url: str
    key_variable: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    limits: Patience = field(default_factory=Patience)
    key_header: str = "Authorization"
    query: Mapping[str, str] = field(default_factory=dict)
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
            key = from_environment(f"${self.key_variable}")
            sent[self.key_header] = f"Bearer {key}" if self.key_header == "Authorization" else key
        self._pace = Pace(self.limits.per_second)
        self._jitter = random.Random()  # noqa: S311 - spreads waits, no secrets
        self._client = httpx.Client(
            headers=sent,
            params=dict(self.query),
            timeout=self.limits.timeout_s,
            transport=self.transport,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def post(self, body: Mapping[str, Any], path: str = "") -> Reply:
        """Return the JSON that the host answers a POST with.

        Raises:
            HostRefused: If it refuses for good.
            HostUnavailable: If no try was answered in time.
            BadReply: If it still answers with no JSON, or with too much, after all tries.
        """
        return self._ask("POST", path, body)

    def get(self, path: str = "", query: Mapping[str, str] | None = None) -> Reply:
        """Return the JSON that the host answers a GET with; errors are those of `post`."""
        return self._ask("GET", path, None, query)

    def delete(self, path: str) -> Reply:
        """Return the JSON that the host answers a DELETE with; errors are those of `post`."""
        return self._ask("DELETE", path, None)

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str] | None = None,
    ) -> Reply:
        url = self.url.rstrip("/") + path
        for attempt in range(self.limits.retries + 1):
            self.sleep(self._pace.turn())
            request = self._client.build_request(method, url, json=body, params=query)
            try:
                return self._try(request)._replace(attempts=attempt + 1)
            except HostError as error:
                error.attempts = attempt + 1
                raise
            except _Again as failed:
                failed.error.attempts = attempt + 1
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

    def _try(self, request: httpx.Request) -> Reply:
        started = time.monotonic()
        try:
            response = self._client.send(request, stream=True)
            try:
                if response.status_code != 200:
                    raise self._refused(response)
                content = self._content(response, started)
            finally:
                response.close()
        except httpx.TimeoutException:
            raise _Again(self._too_late()) from None
        except httpx.ConnectError as error:
            said = f"{self.host}: {type(error).__name__}; expected a host that answers there"
            raise _Again(Unreachable(said)) from None
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
            return refusal(self.host, status, _refusal_body(response))
        body = _refusal_body(response) if status in (429, 500) else None
        said = refusal(self.host, status, body)
        if type(said) in (
            (NoQuota,) if status == 429 else (ContextTooLong, NeedsVision, SchemaUnsupported)
        ):
            return said
        kind = RateLimited if status == 429 else HostUnavailable
        wait_s = _asked_wait(response.headers.get("Retry-After"))
        told = f"{self.host}: found status {status}; expected 200"
        return _Again(kind(told, status, wait_s), wait_s)

    def _too_late(self) -> HostUnavailable:
        return TimedOut(f"{self.host}: no reply within {self.limits.timeout_s:g} s")


def _refusal_body(response: httpx.Response) -> Any:
    """Return the JSON of a refusal; None if there is none, or too much of it."""
    found = bytearray()
    try:
        for chunk in response.iter_bytes():
            found += chunk
            if len(found) > MOST_OF_A_REFUSAL:
                return None
        return json.loads(bytes(found))
    except (httpx.HTTPError, ValueError, RecursionError):
        return None


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
