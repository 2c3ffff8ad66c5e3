"""A cluster that is not there is one line, in seconds; `.ci/ray` has clusters that are."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail_offline.judge.judge_client import JudgeUnusable
from guardrail_offline.runs.pool import WorkerLost
from guardrail_offline.runs.ray_engine import _raised, _refuse_silence, refusal
from guardrail_service.commands.main import app
from guardrail_service.errors import ConfigurationError, PackError, ServiceError


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--engine", "ray"], "rag-guardrail-offline[ray]"),
        (["--engine", "spark"], "--engine: found 'spark'; expected local or ray"),
        (["--ray-address", "auto"], "--ray-address: found the engine local; expected --engine ray"),
    ],
)
def test_what_is_missing_is_one_line(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extra, an engine of that name, the option that makes sense of another."""
    monkeypatch.setitem(sys.modules, "ray", None)
    lab = tmp_path / "lab.jsonl"
    lab.write_text('{"question": "q", "answer": "a", "expected_output": "a"}\n')
    given = ["evaluate", str(lab), "-e", "rouge", "-o", str(tmp_path / "out"), *words]
    ended = CliRunner().invoke(app, given, env={"COLUMNS": "200"})
    assert ended.exit_code == 2
    assert told in " ".join(ended.output.split())


def test_an_address_where_nobody_listens_is_found_out_first() -> None:
    """Ray itself would try for minutes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ConfigurationError, match=f"{address}: found nobody"):
            _refuse_silence(address)
    with pytest.raises(ConfigurationError, match="expected HOST:PORT or auto"):
        _refuse_silence("somewhere")
    for known in (None, "auto", "local"):
        _refuse_silence(known)


@pytest.mark.parametrize(
    "error",
    [
        ConfigurationError("a", "b", "c"),
        JudgeUnusable("the key is wrong"),
        PackError("a file is missing"),
        WorkerLost("a process ended with -9"),
    ],
)
def test_an_error_of_a_worker_says_the_same_here(error: ServiceError) -> None:
    """Its class travels as a code: classes with arguments of their own cannot be sent."""
    found = _raised(refusal(error))
    assert str(found) == str(error)
    if isinstance(error, ConfigurationError | JudgeUnusable):
        assert type(found) is type(error)
