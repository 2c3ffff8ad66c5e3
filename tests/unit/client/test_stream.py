"""Streams of both clients over an injected transport: what is shown, what is raised."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import guardrail_client as gc
from tests.unit.client.conftest import make_verdict

DOCS = Path(__file__).resolve().parents[3] / "docs" / "client.md"
Guard = Callable[[httpx.Request], httpx.Response]


def release(text: str, index: int) -> dict[str, Any]:
    """Return a release record."""
    return {"type": "release", "text": text, "start": 0, "processed_index": index, "flagged": []}


def final(reason: str, index: int) -> dict[str, Any]:
    """Return a final record."""
    checked = [0, index]
    ends = {"type": "final", "reason": reason, "processed_index": index, "checked": checked}
    return {**ends, "result": make_verdict()}


def answering(*records: dict[str, Any], status: int = 200) -> Guard:
    """Return a guard that answers every stream with these records."""
    text = "".join(json.dumps(record) + "\n" for record in records)
    return lambda _request: httpx.Response(status, text=text)


def sync(guard: Guard, **options: Any) -> gc.CheckStream:
    """Return a stream of two tokens."""
    client = gc.GuardrailClient(transport=httpx.MockTransport(guard), buffer_streams=True)
    return client.check_stream(iter(["Dogs ", "bite."]), **options)


async def tokens() -> AsyncIterator[str]:
    """Write two tokens."""
    yield "Dogs "
    yield "bite."


async def awaited(guard: Guard, **options: Any) -> tuple[list[str], gc.AsyncCheckStream]:
    """Return what an asynchronous stream of the same tokens shows, and the stream."""
    async with gc.AsyncGuardrailClient(
        transport=httpx.MockTransport(guard), buffer_streams=True
    ) as client:
        stream = client.check_stream(tokens(), **options)
        return [text async for text in stream], stream


COMPLETE = answering(release("Dogs ", 5), release("[X].", 10), final("complete", 10))


@pytest.mark.anyio
async def test_both_clients_show_the_same() -> None:
    """The parts in order, then the verdict."""
    stream = sync(COMPLETE)
    assert list(stream) == ["Dogs ", "[X]."]
    shown, twin = await awaited(COMPLETE)
    assert shown == ["Dogs ", "[X]."]
    for story in (stream, twin):
        assert story.final is not None
        assert story.final.result.decision == "flag"
        assert (story.blocked, story.error, story.text) == (False, None, "Dogs [X].")


def test_the_request_is_lines_with_everything_but_the_answer() -> None:
    """The first line says what it is about; the last that it is whole."""
    seen: list[list[Any]] = []

    def guard(request: httpx.Request) -> httpx.Response:
        seen.append([json.loads(line) for line in request.content.splitlines()])
        assert request.headers["content-type"] == "application/x-ndjson"
        return COMPLETE(request)

    list(sync(guard, question="?", contexts=["p"], stop_on="flag", sentence_deadline_ms=50))
    first = {"question": "?", "contexts": ["p"], "stop_on": "flag", "sentence_deadline_ms": 50}
    assert seen == [[first, {"text": "Dogs "}, {"text": "bite."}, {"end": True}]]


@pytest.mark.anyio
async def test_a_blocked_stream_ends_with_the_fallback() -> None:
    """Which is shown last, once."""
    guard = answering(release("Dogs ", 5), final("blocked", 5))
    assert list(sync(guard, fallback="Sorry.")) == ["Dogs ", "Sorry."]
    shown, stream = await awaited(guard)
    assert shown == ["Dogs "]
    assert stream.blocked


FAULTS = {
    "no final record": (answering(release("Dogs ", 5)), gc.ConnectionFailed),
    "an internal error": (
        answering({"type": "error", "processed_index": 0, "error": {"code": "internal"}}),
        gc.ServerError,
    ),
    "a limit": (
        answering({"type": "error", "processed_index": 0, "error": {"code": "limit_exceeded"}}),
        gc.InvalidRequest,
    ),
    "a refusal": (answering({"error": {"code": "overloaded"}}, status=429), gc.Overloaded),
    "a record of another kind": (answering({"type": "news"}), gc.UnexpectedReply),
    "a record without its text": (answering({"type": "release"}), gc.UnexpectedReply),
}


@pytest.mark.anyio
@pytest.mark.parametrize(("guard", "error"), FAULTS.values(), ids=FAULTS)
async def test_a_stream_without_a_verdict_raises(
    guard: Guard, error: type[gc.GuardrailError]
) -> None:
    """The same class from both, and nothing that was held is shown."""
    stream = sync(guard)
    with pytest.raises(error) as caught:
        list(stream)
    assert "bite" not in stream.text
    assert "bite" not in str(caught.value)
    with pytest.raises(error):
        await awaited(guard)


@pytest.mark.anyio
@pytest.mark.parametrize(("guard", "error"), FAULTS.values(), ids=FAULTS)
async def test_failing_open_shows_the_rest_where_the_guard_cannot_be_asked(
    guard: Guard, error: type[gc.GuardrailError]
) -> None:
    """From where the last decided part ended; a wrong request or reply still raises."""
    if error in (gc.InvalidRequest, gc.UnexpectedReply):
        with pytest.raises(error):
            await awaited(guard, on_error="open")
        return
    shown, stream = await awaited(guard, on_error="open")
    assert "".join(shown) == "Dogs bite."
    assert isinstance(stream.error, error)
    assert "".join(sync(guard, on_error="open")) == "Dogs bite."


@pytest.mark.anyio
async def test_a_guard_that_keeps_waiting_spends_the_budget() -> None:
    """Once, whatever it is waiting for."""

    async def never(_request: httpx.Request) -> httpx.Response:
        import anyio

        await anyio.sleep_forever()
        raise AssertionError

    with pytest.raises(gc.TimeoutExceeded):
        await awaited(never, timeout=0.05)  # type: ignore[arg-type]


def test_tokens_must_be_text() -> None:
    """And of the kind that the client can iterate over."""
    client = gc.GuardrailClient(transport=httpx.MockTransport(COMPLETE), buffer_streams=True)
    with pytest.raises(TypeError, match="found int"):
        list(client.check_stream(iter([7])))  # type: ignore[list-item]
    with pytest.raises(TypeError, match="AsyncGuardrailClient"):
        client.check_stream(tokens())


def test_the_example_of_the_documentation_runs() -> None:
    """A test of an application that streams."""
    (code,) = DOCS.read_text("utf-8").split("```python\n# tested\n")[1:]
    exec(compile(code.split("```")[0], str(DOCS), "exec"), {})  # noqa: S102 - our own page
