"""docs/judge.md: its rows name evaluators that run and tests that exist; the example runs, too."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import guardrail_offline.evaluators  # noqa: F401 - importing registers the evaluators
from guardrail_offline.evaluators.backends import has_backend
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.description import declines
from guardrail_offline.evaluators.judge_forms import judge_backed
from guardrail_offline.judge.judge_tasks import Task
from guardrail_offline.judge.stand_in import FakeJudge
from guardrail_offline.runs.judge_estimate import assumed
from guardrail_offline.runs.result_files import read_run
from guardrail_service.commands.main import app
from tests.unit.offline.evaluators.judged.test_judge_forms import CASE, OTHER, SETTINGS
from tests.unit.offline.stand_ins import models

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "judge.md").read_text("utf-8")
FRAMEWORKS = {"LangChain", "LangSmith", "LlamaIndex", "DeepEval", "TruLens", "Bedrock"}


def rows() -> list[tuple[str, ...]]:
    """Return the rows of the table of frameworks."""
    table = PAGE.partition("## Metrics of other frameworks")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


def test_every_framework_is_there_and_every_row_says_how() -> None:
    """What is absent says why."""
    assert {row[0] for row in rows()} == FRAMEWORKS | {"Multi-modal RAG"}
    for framework, metric, evaluator, how, because in rows():
        assert how in ("same", "near", "absent"), (framework, metric)
        assert (evaluator == "-") == (how == "absent")
        assert because or how != "absent"


def faults() -> list[list[str]]:
    """Return the cells of the table of faults, row by row."""
    table = PAGE.partition("## Faults of judges elsewhere, and here")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_fault_elsewhere_has_a_test_here() -> None:
    """Each row has a thread, and tests that exist under the names it gives."""
    assert len(faults()) >= 11
    for fault, _, proved in faults():
        assert re.search(r"#\d+", fault), fault
        named = re.findall(r"`([^`]+)::(test_\w+)`", proved)
        assert named, fault
        for path, test in named:
            assert f"\ndef {test}(" in (ROOT / path).read_text("utf-8"), (path, test)


def likely(task: Task, inputs: Mapping[str, Any], _vote: int) -> Any:
    """Answer anything with what the schema allows."""
    return assumed(task, inputs)


@pytest.mark.parametrize("evaluator", sorted({row[2].strip("`") for row in rows()} - {"-"}))
def test_a_row_runs(evaluator: str) -> None:
    """With a judge where it has one, else with the pack that ships; its metrics are its own."""
    spec = CATALOGUE.find(evaluator).spec
    named = (row[4] for row in rows() if row[2] == f"`{evaluator}`" and "metric" in row[4])
    for key in re.findall(r"metrics? `(\w+)`", " ".join(named)):
        assert key in spec.keys
    if not has_backend(spec, "judge"):
        assert declines(spec) is None
        return
    one = judge_backed(evaluator)
    given = models("embedding")
    given.judge = FakeJudge(likely)
    parameters = one.parameters.model_validate(SETTINGS.get(evaluator, {}))
    (found,) = one.evaluate([CaseView(CASE, given, (OTHER, CASE))], parameters)
    assert any(score.value is not None for score in found.scores.values()), found


EXAMPLE = ROOT / "examples" / "judge"


def test_the_example_runs_with_nobody_at_the_judges_address(tmp_path: Path) -> None:
    """The command of its page, with the transcripts that are shipped, as they are."""
    page = (EXAMPLE / "README.md").read_text("utf-8")
    block = page.partition("```bash\n")[2].partition("```")[0]
    words = shlex.split(block.replace("\\\n", " "))[1:]
    words[words.index("-o") + 1] = str(tmp_path / "run")
    before = (EXAMPLE / "transcripts.sqlite").read_bytes()
    with contextlib.chdir(ROOT):
        ended = CliRunner().invoke(app, [*words, "--workers", "1", "--no-report"])
    assert ended.exit_code == 0, ended.output
    assert (EXAMPLE / "transcripts.sqlite").read_bytes() == before
    results = read_run(tmp_path / "run")
    found = {row.key: row.scores["faithfulness"].value for row in results["faithfulness"].rows}
    assert found == {"ferry-times": 1.0, "bicycle": 0.5, "bar": None, "duration": 0.0}
    told = json.loads((tmp_path / "run" / "judge.json").read_text("utf-8"))["evaluators"]
    assert all(set(one["statuses"]) == {"ok"} for one in told.values())
