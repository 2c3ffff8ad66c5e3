"""The contract of a dialect, and how its requests pass the same checks as native ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.routing import compile_path

from guardrail_service.errors import InputError, LimitExceeded
from guardrail_service.server.error_replies import ErrorShape
from guardrail_service.server.routes import leaving
from guardrail_service.server.schemas import CheckReply
from guardrail_service.server.service import RecordPlace
from guardrail_service.server.telemetry import summary
from guardrail_service.server.translate import (
    SMALL_BODY,
    check_charset,
    decode,
    parse_check,
    validation_error,
)
from guardrail_service.types import Action

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from guardrail_service.server.service import Service

POLICY = "x-guardrail-policy"
"""Header that names the policy where a dialect has no word for it."""
MISSING = "missing_input"
"""The reason of a detector that needs passages or a question and got none."""
_SEVERITY = {action.label: action for action in Action}
Model = TypeVar("Model", bound=BaseModel)


class DialectBody(BaseModel):
    """A request in another guard's format: vendors' clients add fields, so unknown ones are let be.

    Options that would change a verdict are refused by name.
    """

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


@dataclass(frozen=True)
class DialectEndpoint:
    """One path of a dialect.

    Attributes:
        path: As FastAPI writes it.
        body: The form of its requests.
        answer: Makes the reply; it checks through its `DialectCall`.
    """

    path: str
    body: type[DialectBody]
    answer: Callable[[DialectCall, Any], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Dialect:
    """Another guard's wire format.

    Attributes:
        name: As `GUARDRAIL_DIALECTS` has it.
        endpoints: What it answers.
        error: Its form of an error.
        keys: Headers in which its clients send the key, beside `Authorization: Bearer`.
        id_header: Where its clients look for a request's id.
        key_in: Returns the key in another kind of `Authorization`.
    """

    name: str
    endpoints: Sequence[DialectEndpoint]
    error: ErrorShape
    keys: Sequence[str] = ()
    id_header: str = "X-Request-Id"
    key_in: Callable[[str], str | None] = lambda _: None


class DialectCall:
    """One request in a dialect.

    Attributes:
        request_id: As it is in header and log.
        policy: The policy that its header names, None for the default one.
        caller: Whose request it is.
        path: The parameters in its path.
    """

    def __init__(self, request: Request, service: Service) -> None:
        self._request = request
        self._service = service
        self._worst: CheckReply | None = None
        self._asked = 0
        self.request_id: str = request.state.request_id
        self.policy = request.headers.get(POLICY)
        self.caller: str = request.state.caller
        self.path: Mapping[str, str] = request.path_params
        self.query: Mapping[str, str] = request.query_params

    @property
    def service(self) -> Service:
        """The loaded service, for what is no check: the names of its policies."""
        return self._service

    async def check(
        self,
        answer: str,
        question: str | None = None,
        contexts: Sequence[Any] = (),
        policy: str | None = None,
        include: Sequence[str] = ("spans", "redacted_answer"),
    ) -> CheckReply:
        """Return the native reply about an answer.

        Raises:
            ServiceError: As the native API refuses; never a verdict.
        """
        self._asked += 1
        most = self._service.runtime.settings.limits.batch_items
        if self._asked > most:
            raise LimitExceeded(f"found more than {most} texts to judge", "body")
        given = {"answer": answer, "question": question, "contexts": list(contexts)}
        given |= {"policy": policy or self.policy, "include": list(include)}
        if len(answer) > SMALL_BODY:
            request = await run_in_threadpool(parse_check, given)
        else:
            request = parse_check(given)
        state = self._request.state
        gone = leaving(self._request)
        reply, _ = await self._service.check(
            request,
            self.request_id,
            gone,
            state.arrived,
            self.caller,
            RecordPlace(state.log.get("dialect", ""), self._asked - 1),
        )
        if self._worst is None or _severity(reply) > _severity(self._worst):
            self._worst = reply
            state.log.update(summary(reply))
        return reply

    def headers(self) -> dict[str, str]:
        """Return what a native reply says in headers, of the worst check."""
        if self._worst is None:
            return {}
        return {
            "X-Guardrail-Decision": self._worst.decision,
            "X-Guardrail-Action": self._worst.action,
        }


def action_on_text(reply: CheckReply) -> str:
    """Return the action that a text deserves by itself, where a format has no place for passages.

    Detectors that only lack passages or the question do not count.
    """
    found = [d.action for d in reply.detectors.values() if d.reason != MISSING]
    return max(found, key=lambda action: _SEVERITY[action].value, default="allow")


def _severity(reply: CheckReply) -> tuple[int, bool]:
    return _SEVERITY[reply.action].value, reply.decision == "flag"


def add_routes(app: FastAPI, dialect: Dialect) -> None:
    """Add a dialect's paths to an application; its OpenAPI page keeps to the native API."""
    for endpoint in dialect.endpoints:
        app.add_api_route(
            endpoint.path,
            _handler(endpoint, dialect),
            methods=["POST"],
            include_in_schema=False,
        )


def _handler(
    endpoint: DialectEndpoint, dialect: Dialect
) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        request.state.log["dialect"] = dialect.name
        body = await read(request, endpoint.body)
        call = DialectCall(request, request.app.state.service)
        reply = await endpoint.answer(call, body)
        return JSONResponse(reply, headers={dialect.id_header: call.request_id, **call.headers()})

    return handle


async def read(request: Request, kind: type[Model]) -> Model:
    """Return a request's body.

    Raises:
        InputError: If it is no JSON, or not what is expected, naming the field.
    """
    check_charset(request.headers.get("content-type", ""))
    sent = await request.body()
    try:
        if len(sent) <= SMALL_BODY:
            return kind.model_validate(decode(sent))
        return await run_in_threadpool(lambda: kind.model_validate(decode(sent)))
    except ValidationError as error:
        raise validation_error(_plain(error)) from None


def _plain(error: ValidationError) -> Mapping[str, Any]:
    """Return the first fault; of a choice between forms, the place alone."""
    first = error.errors()[0]
    place = [part for part in first["loc"] if isinstance(part, int) or part.isidentifier()]
    return {**first, "loc": tuple(place)}


def only_text(parts: Any, field: str) -> str:
    """Return the text of a message's content, which is a text or parts of one.

    Raises:
        InputError: If a part is no text: it could not be checked.
    """
    if isinstance(parts, str):
        return parts
    texts = []
    for index, part in enumerate(parts or ()):
        text = part.get("text") if isinstance(part, Mapping) else None
        if not isinstance(text, str):
            raise InputError("found something else than a text", f"{field}.{index}")
        texts.append(text)
    return "\n".join(texts)


class Edge:
    """ASGI middleware around all others: on a dialect's paths, errors and keys are as it has them.

    Args:
        app: The application.
        dialects: Those that it answers in.
    """

    def __init__(self, app: ASGIApp, dialects: Sequence[Dialect]) -> None:
        self._app = app
        self._paths = [
            (compile_path(endpoint.path)[0], dialect)
            for dialect in dialects
            for endpoint in dialect.endpoints
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and (dialect := self._of(scope["path"])) is not None:
            scope.setdefault("state", {})["error_shape"] = dialect.error
            scope = {**scope, "headers": _with_bearer(scope["headers"], dialect)}
        await self._app(scope, receive, send)

    def _of(self, path: str) -> Dialect | None:
        return next((dialect for regex, dialect in self._paths if regex.match(path)), None)


def _with_bearer(
    headers: Sequence[tuple[bytes, bytes]], dialect: Dialect
) -> list[tuple[bytes, bytes]]:
    """Return headers whose key stands where the service looks for it, unless one stands there."""
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
    given = found.get("authorization", "")
    if given.lower().startswith("bearer "):
        return list(headers)
    key = next((found[name] for name in dialect.keys if name in found), dialect.key_in(given))
    if key is None:
        return list(headers)
    kept = [pair for pair in headers if pair[0] != b"authorization"]
    return [*kept, (b"authorization", f"Bearer {key}".encode("latin-1"))]
