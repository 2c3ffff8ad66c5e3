"""Stored decisions under another policy: from their scores where those say all, else from texts.

Scores are enough if the new policy needs only what was scored then: the same detectors with the
same options, models and rules. The comparison with thresholds, and what a missing score means, are
those of the service. A score that was late stays late: time is not replayed.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from guardrail_offline.calibration.labels import inert
from guardrail_offline.intervals import exact_interval, stratified_interval
from guardrail_service.errors import ServiceError
from guardrail_service.policy.decide import Policy, Rule, decide
from guardrail_service.policy.fingerprints import rules_key, used_by
from guardrail_service.server.decisions import DecisionRecord, options_hash
from guardrail_service.types import (
    Decision,
    DetectorResult,
    NoValue,
    Outcome,
    Passage,
    Sample,
    State,
    Verdict,
)

Source = Literal["scores", "texts"]
TextMode = Literal["none", "hashes", "redacted", "full"]
Judge = Callable[[Sample], Verdict]
"""Judges a sample anew under the new policy, without a deadline."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a decision cannot be replayed.

    Attributes:
        reason: `detector_not_run`, `other_options`, `other_model`, `other_rules` (of the detector
            itself, or nobody noted which) or `score_not_stored` of scores;
            `no_texts`, `texts_redacted`, `own_options` or `not_judged` of texts;
            `stream_was_stopped` of both: nobody knows the rest of the answer.
        detector: The detector it is about; None: the whole decision.
    """

    reason: str
    detector: str | None = None

    def __str__(self) -> str:
        return self.reason if self.detector is None else f"{self.reason}: {self.detector}"


@dataclass(frozen=True, slots=True)
class ReplayedDecision:
    """One decision, old and new.

    Attributes:
        new: None where it cannot be said.
        source: What the new decision was made from; None beside None.
        cannot_replay: Why there is no new decision.
        share: The chance with which such a decision was stored; it stands for 1 / share.
    """

    request_id: str
    item: int
    time: str
    old: Decision
    old_flagged: tuple[str, ...]
    new: Decision | None
    new_flagged: tuple[str, ...] = ()
    source: Source | None = None
    cannot_replay: Obstacle | None = None
    share: float = 1.0

    @property
    def change(self) -> str | None:
        """Return `pass->flag` or `flag->pass`; None where nothing changes or nothing is known."""
        return None if self.new in (None, self.old) else f"{self.old}->{self.new}"

    def as_json(self) -> dict[str, Any]:
        """Return the decision for reports and the studio."""
        return {
            "request_id": self.request_id,
            "item": self.item,
            "time": self.time,
            "old": self.old,
            "new": self.new,
            "old_flagged": list(self.old_flagged),
            "new_flagged": list(self.new_flagged),
            "source": self.source,
            "cannot_replay": None if self.cannot_replay is None else str(self.cannot_replay),
            "share": self.share,
        }


def replay_one(
    record: DecisionRecord,
    policy: Policy,
    fingerprints: Mapping[str, str],
    judge: Judge | None = None,
    text_mode: TextMode = "none",
) -> ReplayedDecision:
    """Return what another policy makes of a decision.

    Args:
        record: The decision as it was stored.
        policy: The new one.
        fingerprints: What scores would depend on today.
        judge: Judges texts where scores are not enough; None: nobody does.
        text_mode: What the store kept of the texts.
    """
    if record.route == "stream" and record.action == "block":
        return _replayed(record, obstacle=Obstacle("stream_was_stopped"))
    obstacle = missing_scores(record, policy, fingerprints)
    if obstacle is None:
        outcomes = {name: outcome_of(record.detectors[name]) for name in policy.rules}
        decided = decide(policy, outcomes)
        return _replayed(record, decided.decision, decided.flagged, "scores")
    if judge is None:
        return _replayed(record, obstacle=obstacle)
    if obstacle_of_texts := missing_texts(record, policy, text_mode):
        return _replayed(record, obstacle=obstacle_of_texts)
    try:
        verdict = judge(
            Sample(record.answer, record.question, tuple(Passage(t) for t in record.contexts))
        )
    except ServiceError:
        return _replayed(record, obstacle=Obstacle("not_judged"))
    return _replayed(record, verdict.decision, verdict.flagged, "texts")


def missing_scores(
    record: DecisionRecord, policy: Policy, fingerprints: Mapping[str, str]
) -> Obstacle | None:
    """Return why stored scores are not enough for a policy; None if they are."""
    for name, rule in policy.rules.items():
        result = record.detectors.get(name)
        if result is None:
            return Obstacle("detector_not_run", name)
        if record.options.get(name) != options_hash(rule):
            return Obstacle("other_options", name)
        keys = used_by([rule.spec], {**record.fingerprints, **fingerprints})
        changed = {k for k in keys if record.fingerprints.get(k) != fingerprints.get(k)}
        if changed:
            is_own = changed == {rules_key(rule.spec)}
            return Obstacle("other_rules" if is_own else "other_model", name)
        if not _has_scores(rule, result):
            return Obstacle("score_not_stored", name)
    return None


def _has_scores(rule: Rule, result: DetectorResult) -> bool:
    """Return whether there is a score for every cut, or a state that no cut would change."""
    if result.state is State.ERROR:
        # The only fault that depends on thresholds: a pack's model does not give this metric.
        return result.reason != "missing_metric"
    return result.state is not State.EVALUATED or rule.cuts.keys() <= result.metrics.keys()


def missing_texts(record: DecisionRecord, policy: Policy, mode: TextMode) -> Obstacle | None:
    """Return why kept texts are not enough to judge again; None if they are."""
    if mode != "full":
        return Obstacle("texts_redacted" if mode == "redacted" else "no_texts")
    for name in policy.rules:
        # The request brought options of its own, such as a schema, and only their absence is kept.
        if name in record.detectors and name not in record.options:
            return Obstacle("own_options", name)
    return None


def outcome_of(result: DetectorResult) -> Outcome:
    """Return what a detector found, without what a policy made of it."""
    if result.state is not State.EVALUATED:
        return Outcome(missing=NoValue(result.state, result.reason or "unknown"))
    scores = {key: metric.score for key, metric in result.metrics.items()}
    return Outcome.evaluated(scores, result.spans, result.coverage)


def _replayed(
    record: DecisionRecord,
    new: Decision | None = None,
    flagged: Sequence[str] = (),
    source: Source | None = None,
    obstacle: Obstacle | None = None,
) -> ReplayedDecision:
    return ReplayedDecision(
        request_id=record.request_id,
        item=record.item,
        time=record.time.isoformat(),
        old="flag" if record.decision == "flag" else "pass",
        old_flagged=tuple(name for name, result in record.detectors.items() if result.flagged),
        new=new,
        new_flagged=tuple(flagged),
        source=source,
        cannot_replay=obstacle,
        share=record.share,
    )


@dataclass(frozen=True, slots=True)
class ShareOf:
    """A share of decisions with its 95 % interval; counts are of stored decisions."""

    count: int
    of: int
    share: float | None
    interval: tuple[float, float]

    def as_json(self) -> dict[str, Any]:
        """Return the share for reports and the studio."""
        return {
            "count": self.count,
            "of": self.of,
            "share": self.share,
            "interval": list(self.interval),
        }

    def __str__(self) -> str:
        if self.share is None:
            return "0 of 0"
        low, high = self.interval
        return f"{self.count} of {self.of} ({self.share:.1%}, 95 % interval {low:.1%}-{high:.1%})"


@dataclass(frozen=True, slots=True)
class DetectorChange:
    """One detector's part: decisions it flags now and did not, and the other way round."""

    detector: str
    begins: int
    ends: int

    def as_json(self) -> dict[str, Any]:
        """Return the change for reports and the studio."""
        return {"detector": self.detector, "begins_to_flag": self.begins, "ends": self.ends}


@dataclass(frozen=True, slots=True)
class Replay:
    """All decisions, old and new.

    Attributes:
        policy: Name, version and hash of the new policy.
        decisions: In the order in which they were stored.
    """

    policy: Mapping[str, str]
    decisions: tuple[ReplayedDecision, ...]

    @property
    def known(self) -> list[ReplayedDecision]:
        """Return the decisions that could be replayed."""
        return [one for one in self.decisions if one.new is not None]

    @property
    def cannot(self) -> Counter[str]:
        """Return how many could not be replayed, by reason."""
        return Counter(str(o.cannot_replay) for o in self.decisions if o.cannot_replay is not None)

    def table(self) -> dict[str, int]:
        """Return counts of stored decisions by `old->new`."""
        pairs = [f"{old}->{new}" for old in ("pass", "flag") for new in ("pass", "flag")]
        found = Counter(f"{one.old}->{one.new}" for one in self.known)
        return {pair: found[pair] for pair in pairs}

    def changed(self) -> ShareOf:
        """Return the share of replayed decisions that change, each weighted by what it stands for.

        Decisions that passed may have been stored with a smaller chance than flagged ones.
        """
        return weighted_share(self.known, lambda one: one.change is not None)

    def changed_at_most(self) -> float:
        """Return the share that changes if every decision that cannot be replayed does."""
        found = weighted_share(self.decisions, lambda o: o.change is not None or o.new is None)
        return found.share or 0.0

    def of_passed(self) -> ShareOf:
        """Return the share of decisions that passed and would be flagged."""
        return weighted_share(_old(self.known, "pass"), lambda one: one.change is not None)

    def of_flagged(self) -> ShareOf:
        """Return the share of flagged decisions that would pass."""
        return weighted_share(_old(self.known, "flag"), lambda one: one.change is not None)

    def by_detector(self) -> list[DetectorChange]:
        """Return which detectors flag more or less, the largest change first."""
        begins: Counter[str] = Counter()
        ends: Counter[str] = Counter()
        for one in self.known:
            begins.update(set(one.new_flagged) - set(one.old_flagged))
            ends.update(set(one.old_flagged) - set(one.new_flagged))
        found = [DetectorChange(name, begins[name], ends[name]) for name in {*begins, *ends}]
        return sorted(found, key=lambda c: (-c.begins - c.ends, c.detector))

    def as_json(self) -> dict[str, Any]:
        """Return the whole replay for `--json` and the studio."""
        return {
            "policy": dict(self.policy),
            "decisions": len(self.decisions),
            "replayed": len(self.known),
            "from_texts": sum(one.source == "texts" for one in self.decisions),
            "cannot_replay": dict(self.cannot.most_common()),
            "table": self.table(),
            "changed": self.changed().as_json(),
            "changed_at_most": self.changed_at_most(),
            "passed_now_flagged": self.of_passed().as_json(),
            "flagged_now_passed": self.of_flagged().as_json(),
            "by_detector": [change.as_json() for change in self.by_detector()],
            "changes": [o.as_json() for o in self.decisions if o.change or o.cannot_replay],
        }

    def csv(self) -> str:
        """Return one line a decision, inert in spreadsheets."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        names = list(_EMPTY.as_json())
        writer.writerow([*names, "change"])
        for one in self.decisions:
            row = one.as_json()
            cells = [" ".join(v) if isinstance(v, list) else v for v in row.values()]
            writer.writerow([inert(cell) for cell in (*cells, one.change)])
        return text.getvalue()

    def sentences(self) -> Iterator[str]:
        """Yield what was found, in plain words."""
        yield f"{len(self.known)} of {len(self.decisions)} decisions replayed."
        for reason, count in self.cannot.most_common():
            yield f"Cannot replay {count}: {reason}."
        yield f"Changed: {self.changed()}."
        yield f"Passed, and would be flagged: {self.of_passed()}."
        yield f"Flagged, and would pass: {self.of_flagged()}."
        for change in self.by_detector():
            yield (
                f"{change.detector}: flags {change.begins} more, "
                f"no longer flags {change.ends} that it did."
            )


_EMPTY = ReplayedDecision("", 0, "", "pass", (), None)


def weighted_share(
    decisions: Sequence[ReplayedDecision], has: Callable[[ReplayedDecision], bool]
) -> ShareOf:
    """Return which share of decisions has a property, each weighted by what it stands for."""
    strata: dict[tuple[str, float], list[bool]] = {}
    for one in decisions:
        strata.setdefault((one.old, one.share), []).append(has(one))
    parts = [(sum(found), len(found), 1 / share) for (_, share), found in strata.items()]
    count, of = sum(x for x, _, _ in parts), sum(n for _, n, _ in parts)
    total = sum(n * weight for _, n, weight in parts)
    even = len({weight for _, _, weight in parts}) == 1
    return ShareOf(
        count=count,
        of=of,
        share=sum(x * weight for x, _, weight in parts) / total if total else None,
        interval=exact_interval(count, of) if even else stratified_interval(parts),
    )


def _old(decisions: Iterable[ReplayedDecision], old: Decision) -> list[ReplayedDecision]:
    return [one for one in decisions if one.old == old]
