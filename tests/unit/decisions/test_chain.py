"""The chain shows what was changed behind the store's back, and accounts for what it deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from guardrail_decisions.chain import Graves, ranges
from guardrail_decisions.keys import new_key
from guardrail_decisions.reading import Filters
from tests.unit.decisions.made_up import NOON, filled, reader, record, store, word

COUNT = 12
ATTACKS: dict[str, tuple[str, str]] = {
    "a score is changed": (
        "UPDATE decisions SET body = replace(body, '0.5', '0.1') WHERE seq = 4",
        "4 the decision was changed",
    ),
    "a decision is turned": (
        "UPDATE decisions SET decision = 'pass' WHERE seq = 1",
        "1 the decision was changed",
    ),
    "a text is changed": (
        "UPDATE texts SET body = replace(body, 'question', 'answer') WHERE seq = 5",
        "5 the decision was changed",
    ),
    "a label is changed": (
        "UPDATE feedback SET label = 'fail'",
        "13 the feedback was changed",
    ),
    "a decision is deleted": (
        "DELETE FROM decisions WHERE seq = 6",
        "6 the decision was deleted, with no tombstone",
    ),
    "an entry is deleted": (
        "DELETE FROM chain WHERE seq = 6",
        "6 entries up to 6 are missing",
    ),
    "a decision is added": (
        "INSERT INTO decisions SELECT 99, 'x', request_id, item, time, caller, route, policy, "
        "policy_version, policy_hash, decision, action, status, flagged, share, body "
        "FROM decisions WHERE seq = 1",
        "99 a row that the chain does not have",
    ),
    "the end is cut off": (
        "DELETE FROM chain WHERE seq > 9; DELETE FROM decisions WHERE seq > 9; "
        "DELETE FROM texts WHERE seq > 9; DELETE FROM feedback",
        "10 the chain does not end where it was written to",
    ),
    "the beginning is cut off": (
        "DELETE FROM chain WHERE seq < 4; DELETE FROM decisions WHERE seq < 4; "
        "DELETE FROM texts WHERE seq < 4",
        "1 entries up to 3 are missing",
    ),
    "two decisions change places": (
        "UPDATE decisions SET seq = -1 WHERE seq = 2; UPDATE decisions SET seq = 2 WHERE seq = 3; "
        "UPDATE decisions SET seq = 3 WHERE seq = -1",
        "2 the decision was changed",
    ),
    "two entries change places": (
        "UPDATE chain SET seq = -1 WHERE seq = 2; UPDATE chain SET seq = 2 WHERE seq = 3; "
        "UPDATE chain SET seq = 3 WHERE seq = -1",
        "2 the entry was changed, moved or replaced",
    ),
}


def change(url: str, statements: str) -> None:
    """Do to a store what it would not do itself."""
    with reader(url) as stored, stored.writer.database.writing() as connection:
        for statement in statements.split("; "):
            connection.execute(text(statement))


def faults(url: str, **given: str) -> list[str]:
    """Return what `verify` finds."""
    with reader(url) as stored:
        return [f"{fault.seq} {fault.what}" for fault in stored.verify(**given).faults]


def kept(url: str, keys_file: Path) -> None:
    """Store some decisions with texts, and one word on them."""
    with store(url, texts="hashes", keys_file=keys_file) as opened:
        for number in range(COUNT):
            opened.offer(record(number))
        opened.add_feedback(word(1))


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_changed_behind_the_stores_back_shows(
    attack: str, url: str, keys_file: Path
) -> None:
    """With the place."""
    statements, expected = ATTACKS[attack]
    kept(url, keys_file)
    assert faults(url) == []
    change(url, statements)
    assert expected in faults(url)


def test_what_is_deleted_on_purpose_leaves_a_tombstone(url: str, keys_file: Path) -> None:
    """A decision goes with its texts, feedback and views, and the chain still proves the rest."""
    kept(url, keys_file)
    with reader(url) as stored:
        stored.writer.view([2], "bob", "2026-11-23T12:00:00.000000+00:00")
        assert [view.viewer for view in stored.views()] == ["bob"]
        assert stored.delete(Filters(request_id="request-1")) == 1
        assert stored.delete(Filters(caller="nobody")) == 0
        assert (stored.count(), list(stored.feedback()), list(stored.views())) == (11, [], [])
        report = stored.verify()
    assert (report.intact, report.decisions, report.deleted) == (True, COUNT - 1, 3)
    change(url, "DELETE FROM chain WHERE kind = 'tombstone'")
    assert "2 the decision was deleted, with no tombstone" in faults(url)


def test_deleting_everything_needs_a_filter(url: str, keys_file: Path) -> None:
    """So that a forgotten one deletes nothing."""
    kept(url, keys_file)
    with reader(url) as stored, pytest.raises(ValueError, match="no filter"):
        stored.delete(Filters())


def test_the_beginning_of_the_chain_goes_once_nothing_of_it_is_left(url: str) -> None:
    """The tombstone has the hash at the cut, so that what is left is still proved."""
    with store(url) as opened:
        for number in range(1_400):
            opened.offer(record(number, time=NOON, detectors={}))
    with reader(url) as stored:
        head = stored.verify().head
        assert stored.delete(Filters(until=NOON.replace(hour=13))) == 1_400
    with store(url) as opened:
        opened.offer(record(1))
    with reader(url) as stored:
        report = stored.verify()
        assert report.intact, report.faults
        assert report.entries < 10
        assert stored.verify(head).intact
    change(
        url, "UPDATE chain SET body = replace(body, '\"cut\"', '\"cud\"') WHERE body IS NOT NULL"
    )
    assert faults(url)


def test_who_has_no_key_cannot_write_another_chain(url: str, keys_file: Path) -> None:
    """The store without keys is changed and its chain computed anew: only the seal shows it."""
    filled(url, COUNT, keys_file=keys_file)
    with reader(url, keys_file) as stored:
        assert stored.verify().sealed is True
    with reader(url) as without:  # whoever has the database and not the keys
        without.delete(Filters(request_id="request-1"))
        assert without.verify().intact
    with reader(url, keys_file) as stored:
        found = [fault.what for fault in stored.verify().faults]
    assert found == ["the end has no seal although there are keys"]


def test_a_noted_head_shows_that_a_store_was_set_back(url: str) -> None:
    """A whole copy of an earlier state proves itself; the noted head does not fit it."""
    filled(url, 3)
    with reader(url) as stored:
        early = stored.verify().head
    filled(url, 3)
    with reader(url) as stored:
        late = stored.verify().head
    assert faults(url, noted=early) == faults(url, noted=late) == []
    assert faults(url, noted=f"9:{'0' * 64}") == ["7 cut off: entry 9 was noted"]
    assert faults(url, noted=f"3:{'0' * 64}") == ["3 not the entry that was noted"]


def test_rotation_needs_no_older_key_afterwards(url: str, keys_file: Path, tmp_path: Path) -> None:
    """Texts and comments are read with the new key alone, and the chain is what it was."""
    with store(url, keys_file=keys_file, texts="full") as opened:
        for number in range(3):
            opened.offer(record(number))
        opened.add_feedback(word(1, comment="Ann did not."))
    both, new = tmp_path / "both", tmp_path / "new"
    key = new_key()
    both.write_text(f"{key}\n{keys_file.read_text()}")
    new.write_text(key)
    with reader(url, both) as stored:
        assert stored.rotate() == 4
    with reader(url, new) as stored:
        found = list(stored.decisions(viewer="bob"))
        assert {f.record.answer for f in found} == {"Ann did."}
        assert found[1].feedback[0].comment == "Ann did not."
        report = stored.verify()
    assert (report.intact, report.sealed) == (True, True)


@pytest.mark.parametrize(
    ("places", "expected"),
    [([], []), ([3, 1, 2], [(1, 3)]), ([1, 3, 4, 9], [(1, 1), (3, 4), (9, 9)])],
    ids=["none", "one", "three"],
)
def test_places_are_written_as_ranges(places: list[int], expected: list[tuple[int, int]]) -> None:
    """And found in them."""
    assert ranges(places) == expected
    graves = Graves(expected)
    assert [n for n in range(12) if graves.holds(n)] == sorted(places)
