"""A lab whose models are better and worse by making: boards order them, and silence never wins."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import dumps
from guardrail_offline.evaluators.tasks import HEADLINES
from guardrail_offline.runs.execution import RunOptions, evaluate_lab
from guardrail_offline.runs.result_files import read_results

pytestmark = pytest.mark.timeout(900)
"""About 30 s of processor time for 360 rows; a busy machine needs more."""
FOLDER = Path(__file__).parents[2] / "examples" / "lab"
CLOSENESS = ("answer_strings", "rouge", "answer_semantic_similarity", "groundedness")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All evaluators on the board, once for all tests here."""
    out = tmp_path_factory.mktemp("board") / "out"
    evaluate_lab(open_lab(FOLDER / "board.jsonl"), configure(["all"]), RunOptions(out, workers=1))
    return out


def read(run: Path, name: str) -> Any:
    """Return one of the run's files."""
    return json.loads((run / name).read_text("utf-8"))


def orders(run: Path) -> dict[str, list[str]]:
    """Return the models by evaluator, the best first."""
    boards = read(run, "leaderboards.json")
    return {board["evaluator"]: [row["model"] for row in board["rows"]] for board in boards}


def test_the_board_is_small_and_made_anew_from_its_gold_rows() -> None:
    """Sixty questions and six models; the script gives the same bytes."""
    spec = importlib.util.spec_from_file_location("make_board", FOLDER / "make_board.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    content = (FOLDER / "board.jsonl").read_text("utf-8")
    assert maker.text(maker.board(maker.read_gold())) == content
    assert len(content.encode()) < 500_000
    rows = [json.loads(line) for line in content.splitlines()]
    names = ("gold", "verbose", "truncated", "negated", "shuffled", "silent")
    assert Counter(row["model_key"] for row in rows) == dict.fromkeys(names, 60)
    assert len({row["question"] for row in rows}) == 60


@pytest.mark.parametrize("evaluator", [*HEADLINES, "rag_triad", "context_utilization"])
def test_gold_is_first_and_negated_and_shuffled_are_last(run: Path, evaluator: str) -> None:
    """Silence stands apart: how bad it is depends on what others say."""
    order = [model for model in orders(run)[evaluator] if model != "silent"]
    assert order[0] == "gold"
    assert set(order[-2:]) == {"negated", "shuffled"}


def test_no_model_wins_by_silence(run: Path) -> None:
    """On no board and in no insight, though it insults nobody."""
    assert {order[0] for order in orders(run).values()} <= {"gold", "verbose", "truncated"}
    best = [one["attrs"] for one in read(run, "insights.json") if one["type"].startswith("best")]
    assert best
    assert "silent" not in {one["model"] for one in best}
    for board in read(run, "leaderboards.json"):
        if board["evaluator"] in HEADLINES:
            (silent,) = [row for row in board["rows"] if row["model"] == "silent"]
            assert silent["metrics"][board["primary_metric"]]["unanswered"] == 54


def test_the_best_of_every_headline_is_gold_beyond_chance(run: Path) -> None:
    """With a paired interval over sixty questions that leaves out 0."""
    best = {
        one["attrs"]["evaluator"]: one["attrs"]["model"]
        for one in read(run, "insights.json")
        if one["type"] == "best_model"
    }
    assert {best[name] for name in HEADLINES} == {"gold"}


def test_the_first_table_has_the_headlines_and_the_models_in_order(run: Path) -> None:
    """By their mean place."""
    lines = (run / "leaderboards.md").read_text("utf-8").splitlines()
    start = lines.index("## Headline metrics")
    assert start == next(place for place, line in enumerate(lines) if line.startswith("## "))
    rows = [line for line in lines[start:] if line.startswith("| ")][1:7]
    names = [row.split("|")[1].strip() for row in rows]
    assert names[0] == "gold"
    assert "| gold | 1.0 |" in rows[0]
    assert set(names[-3:]) == {"negated", "silent", "shuffled"}


@pytest.mark.parametrize("evaluator", CLOSENESS)
def test_closeness_does_not_see_a_wrong_not(run: Path, evaluator: str) -> None:
    """So it is no headline: the contrary of a right answer is close to it."""
    order = orders(run)[evaluator]
    assert order[0] == "gold"
    assert "negated" in order[:3]
    assert evaluator not in HEADLINES


def test_results_are_ten_times_smaller_than_in_h2o_s_layout(run: Path) -> None:
    """Together with the cases, which that layout writes into every row."""
    small = (run / "cases.jsonl").stat().st_size
    large = 0
    for path in (run / "results").iterdir():
        small += path.stat().st_size
        for row in read_results(path).rows:
            why = row.record["missing"]
            record = {
                **{key: score.value for key, score in row.scores.items()},
                **row.record,
                "missing": {
                    key: why.get(key, why.get("*"))
                    for key, score in row.scores.items()
                    if score.value is None
                },
            }
            large += len(dumps(record).encode())
    assert large > 10 * small
