"""Each failure of the guard, behind each way to a reader: shown, status, headers, log line."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import anyio
import httpx
import pytest

import guardrail_client as gc
from guardrail_client.middleware import OUTAGE, AnswerOutcome, Route, guarded
from tests.unit.client.conftest import (
    PATIENCE_S,
    Handler,
    ScriptedServer,
    loading,
    not_json,
    overloaded,
    truncated,
)
from tests.unit.client.middleware.conftest import GOOD, Host, Reply, on_socket, reached
from tests.unit.client.middleware.test_event_streams import completion, read

MEDIA = {"json": "application/json", "events": "text/event-stream", "lines": "application/x-ndjson"}
LOGGERS = ("guardrail_client", "guardrail_client.middleware")


@dataclass(frozen=True)
class Failure:
    """What a guard does, its code, and whether it counts as a guard that cannot be asked."""

    step: Callable[[Handler], None] | None
    code: str
    passes: bool
    timeout: float = PATIENCE_S


def unauthorized(handler: Handler) -> None:
    """Refuse the key."""
    body = {"error": {"code": "unauthorized", "message": GOOD}}
    handler.answer(401, json.dumps(body).encode())


def waiting(handler: Handler) -> None:
    """Answer nothing until the test is over."""
    handler.server.turn.acquire(timeout=PATIENCE_S)


FAILURES = {
    "down": Failure(None, "connection_failed", passes=True),
    "slow": Failure(waiting, "timeout_exceeded", passes=True, timeout=0.05),
    "garbage": Failure(not_json, "unexpected_reply", passes=False),
    "401": Failure(unauthorized, "unauthorized", passes=False),
    "429": Failure(overloaded, "overloaded", passes=True),
    "503": Failure(loading, "not_ready", passes=True),
    "truncated": Failure(truncated, "connection_failed", passes=True),
}


@pytest.fixture(params=FAILURES)
def failure(request: pytest.FixtureRequest) -> Failure:
    """Return one of them."""
    return FAILURES[request.param]


@pytest.fixture
def address(failure: Failure, server: ScriptedServer, refused_url: str) -> Iterator[str]:
    """Return where the failing service is."""
    if failure.step is None:
        yield refused_url
        return
    server.script = [failure.step] * 9
    yield server.url
    server.turn.release(9)


@pytest.fixture(params=["closed", "open"])
def on_error(request: pytest.FixtureRequest) -> Any:
    """Return what a route says."""
    return request.param


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of the log, none of which says what the answer says."""
    lines = [record.getMessage() for record in caplog.records if record.name in LOGGERS]
    assert not any(word in line for line in lines for word in ("weeks", "Guests"))
    return lines


def body_of(kind: str) -> bytes:
    """Return an answer as an application sends it."""
    if kind == "json":
        return json.dumps({"answer": GOOD, "n": 1}).encode()
    if kind == "events":
        return completion(GOOD)
    if kind == "lines":
        pieces = [{"message": {"role": "assistant", "content": GOOD}, "done": False}]
        return b"".join(json.dumps(p).encode() + b"\n" for p in [*pieces, {"done": True}])
    return GOOD.encode()


def read_by(kind: str, body: str) -> str:
    """Return what its reader shows."""
    if kind == "json":
        return str(json.loads(body)["answer"])
    if kind == "events":
        return read(body)
    if kind == "lines":
        lines = [json.loads(line) for line in body.splitlines()]
        return "".join(line.get("message", {}).get("content", "") for line in lines)
    return body


@pytest.mark.parametrize("hold", [None, "all"])
@pytest.mark.parametrize("kind", ["json", "events", "lines", "text"])
def test_a_response(
    kind: str,
    hold: Any,
    failure: Failure,
    on_error: Any,
    address: str,
    host: Host,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Over ASGI and WSGI: the answer or the text for outages, never a part of both."""
    seen: list[AnswerOutcome] = []
    route = Route(
        "/ask", on_error=on_error, hold=hold, timeout=failure.timeout, on_outcome=seen.append
    )
    host.address = address
    body = body_of(kind)
    with caplog.at_level(logging.WARNING):
        reply = host.get(Reply.of(body, MEDIA.get(kind, "text/plain")), route)
    passes = on_error == "open" and failure.passes
    shown = "as_is" if passes else "replaced"
    assert read_by(kind, reply.text) == (GOOD if passes else OUTAGE)
    assert reply.status_code == 200
    found = {k: v for k, v in reply.headers.items() if k.startswith("x-guardrail")}
    if kind == "json":
        assert found == {
            "x-guardrail-decision": "unchecked", "x-guardrail-error": failure.code
        }  # fmt: skip
        assert (reply.content == body) == passes
    else:
        assert found == {"x-guardrail-decision": "streaming"}
        assert ('"reason":"outage"' in reply.text) == (not passes and kind != "text")
    assert [(outcome.shown, outcome.error) for outcome in seen] == [(shown, failure.code)]
    assert {line.partition("checked")[2].split(", ")[-1] for line in logged(caplog)} == {
        f"{shown}: {failure.code}"
    }


BEGINNING = GOOD[:17]


def dying(_request: httpx.Request) -> httpx.Response:
    """Be a guard that is gone after the first part of a stream."""
    part = {"type": "release", "text": BEGINNING, "processed_index": len(BEGINNING)}
    return httpx.Response(200, text=json.dumps(part) + "\n")


@pytest.mark.parametrize("kind", ["events", "lines", "text", "socket"])
def test_a_stream_that_was_shown_in_part(
    kind: str, on_error: Any, host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    """Closed says so behind the part; open goes on without a gap."""
    with caplog.at_level(logging.WARNING):
        if kind == "socket":
            route = Route("/ask", websocket="text", on_error=on_error)
            sent = on_socket(dying, route, GOOD, {"type": "websocket.close", "code": 1000})
            shown = "".join(message.get("text", "") for message in sent)
        else:
            host.guard = dying
            reply = Reply.of(body_of(kind), MEDIA.get(kind, "text/plain"))
            shown = read_by(kind, host.get(reply, Route("/ask", on_error=on_error)).text)
    assert shown == (GOOD if on_error == "open" else BEGINNING + OUTAGE)
    assert ["connection_failed" in line for line in logged(caplog)] == [True]


@pytest.mark.parametrize("end", ["receive", "frame"])
@pytest.mark.parametrize("kind", ["text", "json:/delta"])
def test_a_websocket(
    kind: str,
    end: str,
    failure: Failure,
    on_error: Any,
    address: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The code with which it is closed tells an outage from a block."""
    seen: list[AnswerOutcome] = []
    route = Route(
        "/ask",
        websocket=kind,
        websocket_end=end,
        on_error=on_error,
        timeout=failure.timeout,
        on_outcome=seen.append,
    )
    frame = GOOD if kind == "text" else json.dumps({"delta": GOOD})
    with caplog.at_level(logging.WARNING):
        sent = on_socket(address, route, frame, {"type": "websocket.close", "code": 1000})
    passes = on_error == "open" and failure.passes
    shown = "as_is" if passes else "replaced"
    texts = [message.get("text", "") for message in sent if message["type"] == "websocket.send"]
    told = {"reason": "outage", "action": None, "retract_from": None}
    if kind == "text":
        assert "".join(texts) == (GOOD if passes else OUTAGE)
    else:
        documents = list(map(json.loads, texts))
        instead = [{"delta": OUTAGE}, {"guardrail": told}]
        assert documents == ([{"delta": GOOD}] if passes else instead)
    assert sent[-1]["code"] == (1013 if not passes and end == "receive" else 1000)
    if sent[-1]["code"] == 1013:
        assert json.loads(sent[-1]["reason"]) == told
    assert [(outcome.shown, outcome.error) for outcome in seen] == [(shown, failure.code)]
    assert {line.split(", ")[-1] for line in logged(caplog)} == {f"{shown}: {failure.code}"}


@pytest.mark.parametrize("pieces", [False, True], ids=["whole", "pieces"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["plain", "async"])
def test_a_function(
    pieces: bool,
    asynchronous: bool,
    failure: Failure,
    on_error: Any,
    address: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Returned or yielded."""
    settings: Any = {
        "on_error": on_error,
        "timeout": failure.timeout,
        "question": None,
        "contexts": None,
    }
    with caplog.at_level(logging.WARNING):
        call = anyio.run(_awaited, address, settings, pieces) if asynchronous else _called(
            address, settings, pieces
        )  # fmt: skip
    passes = on_error == "open" and failure.passes
    assert call == (GOOD if passes else OUTAGE)
    assert [failure.code in line for line in logged(caplog)] == [True]


def _called(address: str, settings: Any, pieces: bool) -> str:
    with gc.GuardrailClient(**reached(address)) as client:

        @guarded(client, **settings)
        def whole() -> str:
            return GOOD

        @guarded(client, **settings)
        def written() -> Iterator[str]:
            yield from (GOOD[:20], GOOD[20:])

        return "".join(written()) if pieces else whole()


async def _awaited(address: str, settings: Any, pieces: bool) -> str:
    async with gc.AsyncGuardrailClient(**reached(address)) as client:

        @guarded(client, **settings)
        async def whole() -> str:
            return GOOD

        @guarded(client, **settings)
        async def written() -> AsyncIterator[str]:
            for piece in (GOOD[:20], GOOD[20:]):
                yield piece

        return "".join([piece async for piece in written()]) if pieces else await whole()
