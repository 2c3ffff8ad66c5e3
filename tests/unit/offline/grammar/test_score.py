"""`guardrail grammar score`: groups, styles, blame and problems of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.report.page import write_report
from tests.unit.offline.grammar.conftest import guardrail

MIXED = [(1, 3), (2, 3), (3, 3), (2, 3)]
BETTER = [(3, 3), (2, 3), (3, 3), (3, 3)]


def records(groups: Iterable[tuple[int, int]], model: str = "m") -> list[dict[str, Any]]:
    """Return a lab with so many right answers of so many in each group, in styles a, b, c."""
    return [
        {
            "key": f"{model}-{group}-{n}", "group": f"g{group}", "model": model,
            "input": f"Name of {group}, please ({n})?", "expected_output": f"Heron{group}",
            "actual_output": f"Heron{group}" if n < right else "Iris",
            "categories": ["grammar", "sql:t", f"style:{'abc'[n]}"],
        }
        for group, (right, count) in enumerate(groups)
        for n in range(count)
    ]  # fmt: skip


def scored(rows: Sequence[dict[str, Any]], folder: Path) -> Any:
    """Score a lab and return what is said of each model."""
    lab = folder / "lab.jsonl"
    lab.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    ran = guardrail("score", lab, "-o", folder / "run", "--json")
    assert ran.status == 0, ran.text
    return ran.json["models"]


@pytest.mark.parametrize(
    ("groups", "accuracy", "robustness", "kinds"),
    [
        (MIXED + 4 * [(0, 3)], 8 / 24, 8 / 12, (4, 1, 3)),
        (MIXED + 2 * [(0, 3)], 8 / 18, 8 / 12, (2, 1, 3)),
        (BETTER + 4 * [(0, 3)], 11 / 24, 11 / 12, (4, 3, 1)),
    ],
)
def test_robustness_through_the_command(
    groups: list[tuple[int, int]], accuracy: float, robustness: float, kinds: Any, tmp_path: Path
) -> None:
    """Known answers 20, 21 and 22: fewer gaps move accuracy, and robustness not."""
    (found,) = scored(records(groups), tmp_path)
    assert found["accuracy"] == pytest.approx(accuracy, rel=1e-9)
    assert found["robustness"] == pytest.approx(robustness, rel=1e-9)
    assert (found["gap"], found["robust"], found["non_robust"]) == kinds
    assert found["accuracy"] == pytest.approx(robustness * (1 - found["gap_share"]))
    low, high = found["intervals95"]["robustness"]
    assert low <= robustness <= high


def test_a_run_has_boards_problems_and_tables_of_each_model(tmp_path: Path) -> None:
    """By style, too; a second look at the folder gives the same, and nothing is computed again."""
    rows = records([*MIXED, (0, 3)]) + records(BETTER, "n")
    one, other = scored(rows, tmp_path)
    assert [style["style"] for style in one["styles"]] == ["a", "b", "c"]
    assert [style["robustness"] for style in one["styles"]] == [1.0, 0.75, 0.25]
    assert [style["accuracy"] for style in one["styles"]] == pytest.approx([0.8, 0.6, 0.2])
    assert one["styles"][2]["own"]["gap"] == 4
    assert one["styles"][0]["balanced"]["accuracy"] == pytest.approx(0.8)
    assert (one["groups"], other["groups"]) == (5, 4)
    assert one["blame"]["non_robust"]["undecidable"] == 4
    run = tmp_path / "run"
    problems = json.loads((run / "problems.json").read_text("utf-8"))
    told = [p["description"] for p in problems if p["problem_attrs"].get("evaluator") == "grammar"]
    assert any("3 of 5 questions are right in some wordings only" in text for text in told)
    assert any("1 of 5 questions are right in no wording" in text for text in told)
    boards = json.loads((run / "leaderboards.json").read_text("utf-8"))
    assert [row["model"] for row in boards[0]["rows"]] == ["n", "m"]
    assert boards[0]["rows"][0]["metrics"]["robustness"]["value"] == pytest.approx(11 / 12)
    assert "confusion" not in boards[0]
    assert "Groups of equivalent questions" in (run / "leaderboards.md").read_text("utf-8")
    again = guardrail("score", run, "--json")
    assert again.json["models"] == [one, other]
    guardrail("score", tmp_path / "lab.jsonl", "-o", tmp_path / "twice")
    for name in ("grammar.json", "leaderboards.json", "leaderboards.md", "problems.json"):
        assert (tmp_path / "twice" / name).read_bytes() == (run / name).read_bytes()


def test_styles_that_were_drawn_unevenly_are_compared_on_common_questions(tmp_path: Path) -> None:
    """A style that is asked only what is known looks robust until the sets are balanced."""
    rows = [
        row for row in records([(3, 3), (1, 3), (0, 3), (0, 3)])
        if not (row["group"] in ("g2", "g3") and "style:c" in row["categories"])
    ]  # fmt: skip
    (found,) = scored(rows, tmp_path)
    a, _, c = found["styles"]
    assert (a["accuracy"], c["accuracy"]) == (0.5, 0.5)
    assert (a["balanced"]["accuracy"], c["balanced"]["accuracy"]) == (1.0, 0.5)
    assert (a["robustness"], c["robustness"]) == (1.0, 0.5)


def test_unanswered_cases_and_other_labs_are_not_scored(tmp_path: Path) -> None:
    """They are counted; a lab without generated cases ends with 3."""
    rows = records([(3, 3), (2, 3)])
    rows[0]["actual_output"] = None
    (found,) = scored(rows, tmp_path)
    assert (found["cases"], found["unanswered"], found["accuracy"]) == (6, 1, pytest.approx(0.8))
    plain = tmp_path / "plain.jsonl"
    plain.write_text('{"question": "Q?", "answer": "A", "reference": "A"}\n')
    ran = guardrail("score", plain, "-o", tmp_path / "plain")
    assert ran.status == 3
    assert "no generated case" in ran.text
    assert guardrail("score", plain).status == 2


def test_the_report_has_groups_styles_and_blame(tmp_path: Path) -> None:
    """Beside what it has of every evaluator; names are escaped."""
    rows = records([(3, 3), (1, 3), (0, 3)], "<b>m</b>")
    for row in rows:
        row["categories"][2] = row["categories"][2].replace("style:a", "style:<i>a</i>")
    scored(rows, tmp_path)
    page = tmp_path / "report.html"
    write_report([tmp_path / "run"], page)
    text = page.read_text("utf-8")
    assert "3 questions, 1 right in no wording, 1 in all, 1 in some" in text
    assert "2 wrong answers in non-robust groups, to blame: 2 undecidable" in text
    assert "&lt;i&gt;a&lt;/i&gt;" in text
    assert "<i>a</i>" not in text
