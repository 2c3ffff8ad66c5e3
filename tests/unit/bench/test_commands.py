"""Options that cannot be measured are refused before anything starts."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail_bench.output import ended_by_sigterm
from guardrail_service.commands.main import app


def refused(*arguments: str) -> str:
    """Return what a command says that ends with status 2."""
    shown = CliRunner().invoke(app, ["bench", *arguments], env={"COLUMNS": "300"})
    assert shown.exit_code == 2, shown.output
    assert "Traceback" not in shown.output
    return shown.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scenario", "novel"], "expected one of chat, rag, report"),
        (["--passages", "hot"], "expected one of cold, warm"),
        (["--concurrency", "1,x"], "expected positive numbers such as 1,8,32"),
        (["--load", "0"], "expected positive numbers"),
        (["--server-cores", "-1"], "expected core numbers"),
        (["--server-cores", "99999"], "expected some of"),
        (["--resume"], "expected --json FILE"),
        (["--texts", "/nowhere.jsonl"], "expected JSON lines"),
        (["--seconds", "0"], "--seconds"),
    ],
)
def test_a_wrong_option_names_itself_and_what_it_takes(arguments: list[str], message: str) -> None:
    """In one line, with status 2."""
    assert message in refused("latency", *arguments)


def test_a_page_without_markers_is_refused_before_the_measurement(tmp_path: Path) -> None:
    """Not after an hour of it."""
    page = tmp_path / "page.md"
    assert "bench latency" in refused("latency", "--doc", str(page))
    page.write_text("nothing")
    assert "bench latency" in refused("latency", "--doc", str(page))


def test_sigterm_leaves_through_every_block_so_that_the_measured_service_ends() -> None:
    """A run that a time limit stops must not leave a service on a core."""
    before = signal.getsignal(signal.SIGTERM)
    left: list[str] = []

    def work() -> None:
        with ended_by_sigterm(), ExitStack() as stack:
            stack.callback(left.append, "the service's block")
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit) as stopped:
        work()
    assert left == ["the service's block"]
    assert stopped.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before
