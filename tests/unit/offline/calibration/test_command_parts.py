"""What calibrate commands share: a missing extra or an unwritable file is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from guardrail_offline.calibration.command_parts import calibrates, say, write
from guardrail_service.errors import ConfigurationError


def test_a_missing_library_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Instead of a traceback."""

    @calibrates
    def command() -> None:
        raise ModuleNotFoundError("No module named 'scipy.special'", name="scipy.special")

    with pytest.raises(typer.Exit) as ended:
        command()
    assert ended.value.exit_code == 2
    assert "pip install 'rag-guardrail-offline'" in capsys.readouterr().err


def test_our_own_missing_module_is_a_bug() -> None:
    """It is not hidden behind an extra."""

    @calibrates
    def command() -> None:
        raise ModuleNotFoundError(
            "No module named 'guardrail_service.x'", name="guardrail_service.x"
        )

    with pytest.raises(ModuleNotFoundError):
        command()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """Text and bytes alike."""
    for data in ("text", b"bytes"):
        write(tmp_path / "out", data)
        with pytest.raises(ConfigurationError, match="a file to write to"):
            write(tmp_path / "absent" / "out", data)


def test_sentences_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets are no markup."""
    say(["[red]flags[/red]"])
    assert "[red]flags[/red]" in capsys.readouterr().out


def test_what_utf8_cannot_hold_is_written_escaped(tmp_path: Path) -> None:
    """As JSON escapes it, so that reading gives it back."""
    write(tmp_path / "x.jsonl", json.dumps({"answer": "ü \ud800"}, ensure_ascii=False))
    assert json.loads((tmp_path / "x.jsonl").read_text("utf-8")) == {"answer": "ü \ud800"}
