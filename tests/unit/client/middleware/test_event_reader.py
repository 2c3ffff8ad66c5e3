"""Texts of events are found by lane, and other text is written in their place."""

from __future__ import annotations

import json

import pytest

from guardrail_client.middleware.event_reader import blank, find
from guardrail_client.middleware.event_writer import fill, stopped
from guardrail_client.middleware.sse import Events
from guardrail_client.middleware.stream_documents import Lane


def event(document: object) -> bytes:
    """Return an event with JSON data."""
    return f"id: 7\ndata: {json.dumps(document)}".encode()


def chunk(**choice: object) -> bytes:
    """Return a chunk of a chat completion with one choice."""
    return event({"id": "c", "choices": [{"index": 0, "finish_reason": None, **choice}]})


def test_the_texts_of_a_chunk_are_found_by_choice_and_field() -> None:
    """The reasoning before an answer is a text of its own."""
    found = find(chunk(delta={"content": "hi", "reasoning_content": "hm"}), "openai")
    assert found.texts == {(0, "content"): "hi", (0, "reasoning_content"): "hm"}
    assert found.rest is None


@pytest.mark.parametrize(
    ("choice", "ends"),
    [
        ({"delta": {"role": "assistant", "content": ""}}, set()),
        ({"delta": {}, "finish_reason": "stop"}, {0}),
        ({"delta": {"tool_calls": [{"index": 0}]}}, set()),
    ],
)
def test_what_a_chunk_says_besides_text_is_kept(choice: dict[str, object], ends: set[int]) -> None:
    """Roles, tool calls and finish reasons; the text in it is empty then."""
    found = find(chunk(**choice), "openai")
    assert found.rest is not None
    assert found.ends == ends
    assert not any(found.texts.values())


def test_text_and_finish_reason_in_one_chunk_part() -> None:
    """The text is checked, the reason follows it."""
    found = find(chunk(delta={"content": "end."}, finish_reason="stop"), "openai")
    assert found.texts == {(0, "content"): "end."}
    assert found.rest is not None
    assert b"end." not in found.rest
    assert found.ends == {0}


@pytest.mark.parametrize("data", [b"data: hello", event(["x"]), event({"answer": "x"})])
def test_strings_of_an_event_of_another_shape_are_named(data: bytes) -> None:
    """Nobody knows yet what a reader is shown."""
    found = find(data, "openai")
    assert (found.texts, found.others) == ({}, ("hello",) if data == b"data: hello" else ("x",))


def test_the_last_event_and_comments_pass() -> None:
    """`[DONE]` says that nothing follows."""
    assert find(b"data: [DONE]", "openai").is_last
    comment = find(b": ping", "openai")
    assert (comment.texts, comment.rest, comment.is_last) == ({}, b":\n\n", False)


@pytest.mark.parametrize(
    ("shape", "template", "lane"),
    [
        ("openai", chunk(delta={"content": "old"}), (0, "content")),
        ("openai", chunk(text="old"), (0, "text")),
        ("text", b"event: token\ndata: old", (0, "text")),
        ("/a/b", event({"a": {"b": "old"}}), (0, "/a/b")),
        ("/a/b", blank("/a/b"), (0, "/a/b")),
        ("openai", blank("openai"), (0, "content")),
    ],
)
def test_what_is_filled_in_is_found_again(shape: str, template: bytes, lane: Lane) -> None:
    """Two lines, quotes and emoji included; an event's id is not repeated."""
    text = 'new "line"\n😀'
    filled = fill(template, shape, lane, text)
    assert filled.endswith(b"\n\n")
    assert b"id: 7" not in filled
    (again,) = Events().feed(filled)
    assert find(again, shape).texts == {lane: text}


def test_a_stopped_completion_says_so() -> None:
    """As OpenAI's own filter does."""
    said = {"reason": "blocked", "action": "block", "retract_from": 0}
    done = stopped(chunk(delta={"content": "x"}), "openai", (0, "content"), said)
    assert b'"finish_reason":"content_filter"' in done
    assert b'"guardrail":{"reason":"blocked"' in done
    assert done.endswith(b"data: [DONE]\n\n")
    told = stopped(b"data: x", "text", (0, "text"), said)
    assert told.startswith(b"event: guardrail\ndata: ")
