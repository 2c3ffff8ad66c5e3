"""Frames of WebSockets as events of a stream, and where an answer in them ends. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from guardrail_client.middleware import sse
from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.documents import strict_json
from guardrail_client.middleware.exchange import Exchange, compiled
from guardrail_client.middleware.route_checks import FRAME, RECEIVE

BINARY = b"binary: "
"""Begins the event that stands for a binary frame."""


def event_of(frame: str) -> bytes:
    """Return a text frame as an event."""
    lines = (f"data: {line}" for line in frame.split("\n"))
    return "\n".join(lines).encode("utf-8", "replace")


def frames_of(events: bytes) -> Iterator[MutableMapping[str, Any]]:
    """Yield the messages that send events as frames; comments have no place in them."""
    for event in events.split(b"\n\n"):
        if event.startswith(BINARY):
            content = base64.b64decode(event.removeprefix(BINARY))
            yield {"type": "websocket.send", "bytes": content}
        elif (text := sse.data_of(event)) is not None:
            yield {"type": "websocket.send", "text": text}


def ends_answer(end: str) -> Callable[[str], bool]:
    """Return whether a frame ends its answer, as a function.

    Args:
        end: Of the route.
    """
    pointer, equals, value = end.partition("=")
    if end in (RECEIVE, FRAME):
        return lambda frame: False
    if not pointer:
        return lambda frame: frame == value
    look = compiled(f"response:{pointer}", "response")

    def is_end(frame: str) -> bool:
        try:
            found = look(Exchange("", response=strict_json(frame.encode("utf-8", "replace"))))
        except UnreadableBody:
            return False
        return (found == value or json.dumps(found) == value) if equals else bool(found)

    return is_end


class Frames(sse.JsonLines):
    """Hands on events that are frames already."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the event.

        Raises:
            UnreadableBody: If it is too large.
        """
        if len(data) > sse.MAX_EVENT:
            self._rest += data
            raise UnreadableBody("event_too_large")
        if data:
            yield data
