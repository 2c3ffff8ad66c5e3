"""Where the time of one check goes: each part is found, none twice, and the sum fits the whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from guardrail_bench.stages import (
    LOOKS,
    TITLES,
    Part,
    StagesReport,
    StageTimes,
    Stopwatch,
    budgets_line,
    counted_looks,
    look_us,
    stages_markdown,
    stages_rows,
)
from guardrail_service.commands.main import app
from guardrail_service.text import sample as segmented
from guardrail_service.text.budget import Budget, in_time, spending

SENTENCES = (
    "Guests may stay for two weeks at most in the old house.",
    "The pool opens at seven in the morning on every single day.",
    "Breakfast is served until ten and parking costs five euros.",
)
EVALUATORS = ["groundedness", "answer_relevancy_sentence", "pii", "looping", "language_mismatch"]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Labelled answers to build samples from."""
    path = tmp_path / "texts.jsonl"
    record = {"contexts": [" ".join(SENTENCES)], "question": "How long may guests stay?"}
    path.write_text(json.dumps(record) + "\n")
    return path


def test_a_part_does_not_have_the_time_of_parts_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 10 s in a detector, 4 are the tokenizer's, of which 1 is a nested call of its own."""
    times = iter([0.0, 2.0, 3.0, 4.0, 6.0, 10.0])
    monkeypatch.setattr(Stopwatch, "now", staticmethod(lambda: next(times)))
    watch = Stopwatch()
    with watch.timing("rows"), watch.timing("tokens"), watch.timing("tokens"):
        pass
    assert dict(watch.seconds) == {"tokens": 4.0, "rows": 6.0}


def test_every_part_of_a_check_is_found(
    tiny: Path, texts: Path, tmp_path: Path, write_config: Callable[..., Path]
) -> None:
    """Parts are not negative and add up to at most the whole; what was wrapped is put back."""
    config = write_config(
        calibrated_thresholds={
            "groundedness": {"groundedness": 0.5},
            "answer_relevancy_sentence": {"answer_relevancy": -1.0},
        },
        evaluator_ids=EVALUATORS,
        policy={"name": "tiny", "version": "1"},
    )
    page = tmp_path / "page.md"
    page.write_text("<!-- bench stages -->\nold\n<!-- /bench stages -->\n")
    before = segmented.identify
    given = {"--scenario": "chat", "--samples": "2", "--texts": str(texts), "--doc": str(page)}
    given |= {"--pack": str(tiny), "--config": str(config), "--json": str(tmp_path / "r.json")}
    arguments = [part for pair in given.items() for part in pair]
    shown = CliRunner().invoke(app, ["bench", "stages", *arguments], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    assert segmented.identify is before
    report = StagesReport.model_validate_json((tmp_path / "r.json").read_text())
    assert [one.passages for one in report.judged] == ["cold", "warm"] * 2
    for one in report.judged:
        assert set(one.parts_ms) == set(get_args(Part))
        assert all(spent >= 0 for spent in one.parts_ms.values())
        assert one.parts_ms["inference"] > 0
        assert one.sum_ms <= one.total_ms
    for title in TITLES.values():
        assert title in shown.output
        assert title in page.read_text()


def judged(passages: str, total: float, **parts: float) -> StageTimes:
    """Return one check."""
    return StageTimes.model_validate({"passages": passages, "parts_ms": parts, "total_ms": total})


def test_shares_are_of_the_whole_and_the_rest_shows() -> None:
    """A part that did not occur counts as nothing."""
    report = StagesReport(
        started="2026-01-01T00:00:00+00:00",
        machine={"cpu": "a CPU", "cores": 2},
        busy_before=0.9,
        pack="tiny 1",
        policy="tiny",
        scenario="rag",
        seed=17,
        judged=(
            judged("cold", 100, inference=80, tokens=10), judged("warm", 50, inference=20),
            judged("cold", 120, inference=90, tokens=20), judged("warm", 50, inference=25),
            judged("cold", 110, inference=85, tokens=15), judged("warm", 50, inference=30),
        ),
    )  # fmt: skip
    rows = {row[0]: row[1:] for row in stages_rows(report)}
    assert rows[TITLES["inference"]] == ("85.00", "77.3%", "25.00", "50.0%")
    assert rows[TITLES["tokens"]] == ("15.00", "13.6%", "0.00", "0.0%")
    assert rows["not accounted for"] == ("10.00", "9.1%", "25.00", "50.0%")
    assert rows["the whole check"] == ("110.00", "100.0%", "50.00", "100.0%")
    assert "not quiet" in stages_markdown(report)


def test_looks_at_the_time_are_counted_and_have_a_cost() -> None:
    """The cost in the same run, so that their share does not depend on the machine."""
    with counted_looks() as looks, spending(Budget(None, 1e9)):
        list(in_time(range(200)))
    assert len(looks) == 4
    assert 0.0 <= look_us(200) < 1e5
    found = judged("cold", 50, inference=20).model_copy(update={"looks": 10})
    report = StagesReport(
        started="", machine={}, busy_before=0.0, pack="", policy="", scenario="rag", seed=1,
        look_us=50.0, judged=(found, found.model_copy(update={"passages": "warm"})),
    )  # fmt: skip
    rows = {row[0]: row[1:] for row in stages_rows(report)}
    assert rows[LOOKS] == ("0.50", "1.0%", "0.50", "1.0%")
    said = budgets_line(report)
    assert "0.50 of 50 ms (cold passages) and 0.50 of 50 ms (warm passages)" in said
    assert "1.0%, where 1% is allowed: met" in said
    assert "missed" in budgets_line(report.model_copy(update={"look_us": 60.0}))
