"""The commands under `guardrail decisions`, on a store of made-up decisions."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from pyarrow import parquet
from sqlalchemy import text
from typer.testing import CliRunner, Result

from guardrail_decisions.keys import new_key
from guardrail_decisions.reading import records
from guardrail_service.commands.main import app
from tests.unit.decisions.made_up import filled, reader, record, store, word

ENV = {"COLUMNS": "250"}


@pytest.fixture
def full(url: str, keys_file: Path) -> dict[str, str]:
    """Return the environment of a store with six decisions and their texts."""
    with store(url, texts="full", keys_file=keys_file) as opened:
        for number in range(6):
            opened.offer(record(number, caller=f"app-{number % 2}", answer="=1+1"))
        opened.add_feedback(word(2, "fail", comment="No."))
    named = {"GUARDRAIL_DECISIONS_URL": url, "GUARDRAIL_DECISIONS_KEYS_FILE": str(keys_file)}
    return {**ENV, **named}


def run(env: dict[str, str], *words: str) -> Result:
    """Run `guardrail decisions` as a user does."""
    return CliRunner().invoke(app, ["decisions", *words], env=env)


def test_decisions_are_listed_and_shown(full: dict[str, str]) -> None:
    """The latest first; texts only to somebody who is named."""
    listed = run(full, "list", "--decision", "flag").stdout
    assert "request-3" in listed
    assert "request-1" not in listed
    found = json.loads(run(full, "list", "--json", "--limit", "2").stdout)
    assert [one["request_id"] for one in found] == ["request-5", "request-4"]
    shown = json.loads(run(full, "show", "request-2").stdout)
    assert (shown["answer"], shown["feedback"][0]["label"]) == (None, "fail")
    shown = json.loads(run(full, "show", "request-2", "--viewer", "bob").stdout)
    assert shown["answer"] == "=1+1"
    with reader(full["GUARDRAIL_DECISIONS_URL"]) as stored:
        assert [view.viewer for view in stored.views()] == ["bob"]


def test_a_file_that_is_not_there_is_named_and_not_made(tmp_path: Path) -> None:
    """By the option or the setting that names it."""
    file = tmp_path / "nothere.db"
    for env, words, named_by in (
        ({}, ["--url", f"sqlite:///{file}"], "--url"),
        ({"GUARDRAIL_DECISIONS_URL": f"sqlite:///{file}"}, [], "GUARDRAIL_DECISIONS_URL"),
    ):
        done = run({**ENV, **env}, "list", *words)
        assert done.exit_code == 2
        said = " ".join(done.output.split())
        assert said == f"error: {named_by}: found no file {file}; expected a store"
        assert not file.exists()


def test_an_export_has_everything_that_was_asked_for(full: dict[str, str], tmp_path: Path) -> None:
    """JSON lines are read back whole; a spreadsheet computes no cell."""
    lines, table, columns = (tmp_path / f"export{s}" for s in (".jsonl", ".csv", ".parquet"))
    for path in (lines, table, columns):
        made = run(full, "export", str(path), "--viewer", "bob", "--caller", "app-0")
        assert made.output.startswith("3 decisions"), made.output
        assert path.stat().st_mode & 0o077 == 0
    assert [found.record.request_id for found in records(lines)] == [
        "request-0",
        "request-2",
        "request-4",
    ]
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["answer"] for row in rows} == {"'=1+1"}
    assert [row["metric"] for row in rows if row["metric"]] == ["groundedness"]
    assert parquet.read_table(columns).column("label").to_pylist().count("fail") == 1
    assert run(full, "export", str(table)).exit_code == 2


def test_deleting_purging_and_verifying(full: dict[str, str]) -> None:
    """The chain accounts for what is gone, and shows what was taken behind its back."""
    assert run(full, "delete").exit_code == 2
    assert run(full, "delete", "--request-id", "request-2").stdout == "1 decisions deleted\n"
    head = json.loads(run(full, "verify", "--json").stdout)["head"]
    assert run(full, "purge", "--older-than", "36500d").stdout == "0 decisions deleted\n"
    assert run(full, "purge", "--older-than", "5").exit_code == 2
    verified = run(full, "verify", "--head", head)
    assert verified.exit_code == 0, verified.output
    assert "5 decisions as they were written, 2 entries deleted" in verified.stdout
    url = full["GUARDRAIL_DECISIONS_URL"]
    with reader(url) as stored, stored.writer.database.writing() as connection:
        connection.execute(text("DELETE FROM decisions WHERE seq = 1"))
    assert run(full, "verify").exit_code == 1


def test_keys_are_made_and_rotated(full: dict[str, str], tmp_path: Path) -> None:
    """Afterwards the new key alone reads everything."""
    key = run(full, "new-key").stdout.strip()
    assert len(key) == len(new_key())
    both = tmp_path / "both"
    both.write_text(f"{key}\n{Path(full['GUARDRAIL_DECISIONS_KEYS_FILE']).read_text()}")
    assert run(full, "rotate", "--keys-file", str(both)).stdout.startswith("7 texts")
    both.write_text(key)
    shown = run(full, "show", "request-2", "--viewer", "x", "--keys-file", str(both))
    assert json.loads(shown.stdout)["answer"] == "=1+1"


@pytest.mark.parametrize("word", ["list", "verify", "migrate"])
def test_a_command_without_a_store_says_what_is_missing(word: str) -> None:
    """One line, and status 2."""
    said = run(ENV, word)
    assert (said.exit_code, said.output.count("\n")) == (2, 1)
    assert "GUARDRAIL_DECISIONS_URL" in said.output


def test_a_store_of_the_release_before_is_migrated(url: str) -> None:
    """The service and the commands refuse it until then."""
    filled(url, 1)
    env = {**ENV, "GUARDRAIL_DECISIONS_URL": url}
    with reader(url) as stored, stored.writer.database.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0003'"))
    assert "later release" in run(env, "migrate").output
    assert "guardrail decisions migrate" in run(env, "list").output
