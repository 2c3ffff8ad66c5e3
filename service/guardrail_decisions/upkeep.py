"""Deleting decisions, with a tombstone for each, and renewing the keys that encrypt texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, update

from guardrail_decisions.chain import Appending
from guardrail_decisions.database import Database
from guardrail_decisions.keys import Keys
from guardrail_decisions.rows import iso
from guardrail_decisions.tables import CHAIN, DECISIONS, DRAWS, FEEDBACK, TEXTS, VIEWS

AT_ONCE = 500
"""Decisions that one transaction deletes: writers wait for it."""
_PARTS = 400
"""Places in one `IN (...)`; SQLite takes 999 values at most in old versions."""


def purge_older(
    database: Database, keys: Keys | None, days: float, now: datetime | None = None
) -> int:
    """Delete the decisions that are older than so many days; return how many there were."""
    before = iso((now or datetime.now(UTC)) - timedelta(days=days))
    return delete_where(database, keys, DECISIONS.c.time < before, "retention")


def delete_where(
    database: Database, keys: Keys | None, condition: ColumnElement[bool], reason: str
) -> int:
    """Delete decisions with their texts, feedback and views; return how many there were.

    Args:
        condition: On the columns of `decisions`.
        reason: Stands in the tombstone; no name, no id.
    """
    deleted = 0
    while True:
        with database.writing() as connection:
            query = select(DECISIONS.c.seq).where(condition).order_by(DECISIONS.c.seq)
            places = list(connection.execute(query.limit(AT_ONCE)).scalars())
            if places:
                _delete(connection, keys, places, reason)
        deleted += len(places)
        if len(places) < AT_ONCE:
            break
    if deleted:
        with database.writing() as connection:
            _cut_beginning(connection, keys)
        database.checkpoint()
    return deleted


def rotate(database: Database, keys: Keys) -> int:
    """Encrypt every text's own key with the current key and seal the chain anew.

    Returns:
        Texts and comments whose key was renewed. Afterwards no older key is needed.

    Raises:
        CannotDecrypt: If a text's key is under a key that is not at hand; nothing is lost.
    """
    renewed = sum(_rotate(database, keys, table) for table in (TEXTS, FEEDBACK))
    with database.writing() as connection:
        Appending(connection, keys).finish()
    database.checkpoint()
    return renewed


def _rotate(database: Database, keys: Keys, table: Table) -> int:
    last, renewed = 0, 0
    while True:
        with database.writing() as connection:
            query = select(table.c.seq, table.c.wrapped).where(table.c.wrapped.is_not(None))
            rows = connection.execute(
                query.where(table.c.seq > last).order_by(table.c.seq).limit(AT_ONCE)
            ).all()
            for row in rows:
                values = {"wrapped": keys.rotate(row.wrapped)}
                connection.execute(update(table).where(table.c.seq == row.seq).values(values))
        renewed += len(rows)
        if len(rows) < AT_ONCE:
            return renewed
        last = rows[-1].seq


def _delete(connection: Connection, keys: Keys | None, places: Sequence[int], reason: str) -> None:
    """Delete decisions and all that is about them, and leave one tombstone."""
    chain = Appending(connection, keys)
    gone = list(places)
    for part in _parts(places):
        for table in (FEEDBACK, VIEWS):
            about = table.c.decision_seq.in_(part)
            gone += connection.execute(select(table.c.seq).where(about)).scalars()
            connection.execute(delete(table).where(about))
        for table in (TEXTS, DECISIONS):
            connection.execute(delete(table).where(table.c.seq.in_(part)))
    chain.bury(gone, reason, iso(datetime.now(UTC)))
    chain.finish()


def _cut_beginning(connection: Connection, keys: Keys | None) -> None:
    """Drop the entries before the first row that is left; a tombstone states the hash there."""
    chain = Appending(connection, keys)
    first = min(
        connection.execute(select(func.min(table.c.seq))).scalar() or chain.seq + 1
        for table in (DECISIONS, FEEDBACK, VIEWS, DRAWS)
    )
    last = connection.execute(
        select(CHAIN.c.seq, CHAIN.c.hash).where(CHAIN.c.seq < first).order_by(CHAIN.c.seq.desc())
    ).first()
    start = connection.execute(select(func.min(CHAIN.c.seq))).scalar() or 0
    if last is None or last.seq - start < AT_ONCE:
        return
    # Tombstones before the cut speak of places before it, too, and of none after.
    body = {"seqs": [], "cut": {"seq": last.seq, "hash": last.hash}, "reason": "retention"}
    chain.add("tombstone", body, json.dumps(body))
    chain.finish()
    connection.execute(delete(CHAIN).where(CHAIN.c.seq <= last.seq))


def _parts(places: Sequence[int]) -> Iterable[Sequence[int]]:
    return (places[start : start + _PARTS] for start in range(0, len(places), _PARTS))
