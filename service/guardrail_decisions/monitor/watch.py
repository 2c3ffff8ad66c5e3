"""Drift and promises of every policy in a store, kept up to date as decisions and labels come."""

from __future__ import annotations

import hashlib
import logging
import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from prometheus_client.core import GaugeMetricFamily, Metric

from guardrail_decisions.monitor import drift as drifting
from guardrail_decisions.monitor import promise as promising
from guardrail_decisions.monitor.drift import (
    DriftFinding,
    DriftWatch,
    Reference,
    judge_drift,
    limit_of,
)
from guardrail_decisions.monitor.promise import (
    LabelledDecision,
    Promise,
    PromiseFinding,
    Step,
    Stratum,
    even_steps,
    judge_promise,
    promises,
    stratified_steps,
)
from guardrail_decisions.reading import Decisions, Filters
from guardrail_decisions.rows import StoredDecision, StoredFeedback
from guardrail_decisions.writing import Writer
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.errors import ConfigurationError, raised_at
from guardrail_service.server.decisions import DecisionRecord

_LOG = logging.getLogger(__name__)
ADJUDICATOR = "adjudicator"
"""Name of the annotator whose word is final, as in label files."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A drawn sample: the decisions of one policy that people were asked about.

    Attributes:
        id: Stands in the feedback that was given for it.
        policy_hash: Of the policy that decided.
        members: Record ids of the decisions drawn, none of them late.
        flagged: Flagged decisions that could have been drawn, and those that were.
        passed: The same of decisions that passed.
        is_even: Whether all had the same chance to be drawn, whatever was decided.
    """

    id: str
    policy_hash: str
    members: Collection[str]
    flagged: Stratum
    passed: Stratum
    is_even: bool = False

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Draw:
        """Return a draw as the store has it."""
        strata = written["strata"]
        return cls(
            id=written["id"],
            policy_hash=written["policy_hash"],
            members=frozenset(member["record_id"] for member in written["members"]),
            flagged=_stratum(strata["flagged"]),
            passed=_stratum(strata["passed"]),
            is_even=len({round(member["probability"], 9) for member in written["members"]}) == 1,
        )


def _stratum(written: Mapping[str, Any]) -> Stratum:
    return Stratum(written["population"], written["drawn"])


@dataclass(frozen=True, slots=True)
class PolicyFindings:
    """The state of one policy's promises and scores.

    Attributes:
        disputed: Drawn decisions left out because people disagree about them.
    """

    policy: str
    version: str
    policy_hash: str
    decisions: int
    promises: tuple[PromiseFinding, ...]
    drift: tuple[DriftFinding, ...]
    disputed: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the findings for reports and the studio."""
        return {
            "policy": self.policy,
            "version": self.version,
            "policy_hash": self.policy_hash,
            "decisions": self.decisions,
            "promises": [finding.as_json() for finding in self.promises],
            "drift": [finding.as_json() for finding in self.drift],
            "disputed": self.disputed,
        }


class ScoreWatch:
    """Every score of one policy that has a reference; see `drift`.

    Args:
        calibration: Of the policy.
        delta: See `judge_drift`.
    """

    def __init__(self, calibration: Mapping[str, Any], delta: float = drifting.DELTA) -> None:
        self._watches: dict[tuple[str, str], DriftWatch | None] = {
            (detector, key): None if found is None else DriftWatch(found)
            for detector, key, found in references(calibration)
        }
        self._least_share = 1.0
        self._delta = delta
        self._drifted_at: dict[tuple[str, str], float] = {}

    @property
    def watches_anything(self) -> bool:
        """Return whether some metric has a reference."""
        return any(watch is not None for watch in self._watches.values())

    def add(self, records: Sequence[DecisionRecord]) -> None:
        """Take the policy's decisions in the order in which they were stored.

        Where only a share of the answers that passed is stored, as small a share of the flagged
        ones is taken, or their scores would look as if they had moved.
        """
        records = [record for record in records if self._is_taken(record)]
        for (detector, key), watch in self._watches.items():
            if watch is not None:
                values = np.array([_score(record, detector, key) for record in records])
                chances = np.array([chance(record.record_id, key) for record in records])
                wealth = watch.add(values, chances)
                above = np.flatnonzero(wealth >= limit_of(self._watched, self._delta))
                if above.size:  # the first time stays
                    at = records[int(above[0])].time.timestamp()
                    self._drifted_at.setdefault((detector, key), at)

    def _is_taken(self, record: DecisionRecord) -> bool:
        self._least_share = min(self._least_share, record.share)
        return chance(record.record_id, "share") < self._least_share / record.share

    @property
    def _watched(self) -> int:
        return sum(watch is not None for watch in self._watches.values())

    def findings(self) -> tuple[DriftFinding, ...]:
        """Return the state of every metric."""
        return tuple(
            judge_drift(
                ".".join(name), watch, self._watched, self._delta, self._drifted_at.get(name)
            )
            for name, watch in self._watches.items()
        )


def references(block: Mapping[str, Any]) -> Iterator[tuple[str, str, Reference | None]]:
    """Yield detector, metric and reference of every metric that a calibration speaks of.

    A calibration that was written before references were kept has None.
    """
    for evaluator, metrics in sorted(block.get("per_metric", {}).items()):
        try:
            detector = REGISTRY.spec(evaluator, "calibration.per_metric").id
        except ConfigurationError:  # a plug-in that is not installed here
            detector = evaluator
        for key, entry in sorted(metrics.items()):
            stored = entry.get("baseline")
            yield detector, key, None if stored is None else Reference.of(stored)


def _score(record: DecisionRecord, detector: str, key: str) -> float:
    result = record.detectors.get(detector)
    metric = None if result is None else result.metrics.get(key)
    return math.nan if metric is None else metric.score


def chance(record_id: str, key: str) -> float:
    """Return a number in [0, 1) that is as good as random, and the same at every reading."""
    found = hashlib.blake2b(f"{key}\0{record_id}".encode(), digest_size=8).digest()
    return int.from_bytes(found, "big") / 2**64


def word(feedback: Iterable[StoredFeedback]) -> tuple[bool | None, bool]:
    """Return whether people would show an answer, and whether they disagree.

    The first is None where nobody could tell, or where people disagree and nobody settled it.
    """
    words = {one.caller: one.label for one in feedback if one.metric is None}
    final = words.get(ADJUDICATOR)
    said = {final} if final not in (None, "abstain") else set(words.values()) - {"abstain"}
    if len(said) > 1:
        return None, True
    return (said == {"pass"} if said else None), False


def steps_of(promise: Promise, draw: Draw, labelled: Sequence[StoredDecision]) -> list[Step]:
    """Return what the labels of one draw say about a promise of the policy that decided.

    Only labels that were given for the draw count: those whom an answer annoyed write unasked.
    """
    own = [
        one
        for one in labelled
        if one.record.record_id in draw.members and one.record.status == "complete"
    ]
    found = []
    for one in own:
        given = [said for said in one.feedback if said.draw == draw.id]
        good, _ = word(given)
        if good is not None:
            found.append(
                LabelledDecision(
                    flagged=one.record.decision == "flag",
                    good=good,
                    at=max(said.time.timestamp() for said in given),
                    by_metric=_by_metric(promise, one.record),
                )
            )
    found.sort(key=lambda one: one.at)
    if draw.is_even:  # a step for each label: few flagged ones must not hold up the others
        return even_steps(promise.kind, found)
    return stratified_steps(promise.kind, found, draw.flagged, draw.passed)


def _by_metric(promise: Promise, record: DecisionRecord) -> bool | None:
    if promise.metric is None:
        return None
    detector, _, key = promise.metric.rpartition(".")
    result = record.detectors.get(detector)
    return result is not None and key in result.metrics and result.metrics[key].flagged


def judge_promises(
    calibration: Mapping[str, Any],
    draws: Sequence[Draw],
    labelled: Sequence[StoredDecision],
    delta: float = promising.DELTA,
) -> tuple[PromiseFinding, ...]:
    """Return what the labels of a policy's draws say about each of its promises.

    Args:
        calibration: Of the policy.
        draws: Those from its decisions.
        labelled: All labelled decisions of the policy.
        delta: Chance that any promise that is kept is ever called broken.
    """
    made = promises(calibration)
    return tuple(
        judge_promise(
            promise,
            [step for draw in draws for step in steps_of(promise, draw, labelled)],
            delta / len(made),
        )
        for promise in made
    )


def count_disputed(draws: Iterable[Draw], labelled: Sequence[StoredDecision]) -> int:
    """Return the decisions of some draws about which people disagree."""
    return sum(
        word(said for said in one.feedback if said.draw == draw.id)[1]
        for draw in draws
        for one in labelled
        if one.record.record_id in draw.members
    )


class Watch:
    """Everything that is known of the policies in a store; a refresh reads what is new.

    Attributes:
        findings: As of the last refresh, the latest policy last.

    Args:
        delta: See `judge_promises`.
        drift_delta: See `judge_drift`.
    """

    def __init__(self, delta: float = promising.DELTA, drift_delta: float = drifting.DELTA) -> None:
        self.findings: tuple[PolicyFindings, ...] = ()
        self._delta = delta
        self._drift_delta = drift_delta
        self._scores: dict[str, ScoreWatch] = {}
        self._read_to: dict[str, int] = {}

    def refresh(self, store: Decisions, pause: Callable[[], object] = lambda: None) -> None:
        """Read what was stored and said since the last time.

        Args:
            store: Where.
            pause: Called between pages, so that others get their turn.
        """
        draws = [Draw.read(written) for written in store.draws()]
        self.findings = tuple(
            self._finding(
                store, sha256, found, [d for d in draws if d.policy_hash == sha256], pause
            )
            for sha256, found in store.policies().items()
        )

    def _finding(
        self,
        store: Decisions,
        sha256: str,
        policy: Mapping[str, Any],
        draws: Sequence[Draw],
        pause: Callable[[], object],
    ) -> PolicyFindings:
        calibration = policy["calibration"]
        scores = self._scores.setdefault(sha256, ScoreWatch(calibration, self._drift_delta))
        if scores.watches_anything:
            self._read(store, sha256, scores, pause)
        filters = Filters(policy_hash=sha256, labelled=True)
        labelled = list(store.decisions(filters)) if draws else []
        return PolicyFindings(
            policy=policy["name"],
            version=policy["version"],
            policy_hash=sha256,
            decisions=store.count(Filters(policy_hash=sha256)),
            promises=judge_promises(calibration, draws, labelled, self._delta),
            drift=scores.findings(),
            disputed=count_disputed(draws, labelled),
        )

    def _read(
        self, store: Decisions, sha256: str, scores: ScoreWatch, pause: Callable[[], object]
    ) -> None:
        found = store.decisions(Filters(policy_hash=sha256), after=self._read_to.get(sha256, 0))
        while page := list(islice(found, _PAGE)):
            scores.add([one.record for one in page])
            self._read_to[sha256] = page[-1].key
            pause()

    def figures(self) -> Iterable[Metric]:
        """Return what `/metrics` shows."""
        names = ["policy", "version", "hash"]
        alarm = GaugeMetricFamily(
            "guardrail_drift_alarm",
            "1 since the scores of a metric have moved away from those it was calibrated on.",
            labels=[*names, "metric"],
        )
        of_promise = {
            name: GaugeMetricFamily(
                f"guardrail_promise_{name}", text, labels=[*names, "kind", "metric"]
            )
            for name, text in _PROMISE_FIGURES.items()
        }
        for found in self.findings:
            who = [found.policy, found.version, found.policy_hash[:12]]
            for moved in found.drift:
                if moved.state != "no_reference":
                    alarm.add_metric([*who, moved.metric], moved.state == "drifted")
            for said in found.promises:
                labels = [*who, said.promise.kind, said.promise.metric or "all"]
                for name, value in _promise_values(said).items():
                    of_promise[name].add_metric(labels, value)
        return [alarm, *of_promise.values()]


_PAGE = 500
_PROMISE_FIGURES = {
    "broken": "1 since labels refute what a policy promised.",
    "enough_labels": "1 once there are enough labels to say more than nothing.",
    "bound": "The share that was promised at most.",
    "low": "Lower end of the share, valid at all looks together.",
    "high": "Upper end of the share, valid at all looks together.",
    "labels": "Labels of drawn decisions that the promise is about.",
}


def _promise_values(finding: PromiseFinding) -> dict[str, float]:
    return {
        "broken": finding.state == "broken",
        "enough_labels": finding.state != "not_enough_labels",
        "bound": finding.promise.bound,
        "low": finding.interval[0],
        "high": finding.interval[1],
        "labels": finding.labels,
    }


class Watching:
    """A thread that keeps a watch up to date beside the thread that writes.

    Args:
        writer: Of the store; it is only read.
        every_s: Seconds between two looks.
    """

    def __init__(self, writer: Writer, every_s: float = 60.0) -> None:
        self.watch = Watch()
        self._store = Decisions(writer)
        self._every_s = every_s
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="decisions-watch", daemon=True)

    def start(self) -> None:
        """Begin; the first look comes after one interval."""
        self._thread.start()

    def close(self, timeout_s: float) -> None:
        """End, at the latest after the page that is being read."""
        self._closing.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._closing.wait(self._every_s):
            try:
                self.watch.refresh(self._store, self._pause)
            except _Closing:
                return
            except Exception as error:  # noqa: BLE001 - the store may be away; look again later
                _LOG.warning("watching decisions: %s at %s", type(error).__name__, raised_at(error))

    def _pause(self) -> None:
        if self._closing.wait(_PAUSE_S):
            raise _Closing


class _Closing(Exception):
    """The watch ends."""


_PAUSE_S = 0.05
"""Seconds that a long look leaves to requests after every page."""
