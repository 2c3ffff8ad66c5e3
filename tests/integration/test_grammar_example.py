"""examples/grammar end to end: make a company, generate, ask a RAG, score, and find each fault."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from guardrail_service.commands.main import app

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "grammar"


def guardrail(*words: object) -> None:
    """Run a command, which has to succeed."""
    found = CliRunner().invoke(app, list(map(str, words)))
    assert found.exit_code == 0, found.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The company, and 30 queries about it in six texts each."""
    made: Path = tmp_path_factory.mktemp("company")
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(EXAMPLE))
    patch.setenv("COMPANY", str(made))
    import make_company  # type: ignore[import-not-found]

    make_company.write(made)
    labels = ("--labels", made / "labels.json")
    templates, lab = made / "templates.json", made / "lab.jsonl"
    guardrail("grammar", "templates", made / "company.db", *labels, "--joins", 0, "-o", templates)
    words = ("--cases", 180, "--seed", 3, "-t", templates, "-o", lab)
    guardrail("grammar", "generate", made / "company.db", *labels, *words)
    yield made
    patch.undo()


def run_of(folder: Path, target: str) -> Path:
    """Ask a target of the example and score its answers, once."""
    run = folder / target
    if not run.exists():
        asked = folder / f"{target}.json"
        lab = folder / "lab.jsonl"
        words = ("--target", f"python:company_rag:{target}", "-o", asked, "--concurrency", 1)
        guardrail("ask", lab, *words)
        guardrail("grammar", "score", asked, "-o", run)
    return run


def details_of(run: Path) -> dict[str, Any]:
    """Return what is said of each case."""
    rows = json.loads((run / "results" / "grammar.json").read_text("utf-8"))["results"]
    return {row["key"]: row["details"] for row in rows}


def test_the_honest_system_is_mostly_right_and_mostly_robust(folder: Path) -> None:
    """Retrieval finds every document; what is wrong is the reader's."""
    (found,) = json.loads((run_of(folder, "ask") / "grammar.json").read_text("utf-8"))["models"]
    assert found["accuracy"] > 0.7
    assert found["robustness"] > 0.75
    assert found["retrieval"]["accuracy"] > 0.95
    assert found["blame"]["non_robust"]["retrieval"] == 0


@pytest.mark.parametrize(
    ("target", "blame", "style"),
    [
        ("ask_with_wrong_chunks", "retrieval", "long"),
        ("ask_with_a_guessing_reader", "language_model", "casual"),
        ("ask_with_swapped_rows", "knowledge", None),
    ],
)
def test_a_deliberate_fault_is_found_and_blamed_right(
    folder: Path, target: str, blame: str, style: str | None
) -> None:
    """What was right without the fault and is wrong with it is blamed on the part that has it."""
    before, after = details_of(run_of(folder, "ask")), details_of(run_of(folder, target))
    spoilt = [
        details for key, details in after.items()
        if details.get("right") is False and before[key]["right"]
    ]  # fmt: skip
    assert len(spoilt) >= 10
    blamed = Counter(details["blame"] for details in spoilt)
    assert blamed[blame] >= 0.8 * len(spoilt)
    assert set(blamed) <= {blame, "undecidable"}
    if style is not None:
        assert {details["style"] for details in spoilt} == {style}


def test_missing_knowledge_moves_accuracy_and_not_robustness(folder: Path) -> None:
    """The point of the metric, on a real system."""
    runs = [run_of(folder, target) for target in ("ask", "ask_with_swapped_rows")]
    before, after = (
        json.loads((run / "grammar.json").read_text("utf-8"))["models"][0] for run in runs
    )
    assert after["accuracy"] < before["accuracy"] - 0.03
    assert after["robustness"] == pytest.approx(before["robustness"], abs=0.03)
