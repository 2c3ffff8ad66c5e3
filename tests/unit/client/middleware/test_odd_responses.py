"""Responses that readers could read in another way than the guard did."""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from typing import Any

import pytest

from guardrail_client.middleware import FALLBACK, OUTAGE, Route
from guardrail_client.middleware.withheld import Withheld
from tests.unit.client.middleware.conftest import BAD, GOOD, Host, Reply
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
