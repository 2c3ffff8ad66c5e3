"""A stream ends on the policy it began with, though the service loads another one meanwhile."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route as Path_
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import guardrail_client as gc
from guardrail_client.middleware import (
    FALLBACK,
    AnswerOutcome,
    GuardrailMiddleware,
    Route,
)
from tests.integration.conftest import PATIENCE_S, Served, running, until
from tests.integration.hosts import CLEAN, LEAK, closing, serving
from tests.integration.test_middleware import REDACTED, policy

FIRST, REST = f"{CLEAN} ", LEAK
Read = Iterator[str]


class Reloaded:
    """A service whose policy is version 1, redacts or blocks addresses, and becomes version 2."""

    def __init__(self, served: Served, config: Path, first: str) -> None:
        self.served = served
        self._config = config
        self._actions = [first, {"redact": "block", "block": "redact"}[first]]
        self.go_on = threading.Event()
        """Set when the other policy is in force."""
        self.outcomes: list[AnswerOutcome] = []

    @staticmethod
    def written(config: Path, version: int, action: str) -> None:
        """Write a version of the policy."""
        content = json.loads(config.read_text())
        content["policy"] |= {"version": str(version)}
        content["policy"]["actions"]["pii"] = action
        config.write_text(json.dumps(content))

    def switch(self) -> None:
        """Load the other policy, and let the model write the rest."""
        self.written(self._config, 2, self._actions[1])
        self.served.signal(signal.SIGHUP)
        with httpx.Client(base_url=self.served.address, timeout=PATIENCE_S) as client:
            until(
                lambda: client.get("/v1/policies").json()["policies"][0]["version"] == "2",
                "the other policy is in force",
            )
        self.go_on.set()

    def route(self, **settings: Any) -> Route:
        """Return a guarded route that keeps its outcomes."""
        about: Any = {"question": None, "contexts": None, "timeout": PATIENCE_S}
        return Route("/*", on_outcome=self.outcomes.append, **about, **settings)

    async def awaited(self) -> AsyncIterator[str]:
        """Write the first sentences, and the rest under the other policy."""
        yield FIRST
        assert await asyncio.to_thread(self.go_on.wait, PATIENCE_S)
        yield REST


@pytest.fixture(params=["redact", "block"])
def reloaded(request: pytest.FixtureRequest, tiny: Path, tmp_path: Path) -> Iterator[Reloaded]:
    """Return a service under the first policy."""
    config = policy(tmp_path)
    Reloaded.written(config, 1, request.param)
    with running("--port", "0", "--pack", tiny, "--config", config) as served, served.client():
        yield Reloaded(served, config, request.param)


@contextmanager
def over_asgi(state: Reloaded) -> Iterator[Read]:
    """Yield what a reader of server-sent events is shown."""

    async def ask(_request: Any) -> StreamingResponse:
        events = (f"data: {piece}\n\n" async for piece in state.awaited())
        return StreamingResponse(events, media_type="text/event-stream")

    client = gc.AsyncGuardrailClient(state.served.address)
    app = Starlette(routes=[Path_("/ask", ask)], lifespan=closing(client.close))
    guarded = GuardrailMiddleware(app, client, [state.route(sse="text")])
    with serving(guarded) as url, _events(url) as shown:
        yield shown


@contextmanager
def _events(url: str) -> Iterator[Read]:
    with httpx.stream("GET", f"{url}/ask", timeout=PATIENCE_S) as reply:
        lines = (line for line in reply.iter_lines() if line.startswith("data: "))
        yield (line.removeprefix("data: ") for line in lines if "guardrail" not in line)


@contextmanager
def over_a_socket(state: Reloaded) -> Iterator[Read]:
    """Yield the frames of a WebSocket."""

    async def ask(socket: WebSocket) -> None:
        await socket.accept()
        async for piece in state.awaited():
            await socket.send_text(piece)
        await socket.close()

    client = gc.AsyncGuardrailClient(state.served.address)
    app = Starlette(routes=[WebSocketRoute("/ask", ask)], lifespan=closing(client.close))
    guarded = GuardrailMiddleware(app, client, [state.route(websocket="text")])

    def frames(socket: Any) -> Iterator[str]:
        while True:
            try:
                yield str(socket.recv(PATIENCE_S))
            except ConnectionClosed:
                return

    with serving(guarded) as url, connect(f"{url.replace('http', 'ws')}/ask") as socket:
        yield frames(socket)


@pytest.mark.parametrize("over", [over_asgi, over_a_socket])
def test_a_stream_ends_on_the_policy_it_began_with(
    over: Callable[[Reloaded], Any], reloaded: Reloaded
) -> None:
    """Shown, stopped and reported as version 1 says; the next answer as version 2 says."""
    redacts = reloaded._actions[0] == "redact"
    with over(reloaded) as shown:
        text = next(shown)
        reloaded.switch()
        text += "".join(shown)
    assert text.strip() == FIRST + REDACTED if redacts else text.endswith(FALLBACK)
    (outcome,) = reloaded.outcomes
    assert outcome.result is not None
    assert outcome.result.policy.version == "1"
    assert outcome.result.action == ("redact" if redacts else "block")
    with gc.GuardrailClient(reloaded.served.address, timeout=PATIENCE_S) as client:
        later = client.check(REST)
    assert (later.policy.version, later.action) == ("2", "block" if redacts else "redact")
