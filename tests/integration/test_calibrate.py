"""The whole loop on a real model: check, lab, sample, fit, serve, check again, derive."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guardrail_offline.calibration import commands
from guardrail_offline.calibration.fit_options import FitOptions
from tests.integration.conftest import Served, here

SENTENCES = (
    "guests may stay for two weeks at most .",
    "the pool opens at seven in the morning .",
    "breakfast is served until ten .",
    "dogs are not allowed in the pool .",
    "parking costs five euros per night .",
)
QUESTIONS = 90


@pytest.fixture(scope="module")
def answers() -> list[dict[str, Any]]:
    """Answers to numbered questions: good ones repeat a passage, bad ones say something else."""
    generator = np.random.default_rng(5)
    made = []
    for n in range(QUESTIONS):
        first, second = generator.permutation(5)[:2]
        bad = n % 4 == 0
        answer = SENTENCES[second if bad else first]
        if n % 3 == 0:  # good answers differ a little from their passage, too
            answer = answer.replace("the ", "").replace("at ", "")
        made.append(
            {
                "id": f"a{n}",
                "question": f"question number {n} ?",
                "answer": answer,
                "contexts": [SENTENCES[first]],
                "categories": [f"topic:{'ab'[n % 2]}"],
                "bad": bad,
            }
        )
    return made


def lines(path: Path, records: list[dict[str, Any]]) -> Path:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture(scope="module")
def loop(
    answers: list[dict[str, Any]], tiny: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder in which the documented commands have run, up to the fitted configuration."""
    folder = tmp_path_factory.mktemp("loop")
    base = folder / "base.json"
    base.write_text(
        json.dumps(
            {
                "calibrated_thresholds": {
                    "groundedness": {"groundedness": 0.5},
                    "looping": {"unique_sentences": 0.5},
                },
                "evaluator_ids": ["groundedness", "looping"],
                "policy": {"name": "inn", "version": "1"},
            }
        )
    )
    asked = [{k: v for k, v in a.items() if k != "bad"} for a in answers]
    bodies = [{k: v for k, v in a.items() if k != "categories"} for a in asked]
    requests = lines(folder / "requests.jsonl", asked)
    replies = folder / "replies.jsonl"
    pack = ("--pack", tiny)
    checked = here(
        "check", lines(folder / "bodies.jsonl", bodies), "-c", base, "--output", replies, *pack
    )
    assert checked.exit_code in (0, 1)
    lab = folder / "lab.jsonl"
    run("lab", requests, replies, "-c", base, "--out", lab, *pack)
    run("sample", lab, "--n", "60", "--out", folder / "to_label.jsonl")
    sample = folder / "to_label.jsonl.sample.jsonl"
    drawn = {json.loads(line)["case"] for line in sample.read_text().splitlines()}
    labels = [
        {"case": a["id"], "label": "fail" if a["bad"] else "pass", "annotator": who}
        for a in answers
        for who in ("one", "two")
    ]
    lines(folder / "labels.jsonl", [x for x in labels if x["case"] in drawn])
    lines(folder / "others.jsonl", [x for x in labels if x["case"] not in drawn])
    fitted = run(
        "fit", lab, "--labels", folder / "labels.jsonl", "--sample", sample, "--base", base,
        "--alpha", "0.2", "--out", folder / "inn.json", "--report", folder / "report", *pack,
    )  # fmt: skip
    assert "Promise: a good answer to a new question" in fitted
    return folder


def run(command: str, *arguments: str | Path, status: int = 0) -> str:
    """Run a calibrate command in this process and return what it printed."""
    ended = here("calibrate", command, *arguments)
    assert ended.exit_code == status, ended.output
    return str(ended.output)


def test_the_fitted_file_is_valid_and_calibrated(loop: Path, tiny: Path) -> None:
    """As `config check` sees it."""
    ended = here("config", "check", loop / "inn.json", "--pack", tiny, "--json")
    assert ended.exit_code == 0
    (report,) = json.loads(ended.stdout)
    metric = report["policy"]["detectors"]["groundedness"]["metrics"]["groundedness"]
    assert metric["status"] == "calibrated"
    assert report["policy"]["warnings"] == []


def test_the_service_serves_it_unchanged_and_says_calibrated(
    loop: Path, tiny: Path, serve: Callable[..., Served]
) -> None:
    """Over HTTP, with the thresholds of the file."""
    service = serve("--port", "0", "--config", loop / "inn.json", "--pack", tiny)
    body = json.loads((loop / "bodies.jsonl").read_text().splitlines()[1])
    with service.client() as client:
        reply = client.post("/v1/check", json=body).json()
        (policy,) = client.get("/v1/policies").json()["policies"]
    content = json.loads((loop / "inn.json").read_text())
    (threshold,) = (
        cuts["groundedness"]
        for cuts in content["calibrated_thresholds"].values()
        if "groundedness" in cuts
    )
    assert reply["calibrated"]
    assert reply["policy"]["name"] == policy["name"] == "inn-calibrated"
    found = reply["detectors"]["groundedness"]["metrics"]["groundedness"]
    assert found["threshold"] == threshold
    assert found["calibrated"]


def test_an_edited_file_does_not_start(loop: Path, tiny: Path, tmp_path: Path) -> None:
    """A threshold changed by hand carries no promise."""
    content = json.loads((loop / "inn.json").read_text())
    for cuts in content["calibrated_thresholds"].values():
        cuts.update(dict.fromkeys(cuts, 0.01))
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(content))
    ended = here("serve", "--config", path, "--pack", tiny)
    assert ended.exit_code == 2
    assert "calibration.decides_sha256" in ended.output


def test_explain_says_what_is_promised(loop: Path) -> None:
    """In plain words."""
    text = run("explain", loop / "inn.json")
    assert "at most 20.0%" in text
    assert "kappa" in text
    assert "Not promised" in text


def test_without_matplotlib_the_report_has_no_pictures(
    loop: Path, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says how to get them; page and thresholds are written all the same."""
    monkeypatch.setattr(commands, "find_spec", lambda name: None)
    said = run(
        "fit", loop / "lab.jsonl", "--labels", loop / "labels.jsonl",
        "--sample", loop / "to_label.jsonl.sample.jsonl", "--base", loop / "base.json",
        "--alpha", "0.2", "--out", tmp_path / "inn.json", "--report", tmp_path, "--pack", tiny,
    )  # fmt: skip
    assert "pip install 'rag-guardrail-offline[plots]'" in said
    assert "<img" not in (tmp_path / "index.html").read_text()
    assert not list(tmp_path.glob("*.png"))
    thresholds = [
        json.loads(path.read_text())["calibrated_thresholds"]
        for path in (loop / "inn.json", tmp_path / "inn.json")
    ]
    assert thresholds[0] == thresholds[1]


def test_the_report_is_written(loop: Path) -> None:
    """One page that fetches nothing, and its pictures."""
    text = (loop / "report" / "index.html").read_text()
    assert "data:image/png;base64," in text
    assert 'src="http' not in text
    assert (loop / "report" / "scores.png").stat().st_size > 1000
    assert json.loads((loop / "report" / "doubtful_labels.json").read_text()) is not None


def test_other_questions_are_checked_against_the_promise(loop: Path, tiny: Path) -> None:
    """And those it was fitted on are refused."""
    arguments = ("--lab", loop / "lab.jsonl", "--pack", tiny)
    text = run("check", loop / "inn.json", *arguments, "--labels", loop / "others.jsonl", "--json")
    found = json.loads(text)
    assert found["finding"] in ("confirmed", "consistent")
    assert found["false_flag"]["n"] + found["recall"]["n"] == QUESTIONS - 60
    assert {s["fact"] for s in found["slices"]} >= {"topic"}
    text = run("check", loop / "inn.json", *arguments, "--labels", loop / "labels.jsonl", status=2)
    assert "60 questions that thresholds were fitted on" in text


def test_the_lab_is_judged_again_without_scoring(loop: Path, tiny: Path, tmp_path: Path) -> None:
    """Decisions equal those of checking the same answers under the new file."""
    run(
        "derive", loop / "lab.jsonl", "-c", loop / "inn.json", "--before", loop / "base.json",
        "--labels", loop / "labels.jsonl", "--out", tmp_path, "--pack", tiny,
    )  # fmt: skip
    derived = json.loads((tmp_path / "derived.json").read_text())
    again = here("check", loop / "bodies.jsonl", "-c", loop / "inn.json", "--pack", tiny)
    replies = [json.loads(line) for line in again.stdout.splitlines()]
    assert derived["flagged"] == [r["id"] for r in replies if r["decision"] == "flag"]
    assert {f.name for f in tmp_path.iterdir()} == {
        "derived.json",
        "corpus_patch.html",
        "corpus_patch.json",
        "system_prompt_extension.md",
    }


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
def test_a_sample_is_written_for_people(loop: Path, tmp_path: Path, kind: str) -> None:
    """As a spreadsheet, for Label Studio, or as lines; without scores."""
    path = tmp_path / f"tasks.{kind}"
    run("sample", loop / "lab.jsonl", "--n", "10", "--by", "topic", "--out", path)
    text = path.read_text()
    assert text.count("question number") == 10
    assert "score" not in text
    assert (tmp_path / "tasks.json.form.xml").exists() == (kind == "json")
    weights = (tmp_path / f"tasks.{kind}.sample.jsonl").read_text().splitlines()
    assert sum(json.loads(line)["weight"] for line in weights) == pytest.approx(QUESTIONS)


def test_labels_are_converted_and_compared(loop: Path, tmp_path: Path) -> None:
    """Two annotators who always agree."""
    path = tmp_path / "labels.csv"
    summary = json.loads(run("labels", loop / "labels.jsonl", "--out", path, "--json"))
    assert summary["agreement"]["agree"] == 1.0
    assert summary["annotators"] == 2
    assert json.loads(run("labels", path, "--json")) == summary


def test_too_few_labels_end_with_status_2(loop: Path, tiny: Path, tmp_path: Path) -> None:
    """And how many are missing."""
    few = tmp_path / "few.jsonl"
    lines_ = (loop / "labels.jsonl").read_text().splitlines(keepends=True)
    few.write_text("".join(lines_[:30]))
    text = run(
        "fit", loop / "lab.jsonl", "--labels", few, "--base", loop / "base.json", "--out",
        tmp_path / "x.json", "--pack", tiny, status=2,
    )  # fmt: skip
    assert "expected at least 45 for alpha 0.05 and delta 0.1" in text
    assert not (tmp_path / "x.json").exists()


def test_h2os_request_is_answered(tmp_path: Path) -> None:
    """With an operation that is done, and a file of the two keys."""
    items = [{"name": str(n), "metricValue": n / 100, "label": n > 30} for n in range(100)]
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"evaluator": "groundedness", "trainSet": items}))
    operation = json.loads(run("h2o", request, "--out", tmp_path / "out.json"))
    assert operation["done"]
    made = json.loads((tmp_path / "out.json").read_text())
    assert made["evaluator_ids"] == ["groundedness"]
    request.write_text(json.dumps({"evaluator": "groundedness", "trainSet": items[:40]}))
    assert "at least 45" in run("h2o", request, status=1)


def test_the_plan_is_shown_before_labelling() -> None:
    """For the default promise."""
    text = run("plan", "--alpha", str(FitOptions().alpha))
    assert "45 at least" in text
    assert json.loads(run("plan", "--json", "--labels", "20"))["best_alpha"] == pytest.approx(
        0.1087, abs=1e-4
    )


def thresholds(path: Path) -> dict[str, dict[str, float]]:
    """Return the thresholds of a guardrail file."""
    found: dict[str, dict[str, float]] = json.loads(path.read_text())["calibrated_thresholds"]
    return found


def test_a_file_is_fitted_again_from_its_own_lab_and_labels(loop: Path, tiny: Path) -> None:
    """One command; with the same models the same thresholds under the next version."""
    said = run("fit", "--again", loop / "inn.json", "--out", loop / "inn-2.json", "--pack", tiny)
    assert "Promise: a good answer to a new question" in said
    old, new = loop / "inn.json", loop / "inn-2.json"
    assert thresholds(new) == thresholds(old)
    policy, before = (json.loads(path.read_text())["policy"] for path in (new, old))
    assert (policy["name"], policy["version"]) == (before["name"], "2")
    assert not (loop / "inn-2.run").exists()


def test_where_the_models_have_changed_the_texts_are_scored_anew(
    loop: Path, tiny: Path, tmp_path: Path
) -> None:
    """Into a run beside the new file, which is then calibrated and served again."""
    header, *cases = (loop / "lab.jsonl").read_text().splitlines()
    aged = json.loads(header)
    aged["fingerprints"]["segmenter"] = "an older segmenter"
    (tmp_path / "lab.jsonl").write_text("\n".join([json.dumps(aged), *cases]) + "\n")
    content = json.loads((loop / "inn.json").read_text())
    content["calibration"]["fingerprints"]["segmenter"] = "an older segmenter"
    inputs = content["calibration"]["inputs"]
    inputs["lab"] = "lab.jsonl"
    for key in ("labels", "sample"):
        inputs[key] = str(loop / inputs[key])
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(content))
    assert here("config", "check", old, "--pack", tiny).exit_code == 2
    run("fit", "--again", old, "--out", new, "--pack", tiny)
    assert thresholds(new) == thresholds(loop / "inn.json")
    assert (tmp_path / "new.run" / "results").is_dir()
    assert here("config", "check", new, "--pack", tiny).exit_code == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda block: block.pop("inputs"), "calibration.inputs: found nothing"),
        (lambda block: block["inputs"].update(lab="gone.jsonl"), "calibration.inputs.lab"),
    ],
)
def test_a_file_that_cannot_be_fitted_again_says_why(
    loop: Path, tiny: Path, tmp_path: Path, change: Callable[[Any], object], says: str
) -> None:
    """An earlier version's, or one whose inputs are gone."""
    content = json.loads((loop / "inn.json").read_text())
    change(content["calibration"])
    old = tmp_path / "old.json"
    old.write_text(json.dumps(content))
    said = run("fit", "--again", old, "--out", tmp_path / "x.json", "--pack", tiny, status=2)
    assert says in " ".join(said.split())
    assert not (tmp_path / "x.json").exists()


def test_again_and_a_lab_are_one_or_the_other(loop: Path, tmp_path: Path) -> None:
    """So is neither."""
    out = ("--out", tmp_path / "x.json")
    both = run("fit", loop / "lab.jsonl", "--again", loop / "inn.json", *out, status=2)
    assert "one or the other" in both
    assert "or --again FILE" in " ".join(run("fit", *out, status=2).split())
