"""Intervals over a sample hold the mean of the whole lab as often as they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from guardrail_offline.datasets.cases import Case, Lab, question_group
from guardrail_offline.datasets.labs import lab_source
from guardrail_offline.datasets.sampled_labs import (
    QuestionSample,
    QuestionStratum,
    SampleSize,
    sampled,
)
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.report.page import write_report
from guardrail_offline.runs.execution import RunOptions, evaluate_lab
from guardrail_offline.runs.sample_estimates import LabMean, RatioSums
from guardrail_service.errors import ConfigurationError


def sample_of(*strata: tuple[int, int]) -> QuestionSample:
    """Return a sample by questions of the lab and drawn ones of each stratum."""
    found = tuple(QuestionStratum((str(n),), *sizes) for n, sizes in enumerate(strata))
    return QuestionSample(SampleSize(1), 1, found)


def estimated(values: list[list[float]], sample: QuestionSample, *, is_share: bool) -> LabMean:
    """Return the estimate of a case per question, by stratum."""
    sums = RatioSums(len(sample.strata))
    for stratum, inside in enumerate(values):
        for value in inside:
            sums.add(stratum, value, 1)
    found = sums.estimate(sample, is_share=is_share)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("kind", "share", "most"),
    [("share", 0.5, 0.99), ("share", 0.03, 1.0), ("skewed", 0.0, 0.99), ("plain", 0.0, 0.99)],
)
def test_about_95_of_100_intervals_hold_the_mean(kind: str, share: float, most: float) -> None:
    """Of two strata that differ, a third of which is drawn; of rare answers more, as is known."""
    rng = np.random.default_rng(20261123)
    sizes = (240, 60)
    lab = [
        (rng.random(size) < share * (1 + n)).astype(float)
        if kind == "share"
        else rng.exponential(1 + n, size)
        if kind == "skewed"
        else rng.normal(n, 1, size)
        for n, size in enumerate(sizes)
    ]
    truth = float(np.concatenate(lab).mean())
    sample = sample_of((240, 80), (60, 20))
    held = 0
    for _ in range(400):
        drawn = [
            rng.permutation(one)[: s.drawn].tolist()
            for one, s in zip(lab, sample.strata, strict=True)
        ]
        interval = estimated(drawn, sample, is_share=kind == "share").interval
        held += interval is not None and interval[0] <= truth <= interval[1]
    assert 0.91 <= held / 400 <= most, held


def test_the_whole_lab_leaves_no_doubt() -> None:
    """Its interval is the mean itself."""
    found = estimated([[0, 1, 1], [0.5]], sample_of((3, 3), (1, 1)), is_share=False)
    assert found == LabMean(0.625, (0.625, 0.625))


def test_strata_count_by_their_size_and_not_by_what_was_drawn() -> None:
    """A rare stratum is drawn more densely and weighs what it is."""
    found = estimated([[0, 0], [1, 1]], sample_of((98, 2), (2, 2)), is_share=False)
    assert found.value == pytest.approx(0.02)


def test_no_spread_is_no_certainty() -> None:
    """A share has the exact interval of its answers, any other mean has none."""
    sample = sample_of((1000, 10))
    share = estimated([[1] * 10], sample, is_share=True)
    assert share.interval == pytest.approx((0.6915, 1.0), abs=1e-4)
    assert estimated([[0.7] * 10], sample, is_share=False).interval is None


CASES = tuple(
    Case(f"{model}{n}", f"q{n}", said, "one two three", model=model, group=question_group(f"q{n}"))
    for n in range(60)
    for model, said in (("a", "one two three"), ("b", f"one two {'three' if n % 3 else 'four'}"))
)


def test_a_run_over_a_sample_says_what_was_drawn_and_what_it_tells(tmp_path: Path) -> None:
    """In manifest, boards and sample.json; it resumes, and is no other run."""
    lab = lab_source(Lab(CASES))
    configured, options = configure(["rouge"]), RunOptions(tmp_path, shard_rows=10)
    summary = evaluate_lab(sampled(lab, SampleSize(40, 7)), configured, options)
    assert summary.cases == 40
    told = json.loads((tmp_path / "sample.json").read_text("utf-8"))
    assert told["drawn"] == {"cases": 40, "questions": 20}
    assert told["lab"] == {"cases": 120, "questions": 60}
    (difference,) = told["differences"]
    assert difference["models"] == ["a", "b"]
    assert difference["interval"][0] < difference["difference"] < difference["interval"][1]
    (board,) = json.loads((tmp_path / "leaderboards.json").read_text("utf-8"))
    means = {row["model"]: row["metrics"] for row in board["rows"]}
    for one in told["estimates"]:
        assert one["value"] == pytest.approx(means[one["model"]][one["metric"]]["value"])
    assert "20 of 60 questions" in (tmp_path / "leaderboards.md").read_text("utf-8")
    write_report([tmp_path], tmp_path / "report.html")
    assert "A sample: 20 of 60 questions" in (tmp_path / "report.html").read_text("utf-8")
    manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    assert manifest["sample"] == {"cases": 40, "seed": 7}
    assert manifest["plan"]["sample"]["strata"] == told["strata"]
    before = (tmp_path / "sample.json").read_bytes()
    evaluate_lab(sampled(lab, SampleSize(40, 7)), configured, options)
    assert (tmp_path / "sample.json").read_bytes() == before
    with pytest.raises(ConfigurationError, match="a run with another sample"):
        evaluate_lab(sampled(lab, SampleSize(40, 8)), configured, options)
