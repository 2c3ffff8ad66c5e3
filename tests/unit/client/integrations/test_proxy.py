"""`guardrail proxy`: what goes on, what comes back, and what it does not serve."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from guardrail_client import AsyncGuardrailClient
from guardrail_client.integrations.openai_client import guarded
from guardrail_client.integrations.proxy import GuardProxy, checked_upstream
from tests.unit.client.middleware.conftest import BAD, GOOD, Guard, reached

KEY = "sk-made-up"
CHAT = {"model": "m", "messages": [{"role": "tool", "content": "Two weeks."}]}


class Model:
    """An upstream that says one thing and remembers what it was sent."""

    def __init__(self, said: str = GOOD) -> None:
        self.said = said
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer."""
        self.asked.append(request)
        message = {"role": "assistant", "content": self.said}
        body = json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
        headers = {"Content-Type": "application/json"}
        return httpx.Response(200, headers=headers, stream=httpx.ByteStream(body))


def ask(
    model: Any, path: str = "/v1/chat/completions", guard: Guard | None = None, **sent: Any
) -> httpx.Response:
    """Ask a proxy before a model."""

    async def run() -> httpx.Response:
        client = AsyncGuardrailClient(**reached(guard or Guard()))
        app = GuardProxy("http://model.test", client, transport=httpx.MockTransport(model))
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy.test") as http:
            method = sent.pop("method", "POST")
            reply = await http.request(method, path, **({"json": CHAT} | sent))
        await client.close()
        return reply

    return asyncio.run(run())


def test_keys_go_on_and_what_is_the_guards_does_not() -> None:
    """Nor does the host, or anything that is between two hosts."""
    model, guard = Model(), Guard()
    body = {**CHAT, "guardrail": {"contexts": ["Guests may stay."]}}
    headers = {"Authorization": f"Bearer {KEY}", "X-Guardrail-Contexts": "[]", "TE": "trailers"}
    reply = ask(model, "/v1/chat/completions?a=b", guard, json=body, headers=headers)
    assert reply.json()["choices"][0]["message"]["content"] == GOOD
    request = model.asked[0]
    assert str(request.url) == "http://model.test/v1/chat/completions?a=b"
    assert json.loads(request.content) == CHAT
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert not {"x-guardrail-contexts", "te"} & set(request.headers)
    assert guard.asked[0]["contexts"] == ["Guests may stay."]


def test_a_stopped_answer_does_not_come_back() -> None:
    """By the rules of the middleware."""
    reply = ask(Model(BAD))
    assert "lobster" not in reply.text
    assert reply.json()["choices"][0]["finish_reason"] == "content_filter"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models", 200),
        ("GET", "/v1/models/smollm2", 200),
        ("POST", "/v1/embeddings", 200),
        ("GET", "/v1/models/../chat/completions", 404),
        ("GET", "/v1/models/%2e%2e/chat/completions", 404),
        ("GET", "/v1/chat/completions", 404),
        ("GET", "/v1/responses/resp_1", 404),
        ("POST", "/v1/other/chat/completions", 404),
        ("POST", "/v1/assistants", 404),
    ],
)
def test_what_could_hold_an_answer_unread_is_not_served(
    method: str, path: str, status: int
) -> None:
    """Lists of models and vectors hold none."""
    model = Model()
    assert ask(model, path, method=method).status_code == status
    assert len(model.asked) == (status == 200)


def test_a_model_that_is_away_is_an_error_without_its_address() -> None:
    """As clients of OpenAI parse one."""

    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"cannot reach {request.url}")

    reply = ask(away)
    assert reply.status_code == 502
    assert reply.json()["error"]["code"] == "upstream"
    assert "model.test" not in reply.text


def test_wrong_passages_are_told_before_the_model_is_asked() -> None:
    """Without a word of them."""
    model = Model()
    reply = ask(model, json={**CHAT, "guardrail": {"contexts": "Zanzibar"}})
    assert (reply.status_code, model.asked) == (400, [])
    assert "guardrail.contexts" in reply.json()["error"]["message"]
    assert "Zanzibar" not in reply.text


@pytest.mark.parametrize(
    ("upstream", "expected"),
    [
        ("http://model.test", "http://model.test/v1"),
        ("https://model.test/openai/v1/", "https://model.test/openai/v1"),
    ],
)
def test_an_upstream_may_end_with_its_version(upstream: str, expected: str) -> None:
    """Both forms are common."""
    assert checked_upstream(upstream) == expected


@pytest.mark.parametrize("upstream", ["model.test", "ftp://a", "http://u:secret@a", "http://a?k=s"])
def test_a_wrong_upstream_is_refused_without_its_secret(upstream: str) -> None:
    """At the start, not at the first request."""
    with pytest.raises(ValueError, match="expected") as error:
        checked_upstream(upstream)
    assert "secret" not in str(error.value)


def test_only_a_client_of_openai_can_be_guarded() -> None:
    """Anything else would only seem to be."""
    with pytest.raises(TypeError, match="found object, expected OpenAI"):
        guarded(object())
