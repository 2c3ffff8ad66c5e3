"""What is long runs on threads, not on the event loop; hostile bodies cost little anywhere."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from guardrail_service.server import routes, service, translate
from guardrail_service.server import streams as stream
from guardrail_service.server.app import create_app
from guardrail_service.server.runtime import Runtime
from guardrail_service.server.schemas import CheckRequest, StreamFinal
from tests.integration.conftest import PATIENCE_S

ANSWER = "The pool opens at seven in the morning. "
LARGE = {"answer": ANSWER * 1_000, "contexts": [ANSWER * 10]}
SMALL = {"answer": ANSWER, "contexts": [ANSWER]}


class Threads:
    """Notes on which threads a function runs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.seen: list[int] = []

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run it."""
        self.seen.append(threading.get_ident())
        return self._function(*arguments, **named)


def posted(runtime: Runtime, path: str, *bodies: bytes) -> tuple[int, list[httpx.Response]]:
    """Return the thread of the event loop and the replies of an application in process."""

    async def run() -> tuple[int, list[httpx.Response]]:
        app = create_app(runtime=runtime)
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://test", timeout=PATIENCE_S
            ) as client:
                json_type = {"Content-Type": "application/json"}
                replies = [await client.post(path, content=b, headers=json_type) for b in bodies]
                return threading.get_ident(), replies

    return asyncio.run(run())


def body(value: Any) -> bytes:
    """Return JSON."""
    return json.dumps(value).encode()


def test_a_large_body_is_read_and_validated_on_a_thread_and_once(
    tiny_runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small one on the event loop: a thread would cost more than reading it."""
    decoded, validated = Threads(translate.decode), Threads(CheckRequest.model_validate)
    monkeypatch.setattr(routes, "decode", decoded)
    monkeypatch.setattr(CheckRequest, "model_validate", validated)
    loop, (large, small) = posted(tiny_runtime, "/v1/check", body(LARGE), body(SMALL))
    assert (large.status_code, small.status_code) == (200, 200)
    assert len(decoded.seen) == 2
    assert decoded.seen[0] != loop
    assert decoded.seen[1] == loop
    assert validated.seen == decoded.seen[:1]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"mode": "loud"}, "mode"), ({"answer": 5}, "answer"), ({"extra": 1}, "body")],
)
def test_a_large_body_is_refused_like_a_small_one(
    wrong: dict[str, Any], field: str, tiny_runtime: Runtime
) -> None:
    """In the same words."""
    one, other = body({**SMALL, **wrong}), body({**LARGE, "question": "q" * 40_000, **wrong})
    _, (small, large) = posted(tiny_runtime, "/v1/check", one, other)
    assert small.status_code == large.status_code == 422
    messages = [reply.json()["error"]["message"] for reply in (small, large)]
    assert messages[0] == messages[1]
    assert field == "body" or messages[0].startswith(field)


@pytest.mark.parametrize(
    ("hostile", "status", "says"),
    [
        ({"answer": "a", "contexts": [1] * 100_000}, 422, "contexts: found 100000 entries"),
        ({"answer": "a", "contexts": [1] * 9_000}, 422, "contexts.0: found a number"),
        ({"answer": "a", "contexts": ["a"] * 9_000}, 422, "contexts: found 9000 passages"),
        ({"answer": "a"} | {f"k{n}": 1 for n in range(50_000)}, 422, "found 50001 fields"),
        ({"answer": "a", "detectors": {f"d{n}": {} for n in range(9_000)}}, 422, "detectors"),
        ({"answer": "a", "include": ["spans"] * 9_000}, 422, "include: found 9000 entries"),
        ({"answer": "a", "contexts": [1] * 250_000}, 400, "more than 200000 values"),
    ],
)
def test_a_body_of_very_many_faults_is_refused_by_the_first(
    hostile: dict[str, Any], status: int, says: str, tiny_runtime: Runtime
) -> None:
    """Validation would note every one of them first, for seconds."""
    _, (reply,) = posted(tiny_runtime, "/v1/check", body(hostile))
    assert reply.status_code == status
    assert says in reply.json()["error"]["message"]


def test_items_of_a_batch_are_validated_on_threads(
    tiny_runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be a hundred of them."""
    parsed = Threads(translate.parse_check)
    monkeypatch.setattr(service, "parse_check", parsed)
    items = body({"items": [SMALL, {"answer": 5}, SMALL]})
    loop, (reply,) = posted(tiny_runtime, "/v1/check/batch", items)
    kinds = ["error" in result for result in reply.json()["results"]]
    assert kinds == [False, True, False]
    assert len(parsed.seen) == 3
    assert loop not in parsed.seen


def test_a_streams_long_lines_and_its_last_word_are_made_on_threads(
    tiny_runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short lines are read on the event loop."""
    parsed, written = Threads(stream.parse), Threads(StreamFinal.model_dump_json)
    monkeypatch.setattr(stream, "parse", parsed)
    monkeypatch.setattr(StreamFinal, "model_dump_json", lambda self: written(self))
    lines = [
        {"contexts": [ANSWER * 1_000]},
        {"text": ANSWER},
        {"text": ANSWER * 1_000},
        {"end": True},
    ]
    sent = b"\n".join(map(body, lines))
    loop, (reply,) = posted(tiny_runtime, "/v1/check/stream", sent)
    assert json.loads(reply.text.splitlines()[-1])["reason"] == "complete"
    assert [thread == loop for thread in parsed.seen] == [False, True, False, True]
    assert len(written.seen) == 1
    assert written.seen[0] != loop
