"""A store with the tables of version 0001 is migrated: nothing changes, and it goes on."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from guardrail_decisions.database import Database
from guardrail_service.errors import ConfigurationError
from tests.unit.decisions.made_up import filled, reader, record

SCRIPT = Path(__file__).with_name("decisions_0001.sql")


def test_a_store_of_the_version_before_is_migrated_and_proves_itself(tmp_path: Path) -> None:
    """Refused until then, by name of the command; decisions, texts and feedback are as written."""
    path = tmp_path / "decisions.db"
    connection = sqlite3.connect(path)
    connection.executescript(SCRIPT.read_text("utf-8"))
    connection.close()
    url = f"sqlite:///{path}"
    with pytest.raises(ConfigurationError, match="guardrail decisions migrate"):
        filled(url, 0)
    database = Database(url)
    database.migrate()
    database.migrate()
    database.close()
    with reader(url) as stored:
        report = stored.verify()
        assert (report.faults, report.decisions, report.entries) == ([], 3, 4)
        found = list(stored.decisions(viewer="bob"))
    assert [one.record.request_id for one in found] == ["request-0", "request-1", "request-2"]
    assert found[0].record.detectors == record(0).detectors
    assert found[0].record.answer == "Ann did."
    assert [(w.caller, w.label, w.draw) for w in found[0].feedback] == [("ann", "fail", None)]
    filled(url, 2)
    with reader(url) as stored:
        assert stored.verify().intact
        assert stored.count() == 5
