"""The errors this package raises on purpose.

    GuardrailError
    ├── ConnectionFailed          no connection, or it broke before the reply was complete
    │   └── CircuitOpen           not asked: the calls before this one failed
    ├── TimeoutExceeded           the time budget of the call is spent
    ├── ServiceNotInstalled       in-process mode without the service's distribution
    ├── StreamingNotSupported     a transport that cannot send and receive at the same time
    └── APIError                  the service answered, but not with a verdict
        ├── BadRequest            400  the body is not JSON
        ├── AuthenticationFailed  401  no key, or an unknown one
        ├── PermissionDenied      403  the key may not do this
        ├── PayloadTooLarge       413  more bytes than the service accepts
        ├── InvalidRequest        422  a field is wrong, too long or not allowed
        ├── Overloaded            429  the queue is full of other callers' work
        ├── NotReady              503  still loading, or shutting down
        ├── ServerError           5xx  a bug in the service, or a proxy without one behind it
        └── UnexpectedReply       a reply this client cannot read

An error is never a verdict: what it means for the answer is the application's choice. `str()` of an
error never contains submitted text, so it may be logged.
"""

from __future__ import annotations

from typing import Any, ClassVar


class GuardrailError(Exception):
    """Root of the tree.

    Attributes:
        code: Stable name of what went wrong; the service's own code where it sent one.
        request_id: Finds this call in the service's logs. None if no call was made.
    """

    code: str = "client_error"

    def __init__(self, message: str, *, request_id: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.request_id = request_id

    def __str__(self) -> str:
        return f"{self.message} (request {self.request_id})" if self.request_id else self.message


class ConnectionFailed(GuardrailError):
    """No connection to the service, or it broke before the reply was complete."""

    code = "connection_failed"


class CircuitOpen(ConnectionFailed):
    """The guard was not asked, because the calls before this one failed."""

    code = "circuit_open"


class TimeoutExceeded(GuardrailError):
    """The time budget of the call, which covers every try and every wait, is spent."""

    code = "timeout_exceeded"


class ServiceNotInstalled(GuardrailError):
    """In-process mode was asked for and the service's distribution is not installed."""

    code = "service_not_installed"


class StreamingNotSupported(GuardrailError):
    """The client's transport cannot send a request while its reply arrives.

    Nothing was sent. Failing open does not cover it: it would leave every stream unchecked.
    """

    code = "streaming_not_supported"


class APIError(GuardrailError):
    """The service answered, but not with a verdict.

    Attributes:
        status: HTTP status of the reply.
        message: What the service said, or `summary` where it said nothing that may be repeated.
        body: The reply's JSON, or its bytes if it is not JSON. May hold submitted text if something
            between here and the service echoes requests; do not log it.
        retry_after: Seconds the service asked to wait; None if it did not say.
    """

    code = "api_error"
    summary: ClassVar[str] = "the service refused the request"

    def __init__(
        self,
        message: str | None = None,
        *,
        status: int = 0,
        code: str | None = None,
        request_id: str | None = None,
        body: Any = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message or self.summary, request_id=request_id)
        self.status = status
        self.code = code or type(self).code
        self.body = body
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.status} {self.code}: {super().__str__()}"


class BadRequest(APIError):
    """400: the body is not JSON."""

    code = "bad_request"
    summary = "the service could not read the request"


class AuthenticationFailed(APIError):
    """401: no key, or an unknown one."""

    code = "unauthorized"
    summary = "the service wants a valid key; pass api_key= or set GUARDRAIL_API_KEY"


class PermissionDenied(APIError):
    """403: the key is known and may not do this."""

    code = "permission_denied"
    summary = "this key may not do this"


class PayloadTooLarge(APIError):
    """413: more bytes than the service accepts."""

    code = "body_too_large"
    summary = "the request has more bytes than the service accepts; send fewer passages"


class InvalidRequest(APIError):
    """422: a field is wrong, too long or not allowed by the policy."""

    code = "invalid_input"
    summary = "a field of the request is wrong, too long or not allowed by the policy"


class Overloaded(APIError):
    """429: the queue is full of other callers' work; `retry_after` says how long to wait."""

    code = "overloaded"
    summary = "the service's queue is full"


class NotReady(APIError):
    """503: the service is still loading, or is shutting down."""

    code = "not_ready"
    summary = "the service is still loading, or is shutting down"


class ServerError(APIError):
    """5xx: a bug in the service, or a proxy without a service behind it."""

    code = "internal"
    summary = "the service failed"


class UnexpectedReply(APIError):
    """A reply this client cannot read: not JSON, no verdict, too large, or a redirect."""

    code = "unexpected_reply"
    summary = "the reply is not one of this service's"


BY_STATUS: dict[int, type[APIError]] = {
    400: BadRequest,
    401: AuthenticationFailed,
    403: PermissionDenied,
    413: PayloadTooLarge,
    422: InvalidRequest,
    429: Overloaded,
    503: NotReady,
}


BY_CODE: dict[str, type[APIError]] = {
    "internal": ServerError,
    "not_ready": NotReady,
    "overloaded": Overloaded,
}
"""The error classes of a stream's error codes; every other code means a wrong request."""

UNAVAILABLE = (ConnectionFailed, TimeoutExceeded, Overloaded, NotReady, ServerError)
"""The errors that may fail open: the guard cannot be asked now. A wrong key or a wrong request is
not among them, or it would switch the guard off for good without anybody noticing."""


def error_class(status: int) -> type[APIError]:
    """Return the class for a status that is not 200; APIError for a 4xx without a class."""
    if status in BY_STATUS:
        return BY_STATUS[status]
    if status >= 500:
        return ServerError
    return APIError if status >= 400 else UnexpectedReply
