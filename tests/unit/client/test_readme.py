"""The README's Python blocks run as they stand there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import guardrail_client as gc

README = Path(gc.__file__).parent / "README.md"
FENCE, MARK = "```", "# tested"


def python_blocks() -> Iterator[str]:
    """Yield the text of each fenced Python block."""
    parts = README.read_text(encoding="utf-8").split(FENCE)
    for block in parts[1::2]:
        language, _, code = block.partition("\n")
        if language == "python":
            yield code


BLOCKS = [code for code in python_blocks() if code.startswith(MARK)]


@pytest.fixture
def service(server: Any, monkeypatch: pytest.MonkeyPatch, verdict: dict[str, Any]) -> Any:
    """Return a server that flags everything, at the address the examples use."""
    verdict["detectors"]["hallucination"]["spans"][0]["evidence"][0]["context"] = 0

    def answer(handler: Any) -> None:
        path, _, body = server.seen[-1]
        items = json.loads(body).get("items", [])
        batch = path.endswith("/batch")
        reply = {"results": [verdict for _ in items]} if batch else verdict
        handler.answer(200, json.dumps(reply).encode())

    server.script = [answer] * 3
    monkeypatch.setenv("GUARDRAIL_URL", server.url)
    return server


def run(code: str) -> dict[str, Any]:
    """Execute a block and return its names."""
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(code, str(README), "exec"), names)  # noqa: S102 - our own README
    return names


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("code", BLOCKS, ids=range(len(BLOCKS)))
def test_every_marked_block_runs(code: str) -> None:
    """Nobody copies an example that does not work."""
    run(code)


def test_only_the_block_that_needs_models_is_not_run() -> None:
    """A new example is tested unless there is a reason."""
    untested = [code for code in python_blocks() if not code.startswith(MARK)]
    assert len(BLOCKS) == 8
    assert ["in_process" in code for code in untested] == [True]


def recipe(name: str) -> Any:
    """Return the function of the README that has this name."""
    (code,) = [code for code in BLOCKS if f"def {name}(" in code]
    return run(code)[name]


def client(reply: httpx.Response | Exception) -> gc.GuardrailClient:
    """Return a client whose service always replies this."""

    def answer(request: httpx.Request) -> httpx.Response:
        if isinstance(reply, Exception):
            raise reply
        return reply

    return gc.GuardrailClient(transport=httpx.MockTransport(answer), max_retries=0)


DOWN = [
    httpx.ConnectError("down"),
    httpx.ReadTimeout("slow"),
    *map(httpx.Response, (429, 500, 503)),
]
OURS = [httpx.Response(status) for status in (400, 401, 403, 413, 422)]


@pytest.mark.parametrize("reply", [*DOWN, *OURS, httpx.Response(200, text="<html>")], ids=repr)
def test_the_fail_closed_recipe_shows_nothing_unchecked(reply: Any) -> None:
    """No error of any kind lets an answer through."""
    with client(reply) as guardrail:
        assert recipe("reply")(guardrail, "answer", []).startswith("Sorry")


def test_the_fail_closed_recipe_obeys_the_action(verdict: dict[str, Any]) -> None:
    """Blocked answers are replaced, redacted ones shown redacted, allowed ones as they are."""
    shown = {}
    for action in ("block", "redact", "allow"):
        with client(httpx.Response(200, json=verdict | {"action": action})) as guardrail:
            shown[action] = recipe("reply")(guardrail, "answer", [])
    assert shown["block"].startswith("Sorry")
    assert (shown["redact"], shown["allow"]) == ("[redacted]", "answer")


@pytest.mark.parametrize("reply", DOWN, ids=repr)
def test_the_fail_open_recipe_shows_answers_while_the_service_is_down(reply: Any) -> None:
    """What passes by itself does not take the application down."""
    with client(reply) as guardrail:
        assert recipe("may_show")(guardrail, "answer", [])


@pytest.mark.parametrize("reply", OURS, ids=repr)
def test_the_fail_open_recipe_does_not_hide_our_own_mistakes(reply: Any) -> None:
    """A wrong key must not switch the guardrail off."""
    with client(reply) as guardrail, pytest.raises(gc.APIError):
        recipe("may_show")(guardrail, "answer", [])
