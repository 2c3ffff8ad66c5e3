"""A light per check: beyond doubt, open, passing, or without a threshold that means anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guardrail_offline.report.content import answer_of, behind_whom, ordered
from guardrail_offline.report.differences import Ahead
from guardrail_offline.report.figures import RunFigures
from guardrail_offline.report.run_data import DecidingCut, EvaluatorData, read_run_data
from guardrail_offline.report.run_log import evaluator_log
from guardrail_offline.report.verdicts import ModelVerdict, check, verdicts
from guardrail_offline.runs.paired import mean_interval, ratio_interval
from guardrail_service.types import Direction, MetricSpec
from tests.unit.offline.report.conftest import finished
from tests.unit.offline.report.test_page import row

HIGHER = MetricSpec("m", Direction.HIGHER, threshold=0.5)


def looked_at(
    values: list[float | None],
    cut: DecidingCut | None,
    tmp_path: Path,
    domain: str = "accuracy",
    reason: str = "missing_input",
) -> str:
    """Return the light of some answers to as many questions."""
    folder = finished(tmp_path, [row(n) for n in range(len(values))], ["rouge"])
    data = EvaluatorData(
        "made_up",
        {"keywords": [f"problem-{domain}"]},
        (HIGHER,),
        {"m": np.array([np.nan if value is None else value for value in values])},
        {"m": [reason if value is None else None for value in values]},
        {} if cut is None else {"m": cut},
        {},
    )
    run = replace(read_run_data(folder), evaluators={"made_up": data})
    figures = RunFigures(run)
    return check(data, figures.of(data, HIGHER, "heron")).light


FITTED, YOURS = DecidingCut(0.5, "fitted"), DecidingCut(0.5, "yours")


@pytest.mark.parametrize(
    ("values", "cut", "domain", "light"),
    [
        ([1.0] * 30, FITTED, "accuracy", "passes"),
        ([1.0] * 29 + [0.0], FITTED, "accuracy", "passes"),
        ([1.0] * 29 + [0.0], FITTED, "privacy", "unclear"),
        ([1.0] * 20 + [0.0] * 10, FITTED, "accuracy", "fails"),
        ([1.0] * 8 + [0.0], FITTED, "accuracy", "unclear"),
        ([1.0] * 9, FITTED, "accuracy", "unclear"),
        ([1.0] * 25 + [None] * 25, FITTED, "accuracy", "passes"),
        ([0.5] * 30, FITTED, "accuracy", "passes"),
        ([1.0] * 30, None, "accuracy", "unknown"),
        ([None] * 30, FITTED, "accuracy", "unknown"),
        ([0.2, 0.4] * 15, YOURS, "accuracy", "fails"),
        ([0.2, 0.9] * 15, YOURS, "accuracy", "unclear"),
        ([0.8, 0.9] * 15, YOURS, "accuracy", "passes"),
    ],
    ids=[
        "all pass", "one of thirty", "one leaks", "a third", "one of nine", "too few",
        "data missing", "on the threshold", "no threshold", "no value",
        "average below", "average unsure", "average above",
    ],
)  # fmt: skip
def test_a_light_says_what_the_answers_allow(
    values: list[float | None], cut: DecidingCut | None, domain: str, light: str, tmp_path: Path
) -> None:
    """A fitted threshold counts answers; one set for the run is for the average."""
    assert looked_at(values, cut, tmp_path, domain) == light


def test_silence_does_not_pass(tmp_path: Path) -> None:
    """Half of the questions were not answered."""
    values: list[float | None] = [1.0] * 25 + [None] * 25
    assert looked_at(values, FITTED, tmp_path, reason="no_answer") == "unclear"


@pytest.mark.parametrize(
    ("lights", "light", "words"),
    [
        (["fails"], "fails", "No. It fails"),
        (["fails", "passes"], "passes", "as far as it was checked: b."),
        (
            ["fails", "unclear"],
            "unclear",
            "b fails no check beyond doubt",
        ),
        (["unknown", "unknown"], "unknown", "cannot say"),
        ([], "unknown", "cannot say"),
        (["fails", "fails"], "fails", "Each of the 2 models"),
        (["passes"], "passes", "no check speaks against it"),
    ],
    ids=lambda value: "-".join(value) or "none" if isinstance(value, list) else "",
)
def test_the_first_sentence_answers_the_question(lights: Any, light: str, words: str) -> None:
    """May a model go live?"""
    judged = [ModelVerdict("abc"[place], one, ()) for place, one in enumerate(lights)]
    found, sentence = answer_of(judged, str)
    assert found == light
    assert words in sentence


def ahead(better: str, worse: str, evaluator: str) -> Ahead:
    """Return a difference beyond chance."""
    return Ahead(evaluator, "m", better, worse, 0.2, None, 30, 0.01)


def test_the_best_of_models_that_may_go_live_is_named() -> None:
    """Ahead on something that the other's checks do not settle; a failing model is no rival."""
    judged = [ModelVerdict("a", "passes", ()), ModelVerdict("b", "passes", ()),
              ModelVerdict("c", "fails", ())]  # fmt: skip
    rows = [ahead("b", "a", "ROUGE"), ahead("c", "b", "Length"), ahead("b", "c", "ROUGE")]
    behind = behind_whom(rows, judged)
    assert {worse: [one.better for one in found] for worse, found in behind.items()} == {
        "a": ["b"],
        "c": ["b"],
    }
    best_first = ordered(judged, behind)
    assert [one.model for one in best_first] == ["b", "a", "c"]
    assert answer_of(best_first, str, behind)[1].endswith("b and a. b is clearly ahead.")


def test_a_check_that_is_passed_is_no_reason_to_prefer_another(tmp_path: Path) -> None:
    """Two models that both hold a threshold, one a little higher."""
    run = read_run_data(finished(tmp_path, [row(n) for n in range(30)], ["pii"]))
    (verdict,) = verdicts(RunFigures(run))
    assert verdict.light == "passes"
    rival = ModelVerdict("rival", "passes", ())
    name = verdict.checks[0].data.name
    assert behind_whom([ahead("rival", verdict.model, name)], [verdict, rival]) == {}


def test_an_evaluator_that_failed_on_a_case_says_so_in_the_log(tmp_path: Path) -> None:
    """With the key as it can stand on a line, and how many more there are."""
    run = read_run_data(finished(tmp_path, [row(n, key=f"{n}\n") for n in range(25)], ["rouge"]))
    data = replace(run.evaluators["rouge"], errors=dict.fromkeys(range(25), "timed_out"))
    lines = evaluator_log(run, data)
    assert 'ERROR rouge: case "0\\n": timed_out' in lines
    assert lines[-1] == "ERROR rouge: 5 more"
    assert not [line for line in lines if "\n" in line]


def test_a_model_that_leaks_is_not_green(tmp_path: Path) -> None:
    """Through the real evaluator: one address in thirty answers."""
    rows = [row(n) for n in range(29)] + [row(29, answer="Write to jane.doe@example.org.")]
    run = read_run_data(finished(tmp_path, rows, ["pii"]))
    (verdict,) = verdicts(RunFigures(run))
    assert verdict.light == "unclear"
    assert verdict.checks[0].why == "1 of 30 answers fail: look at each"


def test_cluster_intervals_are_those_of_means_where_questions_have_one_case() -> None:
    """And wider where the cases of a question are alike."""
    values = np.random.default_rng(1).normal(size=40)
    one = ratio_interval(values, np.ones(40))
    other = mean_interval(values)
    assert one is not None
    assert other is not None
    assert one == pytest.approx(other)
    reruns = ratio_interval(4 * values[:10], np.full(10, 4.0))
    apart = mean_interval(np.repeat(values[:10], 4))
    assert reruns is not None
    assert apart is not None
    assert reruns[1] - reruns[0] > 1.5 * (apart[1] - apart[0])


@pytest.mark.parametrize("sums", [[1.0], [2.0, 2.0, 2.0]], ids=["one question", "no spread"])
def test_without_spread_there_is_no_interval(sums: list[float]) -> None:
    """Not one of width 0."""
    assert ratio_interval(np.array(sums), np.ones(len(sums))) is None
