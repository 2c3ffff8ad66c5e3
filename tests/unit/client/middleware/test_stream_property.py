"""Nothing stopped or redacted is in the bytes of a stream, however they are cut.

2,000 examples, or as many as `GUARDRAIL_EXAMPLES` says.
"""

from __future__ import annotations

import json
import os
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail_client.middleware import FALLBACK
from tests.unit.client.middleware.conftest import BAD, GOOD, LEAK, REDACTED, VALUE, Host, Reply
from tests.unit.client.middleware.test_vendor_streams import EVENTS, VENDORS, Vendor, route

EXAMPLES = int(os.environ.get("GUARDRAIL_EXAMPLES", "2000"))
UMLAUT = "Gäste dürfen zwei Wochen bleiben: „höchstens“ 😀."
TEXTS = {GOOD: GOOD, UMLAUT: UMLAUT, LEAK: REDACTED, BAD: FALLBACK}
HOSTS = {True: Host(asynchronous=True), False: Host(asynchronous=False)}
SECRETS = {LEAK: VALUE, BAD: "lobster"}
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
    ]  # fmt: skip
    if vendor.kind == EVENTS:
        framed = [f"data: {json.dumps(event)}\n\n".encode() for event in found]
        return [*framed, f": {text}\n\n".encode(), f"event: {text}\ndata: {{}}\n\n".encode()]
    if vendor.kind == "text/plain":
        return [f"{part}:{json.dumps([text])}\n".encode() for part in ("2", "8", "3", "x")]
    return [json.dumps(event).encode() + b"\n" for event in found]


def sent(name: str, body: bytes, cuts: list[int], asynchronous: bool, **more: Any) -> bytes:
    """Return what a reader is sent of a stream in pieces."""
    edges = [0, *sorted({cut % (len(body) + 1) for cut in cuts}), len(body)]
    chunks = [body[a:b] for a, b in pairwise(edges)]
    reply = Reply(body, [("Content-Type", VENDORS[name].kind)], chunks=chunks)
    return HOSTS[asynchronous].get(reply, route(name, **more)).content


CUTS = st.lists(st.integers(0, 10_000), max_size=12)


@settings(max_examples=EXAMPLES)
@given(
    name=NAMES,
    text=st.sampled_from([LEAK, BAD]),
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
    for place in places:
        event = data.draw(st.sampled_from(repeats(vendor, written)))
        events.insert(place % (len(events) + 1), event)
    if in_order := data.draw(st.booleans()):
        body = b"".join(events)
    else:
        body = b"".join(data.draw(st.permutations(events)))
    body = body.replace(b"\\ue000", b"\\u0065").replace(HIDDEN.encode(), b"e")
    found = sent(name, body, cuts, asynchronous)
    shown = views(found) + vendor.shown(found.decode())
    assert SECRETS[text] not in shown
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
