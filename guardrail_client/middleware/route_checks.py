"""Refuses settings of a route that cannot work, when the route is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guardrail_client._options import checked_timeout

RECEIVE, FRAME = "receive", "frame"
"""Ends of an answer on a WebSocket that no frame says."""
_WORDS: Mapping[str, tuple[str | None, ...]] = {
    "rest": ("checked", "unchecked"),
    "errors": ("removed", "unchecked"),
    "tool_calls": ("check", "unchecked", "refuse"),
    "mode": ("enforce", "shadow"),
    "stop_on": ("block", "flag", None),
    "on_error": ("closed", "open"),
    "hold": ("all", None),
}


def check_words(route: Any) -> None:
    """Raise if a setting is none of its words, or the time is none: a typing error would open."""
    for name, words in _WORDS.items():
        if (found := getattr(route, name)) not in words:
            raise ValueError(f"{name}: found {found!r}, expected {' or '.join(map(str, words))}")
    checked_timeout(route.timeout)


def check_socket(websocket: str | None, end: str) -> None:
    """Raise if WebSockets cannot be read so."""
    is_json = websocket is not None and websocket.startswith("json:/")
    if not is_json and websocket not in (None, "text", "unchecked"):
        expected = "text, json: and a pointer, unchecked, or None"
        raise ValueError(f"websocket: found {websocket!r}, expected {expected}")
    begins = "/" if is_json else "="
    if end not in (RECEIVE, FRAME) and not (end.startswith(begins) and len(end) > 1):
        kind = "a pointer" if is_json else "= and the text of a frame"
        expected = f"{RECEIVE}, {FRAME} or {kind}"
        raise ValueError(f"websocket_end: found {end!r}, expected {expected}")
