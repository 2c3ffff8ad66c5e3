"""The errors of hosts, by what helps: another key, another name, less text, or another time.

    HostError
    ├── HostRefused            it said no and will again
    │   ├── WrongKey           401 or 403
    │   ├── NoQuota            the account has nothing left
    │   ├── UnknownModel       it serves no such model, deployment or assistant
    │   ├── ContextTooLong     the texts are longer than the model reads; nothing was cut off
    │   ├── SchemaUnsupported  it gives no JSON by a schema, or takes no option that was sent
    │   └── NeedsVision        it takes no images, or none of this form
    ├── HostUnavailable        it did not answer, however often it was asked
    │   ├── Unreachable        nobody listens there
    │   ├── TimedOut           no whole reply in time
    │   └── RateLimited        429 to the last try
    └── BadReply               it answered with something else than was asked for

Messages name the host and what happened; never a key, a header or a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from guardrail_service.errors import ServiceError

MOST_OF_A_REFUSAL = 64 * 2**10
"""Bytes of a refusal's body that are looked at."""


class HostError(ServiceError):
    """A host did not give what it was asked for.

    Attributes:
        attempts: How often it was asked.
    """

    code = "host"
    attempts = 1


class HostRefused(HostError):
    """The host will refuse this again.

    Attributes:
        status: Its HTTP status; 0 where nothing was sent.
        reason: Why, in a word, where the host says so; see the classes below.
        general: Whether every other request would be refused, too; None if the status says it.
    """

    code = "host_refused"
    reason: ClassVar[str | None] = None
    expected: ClassVar[str] = "200"
    general: ClassVar[bool | None] = None

    def __init__(self, host: str, status: int = 0) -> None:
        found = f"status {status}" if status else "a request it cannot take"
        told = f" ({self.reason.replace('_', ' ')})" if self.reason else ""
        super().__init__(f"{host}: found {found}{told}; expected {self.expected}")
        self.status = status

    @property
    def is_general(self) -> bool:
        """Return whether every other request would be refused, too."""
        if self.general is not None:
            return self.general
        return self.status in (401, 403, 404, 405) or 300 <= self.status < 400


class WrongKey(HostRefused):
    """The host takes no such key, or the key may not ask this."""

    code = reason = "wrong_key"
    expected = "a key that may ask this, in the environment variable that is named for it"
    general = True


class NoQuota(HostRefused):
    """The account has nothing left, and waiting does not help."""

    code = reason = "no_quota"
    expected = "an account that may ask more"
    general = True


class UnknownModel(HostRefused):
    """The host serves no such model, deployment or assistant."""

    code = reason = "unknown_model"
    expected = "the name of a model that it serves"
    general = True


class ContextTooLong(HostRefused):
    """The texts are longer than the model reads."""

    code = reason = "context_too_long"
    expected = "input that fits into the model's context; nothing was cut off"
    general = False


class SchemaUnsupported(HostRefused):
    """The host gives no JSON by a schema, or knows no such option."""

    code = reason = "schema_unsupported"
    expected = "options that it supports: no JSON schema, or none of this form"
    general = False


class NeedsVision(HostRefused):
    """The host, or its model, takes no images, or none of this form."""

    code = reason = "needs_vision"
    expected = "a model that sees, and images as this host takes them"
    general = False


class HostUnavailable(HostError):
    """The host did not answer, however often it was asked.

    Attributes:
        status: Its last HTTP status; None if there was none.
        wait_s: The pause it asked for.
        timed_out: No reply came in time.
    """

    code = "host_unavailable"
    timed_out: ClassVar[bool] = False

    def __init__(
        self, message: str, status: int | None = None, wait_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.wait_s = status, wait_s


class Unreachable(HostUnavailable):
    """Nobody listens at the address, or its name is not known."""

    code = "unreachable"


class TimedOut(HostUnavailable):
    """No whole reply came in time."""

    code = "timed_out"
    timed_out = True


class RateLimited(HostUnavailable):
    """The host was asked too often, also at the last try."""

    code = "rate_limited"


class BadReply(HostError):
    """The host's reply is not what its protocol says."""

    code = "bad_reply"

    def __init__(self, host: str, found: str, expected: str) -> None:
        super().__init__(f"{host}: found {found}; expected {expected}")


_CODES: Mapping[str, type[HostRefused]] = {
    "invalid_api_key": WrongKey,
    "insufficient_quota": NoQuota,
    "model_not_found": UnknownModel,
    "deploymentnotfound": UnknownModel,
    "resourcenotfoundexception": UnknownModel,
    "context_length_exceeded": ContextTooLong,
    "exceed_context_size_error": ContextTooLong,
    "string_above_max_length": ContextTooLong,
    "unsupported_parameter": SchemaUnsupported,
    "invalid_json_schema": SchemaUnsupported,
}
_WORDS: tuple[tuple[type[HostRefused], tuple[str, ...]], ...] = (
    (
        NeedsVision,
        (
            "image input", "image_url", "does not support image", "support vision",
            "at most 0 image", "not a multimodal", "mmproj",
        ),
    ),
    (
        ContextTooLong,
        (
            "context length", "context window", "context size", "maximum context", "too long",
            "too many tokens", "max_model_len", "exceeds the available context",
        ),
    ),
    (
        SchemaUnsupported,
        (
            "response_format", "json_schema", "json schema", "structured output", "guided",
            "logprobs", "grammar", "unsupported parameter", "unrecognized request argument",
        ),
    ),
    (
        UnknownModel,
        (
            "model identifier", "model not found", "does not exist", "no such model",
            "unknown model", "deployment for this resource", "no assistant found",
            "try pulling it",
        ),
    ),
)  # fmt: skip


def refusal(host: str, status: int, value: Any) -> HostRefused:
    """Return the error of a refusal, by its status and by what servers say in its body.

    Args:
        host: For the message.
        status: Its HTTP status.
        value: The JSON of its body, if it has one. It is looked at, and never shown.
    """
    if status in (401, 403):
        return WrongKey(host, status)
    if status == 413:
        return ContextTooLong(host, status)
    codes, said = _codes(value)
    for code in codes:
        if (kind := _CODES.get(code)) is not None:
            return kind(host, status)
    if status in (400, 404, 422, 500):
        for kind, words in _WORDS:
            if any(word in said for word in words):
                return kind(host, status)
        if status == 404 and "model" in said and "not found" in said:
            return UnknownModel(host, status)
    return HostRefused(host, status)


def _codes(value: Any) -> tuple[list[str], str]:
    """Return the codes of an error and the beginning of what it says, in lower case."""
    error = value.get("error", value) if isinstance(value, Mapping) else None
    if isinstance(error, str):
        return [], error[:300].lower()
    if not isinstance(error, Mapping):
        return [], ""
    found = [error.get(name) for name in ("code", "type", "__type")]
    texts = [error.get(name) for name in ("message", "Message", "detail")]
    said = next((text for text in texts if isinstance(text, str)), "")
    return [code.lower() for code in found if isinstance(code, str)], said[:300].lower()


SILENT_AFTER = 3
"""Calls in a row without a reply, after which a host of one process is not asked any more."""
T = TypeVar("T")


@dataclass
class UntilSilent:
    """Calls a host until it refuses everything, or stays silent. One thread asks it."""

    _silent: int = 0
    _last: HostError | None = None

    def call(self, ask: Callable[[], T]) -> T:
        """Return what the host says; once it is given up, raise what it last raised."""
        if self._last is not None:
            raise self._last
        try:
            found = ask()
        except HostError as error:
            self._silent = self._silent + 1 if isinstance(error, HostUnavailable) else 0
            general = isinstance(error, HostRefused) and error.is_general
            if general or self._silent >= SILENT_AFTER:
                self._last = error
            raise
        self._silent = 0
        return found
