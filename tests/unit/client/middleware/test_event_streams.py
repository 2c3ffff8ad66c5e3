"""Events of a guarded stream: texts are checked, everything else waits for them or is not sent."""

from __future__ import annotations

import gzip
import json
import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrail_client.middleware import FALLBACK, OUTAGE, Route
from guardrail_client.middleware.repeats import Repeats
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


def data(document: Any, name: str = "") -> bytes:
    """Return an event."""
    text = document if isinstance(document, str) else json.dumps(document)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode()


def chunk(reason: str | None = None, index: int = 0, **delta: Any) -> bytes:
    """Return a chunk of a chat completion."""
    choice = {"index": index, "delta": delta, "finish_reason": reason}
    return data({"id": "c-1", "object": "chat.completion.chunk", "choices": [choice]})


def completion(text: str, *more: bytes, field: str = "content") -> bytes:
    """Return a streamed chat completion with other events before its end."""
    pieces = [chunk(**{field: text[at : at + 7]}) for at in range(0, len(text), 7)]
    head = chunk(role="assistant", content="")
    return b"".join([head, *pieces, *more, chunk("stop"), data("[DONE]")])


def stream(body: bytes) -> Reply:
    """Return a reply with events."""
    return Reply.of(body, "text/event-stream")


def read(body: str) -> str:
    """Return the text that a reader of chat completions shows."""
    shown = ""
    for line in body.split("\n"):
        if line.startswith("data: {"):
            for choice in json.loads(line[6:]).get("choices", []):
                shown += choice.get("delta", {}).get("content") or ""
    return shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [(GOOD, GOOD), (LEAK, REDACTED), (BAD, FALLBACK)],
    ids=["good", "leak", "bad"],
)
def test_a_streamed_text_is_checked(text: str, shown: str, host: Host) -> None:
    """The end says whether a filter ended it."""
    reply = host.get(stream(completion(text)))
    assert read(reply.text) == shown
    assert ("content_filter" in reply.text) == (text == BAD)
    assert reply.text.endswith("data: [DONE]\n\n")


AHEAD = {
    "content as a list": chunk(content=[{"type": "text", "text": BAD}]),
    "message instead of delta": data(
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": BAD}}]}
    ),
    "an event of another type": data({"type": "on_chain_end", "output": {"content": BAD}}),
    "a named event": data({"text": BAD}, "trace"),
    "text behind a name": data({"choices": []}, BAD),
    "no JSON": data(BAD),
    "a list": data([BAD]),
    "a key": data({"choices": [], BAD: 1}),
    "a key further in": data({"type": "trace", "of": [{BAD: {}}]}),
    "a key beside text": data({"choices": [{"index": 0, "delta": {"content": GOOD}, BAD: 1}]}),
    "an error with more": data({"error": {"message": "m"}, "text": BAD}),
    "log probabilities": data(
        {"choices": [{"index": 0, "delta": {}, "logprobs": {"content": [{"token": BAD}]}}]}
    ),
    "a comment": b": " + BAD.encode() + b"\n\n",
    "an unknown field": b"note: " + BAD.encode() + b'\ndata: {"choices": []}\n\n',
    "a field of the chunk": data({"choices": [], "note": BAD}),
    "reasoning": chunk(reasoning_content=BAD),
    "refusal": chunk(refusal=BAD),
    "a tool call": chunk(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": BAD}}]),
}


@pytest.mark.parametrize("event", AHEAD.values(), ids=AHEAD)
@pytest.mark.parametrize("text", [BAD, GOOD], ids=["of a bad text", "of a good text"])
def test_no_event_says_ahead_what_is_held(event: bytes, text: str, host: Host) -> None:
    """Wherever it stands, before the text, in the midst of it or behind."""
    whole = completion(text)
    for at in (0, whole.index(b"data", 30), len(whole) - len(data("[DONE]"))):
        reply = host.get(stream(whole[:at] + event + whole[at:]))
        assert "lobster" not in reply.text


@pytest.mark.parametrize("name", ["an event of another type", "no JSON", "a named event"])
def test_unknown_events_follow_on_error(
    name: str, host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    """Open sends them with a line in the log; closed ends the stream and says why in the log."""
    body = completion(GOOD, AHEAD[name])
    with caplog.at_level(logging.WARNING, logger="guardrail_client.middleware"):
        closed = host.get(stream(body))
        opened = host.get(stream(body), Route("/ask", on_error="open"))
    assert closed.text.count(OUTAGE) == 1
    assert "lobster" in opened.text
    assert opened.text.endswith("data: [DONE]\n\n")
    assert caplog.text.count("unknown_event") == 2


@pytest.mark.parametrize("text", [GOOD, LEAK, BAD], ids=["good", "leak", "bad"])
def test_events_that_repeat_the_text_wait_for_it(text: str, host: Host) -> None:
    """They say what was shown, redacted where the text was."""
    repeated = data({"type": "text_done", "text": text}, "snapshot")
    reply = host.get(stream(completion(text, repeated)))
    assert "lobster" not in reply.text
    assert VALUE not in reply.text
    assert ("snapshot" in reply.text) == (text != BAD)
    assert ("[EMAIL_1]" in reply.text.partition("snapshot")[2]) == (text == LEAK)
    if text == GOOD:
        assert reply.text.index("snapshot") > reply.text.index("weeks")


LONG = {
    "good": ("One is good. Two is good. Three is good.",) * 2,
    "leak": (f"One is good. {LEAK} Three is good.", f"One is good. {REDACTED} Three is good."),
    "bad": (f"One is good. {BAD} Three is good.", FALLBACK),
}


@pytest.mark.parametrize("hold", [None, "all"])
@pytest.mark.parametrize("size", [5, 11, 200])
@pytest.mark.parametrize("name", LONG)
def test_running_snapshots_say_what_was_shown_so_far(
    name: str, size: int, hold: Any, host: Host
) -> None:
    """A stream that repeats all of its text after each piece goes on: each repeat is rewritten."""
    text, shown = LONG[name]
    events, so_far = [], ""
    for at in range(0, len(text), size):
        so_far += text[at : at + size]
        events += [chunk(content=text[at : at + size]), data({"type": "so_far", "text": so_far})]
    body = b"".join([*events, chunk("stop"), data("[DONE]")])
    reply = host.get(stream(body), Route("/ask", hold=hold))
    assert read(reply.text) == shown
    lines = [json.loads(line[6:]) for line in reply.text.split("\n") if line[:7] == "data: {"]
    said = [line["text"] for line in lines if line.get("type") == "so_far"]
    assert all(shown.startswith(one) for one in said)
    assert "lobster" not in reply.text
    assert VALUE[:9] not in reply.text
    if name != "bad":
        assert said[-1] == shown
        assert [len(one) for one in said] == sorted(len(one) for one in said)
    if name == "good":
        assert said == [text[: at + size] for at in range(0, len(text), size)]


def test_snapshots_need_not_wait_for_the_end() -> None:
    """What has been shown may be repeated at once."""
    repeats = Repeats()
    lane = (0, "text")
    repeats.wrote(lane, f"One. {LEAK} Two.")
    assert not repeats.can_say(["One."])
    repeats.showed(lane, "One. ", 5)
    repeats.showed(lane, f"{REDACTED} ", 6 + len(LEAK))
    event = data({"say": "One. Write"})
    assert repeats.is_pending
    assert repeats.can_say(["One.", "One. Write"])
    assert not repeats.can_say([f"One. {LEAK} Two."])
    assert repeats.passed(event, ["One. Write"]) == event  # what has been shown may be said
    half = f"One. Write to {VALUE[:4]}"
    assert repeats.passed(data({"say": half}), [half]) == data('{"say":"One. Write to "}')
    assert repeats.passed(data({"say": VALUE}), [VALUE]) == b""
    repeats.showed(lane, "Two.", len(repeats.written[lane]))
    whole = repeats.written[lane]
    assert repeats.passed(data({"say": whole}), [whole]) == data(
        json.dumps({"say": repeats.shown[lane]}, separators=(",", ":"))
    )


def test_a_route_may_let_named_events_pass(host: Host) -> None:
    """Such as one with the passages."""
    body = completion(GOOD, data({"sources": ["lobster"]}, "sources"))
    reply = host.get(stream(body), Route("/ask", unchecked_events=["sources"]))
    assert "lobster" in reply.text


def test_tool_calls_may_pass_or_be_refused(host: Host) -> None:
    """Unchecked they leave as they are."""
    body = completion("", AHEAD["a tool call"])
    passing = host.get(stream(body), Route("/ask", tool_calls="unchecked"))
    assert "lobster" in passing.text
    assert "lobster" not in host.get(stream(body), Route("/ask", tool_calls="refuse")).text


def test_arguments_of_a_good_tool_call_arrive_whole(host: Host) -> None:
    """With the name of the tool before them."""
    parts = ['{"stay": "two', ' weeks"}']
    calls = [{"index": 0, "id": "t", "function": {"name": "book", "arguments": ""}}]
    rest = [[{"index": 0, "function": {"arguments": part}}] for part in parts]
    body = b"".join(chunk(tool_calls=call) for call in (calls, *rest))
    reply = host.get(stream(body + chunk("tool_calls") + data("[DONE]")))
    found = [json.loads(line[6:]) for line in reply.text.split("\n") if line.startswith("data: {")]
    deltas = [c["delta"] for d in found for c in d["choices"] if c.get("delta")]
    functions = [call["function"] for delta in deltas for call in delta.get("tool_calls", [])]
    assert functions[0]["name"] == "book"
    assert "".join(f.get("arguments", "") for f in functions) == "".join(parts)


@pytest.mark.parametrize("text", [GOOD, BAD], ids=["good", "bad"])
def test_events_with_a_pointer_hold_nothing_else(text: str, host: Host) -> None:
    """Another field of the event that says the same is treated like another event."""
    route = Route("/ask", sse="/delta")
    body = data({"delta": text}) + data({"done": True, "id": "7"})
    reply = host.get(stream(body), route)
    assert ("lobster" in reply.text, GOOD in reply.text) == (False, text == GOOD)
    twice = data({"delta": text, "so_far": text}) + data({"final": text})
    reply = host.get(stream(twice), route)
    assert ("lobster" in reply.text, GOOD in reply.text) == (False, text == GOOD)


def test_an_error_in_a_stream_says_no_sentence(host: Host) -> None:
    """Its codes arrive."""
    failed = data({"error": {"message": BAD, "code": "server_error"}})
    reply = host.get(stream(completion(GOOD, failed)))
    assert "lobster" not in reply.text
    assert '"code":"server_error"' in reply.text
    passing = host.get(stream(completion(GOOD, failed)), Route("/ask", errors="unchecked"))
    assert "lobster" in passing.text


@pytest.mark.parametrize("key", ["note", "id", "model"])
def test_a_chunk_with_text_says_nothing_else(key: str, host: Host) -> None:
    """Neither itself nor as the pattern of what is sent instead."""
    event = {"choices": [{"index": 0, "delta": {"content": GOOD}}], key: BAD}
    reply = host.get(stream(data(event, BAD)))
    assert "lobster" not in reply.text


OPEN = {
    "compressed": Reply(
        gzip.compress(data("lobster"), mtime=0),
        [("Content-Type", "text/event-stream"), ("Content-Encoding", "gzip")],
    ),
    "too large": Reply.of(
        completion(GOOD)[:-14] + data("lobster " + "x" * 1_100_000) + b"data: [DONE]\n\n",
        "text/event-stream",
    ),
    "a line too long": Reply.of(b'{"x": "lobster' + b"x" * 1_100_000, "application/x-ndjson"),
    "half a character": stream(data('{"choices": [], "x": "lobster \\ud83d"}')),
}  # fmt: skip


@pytest.mark.parametrize("reply", OPEN.values(), ids=OPEN)
def test_a_stream_that_cannot_be_read_follows_on_error(reply: Reply, host: Host) -> None:
    """Open passes the bytes on, behind what could be read."""
    assert "lobster" not in host.get(reply).content.decode("latin-1")
    opened = host.get(reply, Route("/ask", on_error="open"))
    assert b"lobster" in opened.content
    if reply is OPEN["too large"]:
        assert opened.content.endswith(b"x\n\ndata: [DONE]\n\n")
        assert read(opened.text.partition("data: lobster")[0]) == GOOD


def test_a_finding_about_the_whole_takes_back_what_was_shown(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program is told from where on; nothing is, if all of it was held."""
    monkeypatch.setattr("tests.unit.client.middleware.conftest.SEEN_BEFORE_THE_END", True)
    reply = host.get(stream(completion(BAD)))
    assert '"guardrail":{"reason":"blocked","action":"block","retract_from":0}' in reply.text
    held = host.get(stream(completion(BAD)), Route("/ask", hold="all"))
    assert '"retract_from":null' in held.text
    assert read(held.text) == FALLBACK


@pytest.mark.parametrize("sse", ["text", "/delta"])
def test_a_mark_is_an_event_of_its_own(sse: str, host: Host) -> None:
    """Where events have no shape that it could break."""
    body = data(MARKED) if sse == "text" else data({"delta": MARKED})
    reply = host.get(stream(body), Route("/ask", sse=sse))
    assert 'event: guardrail\ndata: {"guardrail":{"action":"mark"}}\n\n' in reply.text


EVENTS = st.sampled_from([*AHEAD.values(), data({"type": "ping"}), chunk(index=1, content=LEAK)])


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(more=st.lists(EVENTS, max_size=3), order=st.randoms(), text=st.sampled_from([BAD, LEAK]))
def test_nothing_stopped_or_redacted_is_in_the_events_sent(
    more: list[bytes], order: Any, text: str
) -> None:
    """Whatever the order of events."""
    pieces = [chunk(content=text[at : at + 9]) for at in range(0, len(text), 9)]
    for event in more:
        pieces.insert(order.randint(0, len(pieces)), event)
    body = b"".join([*pieces, chunk("stop"), data("[DONE]")])
    for asynchronous in (True, False):
        reply = Host(asynchronous).get(stream(body))
        assert VALUE not in reply.text
        assert "lobster" not in reply.text


@pytest.mark.parametrize("where", ["key", "name"])
def test_a_redacted_text_is_not_said_beside_the_string_that_repeats_it(
    where: str, host: Host
) -> None:
    """No other text can stand in a key or in the name of an event: it is dropped."""
    said = {"say": LEAK, LEAK: 1} if where == "key" else {"say": LEAK}
    repeated = data(said, LEAK if where == "name" else "")
    reply = host.get(stream(data({"t": LEAK}) + repeated), Route("/ask", sse="/t"))
    assert REDACTED in reply.text
    assert VALUE not in reply.text
