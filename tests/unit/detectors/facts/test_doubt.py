"""The doubt of `facts` about what is held against an answer that computes much."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from guardrail_service.detectors.facts import detector, doubt
from guardrail_service.detectors.facts.detector import Facts, FactsParameters, verdicts
from guardrail_service.detectors.hallucination.reading import claims_of
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Passage, Sample

ROOT = Path(__file__).parents[4]
PASSAGE = Passage(
    "Base fee 9 euros a month. One kWh costs 30 cents. The household used 2,400 kWh in 2024. A new"
    " meter costs 85 euros. The bonus for new customers is 60 euros."
)
COMPUTED = (
    "- Energy: 2,400 kWh x €0.30 = €720\n- Base fee: 12 x €9 = €108\n"
    "- Together: €720 + €108 = €828\n- Less the bonus: €828 - €60 = €768\n\n"
    "That is about €64 a month; the old contract cost €71.20."
)
BARE = (
    "The base fee is 9 euros a month and one kWh costs 30 cents. In 2024 the household used 2,400"
    " kWh. A new meter costs 95 euros and the bonus is 70 euros."
)


def sample(answer: str) -> SegmentedSample:
    """Return an answer beside the passage."""
    return SegmentedSample(Sample(answer, "What do I pay for 2,400 kWh?", (PASSAGE,)))


def test_an_answer_that_computes_much_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its flag turns into something unsure that gates nothing, and says so."""
    monkeypatch.setattr(detector, "is_doubtful", lambda counts: False)
    alone = Facts().reduce(sample(COMPUTED), (), FactsParameters())
    assert alone.scores["facts"] < 0.5
    monkeypatch.undo()
    outcome = Facts().reduce(sample(COMPUTED), (), FactsParameters())
    assert outcome.scores["facts"] == detector.HARDLY
    (unsure,) = [span for span in outcome.spans if span.score == detector.HARDLY]
    assert (unsure.label, COMPUTED[unsure.start : unsure.end]) == ("not_mentioned", "€71.20")


def test_an_answer_that_only_tells_is_not() -> None:
    """Two of its numbers contradict the passage, and it works out nothing."""
    outcome = Facts().reduce(sample(BARE), (), FactsParameters())
    assert outcome.scores["facts"] < 0.5


def test_few_numbers_are_not_weighed() -> None:
    """Nor is an answer that nothing is held against."""
    for answer in ("A new meter costs 95 euros.", "A new meter costs 85 euros."):
        segmented = sample(answer)
        found = verdicts(segmented, claims_of(segmented).stated)
        assert doubt.columns(found, answer, "", in_english=True) is None


def test_counts_are_those_of_the_answer() -> None:
    """In the order of the columns."""
    segmented = sample(BARE)
    found = verdicts(segmented, claims_of(segmented).stated)
    counts = dict(zip(doubt.COLUMNS, doubt.columns(found, BARE, "2?", False) or (), strict=True))
    wrong = [one for one in found if one.score < 0.5]
    assert counts["flagged"] == len(wrong) == 2
    assert counts["worst"] == min(one.score for one in wrong)
    assert counts["numbers"] == len(found)
    assert (counts["number_asked"], counts["other_language"], counts["signs"]) == (1, 1, 0)
    assert counts["length"] == len(BARE) / 100


def test_the_script_fits_what_the_service_reads(tmp_path: Path) -> None:
    """A weight for each column, from flagged answers of two corpora."""
    out = tmp_path / "doubt.json"
    script = ROOT / "models" / "training" / "facts" / "fit_doubt.py"
    paths = [script.parent, ROOT / "service", ROOT / "load_tests"]
    told = subprocess.run(
        [sys.executable, script, "--out", out, "--corpora", "ninth", "tenth"],
        check=True, capture_output=True, text=True,
        env={"PYTHONPATH": ":".join(map(str, paths))}, timeout=300,
    ).stdout  # fmt: skip
    made = json.loads(out.read_text("utf-8"))
    assert made["columns"] == list(doubt.COLUMNS)
    assert len(made["weights"]) == len(doubt.COLUMNS) == len(doubt.shipped().weights)
    assert "tenth: good, " in told
