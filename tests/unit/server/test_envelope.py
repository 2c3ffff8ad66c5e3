"""What surrounds a request: ids, keys, body limits and the last handler, as plain ASGI."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.errors import NotReady
from guardrail_service.server.envelope import ROUNDS, Envelope, request_id_from
from guardrail_service.server.keys import Keys, ring

Message = dict[str, Any]
PATIENCE_S = 60.0
App = Callable[[Any, Any, Any], Awaitable[None]]


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the body."""
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def exchange(
    app: App = echo,
    chunks: tuple[bytes, ...] = (b"body",),
    headers: dict[str, bytes] | None = None,
    keys: tuple[str, ...] = (),
    path: str = "/v1/check",
    leaves: bool = False,
) -> tuple[int, dict[str, str], bytes]:
    """Send one request through an envelope; return status, headers and body."""
    incoming: list[Message] = [
        {"type": "http.request", "body": chunk, "more_body": n + 1 < len(chunks) or leaves}
        for n, chunk in enumerate(chunks)
    ] + [{"type": "http.disconnect"}]
    sent: list[Message] = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": [(name.lower().encode(), value) for name, value in (headers or {}).items()],
        "app": SimpleNamespace(state=SimpleNamespace()),
    }

    async def receive() -> Message:
        return incoming.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    known = Keys(lambda: ring(key.encode() for key in keys)) if keys else None
    envelope = Envelope(app, 10, PATIENCE_S, known)
    asyncio.run(envelope(scope, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(m.get("body", b"") for m in sent[1:])


@given(st.text())
def test_a_request_id_is_short_and_plain_whatever_is_sent(header: str) -> None:
    """Kept or replaced, it can stand in a header and in a log line."""
    found = request_id_from(header)
    assert 1 <= len(found) <= 64
    assert all(c.isascii() and (c.isalnum() or c in "-_.") for c in found)


def test_a_plain_id_is_kept_and_others_are_replaced_by_new_ones() -> None:
    """Every request without one gets its own."""
    assert request_id_from("Mine-7_a.b") == "Mine-7_a.b"
    assert request_id_from("a" * 64) == "a" * 64
    for header in (None, "", "a" * 65, "a b", "a\n", "é", "a/b"):
        assert request_id_from(header) != request_id_from(header)


def test_the_id_of_the_header_is_the_one_in_the_error() -> None:
    """Whatever goes wrong, the two can be matched."""
    status, headers, body = exchange(chunks=(b"a" * 11,), headers={"X-Request-Id": b"mine"})
    assert status == 413
    assert headers["x-request-id"] == json.loads(body)["error"]["request_id"] == "mine"
    assert float(headers["x-total-time"]) >= 0


@pytest.mark.parametrize("chunks", [(b"a" * 10,), (b"a" * 5, b"a" * 5), (b"",), (b"", b"a")])
def test_a_body_within_the_limit_arrives_whole(chunks: tuple[bytes, ...]) -> None:
    """Exactly the limit is allowed."""
    assert exchange(chunks=chunks)[::2] == (200, b"".join(chunks))


@pytest.mark.parametrize(
    ("chunks", "headers"),
    [
        ((b"a" * 11,), {}),
        ((b"a" * 6, b"a" * 5), {}),
        ((), {"Content-Length": b"11"}),
        ((b"a",), {"Content-Length": b"9" * 18}),
    ],
)
def test_a_body_over_the_limit_is_refused_as_soon_as_that_is_known(
    chunks: tuple[bytes, ...], headers: dict[str, bytes]
) -> None:
    """By what it says, before it is read, or by what has arrived."""
    status, _, body = exchange(chunks=chunks, headers=headers)
    assert (status, json.loads(body)["error"]["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("length", [b"-1", b"1 0", b"ten", b"0x10", b"\xb2", b"9" * 5_000, b""])
def test_a_content_length_that_is_no_length_is_refused(length: bytes) -> None:
    """And is no 500."""
    status, _, body = exchange(headers={"Content-Length": length})
    assert (status, json.loads(body)["error"]["code"]) == (400, "malformed_json")


def test_a_caller_who_leaves_while_sending_is_no_bug() -> None:
    """The reply goes nowhere, and nothing is judged."""
    status, _, _ = exchange(chunks=(b"a",), leaves=True)
    assert status == 422


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b"Bearer right", 200),
        (b"bearer right", 200),
        (b"Bearer  right ", 200),
        ("Bearer schlüssel".encode(), 200),
        (b"Bearer wrong", 401),
        (b"Bearer ", 401),
        (b"Bearer", 401),
        (b"right", 401),
        (b"Basic right", 401),
        (b"Bearer right, right", 401),
        (b"", 401),
        (b"\xff\xfe", 401),
    ],
)
def test_only_a_known_bearer_key_opens(header: bytes, status: int) -> None:
    """Byte for byte, also beyond ASCII."""
    found = exchange(headers={"Authorization": header}, keys=("right", "schlüssel"))
    assert found[0] == status
    assert (found[1].get("www-authenticate") == "Bearer") is (status == 401)


def test_probes_need_no_key_and_look_alikes_do() -> None:
    """Exact paths only."""
    for path in ("/healthz", "/readyz", "/metrics"):
        assert exchange(path=path, keys=("right",))[0] == 200
    for path in ("/healthz/", "//healthz", "/metrics/x", "/v1/check", "/", "/HEALTHZ"):
        assert exchange(path=path, keys=("right",))[0] == 401


def test_a_bug_is_a_500_without_its_message(caplog: pytest.LogCaptureFixture) -> None:
    """The log says what and where; the text it choked on goes nowhere."""

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError("zq9")

    status, _, body = exchange(broken)
    assert status == 500
    assert json.loads(body)["error"]["code"] == "internal"
    assert b"zq9" not in body
    assert "zq9" not in caplog.text
    assert "unhandled ValueError at test_envelope.py:" in caplog.text


def test_our_own_errors_keep_their_status() -> None:
    """Also outside of a route."""

    async def closed(scope: Any, receive: Any, send: Any) -> None:
        raise NotReady("later")

    status, _, body = exchange(closed)
    assert (status, json.loads(body)["error"]["message"]) == (503, "later")


def test_a_bug_behind_the_first_byte_starts_no_second_reply() -> None:
    """The server closes the connection, which a client can tell from an end."""

    async def half(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ValueError("zq9")

    assert exchange(half)[::2] == (200, b"half")


def test_every_request_has_one_access_line(caplog: pytest.LogCaptureFixture) -> None:
    """Refused ones too; a made-up method is not repeated."""
    caplog.set_level(logging.INFO, "guardrail.access")
    exchange(headers={"X-Request-Id": b"one"})
    exchange(chunks=(b"a" * 11,), headers={"X-Request-Id": b"two"})
    lines = [json.loads(record.getMessage()) for record in caplog.records]
    assert [(line["request_id"], line["status"]) for line in lines] == [("one", 200), ("two", 413)]
    assert lines[1]["error"] == "body_too_large"
    assert {line["route"] for line in lines} == {"unmatched"}


def test_what_is_not_http_passes_through() -> None:
    """Start-up and shut-down have no request id."""
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    async def nothing(*_: Any) -> Any:
        raise AssertionError

    asyncio.run(Envelope(app, 10, PATIENCE_S)({"type": "lifespan"}, nothing, nothing))
    assert seen == ["lifespan"]


def test_of_requests_that_arrive_together_one_is_parsed_per_round_of_the_loop() -> None:
    """In their order; probes pass, and in every loop anew."""
    rounds: list[str] = []

    async def slow(scope: Any, _receive: Any, _send: Any) -> None:
        rounds.append(scope["name"])

    async def ticks() -> None:
        for _ in range(4 * ROUNDS):
            rounds.append("-")
            await asyncio.sleep(0)

    envelope = Envelope(slow, 10, PATIENCE_S)

    async def together() -> None:
        async def one(name: str, path: str) -> None:
            scope: dict[str, Any] = {
                "type": "http", "method": "POST", "path": path, "headers": [], "name": name,
                "app": SimpleNamespace(state=SimpleNamespace()),
            }  # fmt: skip

            async def receive() -> Message:
                return {"type": "http.request", "body": b"", "more_body": False}

            await envelope(scope, receive, receive)
            assert scope["state"]["arrived"] > 0

        checks = [one(name, "/v1/check") for name in "abc"]
        await asyncio.gather(ticks(), *checks, one("probe", "/readyz"))

    for _ in range(2):
        rounds.clear()
        asyncio.run(together())
        seen = "".join(name[0] for name in rounds).strip("-")
        assert seen.index("p") < seen.index("b")
        assert [name for name in seen if name in "abc"] == ["a", "b", "c"]
        assert "-" in seen[seen.index("a") : seen.index("b")]
        assert "-" in seen[seen.index("b") : seen.index("c")]


def test_while_requests_come_in_bodies_wait_but_not_for_ever() -> None:
    """Beside threads that compute, a round is not cheap."""

    async def nothing(*_: Any) -> None:
        pass

    envelope = Envelope(nothing, 10, PATIENCE_S)

    async def rounds_until_free(coming: int) -> int:
        await envelope._one_by_one()
        for found in range(4 * ROUNDS):
            if not envelope._next.locked():
                return found
            envelope._begun += found < coming
            await asyncio.sleep(0)
        raise AssertionError("never free")

    quiet, two, many = (asyncio.run(rounds_until_free(n)) for n in (0, 2, 4 * ROUNDS))
    assert quiet < two < many <= ROUNDS + 1


def test_a_body_that_does_not_come_in_time_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    """And the connection ends, because what comes later is no request."""
    sent: list[Message] = []

    async def receive() -> Message:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/check",
        "headers": [],
        "app": SimpleNamespace(state=SimpleNamespace()),
    }
    asyncio.run(Envelope(echo, 10, 0.01)(scope, receive, send))
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    assert json.loads(sent[1]["body"])["error"]["code"] == "request_timeout"
    assert "a request's body took too long" in caplog.text
