"""Responses that readers could read in another way than the guard did."""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from typing import Any

import pytest

import guardrail_client as gc
from guardrail_client.middleware import FALLBACK, OUTAGE, GuardrailWSGI, Route
from guardrail_client.middleware.withheld import Withheld
from tests.unit.client.middleware.conftest import BAD, GOOD, Guard, Host, Reply, reached
from tests.unit.client.middleware.test_event_streams import chunk, completion, data, read

EVENTS, LINES = "text/event-stream", "application/x-ndjson"
PIECES = [chunk(content=GOOD[at : at + 5]) for at in range(0, len(GOOD), 5)]
ANSWER = json.dumps({"answer": BAD}).encode()
UTF_7 = "+AGwAbwBiAHMAdABlAHI-"
"""How UTF-7 writes `lobster`."""
EMPTY = b'data: {"choices": []}\n\n'


def reply(body: bytes, kind: str, status: int = 200, encoding: str = "") -> Reply:
    """Return a reply."""
    headers = [("Content-Type", kind)] + ([("Content-Encoding", encoding)] if encoding else [])
    return Reply(body, headers, status)


def beside(fields: str) -> Reply:
    """Return a good stream with an event without text that has these fields."""
    return reply(fields.encode() + EMPTY + completion(GOOD), EVENTS)


UNREAD: dict[str, Reply] = {
    "UTF-16 events": reply(
        data({"delta": BAD}).decode().encode("utf-16"), EVENTS + "; charset=utf-16"
    ),
    "UTF-7 events": reply(data({"delta": UTF_7}), EVENTS + ";charset=utf-7"),
    "UTF-7 lines": reply(json.dumps({"delta": UTF_7}).encode() + b"\n", LINES + "; charset=UTF-7"),
    "UTF-7 text": reply(UTF_7.encode(), "text/plain; charset=utf-7"),
    "two charsets": reply(BAD.encode() + b" ", "text/plain; charset=utf-16le; charset=utf-8"),
    "two types": reply(ANSWER, "application/json, text/html"),
    "multipart": reply(BAD.encode(), "multipart/mixed; boundary=x"),
    "replaced parts": reply(BAD.encode(), "multipart/x-mixed-replace; boundary=x"),
    "ranges": reply(BAD.encode(), "multipart/byteranges; boundary=x", 206),
    "a part of JSON": reply(ANSWER[4:], "application/json", 206),
    "records": reply(b"\x1e" + ANSWER + b"\n", "application/json-seq"),
    "brotli": reply(BAD.encode(), "application/json", encoding="br"),
    "zstd": reply(BAD.encode(), "application/json", encoding="zstd"),
    "twice gzip": reply(
        gzip.compress(gzip.compress(ANSWER)), "application/json", encoding="gzip, gzip"
    ),
    "deflate without a head": reply(
        zlib.compress(ANSWER)[2:-4], "application/json", encoding="deflate"
    ),
    "compressed events": reply(gzip.compress(data(BAD)), EVENTS, encoding="gzip"),
    "UTF-16 by another name": reply(BAD.encode("utf-16-le"), "text/plain; charset=unicode"),
    "a compressed transfer": Reply(
        gzip.compress(BAD.encode()),
        [("Content-Type", "text/plain; charset=latin-1"), ("Transfer-Encoding", "gzip, chunked")],
    ),
    **{
        name: Reply(b"{}", [("Content-Type", "application/json"), (name, "/answers/7")])
        for name in ("X-Accel-Redirect", "X-Sendfile", "x-lighttpd-send-file")
    },
    "a file for an empty body": Reply(b"", [("X-Accel-Redirect", "/answers/7")]),
}  # fmt: skip


@pytest.mark.parametrize("name", UNREAD)
def test_a_body_with_two_readings_cannot_be_checked(
    name: str, host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    """Closed is an error, open the body with a header; both with a line in the log."""
    ask = Route("/ask", sse="/delta")
    with caplog.at_level(logging.WARNING, logger="guardrail_client.middleware"):
        closed = host.get(UNREAD[name], ask)
    assert closed.status_code == 502
    assert closed.json()["error"]["code"] == "guardrail_unchecked"
    assert "not checked" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="guardrail_client.middleware"):
        opened = host.get(UNREAD[name], Route("/ask", sse="/delta", on_error="open"))
    assert opened.headers["x-guardrail-decision"] == "unchecked"
    assert "not checked" in caplog.text


SENT = ("X-Accel-Redirect", "/answers/7")


@pytest.mark.parametrize("status", [204, 302, 304, 404, 500])
@pytest.mark.parametrize("method", ["POST", "HEAD"])
def test_no_server_sends_a_file_in_place_of_the_body(status: int, method: str, host: Host) -> None:
    """As it would be asked to by a header."""
    sent = Reply(b"", [("Content-Type", "text/plain"), SENT, ("Location", "/x")], status)
    found = host.get(sent, method=method)
    assert "x-accel-redirect" not in found.headers
    assert found.status_code == status


FOREIGN: dict[str, tuple[bytes, str]] = {
    "UTF-16 called Latin-1": (b"\xff\xfe" + BAD.encode("utf-16-le"), "latin-1"),
    "UTF-16, the other order": (b"\xff\xfe" + BAD.encode("utf-16-le"), "utf-16be"),
    "UTF-8 called Latin-1": (b"\xef\xbb\xbf" + BAD.encode(), "iso-8859-1"),
    "events": (b"".join(data({"d": BAD[at : at + 3]}) for at in range(0, 48, 3)), "utf-8"),
    "events behind a comment": (b": hi\r\n\r\n" + b"event: a\ndata: l\n\nid: 4\ndata: obster\n\n",
                                "utf-8"),
    "lines": (b'{"d":"lob"}\n' + b'{"d":"ster"}\n' * 2, "utf-8"),
    "parts": (b'0:"lob"\n0:"ster"\n', "utf-8"),
}  # fmt: skip
PLAIN = [
    GOOD,
    "data: what we keep about guests\nid: a number\n\nBoth are kept for a year.",
    '{"city": "Rome"}\n\nThat is all.',
    '{\n"city": "Rome"\n}',
    "1: one\n2: two",
    ": a colon",
]


@pytest.mark.parametrize("size", [1, 5, 4096])
@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_called_text_and_is_another_stream_cannot_be_checked(
    name: str, size: int, host: Host
) -> None:
    """Its readers put together what the guard would read in pieces, or in another charset."""
    body, charset = FOREIGN[name]
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    sent = Reply(body, [("Content-Type", f"text/plain; charset={charset}")], chunks=chunks)
    closed = host.get(sent).content
    assert OUTAGE in closed.decode(charset)
    assert b"obster" not in closed
    assert "obster" not in closed.decode("utf-16-le", "replace")
    assert host.get(sent, Route("/ask", on_error="open")).content == body


@pytest.mark.parametrize("size", [1, 4096])
@pytest.mark.parametrize("text", PLAIN)
def test_text_that_has_colons_and_braces_is_text(text: str, size: int, host: Host) -> None:
    """One line of them is no stream."""
    body = text.encode()
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    assert host.get(Reply(body, [("Content-Type", "text/plain")], chunks=chunks)).content == body


def upgraded(route: Route, environ: dict[str, Any]) -> tuple[str, bytes, dict[str, Any]]:
    """Return what a WSGI application is sent and what it is given for a WebSocket."""
    given: dict[str, Any] = {}
    status: list[str] = []

    def app(environ: Any, start_response: Any) -> list[bytes]:
        given.update(environ)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [GOOD.encode()]

    asked = {"REQUEST_METHOD": "GET", "PATH_INFO": "/ask", "werkzeug.socket": 1, **environ}
    with gc.GuardrailClient(**reached(Guard())) as client:
        made = GuardrailWSGI(app, client, [route])
        body = b"".join(made(asked, lambda code, _headers: status.append(code)))
    return status[0], body, given


def test_a_websocket_behind_wsgi_is_refused() -> None:
    """Its frames leave through the socket of the server; that is given to nobody else, either."""
    asked = {"HTTP_UPGRADE": "WebSocket"}
    for own in (None, "text", "json:/delta"):
        assert upgraded(Route("/ask", websocket=own), asked) == ("403 Forbidden", b"", {})
    status, body, given = upgraded(Route("/ask", websocket="unchecked"), asked)
    assert (status, body, given["werkzeug.socket"]) == ("200 OK", GOOD.encode(), 1)
    assert "werkzeug.socket" not in upgraded(Route("/ask"), {})[2]


@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("kind", ["application/json", "text/html", EVENTS])
def test_a_response_without_a_body_has_none(status: int, kind: str, host: Host) -> None:
    """Not every server drops what an application says in it."""
    assert host.get(reply(ANSWER, kind, status)).content == b""


def test_an_answer_to_head_is_its_headers(host: Host) -> None:
    """The body is the application's mistake."""
    found = host.get(reply(ANSWER, "application/json"), method="HEAD")
    assert (found.status_code, found.content) == (200, b"")
    assert found.headers["content-type"] == "application/json"


TWICE = {
    "names": f"event: message\nevent: {BAD}\n",
    "ids": "".join(f"id: {word}\n" for word in [*BAD.split(), "7"]),
    "times": "retry: 5\nretry: a lobster\n",
    "a name that passes, and another": "event: sources\nevent: message\n",
}


@pytest.mark.parametrize("name", TWICE)
def test_of_a_field_that_stands_twice_the_last_counts(name: str, host: Host) -> None:
    """As for readers of events."""
    ask = Route("/ask", sse="/delta", unchecked_events=["sources"])
    said = {"note": BAD} if "passes" in name else {"n": 1}
    body = TWICE[name].encode() + data(said) + data({"delta": GOOD})
    sent = host.get(reply(body, EVENTS), ask).text
    assert "lobster" not in sent
    assert "phrase" not in sent
    if name == "ids":
        assert sent.count("id: ") == 1


LAYOUTS = {
    "CR": lambda body: body.replace(b"\n", b"\r"),
    "CRLF": lambda body: body.replace(b"\n", b"\r\n"),
    "mixed": lambda body: body.replace(b"\n\n", b"\r\n\r").replace(b"}\n", b"}\r"),
    "a byte-order mark": lambda body: b"\xef\xbb\xbf" + body,
    "data over lines": lambda body: body.replace(b'{"id"', b'{\ndata: "id"').replace(
        b'"choices"', b'\ndata:"choices"'
    ),
    "comments and ids": lambda body: body.replace(b"data: {", b": a\nid: 4\nretry: 10\ndata: {"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("text", "shown"), [(GOOD, GOOD), (BAD, FALLBACK)], ids=["good", "bad"])
def test_the_layout_of_events_changes_nothing(
    layout: str, text: str, shown: str, host: Host
) -> None:
    """Line ends, a mark at the beginning, fields in any order."""
    sent = host.get(reply(LAYOUTS[layout](completion(text)), EVENTS)).text
    assert read(sent) == shown
    assert "lobster" not in sent


ODD: dict[str, Any] = {
    "an index that is none": {"index": "x", "delta": {"content": "lobster"}},
    "a list for an index": {"index": [0], "delta": {"content": "lobster"}},
    "half an index": {"index": 0.5, "delta": {"content": "lobster"}},
    "a tool's index": {"index": 0, "delta": {"tool_calls": [
        {"index": {}, "function": {"name": "f", "arguments": "lobster"}}]}},
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_choices_that_nobody_can_tell_apart_cannot_be_checked(name: str, host: Host) -> None:
    """The stream goes on or ends, as the route says; it never breaks off."""
    body = b"".join([*PIECES, data({"choices": [ODD[name]]}), chunk("stop"), data("[DONE]")])
    closed = host.get(reply(body, EVENTS)).text
    assert "lobster" not in closed
    assert OUTAGE in closed
    opened = host.get(reply(body, EVENTS), Route("/ask", on_error="open")).text
    assert opened.endswith("data: [DONE]\n\n")
    assert read(opened).startswith(GOOD)


def test_a_redacted_number_is_not_said_as_a_number() -> None:
    """Short numbers say nothing."""
    withheld = Withheld(values=["4111 1111 1111 1111"])
    said = {"card": 4111111111111111, "n": [1, 4111.5, True], "at": 4111111111111112}
    assert withheld.removed_from(said) == {**said, "card": None}
