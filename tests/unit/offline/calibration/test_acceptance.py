"""The confidence from which no person is needed: found, promised and kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer import Typer
from typer.testing import CliRunner

from guardrail_offline.calibration.acceptance import Acceptance, acceptance
from guardrail_offline.calibration.commands import calibrate_app
from guardrail_offline.calibration.judge_agreement import JudgedRun, VerdictOnCase
from guardrail_offline.evaluation_commands import evaluate
from guardrail_offline.judge_commands import judge_app
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import MetricSpec


def world(seed: int, labelled: int, rest: int) -> JudgedRun:
    """Return scores whose verdict is a person's the more often, the further they are from .5."""
    rng = np.random.default_rng(seed)
    total = labelled + rest
    score = rng.random(total)
    right = rng.random(total) < 0.6 + 0.8 * np.abs(score - 0.5)  # 60 % at the threshold, 100 % off
    passes = score >= 0.5
    person = np.where(right, passes, ~passes)
    cases = [
        VerdictOnCase(
            f"k{i}", f"q{i}", "m", float(score[i]), bool(passes[i]),
            bool(person[i]) if i < labelled else None, 9,
        )
        for i in range(total)
    ]  # fmt: skip
    names = {"m": "M"}
    return JudgedRun("run", "faithfulness", MetricSpec("faithfulness"), 0.5, {}, names, (*cases,))


def disagreement(found: Acceptance) -> float:
    """Return the true share of accepted verdicts that are not a person's, in that world."""
    if found.confidence is None:
        return 0.0
    mean = (found.confidence + 0.5) / 2
    return 0.4 - 0.8 * mean


def test_the_promise_is_kept_as_often_as_it_says() -> None:
    """At most one labelling in ten accepts verdicts of which more than 10 % are wrong."""
    found = [acceptance(world(seed, 300, 300), 0.1, 0.1, seed) for seed in range(200)]
    broken = np.mean([disagreement(one) > 0.1 for one in found])
    assert broken <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 200)
    # It is of use, too: the truth allows a quarter of the cases (from .375 off the threshold).
    assert np.mean([one.confidence is not None for one in found]) > 0.4


def test_what_is_accepted_and_what_people_get() -> None:
    """Only unlabelled cases: the sure ones, then the others with the least sure first."""
    run = world(4, 2000, 400)
    found = acceptance(run, 0.1, 0.1, 7)
    assert found.confidence is not None
    assert {case.person for case in (*found.accepted, *found.queue)} == {None}
    assert len(found.accepted) + len(found.queue) == 400
    far = [abs((case.score or 0) - 0.5) for case in found.queue]
    assert far == sorted(far)
    assert max(far) < found.confidence
    assert found.covered == pytest.approx(0.25, abs=0.1)
    assert "needs no person from" in next(found.sentences())
    assert all(one.kept for one in found.tried[:-1])


def test_a_case_of_which_nobody_could_tell_is_left_alone() -> None:
    """It is not accepted, whatever its score, and not asked for again."""
    run = world(4, 2000, 400)
    before = acceptance(run, 0.1, 0.1, 7)
    after = acceptance(run, 0.1, 0.1, 7, abstained={case.key for case in run.cases[2000:2010]})
    assert len(after.accepted) + len(after.queue) == 390
    assert after.alpha == before.alpha


def test_few_labels_and_poor_judges_accept_nothing() -> None:
    """Too few are refused with the number that it takes; a coin leaves all to people."""
    with pytest.raises(ConfigurationError, match=r"found 21 labelled questions .*at least 22"):
        acceptance(world(1, 21, 100), 0.1, 0.1, 7)
    rng = np.random.default_rng(1)
    coin = world(1, 300, 100)
    cases = [
        VerdictOnCase(c.key, c.group, c.model, c.score, c.passes,
                   None if c.person is None else bool(rng.random() < 0.5), 9)
        for c in coin.cases
    ]  # fmt: skip
    poor = JudgedRun("run", "e", MetricSpec("m"), 0.5, {}, {}, tuple(cases))
    found = acceptance(poor, 0.1, 0.1, 7)
    assert (found.confidence, found.covered, len(found.queue)) == (None, 0.0, 100)
    assert "all 100 unlabelled cases are for people" in list(found.sentences())


def test_without_unlabelled_cases_the_range_gives_the_confidences() -> None:
    """For the runs that come after."""
    found = acceptance(world(4, 2000, 0), 0.1, 0.1, 7)
    assert found.confidence is not None
    assert (found.covered, found.queue) == (0.0, ())
    endless = world(4, 60, 0)
    spec = MetricSpec("m", high=float("inf"))
    run = JudgedRun("run", "e", spec, 0.5, {}, {}, endless.cases)
    with pytest.raises(ConfigurationError, match="no range"):
        acceptance(run, 0.1, 0.1, 7)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of 80 answers, half of them word for word, with labels of 60 beside it."""
    folder = tmp_path_factory.mktemp("judged")
    lines, labels = [], []
    for i in range(80):
        good = i % 2 == 0
        said = f"the desk opens at nine on day {i}"
        case = {"key": f"k{i}", "question": f"when {i}?", "expected_output": said, "model": "M"}
        lines.append(json.dumps({**case, "answer": said if good else "ask somebody else please"}))
        if i < 60:
            labels.append(json.dumps({"case": f"k{i}", "label": "pass" if good else "fail"}))
    (folder / "lab.jsonl").write_text("\n".join(lines))
    (folder / "labels.jsonl").write_text("\n".join(labels))
    app = Typer()
    app.command()(evaluate)
    out = str(folder / "run")
    words = [str(folder / "lab.jsonl"), "-e", "rouge", "-o", out, "--workers", "1", "--no-report"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return folder


def test_the_command_writes_who_labels_the_rest(run_folder: Path) -> None:
    """As a file that comes back with labels; the look at the labels is written down."""
    queue = run_folder / "queue.csv"
    words = ["acceptance", str(run_folder / "run"), "--labels", str(run_folder / "labels.jsonl")]
    words += ["--metric", "rouge.rouge_1", "--threshold", ".5"]
    shown = CliRunner().invoke(calibrate_app, [*words, "--queue", str(queue), "--json"])
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.output)
    assert found["metric"] == "rouge.rouge_1"
    assert (found["accepted"] + found["queue"], found["looks"]["count"]) == (20, 1)
    assert queue.read_text().startswith("case,label,metric,annotator,at,question,answer,contexts")
    again = CliRunner().invoke(calibrate_app, [*words, "--alpha", ".15"])
    assert again.exit_code == 0, again.output
    assert "look 2 at these labels" in again.output
    assert CliRunner().invoke(calibrate_app, [*words, "--alpha", "1.5"]).exit_code == 2
    assert CliRunner().invoke(calibrate_app, [*words, "--alpha", ".01"]).exit_code == 2


def test_the_command_checks_a_judge(run_folder: Path) -> None:
    """Whatever scored the run; what cannot be known is said, and a wrong metric is named."""
    run, labels = str(run_folder / "run"), str(run_folder / "labels.jsonl")
    words = ["check", run, "--labels", labels, "--threshold", ".5", "--metric"]
    more = ["--again", run, "--swapped", run, "--ppi", "--json"]
    shown = CliRunner().invoke(judge_app, [*words, "rouge.rouge_1", *more])
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.output)
    assert (found["people"]["kappa"]["value"], found["people"]["area"]["value"]) == (1.0, 1.0)
    assert (found["again"]["flips"]["value"], found["order"]["shift"]["value"]) == (0.0, 0.0)
    assert found["own"]["preference"]["why"] == "needs answers of the judge's and of others"
    (share,) = found["good_answers"]
    assert share["powered"]["value"] == pytest.approx(0.5, abs=0.05)
    table = CliRunner().invoke(judge_app, [*words, "rouge.rouge_1", "--ppi"])
    assert "Cohen's kappa with people" in table.output
    unknown = CliRunner().invoke(judge_app, [*words, "rouge.rouge_11"])
    assert unknown.exit_code == 2
    assert "rouge_1" in unknown.output
    assert CliRunner().invoke(judge_app, ["check", run, "--labels", labels]).exit_code == 2
