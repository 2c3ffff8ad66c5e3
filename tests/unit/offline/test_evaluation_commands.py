"""The commands: what they print, as tables and as JSON, and how they end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from typer.testing import CliRunner, Result

from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_service.commands.main import app

WIDE = {"COLUMNS": "250"}


def run(*words: str) -> Result:
    """Run the command line."""
    return CliRunner().invoke(app, list(words), env=WIDE)


def lab(folder: Path, *answers: str, name: str = "lab.jsonl") -> Path:
    """Write a lab of answers to as many questions, all expected to be "nine to five daily"."""
    rows = [
        {"key": f"q{n}", "question": f"When is door {n} open?", "answer": a, "model": "m"}
        for n, a in enumerate(answers)
    ]
    path = folder / name
    expected = {"ground_truth": "nine to five daily"}
    path.write_text("".join(json.dumps(row | expected) + "\n" for row in rows))
    return path


def test_the_list_shows_every_evaluator_and_marks_what_needs_a_judge() -> None:
    """As a table and as JSON."""
    shown = run("evaluators", "list")
    assert shown.exit_code == 0
    specs = CATALOGUE.specs()
    count = f"{len(specs)} evaluators, {sum(len(spec.metrics) for spec in specs)} metrics"
    assert count in shown.output
    content = json.loads(run("evaluators", "list", "--suite", "h2o", "--json").output)
    assert {c["id"] for c in content} == {spec.id for spec in specs if spec.h2o_id}
    assert {"fact_check", "byop"} <= {c["id"] for c in content if c["needs_judge"]}


def test_one_evaluator_is_shown_by_any_of_its_names() -> None:
    """Metrics and parameters; an unknown one ends with 2."""
    shown = run("evaluators", "show", "ragas:faithfulness")
    assert shown.exit_code == 0
    assert "support_threshold" in shown.output
    assert json.loads(run("evaluators", "show", "byop", "--json").output)["needs_judge"] is True
    assert run("evaluators", "show", "fathfulness").exit_code == 2


def test_evaluate_prints_what_computed_and_says_where_it_is(tmp_path: Path) -> None:
    """Ends with 0 if everything computed."""
    path = lab(tmp_path, "nine to five daily")
    out = str(tmp_path / "out")
    shown = run("evaluate", str(path), "-e", "rouge,bleu", "-o", out, "--workers", "1")
    assert shown.exit_code == 0, shown.output
    assert "2 of 2 evaluators computed" in shown.output
    again = run("evaluate", str(path), "-e", "rouge,bleu", "-o", out, "--json")
    assert json.loads(again.output)["computed"] == {"bleu": 1, "rouge": 1}


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["-e", "deterministic"], 0),
        (["-e", "rouge"], 0),
        (["-e", "all"], 0),
        (["-e", "rouge,byop"], 3),
        (["-e", "rouge,h2o:byop"], 2),
        (["--fail-under", "rouge_1=.5"], 0),
        (["--fail-under", "rouge_1=.95"], 1),
        (["--fail-under", "m:rouge_1=.5"], 0),
        (["--fail-under", "n:rouge_1=.5"], 2),
        (["--fail-under", "rouge_1=.5", "--min-coverage", ".7"], 3),
        (["--fail-under", "rouge_1=.95", "--min-coverage", ".7"], 1),
        (["-e", "rouge,citations", "--fail-under", "citation_f1=.5"], 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_evaluate_ends_with_a_status_that_means_something(
    tmp_path: Path, words: list[str], status: int
) -> None:
    """0 fine, 1 a bound is missed, 2 bad input, 3 something asked for has no value."""
    path = lab(tmp_path, "nine to five daily", "nine to five", "")
    asked = words if "-e" in words else ["-e", "rouge", *words]
    shown = run("evaluate", str(path), "-o", str(tmp_path / "out"), "--workers", "1", *asked)
    assert shown.exit_code == status, shown.output


def test_evaluate_writes_what_a_build_server_shows(tmp_path: Path) -> None:
    """Bounds as JUnit tests and as Markdown, and as JSON."""
    junit, summary = tmp_path / "x" / "junit.xml", tmp_path / "summary.md"
    files = ["--junit", str(junit), "--summary", str(summary)]
    words = ["-e", "rouge", "--fail-under", "rouge_1=.95", "--fail-under", "rouge_2=.1", *files]
    path = str(lab(tmp_path, "nine to five"))
    shown = run("evaluate", path, "-o", str(tmp_path / "out"), "--json", *words)
    assert shown.exit_code == 1
    assert [c["outcome"] for c in json.loads(shown.output)["checks"]] == ["missed", "met"]
    assert '<testcase classname="rouge" name="m: rouge.rouge_1 &gt;= 0.95">' in junit.read_text()
    assert "## ❌ out: 1 of 2 bounds not met" in summary.read_text("utf-8")
    shown = run("evaluate", path, "-o", str(tmp_path / "out"), *words)
    assert "missed m: rouge.rouge_1 >= 0.95, found 0.857 over 1 of 1 cases" in shown.output
    shown = run(
        "evaluate", path, "-o", str(tmp_path / "out"), "-e", "rouge", "--junit", path + "/x"
    )
    assert (shown.exit_code, "--junit: found" in shown.output) == (2, True)


def test_several_runs_are_compared_with_the_first(tmp_path: Path) -> None:
    """Each by itself, corrected together; a drop that is allowed is no regression."""
    answers = {
        "base": ["nine to five daily"] * 6,
        "same": ["nine to five daily"] * 6,
        "worse": ["nine to five", "nine to", "five daily", "daily", "nine to five", "nine"],
    }
    for name, given in answers.items():
        path = lab(tmp_path, *given, name=f"{name}.jsonl")
        run("evaluate", str(path), "-e", "rouge", "-o", str(tmp_path / name), "--workers", "1")
    runs = [str(tmp_path / name) for name in answers]
    summary, junit = tmp_path / "s.md", tmp_path / "j.xml"
    shown = run("compare", *runs, "--summary", str(summary), "--junit", str(junit), "--json")
    content = json.loads(shown.output)
    assert (shown.exit_code, content["regressions"]) == (1, 3)
    assert [one["run"] for one in content["runs"]] == ["same", "worse"]
    text = summary.read_text("utf-8")
    assert "✅ same against base: no regression" in text
    assert "❌ worse against base: 3 regressions" in text
    assert junit.read_text("utf-8").count("<failure") == 3
    allowed = run("compare", *runs, "--max-drop", ".7", "--all", "--by-model")
    assert (allowed.exit_code, "no regression" in allowed.output) == (0, True)
    assert run("compare", *runs[:2], "--strict").exit_code == 0


def test_compare_ends_with_one_if_something_got_worse(tmp_path: Path) -> None:
    """And with 0 for the way back."""
    good = lab(tmp_path, *["nine to five daily"] * 5)
    bad = lab(tmp_path, "nine", "nine to", "five", "daily", "closed", name="bad.jsonl")
    for path, out in ((good, "a"), (bad, "b")):
        folder = str(tmp_path / out)
        run("evaluate", str(path), "-e", "rouge", "-o", folder, "--workers", "1")
    worse = run("compare", str(tmp_path / "a"), str(tmp_path / "b"))
    assert worse.exit_code == 1, worse.output
    assert "worse" in worse.output
    better = run("compare", str(tmp_path / "b"), str(tmp_path / "a"), "--json")
    assert better.exit_code == 0
    verdicts = {d["metric"]: d["verdict"] for d in json.loads(better.output)["differences"]}
    assert verdicts["rouge_l"] == "better"


def test_perturb_writes_a_lab_with_linked_variants(tmp_path: Path) -> None:
    """And says how many."""
    path, out = lab(tmp_path, "nine", "ten"), tmp_path / "perturbed.json"
    shown = run("perturb", str(path), "-o", str(out), "--by", "comma,base64", "--seed", "3")
    assert shown.exit_code == 0, shown.output
    assert "4 variants added" in shown.output
    inputs = json.loads(out.read_text("utf-8"))["dataset"]["inputs"]
    assert [len(i["relationships"]) for i in inputs] == [0, 1, 1, 0, 1, 1]


def test_a_perturbed_lab_can_be_perturbed_and_evaluated(tmp_path: Path) -> None:
    """What is there is kept and counted."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    run("perturb", str(lab(tmp_path, "nine")), "-o", str(first), "--by", "comma")
    shown = run("perturb", str(first), "-o", str(second), "--by", "comma,base64", "--json")
    report = json.loads(shown.output)
    assert (report["added"], report["present"]) == (1, ["q0~comma~medium"])
    shown = run("perturb", str(first), "-o", str(second), "--by", "comma,base64")
    assert "1 variants added, 1 were there already" in shown.output
    evaluated = run("evaluate", str(second), "-e", "rouge", "-o", str(tmp_path / "o"))
    assert evaluated.exit_code == 0, evaluated.output


def test_perturb_keeps_artifacts_beside_the_lab(tmp_path: Path) -> None:
    """A lab that is moved with its folder is still read; one elsewhere would be refused."""
    (tmp_path / "here" / "runs" / "1").mkdir(parents=True)
    path = tmp_path / "here" / "lab.jsonl"
    path.write_text('{"key": "q", "question": "What is it, and why?", "artifacts": "runs/1"}\n')
    beside = tmp_path / "here" / "p.json"
    run("perturb", str(path), "-o", str(beside), "--by", "base64")
    inputs = json.loads(beside.read_text("utf-8"))["dataset"]["inputs"]
    assert [one["actual_output_artifacts"] for one in inputs] == ["runs/1", None]
    (tmp_path / "here").rename(tmp_path / "there")
    moved = open_lab(tmp_path / "there" / "p.json").cases()
    assert next(moved).artifacts == str(tmp_path.resolve() / "there" / "runs" / "1")
    elsewhere = tmp_path / "elsewhere" / "p.json"
    shown = run("perturb", str(tmp_path / "there" / "lab.jsonl"), "-o", str(elsewhere))
    assert shown.exit_code == 2
    assert "--out: found a folder without the artifacts of case 'q'; expected" in shown.output
    assert not elsewhere.exists()


def test_perturb_reports_a_key_that_utf8_cannot_hold(tmp_path: Path) -> None:
    """A lone surrogate, escaped."""
    path = tmp_path / "lab.jsonl"
    path.write_text('{"key": "k\\ud800", "question": "What?"}\n')
    words = ["perturb", str(path), "-o", str(tmp_path / "p.json"), "--by", "qwerty", "--json"]
    shown = subprocess.run(
        [sys.executable, "-m", "guardrail_service.commands.main", *words], stdout=PIPE
    )
    assert shown.returncode == 0
    assert json.loads(shown.stdout)["unchanged"] == ["k\ud800~qwerty~medium"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["perturb", "LAB", "-o", "x.json", "--intensity", "extreme"], "--intensity"),
        (["perturb", "LAB", "-o", "x.json", "--by", "nonsense"], "--by"),
        (["perturb", "LAB", "-o", "x.json", "--lexicon", "thesaurus"], "--lexicon"),
        (["perturb", "LAB", "-o", "FOLDER"], "--out: found IsADirectoryError"),
        (["perturb", "LAB", "-o", "LAB/x.json"], "--out: found "),
        (["evaluate", "no-such-lab.json", "-o", "x", "-e", "rouge"], "no such file"),
        (["compare", "no-such-run", "neither"], "no results"),
    ],
)
def test_a_wrong_argument_ends_with_two_and_one_line(
    tmp_path: Path, words: list[str], found: str
) -> None:
    """Naming what was found."""
    path = str(lab(tmp_path, "nine"))
    places = {"LAB": path, "FOLDER": str(tmp_path), "LAB/x.json": f"{path}/x.json"}
    shown = run(*(places.get(word, word) for word in words))
    assert shown.exit_code == 2
    assert found in shown.output


def test_columns_that_nothing_reads_are_named_once_and_can_be_mapped(tmp_path: Path) -> None:
    """On standard error and in the manifest; a mapping is part of what was run."""
    path = tmp_path / "lab.jsonl"
    row = {"question": "When?", "ground_truth": "nine", "mine": "nine", "other": {"deep": 1}}
    path.write_text(json.dumps(row) + "\n")
    words = ["evaluate", str(path), "-e", "rouge", "--workers", "1"]
    shown = run(*words, "-o", str(tmp_path / "a"))
    assert "nothing reads the columns 'mine', 'other'; --map FIELD=COLUMN" in shown.output
    mapped = run(*words, "-o", str(tmp_path / "b"), "--map", "answer=mine")
    assert (mapped.exit_code, "the columns 'other';" in mapped.output) == (0, True)
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text("utf-8"))
    assert manifest["lab"]["mapping"] == {"answer": "mine"}
    assert manifest["plan"]["ignored_columns"] == ["other"]
    again = run(*words, "-o", str(tmp_path / "b"))
    assert (again.exit_code, "a run with another lab" in again.output) == (2, True)
    assert run(*words, "-o", str(tmp_path / "c"), "--map", "answer=none").exit_code == 2


def test_a_conversation_has_its_mean_and_its_worst_turn(tmp_path: Path) -> None:
    """In the direction of the metric."""
    turns = [("When?", "nine"), ("Where?", "not here")]
    messages = [
        {"role": role, "content": text}
        for pair in turns
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]
    path = tmp_path / "lab.jsonl"
    path.write_text(json.dumps({"id": "c", "turns": messages, "reference": "here"}) + "\n")
    run("evaluate", str(path), "-e", "rouge,looping", "-o", str(tmp_path / "o"), "--workers", "1")
    found = json.loads((tmp_path / "o" / "conversations.json").read_text("utf-8"))
    (record,) = [one for one in found if one["metric"] == "rouge_1"]
    assert record == {
        "conversation": "c", "model": "", "turns": 2, "evaluator": "rouge", "metric": "rouge_1",
        "judged": 1, "mean": pytest.approx(2 / 3), "worst": pytest.approx(2 / 3),
        "worst_turn": "c@2",
    }  # fmt: skip
    page = (Path(__file__).parents[3] / "docs" / "results.md").read_text("utf-8")
    table = page.split("## Conversations: ")[1].split("##")[0]
    assert all(f"| `{key}` |" in table for key in record)


def test_a_lab_is_converted_and_what_is_lost_is_said(tmp_path: Path) -> None:
    """An ending that the suite does not read is refused."""
    path, out = str(lab(tmp_path, "nine")), tmp_path / "checking.json"
    shown = run("convert", path, "--to", "ragchecker", "-o", str(out))
    assert (shown.exit_code, "no place for: model" in shown.output) == (0, True)
    assert next(open_lab(out).cases()).answer == "nine"
    assert run("convert", path, "-o", str(tmp_path / "h2o.json")).exit_code == 0
    for words in (["--to", "ragas"], ["--to", "other"]):
        assert run("convert", path, *words, "-o", str(out)).exit_code == 2


def test_a_perfect_model_has_no_problem_of_accuracy(tmp_path: Path) -> None:
    """Answers that are the expected ones, short as they are, with every evaluator of a task."""
    rows = [
        {
            "question": f"When does door {n} open?",
            "contexts": [f"Door {n} opens at {n} in the morning. It closes in the evening."],
            "ground_truth": f"Door {n} opens at {n} in the morning.",
            "answer": f"Door {n} opens at {n} in the morning.",
        }
        for n in range(2, 7)
    ]
    path = tmp_path / "lab.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["evaluate", str(path), "--task", "qa", "--workers", "1", "-o", str(tmp_path / "o")]
    shown = run(*words)
    assert shown.exit_code == 0, shown.output
    found = json.loads((tmp_path / "o" / "problems.json").read_text("utf-8"))
    assert {one["problem_type"] for one in found} <= {"data quality"}
    assert run(*words[:3], "chess", "-o", str(tmp_path / "p")).exit_code == 2
