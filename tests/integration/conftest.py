"""Real processes: `guardrail serve` on a free port, always ended; other commands to their end."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from guardrail_service.commands.main import app

PATIENCE_S = 240
"""How long a test waits for what an idle machine does in milliseconds, or for a start: one takes
two seconds there and took over a minute on two cores with a load of 14. Less than a test may take.
"""
COMMAND = [sys.executable, "-m", "guardrail_service.commands.main"]
FAULTY = [sys.executable, str(Path(__file__).with_name("faulty.py"))]
"""The same command with a model that waits; see there."""
SETTINGS = [n for n in os.environ if n.startswith("GUARDRAIL_") and n != "GUARDRAIL_START_CACHE"]
DETECTORS = ["groundedness", "looping", "json_schema", "text_matching"]


def environment(**changes: str) -> dict[str, str]:
    """Return this process's environment without settings of its own, plus some."""
    kept = {k: v for k, v in os.environ.items() if k not in SETTINGS}
    return {**kept, "COLUMNS": "300", "NO_COLOR": "1", **changes}


def until(condition: Callable[[], Any], what: str) -> Any:
    """Return the condition's value as soon as it is true; fail if it never is."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if value := condition():
            return value
        threading.Event().wait(0.005)
    raise AssertionError(f"never happened: {what}")


def guardrail(
    *arguments: str | Path, stdin: bytes | None = None, **env: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a `guardrail` command to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=PATIENCE_S,
        env=environment(**env),
        check=False,
    )


def here(*arguments: str | Path, **env: str) -> Result:
    """Run a command inside this process: a new one costs seconds. Not for a start that succeeds."""
    runner = CliRunner(env={**dict.fromkeys(SETTINGS, None), **env})
    return runner.invoke(app, [*map(str, arguments)])


class Served:
    """A running `guardrail serve`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self._incoming: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.address = str(self._listening()["address"])

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._incoming.put(line)
        self._incoming.put(None)

    def _take(self) -> dict[str, Any] | None:
        line = self._incoming.get(timeout=PATIENCE_S)
        if line is None:
            return None
        self.lines.append(json.loads(line))
        return self.lines[-1]

    def _listening(self) -> dict[str, Any]:
        while (fields := self._take()) is not None:
            if fields.get("event") == "listening":
                return fields
        raise AssertionError(f"the service ended with {self.process.wait()} before it listened")

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """Yield an HTTP client of the service, once it is ready."""
        transport = None
        url = self.address
        if url.startswith("unix:"):
            transport = httpx.HTTPTransport(uds=url.removeprefix("unix:"))
            url = "http://service"
        with httpx.Client(base_url=url, transport=transport, timeout=PATIENCE_S) as client:
            until(lambda: client.get("/readyz").status_code == 200, "the service is ready")
            yield client

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def end(self) -> int:
        """Ask the service to stop; return its exit status. Every log line is then in `lines`."""
        self.signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> int:
        """Wait for the end; return the exit status."""
        while self._take() is not None:
            pass
        return self.process.wait(PATIENCE_S)


@contextmanager
def running(
    *arguments: str | Path, command: Sequence[str] = COMMAND, **env: str
) -> Iterator[Served]:
    """Run `guardrail serve` and make sure that it ends."""
    process = subprocess.Popen(
        [*command, "serve", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(**env),
    )
    try:
        yield Served(process)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_S / 2)
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Start services that end with the test."""
    with ExitStack() as stack:
        yield lambda *arguments, **env: stack.enter_context(running(*arguments, **env))


@pytest.fixture
def tiny_config(write_config: Callable[..., Path]) -> Callable[..., Path]:
    """Write a configuration that the tiny pack can serve."""

    def write(
        version: str = "1", file: str = "policy.json", name: str = "tiny", **policy: Any
    ) -> Path:
        return write_config(
            file,
            calibrated_thresholds={"groundedness": {"groundedness": 0.5}},
            evaluator_ids=DETECTORS,
            policy={"name": name, "version": version, **policy},
        )

    return write


@pytest.fixture
def tiny_options(tiny: Path, tiny_config: Callable[..., Path]) -> tuple[str | Path, ...]:
    """Options with which a command runs on the tiny pack."""
    return ("--pack", tiny, "--config", tiny_config(), "--workers", "2")


@pytest.fixture
def on_tiny(tiny_options: tuple[str | Path, ...]) -> tuple[str | Path, ...]:
    """Options with which `serve` listens on a free port over the tiny pack."""
    return ("--port", "0", *tiny_options)
