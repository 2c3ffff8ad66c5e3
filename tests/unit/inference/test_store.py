"""The store: bit for bit, bounded, never a wrong value, whatever lies on the disk."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.errors import ConfigurationError
from guardrail_service.inference import store as module
from guardrail_service.inference.store import Store, packed, unpacked
from guardrail_service.types import RowOutput

MEBI = 2**20
Open = Callable[..., Store]


def outputs(seed: int, tokens: int = 8) -> RowOutput:
    """Return made-up outputs, among them what text formats lose: NaN, -0.0, subnormals."""
    states = np.random.default_rng(seed).normal(size=(tokens, 16)).astype(np.float32)
    states[0, :4] = np.nan, -0.0, 1e-42, np.inf
    return {"states": states, "length": np.array(tokens, dtype=np.int64)}


def same(left: RowOutput | None, right: RowOutput) -> bool:
    """Return whether two outputs are the same bit for bit."""
    return left is not None and {
        name: (v.dtype, v.shape, v.tobytes()) for name, v in left.items()
    } == {name: (v.dtype, v.shape, v.tobytes()) for name, v in right.items()}


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Open]:
    """Open stores on one file that are closed at the end."""
    made: list[Store] = []

    def one(limit: int = 64 * MEBI) -> Store:
        made.append(Store(tmp_path / "store.sqlite", limit))
        return made[-1]

    yield one
    for store in made:
        store.close()


def test_values_survive_a_restart_bit_for_bit(open_store: Open) -> None:
    """Written by one store, read by the next."""
    first = open_store()
    first.shelf(b"m").put(b"key", outputs(1))
    first.close()
    assert same(open_store().shelf(b"m").get(b"key"), outputs(1))


def test_another_model_finds_nothing(open_store: Open) -> None:
    """A shelf holds what depends on the same things only."""
    store = open_store()
    store.shelf(b"old").put(b"key", outputs(1))
    store.flush()
    assert store.shelf(b"new").get(b"key") is None
    assert store.shelf(b"old").get(b"other") is None


def test_two_processes_share_a_store(open_store: Open) -> None:
    """What one writes, the other reads; both may write the same."""
    one, two = open_store().shelf(b"m"), open_store()
    one.put(b"key", outputs(1))
    one._store.flush()
    two.shelf(b"m").put(b"key", outputs(1))
    two.flush()
    assert same(two.shelf(b"m").get(b"key"), outputs(1))
    assert same(one.get(b"key"), outputs(1))


def test_the_store_is_bounded(open_store: Open) -> None:
    """What was used longest ago goes first."""
    store = open_store(MEBI)
    shelf = store.shelf(b"m")
    for n in range(400):
        shelf.put(str(n).encode(), outputs(n, tokens=128))
        store.flush()
    assert store.stats().bytes <= MEBI
    assert same(shelf.get(b"399"), outputs(399, tokens=128))
    assert shelf.get(b"0") is None


def test_use_is_noted(open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read stays longer than what is not."""
    store = open_store()
    shelf = store.shelf(b"m")
    now = 1_000_000.0
    monkeypatch.setattr(module.time, "time", lambda: now)
    shelf.put(b"read", outputs(1))
    shelf.put(b"unread", outputs(2))
    store.flush()
    now += 7_200
    assert shelf.get(b"read")
    store.flush()
    with store._lock:
        store._evict()
    assert shelf.get(b"unread") is None
    assert shelf.get(b"read")


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_value_is_never_returned(place: int, flip: int) -> None:
    """One changed byte anywhere, in the values or in what describes them."""
    value = bytearray(packed(outputs(1)))
    value[place % len(value)] ^= flip
    assert unpacked(bytes(value)) is None


def test_a_damaged_value_on_disk_is_left_out_and_said(
    open_store: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The text is then computed again."""
    store = open_store()
    store.shelf(b"m").put(b"key", outputs(1))
    store.close()
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as database, database:
        database.execute("UPDATE outputs SET value = zeroblob(length(value))")
    again = open_store()
    assert again.shelf(b"m").get(b"key") is None
    assert again.stats().damaged == 1
    assert "damaged" in caplog.text


def test_a_damaged_file_is_begun_anew(
    open_store: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Found at the start or while it runs: a warning, an empty store, no wrong value."""
    store = open_store()
    for n in range(50):
        store.shelf(b"m").put(str(n).encode(), outputs(n, tokens=64))
    store.close()
    path = tmp_path / "store.sqlite"
    data = bytearray(path.read_bytes())
    data[100:] = bytes(len(data) - 100)
    path.write_bytes(data)
    again = open_store()
    shelf = again.shelf(b"m")
    assert shelf.get(b"1") is None
    shelf.put(b"new", outputs(7))
    again.flush()
    assert same(shelf.get(b"new"), outputs(7))
    assert "begun anew" in caplog.text


@pytest.mark.parametrize("content", [b"a letter to somebody", b"SQLite format 3"])
def test_a_file_of_somebody_else_is_refused(tmp_path: Path, content: bytes) -> None:
    """It is not touched: a wrong path must not cost anybody a file."""
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="GUARDRAIL_STORE"):
        Store(path, MEBI)
    assert path.read_bytes() == content


def test_a_database_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """Also one that SQLite can read."""
    path = tmp_path / "theirs.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE theirs (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match="something else"):
        Store(path, MEBI)
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """At the start, not at the first request."""
    with pytest.raises(ConfigurationError, match="GUARDRAIL_STORE"):
        Store(tmp_path / "missing" / "store.sqlite", MEBI)
    with pytest.raises(ConfigurationError, match="GUARDRAIL_STORE"):
        Store(tmp_path, MEBI)


def test_a_full_disk_costs_no_answer(
    open_store: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The writer says so and goes on; nothing waits for it."""
    store = open_store()

    def full(_batch: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as context:
        context.setattr(store, "_write_batch", full)
        store.shelf(b"m").put(b"lost", outputs(1))
        store.flush()
    assert "OperationalError" in caplog.text
    store.shelf(b"m").put(b"kept", outputs(2))
    store.flush()
    assert store.shelf(b"m").get(b"lost") is None
    assert store.shelf(b"m").get(b"kept")


def test_a_closed_store_answers_and_keeps_nothing(open_store: Open) -> None:
    """Rows that end after the service has closed it find nothing and break nothing."""
    store = open_store()
    store.close()
    store.close()
    store.shelf(b"m").put(b"late", outputs(1))
    assert store.shelf(b"m").get(b"late") is None
    assert store.stats().bytes == 0


def test_a_new_file_that_another_process_looks_at_is_waited_for(tmp_path: Path) -> None:
    """Several processes that start together open it at the same moment."""
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path, check_same_thread=False, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM sqlite_master").fetchall()
        leaving = threading.Timer(0.3, other.execute, ("ROLLBACK",))
        leaving.start()
        with closing(sqlite3.connect(path)) as own:
            module.write_ahead(own)
        leaving.join()
    Store(path, MEBI).close()
