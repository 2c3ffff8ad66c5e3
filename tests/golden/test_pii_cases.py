"""Floors on the project's own adversarial cases; `guardrail bench quality` prints the numbers.

The cases hold made-up data from documented test ranges where those exist: example.com, telephone
numbers kept for fiction, the card networks' test numbers, IANA's documentation addresses.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrail_bench.span_quality import QualityReport, run
from guardrail_service.detectors.pii.data_types import TYPES

CASES = Path(__file__).parent / "pii_cases.jsonl"
FLOOR = 0.97


@pytest.fixture(scope="module")
def report() -> QualityReport:
    """Measure once."""
    return run("pii", CASES)


def test_structured_types_reach_the_floor(report: QualityReport) -> None:
    """Recall and precision of the promise, over all structured types."""
    (total,) = (row for row in report.types if row.type == "structured")
    assert total.recall.value >= FLOOR
    assert total.precision.value >= FLOOR


def test_innocent_texts_stay_quiet() -> None:
    """Order numbers, versions, hashes, prices, citations and scores: no alarm beyond the floor."""
    records = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    innocent = [record for record in records if not record["spans"]]
    assert len(records) >= 400
    assert len(innocent) >= 200


def test_every_type_has_a_case(report: QualityReport) -> None:
    """A type without a positive case is not held to anything."""
    missing = set(TYPES) - {row.type for row in report.types}
    assert missing == {"pe_cui", "pt_cc"}
    assert report.unmapped == {}
