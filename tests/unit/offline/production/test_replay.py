"""A decision is replayed exactly, or the reason says why it cannot be."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.production.replay import (
    Replay,
    ReplayedDecision,
    replay_one,
)
from guardrail_service.errors import LimitExceeded
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.file import load_file
from guardrail_service.types import NoValue, Outcome, Sample, State, Timings, Verdict
from tests.unit.offline.calibration.labs import BASE, FINGERPRINTS, SERVING
from tests.unit.offline.production.decided import record

MISSING = Outcome(missing=NoValue(State.UNVERIFIED, "missing_input"))
Write = Callable[..., Policy]


@pytest.fixture
def policy(tmp_path: Path) -> Write:
    """Load a policy over three detectors, some keys changed."""

    def load(**changes: Any) -> Policy:
        path = tmp_path / f"p{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps(BASE | changes))
        return load_file(path, SERVING).policy

    return load


def test_thresholds_are_compared_anew(policy: Write) -> None:
    """Both ways; a score equal to its threshold passes, as in the service."""
    old = policy()
    for threshold, new in ((0.5, "pass"), (0.6, "pass"), (0.7, "flag")):
        cut = policy(calibrated_thresholds={"groundedness": {"groundedness": threshold}})
        told = replay_one(record(old, 0.6), cut, FINGERPRINTS)
        assert (told.old, told.new, told.source) == ("pass", new, "scores")
    assert told.change == "pass->flag"
    assert (told.old_flagged, told.new_flagged) == ((), ("groundedness",))


@pytest.mark.parametrize(
    ("on_unverified", "new"),
    [
        ("flag", "flag"),
        ("pass", "pass"),
        ({"*": {"missing_input": {"decision": "pass"}}}, "pass"),
        ({"groundedness": {"unreadable_text": {"decision": "pass"}}}, "flag"),
    ],
    ids=["flag", "pass", "this reason", "another reason"],
)
def test_a_missing_score_means_what_the_new_policy_says(
    policy: Write, on_unverified: Any, new: str
) -> None:
    """The state and its reason are what was stored; the consequence is new."""
    changed = policy(policy={**BASE["policy"], "on_unverified": on_unverified})
    told = replay_one(record(policy(), MISSING), changed, FINGERPRINTS)
    assert (told.new, told.source) == (new, "scores")


def test_a_detector_that_is_switched_off_or_only_reports_decides_nothing(policy: Write) -> None:
    """Its score is there and is not asked for."""
    flagged = record(policy(), 0.1)
    off = policy(evaluator_ids=["answer_relevancy_sentence"], policy={})
    quiet = policy(policy={"report_only": ["groundedness"]})
    assert [replay_one(flagged, p, FINGERPRINTS).new for p in (off, quiet)] == ["pass"] * 2


@pytest.mark.parametrize(
    ("evaluators", "changes", "reason"),
    [
        ([*BASE["evaluator_ids"], "looping"], {}, "detector_not_run: looping"),
        (BASE["evaluator_ids"], {"options": {}}, "other_options: groundedness"),
        (BASE["evaluator_ids"], {"fingerprints": {}}, "other_model: groundedness"),
        (
            BASE["evaluator_ids"],
            {"fingerprints": {**FINGERPRINTS, "detector:groundedness": "2"}},
            "other_rules: groundedness",
        ),
        (BASE["evaluator_ids"], {"route": "stream", "action": "block"}, "stream_was_stopped"),
    ],
    ids=["new detector", "options of the request", "no fingerprints", "other rules", "stream"],
)
def test_scores_that_are_not_enough_say_why(
    policy: Write, evaluators: list[str], changes: dict[str, Any], reason: str
) -> None:
    """Nothing is guessed: there is no new decision."""
    told = replay_one(record(policy(), **changes), policy(evaluator_ids=evaluators), FINGERPRINTS)
    assert (told.new, str(told.cannot_replay)) == (None, reason)


def test_a_score_that_was_lost_is_not_guessed(policy: Write) -> None:
    """Of a detector that failed because a metric was missing, other metrics may have been there."""
    lost = Outcome(missing=NoValue(State.ERROR, "missing_metric"))
    told = replay_one(record(policy(), lost), policy(), FINGERPRINTS)
    assert str(told.cannot_replay) == "score_not_stored: groundedness"


def flags(given: Sample) -> Verdict:
    """Judge a text: everything is flagged, and what is longer than a word is too long."""
    if " " in given.answer:
        raise LimitExceeded("too long", "answer")
    return Verdict(
        "flag",
        2,
        "complete",
        False,
        None,
        {},
        Timings(),
        flagged=("looping",),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("mode", "changes", "expected"),
    [
        ("full", {}, ("flag", "None")),
        ("redacted", {}, (None, "texts_redacted")),
        ("hashes", {}, (None, "no_texts")),
        ("full", {"options": {}}, (None, "own_options: groundedness")),
        ("full", {"answer": "A b."}, (None, "not_judged")),
    ],
    ids=["full", "redacted", "hashes", "options of the request", "too long"],
)
def test_kept_texts_are_judged_where_scores_are_not_enough(
    policy: Write, mode: Any, changes: dict[str, Any], expected: tuple[str | None, str]
) -> None:
    """Whole texts only, and only where the request had no options of its own."""
    new = policy(evaluator_ids=[*BASE["evaluator_ids"], "looping"])
    told = replay_one(record(policy(), **changes), new, FINGERPRINTS, flags, mode)
    assert (told.new, str(told.cannot_replay)) == expected


def decisions(*counted: tuple[str, str | None, float, int]) -> Replay:
    """Return a replay of so many decisions each: old, new, chance to be stored, how many."""
    found = [
        ReplayedDecision(f"r{i}", 0, "", old, (), new, ("d",) if new == "flag" else (), "scores",
                         None, share)  # type: ignore[arg-type]
        for i, (old, new, share, n) in enumerate(counted)
        for _ in range(n)
    ]  # fmt: skip
    return Replay({"name": "new"}, tuple(found))


def test_shares_count_what_stored_decisions_stand_for() -> None:
    """A tenth of the passed ones was stored: 10 of 50 stand for 100 of 500, with 100 flagged."""
    found = decisions(
        ("pass", "flag", 0.1, 10), ("pass", "pass", 0.1, 40), ("flag", "flag", 1, 100)
    )
    changed = found.changed()
    assert changed.share == pytest.approx(100 / 600)
    low, high = changed.interval
    assert low < 0.12
    assert 0.22 < high < 0.35
    assert found.of_passed().share == pytest.approx(0.2)
    assert found.of_passed().interval == pytest.approx((0.100, 0.337), abs=0.001)


def test_what_cannot_be_replayed_may_all_change() -> None:
    """The limit of `--fail-over` is held against the worst that is possible."""
    found = decisions(("pass", "flag", 1, 1), ("pass", "pass", 1, 97), ("pass", None, 1, 2))
    assert found.changed().share == pytest.approx(1 / 98)
    assert found.changed_at_most() == pytest.approx(0.03)


def test_counts_are_by_change_and_by_detector() -> None:
    """All four cells, also empty ones."""
    found = decisions(("pass", "flag", 1, 3), ("flag", "pass", 1, 2), ("pass", "pass", 1, 5))
    assert found.table() == {"pass->pass": 5, "pass->flag": 3, "flag->pass": 2, "flag->flag": 0}
    assert [c.as_json() for c in found.by_detector()] == [
        {"detector": "d", "begins_to_flag": 3, "ends": 0}
    ]
    assert json.loads(json.dumps(found.as_json()))["changed"]["count"] == 5
    assert len(list(found.sentences())) == 5


def test_nothing_is_a_share_of_nothing() -> None:
    """An empty store is no error."""
    assert decisions().changed().share is None
    assert decisions().as_json()["changed"]["interval"] == [0.0, 1.0]


def test_a_csv_cell_is_no_formula() -> None:
    """Callers choose request ids; a spreadsheet must not compute them."""
    found = dataclasses.replace(
        decisions(("pass", "flag", 1, 1)),
        decisions=(ReplayedDecision("=1+1", 0, "", "pass", (), "flag", ("d", "e"), "scores"),),
    )
    (row,) = csv.DictReader(io.StringIO(found.csv()))
    assert row["request_id"] == "'=1+1"
    assert (row["new_flagged"], row["change"]) == ("d e", "pass->flag")
