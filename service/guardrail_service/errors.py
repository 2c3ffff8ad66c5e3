"""The errors this package raises on purpose.

    ServiceError
    ├── ConfigurationError        a guardrail JSON or a setting is wrong; start-up stops
    │   └── PluginError           a plug-in that something names cannot be used
    ├── PackError                 a model pack is missing, changed, truncated or does not fit
    ├── MissingExtra              a command needs an extra that is not installed
    ├── InputError                the caller's request is wrong (422)
    │   ├── MalformedInput        not JSON at all (400)
    │   ├── LimitExceeded         more characters, passages or sentences than allowed (422)
    │   ├── BodyTooLarge          more bytes than allowed (413)
    │   ├── RequestTimeout        the body did not arrive in time (408)
    │   ├── StreamIncomplete      a stream broke off before its end (422, or an error record)
    │   ├── UnknownPolicy         no such policy (422)
    │   └── OverrideRefused       the policy does not let requests change this (422)
    ├── Unauthorized              no or wrong key (401)
    │   ├── KeyRevoked            a key that was taken back
    │   └── KeyExpired            a key whose time is over
    ├── Forbidden                 the key is known and may not do this (403)
    │   └── PolicyRefused         it may not use this policy
    ├── ReloadFailed              new policies cannot be served; the old ones stay (409)
    ├── Overloaded                other people's work fills the queue (429)
    │   └── RateExceeded          the caller's own limit is reached
    ├── NotReady                  still loading, or shutting down (503)
    │   └── NotRecorded           a decision has to be recorded and cannot be (503)
    ├── OutOfTime                 a text takes longer than its check has; policy says what follows
    ├── Cancelled                 the caller left
    └── ScoringError              a score could not be computed; never a verdict
        ├── NotScorable           the input has nothing to score
        └── RowFailed             one model row failed

Messages say what was found, what was expected and what to do. They never contain submitted text.
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable, Set
from pathlib import PurePath


class ServiceError(Exception):
    """Root of the tree. `code` is stable and part of the API."""

    code = "internal"


GuardrailError = ServiceError
"""Its name in version 0.1."""


class ConfigurationError(ServiceError):
    """A guardrail configuration or a setting cannot be used."""

    code = "configuration"

    def __init__(self, where: str, found: str, expected: str) -> None:
        super().__init__(f"{where}: found {found}; expected {expected}")
        self.where = where
        self.found = found
        self.expected = expected


class PluginError(ConfigurationError):
    """A plug-in that a configuration or a command names cannot be used."""

    code = "plugin"

    def __init__(self, name: str, group: str, found: str, expected: str) -> None:
        super().__init__(f"plug-in {name!r} ({group})", found, expected)
        self.name = name
        self.group = group


class PackError(ServiceError):
    """A model pack cannot be used as it lies on disk."""

    code = "model_pack"


class MissingExtra(ServiceError):
    """A command needs an optional dependency."""

    code = "missing_extra"

    def __init__(self, requirement: str) -> None:
        """`requirement` is what pip installs, such as `rag-guardrail-models[export]`."""
        super().__init__(f"this command needs more: pip install '{requirement}'")


class InputError(ServiceError):
    """A request cannot be judged as it was sent."""

    code = "invalid_input"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


class MalformedInput(InputError):
    """The body is not JSON."""

    code = "malformed_json"


class LimitExceeded(InputError):
    """The request is larger than this service accepts."""

    code = "limit_exceeded"


class BodyTooLarge(InputError):
    """The body has more bytes than this service accepts."""

    code = "body_too_large"


class RequestTimeout(InputError):
    """The request did not arrive in time."""

    code = "request_timeout"


class StreamIncomplete(InputError):
    """A stream broke off before the line that ends it, so its answer is not whole."""

    code = "stream_incomplete"


class UnknownPolicy(InputError):
    """The named policy is not loaded."""

    code = "unknown_policy"


class OverrideRefused(InputError):
    """The policy does not allow this request to change a detector."""

    code = "override_refused"


class Unauthorized(ServiceError):
    """The request carries no valid key."""

    code = "unauthorized"


class KeyRevoked(Unauthorized):
    """The request carries a key that was revoked."""

    code = "key_revoked"


class KeyExpired(Unauthorized):
    """The request carries a key that has expired."""

    code = "key_expired"


class Forbidden(ServiceError):
    """The caller is known and may not do this."""

    code = "forbidden"


class PolicyRefused(Forbidden):
    """The caller may not use this policy."""

    code = "policy_refused"


class ReloadFailed(ServiceError):
    """New policies cannot be served; those of before stay in force."""

    code = "reload_failed"


class Overloaded(ServiceError):
    """The queue is full of other callers' work."""

    code = "overloaded"

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RateExceeded(Overloaded):
    """The caller has reached the rate or the number at a time that its key allows."""

    code = "rate_exceeded"


class NotReady(ServiceError):
    """The service is still loading or is shutting down."""

    code = "not_ready"


class NotRecorded(NotReady):
    """The store of decisions cannot take what has to be recorded."""

    code = "not_recorded"


class OutOfTime(ServiceError):
    """The time to work on a text is over."""

    code = "out_of_time"


class Cancelled(ServiceError):
    """The caller left before the answer was judged."""

    code = "cancelled"


class ScoringError(ServiceError):
    """A score could not be computed."""

    code = "scoring"


class NotScorable(ScoringError):
    """There is nothing to compute a score from."""

    code = "not_scorable"


class RowFailed(ScoringError):
    """One model row failed; its neighbours did not."""

    code = "row_failed"


def choices(name: str, known: Iterable[str], noun: str, listed_by: str = "") -> str:
    """Return what was expected in place of an unknown name: at most three names.

    Args:
        name: What was found; only a message that may quote it may use the hint.
        known: Every name that would have been right; a set is sorted.
        noun: What the names are, in the singular: "detector id".
        listed_by: Where all of them can be seen.
    """
    names = sorted(known) if isinstance(known, Set) else list(dict.fromkeys(known))
    if near := near_misses(name, names):
        return f"a known {noun}; did you mean {' or '.join(map(repr, near))}?"
    if len(names) > _MOST_CHOICES:
        some = difflib.get_close_matches(name[:_LONGEST_NAME], names, n=_MOST_CHOICES, cutoff=0.0)
        hint = f"see {listed_by}" if listed_by else f"such as {', '.join(some)}"
        return f"one of {len(names)} known {noun}s, {hint}"
    return f"one of {', '.join(names)}" if names else f"no {noun}: none is known here"


def near_misses(name: str, known: Iterable[str], least: float = 0.7) -> list[str]:
    """Return at most three names that an unknown one may have been meant for, nearest first.

    Long names of one family resemble each other: beside a near match, distant ones are left out.

    Args:
        name: As it was given.
        known: What there is.
        least: How alike two names must be, in [0, 1]; difflib's ratio.
    """
    names = sorted(set(known))
    asked = name[:_LONGEST_NAME]
    sure = difflib.get_close_matches(asked, names, n=1, cutoff=_SURE)
    return sure or difflib.get_close_matches(asked, names, n=_MOST_CHOICES, cutoff=least)


_MOST_CHOICES = 3
_SURE = 0.95
"""A slip or two in a long name."""
_LONGEST_NAME = 200
"""Characters of a name that are compared: the comparison takes quadratic time."""


def raised_at(error: BaseException) -> str:
    """Return `file:line` of where an exception was raised, for logs that must not quote text."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown"
