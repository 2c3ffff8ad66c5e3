"""Every look is written down, repeats are free, and what is spent adds up."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail_offline.calibration.labels import (
    Look,
    ledger_of,
    read_looks,
    record,
    spend,
)
from guardrail_service.errors import ConfigurationError

FIRST = Look("rule-1", "data-1", 0.1, "fixed")


def test_the_first_look_costs_its_delta() -> None:
    """And the same again costs nothing more."""
    assert spend([], FIRST).delta == 0.1
    assert spend([FIRST, Look("rule-2", "data-1", 0.1, "fixed")], FIRST).count == 1


@pytest.mark.parametrize(("rule", "data"), [("rule-2", "data-1"), ("rule-1", "data-2")])
def test_another_rule_or_more_labels_are_another_look(rule: str, data: str) -> None:
    """Each promise may fail, so together they fail more often."""
    spent = spend([FIRST], Look(rule, data, 0.1, "fixed"))
    assert (spent.count, spent.delta) == (2, 0.2)
    assert spent.as_json("fixed") == {"mode": "fixed", "count": 2, "delta_total": 0.2}


def test_an_anytime_rule_pays_once_however_often_labels_grow() -> None:
    """Another rule pays again."""
    first = Look("rule-1", "data-1", 0.1, "anytime")
    assert spend([first], Look("rule-1", "data-9", 0.1, "anytime")).count == 1
    assert spend([first], Look("rule-2", "data-1", 0.1, "anytime")).count == 2


def test_labels_that_are_looked_at_out_prove_nothing() -> None:
    """No confidence is left."""
    looks = [Look(f"rule-{n}", "data", 0.1, "fixed") for n in range(9)]
    with pytest.raises(ConfigurationError, match="10 looks at these labels"):
        spend(looks, Look("rule-9", "data", 0.1, "fixed"))


def test_the_ledger_lies_beside_the_labels(tmp_path: Path) -> None:
    """One line a look; a damaged ledger stops everything."""
    ledger = ledger_of(tmp_path / "labels.jsonl")
    assert ledger.name == "labels.jsonl.looks.jsonl"
    assert read_looks(ledger) == []
    for _ in range(2):
        record(ledger, FIRST)
    assert read_looks(ledger) == [FIRST]
    ledger.write_text('{"rule": "x"}\n')
    with pytest.raises(ConfigurationError, match="the ledger as it was"):
        read_looks(ledger)
