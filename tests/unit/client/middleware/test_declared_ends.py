"""What comes behind the declared end of a stream is checked with all that came before it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from guardrail_client.middleware import OUTAGE, Route
from tests.unit.client.middleware.conftest import (
    BAD,
    GOOD,
    LEAK,
    VALUE,
    Guard,
    Host,
    Reply,
    on_socket,
)
from tests.unit.client.middleware.test_event_streams import completion, data, read, stream
from tests.unit.client.middleware.test_vendor_streams import EVENTS, LINES, VENDORS, pieces, route

AFTER = " Towels cost five euros."


@dataclass(frozen=True)
class Stream:
    """One way to stream a text, with an end that the reader believes."""

    made: Callable[[str], bytes]
    kind: str
    route: Callable[..., Route]
    shown: Callable[[str], str]


def said(body: str) -> str:
    """Return what a reader of plain events shows, behind the end, too."""
    events = [e for e in body.split("\n\n") if e.startswith("data: ") and e != "data: [DONE]"]
    return "".join(event.removeprefix("data: ") for event in events)


def delta(body: str) -> str:
    """Return what a reader of a key shows."""
    lines = [line.removeprefix("data: ") for line in body.split("\n")]
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return "".join(one.get("delta", "") for one in found)


def declared(**settings: Any) -> Callable[..., Route]:
    """Return what makes a route with these settings and more."""
    return lambda **more: Route("/ask", **settings, **more)


def of_vendor(name: str) -> Stream:
    """Return a service's stream."""
    vendor = VENDORS[name]
    made = lambda text: vendor.reply(text).body  # noqa: E731 - a field is a value
    return Stream(made, vendor.kind, lambda **more: route(name, **more), vendor.shown)


STREAMS = {
    "text": Stream(
        lambda text: b"".join(map(data, [*pieces(text), "[DONE]"])),
        EVENTS, declared(sse="text"), said,
    ),
    "a pointer": Stream(
        lambda text: b"".join(map(data, [*({"delta": p} for p in pieces(text)), "[DONE]"])),
        EVENTS, declared(sse="/delta"), delta,
    ),
    "lines with a pointer": Stream(
        lambda text: b"".join(
            json.dumps(one).encode() + b"\n" for one in [*({"delta": p} for p in pieces(text))]
        ) + b"[DONE]\n",
        LINES, declared(sse="/delta"), delta,
    ),
    "openai": Stream(completion, EVENTS, declared(sse="openai"), read),
    "openai, told by its events": Stream(completion, EVENTS, declared(), read),
    **{name: of_vendor(name) for name in VENDORS},
}  # fmt: skip


@pytest.mark.parametrize("hold", [None, "all"])
@pytest.mark.parametrize("on_error", ["closed", "open"])
@pytest.mark.parametrize("name", STREAMS)
def test_text_behind_a_declared_end_is_checked(
    name: str, on_error: Any, hold: Any, host: Host
) -> None:
    """Whatever a reader makes of it, and whatever `on_error` says: the guard can be asked."""
    way = STREAMS[name]
    for text, gone in ((BAD, "lobster"), (LEAK, VALUE)):
        body = way.made(GOOD) + way.made(text)
        sent = host.get(Reply.of(body, way.kind), way.route(on_error=on_error, hold=hold)).text
        assert gone not in sent + way.shown(sent)
        if host.asynchronous and name not in ("llamaindex", "langgraph"):  # others judge all as one
            assert way.shown(sent).startswith(GOOD)


@pytest.mark.parametrize("hold", [None, "all"])
@pytest.mark.parametrize("name", STREAMS)
def test_good_text_behind_a_declared_end_is_shown_once(name: str, hold: Any, host: Host) -> None:
    """A service may end its text with each step, or say that it has ended in every event."""
    way = STREAMS[name]
    thrice = way.made(GOOD) + way.made(AFTER) * 2
    sent = host.get(Reply.of(thrice, way.kind), way.route(hold=hold)).text
    shown = AFTER if name == "langgraph" else GOOD + AFTER * 2  # there, one replaces the other
    whole = [one["answer"] for one in host.guard.asked if shown in one["answer"]]
    if host.asynchronous or OUTAGE not in sent:  # texts that take turns stop a response of WSGI
        assert way.shown(sent) == shown
        assert whole


def test_halves_of_a_value_are_no_way_around_the_guard(host: Host) -> None:
    """What has been shown cannot be taken back: the rest of it is not sent."""
    for on_error, hold in (("closed", None), ("open", None), ("open", "all")):
        body = b"".join(map(data, [LEAK[:16], "[DONE]", LEAK[16:], "[DONE]"]))
        ask = Route("/ask", sse="text", on_error=on_error, hold=hold)  # type: ignore[arg-type]
        assert VALUE[8:] not in said(host.get(stream(body), ask).text)


def test_an_end_that_was_none_waits_for_the_text(host: Host) -> None:
    """Readers leave at the second, which comes behind all that may be shown."""
    body = b"".join(map(data, [GOOD, "[DONE]", AFTER, "[DONE]", AFTER, "[DONE]"]))
    sent = host.get(stream(body), Route("/ask", sse="text")).text
    assert sent.endswith("data: [DONE]\n\n")
    assert sent.index("Towels") < sent.rindex("data: [DONE]\n\ndata: [DONE]")


def test_text_behind_an_end_is_sent_if_nobody_can_be_asked(host: Host) -> None:
    """Open, as the text before it; closed, an outage stands in for both."""
    host.guard.failing = 503
    body = b"".join(map(data, [GOOD, "[DONE]", AFTER, "[DONE]"]))
    assert said(host.get(stream(body), Route("/ask", sse="text", on_error="open")).text) == (
        GOOD + AFTER
    )
    assert said(host.get(stream(body), Route("/ask", sse="text")).text).startswith(OUTAGE)


SOCKETS = [("=[END]", "[END]"), ("/done", json.dumps({"done": True})), ("receive", "[DONE]")]


@pytest.mark.parametrize("on_error", ["closed", "open"])
@pytest.mark.parametrize(("end", "frame"), SOCKETS)
def test_frames_behind_a_declared_end_are_checked(end: str, frame: str, on_error: Any) -> None:
    """They are the next answer, or the rest of one that went on."""
    kind = "text" if end.startswith("=") else "json:/delta"
    framed = [text if kind == "text" else json.dumps({"delta": text}) for text in (GOOD, BAD, LEAK)]
    for late, gone in ((framed[1], "lobster"), (framed[2], VALUE)):
        ask = Route("/ask", websocket=kind, websocket_end=end, on_error=on_error)
        sent = str(on_socket(Guard(), ask, framed[0], frame, late, frame))
        assert gone not in sent
        assert GOOD in sent
