"""Real database servers in folders of their own, on 127.0.0.1 and free ports, never as root."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

USER = "postgres"
"""The user that Debian's package makes; a server of PostgreSQL refuses to run as root."""


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def as_user(user: str = USER) -> list[str]:
    """Return what stands before a command so that it does not run as root."""
    return ["runuser", "-u", user, "--"] if os.getuid() == 0 else []


class Postgres:
    """A server of PostgreSQL that can be stopped like one that crashed, and started again."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="guardrail-postgres-"))
        self.port = free_port()
        self.bin = max(Path("/usr/lib/postgresql").glob("*/bin"))
        if os.getuid() == 0:
            shutil.chown(self.folder, USER)
        self._run("initdb", "--auth=trust", "--username=guardrail", "--no-sync", "-D", self.data)
        self.start()

    @property
    def data(self) -> str:
        """The folder of the cluster."""
        return str(self.folder / "data")

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = f"-p {self.port} -h 127.0.0.1 -k {self.folder}"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", self.data, "-w", "-t", "120", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """End it at once, as a crash would."""
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def url(self, name: str) -> str:
        """Return the URL of a new, empty database."""
        self.client("createdb", name)
        return f"postgresql://guardrail@127.0.0.1:{self.port}/{name}"

    def client(self, tool: str, *arguments: str) -> bytes:
        """Run a client of this server, such as pg_dump, and return what it prints."""
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "guardrail"]
        return self._run(tool, *where, *arguments)

    def remove(self) -> None:
        """Stop it and delete its folder."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, tool: str, *arguments: str) -> bytes:
        command = [*as_user(), str(self.bin / tool), *arguments]
        quiet = None if tool.startswith("pg_dump") else subprocess.DEVNULL
        done = subprocess.run(
            command,
            stdout=quiet or subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            check=True,
        )
        return done.stdout or b""
