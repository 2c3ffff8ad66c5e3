"""Commands that are killed while they change keys or policies: what was acknowledged is there."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

from typer.testing import CliRunner

from guardrail_service.commands.main import app
from guardrail_service.policy.versions import add_version, checked_path, promote, read_policy
from guardrail_service.server.keys import read_keys_file

TIMES = 3


def _change(folder: str, pipe: Connection) -> None:
    """Add and promote versions and make keys for ever; say what is done."""
    policies, keys = Path(folder) / "policies", str(Path(folder) / "keys.json")
    start = read_policy(policies, "support").alias.live if policies.exists() else "0"
    for n in range(10_000):
        given = Path(folder) / "given.json"
        block = {"deadline_ms": 1 + int(start or 0) + n}
        given.write_text(json.dumps({"evaluator_ids": ["looping"], "policy": block}))
        line = add_version(policies, given, name="support")
        promote(policies, "support", line.version)
        pipe.send(("version", line.version))
        name = f"key-of-{start}-{n}"
        done = CliRunner().invoke(app, ["keys", "add", name, "--file", keys])
        assert done.exit_code == 0
        pipe.send(("key", name))


def test_nothing_acknowledged_is_lost_and_nothing_is_half_there(tmp_path: Path) -> None:
    """Killed at any moment, several times over; the next command goes on."""
    context = multiprocessing.get_context("spawn")
    acknowledged: dict[str, list[str]] = {"version": [], "key": []}
    for time in range(TIMES):
        ours, theirs = context.Pipe()
        process = context.Process(target=_change, args=(str(tmp_path), theirs), daemon=True)
        process.start()
        theirs.close()
        for _ in range(3 + time):
            kind, name = ours.recv()
            acknowledged[kind].append(name)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        while True:
            try:
                kind, name = ours.recv()
            except (EOFError, ConnectionResetError):
                break
            acknowledged[kind].append(name)
        policy = read_policy(tmp_path / "policies", "support")
        assert set(acknowledged["version"]) <= policy.versions.keys()
        assert policy.alias.live in policy.versions
        assert int(policy.alias.live or 0) >= int(acknowledged["version"][-1])
        for version in policy.versions.values():
            checked_path(version)
        known = {key.id for key in read_keys_file(tmp_path / "keys.json").keys}
        assert set(acknowledged["key"]) <= known
