"""Run by `.ci/adapters` only: needs others' gateways, clients and frameworks."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import pytest

LITELLM = os.environ.get("GUARDRAIL_LITELLM")
"""The command of the LiteLLM proxy, which is in an environment of its own."""
collect_ignore_glob = [] if LITELLM else ["test_*.py"]
KEY = "a-made-up-key"


class Ground:
    """What adapters are tried on: a real service in every dialect, others' gateways before it.

    Attributes:
        guard: Address of the service, which wants `key`.
    """

    def __init__(self, guard: str, stack: ExitStack, folder: Path) -> None:
        self.guard, self.key = guard, KEY
        self._stack, self._folder = stack, folder

    @cached_property
    def litellm(self) -> str:
        """The address of LiteLLM's proxy, which asks the service; its models say what they say."""
        from tests.adapters.gateways import litellm_settings
        from tests.vendors.senders import litellm_proxy

        settings = litellm_settings(self.guard, self.key)
        return self._stack.enter_context(litellm_proxy(str(LITELLM), settings, self._folder))

    @cached_property
    def model(self) -> str:
        """The address of a real model of 135M parameters."""
        from tests.vendors.senders import model_server

        return self._stack.enter_context(model_server())

    @cached_property
    def proxy(self) -> str:
        """The address of `guardrail proxy` before the model."""
        return self._stack.enter_context(proxied(self.model, self.guard, self.key, self._folder))


@contextmanager
def proxied(upstream: str, guard: str, key: str, folder: Path, *more: str) -> Iterator[str]:
    """Run `guardrail proxy` on a free port; no key may be in what it writes."""
    from tests.integration.conftest import COMMAND, environment, until

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        "--upstream",
        upstream,
        "--guard",
        guard,
        "--port",
        str(port),
        "--timeout",
        "240",
        *more,
    ]
    log = folder / "proxy.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*COMMAND, "proxy", *options],
            stdout=out,
            stderr=out,
            env=environment(GUARDRAIL_API_KEY=key),
        )
    try:
        address = f"http://127.0.0.1:{port}"

        def alive() -> bool:
            assert process.poll() is None, log.read_text("utf-8")[-2000:]
            with suppress(httpx.HTTPError):
                return httpx.get(f"{address}/healthz").status_code == 200
            return False

        until(alive, "the proxy listens")
        yield address
    finally:
        process.terminate()
        process.wait(60)
    written = log.read_text("utf-8")
    assert key not in written
    assert "sk-" not in written


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let LlamaIndex's memory end after its event loop: its database's threads then complain."""
    thread = r"ignore:Exception in thread .*_connection_worker_thread"
    quiet = pytest.mark.filterwarnings(f"{thread}:pytest.PytestUnhandledThreadExceptionWarning")
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(quiet)


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The shipped default policy on the embedded pack."""
    from tests.integration.conftest import running

    dialects = {"GUARDRAIL_DIALECTS": "all", "GUARDRAIL_API_KEYS": KEY}
    with (
        ExitStack() as stack,
        running("--port", "0", **dialects) as served,
        served.client(),
    ):
        yield Ground(served.address, stack, tmp_path_factory.mktemp("litellm"))
