"""The chain over everything that a store writes: proof of what is left and of what was taken out.

Each entry's hash covers its place, its kind, the digest of its content and the hash before it. So
a changed, moved, added or missing entry shows. A deletion on purpose leaves a tombstone: an
entry that names the places that are empty now. The beginning may be cut off once nothing of it is
left; the tombstone then states the hash at the cut. Where the store has keys, the end of the chain
is sealed, and whoever has the database without the keys cannot write another chain. A store that
is set back whole to an earlier state proves itself: compare its head with one noted elsewhere.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection, Table, insert, select, update

from guardrail_decisions.database import lock_head
from guardrail_decisions.keys import Keys
from guardrail_decisions.rows import content
from guardrail_decisions.tables import CHAIN, DECISIONS, DRAWS, FEEDBACK, HEAD, TEXTS, VIEWS
from guardrail_decisions.texts import KeptText

Kind = Literal["decision", "feedback", "view", "draw", "tombstone"]
START = "0" * 64
"""The hash before the first entry."""
FEEDBACK_COLUMNS = ("decision_seq", "time", "caller", "label", "metric", "draw", "mode", "comment")
VIEW_COLUMNS = ("decision_seq", "time", "viewer")
DRAW_COLUMNS = ("id", "time", "body")
Ranges = list[tuple[int, int]]
_PAGES = {"yield_per": 1_000}
"""Rows are fetched as they are read."""


def digest(value: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a content, whatever order its keys are in."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def linked(before: str, seq: int, kind: str, content_digest: str) -> str:
    """Return the hash of an entry."""
    return hashlib.sha256(f"{before}\n{seq}\n{kind}\n{content_digest}".encode()).hexdigest()


class Appending:
    """The end of the chain within one transaction; `finish` writes what was added.

    Args:
        connection: In a transaction that writes.
        keys: Seal the end.
    """

    def __init__(self, connection: Connection, keys: Keys | None) -> None:
        self._connection = connection
        self._keys = keys
        head = lock_head(connection)
        self.seq: int = head.seq
        self.hash: str = head.hash
        self._rows: list[dict[str, Any]] = []

    def add(self, kind: Kind, covered: Mapping[str, Any], body: str | None = None) -> int:
        """Add an entry over a content and return its place."""
        self.seq += 1
        found = digest(covered)
        self.hash = linked(self.hash, self.seq, kind, found)
        self._rows.append(
            {"seq": self.seq, "kind": kind, "digest": found, "hash": self.hash, "body": body}
        )
        return self.seq

    def bury(self, places: Iterable[int], reason: str, time: str) -> int:
        """Add a tombstone for places whose content is deleted in this transaction."""
        body = {"seqs": ranges(places), "reason": reason, "time": time}
        return self.add("tombstone", body, json.dumps(body))

    def finish(self) -> None:
        """Write the entries and the new end."""
        if self._rows:
            self._connection.execute(insert(CHAIN), self._rows)
        seal = None if self._keys is None else self._keys.seal(f"{self.seq}:{self.hash}")
        key = None if self._keys is None else self._keys.current
        values = {"seq": self.seq, "hash": self.hash, "seal": seal, "key": key}
        self._connection.execute(update(HEAD).where(HEAD.c.id == 1).values(values))


def ranges(places: Iterable[int]) -> Ranges:
    """Return numbers as inclusive ranges, in order."""
    found: Ranges = []
    for place in sorted(places):
        if found and found[-1][1] == place - 1:
            found[-1] = (found[-1][0], place)
        else:
            found.append((place, place))
    return found


@dataclass(frozen=True, slots=True)
class Fault:
    """One place where the store is not what was written."""

    seq: int
    what: str


@dataclass
class ChainReport:
    """The result of checking a store.

    Attributes:
        entries: Entries of the chain that were read.
        decisions: Decisions that are as they were written.
        deleted: Places that tombstones account for.
        head: Place and hash of the last entry; note it elsewhere to prove later that none was cut.
        sealed: Whether a key at hand confirms the end; None: the store has no seal or no key.
    """

    entries: int = 0
    decisions: int = 0
    deleted: int = 0
    head: str = f"0:{START}"
    sealed: bool | None = None
    faults: list[Fault] = field(default_factory=list)

    @property
    def intact(self) -> bool:
        """Return whether everything is as it was written."""
        return not self.faults


def verify(connection: Connection, keys: Keys | None, noted: str | None = None) -> ChainReport:
    """Check everything against the chain, reading the store once.

    Args:
        connection: Sees one state of the store.
        keys: Confirm the seal.
        noted: A head that was noted earlier, `SEQ:HASH`.
    """
    report = ChainReport()
    graves, cut = _tombstones(connection)
    contents = _contents(connection)
    pending = next(contents, None)
    before, place = (cut["hash"], cut["seq"]) if cut else (START, 0)
    noted_seq, _, noted_hash = (noted or "").partition(":")
    for row in connection.execute(select(CHAIN).order_by(CHAIN.c.seq).execution_options(**_PAGES)):
        if row.seq != place + 1:
            report.faults.append(Fault(place + 1, f"entries up to {row.seq - 1} are missing"))
        if linked(before, row.seq, row.kind, row.digest) != row.hash:
            report.faults.append(Fault(row.seq, "the entry was changed, moved or replaced"))
        while pending is not None and pending[0] < row.seq:
            report.faults.append(Fault(pending[0], "a row that the chain does not have"))
            pending = next(contents, None)
        found = None
        if pending is not None and pending[0] == row.seq:
            found, pending = pending, next(contents, None)
        _check(row, found, graves, report)
        if str(row.seq) == noted_seq and row.hash != noted_hash:
            report.faults.append(Fault(row.seq, "not the entry that was noted"))
        before, place = row.hash, row.seq
        report.entries += 1
    while pending is not None:
        report.faults.append(Fault(pending[0], "a row that the chain does not have"))
        pending = next(contents, None)
    _check_end(connection, keys, (place, before), report)
    if noted_seq.isdecimal() and int(noted_seq) > place:
        report.faults.append(Fault(place + 1, f"cut off: entry {noted_seq} was noted"))
    return report


def _check(row: Any, found: Any, graves: Graves, report: ChainReport) -> None:
    """Compare one entry with the row that it is about."""
    if row.kind == "tombstone":
        if digest(json.loads(row.body)) != row.digest:
            report.faults.append(Fault(row.seq, "the tombstone was changed"))
        return
    buried = graves.holds(row.seq)
    if found is None:
        if buried:
            report.deleted += 1
        else:
            report.faults.append(Fault(row.seq, f"the {row.kind} was deleted, with no tombstone"))
        return
    if buried:
        report.faults.append(Fault(row.seq, f"the {row.kind} has a tombstone and is there"))
    if found[1] != row.kind or digest(found[2]) != row.digest:
        report.faults.append(Fault(row.seq, f"the {row.kind} was changed"))
    elif row.kind == "decision":
        report.decisions += 1


def _check_end(
    connection: Connection, keys: Keys | None, end: tuple[int, str], report: ChainReport
) -> None:
    head = connection.execute(select(HEAD)).one_or_none()
    report.head = f"{end[0]}:{end[1]}"
    if head is None or (head.seq, head.hash) != end:
        report.faults.append(Fault(end[0] + 1, "the chain does not end where it was written to"))
    if head is None or head.seal is None or keys is None:
        if head is not None and head.seal is None and keys is not None and head.seq:
            report.faults.append(Fault(head.seq, "the end has no seal although there are keys"))
        return
    expected = keys.seal(f"{head.seq}:{head.hash}", head.key)
    if expected is not None:
        report.sealed = expected == head.seal
        if not report.sealed:
            report.faults.append(Fault(head.seq, "the seal of the end does not fit"))


class Graves:
    """Places that tombstones name.

    Args:
        places: Inclusive ranges in any order.
    """

    def __init__(self, places: Iterable[Sequence[int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted((a, b) for a, b in places):
            if self._ends and start <= self._ends[-1] + 1:
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._starts.append(start)
                self._ends.append(end)

    def holds(self, place: int) -> bool:
        """Return whether a tombstone names a place."""
        at = bisect_right(self._starts, place) - 1
        return at >= 0 and place <= self._ends[at]


def _tombstones(connection: Connection) -> tuple[Graves, dict[str, Any] | None]:
    """Return the places that are empty on purpose, and where the beginning was cut off last."""
    rows = connection.execute(
        select(CHAIN.c.body).where(CHAIN.c.kind == "tombstone").order_by(CHAIN.c.seq)
    ).scalars()
    bodies = [json.loads(body) for body in rows]
    cuts = [body["cut"] for body in bodies if "cut" in body]
    places = [place for body in bodies for place in body["seqs"]]
    return Graves(places), max(cuts, key=lambda cut: int(cut["seq"]), default=None)


def _contents(connection: Connection) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield place, kind and content of every row, in the order of places."""
    parts = [
        _decisions(connection),
        _simple(connection, FEEDBACK, "feedback", FEEDBACK_COLUMNS),
        _simple(connection, VIEWS, "view", VIEW_COLUMNS),
        _simple(connection, DRAWS, "draw", DRAW_COLUMNS),
    ]
    yield from heapq.merge(*parts, key=lambda part: part[0])


def _decisions(connection: Connection) -> Iterator[tuple[int, str, dict[str, Any]]]:
    query = (
        select(DECISIONS, TEXTS.c.mode, TEXTS.c.body.label("kept"))
        .join_from(DECISIONS, TEXTS, DECISIONS.c.seq == TEXTS.c.seq, isouter=True)
        .order_by(DECISIONS.c.seq)
        .execution_options(**_PAGES)
    )
    for row in connection.execute(query).mappings():
        yield (
            row["seq"],
            "decision",
            content(dict(row), KeptText(row["mode"] or "none", row["kept"])),
        )


def _simple(
    connection: Connection, table: Table, kind: str, columns: Sequence[str]
) -> Iterator[tuple[int, str, dict[str, Any]]]:
    query = select(table).order_by(table.c.seq).execution_options(**_PAGES)
    with connection.execute(query) as rows:
        for row in rows.mappings():
            yield row["seq"], kind, covered(dict(row), columns)


def covered(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Return what a digest covers of a row; a column that was added later counts once it is set."""
    return {name: row[name] for name in columns if name != "draw" or row[name] is not None}
