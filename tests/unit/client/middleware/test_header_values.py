"""What a service's reply says reaches headers as names only, whatever it holds."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from guardrail_client.middleware import Route
from tests.unit.client.conftest import make_verdict
from tests.unit.client.middleware.conftest import GOOD, Host, Reply

HOSTILE = {
    "line break": "a\r\nX-Evil: 1",
    "line feed": "a\n\ndata: lobster",
    "control": "a\x00\x1b[31m\x7f",
    "other letters": "größe 龙 ☃",
    "line separator": "a\u2028\x85b",
    "endless": "a" * 100_000,
    "half an emoji": "\ud83d",
}


def verdict_with(value: str) -> dict[str, Any]:
    """Return a verdict that says a value wherever a header repeats the reply."""
    return {
        **make_verdict(),
        "request_id": value,
        "action": "allow",
        "flagged": [value, "pii"],
        "policy": {"name": value, "version": value, "sha256": "0"},
    }


def hostile_guard(value: str, status: int) -> Any:
    """Return a guard that says it in a verdict, in a stream, or in an error."""

    def answer(request: httpx.Request) -> httpx.Response:
        if status != 200:
            return httpx.Response(status, json={"error": {"code": value, "message": value}})
        verdict = verdict_with(value)
        if not request.url.path.endswith("/stream"):
            return httpx.Response(200, content=json.dumps(verdict))
        size = len(GOOD)
        final = {"reason": "complete", "processed_index": size, "checked": [0, size]}
        records = [
            {"type": "release", "text": GOOD, "processed_index": size},
            {"type": "final", **final, "result": verdict},
        ]
        return httpx.Response(200, text="".join(json.dumps(line) + "\n" for line in records))

    return answer


def is_plain(value: str) -> bool:
    """Return whether a value is what every server and browser accepts in a header."""
    return value.isascii() and value.isprintable() and " " not in value and len(value) < 300


@pytest.mark.parametrize("status", [200, 422, 503])
@pytest.mark.parametrize("on_error", ["closed", "open"])
@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_reply_writes_a_header_of_its_own(
    value: str, on_error: Any, status: int, host: Host
) -> None:
    """Line breaks, control characters and letters beyond ASCII become `_`; long names are cut."""
    host.guard = hostile_guard(value, status)
    found = host.get(Reply.of({"answer": GOOD}), Route("/ask", on_error=on_error))
    assert "x-evil" not in found.headers
    ours = {k: v for k, v in found.headers.items() if k.startswith("x-guardrail-")}
    assert ours["x-guardrail-decision"] == ("flag" if status == 200 else "unchecked")
    assert all(map(is_plain, ours.values()))


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_reply_writes_an_event_of_its_own(value: str, host: Host) -> None:
    """The comment that says a stream's verdict stays one line."""
    host.guard = hostile_guard(value, 200)
    chunk = {"choices": [{"index": 0, "delta": {"content": GOOD}, "finish_reason": None}]}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in (chunk, end))
    sent = host.get(Reply.of((body + "data: [DONE]\n\n").encode(), "text/event-stream"))
    lines = [line for line in sent.text.replace("\r", "\n").split("\n") if line]
    assert any(GOOD in line for line in lines)
    assert all(line.startswith((": ", "data: {", "data: [DONE]")) for line in lines)
