"""Applications behind either middleware, and a guard that looks for two words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx
import pytest

import guardrail_client as gc
from guardrail_client.middleware import GuardrailMiddleware, GuardrailWSGI, Route
from tests.unit.client.conftest import make_verdict

VALUE = "anna.berg@example.org"
GOOD = "Guests may stay for two weeks at most."
LEAK = f"Write to {VALUE} for more."
REDACTED = LEAK.replace(VALUE, "[EMAIL_1]")
CARD = "4111 1111 1111 1111"
PAID = f"Your card {CARD} was charged at the desk."
VALUES = {VALUE: "[EMAIL_1]", CARD: "[CARD_1]"}
"""What the guard redacts."""
BAD = "The secret pass phrase of the vault is lobster."
MARKED = "This sentence could not be judged at all."
SEEN_BEFORE_THE_END = False
"""Whether the beginning of a bad text is shown before the guard finds out."""
ACTIONS = {"lobster": "block", "could not be judged": "mark"}


def verdict_on(answer: str) -> dict[str, Any]:
    """Return what the guard says about an answer."""
    action = next((action for word, action in ACTIONS.items() if word in answer), "allow")
    spans: list[dict[str, Any]] = []
    if redacted(answer) != answer and action != "block":
        action = "redact"
        spans = spans_of(answer)
    flagged = action not in ("allow", "mark")
    action = action.replace("observe", "allow")
    detector = {"state": "evaluated", "flagged": flagged, "metrics": {}, "spans": spans}
    return {
        **make_verdict(),
        "decision": "flag" if flagged else "pass",
        "action": action,
        "detectors": {"pii": detector},
        "redacted_answer": redacted(answer),
    }


def spans_of(answer: str) -> list[dict[str, Any]]:
    """Return where the guard says that values stand."""
    found = [(answer.index(value), value) for value in VALUES if value in answer]
    return [{"start": at, "end": at + len(value), "label": "pii"} for at, value in found]


def redacted(answer: str) -> str:
    """Return an answer without the values."""
    for value, instead in VALUES.items():
        answer = answer.replace(value, instead)
    return answer


Answers = Callable[[httpx.Request], httpx.Response]


@dataclass
class Guard:
    """Answers checks, and remembers what it was asked."""

    asked: list[dict[str, Any]] = field(default_factory=list)
    failing: int | None = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a whole request."""
        if self.failing is not None:
            return httpx.Response(self.failing)
        if request.url.path.endswith("/stream"):
            return httpx.Response(200, text="".join(self._records(request)))
        body = json.loads(request.content)
        self.asked += body.get("items", [body])
        if "items" in body:
            found = [verdict_on(item["answer"]) for item in body["items"]]
            return httpx.Response(200, json={"results": found})
        return httpx.Response(200, json=verdict_on(body["answer"]))

    def _records(self, request: httpx.Request) -> Iterable[str]:
        lines = [json.loads(line) for line in request.content.splitlines()]
        answer = "".join(line.get("text", "") for line in lines)
        self.asked.append({**lines[0], "answer": answer})
        verdict, size = verdict_on(answer), len(answer)
        blocked = verdict["action"] == "block"
        seen = blocked and SEEN_BEFORE_THE_END
        if seen:
            yield json.dumps({"type": "release", "text": "The ", "processed_index": 4}) + "\n"
        if not blocked:
            text = verdict["redacted_answer"]
            yield json.dumps({"type": "release", "text": text, "processed_index": size}) + "\n"
        final = {"type": "final", "reason": "blocked" if blocked else "complete"}
        index = {"processed_index": 4 * seen if blocked else size, "checked": [0, size]}
        yield json.dumps({**final, **index, "result": verdict}) + "\n"


@dataclass
class Reply:
    """What an application answers with."""

    body: bytes
    headers: list[tuple[str, str]]
    status: int = 200
    chunks: list[bytes] | None = None
    own: dict[str, Any] = field(default_factory=dict)
    """What the application puts into the scope or the environment."""

    @property
    def pieces(self) -> list[bytes]:
        """Return the body as the application sends it."""
        return self.chunks or [self.body[:7], self.body[7:]]

    @classmethod
    def of(cls, document: Any, kind: str = "application/json", status: int = 200) -> Reply:
        """Return a reply with JSON."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return cls(body, [("Content-Type", kind)] if kind else [], status)


def reached(guard: Answers | str) -> dict[str, Any]:
    """Return how a client reaches a guard in this process, or the one at an address."""
    if isinstance(guard, str):
        return {"base_url": guard, "max_retries": 0}
    mock = httpx.MockTransport(guard)
    return {"transport": mock, "buffer_streams": True, "max_retries": 0}


async def judged_behind(app: Any) -> None:
    """Wait for what is judged beside the requests."""
    while app._shadows:  # noqa: ASYNC110 - nobody else waits for it
        await asyncio.sleep(0)


class Host:
    """Serves one reply, guarded by either middleware."""

    def __init__(self, asynchronous: bool) -> None:
        self.asynchronous = asynchronous
        self.guard: Any = Guard()
        self.address = ""
        """Of a service that is asked instead of `guard`."""

    def get(
        self,
        reply: Reply,
        *routes: Route,
        path: str = "/ask",
        request: Any = None,
        method: str = "POST",
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        """Return what a reader is sent."""
        routes = routes or (Route("/ask"),)
        if self.asynchronous:
            return anyio.run(self._asgi, reply, routes, path, request, method, headers)
        with gc.GuardrailClient(**reached(self.address or self.guard)) as client:
            app = GuardrailWSGI(_wsgi(reply), client, routes)
            with httpx.Client(transport=httpx.WSGITransport(app), base_url="http://h") as reader:
                return reader.request(method, path, json=request, headers=headers)

    async def _asgi(
        self, reply: Reply, routes: Any, path: str, request: Any, method: str, headers: Any
    ) -> httpx.Response:
        async with gc.AsyncGuardrailClient(**reached(self.address or self.guard)) as client:
            app: Any = GuardrailMiddleware(_asgi(reply), client, routes)
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://h") as reader:
                found = await reader.request(method, path, json=request, headers=headers)
                await judged_behind(app)
                return found


def _wsgi(reply: Reply) -> Callable[..., Iterable[bytes]]:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        environ.setdefault("guardrail", {}).update(reply.own)
        start_response(f"{reply.status} X", list(reply.headers))
        return reply.pieces

    return app


def _asgi(reply: Reply) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope.setdefault("guardrail", {}).update(reply.own)
        while (await receive()).get("more_body"):
            continue
        headers = [(k.lower().encode(), v.encode()) for k, v in reply.headers]
        start = {"type": "http.response.start", "status": reply.status, "headers": headers}
        await send(start)
        *most, last = reply.pieces
        for piece in most:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": last})

    return app


RECEIVE = object()
"""A step of an application on a socket: it waits for the reader's next message."""
LOOK = object()
"""Another: it looks whether there is a message and does not wait for one."""


def passages(*texts: str) -> dict[str, Any]:
    """Return a step: the application puts the passages of its next answer into the scope."""
    return {"type": "passages", "contexts": list(texts)}


def on_socket(
    guard: Answers | str,
    route: Route,
    *steps: Any,
    asked: Any = (),
    path: str = "/ask",
    both: bool = False,
    language: str = "",
) -> list[dict[str, Any]]:
    """Return what a reader of a WebSocket is sent.

    Args:
        guard: Answers the checks, or where the service is.
        route: Of `/ask`.
        *steps: Of the application: a frame (text or bytes), a message of its own, `passages`,
            `RECEIVE` or `LOOK`.
        asked: The reader's messages; afterwards it is gone.
        path: That it connects to.
        both: Whether the application waits for its reader while it writes.
        language: That the reader asks for.
    """
    sent: list[dict[str, Any]] = []
    waiting = [{"type": "websocket.connect"}]
    waiting += [{"type": "websocket.receive", "text": text} for text in asked]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        reading = asyncio.create_task(receive()) if both else None
        await asyncio.sleep(0)
        for step in steps:
            if step is RECEIVE:
                await receive()
            elif step is LOOK:
                with suppress(TimeoutError):
                    await asyncio.wait_for(receive(), 0.05)
            elif isinstance(step, dict) and step["type"] == "passages":
                scope["guardrail"]["contexts"] = step["contexts"]
            elif isinstance(step, dict):
                await send(step)
            else:
                kind = "text" if isinstance(step, str) else "bytes"
                await send({"type": "websocket.send", kind: step})
        if reading is not None:
            reading.cancel()

    async def receive() -> dict[str, Any]:
        if (both or LOOK in steps) and not waiting:
            await asyncio.Event().wait()
        return waiting.pop(0) if waiting else {"type": "websocket.disconnect", "code": 1000}

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> None:
        async with gc.AsyncGuardrailClient(**reached(guard)) as client:
            guarded: Any = GuardrailMiddleware(app, client, [route])
            scope: Any = {"type": "websocket", "path": path, "query_string": b""}
            scope["headers"] = [(b"accept-language", language.encode())]
            await guarded(scope, receive, send)
            await judged_behind(guarded)

    anyio.run(run)
    return sent


@pytest.fixture(params=[True, False], ids=["asgi", "wsgi"])
def host(request: pytest.FixtureRequest) -> Host:
    """Return an application behind one of the two."""
    return Host(request.param)
