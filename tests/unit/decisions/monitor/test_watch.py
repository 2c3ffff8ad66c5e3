"""Scores and promises of the policies in a store, as decisions and labels come."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from datetime import timedelta
from threading import Event
from typing import Any

import numpy as np
import pytest
from sqlalchemy.exc import OperationalError

from guardrail_decisions.monitor.promise import Stratum
from guardrail_decisions.monitor.watch import (
    Draw,
    Watch,
    Watching,
    chance,
    judge_promises,
    word,
)
from guardrail_decisions.rows import StoredDecision, StoredFeedback
from guardrail_offline.calibration.statistics import baseline
from guardrail_service.policy.decide import Policy
from guardrail_service.server.decisions import DecisionRecord, Mark
from guardrail_service.types import Direction, MetricResult
from tests.unit.decisions.made_up import NOON, SCORED, reader, record, store
from tests.unit.decisions.made_up import word as said_of

PROMISED: dict[str, Any] = {
    "target": {"kind": "false_flag_rate", "scope": "joint", "alpha": 0.1, "delta": 0.1},
    "per_metric": {
        "groundedness": {
            "groundedness": {"baseline": baseline(np.random.default_rng(0).normal(size=100))},
            "of_an_older_fit": {},
        }
    },
}
POLICY = Policy("default", "3", "a" * 64, {}, calibration=PROMISED)


def scored(number: int, score: float, **changes: Any) -> DecisionRecord:
    """Return a decision with a score of groundedness; it is flagged below -1."""
    flags = score < -1
    metric = MetricResult(score, Direction.HIGHER, -1.0, flags, True)
    result = dataclasses.replace(SCORED, flagged=flags, metrics={"groundedness": metric})
    return record(
        number,
        record_id=f"{number:032}",
        decision="flag" if flags else "pass",
        detectors={"groundedness": result},
        **changes,
    )


def stored(url: str, scores: Sequence[float], start: int = 0, **changes: Any) -> None:
    """Store decisions with these scores under the calibrated policy."""
    with store(url) as opened:
        opened.serving([POLICY])
        for number, score in enumerate(scores, start):
            assert opened.offer(scored(number, float(score), **changes))


def drawn(url: str, scores: Sequence[float], start: int = 0) -> None:
    """Store decisions, draw them all evenly, and call every answer good a day later."""
    stored(url, scores, start)
    flagged = sum(score < -1 for score in scores)
    counts = {"flagged": flagged, "passed": len(scores) - flagged}
    numbers = range(start, start + len(scores))
    body = {
        "policy_hash": POLICY.sha256,
        "strata": {name: {"population": n, "drawn": n} for name, n in counts.items()},
        "members": [{"record_id": f"{n:032}", "probability": 1.0} for n in numbers],
    }
    with reader(url) as opened:
        opened.writer.draw(f"d{start}", NOON.isoformat(), json.dumps(body))
        day = NOON + timedelta(days=1)
        words = [said_of(n, draw=f"d{start}", time=day + timedelta(seconds=n)) for n in numbers]
        assert set(opened.writer.write([], words, again=False)) == {"stored"}


def test_a_refresh_reads_what_is_new(url: str) -> None:
    """Looking twice is looking once at both; the metric without a reference says so."""
    scores = np.random.default_rng(1).normal(size=90)
    watch = Watch()
    for start in (0, 60):
        stored(url, scores[start : start + 60], start)
        with reader(url) as opened:
            watch.refresh(opened)
    whole = Watch()
    with reader(url) as opened:
        whole.refresh(opened)
    (found,), (at_once,) = watch.findings, whole.findings
    assert (found.drift[0].delta, found.drift[0].drifted_at) == (0.01, None)
    for one, other in zip(found.drift, at_once.drift, strict=True):
        assert one.log_evidence == pytest.approx(other.log_evidence)
        assert dataclasses.replace(one, log_evidence=other.log_evidence) == other
    assert (found.policy, found.version, found.decisions) == ("default", "3", 90)
    assert [(d.state, d.seen) for d in found.drift] == [("as_before", 90), ("no_reference", 0)]
    assert [p.state for p in found.promises] == ["not_enough_labels"]
    assert found.as_json()["promises"][0]["share"] is None


def test_moved_scores_raise_the_alarm_in_the_metrics(url: str) -> None:
    """By policy, version, hash and metric; a metric that cannot drift has no sample."""
    stored(url, np.random.default_rng(2).normal(size=120) + 1.5)
    watch = Watch()
    with reader(url) as opened:
        watch.refresh(opened)
    moved = watch.findings[0].drift[0]
    assert (moved.state, moved.drifted_at) == ("drifted", NOON.timestamp())
    found = {metric.name: metric.samples for metric in watch.figures()}
    (alarm,) = found["guardrail_drift_alarm"]
    assert (alarm.value, alarm.labels["metric"]) == (1, "groundedness.groundedness")
    (broken,) = found["guardrail_promise_broken"]
    assert (broken.value, broken.labels["kind"], broken.labels["metric"]) == (
        0,
        "false_flag",
        "all",
    )


def test_a_thread_looks_again_and_ends(url: str) -> None:
    """Beside the one that writes; a store that is away is looked at again later."""
    stored(url, np.random.default_rng(4).normal(size=20))
    with reader(url) as opened:
        watching = Watching(opened.writer, every_s=0.01)
        looked = Event()
        first = watching.watch.refresh
        tries: list[int] = []

        def refresh(*given: Any) -> None:
            tries.append(1)
            if len(tries) == 1:
                raise OperationalError("away", None, Exception())
            first(*given)
            looked.set()

        watching.watch.refresh = refresh  # type: ignore[method-assign]
        watching.start()
        assert looked.wait(60)
        watching.close(60)
        assert [found.policy for found in watching.watch.findings] == ["default"]
        assert not watching._thread.is_alive()


def test_answers_that_passed_and_were_not_stored_are_no_drift(url: str) -> None:
    """A fifth of what passed is stored: flagged ones are thinned as much before they count."""
    rng = np.random.default_rng(3)
    kept = [score for score in rng.normal(size=1500) if score < -1 or rng.random() < 0.2]
    with store(url) as opened:
        opened.serving([POLICY])
        for number, score in enumerate(kept):
            assert opened.offer(scored(number, score, share=1.0 if score < -1 else 0.2))
    watch = Watch(drift_delta=0.05)
    with reader(url) as opened:
        watch.refresh(opened)
    assert watch.findings[0].drift[0].state == "as_before"


def said(label: Mark, by: str = "ann", minute: int = 0, draw: str | None = "d1") -> StoredFeedback:
    """Return somebody's word."""
    return StoredFeedback(0, 0, NOON + timedelta(minutes=minute), by, label, draw=draw)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], (None, False)),
        ([said("pass")], (True, False)),
        ([said("fail")], (False, False)),
        ([said("abstain")], (None, False)),
        ([said("pass"), said("fail")], (False, False)),
        ([said("pass"), said("fail", "bob")], (None, True)),
        ([said("pass"), said("abstain", "bob")], (True, False)),
        ([said("pass"), said("fail", "bob"), said("fail", "adjudicator")], (False, False)),
        ([said("pass"), said("fail", "bob"), said("abstain", "adjudicator")], (None, True)),
        ([said("pass"), dataclasses.replace(said("fail"), metric="toxicity.x")], (True, False)),
    ],
    ids=["nobody", "pass", "fail", "cannot tell", "changed his mind", "disagree", "one cannot tell",
         "settled", "not settled", "about a metric"],
)  # fmt: skip
def test_one_word_per_decision(
    words: list[StoredFeedback], expected: tuple[bool | None, bool]
) -> None:
    """As the files of labels are read."""
    assert word(words) == expected


def test_a_draw_is_read_as_the_store_has_it() -> None:
    """As `guardrail decisions sample` writes it."""
    written = {
        "id": "d1",
        "policy": "default",
        "policy_hash": "a" * 64,
        "strata": {
            "flagged": {"population": 30.0, "stored": 30, "drawn": 1},
            "passed": {"population": 200.0, "stored": 20, "drawn": 2},
        },
        "members": [{"record_id": f"{n:032}", "probability": 0.1} for n in range(3)],
    }
    found = Draw.read(written)
    assert (found.flagged, found.passed) == (Stratum(30.0, 1), Stratum(200.0, 2))
    assert f"{2:032}" in found.members
    assert found.is_even
    written["members"][0]["probability"] = 0.2  # type: ignore[index]
    assert not Draw.read(written).is_even


def test_an_even_draw_needs_no_flagged_answer() -> None:
    """Sixty good answers of which two are flagged: each label counts by itself."""
    draw, labelled = even_draw([(-2.0, "pass", "d1")] * 2 + [(1.0, "pass", "d1")] * 58)
    for is_even, state in ((True, "kept_so_far"), (False, "not_enough_labels")):
        (found,) = judge_promises(PROMISED, [dataclasses.replace(draw, is_even=is_even)], labelled)
        assert found.state == state


def even_draw(
    labels: Sequence[tuple[float, Mark, str | None]],
) -> tuple[Draw, list[StoredDecision]]:
    """Return a draw of everything, labelled in order; the last of each is the feedback's draw."""
    found = [
        StoredDecision(n, scored(n, score), "none", (said(label, minute=n, draw=draw),))
        for n, (score, label, draw) in enumerate(labels)
    ]
    flags = sum(one.record.decision == "flag" for one in found)
    ids = frozenset(one.record.record_id for one in found)
    passed = len(found) - flags
    strata = Stratum(flags, flags), Stratum(passed, passed)
    return Draw("d1", "a" * 64, ids, *strata), found


def test_labels_of_a_draw_break_a_promise_and_others_do_not() -> None:
    """Forty good answers flagged of sixty: said for the draw, or unasked."""
    for draw_id, state, labels in (("d1", "broken", 60), (None, "not_enough_labels", 0)):
        draw, labelled = even_draw([(-2.0, "pass", draw_id)] * 40 + [(1.0, "pass", draw_id)] * 20)
        (found,) = judge_promises(PROMISED, [draw], labelled)
        assert (found.state, found.labels) == (state, labels)


def test_a_promise_by_metric_counts_that_metric_alone() -> None:
    """Each has its part of what may go wrong."""
    per_metric = {"status": "calibrated"}
    block = {
        "target": {**PROMISED["target"], "scope": "per_metric"},
        "per_metric": {"groundedness": {"groundedness": per_metric}, "looping": {"x": per_metric}},
    }
    draw, labelled = even_draw([(-2.0, "pass", "d1")] * 70 + [(1.0, "pass", "d1")] * 70)
    found = judge_promises(block, [draw], labelled)
    assert [(f.promise.metric, f.state, f.against) for f in found] == [
        ("groundedness.groundedness", "broken", 70),
        ("looping.x", "kept_so_far", 0),
    ]
    assert {f.delta for f in found} == {0.025}


def test_ties_are_broken_the_same_way_at_every_reading() -> None:
    """Even in [0, 1), apart for each metric."""
    found = np.array([chance(f"{n:032}", "m") for n in range(2000)])
    assert abs(found.mean() - 0.5) < 0.03
    assert 0 <= found.min() < found.max() < 1
    assert chance("a", "m") == chance("a", "m") != chance("a", "n")
