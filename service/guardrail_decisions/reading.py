"""Reads a store: decisions by filters, their texts, feedback, draws, policies. Serving has no part.

with open_decisions("sqlite:///decisions.db") as store:
    for found in store.decisions(Filters(decision="flag")):
        print(found.record.request_id, found.flagged)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import ColumnElement, Select, false, func, select

from guardrail_decisions import upkeep
from guardrail_decisions.chain import ChainReport, verify
from guardrail_decisions.database import WHERE, Database
from guardrail_decisions.keys import CannotDecrypt, Keys
from guardrail_decisions.rows import (
    Row,
    StoredDecision,
    StoredFeedback,
    decision_row,
    iso,
    record_of,
)
from guardrail_decisions.tables import DECISIONS, DRAWS, FEEDBACK, POLICIES, TEXTS, VIEWS
from guardrail_decisions.texts import KeptText, TextKeeper, TextMode, Texts, read
from guardrail_decisions.writing import Writer, comment_of
from guardrail_service.server.decisions import DecisionRecord, Feedback, FeedbackState
from guardrail_service.types import Decision

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Filters:
    """The decisions that somebody wants; None: all.

    Attributes:
        since: Decided then or later.
        until: Decided before.
        detector: Flagged by it.
        labelled: Whether there is feedback.
    """

    since: datetime | None = None
    until: datetime | None = None
    policy: str | None = None
    policy_hash: str | None = None
    caller: str | None = None
    route: str | None = None
    decision: Decision | None = None
    action: str | None = None
    status: str | None = None
    detector: str | None = None
    request_id: str | None = None
    labelled: bool | None = None

    def condition(self) -> list[ColumnElement[bool]]:
        """Return what the columns of `decisions` must fulfil."""
        table = DECISIONS.c
        same = ("policy", "policy_hash", "caller", "route", "decision", "action", "status")
        wanted = {name: getattr(self, name) for name in (*same, "request_id")}
        if not all(map(_can_be_kept, (*wanted.values(), self.detector))):
            return [false()]
        found = [table[name] == value for name, value in wanted.items() if value is not None]
        if self.since is not None:
            found.append(table.time >= iso(self.since))
        if self.until is not None:
            found.append(table.time < iso(self.until))
        if self.detector is not None:
            found.append(table.flagged.contains(f",{self.detector},", autoescape=True))
        if self.labelled is not None:
            said = select(FEEDBACK.c.seq).where(FEEDBACK.c.decision_seq == table.seq).exists()
            found.append(said if self.labelled else ~said)
        return found


def _can_be_kept(text: str | None) -> bool:
    """Return whether every database can hold a text; PostgreSQL fails when asked for others."""
    return text is None or not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)


@dataclass(frozen=True, slots=True)
class StoredView:
    """Somebody read the texts of a decision."""

    decision_seq: int
    time: datetime
    viewer: str


def open_decisions(
    url: str,
    keys_file: Path | None = None,
    texts: TextMode = "none",
    *,
    named_by: str = WHERE,
) -> Decisions:
    """Return a store for reading and for people's work; it is not created.

    Args:
        url: As `GUARDRAIL_DECISIONS_URL`.
        keys_file: Needed to read encrypted texts, and where the chain is sealed to write.
        texts: What is kept of the comments of feedback that is added.
        named_by: The option or setting that has the URL, for errors.

    Raises:
        ConfigurationError: If there is no store of this release.
    """
    keys = None if keys_file is None else Keys.of_file(keys_file)
    database = Database(url)
    database.ready(create=False, named_by=named_by)
    return Decisions(Writer(database, keys, TextKeeper(texts, keys)))


class Decisions:
    """A store as people and later steps see it."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._database = writer.database
        self._keys = writer.keys

    def __enter__(self) -> Decisions:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def decisions(
        self,
        filters: Filters | None = None,
        *,
        viewer: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[StoredDecision]:
        """Yield decisions in the order in which they were stored.

        Args:
            filters: Which.
            viewer: Who reads their texts; that is noted. None: texts are left out.
            after: Only those whose key is larger.
            before: Only those whose key is smaller.
            limit: At most so many.
            newest_first: In the other order.
        """
        left = limit
        while left is None or left > 0:
            size = _PAGE if left is None else min(_PAGE, left)
            page = self._page(filters or Filters(), viewer, after, before, size, newest_first)
            yield from page
            if len(page) < size:
                return
            left = None if left is None else left - len(page)
            if newest_first:
                before = page[-1].key
            else:
                after = page[-1].key

    def get(
        self, request_id: str, item: int | None = None, *, viewer: str | None = None
    ) -> StoredDecision | None:
        """Return the latest decision with a request id; None if there is none.

        Args:
            request_id: As in the reply.
            item: Place in the request; None: any.
            viewer: Who reads its texts; that is noted. None: texts are left out.
        """
        query = select(DECISIONS.c.seq).where(DECISIONS.c.request_id == request_id)
        if item is not None:
            query = query.where(DECISIONS.c.item == item)
        with self._database.reading() as connection:
            key = connection.execute(query.order_by(DECISIONS.c.seq.desc()).limit(1)).scalar()
        return None if key is None else self.at(key, viewer=viewer)

    def at(self, key: int, *, viewer: str | None = None) -> StoredDecision | None:
        """Return the decision with a key, which is its place in the chain."""
        found = list(self.decisions(viewer=viewer, after=key - 1, before=key + 1))
        return found[0] if found else None

    def questions(self, filters: Filters | None = None) -> Iterator[tuple[int, str | None]]:
        """Yield the key of each decision, in order, with a digest of its question.

        The same words, whatever their case and spacing, have the same digest. It is None where
        there is no question or it cannot be read. No text leaves this method, so no view is noted.
        """
        query = (
            select(TEXTS, DECISIONS.c.seq.label("key"), DECISIONS.c.record_id)
            .join_from(DECISIONS, TEXTS, DECISIONS.c.seq == TEXTS.c.seq, isouter=True)
            .where(*(filters or Filters()).condition())
            .order_by(DECISIONS.c.seq)
        )
        with self._database.reading() as connection:
            rows = connection.execution_options(yield_per=_PAGE).execute(query)
            for row in rows.mappings():
                kept = KeptText(row["mode"] or "none", row["body"], row["wrapped"])
                yield row["key"], _question(kept, self._keys, row["record_id"])

    def count(self, filters: Filters | None = None) -> int:
        """Return how many decisions there are."""
        query = select(func.count()).select_from(DECISIONS)
        with self._database.reading() as connection:
            found = connection.execute(query.where(*(filters or Filters()).condition()))
            return int(found.scalar_one())

    def feedback(self) -> Iterator[tuple[str, StoredFeedback]]:
        """Yield the record id of each decision that was spoken of, with each word, in order."""
        query = (
            select(FEEDBACK, DECISIONS.c.record_id)
            .join_from(FEEDBACK, DECISIONS, DECISIONS.c.seq == FEEDBACK.c.decision_seq)
            .order_by(FEEDBACK.c.seq)
        )
        with self._database.reading() as connection:
            for row in connection.execute(query).mappings():
                yield row["record_id"], self._word(dict(row), row["record_id"])

    def views(self) -> Iterator[StoredView]:
        """Yield who read texts, in order."""
        with self._database.reading() as connection:
            for row in connection.execute(select(VIEWS).order_by(VIEWS.c.seq)):
                yield StoredView(row.decision_seq, datetime.fromisoformat(row.time), row.viewer)

    def draws(self) -> Iterator[Mapping[str, Any]]:
        """Yield every drawn sample as it was written, with `id` and `time`."""
        with self._database.reading() as connection:
            for row in connection.execute(select(DRAWS).order_by(DRAWS.c.seq)):
                yield {**json.loads(row.body), "id": row.id, "time": row.time}

    def policies(self) -> dict[str, dict[str, Any]]:
        """Return name, version, calibration and parameters of served policies, by hash."""
        with self._database.reading() as connection:
            return {
                row.policy_hash: {
                    "name": row.name,
                    "version": row.version,
                    "calibration": json.loads(row.calibration),
                    "parameters": json.loads(row.parameters),
                }
                for row in connection.execute(select(POLICIES))
            }

    def add_feedback(self, feedback: Feedback, texts: TextMode | None = None) -> FeedbackState:
        """Store a person's word and return what became of it.

        Args:
            feedback: The word.
            texts: What is kept of its comment; None: as the store was opened.

        Raises:
            ConfigurationError: If keys are needed for this and missing.
        """
        writer = self.writer
        if texts is not None:
            writer = replace(writer, keeper=TextKeeper(texts, self._keys))
        return writer.write([], [feedback], again=False)[0]

    def delete(self, filters: Filters, reason: str = "deleted") -> int:
        """Delete decisions with texts, feedback and views; return how many.

        Raises:
            ValueError: If the filters leave everything.
        """
        conditions = filters.condition()
        if not conditions:
            raise ValueError("no filter: this would delete every decision")
        both = conditions[0]
        for condition in conditions[1:]:
            both = both & condition
        return upkeep.delete_where(self._database, self._keys, both, reason)

    def purge(self, days: float) -> int:
        """Delete decisions older than so many days; return how many."""
        return upkeep.purge_older(self._database, self._keys, days)

    def rotate(self) -> int:
        """Renew what the keys encrypt; see `upkeep.rotate`.

        Raises:
            CannotDecrypt: If there are no keys, or one that is needed is missing.
        """
        if self._keys is None:
            raise CannotDecrypt("no keys; expected GUARDRAIL_DECISIONS_KEYS_FILE")
        return upkeep.rotate(self._database, self._keys)

    def verify(self, noted: str | None = None) -> ChainReport:
        """Return whether everything is as it was written; see `chain.verify`."""
        with self._database.reading() as connection:
            return verify(connection, self._keys, noted)

    def _page(
        self,
        filters: Filters,
        viewer: str | None,
        after: int,
        before: int | None,
        size: int,
        newest_first: bool,
    ) -> list[StoredDecision]:
        table = DECISIONS.c
        query: Select[Any] = (
            select(DECISIONS, TEXTS.c.mode, TEXTS.c.body.label("kept"), TEXTS.c.wrapped)
            .join_from(DECISIONS, TEXTS, table.seq == TEXTS.c.seq, isouter=True)
            .where(table.seq > after, *filters.condition())
            .order_by(table.seq.desc() if newest_first else table.seq)
            .limit(size)
        )
        if before is not None:
            query = query.where(table.seq < before)
        with self._database.reading() as connection:
            rows = [dict(row) for row in connection.execute(query).mappings()]
            words = self._words(connection, rows)
        if viewer is not None and rows:
            readable = [row["seq"] for row in rows if row["mode"] in ("redacted", "full")]
            if readable:  # noted before it is shown
                self.writer.view(readable, viewer, iso(datetime.now(UTC)))
        return [self._stored(row, words.get(row["seq"], ()), viewer is not None) for row in rows]

    def _words(
        self, connection: Any, rows: Sequence[Mapping[str, Any]]
    ) -> dict[int, tuple[StoredFeedback, ...]]:
        by_seq = {row["seq"]: row["record_id"] for row in rows}
        query = select(FEEDBACK).where(FEEDBACK.c.decision_seq.in_(by_seq)).order_by(FEEDBACK.c.seq)
        found: dict[int, tuple[StoredFeedback, ...]] = {}
        for row in connection.execute(query).mappings() if by_seq else ():
            place = row["decision_seq"]
            found[place] = (*found.get(place, ()), self._word(dict(row), by_seq[place]))
        return found

    def _stored(
        self, row: Mapping[str, Any], words: tuple[StoredFeedback, ...], with_texts: bool
    ) -> StoredDecision:
        mode: TextMode = row["mode"] or "none"
        texts = None
        if with_texts:
            kept = KeptText(mode, row["kept"], row["wrapped"])
            found = read(kept, self._keys, row["record_id"])
            if found is not None:
                texts = Texts(found["question"], found["answer"], tuple(found["contexts"]))
        return StoredDecision(row["seq"], record_of(row, texts), mode, words)

    def _word(self, row: Mapping[str, Any], record_id: str) -> StoredFeedback:
        kept = KeptText(row["mode"], row["comment"], row["wrapped"])
        try:
            comment = (read(kept, self._keys, comment_of(record_id)) or {}).get("comment")
        except CannotDecrypt:
            comment = None
        return StoredFeedback(
            seq=row["seq"],
            decision_seq=row["decision_seq"],
            time=datetime.fromisoformat(row["time"]),
            caller=row["caller"],
            label=row["label"],
            metric=row["metric"],
            draw=row["draw"],
            comment=comment,
        )


def _question(kept: KeptText, keys: Keys | None, record_id: str) -> str | None:
    try:
        words = ((read(kept, keys, record_id) or {}).get("question") or "").casefold().split()
    except CannotDecrypt:
        return None
    text = " ".join(words).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest() if words else None


def records(
    source: str | Path,
    since: datetime | None = None,
    until: datetime | None = None,
    policy: str | None = None,
    *,
    keys_file: Path | None = None,
    viewer: str | None = None,
) -> Iterator[StoredDecision]:
    """Yield decisions in order from a store's URL, or from JSON lines that were exported.

    Args:
        source: URL or file.
        since: Decided then or later.
        until: Decided before.
        policy: Name of the policy.
        keys_file: Reads encrypted texts of a store.
        viewer: Who reads the texts of a store; None: they are left out.
    """
    filters = Filters(since=since, until=until, policy=policy)
    if "://" in str(source):
        with open_decisions(str(source), keys_file) as store:
            yield from store.decisions(filters, viewer=viewer)
        return
    with Path(source).open(encoding="utf-8") as file:
        for line in file:
            found = from_json(json.loads(line))
            record = found.record
            in_time = (since is None or record.time >= since) and (
                until is None or record.time < until
            )
            if in_time and policy in (None, record.policy):
                yield found


def to_json(found: StoredDecision) -> Row:
    """Return a decision as an export has it."""
    row = decision_row(found.record)
    body = json.loads(row.pop("body"))
    flagged = [name for name in row.pop("flagged").split(",") if name]
    record = found.record
    return {
        "key": found.key,
        **row,
        "flagged": flagged,
        **body,
        "texts": found.text_mode,
        "question": record.question,
        "answer": record.answer or None,
        "contexts": list(record.contexts),
        "feedback": [_word_json(word) for word in found.feedback],
    }


def from_json(line: Mapping[str, Any]) -> StoredDecision:
    """Return what `to_json` was given."""
    body = {
        name: line[name]
        for name in ("detectors", "options", "fingerprints", "timings_ms", "deadline_ms", "shadow")
    }
    texts = Texts(line["question"], line["answer"] or "", tuple(line["contexts"]))
    record: DecisionRecord = record_of({**line, "body": json.dumps(body)}, texts)
    words = tuple(
        StoredFeedback(**{**word, "time": datetime.fromisoformat(word["time"])})
        for word in line["feedback"]
    )
    return StoredDecision(line["key"], record, line["texts"], words)


def _word_json(word: StoredFeedback) -> Row:
    return {
        "seq": word.seq,
        "decision_seq": word.decision_seq,
        "time": iso(word.time),
        "caller": word.caller,
        "label": word.label,
        "metric": word.metric,
        "draw": word.draw,
        "comment": word.comment,
    }
