"""The table of response shapes in docs/what-users-see.md, row by row.

`python -m tests.unit.client.middleware.test_response_shapes` prints it.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import httpx
import pytest

from guardrail_client.middleware import FALLBACK, OUTAGE, Route
from tests.unit.client.middleware.conftest import (
    BAD,
    GOOD,
    LEAK,
    PAID,
    RECEIVE,
    Guard,
    Host,
    Reply,
    on_socket,
)
from tests.unit.client.middleware.test_event_streams import chunk, completion, data
from tests.unit.client.middleware.test_json_replies import REPLIES, with_text
from tests.unit.client.middleware.test_stream_property import NUMBER, encoded, hidden, views
from tests.unit.client.middleware.test_vendor_streams import EVENTS, LINES, VENDORS, pieces
from tests.unit.client.middleware.test_vendor_streams import route as vendor_route
from tests.unit.client.middleware.test_what_users_see import part, rows

JSON = "application/json"
TEXTS = (BAD, LEAK, GOOD)
CLOSE = {"type": "websocket.close", "code": 1000}


@dataclass(frozen=True)
class Shape:
    """One shape of a response.

    Attributes:
        reply: Returns the response that says a text; a list: the steps of a socket's application.
        settings: Of the route.
        path: That the reader asks for.
        method: Of the request.
        own: Path of the route.
        before: How a route was set up before there were shapes; see the closing note of the change.
    """

    reply: Callable[[str], Any]
    settings: dict[str, Any] = field(default_factory=dict)
    path: str = "/ask"
    method: str = "POST"
    own: str = "/ask"
    before: dict[str, Any] = field(default_factory=dict)

    @property
    def is_socket(self) -> bool:
        """Return whether it is frames of a WebSocket."""
        return isinstance(self.reply(GOOD), list)


def json_of(make: Callable[[str], Any], kind: str = JSON, **more: Any) -> Shape:
    """Return a shape of JSON."""
    return Shape(lambda text: Reply.of(make(text), kind), **more)


def at(name: str, place: str, **settings: Any) -> Shape:
    """Return a vendor's reply with the text at a place."""
    old = REPLIES[name][1][0]
    before = {"answer": old, "contexts": None}
    return json_of(lambda text: with_text(name, place, text), settings=settings, before=before)


def bytes_of(make: Callable[[bytes], bytes], kind: str = JSON, *headers: Any) -> Shape:
    """Return a shape of bytes around an answer in JSON."""
    return Shape(
        lambda text: Reply(
            make(json.dumps({"answer": text}).encode()), [("Content-Type", kind), *headers]
        )
    )


def raw(kind: str, status: int = 200, **more: Any) -> Shape:
    """Return a shape of plain text under a type."""
    return Shape(lambda text: Reply(text.encode(), [("Content-Type", kind)], status), **more)


def events_of(make: Callable[[str], bytes], kind: str = EVENTS, **settings: Any) -> Shape:
    """Return a shape of events."""
    return Shape(lambda text: Reply.of(make(text), kind), settings=settings)


def raw_events(kind: str) -> Shape:
    """Return a shape of events under another type."""
    return Shape(lambda t: Reply.of(b"".join(data({"d": p}) for p in pieces(t)), kind))


def ahead(make: Callable[[str], bytes]) -> Shape:
    """Return a streamed completion with an event in the midst of it that says the text, too."""

    def body(text: str) -> bytes:
        whole = completion(text)
        middle = whole.index(b"data", 200)
        return whole[:middle] + make(text) + whole[middle:]

    return events_of(body)


def framed(kind: str, end: str = "receive", **settings: Any) -> Shape:
    """Return frames of a socket."""

    def steps(text: str) -> list[Any]:
        said = [text] if end == "frame" else pieces(text)
        frames = said if kind == "text" else [json.dumps({"delta": one}) for one in said]
        return [*frames, RECEIVE, CLOSE]

    return Shape(steps, {"websocket": kind, "websocket_end": end, **settings})


def paid(text: str) -> str:
    """Return a text with a card in the place of one with an address."""
    return PAID if text == LEAK else text


def vendor_stream(name: str) -> Shape:
    """Return the stream of a service, set up by its name."""
    made = vendor_route(name)
    settings = {"sse": made.sse, "types": dict(made.types)}
    return Shape(VENDORS[name].reply, settings)


SHAPES: dict[str, Shape] = {
    # JSON whose place of the answer is known
    "`{\"answer\"}`": json_of(lambda t: {"answer": t}),
    **{f"`{name}`, JSON": at(name, places[0]) for name, (_, places) in REPLIES.items()},
    "`openai`, `n: 2`": at("openai", "/choices/1"),
    "`openai`, a list of parts": at("openai", "/choices/0/message/content:parts"),
    "`openai`, `reasoning_content`": at("openai", "/choices/0/message/reasoning_content"),
    "`openai`, `refusal`": at("openai", "/choices/0/message/refusal"),
    "`openai`, `tool_calls`": at("openai", "/choices/0/message/tool_calls"),
    "`openai`, a text completion": at("openai", "/choices/0/text"),
    "`openai`, a field nobody knows": at("openai", "/choices/0/message/a_new_field"),
    "`anthropic`, a thought": at("anthropic", "/content/0/thinking"),
    "`anthropic`, a tool's input": at("anthropic", "/content/0/input"),
    "a pointer that leads to a list of parts": json_of(
        lambda t: {"answer": [{"type": "text", "text": t[:9]}, {"type": "text", "text": t[9:]}]}
    ),
    "two pointers": json_of(
        lambda t: {"title": GOOD, "body": t}, settings={"answer": ["/title", "/body"]},
        before={"answer": "/title"},
    ),
    "a pointer with `*`": json_of(
        lambda t: {"all": [{"text": GOOD}, {"text": t}]}, settings={"answer": "/all/*/text"},
        before={"answer": "/all/0/text"},
    ),
    "a function that returns several texts": json_of(
        lambda t: {"all": [GOOD, t]}, settings={"answer": lambda e: e.response["all"]},
        before={"answer": "all[0]"},
    ),
    "the answer again, in the passages of the reply": json_of(
        lambda t: {"answer": t, "contexts": [f"They say: {t}"]}
    ),
    "the answer again, as JSON in a string": json_of(
        lambda t: {"answer": t, "trace": json.dumps({"said": t})}
    ),
    # JSON without it, or that two readers could read differently
    "a pointer that leads nowhere": json_of(lambda t: {"reply": t}),
    "a chat completion where `/answer` was declared": json_of(
        lambda t: with_text("openai", "/choices/0/message/content", t),
        settings={"answer": "/answer"},
    ),
    "invalid UTF-8": bytes_of(lambda b: b[:-1] + b', "x": "\xff"}'),
    "a field nested 1,200 deep": bytes_of(
        lambda b: b[:-1] + b', "x": %s}' % (b"[" * 1200 + b"]" * 1200)
    ),
    "a huge integer": bytes_of(lambda b: b[:-1] + b', "x": %s}' % (b"9" * 5000)),
    "`NaN`": bytes_of(lambda b: b[:-1] + b', "x": NaN}'),
    "a prefix against inclusion": bytes_of(lambda b: b")]}',\n" + b),
    "trailing bytes": bytes_of(lambda b: b + b"x"),
    "a key twice": bytes_of(lambda b: b'{"answer": "Good.", ' + b[1:]),
    "a byte-order mark": bytes_of(lambda b: b"\xef\xbb\xbf" + b),
    "a body that was cut": bytes_of(lambda b: b[:-1]),
    "a part of a body (206)": Shape(
        lambda t: Reply(json.dumps({"answer": t}).encode()[3:], [("Content-Type", JSON)], 206)
    ),
    "gzip": bytes_of(gzip.compress, JSON, ("Content-Encoding", "gzip")),
    "gzip of two members": bytes_of(
        lambda b: gzip.compress(b[:20]) + gzip.compress(b[20:]), JSON, ("Content-Encoding", "gzip")
    ),
    "an unknown compression": bytes_of(lambda b: b, JSON, ("Content-Encoding", "br")),
    # other types
    "`text/json`": json_of(lambda t: {"answer": t}, "text/json"),
    "`application/vnd.api+json`": json_of(lambda t: {"answer": t}, "application/vnd.api+json"),
    "no content type": json_of(lambda t: {"answer": t}, ""),
    "two content types": bytes_of(lambda b: b, JSON, ("Content-Type", "text/html")),
    "JSON in UTF-16": bytes_of(
        lambda b: b.decode().encode("utf-16"), "application/json; charset=utf-16"
    ),
    "`text/html`": raw("text/html"),
    "`application/pdf`": raw("application/pdf"),
    "`multipart/mixed`": raw("multipart/mixed; boundary=x"),
    "`text/plain`": raw("text/plain"),
    "`text/markdown`": raw("text/markdown"),
    "text in UTF-7": Shape(
        lambda t: Reply(t.encode("utf-7"), [("Content-Type", "text/plain; charset=utf-7")])
    ),
    "events, called text": raw_events("text/plain"),
    "UTF-16 behind its mark, called Latin-1": Shape(
        lambda t: Reply(
            b"\xff\xfe" + t.encode("utf-16-le"), [("Content-Type", "text/plain; charset=latin-1")]
        )
    ),
    "a file that a server in front sends (`X-Accel-Redirect`)": Shape(
        lambda t: Reply(t.encode(), [("Content-Type", "text/plain"), ("X-Accel-Redirect", "/a")])
    ),
    "the answer again, in an address": json_of(
        lambda t: {"answer": t, "url": f"https://h.example/?q={quote(t)}"}
    ),
    "the answer again, in base64": json_of(lambda t: {"answer": t, "again": encoded(t)}),
    "the answer again, in base64 under an id": json_of(lambda t: {"answer": t, "id": encoded(t)}),
    "the answer again, in hexadecimal": json_of(lambda t: {"answer": t, "x": t.encode().hex()}),
    "the answer again, as entities of HTML": json_of(
        lambda t: {"answer": t, "x": "".join(f"&#{ord(letter)};" for letter in t)}
    ),
    "the answer again, in words": json_of(lambda t: {"answer": t, "words": t.split(" ")}),
    "the answer again, in tokens with bytes": json_of(
        lambda t: {"answer": t, "x": [{"token": w, "bytes": [*w.encode()]} for w in t.split(" ")]}
    ),
    "a value again, as a number": json_of(lambda t: {"answer": paid(t), "card": NUMBER}),
    "a value again, as groups of digits": json_of(
        lambda t: {"answer": paid(t), "card": [4111, 1111, 1111, 1111]}
    ),
    "an answer beside a mark of replies without": json_of(
        lambda t: {"answer": t, "job": 7}, settings={"no_answer": ["/job"]},
    ),
    "an error that is an answer (500)": json_of(lambda t: {"answer": t}),
    "an error page (404)": raw("text/html", 404),
    "the body of a redirect": raw("text/html", 307),
    "a body for `HEAD`": json_of(lambda t: {"answer": t}, method="HEAD"),
    # streams
    "`openai`, chunks": events_of(completion),
    "`openai`, chunks of two choices": events_of(
        lambda t: chunk(content=GOOD) + chunk("stop")
        + b"".join(chunk(index=1, content=p) for p in pieces(t)) + chunk("stop", index=1)
        + data("[DONE]")
    ),
    "`openai`, chunks with `reasoning_content`": events_of(
        lambda t: completion(t, field="reasoning_content")
    ),
    "`openai`, chunks with `refusal`": events_of(lambda t: completion(t, field="refusal")),
    "`openai`, chunks with `tool_calls`": events_of(
        lambda t: b"".join(
            chunk(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": p}}])
            for p in pieces(json.dumps({"say": t}))
        ) + chunk("tool_calls") + data("[DONE]")
    ),
    "`openai`, `delta.content` as a list": ahead(
        lambda t: chunk(content=[{"type": "text", "text": t}])
    ),
    "`openai`, `message` for `delta`": ahead(
        lambda t: data({"choices": [{"index": 0, "message": {"content": t}}]})
    ),
    "log probabilities ahead of the text": ahead(
        lambda t: data({"choices": [{"index": 0, "delta": {}, "logprobs": [{"token": t}]}]})
    ),
    "an event of another type ahead of the text": ahead(
        lambda t: data({"type": "on_chain_end", "output": {"content": t}})
    ),
    "a named event ahead of the text": ahead(lambda t: data({"text": t}, "trace")),
    "data that is no JSON": ahead(data),
    "a comment": ahead(lambda t: b": " + t.encode() + b"\n\n"),
    "a key": ahead(lambda t: data({"choices": [], t: 1})),
    "text behind `[DONE]`": events_of(
        lambda t: completion(GOOD) + chunk(content=t) + data("[DONE]")
    ),
    "plain text in events": events_of(
        lambda t: b"".join(map(data, pieces(t))), sse="text"
    ),
    "a pointer into events": events_of(
        lambda t: b"".join(data({"delta": p}) for p in pieces(t)), sse="/delta"
    ),
    "line ends of one `\\r`": events_of(lambda t: completion(t).replace(b"\n", b"\r")),
    "data over several lines": events_of(
        lambda t: completion(t).replace(b'{"id"', b'{\ndata: "id"')
    ),
    "a stream that was cut": events_of(lambda t: completion(t).partition(b'"stop"')[0]),
    "events in UTF-16": events_of(
        lambda t: completion(t).decode().encode("utf-16"), EVENTS + "; charset=utf-16"
    ),
    "compressed events": Shape(
        lambda t: Reply(
            gzip.compress(completion(t)), [("Content-Type", EVENTS), ("Content-Encoding", "gzip")]
        )
    ),
    "the text again, in base64": ahead(lambda t: data({"type": "trace", "again": encoded(t)})),
    "the text again, in base64 under an id": ahead(
        lambda t: data({"choices": [], "id": encoded(t)})
    ),
    "the text again, as a list of bytes": ahead(
        lambda t: data({"choices": [], "x": [*t.encode()]})
    ),
    "a value again, as a number, ahead of the text": events_of(
        lambda t: data({"choices": [], "card": NUMBER}) + completion(paid(t))
    ),
    "a value again, as a number, in the events with the text": events_of(
        lambda t: b"".join(data({"delta": p, "card": NUMBER}) for p in pieces(paid(t))),
        sse="/delta",
    ),
    "a value again, as a number, behind the text": events_of(
        lambda t: completion(paid(t)) + data({"type": "trace", "card": 1.0 * NUMBER})
    ),
    **{f"`{name}`, a stream": vendor_stream(name) for name in VENDORS},
    "lines with a pointer": events_of(
        lambda t: b"".join(json.dumps({"delta": p}).encode() + b"\n" for p in pieces(t)), LINES,
        sse="/delta",
    ),
    "snapshots of the text": events_of(
        lambda t: b"".join(data({"text": t[: at + 7]}) for at in range(0, len(t), 7)),
        sse="/text", snapshots=True,
    ),
    # ways to a guarded path
    "`/ask/` beside `/ask`": json_of(lambda t: {"answer": t}, path="/ask/"),
    "`//ask`": json_of(lambda t: {"answer": t}, path="http://h//ask"),
    "below `/ask/*`": json_of(lambda t: {"answer": t}, path="/ask/more", own="/ask/*"),
    "another method": json_of(lambda t: {"answer": t}, method="PATCH"),
    # WebSockets
    "a WebSocket of which nothing is said": Shape(lambda t: [t, CLOSE]),
    "a WebSocket of text": framed("text"),
    "a WebSocket of JSON": framed("json:/delta"),
    "a WebSocket, each frame an answer": framed("json:/delta", "frame"),
    "a binary frame": Shape(lambda t: [t.encode(), CLOSE], {"websocket": "text"}),
    "a WebSocket, a value again, as a number": Shape(
        lambda t: [
            *(json.dumps({"delta": p}) for p in pieces(paid(t))),
            json.dumps({"card": NUMBER}), RECEIVE, CLOSE,
        ],
        {"websocket": "json:/delta"},
    ),
    "another frame than was said": Shape(
        lambda t: [json.dumps({"note": t}), CLOSE], {"websocket": "json:/delta"}
    ),
    "a reason for closing": Shape(
        lambda t: [{"type": "websocket.close", "code": 1000, "reason": t}], {"websocket": "text"}
    ),
}  # fmt: skip
ERRORS = {"an error that is an answer (500)": 500}


def made(name: str, text: str) -> Reply:
    """Return the response of a shape."""
    reply: Reply = SHAPES[name].reply(text)
    reply.status = ERRORS.get(name, reply.status)
    return reply


def seen(text: str, sent: bytes, whole: bytes) -> str:
    """Return what a reader sees of a text: in bytes that were sent in place of whole ones."""
    shown = unquote(views(sent))
    if text == GOOD:
        last = "".join(filter(str.isalpha, GOOD[-8:]))
        is_cut = last in "".join(filter(str.isalpha, shown))
        is_there = (whole and sent == whole) or GOOD in shown or is_cut
        return "as it is" if is_there else _instead(shown)
    if any(form in shown for form in hidden(text, True) + hidden(paid(text), True)):
        return "LEAKED"
    if whole and whole in sent:
        return "LEAKED"
    marks = ("EMAIL_1", "CARD_1", "[REDACTED]")
    return "redacted" if any(mark in shown for mark in marks) else _instead(shown)


def _instead(shown: str) -> str:
    if "guardrail_unchecked" in shown:
        return "refused"
    if FALLBACK in shown:
        return "replaced"
    return "outage" if OUTAGE in shown else "removed"


def on_http(name: str, text: str, asynchronous: bool) -> str:
    """Return what a reader of a response sees of a text."""
    shape, reply = SHAPES[name], made(name, text)
    found: httpx.Response = Host(asynchronous).get(
        reply, Route(shape.own, **shape.settings), path=shape.path, method=shape.method
    )
    return seen(text, found.content, reply.body)


def on_ws(name: str, text: str) -> str:
    """Return what a reader of a socket sees of a text."""
    shape = SHAPES[name]
    sent = on_socket(Guard(), Route("/ask", **shape.settings), *shape.reply(text))
    said = [one for m in sent for key in ("text", "bytes", "reason") if (one := m.get(key))]
    whole = b"".join(one if isinstance(one, bytes) else one.encode() for one in said)
    if not said and sent[-1]["code"] == 1008:
        return "refused"
    joined = b"".join(
        json.loads(one).get("delta", "").encode() if str(one).startswith('{"delta"') else b""
        for one in said
    )
    return seen(text, whole + joined, b"")


def row(name: str) -> list[str]:
    """Return the cells of a shape: over ASGI, and over WSGI where that differs."""
    cells = []
    for text in TEXTS:
        if SHAPES[name].is_socket:
            cells.append(on_ws(name, text))
            continue
        both = [on_http(name, text, asynchronous) for asynchronous in (True, False)]
        cells.append(both[0] if both[0] == both[1] else f"{both[0]}; WSGI: {both[1]}")
    return cells


ROWS = {cells[0]: cells[1:] for cells in rows(part("Every shape of a response"))}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_treated_as_the_page_says(name: str) -> None:
    """Nothing that was stopped or should be redacted leaves in any of them."""
    cells = row(name)
    assert "LEAKED" not in str(cells)
    assert ROWS[name] == cells


def test_the_page_names_the_shapes() -> None:
    """All of them, and no other."""
    assert list(ROWS) == [*SHAPES]


if __name__ == "__main__":
    for each in SHAPES:
        sys.stdout.write(f"| {' | '.join([each, *row(each)])} |\n")
