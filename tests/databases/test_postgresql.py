"""The store in a real PostgreSQL does what it does in SQLite, and goes on where the server ends."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from guardrail_decisions.database import Database
from guardrail_decisions.keys import new_key
from guardrail_service.errors import NotRecorded
from tests.databases.servers import Postgres
from tests.integration.conftest import until
from tests.unit.decisions.made_up import filled, reader, record, store, word
from tests.unit.decisions.test_chain import (
    test_a_noted_head_shows_that_a_store_was_set_back,
    test_rotation_needs_no_older_key_afterwards,
    test_the_beginning_of_the_chain_goes_once_nothing_of_it_is_left,
    test_what_is_changed_behind_the_stores_back_shows,
    test_what_is_deleted_on_purpose_leaves_a_tombstone,
    test_who_has_no_key_cannot_write_another_chain,
)
from tests.unit.decisions.test_store import (
    test_a_decision_comes_back_as_it_was,
    test_a_required_record_is_durable_when_it_is_acknowledged,
    test_a_row_that_the_database_refuses_is_lost_alone,
    test_decisions_are_ordered_by_when_they_were_stored_not_by_their_clock,
    test_feedback_is_idempotent_and_a_new_word_stands_behind_the_old_one,
    test_feedback_on_a_batch_names_the_item,
    test_filters_pages_and_counts,
    test_many_threads_lose_nothing_and_store_nothing_twice,
    test_what_does_not_fit_into_the_queue_is_counted_and_never_waited_for,
)

SHARED = [
    test_a_decision_comes_back_as_it_was,
    test_a_noted_head_shows_that_a_store_was_set_back,
    test_a_required_record_is_durable_when_it_is_acknowledged,
    test_a_row_that_the_database_refuses_is_lost_alone,
    test_decisions_are_ordered_by_when_they_were_stored_not_by_their_clock,
    test_feedback_is_idempotent_and_a_new_word_stands_behind_the_old_one,
    test_feedback_on_a_batch_names_the_item,
    test_filters_pages_and_counts,
    test_many_threads_lose_nothing_and_store_nothing_twice,
    test_rotation_needs_no_older_key_afterwards,
    test_the_beginning_of_the_chain_goes_once_nothing_of_it_is_left,
    test_what_does_not_fit_into_the_queue_is_counted_and_never_waited_for,
    test_what_is_changed_behind_the_stores_back_shows,
    test_what_is_deleted_on_purpose_leaves_a_tombstone,
    test_who_has_no_key_cannot_write_another_chain,
]
"""Collected here with the fixture `url` of this folder."""
WRITER = """
import sys
from tests.unit.decisions.made_up import record, store
with store(sys.argv[1]) as opened:
    for number in range(300):
        assert opened.offer(record(number))
"""
MIGRATION = """
import sys
from guardrail_decisions.database import Database
Database(sys.argv[1]).migrate()
"""


def test_two_processes_write_one_chain(either: str) -> None:
    """Neither waits for ever, nothing is lost, and the order is one."""
    filled(either, 0)
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, either]) for _ in range(2)]
    assert [writer.wait(200) for writer in writers] == [0, 0]
    with reader(either) as stored:
        assert stored.verify().decisions == stored.count() == 600
        assert stored.verify().intact


@pytest.mark.parametrize("spooled", [False, True], ids=["queue", "spool"])
def test_what_was_taken_while_the_server_was_away_is_stored_when_it_is_back(
    spooled: bool, postgres: Postgres, url: str, tmp_path: Path, keys_file: Path
) -> None:
    """In order and once; feedback is refused meanwhile."""
    spool = tmp_path / "spool"
    more = {"spool": spool} if spooled else {}
    with store(url, texts="full", keys_file=keys_file, wait_s=1.0, **more) as opened:
        assert opened.offer(record(0))
        until(lambda: _figure(opened, "guardrail_decisions_stored_total") == 1, "one is stored")
        postgres.stop()
        try:
            assert all(opened.offer(record(number)) for number in range(1, 50))
            with pytest.raises(NotRecorded):
                opened.add_feedback(word(0))
            until(lambda: _figure(opened, "guardrail_decisions_away") == 1, "it is away")
            if spooled:
                until(lambda: spool.stat().st_size, "the spool took some")
                assert b"Ann" not in spool.read_bytes()
            else:
                assert "away" in str(opened.problem())
        finally:
            postgres.start()
        until(lambda: opened.offer(record(50)), "there is room")
        until(lambda: _figure(opened, "guardrail_decisions_away") == 0, "it is back")
    with reader(url) as stored:
        found = [one.record.request_id for one in stored.decisions()]
        assert found == [f"request-{number}" for number in range(51)]
        assert stored.verify().intact
    if spooled:
        assert spool.read_bytes() == b""


def test_a_required_record_is_refused_while_the_server_is_away(
    postgres: Postgres, url: str
) -> None:
    """In the time that was set; afterwards it is taken again."""
    with store(url, audit="required", wait_s=0.5) as opened:
        assert opened.keep(record(0))
        postgres.stop()
        try:
            assert not opened.keep(record(1))
        finally:
            postgres.start()
        until(lambda: opened.keep(record(2)), "the server is back")
    with reader(url) as stored:
        found = {one.record.request_id for one in stored.decisions()}
        assert {"request-0", "request-2"} <= found
        assert stored.verify().intact


def test_a_backup_proves_itself(either: str, postgres: Postgres, tmp_path: Path) -> None:
    """Made with the database's own tool while decisions are written, restored elsewhere."""
    with store(either) as opened:
        for number in range(50):
            opened.offer(record(number))
        until(lambda: _figure(opened, "guardrail_decisions_stored_total") == 50, "all are stored")
        opened.offer(record(50))
        copy = _backed_up(either, postgres, tmp_path)
    with reader(copy) as stored:
        report = stored.verify()
        assert report.intact
        assert report.decisions >= 50
        head = report.head
    with reader(either) as stored:
        assert stored.verify(head).intact
    with store(copy) as opened:
        assert opened.offer(record(99))


def test_keys_do_not_lie_in_the_database(url: str, tmp_path: Path, postgres: Postgres) -> None:
    """Nor texts: a dump has neither."""
    keys = tmp_path / "keys"
    keys.write_text(key := new_key())
    with store(url, texts="full", keys_file=keys) as opened:
        opened.offer(record(1, answer="zanzibar"))
    dump = postgres.client("pg_dump", url.rpartition("/")[2])
    assert b"request-1" in dump
    assert b"zanzibar" not in dump
    assert key.encode() not in dump


def _backed_up(url: str, postgres: Postgres, folder: Path) -> str:
    if url.startswith("sqlite"):
        path = folder / "backup.db"
        with (
            sqlite3.connect(url.removeprefix("sqlite:///")) as source,
            sqlite3.connect(path) as target,
        ):
            source.backup(target)
        source.close()
        target.close()
        return f"sqlite:///{path}"
    name = url.rpartition("/")[2]
    dump = postgres.folder / f"{name}.sql"
    dump.write_bytes(postgres.client("pg_dump", name))
    dump.chmod(0o644)
    copy = postgres.url(f"{name}_copy")
    postgres.client("psql", "-q", "-f", str(dump), f"{name}_copy")
    return copy


def _figure(opened: object, name: str) -> float:
    metrics = opened.figures()  # type: ignore[attr-defined]
    return next(s.value for metric in metrics for s in metric.samples if s.name == name)


def test_migrating_twice_at_once_is_migrating_once(either: str) -> None:
    """Two replicas that start together."""
    runs = [subprocess.Popen([sys.executable, "-c", MIGRATION, either]) for _ in range(2)]
    assert [run.wait(200) for run in runs] == [0, 0]
    database = Database(either)
    assert database.version() == "0002"
    database.close()


def test_a_nul_is_no_absence_of_the_database(url: str) -> None:
    """PostgreSQL has no form for it; what comes after is stored."""
    with store(url, audit="required") as opened:
        with pytest.raises(NotRecorded):
            opened.add_feedback(word(0, request_id="a\0"))
        assert not opened.keep(record(1, request_id="b\0"))
        assert opened.keep(record(2))
        assert opened.problem() is None
