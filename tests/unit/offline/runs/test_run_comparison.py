"""Before and after: paired by case, counted by question, with intervals that say how sure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from guardrail_offline.datasets.cases import Case, row_key
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import Result
from guardrail_offline.runs.result_files import ResultWriter, row_json
from guardrail_offline.runs.run_comparison import compare, compare_runs
from guardrail_offline.runs.score_tables import about_json
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import State


def written(
    folder: Path, values: Mapping[str, float | None], evaluator: str = "faithfulness", **more: str
) -> Path:
    """Write a run of one evaluator; a case's question is its key without what follows a dot."""
    (one,) = configure([evaluator])
    (folder / "results").mkdir(parents=True)
    keys = one.evaluator.spec.keys
    with (folder / "results" / f"{evaluator}.json").open("w", encoding="utf-8") as stream:
        writer = ResultWriter(stream)
        for name, value in values.items():
            case = Case(name + more.get("ending", ""), "q", "a", group=name.split(".")[0])
            missing = Result.missing(keys, State.UNVERIFIED, "missing_input")
            result = missing if value is None else Result.of(dict.fromkeys(keys, value))
            writer.add(row_json(case, result))
        writer.close([], about_json(one, {"grounding": more.get("model", "1")}))
    return folder


def numbered(folder: Path, values: Mapping[str, float]) -> Path:
    """Write a run over a lab without keys: a value per question, the key says only the row."""
    (one,) = configure(["faithfulness"])
    (folder / "results").mkdir(parents=True)
    with (folder / "results" / "faithfulness.json").open("w", encoding="utf-8") as stream:
        writer = ResultWriter(stream)
        for row, (question, value) in enumerate(values.items(), start=1):
            case = Case(row_key(row), question, "a", group=question)
            writer.add(row_json(case, Result.of({"faithfulness": value})))
        writer.close([], about_json(one, {}))
    return folder


def test_a_clear_gain_is_better_and_the_mirror_image_is_worse(tmp_path: Path) -> None:
    """Differences .1 to .3 over five questions."""
    before = written(tmp_path / "a", {f"q{n}": 0.5 for n in range(5)})
    after = written(tmp_path / "b", {f"q{n}": 0.6 + 0.05 * n for n in range(5)})
    (gain,) = compare(before, after).differences
    (loss,) = compare(after, before).differences
    assert (gain.verdict, loss.verdict) == ("better", "worse")
    assert gain.difference == pytest.approx(0.2)
    assert (gain.better, gain.worse, gain.questions) == (5, 0, 5)
    assert gain.sign_p == pytest.approx(2 / 32)
    assert gain.interval == pytest.approx((0.11, 0.29), abs=0.01)
    assert gain.p_holm == gain.p == pytest.approx(0.00478, abs=1e-4)


def test_reruns_of_a_question_count_once(tmp_path: Path) -> None:
    """Ten reruns are not ten pieces of evidence."""
    before = written(tmp_path / "a", {f"q1.{n}": 0.1 for n in range(10)} | {"q2": 0.5})
    after = written(tmp_path / "b", {f"q1.{n}": 0.9 for n in range(10)} | {"q2": 0.5})
    (only,) = compare(before, after).differences
    assert (only.questions, only.verdict) == (2, "unclear")
    assert only.difference == pytest.approx(0.4)


def test_a_case_with_a_value_on_one_side_only_is_counted_apart(tmp_path: Path) -> None:
    """It neither helps nor hurts."""
    before = written(tmp_path / "a", {"q1": 0.5, "q2": None, "q3": 0.4})
    after = written(tmp_path / "b", {"q1": 0.5, "q2": 0.9, "q3": 0.4, "q4": 0.1})
    (only,) = compare(before, after).differences
    assert (only.questions, only.unpaired, only.verdict) == (2, 2, "same")


def test_runs_without_common_keys_are_paired_by_question(tmp_path: Path) -> None:
    """A lab that was exported again has new keys."""
    before = written(tmp_path / "a", {"q1": 0.5, "q2": 0.6})
    after = written(tmp_path / "b", {"q1": 0.5, "q2": 0.7}, ending="-new")
    found = compare(before, after)
    assert found.matched_by == "question"
    assert found.differences[0].questions == 2


def test_a_key_that_is_another_question_in_the_other_run_pairs_nothing(tmp_path: Path) -> None:
    """Rows without a key are called after their number, which moves when rows are taken out."""
    values = {f"q{n}": 0.1 * (n % 5) for n in range(10)}
    before = numbered(tmp_path / "a", values)
    after = numbered(tmp_path / "b", dict(list(values.items())[3:]))
    found = compare(before, after)
    (only,) = found.differences
    assert found.matched_by == "question"
    assert (only.questions, only.difference, only.unpaired) == (7, 0.0, 3)
    assert any("'row-1' and 6 more" in warning for warning in found.warnings)


def test_rows_that_kept_their_place_are_paired_by_key(tmp_path: Path) -> None:
    """More questions at the end change nothing, and nothing is to be said."""
    before = numbered(tmp_path / "a", {"q1": 0.5, "q2": 0.6})
    found = compare(before, numbered(tmp_path / "b", {"q1": 0.5, "q2": 0.7, "q3": 0.1}))
    assert (found.matched_by, found.differences[0].questions) == ("key", 2)
    assert len(found.warnings) == 1


def test_rows_with_neither_key_nor_question_need_the_same_number(tmp_path: Path) -> None:
    """Only their place tells them apart; with rows taken out it does not."""
    before = numbered(tmp_path / "a", {"row-1": 0.5, "row-2": 0.6, "row-3": 0.7})
    same = compare(before, numbered(tmp_path / "b", {"row-1": 0.5, "row-2": 0.6, "row-3": 0.8}))
    assert same.differences[0].questions == 3
    assert any("by their row" in warning for warning in same.warnings)
    fewer = numbered(tmp_path / "c", {"row-1": 0.6, "row-2": 0.7})
    with pytest.raises(ConfigurationError, match="3 and 2 cases with neither key nor question"):
        compare(before, fewer)


def test_other_models_and_other_evaluators_are_said(tmp_path: Path) -> None:
    """The difference may be theirs."""
    before = written(tmp_path / "a", {"q1": 0.5, "q2": 0.6}, model="1")
    written(tmp_path / "a" / "x", {"q1": 0.5}, "rouge")
    (tmp_path / "a" / "x" / "results" / "rouge.json").rename(tmp_path / "a/results/rouge.json")
    after = written(tmp_path / "b", {"q1": 0.5, "q2": 0.7}, model="2")
    found = compare(before, after)
    assert any("other models" in warning for warning in found.warnings)
    assert found.only_before == ("rouge",)
    assert found.as_json()["differences"][0]["verdict"] == "unclear"


def test_runs_with_nothing_in_common_are_refused(tmp_path: Path) -> None:
    """Neither evaluators nor values."""
    before = written(tmp_path / "a", {"q1": 0.5})
    with pytest.raises(ConfigurationError, match="no evaluator of the other run"):
        compare(before, written(tmp_path / "b", {"q1": 0.5}, "rouge"))
    with pytest.raises(ConfigurationError, match="no case with a value in both"):
        compare(before, written(tmp_path / "c", {"q1": None}))


def test_only_some_metrics_are_compared_and_models_apart(tmp_path: Path) -> None:
    """Fewer metrics, smaller corrections; an unknown one is refused with a near name."""
    values = {f"q{n}": 0.5 for n in range(5)}
    before = written(tmp_path / "a", values)
    written(tmp_path / "x", values, "rouge")
    (tmp_path / "x" / "results" / "rouge.json").rename(tmp_path / "a/results/rouge.json")
    found = compare_runs(before, [before], only=["rouge.rouge_1"], by_model=True)[0]
    assert [(d.evaluator, d.metric, d.model) for d in found.differences] == [
        ("rouge", "rouge_1", "")
    ]
    assert len(compare_runs(before, [before], only=["rouge"])[0].differences) == 3
    with pytest.raises(ConfigurationError, match="did you mean 'rouge"):
        compare_runs(before, [before], only=["rouge.rogue_1"])


def test_several_runs_are_corrected_together(tmp_path: Path) -> None:
    """The more is looked at, the more stands out by chance."""
    before = written(tmp_path / "a", {f"q{n}": 0.5 for n in range(6)})
    after = written(tmp_path / "b", {f"q{n}": 0.3 + 0.05 * n for n in range(6)})
    alone = compare(before, after).differences[0]
    both = compare_runs(before, [after, before])
    assert [one.run for one in both] == ["b", "a"]
    assert both[0].differences[0].p_holm == pytest.approx(2 * alone.p)
    assert both[1].differences[0].verdict == "same"


@pytest.mark.parametrize(
    ("after", "max_drop", "strict", "expected"),
    [
        ([0.4, 0.41, 0.42, 0.4, 0.39], 0.0, False, True),
        ([0.4, 0.41, 0.42, 0.4, 0.39], 0.05, False, True),
        ([0.4, 0.41, 0.42, 0.4, 0.39], 0.2, False, False),
        ([0.4, 0.41, 0.42, 0.4, 0.39], 0.2, True, False),
        ([0.1, 0.9, 0.3, 0.8, 0.2], 0.0, False, False),
        ([0.1, 0.9, 0.3, 0.8, 0.2], 0.1, True, True),
        ([0.5, 0.5, 0.5, 0.5, 0.5], 0.0, True, False),
        ([0.6, 0.6, 0.6, 0.6, 0.6], 0.0, True, False),
        ([0.5], 0.0, True, True),
    ],
    ids=["lost", "lost more", "lost less", "ruled out", "noise", "noise, strict", "same", "gained",
         "one question"],
)  # fmt: skip
def test_a_regression_is_a_clear_loss_of_more_than_is_allowed(
    tmp_path: Path, after: list[float], max_drop: float, strict: bool, expected: bool
) -> None:
    """Strictly, where so large a loss is not ruled out."""
    before = written(tmp_path / "a", {f"q{n}": 0.5 for n in range(len(after))})
    later = written(tmp_path / "b", {f"q{n}": value for n, value in enumerate(after)})
    (found,) = compare(before, later).differences
    assert found.is_regression(max_drop, strict=strict) is expected
