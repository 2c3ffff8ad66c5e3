"""Maps errors to HTTP statuses and to one shape of reply."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.responses import JSONResponse

from guardrail_service.errors import (
    BodyTooLarge,
    Cancelled,
    Forbidden,
    InputError,
    MalformedInput,
    NotReady,
    Overloaded,
    ReloadFailed,
    RequestTimeout,
    ServiceError,
    Unauthorized,
)
from guardrail_service.server.schemas import ErrorBody, ErrorReply

STATUS: dict[type[ServiceError], int] = {
    MalformedInput: 400,
    Unauthorized: 401,
    Forbidden: 403,
    RequestTimeout: 408,
    ReloadFailed: 409,
    BodyTooLarge: 413,
    InputError: 422,
    Overloaded: 429,
    Cancelled: 499,
    NotReady: 503,
    ServiceError: 500,
}
"""The nearest class on an error's own line of ancestors decides."""


def status_of(error: ServiceError) -> int:
    """Return the HTTP status of an error."""
    return next(STATUS[cls] for cls in type(error).__mro__ if cls in STATUS)


def error_reply(error: ServiceError, request_id: str) -> ErrorReply:
    """Return an error in the shape every error reply has."""
    status = status_of(error)
    message = str(error) if status < 500 or isinstance(error, NotReady) else "internal error"
    return ErrorReply(error=ErrorBody(code=error.code, message=message, request_id=request_id))


class Shaped(NamedTuple):
    """An error as a caller's own protocol has it."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = {}


ErrorShape = Callable[[int, ErrorBody], Shaped]
"""Makes of the native status and error those of another protocol."""


def shaped(status: int, error: ErrorBody, shape: ErrorShape | None) -> Shaped:
    """Return an error in the native form, or in another one."""
    return shape(status, error) if shape else Shaped(status, ErrorReply(error=error).model_dump())


def error_response(
    error: ServiceError, request_id: str, shape: ErrorShape | None = None
) -> JSONResponse:
    """Return an error as an HTTP response, with the headers its status calls for."""
    headers = {}
    if isinstance(error, Overloaded):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RequestTimeout):
        headers["Connection"] = "close"  # the rest of the body would be read as a request
    status, body, more = shaped(status_of(error), error_reply(error, request_id).error, shape)
    return JSONResponse(body, status, headers={**headers, **more})
