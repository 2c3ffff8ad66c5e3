"""In-process mode, with a tiny application in place of the service."""

from __future__ import annotations

import gzip
import json
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

import anyio
import pytest

import guardrail_client as gc
from guardrail_client import inprocess


class TinyApp:
    """An application with a lifespan that keeps a diary. It is its own router."""

    def __init__(self, verdict: Mapping[str, Any]) -> None:
        self.verdict = verdict
        self.diary: list[str] = []
        self.threads: set[str] = set()
        self.settings: dict[str, Any] = {}
        self.fails = False

    @property
    def router(self) -> TinyApp:
        """Return what has the lifespan."""
        return self

    @asynccontextmanager
    async def lifespan_context(self, app: TinyApp) -> AsyncIterator[dict[str, str]]:
        """Start and stop; a task group as here must be left by the task that entered it."""
        if app.fails:
            raise RuntimeError("no model pack")
        async with anyio.create_task_group():
            self.diary.append("start")
            yield {"loaded": "models"}
        self.diary.append("stop")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer by path."""
        self.threads.add(threading.current_thread().name)
        self.diary.append(f"{scope['path']} with {scope['state']['loaded']}")
        if scope["path"] == "/v1/policies":
            raise RuntimeError("a bug")
        if scope["path"] == "/v1/detectors":
            await self.hang()
        body = json.dumps(self.verdict if scope["path"] == "/v1/check" else {"n": 1})
        headers = [(b"content-encoding", b"gzip")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": gzip.compress(body.encode(), mtime=0)})

    async def hang(self) -> None:
        """Take longer than anyone waits."""
        try:
            await anyio.sleep_forever()
        finally:
            self.diary.append("cancelled")


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, verdict: dict[str, Any]) -> TinyApp:
    """Return a tiny application that in-process clients will run."""
    tiny = TinyApp(verdict)

    def load(settings: Mapping[str, Any]) -> TinyApp:
        tiny.settings.update(settings)
        return tiny

    monkeypatch.setattr(inprocess, "load_app", load)
    return tiny


def service_threads() -> list[str]:
    """Return the names of running service threads."""
    return [t.name for t in threading.enumerate() if t.name == "rag-guardrail"]


def test_a_client_starts_uses_and_stops_the_service(app: TinyApp) -> None:
    """The lifespan surrounds every call, and its state reaches the handlers."""
    with gc.GuardrailClient.in_process(model_pack="embedded") as client:
        assert client.check("a").request_id == "r-1"
        assert client.info() == {"n": 1}
        assert service_threads() == ["rag-guardrail"]
    assert app.settings == {"model_pack": "embedded"}
    assert app.diary == ["start", "/v1/check with models", "/v1/info with models", "stop"]
    assert service_threads() == []


@pytest.mark.anyio
async def test_an_async_client_starts_uses_and_stops_the_service(app: TinyApp) -> None:
    """The same application, on a loop of its own, so that the caller's loop stays free."""
    async with gc.AsyncGuardrailClient.in_process(model_pack="embedded") as client:
        assert (await client.check("a")).request_id == "r-1"
        assert await client.info() == {"n": 1}
    assert app.settings == {"model_pack": "embedded"}
    assert app.diary == ["start", "/v1/check with models", "/v1/info with models", "stop"]
    assert app.threads == {"rag-guardrail"}
    assert service_threads() == []


def test_closing_twice_stops_once(app: TinyApp) -> None:
    """`close()` inside the block and at its end is fine."""
    with gc.GuardrailClient.in_process() as client:
        client.close()
    assert app.diary == ["start", "stop"]


def test_a_service_that_does_not_start_says_why_and_leaves_nothing_behind(app: TinyApp) -> None:
    """The service's own error reaches the caller, and its thread is gone."""
    app.fails = True
    with pytest.raises(RuntimeError, match="no model pack"):
        gc.GuardrailClient.in_process()
    assert service_threads() == []


def test_a_crash_inside_the_service_is_a_server_error(app: TinyApp) -> None:
    """In-process and over the network, a bug looks the same to the caller."""
    with gc.GuardrailClient.in_process() as client, pytest.raises(gc.ServerError):
        client.policies()


def short(client: Any) -> Any:
    """Give a client a budget of ten milliseconds."""
    client._options = replace(client._options, timeout=0.01)
    return client


def test_a_hanging_service_cannot_outlast_the_budget(
    app: TinyApp, clock: Any, use_clock: Any
) -> None:
    """The work is cancelled, not abandoned; with a clock at rest, so that it does begin."""
    client = use_clock(short(gc.GuardrailClient.in_process()), clock)
    with client, pytest.raises(gc.TimeoutExceeded):
        client.detectors()
    assert "cancelled" in app.diary


@pytest.mark.anyio
async def test_a_hanging_service_cannot_outlast_an_async_budget(
    app: TinyApp, clock: Any, use_clock: Any
) -> None:
    """Cancelling the caller's task cancels the work on the service's loop."""
    async with use_clock(short(gc.AsyncGuardrailClient.in_process()), clock) as client:
        with pytest.raises(gc.TimeoutExceeded):
            await client.detectors()
    assert "cancelled" in app.diary


class Absent(MetaPathFinder):
    """Makes the service impossible to find, as where only the client is installed."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        """Refuse the service; leave everything else to the other finders."""
        if name == "guardrail_service":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def _not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    for loaded in [m for m in sys.modules if m.partition(".")[0] == "guardrail_service"]:
        monkeypatch.delitem(sys.modules, loaded)


@pytest.mark.usefixtures("_not_imported")
@pytest.mark.parametrize("client", [gc.GuardrailClient, gc.AsyncGuardrailClient])
def test_without_the_service_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, client: Any
) -> None:
    """The client alone has no models; the message names the distribution that has."""
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    with pytest.raises(gc.ServiceNotInstalled, match="pip install rag-guardrail"):
        client.in_process()


@pytest.mark.usefixtures("_not_imported")
def test_a_broken_service_is_not_called_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that an installed service lacks is reported as it is."""
    hollow = ModuleType("guardrail_service")
    hollow.__path__ = []
    monkeypatch.setitem(sys.modules, "guardrail_service", hollow)
    with pytest.raises(ModuleNotFoundError, match=r"guardrail_service\.server"):
        gc.GuardrailClient.in_process()
