"""Decisions and feedback are written in order, once, and come back as they were."""

from __future__ import annotations

import dataclasses
import logging
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from guardrail_decisions.database import LATEST, Database, lock_head
from guardrail_decisions.reading import Filters, from_json, to_json
from guardrail_service.errors import ConfigurationError, NotRecorded
from guardrail_service.server.decisions import ShadowDecision
from tests.unit.decisions.made_up import NOON, filled, reader, record, settings, store, word


def test_a_decision_comes_back_as_it_was(url: str) -> None:
    """With every bit of its scores, its spans and what they depend on; without its texts."""
    shadow = ShadowDecision("next", "4", "b" * 64, "pass", ("pii",))
    given = record(0, shadow=(shadow,), share=0.25, item=3)
    with store(url) as opened:
        opened.offer(given)
    with reader(url) as stored:
        (found,) = stored.decisions()
    assert found.record == dataclasses.replace(given, question=None, answer="", contexts=())
    assert found.flagged == ("groundedness",)
    assert found.text_mode == "none"


def test_decisions_are_ordered_by_when_they_were_stored_not_by_their_clock(url: str) -> None:
    """A clock that is set back moves nothing."""
    with store(url) as opened:
        for number in range(20):
            opened.offer(record(number, time=NOON - timedelta(hours=number)))
    with reader(url) as stored:
        assert [found.key for found in stored.decisions()] == list(range(1, 21))
        names = [found.record.request_id for found in stored.decisions()]
        assert stored.verify().intact
    assert names == [f"request-{number}" for number in range(20)]


def test_filters_pages_and_counts(url: str) -> None:
    """Each filter alone, and the newest first."""
    with store(url) as opened:
        for number in range(30):
            opened.offer(record(number, time=NOON + timedelta(minutes=number)))
        assert opened.add_feedback(word(4)) == "stored"
    with reader(url) as stored:
        assert stored.count() == 30
        assert stored.count(Filters(decision="flag")) == 10
        assert stored.count(Filters(detector="groundedness")) == 10
        assert stored.count(Filters(detector="ground")) == 0
        assert stored.count(Filters(since=NOON + timedelta(minutes=20))) == 10
        assert stored.count(Filters(until=NOON + timedelta(minutes=5), caller="app")) == 5
        assert stored.count(Filters(labelled=True)) == 1
        for odd in ("app\0", "app\ud800"):
            assert stored.count(Filters(caller=odd)) == stored.count(Filters(detector=odd)) == 0
            assert stored.delete(Filters(request_id=odd)) == 0
        newest = [f.key for f in stored.decisions(newest_first=True, limit=3)]
        assert newest == [30, 29, 28]
        assert [f.key for f in stored.decisions(after=10, limit=2)] == [11, 12]
        found = stored.get("request-4")
        assert found is not None
        assert [w.label for w in found.feedback] == ["pass"]
        assert stored.get("nobody") is None


def test_a_required_record_is_durable_when_it_is_acknowledged(url: str) -> None:
    """Another reader sees it at once."""
    with store(url, audit="required") as opened:
        assert opened.keep(record(1))
        with reader(url) as stored:
            assert stored.count() == 1


def test_many_threads_lose_nothing_and_store_nothing_twice(url: str) -> None:
    """Eight threads in each of two stores."""
    with store(url) as one, store(url) as other:

        def offer(opened: object, start: int) -> None:
            for number in range(start, start + 25):
                assert (one if opened is one else other).offer(record(number))

        threads = [
            threading.Thread(target=offer, args=(s, 100 * n))
            for n, s in enumerate([one, other] * 4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with reader(url) as stored:
        assert len({found.record.record_id for found in stored.decisions()}) == 200
        report = stored.verify()
    assert (report.intact, report.decisions, report.entries) == (True, 200, 200)


def test_what_does_not_fit_into_the_queue_is_counted_and_never_waited_for(url: str) -> None:
    """Ten decisions for a queue of four, while another writer holds the database."""
    with store(url, queue=4) as opened, reader(url) as stored:  # noqa: SIM117 - closed in turn
        with stored.writer.database.writing() as other:
            lock_head(other)
            taken = sum(opened.offer(record(number, contexts=())) for number in range(600))
            assert opened.problem() == "the queue of decisions is full"
    figures = {
        (sample.name, sample.labels.get("reason")): sample.value
        for metric in opened.figures()
        for sample in metric.samples
    }
    assert 4 <= taken < 600
    assert figures["guardrail_decisions_stored_total", None] == taken
    assert figures["guardrail_decisions_lost_total", "queue"] == 600 - taken


def test_feedback_is_idempotent_and_a_new_word_stands_behind_the_old_one(url: str) -> None:
    """A comment is part of the word where comments are kept."""
    with store(url) as opened:
        opened.offer(record(1))
        assert opened.add_feedback(word(1)) == "stored"
        assert opened.add_feedback(word(1)) == "known"
        assert opened.add_feedback(word(1, "fail")) == "stored"
        assert opened.add_feedback(word(1, "fail", caller="bob")) == "stored"
        assert opened.add_feedback(word(1, "fail", metric="groundedness.groundedness")) == "stored"
        assert opened.add_feedback(word(2)) == "unknown"
    with reader(url) as stored:
        (found,) = stored.decisions()
        assert [(w.caller, w.label) for w in found.feedback] == [
            ("ann", "pass"),
            ("ann", "fail"),
            ("bob", "fail"),
            ("ann", "fail"),
        ]
        assert stored.verify().intact


def test_feedback_on_a_batch_names_the_item(url: str) -> None:
    """Or the answer is that several decisions have this id."""
    with store(url) as opened:
        for item in range(3):
            opened.offer(record(1, item=item))
        assert opened.add_feedback(word(1)) == "ambiguous"
        assert opened.add_feedback(word(1, item=2)) == "stored"
        assert opened.add_feedback(word(1, item=7)) == "unknown"
    with reader(url) as stored:
        assert [f.record.item for f in stored.decisions(Filters(labelled=True))] == [2]


def test_an_exported_decision_is_read_like_a_stored_one(url: str) -> None:
    """Line by line, feedback too."""
    with store(url) as opened:
        opened.offer(record(0))
        opened.add_feedback(word(0))
    with reader(url) as stored:
        (found,) = stored.decisions()
    assert from_json(to_json(found)) == found


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"texts": "full"}, "GUARDRAIL_DECISIONS_KEYS_FILE"),
        ({"texts": "hashes"}, "GUARDRAIL_DECISIONS_KEYS_FILE"),
    ],
    ids=["full", "hashes"],
)
def test_settings_that_do_not_fit_stop_the_start(
    url: str, wrong: dict[str, object], said: str
) -> None:
    """With the name of the setting, and before any table or file is made."""
    with pytest.raises(ConfigurationError, match=said):
        filled(url, 0, **wrong)
    with pytest.raises(ConfigurationError, match=r"no (store|file)"):
        Database(url).ready(create=False)


def test_new_tables_are_one_line_of_the_log(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """And none where they are there already."""
    caplog.set_level(logging.INFO)
    for _ in range(2):
        filled(url, 0)
    assert [r.getMessage() for r in caplog.records if r.levelno == logging.INFO] == [
        f"decisions: tables of version {LATEST}, before: none"
    ]


def test_a_folder_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    """Without the path of anything but the setting."""
    with pytest.raises(ConfigurationError, match="GUARDRAIL_DECISIONS_URL"):
        filled(f"sqlite:///{tmp_path}/nowhere/decisions.db", 0)


def test_nobody_else_can_read_a_new_file(tmp_path: Path) -> None:
    """Neither the database nor what SQLite puts beside it."""
    with store(f"sqlite:///{tmp_path / 'decisions.db'}") as opened:
        opened.offer(record(1))
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}
    assert settings("sqlite:///x").texts == "none"


def test_a_row_that_the_database_refuses_is_lost_alone(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Decisions and feedback beside it are stored."""
    refused: Any = None
    with store(url) as opened:
        for number in range(5):
            opened.offer(record(number, caller=refused if number == 2 else "app"))
        opened.offer(record(5, request_id="secret \ud800"))
        assert opened.add_feedback(word(4)) == "stored"
        assert opened.keep(record(6))
        with pytest.raises(NotRecorded):
            opened.add_feedback(word(4, caller=refused))
        assert opened.add_feedback(word(3)) == "stored"
        assert opened.problem() is None
    figures = {
        (sample.name, sample.labels.get("reason")): sample.value
        for metric in opened.figures()
        for sample in metric.samples
    }
    assert figures["guardrail_decisions_lost_total", "fault"] == 2
    assert figures["guardrail_decisions_stored_total", None] == 5
    assert "secret" not in caplog.text
    assert "away" not in caplog.text
    assert caplog.text.count("the database refuses its row") == 3
    with reader(url) as stored:
        assert [f.record.request_id for f in stored.decisions()] == [
            f"request-{number}" for number in (0, 1, 3, 4, 6)
        ]
        assert stored.verify().intact


def test_who_may_label_only_its_own_decisions_learns_nothing_of_others(url: str) -> None:
    """Another caller's id is answered as one that is not there, however many of them there are."""
    with store(url) as opened:
        for item in range(2):
            opened.offer(record(1, item=item, caller="bob"))
        opened.offer(record(2, caller="ann"))
        opened.offer(record(2, caller="bob"))
        assert opened.add_feedback(word(1, only_own=True)) == "unknown"
        assert opened.add_feedback(word(1, only_own=True, item=0)) == "unknown"
        assert opened.add_feedback(word(2, only_own=True)) == "stored"
        assert opened.add_feedback(word(1, item=0)) == "stored"
