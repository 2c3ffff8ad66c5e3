"""Events: cut from any chunks, texts found by lane, other text put in their place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_client.middleware import sse
from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.sse import Events

STREAM = b"data: a\r\n\r\n: note\n\ndata: b\ndata: c\r\r event: x\n\n\n\ndata: d"


def event(document: object) -> bytes:
    """Return an event with JSON data."""
    return f"id: 7\ndata: {json.dumps(document)}".encode()


def chunk(**choice: object) -> bytes:
    """Return a chunk of a chat completion with one choice."""
    return event({"id": "c", "choices": [{"index": 0, "finish_reason": None, **choice}]})


def cut(data: bytes, size: int) -> list[bytes]:
    """Return the events of a stream that arrives in pieces."""
    events = Events()
    found = [e for at in range(0, len(data), size) for e in events.feed(data[at : at + size])]
    return [*found, *events.end()]


@given(st.integers(1, len(STREAM)))
def test_events_do_not_depend_on_the_pieces(size: int) -> None:
    """Line ends of three kinds, cut anywhere, a last event without its blank line."""
    assert cut(STREAM, size) == cut(STREAM, len(STREAM))
    assert cut(STREAM, size)[:2] == [b"data: a", b": note"]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_an_event_is_out_with_its_blank_line(end: bytes) -> None:
    """Not when the next one comes; nothing of it is kept."""
    events = Events()
    for number in range(3):
        event = b"data: %d" % number
        assert list(events.feed(event + end + end)) == [event]
    assert list(events.end()) == []


def test_a_line_end_cut_in_two_is_one() -> None:
    """The half behind the cut is no second, blank line."""
    events = Events()
    pieces = [b"data: a\r", b"", b"\ndata: b\r", b"\n\r", b"\n", b"\n", b"data: c\n\n"]
    found = [list(events.feed(piece)) for piece in pieces]
    assert found == [[], [], [], [b"data: a\ndata: b"], [], [], [b"data: c"]]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100])
def test_a_byte_order_mark_does_not_hide_the_first_event(size: int) -> None:
    """Readers skip one, so its text is checked; a second one is text of a name nobody knows."""
    stream = b"data: a\n\ndata: b\n\n"
    assert cut(sse.BOM + stream, size) == [b"data: a", b"data: b"]
    assert cut(sse.BOM * 2 + stream, size) == [sse.BOM + b"data: a", b"data: b"]
    assert cut(b"data: a\n\n" + sse.BOM + stream, size)[1] == sse.BOM + b"data: a"


@pytest.mark.parametrize("data", [b"", sse.BOM[:2], sse.BOM[:1] + b"data: a"])
def test_half_a_byte_order_mark_is_kept(data: bytes) -> None:
    """It is none."""
    assert cut(data, 1) == ([data] if data else [])


@pytest.mark.parametrize("end", [b"", b"\r", b"\n", b"\r\n", b"\r\r", b"\n\n"])
def test_an_endless_event_is_refused(end: bytes) -> None:
    """Memory is bounded, however the event ends and whatever pieces it comes in."""
    large = b"data: " + b"x" * sse.MAX_EVENT + end
    for size in (len(large), 1_000, sse.MAX_EVENT):
        with pytest.raises(UnreadableBody):
            cut(large, size)


def test_lines_without_an_end_are_refused_too() -> None:
    """Each piece ends with half a line end."""
    line = b"data: " + b"x" * 1_000 + b"\r"
    with pytest.raises(UnreadableBody):
        cut(line * (sse.MAX_EVENT // 1_000 + 1), len(line))


def test_the_texts_of_a_chunk_are_found_by_choice_and_field() -> None:
    """The reasoning before an answer is a text of its own."""
    found = sse.find(chunk(delta={"content": "hi", "reasoning_content": "hm"}), "openai")
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
    found = sse.find(chunk(**choice), "openai")
    assert found.rest is not None
    assert found.ends == ends
    assert not any(found.texts.values())


def test_text_and_finish_reason_in_one_chunk_part() -> None:
    """The text is checked, the reason follows it."""
    found = sse.find(chunk(delta={"content": "end."}, finish_reason="stop"), "openai")
    assert found.texts == {(0, "content"): "end."}
    assert found.rest is not None
    assert b"end." not in found.rest
    assert found.ends == {0}


@pytest.mark.parametrize("data", [b"data: hello", event(["x"]), event({"answer": "x"})])
def test_strings_of_an_event_of_another_shape_are_named(data: bytes) -> None:
    """Nobody knows yet what a reader is shown."""
    found = sse.find(data, "openai")
    assert (found.texts, found.others) == ({}, ("hello",) if data == b"data: hello" else ("x",))


def test_the_last_event_and_comments_pass() -> None:
    """`[DONE]` says that nothing follows."""
    assert sse.find(b"data: [DONE]", "openai").is_last
    comment = sse.find(b": ping", "openai")
    assert (comment.texts, comment.rest, comment.is_last) == ({}, b":\n\n", False)


@pytest.mark.parametrize(
    ("shape", "template", "lane"),
    [
        ("openai", chunk(delta={"content": "old"}), (0, "content")),
        ("openai", chunk(text="old"), (0, "text")),
        ("text", b"event: token\ndata: old", (0, "text")),
        ("/a/b", event({"a": {"b": "old"}}), (0, "/a/b")),
        ("/a/b", sse.blank("/a/b"), (0, "/a/b")),
        ("openai", sse.blank("openai"), (0, "content")),
    ],
)
def test_what_is_filled_in_is_found_again(shape: str, template: bytes, lane: sse.Lane) -> None:
    """Two lines, quotes and emoji included; an event's id is not repeated."""
    text = 'new "line"\n😀'
    filled = sse.fill(template, shape, lane, text)
    assert filled.endswith(b"\n\n")
    assert b"id: 7" not in filled
    (again,) = cut(filled, 3)
    assert sse.find(again, shape).texts == {lane: text}


def test_a_stopped_completion_says_so() -> None:
    """As OpenAI's own filter does."""
    said = {"reason": "blocked", "action": "block", "retract_from": 0}
    done = sse.stopped(chunk(delta={"content": "x"}), "openai", (0, "content"), said)
    assert b'"finish_reason":"content_filter"' in done
    assert b'"guardrail":{"reason":"blocked"' in done
    assert done.endswith(b"data: [DONE]\n\n")
    told = sse.stopped(b"data: x", "text", (0, "text"), said)
    assert told.startswith(b"event: guardrail\ndata: ")
