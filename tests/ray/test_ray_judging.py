"""Workers on two nodes ask one judge: each question once, within one pace and one budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from guardrail_offline.datasets.cases import Case, Lab, question_group
from guardrail_offline.datasets.labs import lab_source
from guardrail_offline.evaluators.backends import BackendChoice
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.hosts.prices import TokenPrice
from guardrail_offline.judge.judge_client import JudgeUnusable
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.runs.execution import RunOptions, Summary, evaluate_lab
from guardrail_offline.runs.judge_runs import JudgeProgress
from guardrail_offline.runs.ray_engine import Cluster
from guardrail_service.types import Passage
from tests.unit.offline.judge.scripted import judging, settings

PASSAGES = (Passage("The pool opens at seven.", "p"),)
LAB = Lab(
    tuple(
        Case(
            f"k{n}", f"When does pool {n} open?", f"Pool {n} opens at seven.",
            contexts=PASSAGES, model="m", group=question_group(f"q{n}"),
        )
        for n in range(18)
    )
)  # fmt: skip
CALLS = 36
PER_MINUTE = 30


def says(task: str, inputs: Mapping[str, Any]) -> Any:
    """State each sentence and support it."""
    if task == "statements":
        return {"statements": [one for one in inputs["text"].split(".") if one.strip()]}
    verdict = {"reason": "r", "verdict": "supported"}
    return {"verdicts": [{"i": one["i"], **verdict} for one in inputs["statements"]]}


def run(out: Path, judge: JudgeSettings, cluster: Cluster | None, **more: Any) -> Summary:
    """Evaluate eighteen answers, two calls each."""
    chosen = BackendChoice(judge, by_id={"faithfulness": "judge"})
    options = RunOptions(out, cluster=cluster, shard_rows=3, step_limit_s=60.0, **more)
    return evaluate_lab(lab_source(LAB), configure(["faithfulness"], backends=chosen), options)


def test_all_workers_together_keep_the_pace_and_a_lost_one_costs_no_answer(
    cluster: Any, contents: Callable[[Path], dict[str, bytes]], tmp_path: Path
) -> None:
    """A minute's calls may begin at once, every other waits for its turn; replay has the bytes."""
    store, told = tmp_path / "t.sqlite", list[JudgeProgress]()
    killed: list[psutil.Process] = []

    def kill(_cases: int) -> None:
        if not killed:
            found = psutil.process_iter(["cmdline"])
            named = [p for p in found if "ray::ShardWorker" in " ".join(p.info["cmdline"] or ())]
            killed.append(named[0])
            named[0].kill()

    with judging(says) as (script, url):
        judge = settings(url, store, requests_per_minute=PER_MINUTE, concurrency=4)
        began = time.monotonic()
        run(tmp_path / "far", judge, Cluster(workers=2), asked=told.append, advance=kill)
        assert time.monotonic() - began >= (CALLS - PER_MINUTE) / (PER_MINUTE / 60)
        asked = len(script.seen)
        assert CALLS <= asked <= CALLS + judge.concurrency, "what was answered is not asked again"
        assert told[-1].calls == asked
        run(tmp_path / "again", judge, Cluster(workers=2))
        assert len(script.seen) == asked
    replay = settings(url, store, mode="replay")
    run(tmp_path / "here", replay, None)
    run(tmp_path / "there", replay, Cluster(workers=2))
    here = contents(tmp_path / "here")
    assert contents(tmp_path / "far") == contents(tmp_path / "there") == here


def test_all_workers_together_keep_the_budget(cluster: Any, tmp_path: Path) -> None:
    """Calls that it does not allow for are not made, on whatever machine."""
    price = TokenPrice(1.0, 1.0)
    with judging(says) as (script, url):
        most = settings(url, tmp_path / "t.sqlite", price=price, budget=0.004, concurrency=1)
        summary = run(tmp_path / "out", most, Cluster(workers=2))
        assert 0 < len(script.seen) < CALLS
    assert summary.missing["faithfulness"]["judge_budget"] > 0


def test_a_judge_that_refuses_ends_the_run(cluster: Any, tmp_path: Path) -> None:
    """As on one machine: a wrong key is one line."""
    with judging(says, ["wrong_key"] * 99) as (_, url), pytest.raises(JudgeUnusable, match="key"):
        run(tmp_path / "out", settings(url, tmp_path / "t.sqlite"), Cluster(workers=2))
