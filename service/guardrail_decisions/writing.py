"""Writes decisions and feedback into a database: one transaction for what has gathered."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from guardrail_decisions.chain import (
    DRAW_COLUMNS,
    FEEDBACK_COLUMNS,
    VIEW_COLUMNS,
    Appending,
    covered,
)
from guardrail_decisions.database import Database
from guardrail_decisions.keys import Keys
from guardrail_decisions.rows import Row, content, iso
from guardrail_decisions.spool import Prepared
from guardrail_decisions.tables import DECISIONS, DRAWS, FEEDBACK, POLICIES, TEXTS, VIEWS
from guardrail_decisions.texts import NOTHING, KeptText, TextKeeper, read
from guardrail_service.policy.decide import Policy
from guardrail_service.server.decisions import Feedback, FeedbackState


@dataclass(frozen=True, slots=True)
class Writer:
    """Everything that is needed to write.

    Attributes:
        keys: Seal the chain and protect comments; None: there are none.
        keeper: Protects comments.
    """

    database: Database
    keys: Keys | None
    keeper: TextKeeper

    def write(
        self, decisions: Sequence[Prepared], feedback: Sequence[Feedback] = (), *, again: bool
    ) -> list[FeedbackState]:
        """Store decisions, then feedback, all or nothing; return what became of the feedback.

        Args:
            decisions: In order.
            feedback: In order; it may be about these decisions.
            again: Whether some of the decisions may have been stored before.

        Raises:
            SQLAlchemyError: If the database cannot take them.
        """
        with self.database.writing() as connection:
            chain = Appending(connection, self.keys)
            if again:
                known = _known(connection, [found.row["record_id"] for found in decisions])
                decisions = [d for d in decisions if d.row["record_id"] not in known]
            _insert(connection, chain, decisions)
            states = [self._say(connection, chain, word) for word in feedback]
            chain.finish()
        return states

    def serve(self, policies: Collection[Policy]) -> None:
        """Note policies that are served; known ones are let be."""
        with self.database.writing() as connection:
            known = set(connection.execute(select(POLICIES.c.policy_hash)).scalars())
            new = {p.sha256: p for p in policies if p.sha256 not in known}
            if new:
                rows = [
                    {
                        "policy_hash": sha256,
                        "name": policy.name,
                        "version": policy.version,
                        "calibration": json.dumps(dict(policy.calibration)),
                        "parameters": json.dumps(_parameters(policy)),
                    }
                    for sha256, policy in new.items()
                ]
                connection.execute(insert(POLICIES), rows)

    def draw(self, draw_id: str, time: str, body: str) -> None:
        """Note a sample that was drawn."""
        row: Row = {"id": draw_id, "time": time, "body": body}
        with self.database.writing() as connection:
            chain = Appending(connection, self.keys)
            seq = chain.add("draw", covered(row, DRAW_COLUMNS))
            connection.execute(insert(DRAWS), {"seq": seq, **row})
            chain.finish()

    def view(self, places: Sequence[int], viewer: str, time: str) -> None:
        """Note that somebody reads the texts of decisions."""
        with self.database.writing() as connection:
            chain = Appending(connection, self.keys)
            for place in places:
                row: Row = {"decision_seq": place, "time": time, "viewer": viewer}
                seq = chain.add("view", covered(row, VIEW_COLUMNS))
                connection.execute(insert(VIEWS), {"seq": seq, **row})
            chain.finish()

    def _say(self, connection: Connection, chain: Appending, word: Feedback) -> FeedbackState:
        decision = _decision_of(connection, word)
        if decision is None or decision == "ambiguous":
            return "unknown" if decision is None else "ambiguous"
        bound_to = comment_of(decision.record_id)
        last = _last_word(connection, decision.seq, word)
        kept = NOTHING
        if word.comment is not None:
            kept = self.keeper.keep({"comment": word.comment}, bound_to)
        repeats = last is not None and last["label"] == word.label
        if repeats and self._same(last, word, kept, bound_to):
            return "known"
        row: Row = {
            "decision_seq": decision.seq,
            "time": iso(word.time),
            "caller": word.caller,
            "label": word.label,
            "metric": word.metric,
            "draw": word.draw,
            "mode": kept.mode,
            "comment": kept.body,
        }
        seq = chain.add("feedback", covered(row, FEEDBACK_COLUMNS))
        connection.execute(insert(FEEDBACK), {"seq": seq, **row, "wrapped": kept.wrapped})
        return "stored"

    def _same(self, last: Any, word: Feedback, kept: KeptText, bound_to: str) -> bool:
        """Return whether the last word had this comment; what is not kept is not compared."""
        if kept.mode != "full" or last["mode"] != "full":
            return bool(last["comment"] == kept.body)
        before = KeptText(last["mode"], last["comment"], last["wrapped"])
        found = read(before, self.keys, bound_to) or {}
        return found.get("comment") == word.comment


def _parameters(policy: Policy) -> dict[str, Any]:
    return {
        name: rule.parameters.model_dump(mode="json", by_alias=True)
        for name, rule in policy.rules.items()
    }


def comment_of(record_id: str) -> str:
    """Return what an encrypted comment on a decision is bound to."""
    return f"comment:{record_id}"


def _last_word(connection: Connection, place: int, word: Feedback) -> Any:
    """Return what the same person said last of the same decision and metric; None: nothing."""
    metric = FEEDBACK.c.metric
    query = (
        select(FEEDBACK)
        .where(FEEDBACK.c.decision_seq == place, FEEDBACK.c.caller == word.caller)
        .where(metric.is_(None) if word.metric is None else metric == word.metric)
        .order_by(FEEDBACK.c.seq.desc())
        .limit(1)
    )
    return connection.execute(query).mappings().first()


def _known(connection: Connection, ids: Sequence[str]) -> set[str]:
    query = select(DECISIONS.c.record_id).where(DECISIONS.c.record_id.in_(ids))
    return set(connection.execute(query).scalars())


def _insert(connection: Connection, chain: Appending, decisions: Sequence[Prepared]) -> None:
    rows, texts = [], []
    for row, kept in decisions:
        seq = chain.add("decision", content(row, kept))
        rows.append({"seq": seq, **row})
        if kept.mode != "none":
            found = {"seq": seq, "mode": kept.mode, "body": kept.body, "wrapped": kept.wrapped}
            texts.append(found)
    if rows:
        connection.execute(insert(DECISIONS), rows)
    if texts:
        connection.execute(insert(TEXTS), texts)


def _decision_of(connection: Connection, word: Feedback) -> Any:
    """Return the row that feedback is about; "ambiguous" if it must say which item it means.

    It is the latest one with the request id, of the speaker's own key if there is one. A word on
    `only_own` decisions learns nothing of others: not even that their ids are there.
    """
    columns = (DECISIONS.c.seq, DECISIONS.c.record_id, DECISIONS.c.item, DECISIONS.c.caller)
    query = select(*columns).where(DECISIONS.c.request_id == word.request_id)
    if word.record_id is not None:
        query = query.where(DECISIONS.c.record_id == word.record_id)
    if word.only_own:
        query = query.where(DECISIONS.c.caller == word.caller)
    if word.item is not None:
        query = query.where(DECISIONS.c.item == word.item)
    found = connection.execute(query.order_by(DECISIONS.c.seq.desc()).limit(1_000)).all()
    own = [row for row in found if row.caller == word.caller] or found
    if len({row.item for row in own}) > 1:
        return "ambiguous"
    return own[0] if own else None
