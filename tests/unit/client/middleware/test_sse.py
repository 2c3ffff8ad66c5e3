"""Bytes are cut into the same events whatever their pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_client.middleware import sse
from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.sse import Events

STREAM = b"data: a\r\n\r\n: note\n\ndata: b\ndata: c\r\r event: x\n\n\n\ndata: d"


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
