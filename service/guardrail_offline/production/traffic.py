"""Counts what stored decisions say: what was flagged, by detector and week, and why.

Under `observe` nothing was withheld; what a policy would have done is what its detectors asked for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from guardrail_offline.intervals import thinned_interval
from guardrail_offline.production.replay import ShareOf
from guardrail_service.server.decisions import DecisionRecord
from guardrail_service.types import Action, DetectorResult, State

MOST_REASONS = 20


@dataclass(slots=True)
class DecisionCount:
    """Decisions that have a property, and those that have not.

    All flagged decisions are stored, and perhaps only a share of those that passed.
    """

    hits: int = 0
    others: int = 0
    others_stand_for: float = 0.0

    def add(self, hit: bool, share: float) -> None:
        """Count one stored decision.

        Args:
            hit: Whether it has the property.
            share: The chance with which such a decision was stored.
        """
        self.hits += hit
        self.others += not hit
        self.others_stand_for += 0.0 if hit else 1 / share

    def share(self) -> ShareOf:
        """Return which share of all decisions has the property.

        The interval is exact where one share of the others was stored all the time.
        """
        total = self.hits + self.others_stand_for
        kept = self.others / self.others_stand_for if self.others else 1.0
        return ShareOf(
            count=self.hits,
            of=self.hits + self.others,
            share=self.hits / total if total else None,
            interval=thinned_interval(self.hits, self.others, kept),
        )


@dataclass(slots=True)
class DetectorCount:
    """One detector's part.

    Attributes:
        flagged: Decisions that it flagged.
        states: Decisions without a score, by state and reason.
        asked: Decisions by the action that it asked for.
    """

    flagged: DecisionCount = field(default_factory=DecisionCount)
    states: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)

    def add(self, result: DetectorResult, share: float) -> None:
        """Count one decision."""
        self.flagged.add(result.flagged, share)
        if result.flagged:
            self.asked[result.action.label] += 1
        if result.state not in (State.EVALUATED, State.NOT_APPLICABLE):
            self.states[f"{result.state.value}: {result.reason}"] += 1

    def as_json(self, name: str) -> dict[str, Any]:
        """Return the counts for reports and the studio."""
        return {
            "detector": name,
            "flagged": self.flagged.share().as_json(),
            "asked": dict(self.asked.most_common()),
            "without_score": dict(self.states.most_common()),
        }


@dataclass(slots=True)
class WeekCount:
    """One week, or all of them.

    Attributes:
        flagged: Decisions that were flagged.
        stopped: Decisions for which a detector asked to withhold the answer.
        detectors: Decisions that each detector flagged; only those with a flag in the week.
    """

    flagged: DecisionCount = field(default_factory=DecisionCount)
    stopped: DecisionCount = field(default_factory=DecisionCount)
    detectors: dict[str, DecisionCount] = field(default_factory=lambda: defaultdict(DecisionCount))

    def add(self, record: DecisionRecord) -> None:
        """Count one decision."""
        self.flagged.add(record.decision == "flag", record.share)
        self.stopped.add(asked(record) is Action.BLOCK, record.share)
        for name, result in record.detectors.items():
            self.detectors[name].add(result.flagged, record.share)

    def as_json(self, week: str) -> dict[str, Any]:
        """Return the counts for reports and the studio."""
        return {
            "week": week,
            "flagged": self.flagged.share().as_json(),
            "stopped": self.stopped.share().as_json(),
            "detectors": {
                name: count.share().as_json()
                for name, count in sorted(self.detectors.items())
                if count.hits
            },
        }


class Traffic:
    """Everything that is counted of stored decisions, one after the other."""

    def __init__(self) -> None:
        self.total = WeekCount()
        self.weeks: dict[str, WeekCount] = {}
        self.detectors: dict[str, DetectorCount] = {}
        self.actions: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.routes: Counter[str] = Counter()
        self.shadow: dict[tuple[str, str], Counter[str]] = {}
        self.late = self.let_through = 0
        self.first: datetime | None = None
        self.last: datetime | None = None

    def add(self, record: DecisionRecord) -> None:
        """Count one decision."""
        self.total.add(record)
        self.weeks.setdefault(week_of(record.time), WeekCount()).add(record)
        for name, result in record.detectors.items():
            self.detectors.setdefault(name, DetectorCount()).add(result, record.share)
        self.reasons.update(reasons_of(record))
        self.routes[record.route] += 1
        self.late += record.status != "complete"
        wanted = asked(record)
        self.actions[wanted.label] += 1
        self.let_through += wanted > Action.ALLOW and record.action == Action.ALLOW.label
        for other in record.shadow:
            change = f"{record.decision}->{other.decision}"
            self.shadow.setdefault((other.policy, other.policy_version), Counter())[change] += 1
        self.first = min(self.first or record.time, record.time)
        self.last = max(self.last or record.time, record.time)

    def as_json(self) -> dict[str, Any]:
        """Return the counts for reports and the studio."""
        total = self.total.as_json("")
        return {
            "decisions": self.total.flagged.hits + self.total.flagged.others,
            "stand_for": round(self.total.flagged.hits + self.total.flagged.others_stand_for),
            "from": None if self.first is None else self.first.isoformat(),
            "to": None if self.last is None else self.last.isoformat(),
            "flagged": total["flagged"],
            "stopped": total["stopped"],
            "actions": {a.label: self.actions[a.label] for a in Action if self.actions[a.label]},
            "let_through": self.let_through,
            "late": self.late,
            "routes": dict(self.routes.most_common()),
            "weeks": [count.as_json(week) for week, count in sorted(self.weeks.items())],
            "detectors": sorted(
                (count.as_json(name) for name, count in self.detectors.items()),
                key=lambda found: (-found["flagged"]["count"], found["detector"]),
            ),
            "reasons": [
                {"reason": reason, "decisions": count}
                for reason, count in self.reasons.most_common(MOST_REASONS)
            ],
            "shadow": [
                {"policy": name, "version": version, "changes": dict(sorted(counts.items()))}
                for (name, version), counts in sorted(self.shadow.items())
            ],
        }


def counted(records: Iterable[DecisionRecord]) -> Traffic:
    """Return what decisions say."""
    found = Traffic()
    for record in records:
        found.add(record)
    return found


def asked(record: DecisionRecord) -> Action:
    """Return what the detectors asked for, whatever was done."""
    return max((result.action for result in record.detectors.values()), default=Action.ALLOW)


def week_of(time: datetime) -> str:
    """Return the ISO week of a time in UTC, such as 2026-W48."""
    year, week, _ = time.astimezone(UTC).isocalendar()
    return f"{year}-W{week:02}"


def reasons_of(record: DecisionRecord) -> list[str]:
    """Return why a decision was flagged: `detector.metric`, or `detector: state (reason)`."""
    found = []
    for name, result in record.detectors.items():
        if not result.flagged:
            continue
        crossed = [f"{name}.{key}" for key, metric in result.metrics.items() if metric.flagged]
        found += crossed or [f"{name}: {result.state.value} ({result.reason})"]
    return found


def rows(content: Mapping[str, Any]) -> list[list[Any]]:
    """Return a report's shares as rows: week, detector, flagged, of, share, low, high."""

    def row(week: str, detector: str, share: Mapping[str, Any]) -> list[Any]:
        return [week, detector, share["count"], share["of"], share["share"], *share["interval"]]

    found = []
    for week in [{**content, "week": "all", "detectors": {}}, *content["weeks"]]:
        found.append(row(week["week"], "any", week["flagged"]))
        found.append(row(week["week"], "stopped", week["stopped"]))
        found += [row(week["week"], name, share) for name, share in week["detectors"].items()]
    found += [row("all", d["detector"], d["flagged"]) for d in content["detectors"]]
    return found
