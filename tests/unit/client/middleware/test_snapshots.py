"""Streams whose events repeat all of the text so far, in the place of what is new."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from guardrail_client.middleware import FALLBACK, OUTAGE, AnswerOutcome, Route
from tests.unit.client.middleware.conftest import (
    BAD,
    GOOD,
    LEAK,
    MARKED,
    REDACTED,
    VALUE,
    Guard,
    Host,
    Reply,
    on_socket,
)
from tests.unit.client.middleware.test_event_streams import data
from tests.unit.client.middleware.test_vendor_streams import EVENTS, LINES, VENDORS, at, pieces

LONG = {
    "good": ("One is good. Two is good. Three is good.",) * 2,
    "leak": (f"One is good. {LEAK} Three is good.", f"One is good. {REDACTED} Three is good."),
    "bad": (f"One is good. {BAD} Three is good.", FALLBACK),
    "marked": (MARKED, MARKED),
}


@dataclass(frozen=True)
class Repeated:
    """One way to say a text again and again.

    Attributes:
        event: Returns the document that says a text.
        read: Returns what a document says.
        sse: Of the route.
        kind: Media type.
        last: What ends the stream.
    """

    event: Callable[[str], Any]
    read: Callable[[Any], str]
    sse: str
    kind: str = EVENTS
    last: tuple[Any, ...] = ()

    def framed(self, document: Any) -> bytes:
        """Return a document as bytes."""
        if self.kind == LINES:
            return json.dumps(document).encode() + b"\n"
        return data(document)

    def body(self, texts: list[str]) -> bytes:
        """Return a stream."""
        events = [*map(self.event, texts), *self.last]
        return b"".join(map(self.framed, events))

    def said(self, body: str) -> list[str]:
        """Return what a reader shows, one after the other."""
        blocks = body.split("\n" if self.kind == LINES else "\n\n")
        lines = [one for one in blocks if one and "event: guardrail" not in one]
        found = [one.removeprefix("data: ") for one in lines if not one.startswith(":")]
        if self.sse == "text":
            return [one for one in found if one != "[DONE]"]
        documents = [json.loads(one) for one in found if one != "[DONE]"]
        return [text for text in map(self.read, documents) if text]

    def route(self, **settings: Any) -> Route:
        """Return a route that says so."""
        return Route("/ask", sse=self.sse, snapshots=True, **settings)


def google(text: str) -> Any:
    """Google's candidates, as some proxies send them."""
    said = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}
    return {"candidates": [said], "modelVersion": "gemini", "usageMetadata": {"tokens": 4}}


def chat(text: str) -> Any:
    """A chunk that repeats."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return {"id": "c-1", "object": "chat.completion.chunk", "choices": [choice]}


MADE = {
    "a pointer": Repeated(lambda t: {"text": t, "id": "7"}, at("text"), "/text", last=("[DONE]",)),
    "a name": Repeated(lambda t: {"name": t}, at("name"), "/name"),
    "lines": Repeated(lambda t: {"text": t}, at("text"), "/text", LINES, ({"done": True},)),
    "text": Repeated(lambda t: t, lambda t: t, "text", last=("[DONE]",)),
    "a list": Repeated(lambda t: [t, None], at(0), "/0"),
    "the last of a list": Repeated(lambda t: {"m": [{"t": t}]}, at("m", 0, "t"), "/m/-1/t"),
    "google": Repeated(google, at("candidates", 0, "content", "parts", 0, "text"), "google"),
    "chat": Repeated(chat, at("choices", 0, "delta", "content"), "openai", last=("[DONE]",)),
    "chat, told by its events": Repeated(chat, at("choices", 0, "delta", "content"), "any"),
}


def parts(text: str) -> Any:
    """Google's candidates, with the text in two parts."""
    said = {"role": "model", "parts": [{"text": text[:20]}, {"text": text[20:]}]}
    return {"candidates": [{"content": said, "index": 0}]}


def of_parts(document: Any) -> str:
    """Return what they say."""
    found = document.get("candidates", [{}])[0].get("content", {}).get("parts", [])
    return "".join(part.get("text", "") for part in found)


MADE["parts"] = Repeated(parts, of_parts, "google")


def so_far(text: str, size: int) -> list[str]:
    """Return the beginnings of a text, the last of them whole."""
    return [text[: at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("hold", [None, "all"])
@pytest.mark.parametrize("size", [5, 200])
@pytest.mark.parametrize("case", LONG)
@pytest.mark.parametrize("name", MADE)
def test_snapshots_say_what_may_be_shown_so_far(
    name: str, case: str, size: int, hold: Any, host: Host
) -> None:
    """A good stream leaves byte for byte; nothing stopped or redacted is in what is sent."""
    way, (text, shown) = MADE[name], LONG[case]
    body = way.body(so_far(text, size))
    seen: list[AnswerOutcome] = []
    ask = way.route(hold=hold, on_outcome=seen.append)
    sent = host.get(Reply.of(body, way.kind), ask)
    said = way.said(sent.text)
    assert said[-1] == shown
    assert all(shown.startswith(one) for one in said)
    assert "lobster" not in sent.text
    assert VALUE[:9] not in sent.text
    comments = b"".join(c + b"\n\n" for c in sent.content.split(b"\n\n") if c.startswith(b":"))
    if case == "good":
        assert sent.content.replace(comments, b"") == body
    assert host.guard.asked[-1]["answer"] == text
    assert [one.reason for one in seen if one.shown == "replaced"] == ["blocked"] * (case == "bad")


@pytest.mark.parametrize("name", MADE)
def test_a_guard_that_is_down_follows_on_error(name: str, host: Host) -> None:
    """Closed shows the text of an outage, open what the application said."""
    host.guard.failing = 503
    way = MADE[name]
    reply = Reply.of(way.body(so_far(GOOD, 7)), way.kind)
    assert way.said(host.get(reply, way.route()).text) == [OUTAGE]
    opened = host.get(reply, way.route(on_error="open"))
    assert way.said(opened.text) == so_far(GOOD, 7)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("on_error", ["closed", "open"])
def test_a_snapshot_that_says_something_else_is_another_text(
    name: str, on_error: Any, host: Host
) -> None:
    """Readers show it in the place of the one before, so it is judged by itself and whole."""
    way = MADE[name]
    for text, shown in ((GOOD, GOOD), (LEAK, REDACTED), (BAD, FALLBACK)):
        texts = ["Let me see ...", "", *so_far(text, 9), text[:20], *so_far(text, 9)]
        sent = host.get(Reply.of(way.body(texts), way.kind), way.route(on_error=on_error)).text
        assert way.said(sent)[-1] == shown
        assert "lobster" not in sent
        assert VALUE not in sent
        assert "Let me see ..." in way.said(sent)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("goes_on", [True, False], ids=["texts", "pieces"])
def test_too_many_changes_cannot_be_checked(goes_on: bool, name: str, host: Host) -> None:
    """Each costs a check of all of it, and pieces would be judged apart."""
    way = MADE[name]
    texts = ["One.", "Two.", "Three.", "Four."]
    if goes_on:
        texts = [f"{number}{more}" for number in range(17) for more in ("", " is good.")]
    reply = Reply.of(way.body([*texts, "A lobster is good."]), way.kind)
    closed = host.get(reply, way.route()).text
    assert "lobster" not in closed
    assert OUTAGE in closed
    assert ("15 is good." if goes_on else "Three.") in closed
    assert "lobster" in host.get(reply, way.route(on_error="open")).text


def test_what_is_taken_back_is_not_in_the_last_snapshot(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers show the last in the place of all others."""
    monkeypatch.setattr("tests.unit.client.middleware.conftest.SEEN_BEFORE_THE_END", True)
    way = MADE["a pointer"]
    sent = host.get(Reply.of(way.body(["The ", BAD]), way.kind), way.route()).text
    assert way.said(sent) == ["The ", FALLBACK]
    assert '"retract_from":0' in sent


def test_other_text_beside_a_snapshot_is_not_sent(host: Host) -> None:
    """Neither a field, nor the name of an event, nor what stands in for personal data elsewhere."""
    way = MADE["a pointer"]
    for event in (
        data({"text": GOOD, "note": BAD}), data({"text": GOOD, BAD: 1}), data({"text": GOOD}, BAD),
        data({"text": GOOD, "logprobs": [{"token": "lobster"}]}),
    ):  # fmt: skip
        assert "lobster" not in host.get(Reply.of(event, way.kind), way.route()).text
    twice = data({"text": LEAK, "title": LEAK})
    assert VALUE not in host.get(Reply.of(twice, way.kind), way.route()).text


def test_choices_are_texts_of_their_own(host: Host) -> None:
    """In one event, or in turns, which only a middleware for ASGI can hold apart."""

    def event(first: str, second: str) -> Any:
        return {"choices": [{"index": i, "text": t} for i, t in enumerate((first, second))]}

    way = Repeated(lambda t: t, lambda d: d["choices"][1].get("text", ""), "openai")
    both = [event("One. ", "Two. "), event("One. Three.", "Two. "), event("One. Three.", BAD)]
    sent = host.get(Reply.of(way.body(both), EVENTS), way.route()).text
    assert "lobster" not in sent
    good = [event("One. ", "Two. "), event("One. Three.", "Two. "), event("One. Three.", GOOD)]
    sent = host.get(Reply.of(way.body(good), EVENTS), way.route()).text
    assert GOOD in sent if host.asynchronous else OUTAGE in sent


def test_shadow_judges_the_last_snapshot_once(host: Host) -> None:
    """And not all of them behind one another."""
    way = MADE["a pointer"]
    body = way.body(so_far(GOOD, 7))
    assert host.get(Reply.of(body, EVENTS), way.route(mode="shadow")).content == body
    assert [one["answer"] for one in host.guard.asked] == [GOOD]


@pytest.mark.parametrize("kind", ["text", "json:/text"])
@pytest.mark.parametrize(("text", "shown"), [(GOOD, GOOD), (LEAK, REDACTED), (BAD, FALLBACK)])
def test_frames_may_be_snapshots(text: str, shown: str, kind: str) -> None:
    """As events may."""
    is_text = kind == "text"
    frames = [one if is_text else json.dumps({"text": one}) for one in so_far(text, 7)]
    ask = Route("/ask", websocket=kind, snapshots=True)
    sent = [m["text"] for m in on_socket(Guard(), ask, *frames) if m.get("text") is not None]
    said = [one if is_text else json.loads(one).get("text", "") for one in sent]
    assert [one for one in said if one][-1] == shown
    assert "lobster" not in str(sent)
    assert VALUE not in str(sent)
    if text == GOOD:
        assert sent == frames


def test_a_graph_is_asked_in_its_input_and_only_its_model_answers(host: Host) -> None:
    """Messages of users and tools are emptied; in the mode of tuples, pieces are pieces."""
    vendor = VENDORS["langgraph"]
    asked = {"input": {"messages": [{"role": "user", "content": "How long?"}]}}
    sent = host.get(vendor.reply(GOOD), Route.langgraph("/ask"), request=asked).text
    assert {one["question"] for one in host.guard.asked} == {"How long?"}
    assert "may I stay" not in sent
    assert f'"content": "{GOOD}"' in sent
    chunk = {"type": "AIMessageChunk", "id": "run-1"}
    tool = {"type": "tool", "id": "t-1", "content": "a lobster", "tool_call_id": "c-1"}
    beside = {"langgraph_node": "agent", "note": "a lobster"}
    for text, shown in ((GOOD, GOOD), (LEAK, REDACTED), (BAD, FALLBACK)):
        events = [("messages", [{**chunk, "content": p}, beside]) for p in pieces(text)]
        body = b"".join(map(vendor.framed, [("messages", [tool, beside]), *events, ("end", None)]))
        sent = host.get(Reply.of(body, EVENTS), Route.langgraph("/ask")).text
        found = [vendor.read(event) for event in vendor.parsed(sent)]
        assert "".join(found) == shown
        assert "lobster" not in sent
