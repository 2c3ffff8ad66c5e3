"""Shares, weeks and reasons are those of the decisions, whatever share of them was stored."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from guardrail_offline.production.traffic import counted, reasons_of, rows, week_of
from guardrail_service.server.decisions import DecisionRecord, ShadowDecision
from guardrail_service.types import NoValue, Outcome, State
from tests.unit.offline.calibration.labs import policy as base_policy
from tests.unit.offline.production.decided import NOON, record

LATE = Outcome(missing=NoValue(State.NOT_EVALUATED, "deadline"))


@pytest.fixture
def decisions(tmp_path: Path) -> list[DecisionRecord]:
    """Two flagged, one of them late, and four that passed, over two weeks."""
    policy = base_policy(tmp_path, actions={"groundedness": "block"})
    later = NOON + timedelta(days=7)
    return [
        record(policy, 0.1),
        record(policy, LATE, time=later),
        *(record(policy, 0.9, time=time) for time in (NOON, NOON, later, later)),
    ]


def test_flags_are_counted_by_week_and_detector(decisions: list[DecisionRecord]) -> None:
    """With exact intervals, and what each detector asked for."""
    found = counted(decisions).as_json()
    assert (found["decisions"], found["flagged"]["count"], found["stopped"]["count"]) == (6, 2, 2)
    assert [(w["week"], w["flagged"]["count"], w["flagged"]["of"]) for w in found["weeks"]] == [
        ("2026-W48", 1, 3),
        ("2026-W49", 1, 3),
    ]
    first = found["detectors"][0]
    assert (first["detector"], first["asked"]) == ("groundedness", {"block": 2})
    assert first["without_score"] == {"not_evaluated: deadline": 1}
    assert found["flagged"]["interval"] == pytest.approx([0.043, 0.777], abs=0.001)
    assert found["late"] == 1


def test_reasons_name_metrics_and_states(decisions: list[DecisionRecord]) -> None:
    """What was crossed, or why there was no score."""
    assert reasons_of(decisions[0]) == ["groundedness.groundedness"]
    assert reasons_of(decisions[1]) == ["groundedness: not_evaluated (deadline)"]
    assert reasons_of(decisions[2]) == []


def test_what_would_have_been_stopped_is_told_where_nothing_is(
    decisions: list[DecisionRecord],
) -> None:
    """In shadow mode the action is allow; the detectors asked for more."""
    observed = [dataclasses.replace(one, action="allow") for one in decisions]
    found = counted(observed).as_json()
    assert (found["stopped"]["count"], found["let_through"]) == (2, 2)


def test_a_share_of_what_passed_stands_for_all(decisions: list[DecisionRecord]) -> None:
    """Two flagged and four of forty that passed: 2 of 42, not 2 of 6."""
    thinned = decisions[:2] + [dataclasses.replace(one, share=0.1) for one in decisions[2:]]
    found = counted(thinned).as_json()
    assert found["stand_for"] == 42
    assert found["flagged"]["share"] == pytest.approx(2 / 42)
    low, high = found["flagged"]["interval"]
    assert low < 2 / 42 < high < 0.3


def test_shadow_policies_are_compared(decisions: list[DecisionRecord]) -> None:
    """Counts by what changes."""
    other = ShadowDecision("default", "4", "b" * 64, "flag", ("looping",))
    found = counted([dataclasses.replace(one, shadow=(other,)) for one in decisions]).as_json()
    assert found["shadow"] == [
        {"policy": "default", "version": "4", "changes": {"flag->flag": 2, "pass->flag": 4}}
    ]


def test_rows_say_everything_once(decisions: list[DecisionRecord]) -> None:
    """All weeks together, each week, each detector."""
    found = rows(counted(decisions).as_json())
    assert len({(row[0], row[1]) for row in found}) == len(found)
    assert ["all", "any", 2, 6] in [row[:4] for row in found]
    assert ["2026-W49", "groundedness", 1, 3] in [row[:4] for row in found]


def test_a_week_is_the_week_in_utc() -> None:
    """Monday in Auckland may be Sunday in UTC; the first days of January may be week 53."""
    assert week_of(datetime.fromisoformat("2026-11-23T09:00:00+13:00")) == "2026-W47"
    assert week_of(datetime(2027, 1, 1, tzinfo=UTC)) == "2026-W53"


def test_no_decision_is_no_error() -> None:
    """An empty store has shares of nothing."""
    found = counted([]).as_json()
    assert (found["decisions"], found["flagged"]["share"], found["from"]) == (0, None, None)
