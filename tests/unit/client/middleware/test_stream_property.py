"""Nothing stopped or redacted is in the bytes of a stream or of a socket, however they are cut.

500 examples, or as many as `GUARDRAIL_EXAMPLES` says; the CI group `property` tries 10,000.
"""

from __future__ import annotations

import base64
import json
import os
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail_client.middleware import FALLBACK, Route
from tests.unit.client.conftest import PATIENCE_S
from tests.unit.client.middleware.conftest import (
    BAD,
    CARD,
    GOOD,
    LEAK,
    PAID,
    RECEIVE,
    REDACTED,
    VALUE,
    Guard,
    Host,
    Reply,
    on_socket,
)
from tests.unit.client.middleware.test_snapshots import MADE, so_far
from tests.unit.client.middleware.test_vendor_streams import EVENTS, VENDORS, Vendor, route

EXAMPLES = int(os.environ.get("GUARDRAIL_EXAMPLES", "500"))
UMLAUT = "Gäste dürfen zwei Wochen bleiben: „höchstens“ 😀."
TEXTS = {GOOD: GOOD, UMLAUT: UMLAUT, LEAK: REDACTED, BAD: FALLBACK}
NUMBER = int(CARD.replace(" ", ""))
HOSTS = {True: Host(asynchronous=True), False: Host(asynchronous=False)}
SECRETS = {LEAK: VALUE, BAD: "lobster", PAID: CARD}
HIDDEN = "\ue000"
"""Stands for a letter that is written as a JSON escape."""
WINDOW = 9
NAMES = st.sampled_from(sorted(VENDORS))


def views(body: bytes) -> str:
    """Return bytes as text, with escapes read as often as they may be nested."""
    text = body.decode("utf-8", "replace")
    seen = [text]
    for _ in range(3):
        text = text.replace("\\\\", "\\").replace('\\"', '"').replace("\\u0065", "e")
        seen.append(text)
    return "\n".join(seen)


def repeats(vendor: Vendor, text: str) -> list[bytes]:
    """Return events that say a text, or a part of it, in other ways."""
    inner = json.dumps({"say": text})
    found: list[Any] = [
        {"type": "snapshot", "text": text}, {"type": "trace", "data": inner},
        {"note": text[5:30]}, {"error": {"message": text}}, [text], text, {"name": text},
        {text: 1}, {"a": [{text: ""}]}, *in_other_forms(text),
    ]  # fmt: skip
    if vendor.kind == EVENTS:
        framed = [f"data: {json.dumps(event)}\n\n".encode() for event in found]
        return [*framed, f": {text}\n\n".encode(), f"event: {text}\ndata: {{}}\n\n".encode()]
    if vendor.kind == "text/plain":
        return [f"{part}:{json.dumps([text])}\n".encode() for part in ("2", "8", "3", "x")]
    return [json.dumps(event).encode() + b"\n" for event in found]


def in_other_forms(text: str) -> list[Any]:
    """Return events that say a text encoded, or the card's number as one of JSON."""
    plain = text.replace(HIDDEN, "e")
    return [
        {"id": encoded(plain), "choices": []}, {"type": "trace", "id": plain.encode().hex()},
        {"type": "trace", "say": encoded(plain)}, {"type": "trace", "bytes": [*plain.encode()]},
        {"type": "trace", "n": NUMBER}, {"choices": [], "n": [[1.0 * NUMBER]]},
        {"type": "trace", "n": {"of": [4111, 1111, 1111, 1111]}},
    ]  # fmt: skip


def encoded(text: str) -> str:
    """Return a text in base64."""
    return base64.b64encode(text.encode()).decode()


def hidden(text: str, in_order: bool) -> list[str]:
    """Return what no bytes may say of a text: in other forms, too, if the guard saw the text."""
    forms = [encoded(text)[:24], text.encode().hex()[:24], str([*text.encode()])]
    if text == PAID:
        forms += [str(NUMBER), "4111, 1111", "4111,1111"]
    return [SECRETS[text], *(forms if in_order else [])]


def in_pieces(body: bytes, kind: str, cuts: list[int]) -> Reply:
    """Return a stream whose bytes are cut at these places."""
    edges = [0, *sorted({cut % (len(body) + 1) for cut in cuts}), len(body)]
    return Reply(body, [("Content-Type", kind)], chunks=[body[a:b] for a, b in pairwise(edges)])


def sent(name: str, body: bytes, cuts: list[int], asynchronous: bool, **more: Any) -> bytes:
    """Return what a reader is sent of a stream in pieces."""
    reply = in_pieces(body, VENDORS[name].kind, cuts)
    return HOSTS[asynchronous].get(reply, route(name, **PATIENT, **more)).content


def mixed(
    data: st.DataObject, events: list[bytes], others: list[bytes], places: list[int]
) -> tuple[bytes, bool]:
    """Return a stream with other events at these places, and whether it is in order."""
    events = [*events]
    for place in places:
        events.insert(place % (len(events) + 1), data.draw(st.sampled_from(others)))
    in_order = data.draw(st.booleans())
    body = b"".join(events if in_order else data.draw(st.permutations(events)))
    return body.replace(b"\\ue000", b"\\u0065").replace(HIDDEN.encode(), b"e"), in_order


PATIENT: Any = {"timeout": PATIENCE_S}
CUTS = st.lists(st.integers(0, 10_000), max_size=12)


@settings(max_examples=EXAMPLES)
@given(
    name=NAMES,
    text=st.sampled_from([LEAK, BAD, PAID]),
    cuts=CUTS,
    asynchronous=st.booleans(),
    places=st.lists(st.integers(0, 40), max_size=3),
    escaped=st.booleans(),
    data=st.data(),
)
def test_nothing_stopped_or_redacted_is_in_the_bytes(
    name: str,
    text: str,
    cuts: list[int],
    asynchronous: bool,
    places: list[int],
    escaped: bool,
    data: st.DataObject,
) -> None:
    """Whatever the chunk borders, the order of events and the escapes, in every framing."""
    vendor = VENDORS[name]
    written = text.replace("e", HIDDEN) if escaped else text
    events = [vendor.framed(event) for event in vendor.events(written)]
    body, in_order = mixed(data, events, repeats(vendor, written), places)
    found = sent(name, body, cuts, asynchronous)
    shown = views(found) + vendor.shown(found.decode())
    assert not any(form in shown for form in hidden(text, in_order))
    if in_order and text == BAD:
        assert not any(BAD[at : at + WINDOW] in shown for at in range(len(BAD) - WINDOW))


@settings(max_examples=max(1, EXAMPLES // 4))
@given(
    name=NAMES,
    text=st.sampled_from(sorted(TEXTS)),
    cuts=CUTS,
    asynchronous=st.booleans(),
    hold=st.sampled_from([None, "all"]),
)
def test_a_reader_shows_what_the_verdict_says_wherever_the_bytes_are_cut(
    name: str, text: str, cuts: list[int], asynchronous: bool, hold: Any
) -> None:
    """A good text leaves byte for byte; borders inside UTF-8, escapes and tokens change nothing."""
    vendor = VENDORS[name]
    body = vendor.reply(text).body
    shown = vendor.shown(sent(name, body, cuts, asynchronous, hold=hold).decode())
    assert shown == TEXTS[text]


@settings(max_examples=EXAMPLES)
@given(
    name=st.sampled_from(sorted(MADE)),
    text=st.sampled_from([LEAK, BAD, PAID]),
    size=st.integers(1, 50),
    cuts=CUTS,
    asynchronous=st.booleans(),
    places=st.lists(st.integers(0, 40), max_size=3),
    escaped=st.booleans(),
    hold=st.sampled_from([None, "all"]),
    data=st.data(),
)
def test_nothing_stopped_or_redacted_is_in_snapshots(
    name: str,
    text: str,
    size: int,
    cuts: list[int],
    asynchronous: bool,
    places: list[int],
    escaped: bool,
    hold: Any,
    data: st.DataObject,
) -> None:
    """Whatever the borders, the order of snapshots and what stands between them."""
    way = MADE[name]
    written = text.replace("e", HIDDEN) if escaped and way.sse != "text" else text
    events = [way.framed(way.event(one)) for one in so_far(written, size)]
    others = repeats(Vendor(list, way.kind, str), written)
    body, in_order = mixed(data, events, others, places)
    reply = in_pieces(body, way.kind, cuts)
    found = HOSTS[asynchronous].get(reply, way.route(hold=hold, **PATIENT)).content
    is_whole = in_order and way.sse != "text"
    assert not any(form in views(found) for form in hidden(text, is_whole))
    is_one = way.sse != "text" or not places  # among events of text, each other event is another
    if in_order and text == BAD and is_one:
        assert not any(BAD[at : at + WINDOW] in views(found) for at in range(len(BAD) - WINDOW))


@settings(max_examples=max(1, EXAMPLES // 4))
@given(
    name=st.sampled_from(sorted(MADE)),
    text=st.sampled_from([GOOD, UMLAUT]),
    size=st.integers(1, 50),
    cuts=CUTS,
    asynchronous=st.booleans(),
)
def test_good_snapshots_leave_byte_for_byte(
    name: str, text: str, size: int, cuts: list[int], asynchronous: bool
) -> None:
    """But for the comment that says the verdict."""
    way = MADE[name]
    body = way.body(so_far(text, size))
    reply = in_pieces(body, way.kind, cuts)
    found = HOSTS[asynchronous].get(reply, way.route(**PATIENT)).content
    comments = [one for one in found.split(b"\n\n") if one.startswith(b":")]
    assert len(comments) <= 1
    assert found.replace(b"".join(one + b"\n\n" for one in comments), b"") == body


SOCKETS = {
    "text": ("receive", "frame", "=[END]"),
    "json:/delta": ("receive", "frame", "/done", "/type=end"),
}
LAST = json.dumps({"type": "end", "done": True})


def framed(kind: str, piece: str, layout: int | None) -> str:
    """Return a frame with a piece of text, letters written as escapes, lines broken."""
    if kind == "text":
        return piece
    document = json.dumps({"type": "token", "delta": piece, "n": 1}, indent=layout)
    return document.replace("\\ue000", "\\u0065")


def on_the_wire(sent: list[dict[str, Any]]) -> bytes:
    """Return everything a reader of a socket is sent."""
    found = [m.get(key) or "" for m in sent for key in ("text", "bytes", "reason")]
    return b"\n".join(one if isinstance(one, bytes) else one.encode() for one in found)


def shown_by(sent: list[dict[str, Any]], kind: str) -> str:
    """Return what a reader of a socket shows."""
    texts = [m["text"] for m in sent if m.get("text") is not None]
    if kind == "text":
        return "".join(texts)
    found = [json.loads(text) for text in texts]
    return "".join(
        one["delta"] for one in found if isinstance(one, dict) and isinstance(one.get("delta"), str)
    )


@st.composite
def conversations(draw: st.DrawFn, text: str) -> tuple[str, str, list[Any]]:
    """Return what frames hold, where an answer ends, and the frames of one."""
    kind = draw(st.sampled_from(sorted(SOCKETS)))
    end = draw(st.sampled_from(SOCKETS[kind]))
    edges = [0, *sorted(draw(st.sets(st.integers(1, len(text) - 1), max_size=8))), len(text)]
    if end == "frame":
        edges = [0, len(text)]
    layout = draw(st.sampled_from([None, 0, 2]))
    return kind, end, [framed(kind, text[a:b], layout) for a, b in pairwise(edges)]


def repeated(text: str) -> list[Any]:
    """Return frames that say a text in other ways."""
    inner = json.dumps({"say": text})
    found = [
        text.replace(HIDDEN, "e").encode(), text, json.dumps([text]), json.dumps(text),
        json.dumps({"note": text[5:30]}),
        json.dumps({"type": "trace", "data": inner}), json.dumps({"error": {"message": text}}),
        json.dumps({"delta": text, "so_far": text}), json.dumps({"delta": [text]}),
        json.dumps({text: 1}), json.dumps({"type": text}), "{" + text,
        *map(json.dumps, in_other_forms(text)),
        json.dumps({"type": "token", "delta": "", "n": NUMBER}),
    ]  # fmt: skip
    return [one.replace("\\ue000", "\\u0065") if isinstance(one, str) else one for one in found]


@settings(max_examples=EXAMPLES)
@given(
    text=st.sampled_from([LEAK, BAD, PAID]),
    places=st.lists(st.integers(0, 20), max_size=3),
    hold=st.sampled_from([None, "all"]),
    data=st.data(),
)
def test_nothing_stopped_or_redacted_is_in_the_frames(
    text: str, places: list[int], hold: Any, data: st.DataObject
) -> None:
    """Whatever the borders, the order and the escapes, wherever an answer ends."""
    written = text.replace("e", data.draw(st.sampled_from(["e", HIDDEN])))
    kind, end, frames = data.draw(conversations(written))
    if kind == "text":
        frames = [frame.replace(HIDDEN, "e") for frame in frames]
    more = repeated(written) if kind != "text" else repeated(text)[:1]
    first = frames[0]
    for place in places:
        frames.insert(place % (len(frames) + 1), data.draw(st.sampled_from(more)))
    if not (in_order := data.draw(st.booleans())):
        frames = data.draw(st.permutations(frames))
    last = {"text": ["[END]"], "json:/delta": [LAST]}[kind] if end != "receive" else [RECEIVE]
    ask = Route("/ask", websocket=kind, websocket_end=end, hold=hold, **PATIENT)
    sent = on_socket(Guard(), ask, *frames, *last, asked=["{}"])
    shown = views(on_the_wire(sent)) + shown_by(sent, kind)
    is_begun = in_order and frames[0] is first  # what stands ahead may be waited for
    assert not any(form in shown for form in hidden(text, is_begun))
    if in_order and text == BAD:
        assert not any(BAD[at : at + WINDOW] in shown for at in range(len(BAD) - WINDOW))


@settings(max_examples=max(1, EXAMPLES // 4))
@given(
    texts=st.lists(st.sampled_from(sorted({GOOD, UMLAUT, LEAK})), min_size=1, max_size=3),
    hold=st.sampled_from([None, "all"]),
    data=st.data(),
)
def test_a_reader_of_a_socket_shows_what_the_verdicts_say(
    texts: list[str], hold: Any, data: st.DataObject
) -> None:
    """Answer by answer; frames without text are sent byte for byte."""
    kind, end, _ = data.draw(conversations(texts[0]))
    steps: list[Any] = []
    last = {"text": "[END]", "json:/delta": LAST}[kind]
    for text in texts:
        edges = sorted({0, len(text), *(data.draw(CUTS) if end != "frame" else [])})
        edges = [edge for edge in edges if edge <= len(text)]
        steps += [framed(kind, text[a:b], 1) for a, b in pairwise(edges)]
        steps += [RECEIVE] if end == "receive" else [last] if end != "frame" else []
    ask = Route("/ask", websocket=kind, websocket_end=end, hold=hold, **PATIENT)
    sent = on_socket(Guard(), ask, *steps, asked=["{}"] * len(texts))
    ended = last if end not in ("receive", "frame") else ""
    expected = "".join(TEXTS[text] + (ended if kind == "text" else "") for text in texts)
    assert shown_by(sent, kind) == expected
    assert sum(m.get("text") == last for m in sent) == (len(texts) if ended else 0)
