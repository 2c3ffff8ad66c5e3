"""`guardrail proxy` as a process: where passages come from, and where keys go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from tests.adapters.adapter import PASSAGES, QUESTION, TWIN
from tests.adapters.conftest import Ground, proxied
from tests.integration.conftest import PATIENCE_S
from tests.integration.hosts import serving
from tests.vendors.saying import FALLBACK

CANARY = "sk-canary-4b1d"
ASKED = {"role": "user", "content": QUESTION}
TOLD = "".join(f"<hits>{text}</hits>" for text in PASSAGES)


class Upstream:
    """A server that says the good answer, and remembers what it was sent."""

    def __init__(self) -> None:
        self.seen: list[tuple[dict[str, str], Any]] = []
        self.app = FastAPI()
        self.app.post("/v1/chat/completions")(self.complete)

    async def complete(self, request: Request) -> JSONResponse:
        """Answer, or fail with the key in the message, as some vendors do."""
        body = await request.json()
        self.seen.append((dict(request.headers), body))
        if body["model"] == "nobody":
            told = {"message": f"Incorrect API key provided: {CANARY}", "code": "invalid_api_key"}
            return JSONResponse({"error": told}, 401)
        message = {"role": "assistant", "content": TWIN}
        return JSONResponse({"choices": [{"index": 0, "message": message}]})


@pytest.fixture(scope="module")
def upstream() -> Upstream:
    """The model's server."""
    return Upstream()


@pytest.fixture(scope="module")
def proxy(
    upstream: Upstream, ground: Ground, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The proxy before it, told where passages stand; its log holds no key, see `proxied`."""
    rule = ["--role", "user", "--tag", "hits"]
    folder = tmp_path_factory.mktemp("proxy")
    with (
        serving(upstream.app) as model,
        proxied(model, ground.guard, ground.key, folder, *rule) as url,
    ):
        yield url


def asked(url: str, more: Any = None, **headers: str) -> requests.Response:
    """Ask with a key, as clients of OpenAI do."""
    body = {"model": "m", "messages": [ASKED], **(more or {})}
    sent = {"Authorization": f"Bearer {CANARY}", **headers}
    address = f"{url}/v1/chat/completions"
    return requests.post(address, json=body, headers=sent, timeout=PATIENCE_S)


@pytest.mark.parametrize(
    ("more", "headers", "shown"),
    [
        ({"messages": [{"role": "user", "content": f"{TOLD}{QUESTION}"}]}, {}, TWIN),
        ({"guardrail": {"contexts": PASSAGES}}, {}, TWIN),
        ({}, {"X-Guardrail-Contexts": json.dumps(PASSAGES)}, TWIN),
        ({}, {}, FALLBACK),
        ({"messages": [{"role": "system", "content": TOLD}, ASKED]}, {}, FALLBACK),
    ],
    ids=["by the declared rule", "in a field", "in a header", "nowhere", "in another role"],
)
def test_passages_come_by_a_rule_a_field_or_a_header(
    more: Any, headers: dict[str, str], shown: str, proxy: str, upstream: Upstream
) -> None:
    """The same answer is shown with them and not without; only the guard sees the latter two."""
    reply = asked(proxy, more, **headers)
    assert reply.json()["choices"][0]["message"]["content"] == shown
    sent, body = upstream.seen[-1]
    assert sent["authorization"] == f"Bearer {CANARY}"
    assert "x-guardrail-contexts" not in sent
    assert "guardrail" not in body


def test_a_key_is_in_no_reply_and_no_log(
    proxy: str, ground: Ground, upstream: Upstream, tmp_path: Path
) -> None:
    """Whatever fails: the model's server, the guard's, the way to one of them, the request."""
    away = "http://127.0.0.1:1"
    replies = [asked(proxy, {"model": "nobody"}), asked(proxy, {"guardrail": CANARY})]
    with serving(upstream.app) as model:
        for number, (before, guard) in enumerate([(away, ground.guard), (model, away)]):
            folder = tmp_path / str(number)
            folder.mkdir()
            with proxied(before, guard, ground.key, folder, "--timeout", "5") as url:
                replies.append(asked(url, **{"X-Api-Key": CANARY}))
                replies.append(requests.get(f"{url}/v1/files?key={CANARY}", timeout=PATIENCE_S))
            assert (folder / "proxy.log").exists()
            assert CANARY not in (folder / "proxy.log").read_text("utf-8")
    assert [reply.status_code for reply in replies] == [401, 400, 502, 404, 200, 404]
    assert replies[4].json()["choices"][0]["message"]["content"] != TWIN
    for reply in replies:
        assert CANARY not in reply.text + str(reply.headers)
