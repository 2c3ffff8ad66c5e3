"""Every sender behind our middleware, on a port of its own, with what it sends on a tape."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import guardrail_client as gc
from guardrail_client.middleware import AnswerOutcome, GuardrailMiddleware, Route
from tests.integration.conftest import PATIENCE_S
from tests.integration.hosts import serving
from tests.vendors.senders import Relay, litellm, model_server, npm_server, saying
from tests.vendors.written import application, with_passages


@dataclass
class Host:
    """A sender behind the middleware.

    Attributes:
        url: Where it listens.
        sent: The bytes of the last reply.
        original: The bytes of the last reply as the sender wrote it.
        headers: Of the last reply.
        outcomes: What the middleware says that it did about it.
    """

    url: str = ""
    sent: bytearray = field(default_factory=bytearray)
    original: bytearray = field(default_factory=bytearray)
    headers: dict[str, str] = field(default_factory=dict)
    outcomes: list[AnswerOutcome] = field(default_factory=list)

    def taped(self, app: Any, tape: bytearray) -> Any:
        """Return an application whose replies are kept."""

        async def call(scope: Any, receive: Any, send: Any) -> None:
            async def sending(message: Any) -> None:
                if message["type"] == "http.response.start":
                    tape.clear()
                    self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
                tape.extend(message.get("body", b""))
                await send(message)

            await app(scope, receive, sending)

        return call


def routes(**settings: Any) -> list[Route]:
    """Return the one-word set-up of every service."""
    return [
        Route.openai(**settings),
        Route.openai("/v1/completions", **settings),
        Route.responses(**settings),
        Route.anthropic(**settings),
        Route.google(**settings),
        Route.bedrock(**settings),
        Route.cohere(**settings),
        Route.ollama(**settings),
        Route.ollama("/api/generate", **settings),
        *(Route.vercel(f"/vercel{version}", **settings) for version in ("4", "5", "7")),
        Route.langserve("/chain/*", **settings),
        Route.llamaindex("/llamaindex", **settings),
        Route.langgraph("/runs/stream", **settings),
    ]


def until_closed(app: Any, closes: Sequence[Callable[[], Awaitable[None]]]) -> Any:
    """Return an application that closes clients on its own loop when it shuts down."""

    async def call(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for phase in ("startup", "shutdown"):
            await receive()
            for close in closes if phase == "shutdown" else ():
                await close()
            await send({"type": f"lifespan.{phase}.complete"})

    return call


@contextmanager
def hosted(app: Any, guard: str, **settings: Any) -> Iterator[Host]:
    """Serve an application behind the middleware."""
    host = Host()
    settings = {"timeout": PATIENCE_S, "on_outcome": host.outcomes.append, **settings}
    client = gc.AsyncGuardrailClient(guard, max_retries=0)
    made = GuardrailMiddleware(host.taped(app, host.original), client, routes(**settings))
    closes = [client.close, *([app.client.aclose] if isinstance(app, Relay) else [])]
    with serving(until_closed(host.taped(made, host.sent), closes)) as host.url:
        yield host


class Hosts:
    """Every sender behind the middleware, started when it is first asked for.

    Args:
        guard: Address of the service.
        command: Of the LiteLLM proxy.
        folder: For its settings and log.
    """

    def __init__(self, guard: str, command: str, folder: Path) -> None:
        self.guard, self.command, self.folder = guard, command, folder
        self.stack = ExitStack()
        self.found: dict[str, Host] = {}
        self._model: str | None = None

    def __getitem__(self, name: str) -> Host:
        """Return a sender's host."""
        if name not in self.found:
            self.found[name] = self.stack.enter_context(hosted(self._app(name), self.guard))
        return self.found[name]

    def _app(self, name: str) -> Any:
        if name == "xllamacpp":
            return Relay(self.model, saying)
        if name == "written":
            return with_passages(application())
        if name == "npm":
            return Relay(self.stack.enter_context(npm_server()))
        proxy = litellm(self.command, self.model, self.folder)
        return Relay(self.stack.enter_context(proxy))

    @property
    def model(self) -> str:
        """The address of a real model of 135M parameters."""
        if self._model is None:
            self._model = self.stack.enter_context(model_server())
        return self._model
