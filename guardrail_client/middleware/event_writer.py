"""Write events of a stream: other text in an event's place, a fallback, an end of our own. Pure."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Mapping
from typing import Any

from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.documents import (
    at_place,
    keys_of,
    put,
    strict_json,
    string_places,
)
from guardrail_client.middleware.event_reader import TOOL_CALL, event_of, kind_in, put_at
from guardrail_client.middleware.outcome import AnswerOutcome
from guardrail_client.middleware.shapes import OPENAI_CHAT
from guardrail_client.middleware.sse import DONE, comment, compact, data_of, field_of, with_data
from guardrail_client.middleware.stream_documents import (
    WHOLE,
    Lane,
    filled,
    said_when_stopped,
)
from guardrail_client.middleware.stream_shapes import STREAM_SHAPES

OURS = "guardrail"
"""The field, or the name of the event, in which the guard says something itself."""
ASIDE = ("thinking", "thinking_delta", "thought")


def fill(template: bytes, shape: str, lane: Lane, text: str) -> bytes:
    """Return an event like the template that carries this text on this lane, and nothing else."""
    if shape == "text":
        return with_data(template, text)
    if lane[1].startswith(WHOLE):
        return b""  # it is sent in its event
    document = json.loads(data_of(template) or "{}")
    name = field_of(template, "event")
    kind = kind_in(document, name, shape)
    if isinstance(kind, tuple):
        return with_data(template, compact(filled(document, kind[0], name, lane, text)))
    if kind != OPENAI_CHAT.name:
        put_at(document, shape, text)
        return with_data(template, compact(document))
    index, name = lane
    choice: dict[str, Any] = {"index": index, "finish_reason": None}
    choice |= {"text": text} if name == "text" else {"delta": _delta(name, text)}
    document["choices"] = [choice]
    document.pop("usage", None)
    return with_data(template, compact(document))


def _delta(name: str, text: str) -> dict[str, Any]:
    if not name.startswith(TOOL_CALL):
        return {name: text}
    number = int(name.removeprefix(TOOL_CALL))
    return {"tool_calls": [{"index": number, "function": {"arguments": text}}]}


def lane_to_tell(lane: Lane, seen: Collection[Lane]) -> Lane:
    """Return where a fallback goes that belongs to no text: to the last one, or to a chat."""
    return lane if lane in seen else next(reversed([*seen]), (0, "content"))


def to_tell(template: bytes, shape: str, lane: Lane) -> tuple[bytes, Lane]:
    """Return where a fallback is shown: with the answer, not in a thought or a tool's arguments."""
    if shape == "text":
        return template, lane
    kind = kind_in(json.loads(data_of(template) or "{}"), field_of(template, "event"), shape)
    field = lane[1].removeprefix(WHOLE).partition("#")[0]
    if kind == OPENAI_CHAT.name:
        said = field if field in ("content", "text", "refusal") else "content"
        return template, (lane[0], said)
    if not isinstance(kind, tuple):
        return template, lane
    calls = [pattern for one in kind[0].kinds for pattern in one.tool_calls]
    if field in calls or field.endswith(ASIDE) or lane[1].endswith(ASIDE):
        return event_of(kind[0], kind[0].blank)[:-2], (lane[0], "")
    return template, lane


def told(said: Mapping[str, Any]) -> bytes:
    """Return an event of our own, for readers of events without a shape."""
    return with_data(b"event: guardrail", compact({OURS: said}))


def verdict(shape: str, outcome: AnswerOutcome) -> bytes:
    """Return what tells a reader the verdict: a comment if its readers skip comments, a mark."""
    skipped = shape not in STREAM_SHAPES or STREAM_SHAPES[shape].marked is None
    said = " ".join(f"{name.lower()}={text}" for name, text in outcome.headers())
    is_marked = outcome.result is not None and outcome.result.action == "mark"
    last = marked(shape, outcome.told()) if is_marked else b""
    return (comment(said) if skipped else b"") + last


def marked(shape: str, said: Mapping[str, Any]) -> bytes:
    """Return an event that says that an answer is marked, where no reader stumbles over it."""
    document = copy.deepcopy(STREAM_SHAPES[shape].marked) if shape in STREAM_SHAPES else None
    if document is not None:
        _last_object(document)[OURS] = said
        return event_of(STREAM_SHAPES[shape], document)
    return told(said) if shape == "text" or shape.startswith("/") else b""


def ending(template: bytes, shape: str, lane: Lane, text: str, said: Mapping[str, Any]) -> bytes:
    """Return a fallback and what follows it; arguments as for `stopped`."""
    end = stopped(template, shape, lane, said)
    template, lane = to_tell(template, shape, lane)
    return fill(template, shape, lane, text) + end


def stopped(template: bytes, shape: str, lane: Lane, said: Mapping[str, Any]) -> bytes:
    """Return the events that say that a filter has ended the answer.

    Args:
        template: Of the lane.
        shape: Of the stream.
        lane: Which text was stopped.
        said: What a program should know about it; stands in the last of the events.
    """
    if shape == "text":
        return told(said)
    document = json.loads(data_of(template) or "{}")
    kind = kind_in(document, field_of(template, "event"), shape)
    if isinstance(kind, tuple):
        documents = said_when_stopped(document, kind[0])
        if not documents:
            return told(said) + (f"event: {kind[0].end}\n\n".encode() if kind[0].end else b"")
        _last_object(documents[-1])[OURS] = said
        return b"".join(event_of(kind[0], one) for one in documents)
    if kind != OPENAI_CHAT.name:
        return told(said)
    index, name = lane
    body: dict[str, Any] = {"text": ""} if name == "text" else {"delta": {}}
    document["choices"] = [{"index": index, **body, "finish_reason": "content_filter"}]
    document[OURS] = said
    document.pop("usage", None)
    done = with_data(template, DONE)
    return with_data(template, compact(document)) + done


def _last_object(document: Any) -> Any:
    """Return where a document has room for a field of ours: the value of a part, or itself."""
    value = document["value"] if "part" in document else document
    return value[-1] if isinstance(value, list) else value


def said_otherwise(
    event: bytes, changes: Mapping[str, str], *, is_text: bool = False
) -> bytes | None:
    """Return an event with other strings in place of some.

    None if one stands in no string, or in a key or a name beside, where no other can stand.

    Args:
        event: As it came.
        changes: What to say, by what it says.
        is_text: Whether its data is text, not JSON.
    """
    beside = {field_of(event, name) for name in ("event", "retry")}
    data = data_of(event) or ""
    if is_text:
        known = changes.keys() == {data} and data not in beside
        return with_data(event, changes[data]) if known else None
    try:
        document = strict_json(data.encode())
    except UnreadableBody:
        return None
    left = set(changes)
    for place in list(string_places(document)):
        text = at_place(document, place)
        if text in changes:
            left.discard(text)
            document = put(document, place, changes[text])
    if left or any(text in changes for text in (*beside, *keys_of(document))):
        return None
    return with_data(event, compact(document))
