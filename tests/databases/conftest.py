"""Run by `.ci/databases` only: real servers, started for the tests on ports of 127.0.0.1."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from shutil import which

import pytest

from tests.databases.servers import Postgres
from tests.integration.conftest import on_tiny, serve, tiny_config, tiny_options
from tests.unit.decisions.conftest import keys_file

__all__ = ["keys_file", "on_tiny", "serve", "tiny_config", "tiny_options"]

PATIENCE_S = 60.0
collect_ignore_glob = [] if os.environ.get("GUARDRAIL_DATABASES") else ["test_*.py"]
_NUMBERS = count()


def free_port() -> int:
    """Return a port of this machine that nobody uses."""
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return int(found.getsockname()[1])


class RedisServer:
    """A Redis that keeps nothing on disk and can be stopped and started again.

    Args:
        folder: Where it runs.
    """

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        program = which("redis-server")
        assert program, "redis-server is missing: see .ci/databases"
        options = {"port": self.port, "bind": "127.0.0.1", "save": "", "dir": self._folder}
        given = [part for key, value in options.items() for part in (f"--{key}", str(value))]
        self._process = subprocess.Popen([program, *given], stdout=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE_S
        while not self._answers():
            assert self._process.poll() is None, "redis-server has ended"
            assert time.monotonic() < end, "redis-server does not answer"
            time.sleep(0.02)

    def kill(self) -> None:
        """End it at once, as a fault would; what it counted is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        try:
            with closing(socket.create_connection(("127.0.0.1", self.port), 1)) as asked:
                asked.sendall(b"PING\r\n")
                return asked.recv(16).startswith(b"+PONG")
        except OSError:
            return False


@contextmanager
def _running(folder: Path) -> Iterator[RedisServer]:
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """Return a Redis of one test."""
    with _running(tmp_path) as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Run a server of PostgreSQL for all tests."""
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture
def url(postgres: Postgres) -> str:
    """Return a new database of PostgreSQL."""
    return postgres.url(f"store{next(_NUMBERS)}")


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a new database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'decisions.db'}"
    found: str = request.getfixturevalue("url")
    return found
