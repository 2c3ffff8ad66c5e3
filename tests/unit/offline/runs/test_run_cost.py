"""A dry run measures, asks nobody, writes nothing, and multiplies as it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from guardrail_offline.datasets.cases import Case, Lab, question_group
from guardrail_offline.datasets.labs import lab_source
from guardrail_offline.datasets.sampled_labs import SampleSize
from guardrail_offline.evaluators.backends import BackendChoice
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.hosts.prices import TokenPrice
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.runs.run_cost import MEASURED, cost_of_run
from guardrail_service.commands.main import app
from guardrail_service.types import Passage

LAB = Lab(
    tuple(
        Case(
            f"k{n}", f"q{n}", "The pool opens at seven.", "At seven.",
            (Passage("The pool opens at seven.", "p"),), group=question_group(f"q{n}"),
        )
        for n in range(200)
    )
)  # fmt: skip


def test_a_million_rows_cost_what_the_formula_says() -> None:
    """Processor time times the price of an hour, and tokens times their price."""
    price = TokenPrice(1.0, 2.0)
    judge = JudgeSettings("http://judge.invalid/v1", "m", price=price)
    chosen = BackendChoice(judge, by_id={"faithfulness": "judge"})
    configured = configure(["rouge", "faithfulness"], backends=chosen)
    size = SampleSize(50)
    found = cost_of_run(lab_source(LAB), configured, "embedded", size=size, core_hour=0.36)
    assert found["rows"] == {"lab": 200, "run": 50}
    assert found["measured"] == {"cases": MEASURED - 1, "questions": MEASURED - 1}
    rouge, judged = found["evaluators"]["rouge"], found["evaluators"]["faithfulness"]
    assert rouge["cpu_s_per_row"] > 0
    assert rouge["cost_per_million"] == pytest.approx(rouge["cpu_s_per_row"] * 100)
    assert rouge["cost_of_run"] == pytest.approx(rouge["cost_per_million"] * 50 / 1e6)
    assert judged["calls_per_million"] > 0
    tokens = judged["prompt_tokens_per_million"] + 2 * judged["completion_tokens_per_million"]
    assert judged["cost_per_million"] == pytest.approx(tokens / 1e6)
    parts = (rouge, judged, found["everything_else"])
    costs: list[Any] = [one["cost_per_million"] for one in parts]
    assert found["together"]["cost_per_million"] == pytest.approx(sum(costs))


def test_the_command_shows_it_and_writes_nothing(tmp_path: Path) -> None:
    """Without a price of an hour there is no cost, and without --dry-run there has to be --out."""
    lab = tmp_path / "lab.jsonl"
    lab.write_text("".join(
        json.dumps({"question": f"q{n}", "answer": "one", "expected_output": "one"}) + "\n"
        for n in range(9)
    ))  # fmt: skip
    words = ["evaluate", str(lab), "-e", "rouge"]
    ended = CliRunner().invoke(app, [*words, "--dry-run"], env={"COLUMNS": "200"})
    assert ended.exit_code == 0, ended.output
    assert "the run has 9 of 9 rows" in " ".join(ended.output.split())
    assert "no price of a core's hour" in ended.output
    assert list(tmp_path.iterdir()) == [lab]
    priced = CliRunner().invoke(
        app, [*words, "--dry-run", "--core-hour", "0.00001"], env={"COLUMNS": "200"}
    )
    assert "under 0.0001" in priced.output
    assert "hours of one core" in priced.output
    assert "in the currency of --core-hour" in " ".join(priced.output.split())
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert "--out: found nothing; expected a folder" in " ".join(refused.output.split())
