"""Streams of well-known services, after their published schemas, through both middlewares.

The sources stand beside the tables in `guardrail_client/middleware/stream_shapes.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from guardrail_client.middleware import FALLBACK, OUTAGE, Route
from guardrail_client.middleware.stream_shapes import STREAM_SHAPES
from tests.unit.client.middleware.conftest import (
    BAD,
    GOOD,
    LEAK,
    MARKED,
    REDACTED,
    VALUE,
    Host,
    Reply,
)

EVENTS, LINES = "text/event-stream", "application/x-ndjson"


def pieces(text: str) -> list[str]:
    """Return a text in tokens."""
    return [text[at : at + 7] for at in range(0, len(text), 7)]


def responses(text: str) -> list[Any]:
    """OpenAI Responses."""
    base = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-4o",
        "instructions": "You are a helpful assistant of a hotel.",
        "metadata": {},
        "tools": [],
        "tool_choice": "auto",
        "text": {"format": {"type": "text"}},
    }
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant"}
    done = {**item, "status": "completed", "content": [part]}
    return [
        {"type": "response.created", "response": {**base, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0,
         "item": {**item, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **at, "delta": p, "logprobs": [{"token": p}]}
          for p in pieces(text)),
        {"type": "response.output_text.done", **at, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **at, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed",
         "response": {**base, "status": "completed", "output": [done]}},
    ]  # fmt: skip


def anthropic(text: str) -> list[Any]:
    """Anthropic Messages, with a thought before the text."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {},
    }
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0,
         "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "thinking_delta", "thinking": GOOD}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "signature_delta", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": p}}
          for p in pieces(text)),
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
         "usage": {"output_tokens": 15}},
        {"type": "message_stop"},
    ]  # fmt: skip


def google(text: str) -> list[Any]:
    """Google streamGenerateContent with `alt=sse`."""

    def chunk(part: str, **more: Any) -> Any:
        parts = {"parts": [{"text": part}], "role": "model"}
        return {
            "candidates": [{"content": parts, "index": 0, **more}],
            "modelVersion": "gemini",
            "usageMetadata": {"promptTokenCount": 4},
        }

    *most, last = pieces(text)
    return [*map(chunk, most), chunk(last, finishReason="STOP")]


def bedrock(text: str) -> list[Any]:
    """Bedrock ConverseStream: the events as a host hands them on in JSON."""
    return [
        {"messageStart": {"role": "assistant"}},
        *(
            {"contentBlockDelta": {"delta": {"text": p}, "contentBlockIndex": 0}}
            for p in pieces(text)
        ),
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": {"usage": {"inputTokens": 1}, "metrics": {"latencyMs": 1}}},
    ]


def cohere(text: str) -> list[Any]:
    """Cohere chat, version 2."""

    def content(kind: str, part: str) -> Any:
        said = {"message": {"content": {"type": "text", "text": part}}}
        return {"type": kind, "index": 0, "delta": said}

    return [
        {
            "type": "message-start",
            "id": "1",
            "delta": {"message": {"role": "assistant", "content": [], "tool_plan": ""}},
        },
        content("content-start", ""),
        *(content("content-delta", p) for p in pieces(text)),
        {
            "type": "citation-start",
            "index": 0,
            "delta": {
                "message": {"citations": {"start": 0, "end": 9, "text": text, "sources": []}}
            },
        },
        {"type": "citation-end", "index": 0},
        {"type": "content-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {}}},
    ]


def ollama(text: str) -> list[Any]:
    """Ollama's chat."""

    def line(part: str, done: bool, **more: Any) -> Any:
        said = {"role": "assistant", "content": part}
        return {
            "model": "llama3",
            "created_at": "2026-01-01T00:00:00Z",
            "message": said,
            "done": done,
            **more,
        }

    return [*(line(p, False) for p in pieces(text)), line("", True, done_reason="stop")]


def generate(text: str) -> list[Any]:
    """Ollama's generate; the last line has text, too."""
    base = {"model": "llama3", "created_at": "2026-01-01T00:00:00Z"}
    *most, last = pieces(text)
    return [
        *({**base, "response": p, "done": False} for p in most),
        {**base, "response": last, "done": True, "done_reason": "stop", "context": [1, 2]},
    ]


def vercel(text: str) -> list[Any]:
    """Vercel AI SDK 5: the data stream protocol."""
    return [
        {"type": "start", "messageId": "msg-1"}, {"type": "start-step"},
        {"type": "text-start", "id": "t-1"},
        *({"type": "text-delta", "id": "t-1", "delta": p} for p in pieces(text)),
        {"type": "text-end", "id": "t-1"}, {"type": "finish-step"},
        {"type": "finish", "finishReason": "stop"}, "[DONE]",
    ]  # fmt: skip


def parts(text: str) -> list[Any]:
    """Vercel AI SDK 4: a letter, a colon and JSON."""
    return [
        ("f", {"messageId": "msg-1"}), *(("0", p) for p in pieces(text)),
        ("e", {"finishReason": "stop", "usage": {"promptTokens": 1}, "isContinued": False}),
        ("d", {"finishReason": "stop", "usage": {"promptTokens": 1}}),
    ]  # fmt: skip


def langserve(text: str) -> list[Any]:
    """LangServe's stream of a chat model."""
    chunk = {"type": "AIMessageChunk", "id": "run-1", "additional_kwargs": {}, "example": False}
    return [
        ("metadata", {"run_id": "7f5a"}),
        *(("data", {**chunk, "content": p}) for p in pieces(text)),
        ("end", None),
    ]  # fmt: skip


def strings(text: str) -> list[Any]:
    """LangServe's stream of a chain that ends with a parser."""
    return [("metadata", {"run_id": "7f5a"}), *(("data", p) for p in pieces(text)), ("end", None)]


def llamaindex(text: str) -> list[Any]:
    """Events of an agent of LlamaIndex."""
    said, events = "", []
    for p in pieces(text):
        said += p
        value = {"delta": p, "response": said, "current_agent_name": "Agent", "tool_calls": []}
        name = "llama_index.core.agent.workflow.workflow_events.AgentStream"
        events.append({"value": value, "qualified_name": name, "type": "AgentStream"})
    return events


def langgraph(text: str) -> list[Any]:
    """LangGraph's server in the modes `messages` and `values`: each event repeats the answer."""
    asked = {"type": "human", "id": "h-1", "content": "How long may I stay?", "example": False}
    said = {"type": "ai", "id": "run-1", "additional_kwargs": {}, "tool_calls": []}
    so_far = ["".join(pieces(text)[: at + 1]) for at in range(len(pieces(text)))]
    return [
        ("metadata", {"run_id": "7f5a", "attempt": 1}),
        ("values", {"messages": [asked]}),
        ("messages/metadata", {"run-1": {"metadata": {"langgraph_node": "agent"}}}),
        *(("messages/partial", [{**said, "content": one}]) for one in so_far),
        ("messages/complete", [{**said, "content": text}]),
        ("values", {"messages": [asked, {**said, "content": text}]}),
        ("end", None),
    ]


@dataclass(frozen=True)
class Vendor:
    """One service's stream, and how its reader finds the text."""

    events: Callable[[str], list[Any]]
    kind: str
    read: Callable[[Any], str]
    stopped: str = ""
    is_repeated: bool = False
    """Whether each event says all of the text so far."""

    def reply(self, text: str) -> Reply:
        """Return the stream as bytes."""
        body = b"".join(self.framed(event) for event in self.events(text))
        return Reply.of(body, self.kind)

    def framed(self, event: Any) -> bytes:
        """Return one event as bytes."""
        if self.kind == LINES:
            return json.dumps(event).encode() + b"\n"
        if self.kind == "text/plain":
            return f"{event[0]}:{json.dumps(event[1])}\n".encode()
        if isinstance(event, tuple):
            data = "" if event[1] is None else f"data: {json.dumps(event[1])}\n"
            return f"event: {event[0]}\n{data}\n".encode()
        text = event if event == "[DONE]" else json.dumps(event)
        name = f"event: {event['type']}\n" if "type" in event else ""
        return f"{name}data: {text}\n\n".encode()

    def shown(self, body: str) -> str:
        """Return what a reader of the service shows."""
        found = [self.read(event) for event in self.parsed(body)]
        return next(filter(None, found[::-1]), "") if self.is_repeated else "".join(found)

    def parsed(self, body: str) -> Iterator[Any]:
        """Yield the documents of a body."""
        for line in body.split("\n"):
            if self.kind == "text/plain" and line:
                yield (line.partition(":")[0], json.loads(line.partition(":")[2]))
            elif self.kind == LINES and line:
                yield json.loads(line)
            elif line.startswith("data: ") and line != "data: [DONE]":
                yield json.loads(line[6:])


def at(*way: Any) -> Callable[[Any], str]:
    """Return a reader that follows a way and finds nothing where it does not lead on."""

    def read(event: Any) -> str:
        for step in way:
            try:
                event = event[step]
            except (KeyError, IndexError, TypeError):
                return ""
        return event if isinstance(event, str) else ""

    return read


def only(kind: str, read: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a reader of events of one type."""
    return lambda event: read(event) if at("type")(event) == kind else ""


VENDORS = {
    "openai-responses": Vendor(
        responses, EVENTS, only("response.output_text.delta", at("delta")), "incomplete"
    ),
    "anthropic": Vendor(anthropic, EVENTS, at("delta", "text"), "refusal"),
    "google": Vendor(
        google, EVENTS, at("candidates", 0, "content", "parts", 0, "text"), "SAFETY"
    ),
    "bedrock": Vendor(
        bedrock, LINES, at("contentBlockDelta", "delta", "text"), "guardrail_intervened"
    ),
    "cohere": Vendor(cohere, EVENTS, at("delta", "message", "content", "text"), "ERROR"),
    "ollama-chat": Vendor(ollama, LINES, at("message", "content"), "content_filter"),
    "ollama-generate": Vendor(generate, LINES, at("response"), "content_filter"),
    "vercel": Vendor(vercel, EVENTS, at("delta"), "content-filter"),
    "vercel-parts": Vendor(
        parts, "text/plain", lambda e: e[1] if e[0] == "0" else "", "content-filter"
    ),
    "langserve": Vendor(langserve, EVENTS, at("content")),
    "langserve strings": Vendor(strings, EVENTS, lambda e: e if isinstance(e, str) else ""),
    "llamaindex": Vendor(llamaindex, EVENTS, at("value", "delta")),
    "langgraph": Vendor(langgraph, EVENTS, at(0, "content"), is_repeated=True),
}  # fmt: skip


def route(name: str, **settings: Any) -> Route:
    """Return a route for a service."""
    if name == "vercel-parts":
        return Route.vercel("/ask", **settings)
    return Route("/ask", sse=name.partition(" ")[0], **settings)


@pytest.fixture(params=VENDORS)
def name(request: pytest.FixtureRequest) -> str:
    """Return the name of a service."""
    return str(request.param)


def test_every_table_has_a_stream_here() -> None:
    """And says where it was published."""
    assert {name.partition(" ")[0] for name in VENDORS} == set(STREAM_SHAPES)
    assert all(shape.source.startswith("https://") for shape in STREAM_SHAPES.values())


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "found out"])
@pytest.mark.parametrize(
    ("text", "shown"),
    [(GOOD, GOOD), (LEAK, REDACTED), (BAD, FALLBACK), (MARKED, MARKED)],
    ids=["good", "redacted", "stopped", "marked"],
)
def test_the_stream_of_a_service_is_checked(
    text: str, shown: str, declared: bool, name: str, host: Host
) -> None:
    """It stays a stream of that service; a stopped one ends as that service ends one."""
    vendor = VENDORS[name]
    told = declared or name in ("vercel-parts", "langgraph")
    guarded = route(name) if told else Route("/ask")
    reply = host.get(vendor.reply(text), guarded)
    assert reply.status_code == 200
    assert vendor.shown(reply.text) == shown
    assert VALUE not in reply.text
    assert "lobster" not in reply.text
    assert text in "".join(asked["answer"] for asked in host.guard.asked)
    if text == BAD:
        assert f'"{vendor.stopped}"' in reply.text or not vendor.stopped
        assert '"guardrail":{"reason":"blocked"' in reply.text
    else:
        last = list(vendor.parsed(vendor.reply(text).body.decode()))[-1]
        ended = list(vendor.parsed(reply.text))[-1]
        assert type(ended) is type(last)
        if vendor.stopped and name != "openai-responses":
            unsaid = json.loads(json.dumps(last).replace(pieces(text)[-1], ""))
            same = (
                [unsaid[k] == ended[k] for k in ended if k != "context"]
                if isinstance(ended, dict)
                else [last == ended]
            )
            assert all(same)


@pytest.mark.parametrize("service", [name for name, shape in STREAM_SHAPES.items() if shape.end])
def test_readers_of_a_stopped_stream_are_told_that_nothing_follows(
    service: str, host: Host
) -> None:
    """LangGraph's clients would ask for the rest of it at another address."""
    sent = host.get(VENDORS[service].reply(BAD), route(service)).text
    assert sent.endswith("event: end\n\n")


SILENT: dict[str, Any] = {
    "openai-responses": {"type": "response.web_search_call.searching", "item_id": "ws_1",
                         "output_index": 0, "sequence_number": 4},
    "vercel": {"type": "text-end", "id": "0", "citations": [{"title": BAD}]},
}  # fmt: skip


@pytest.mark.parametrize("service", SILENT)
def test_events_that_say_nothing_do_not_end_a_stream(service: str, host: Host) -> None:
    """Tools of the service at work, and citations, which are removed."""
    vendor = VENDORS[service]
    body = vendor.framed(SILENT[service]) + vendor.reply(GOOD).body
    sent = host.get(Reply.of(body, vendor.kind), route(service)).text
    assert vendor.shown(sent) == GOOD
    assert "lobster" not in sent


WITHOUT_COMMENTS = ["google", "ollama-chat", "ollama-generate", "vercel-parts"]


@pytest.mark.parametrize("service", WITHOUT_COMMENTS)
def test_readers_who_know_no_comments_are_sent_none(service: str, host: Host) -> None:
    """Google's client takes each for a chunk and fails; a mark is a field of an empty event."""
    for text in (GOOD, LEAK, BAD, MARKED):
        sent = host.get(VENDORS[service].reply(text), route(service)).text
        assert not any(line.startswith(":") for line in sent.splitlines())
        assert ('"guardrail":{"action":"mark"}' in sent) == (text == MARKED)


def test_repeats_say_what_was_shown(host: Host) -> None:
    """The end of a Responses stream is kept: vendors' clients read the answer from there."""
    reply = host.get(VENDORS["openai-responses"].reply(LEAK), Route.responses("/ask"))
    *_, last = VENDORS["openai-responses"].parsed(reply.text)
    assert last["type"] == "response.completed"
    assert last["response"]["output"][0]["content"][0]["text"] == REDACTED
    assert last["response"]["instructions"] == ""


def test_nothing_leaves_without_a_guard(name: str, host: Host) -> None:
    """Closed says so in the service's own events; open sends the text."""
    host.guard.failing = 503
    vendor = VENDORS[name]
    closed = host.get(vendor.reply(GOOD), route(name))
    assert vendor.shown(closed.text).endswith(OUTAGE)
    assert '"reason":"outage"' in closed.text
    opened = host.get(vendor.reply(GOOD), route(name, on_error="open"))
    assert vendor.shown(opened.text) == GOOD


def test_the_whole_text_may_be_held(name: str, host: Host) -> None:
    """Then nothing has to be taken back."""
    vendor = VENDORS[name]
    for text, shown in ((GOOD, GOOD), (LEAK, REDACTED), (BAD, FALLBACK)):
        assert vendor.shown(host.get(vendor.reply(text), route(name, hold="all")).text) == shown


UNREAD = {
    "another event": {"type": "new.event", "note": BAD},
    "a tool's reply": {"type": "tool-output-available", "toolCallId": "1", "output": BAD},
    "a list": [BAD],
}


@pytest.mark.parametrize("event", UNREAD.values(), ids=UNREAD)
def test_unread_events_stop_the_stream(event: Any, name: str, host: Host) -> None:
    """Ahead of the text and behind it."""
    vendor = VENDORS[name]
    own = ("2", [event]) if vendor.kind == "text/plain" else event
    framed = json.dumps(event).encode() + b"\n" if isinstance(event, list) else vendor.framed(own)
    if isinstance(event, list) and vendor.kind == EVENTS:
        framed = b"data: " + framed + b"\n"
    body = vendor.reply(GOOD).body
    for whole in (framed + body, body + framed):
        reply = host.get(Reply.of(whole, vendor.kind), route(name))
        assert "lobster" not in reply.text
        assert OUTAGE in reply.text


CALLS: dict[str, Any] = {
    "openai-responses": {"type": "response.function_call_arguments.delta", "item_id": "f",
                         "output_index": 1, "delta": json.dumps({"say": "TEXT"})},
    "anthropic": {"type": "content_block_delta", "index": 2,
                  "delta": {"type": "input_json_delta", "partial_json": '{"say": "TEXT"}'}},
    "google": {"candidates": [{"content": {"parts": [
        {"functionCall": {"name": "f", "args": {"say": "TEXT"}}}]}}]},
    "bedrock": {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"say": "TEXT"}'}},
                                      "contentBlockIndex": 2}},
    "cohere": {"type": "tool-call-delta", "index": 2, "delta": {"message": {"tool_calls": {
        "function": {"arguments": '{"say": "TEXT"}'}}}}},
    "ollama-chat": {"message": {"role": "assistant", "content": "", "tool_calls": [
        {"function": {"name": "f", "arguments": {"say": "TEXT"}}}]}, "done": False},
    "vercel": {"type": "tool-input-available", "toolCallId": "c", "toolName": "f",
               "input": {"say": "TEXT"}},
    "vercel-parts": ("9", {"toolCallId": "c", "toolName": "f", "args": {"say": "TEXT"}}),
}  # fmt: skip


@pytest.mark.parametrize("service", CALLS)
def test_arguments_of_tools_are_texts(service: str, host: Host) -> None:
    """Pieces or a value; or they pass, or make the stream one that cannot be checked."""
    vendor = VENDORS[service]
    for text, gone in ((BAD, "lobster"), (LEAK, VALUE)):
        call = json.loads(json.dumps(CALLS[service]).replace("TEXT", text))
        framed = vendor.framed(tuple(call) if isinstance(call, list) else call)
        sent = Reply.of(framed, vendor.kind)
        assert gone not in host.get(sent, route(service)).text
        assert gone in host.get(sent, route(service, tool_calls="unchecked")).text
        assert gone not in host.get(sent, route(service, tool_calls="refuse")).text
    call = json.loads(json.dumps(CALLS[service]).replace("TEXT", GOOD))
    good = host.get(
        Reply.of(vendor.framed(tuple(call) if isinstance(call, list) else call), vendor.kind),
        route(service),
    )
    assert GOOD in good.text
