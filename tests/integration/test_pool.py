"""A pool of real processes, of which one hangs, one dies, one cannot write."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from guardrail_offline.datasets.cases import Case, Lab, question_group
from guardrail_offline.datasets.labs import lab_source
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.runs.execution import RunOptions, evaluate_lab
from guardrail_offline.runs.pool import Pool, WorkerLost
from guardrail_offline.runs.result_files import read_run
from guardrail_offline.runs.shards import Layout, cut

pytestmark = pytest.mark.timeout(300)
LIMIT_S = 20.0
"""A step of the other evaluators takes less than a thousandth of it."""


@pytest.fixture(scope="module", autouse=True)
def misbehaving() -> Iterator[None]:
    """Two more evaluators in the catalogue, for this file only."""
    module = importlib.import_module("tests.hanging")
    yield
    for name in (module.HANGS, module.DIES):
        CATALOGUE._evaluators.pop(name)


def lab(*questions: str) -> Lab:
    """Return a lab with an answer to each question."""
    cases = [
        Case(f"{n}", q, "One two three.", "One two.", model="m", group=question_group(q))
        for n, q in enumerate(questions)
    ]
    return Lab(tuple(cases))


QUESTIONS = [f"Question {n}?" for n in range(12)]


def test_an_evaluator_that_hangs_becomes_an_error_and_the_run_goes_on(tmp_path: Path) -> None:
    """Its cases of that shard only; other evaluators and other shards have their numbers."""
    finished: list[int] = []
    source = lab_source(lab(*QUESTIONS, "hangs"))
    options = RunOptions(
        tmp_path / "out", workers=2, shard_rows=4, step_limit_s=LIMIT_S,
        advance=finished.append,
    )  # fmt: skip
    summary = evaluate_lab(source, configure(["rouge", "hangs", "looping"]), options)
    assert sum(finished) == summary.cases == 13
    assert summary.computed["rouge"] == 13
    run = read_run(tmp_path / "out")
    states = {row.key: row.scores["hangs"] for row in run["hangs"].rows}
    hung = {key for key, score in states.items() if score.value is None}
    assert "12" in hung
    assert len(hung) < 13
    assert {(states[key].state.value, states[key].reason) for key in hung} == {
        ("error", "timed_out")
    }
    assert summary.missing["hangs"] == {"timed_out": len(hung)}


def test_a_run_with_a_time_limit_writes_the_same_bytes_as_one_without(tmp_path: Path) -> None:
    """Unless something hangs, the limit is not seen."""
    written = []
    for name, limit in (("free", None), ("limited", LIMIT_S)):
        out = tmp_path / name
        source = lab_source(lab(*QUESTIONS))
        evaluate_lab(
            source, configure(["rouge"]), RunOptions(out, shard_rows=4, step_limit_s=limit)
        )
        files = [path for path in out.rglob("*") if path.is_file()]
        files = [path for path in files if not path.name.startswith(("timings", "times"))]
        written.append({str(path.relative_to(out)): path.read_bytes() for path in files})
    assert written[0] == written[1]


def test_a_process_that_ends_stops_the_run_and_the_next_one_goes_on(tmp_path: Path) -> None:
    """Nothing says what the fault was, so nothing is made up; finished shards stay."""
    source, out = lab_source(lab(*QUESTIONS, "dies")), tmp_path / "out"
    options = RunOptions(out, workers=2, shard_rows=4, step_limit_s=LIMIT_S)
    with pytest.raises(WorkerLost, match="a process ended with 9"):
        evaluate_lab(source, configure(["dies"]), options)
    assert not (out / "summary.json").exists()


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    """The error of the file, not that of the process."""
    layout = Layout(tmp_path / "out")
    plan = cut(lab_source(lab(*QUESTIONS)), layout, 100)
    for shard in range(plan.shards):
        layout.cases(shard).unlink()
    pool = Pool(layout, configure(["rouge"]), "embedded", 1, LIMIT_S)
    with pytest.raises(FileNotFoundError):
        list(pool.score(range(plan.shards)))
