"""Puts together what a store of decisions tells people and programs: counts, drift, promises."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guardrail_offline.calibration.labels import inert
from guardrail_offline.production.decisions_page import WORDS, percent
from guardrail_offline.production.traffic import Traffic, reasons_of, rows

if TYPE_CHECKING:
    from guardrail_decisions import StoredDecision
    from guardrail_decisions.monitor.watch import PolicyFindings

COLUMNS = ("week", "detector", "flagged", "of", "share", "low", "high")


@dataclass(frozen=True, slots=True)
class FlaggedText:
    """A flagged answer whose text is kept, for a reader who asked for texts."""

    request_id: str
    time: str
    reasons: tuple[str, ...]
    question: str | None
    answer: str

    def as_json(self) -> dict[str, Any]:
        """Return the answer for the page."""
        return {
            "request_id": self.request_id,
            "time": self.time,
            "reasons": list(self.reasons),
            "question": self.question,
            "answer": self.answer,
        }


def content(
    decisions: Iterable[StoredDecision],
    findings: Sequence[PolicyFindings] = (),
    examples: Sequence[FlaggedText] | None = None,
) -> dict[str, Any]:
    """Return everything a report tells, ready for JSON.

    Args:
        decisions: In any order.
        findings: About promises and drift.
        examples: Flagged answers; None: nobody asked for texts.
    """
    traffic = Traffic()
    labels: dict[str, int] = {}
    for one in decisions:
        traffic.add(one.record)
        for said in one.feedback:
            labels[said.label] = labels.get(said.label, 0) + 1
    found = traffic.as_json()
    found["labels"] = dict(sorted(labels.items()))
    found["policies"] = [finding.as_json() for finding in findings]
    if examples is not None:
        found["examples"] = [example.as_json() for example in examples]
    return found


def flagged_texts(decisions: Iterable[StoredDecision], most: int) -> list[FlaggedText]:
    """Return the first flagged decisions that have a text."""
    found: list[FlaggedText] = []
    for one in decisions:
        if len(found) == most:
            break
        record = one.record
        if record.decision == "flag" and record.answer:
            found.append(
                FlaggedText(
                    record.request_id,
                    record.time.isoformat(timespec="seconds"),
                    tuple(reasons_of(record)),
                    record.question,
                    record.answer,
                )
            )
    return found


def as_csv(report: Mapping[str, Any]) -> str:
    """Return a report's shares by week and detector, inert in spreadsheets."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([inert(cell) for cell in row] for row in rows(report))
    return text.getvalue()


def alarms(report: Mapping[str, Any]) -> list[str]:
    """Return what somebody should act on: broken promises and scores that have moved."""
    found = []
    for policy in report["policies"]:
        name = f"{policy['policy']}@{policy['version']}"
        found += [f"{name}: {_promise(p)}" for p in policy["promises"] if p["state"] == "broken"]
        found += [
            f"{name}: scores of {d['metric']} {WORDS[d['state']]}"
            for d in policy["drift"]
            if d["state"] == "drifted"
        ]
    return found


def sentences(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a report tells, in plain words."""
    yield f"{report['decisions']} decisions; flagged {_share(report['flagged'])}."
    yield f"To be withheld: {_share(report['stopped'])}; let through: {report['let_through']}."
    for detector in report["detectors"]:
        if detector["flagged"]["count"]:
            yield f"{detector['detector']}: {_share(detector['flagged'])}."
    for reason in report["reasons"][:5]:
        yield f"Reason {reason['reason']}: {reason['decisions']}."
    for policy in report["policies"]:
        name = f"{policy['policy']}@{policy['version']}"
        for promise in policy["promises"]:
            yield f"{name}: {_promise(promise)}."
        for metric in policy["drift"]:
            yield f"{name}: scores of {metric['metric']} {WORDS[metric['state']]}."
        if not policy["promises"]:
            yield f"{name} promises nothing: its thresholds are not calibrated."


def _promise(promise: Mapping[str, Any]) -> str:
    about = "good answers flagged" if promise["kind"] == "false_flag" else "bad answers missed"
    by = f" by {promise['metric']}" if promise["metric"] else ""
    told = f"{WORDS[promise['state']]}: at most {percent(promise['bound'])} of {about}{by}"
    if promise["share"] is None:
        return f"{told}; no label of a drawn sample yet"
    low, high = promise["interval"]
    return (
        f"{told}; {promise['against']} of {promise['labels']} labels, "
        f"{percent(promise['share'])}, surely {percent(low)} to {percent(high)}"
    )


def _share(share: Mapping[str, Any]) -> str:
    if share["share"] is None:
        return "none"
    low, high = share["interval"]
    counts = f"{share['count']} of {share['of']}"
    return f"{counts} ({percent(share['share'])}, 95 % interval {percent(low)}-{percent(high)})"
