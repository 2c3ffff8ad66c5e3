"""Server-sent events: cut bytes into them, read their fields, write them. Pure.

Inside, every event of a stream is one of these; lines of JSON become such and lines again.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from typing import Any

from guardrail_client.middleware.bodies import CHARSET, UnreadableBody, is_marked_otherwise
from guardrail_client.middleware.shapes import Framing

MAX_EVENT = 1024 * 1024
"""Bytes of one event; a chunk of a chat completion has some hundred."""
MAX_BEGINNING = 16 * 1024
"""Code points of a text within which it shows that it is none."""
LINE_ENDS = "\x85\u2028\u2029"
DONE = "[DONE]"
BOM = b"\xef\xbb\xbf"
"""Readers of events skip one at the very beginning."""


class Events:
    """Cuts bytes into events, whatever the chunks and line ends."""

    def __init__(self) -> None:
        self._first: bytes | None = b""  # what may yet become a byte-order mark; None: behind it
        self._rest = bytearray()
        self._returned = False  # the last byte was "\r", a line end whose "\n" may follow

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the events that are complete, without the blank line behind them.

        Raises:
            UnreadableBody: If an event is too large.
        """
        at = max(0, len(self._rest) - 1)  # a blank line may have begun with what is there
        self._rest += self._with_newlines(self._without_mark(data))
        while (end := self._rest.find(b"\n\n", at)) >= 0:
            event = bytes(self._rest[:end]).strip(b"\n")
            if len(event) > MAX_EVENT:
                raise UnreadableBody("event_too_large")
            del self._rest[: end + 2]
            at = 0
            if event:
                yield event
        if len(self._rest) > MAX_EVENT:
            raise UnreadableBody("event_too_large")

    def end(self) -> Iterator[bytes]:
        """Yield what is left at the end of the stream."""
        rest = self.unread().strip(b"\n")
        if rest:
            yield rest

    def unread(self) -> bytes:
        """Return what has not become an event, and forget it."""
        rest = (self._first or b"") + bytes(self._rest)
        self._first = None
        self._rest.clear()
        return rest

    def _without_mark(self, data: bytes) -> bytes:
        """Return bytes without the byte-order mark of the stream, which may come in pieces."""
        if self._first is None:
            return data
        first = self._first + data
        if len(first) < len(BOM) and BOM.startswith(first):
            self._first = first
            return b""
        self._first = None
        return first.removeprefix(BOM)

    def _with_newlines(self, data: bytes) -> bytes:
        """Return bytes with line ends of one kind; a "\r" ends its line without waiting."""
        if not data:
            return data
        if self._returned and data.startswith(b"\n"):
            data = data[1:]
        self._returned = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class JsonLines:
    """Cuts bytes into lines of JSON, each as an event."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield an event for each complete line that is not blank.

        Raises:
            UnreadableBody: If a line is too long.
        """
        at = len(self._rest)
        self._rest += data
        while (end := self._rest.find(b"\n", at)) >= 0:
            if end > MAX_EVENT:
                break
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            at = 0
            if line.strip():
                yield self.event(line.strip(b"\r"))
        if len(self._rest) > MAX_EVENT:
            raise UnreadableBody("event_too_large")

    def end(self) -> Iterator[bytes]:
        """Yield the last line if it has no end."""
        if (rest := self.unread()).strip():
            yield self.event(rest.strip(b"\r"))

    def unread(self) -> bytes:
        """Return what has not become an event, and forget it."""
        rest = bytes(self._rest)
        self._rest.clear()
        return rest

    def event(self, line: bytes) -> bytes:
        """Return a line as an event."""
        return b"data: " + line

    def sent(self, events: bytes) -> bytes:
        """Return events as lines; what is no data has no place in them."""
        lines = events.split(b"\n")
        return b"".join(self.line(one[6:]) + b"\n" for one in lines if one.startswith(b"data: "))

    def line(self, data: bytes) -> bytes:
        """Return the data of an event as a line."""
        return data


class PlainText:
    """Reads text that comes in pieces, in its charset.

    Args:
        charset: As its headers say.

    Attributes:
        unread: What was given last, if it could not be read.
    """

    def __init__(self, charset: str) -> None:
        self._charset = charset
        self._decoder = codecs.getincrementaldecoder(charset)("replace")
        self._mark = b""
        self._beginning = ""
        self.unread = b""

    def feed(self, data: bytes, *, final: bool) -> str:
        """Return the text of more bytes.

        Raises:
            UnreadableBody: If its readers would read another text: in another charset, or events
                and lines, whose pieces they put together.
        """
        self.unread = self._decoder.getstate()[0] + data
        self._mark += data[: max(0, len(BOM) - len(self._mark))]
        if is_marked_otherwise(self._mark, self._charset):
            raise UnreadableBody(CHARSET)
        text = self._decoder.decode(data, final=final)
        if len(self._beginning) < MAX_BEGINNING:
            self._beginning += text[:MAX_BEGINNING]
            if is_framed(self._beginning):
                raise UnreadableBody("events_in_text")
        self.unread = b""
        return text


def is_framed(beginning: str) -> bool:
    """Return whether what is called text begins with two events, or two lines of JSON or parts."""
    text = beginning.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n\ufeff ")
    first, ended, rest = text.partition("\n")
    if not ended:
        return False
    if _is_event_line(first):
        return _are_events([block.strip("\n") for block in text.split("\n\n")])
    following = rest.lstrip("\n ")
    if _is_part(first):
        return _is_part(following)
    return following.startswith("{") and first.startswith("{") and _is_object(first)


def _are_events(blocks: list[str]) -> bool:
    """Return whether data stands in the first block that is no comment, and another follows."""
    lines = [block.split("\n") for block in blocks if block]
    said = [block for block in lines if not all(line.startswith(":") for line in block)]
    has_data = bool(said) and any(line.startswith("data:") for line in said[0])
    return has_data and any(_is_event_line(block[0]) for block in said[1:2])


def _is_event_line(line: str) -> bool:
    return line.startswith(("data:", "event:", "id:", "retry:", ":"))


def _is_part(line: str) -> bool:
    return len(line) > 2 and line[0].isalnum() and line[1] == ":" and line[2] in '"[{'


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


class Parts(JsonLines):
    """Cuts the lines of Vercel's older protocol: a letter, a colon and JSON."""

    def event(self, line: bytes) -> bytes:
        """Return a line as an event."""
        part, colon, value = line.partition(b":")
        if colon and part.isalnum():
            return b'data: {"part":"%s","value":%s}' % (part, value)
        return b"data: " + line

    def line(self, data: bytes) -> bytes:
        """Return the data of an event as a line."""
        head, found, value = data.partition(b'","value":')
        if not found:
            return data
        return head.removeprefix(b'{"part":"') + b":" + value.removesuffix(b"}")


Cutter = Events | JsonLines
CUTTERS: Mapping[Framing, type[Cutter]] = {"events": Events, "lines": JsonLines, "parts": Parts}


def data_of(event: bytes) -> str | None:
    """Return an event's data; None for one that has none, such as a comment."""
    lines = []
    for line in event.decode("utf-8", "replace").split("\n"):
        name, _, content = line.partition(":")
        if name == "data":
            lines.append(content.removeprefix(" "))
    return "\n".join(lines) if lines else None


def with_data(event: bytes, data: str) -> bytes:
    """Return an event with other data, its other fields kept."""
    kept = [
        line
        for line in event.decode("utf-8", "replace").split("\n")
        if line and line.partition(":")[0] != "data" and not line.startswith(("id:", ":"))
    ]
    lines = [*kept, *(f"data: {line}" for line in data.split("\n"))]
    return ("\n".join(lines) + "\n\n").encode()


def comment(text: str) -> bytes:
    """Return a comment, which every reader of events skips."""
    return f": {text}\n\n".encode()


def field_of(event: bytes, name: str) -> str | None:
    """Return a field of an event, the last if it is there twice; None if it has no such field."""
    found = None
    for line in event.decode("utf-8", "replace").split("\n"):
        key, _, content = line.partition(":")
        if key == name:
            found = content.removeprefix(" ")
    return found


def compact(document: Any) -> str:
    """Return JSON in which no reader of events finds the end of a line."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    for end in LINE_ENDS:  # some readers end a line there
        text = text.replace(end, f"\\u{ord(end):04x}")
    return text
