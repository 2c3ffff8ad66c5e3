"""Decisions are drawn with known probabilities into the files that calibrate reads, and back."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail_decisions.keys import new_key
from guardrail_offline.calibration.labels import Label, labels_jsonl, read_labels
from guardrail_offline.calibration.sampling import read_tasks
from guardrail_offline.calibration.scored_lab import read_lab, read_records
from guardrail_offline.production.drawing import LABELS, SAMPLE, TASKS, draw_sample, exchange
from guardrail_offline.studio.judging import StudioJudge
from guardrail_service.commands.main import app
from guardrail_service.errors import ConfigurationError
from guardrail_service.server.decisions import Recorder
from guardrail_service.server.schemas import CheckRequest
from guardrail_service.settings import Settings
from guardrail_service.types import Passage, Sample
from tests.unit.decisions.made_up import (
    LATE,
    SCORED,
    filled,
    reader,
    record,
    settings,
    store,
    word,
)

OPTIONS = {"looping": "0" * 16, "groundedness": "1" * 16}


@pytest.fixture
def kept(tmp_path: Path) -> tuple[str, Path]:
    """Return a store of 90 decisions with their texts, 30 of them flagged, and its keys."""
    url, keys_file = f"sqlite:///{tmp_path / 'decisions.db'}", tmp_path / "keys"
    keys_file.write_text(new_key())
    detectors = {"groundedness": SCORED, "looping": LATE}
    with store(url, texts="full", keys_file=keys_file) as opened:
        for number in range(90):
            share = 1.0 if number % 3 == 0 else 0.5
            given = {"detectors": detectors, "options": OPTIONS, "share": share}
            given |= {"question": f"Who {number}?", "answer": f"Answer {number}."}
            opened.offer(record(number, **given))
        opened.offer(record(0, detectors=detectors, options=OPTIONS, status="partial"))
    return url, keys_file


def test_a_draw_is_a_folder_that_calibrate_reads(kept: tuple[str, Path], tmp_path: Path) -> None:
    """Tasks without scores, scores, and the weights that undo how the cases were drawn."""
    with reader(*kept) as stored:
        draw = draw_sample(stored, tmp_path / "out", "bob", flagged=10, random=20)
        (noted,) = stored.draws()
        assert {view.viewer for view in stored.views()} == {"bob"}
        assert stored.verify().intact
    assert noted["strata"] == {
        "flagged": {"population": 30.0, "stored": 30, "drawn": 10},
        "passed": {"population": 120.0, "stored": 60, "drawn": 20},
    }
    out = tmp_path / "out"
    tasks = read_tasks(out / TASKS)
    lab = read_lab(out / "lab.jsonl")
    weights = {line["case"]: line["weight"] for line in read_records(out / SAMPLE)}
    assert [task[0] for task in tasks] == list(lab.by_key()) == list(weights)
    assert sum(weights.values()) == pytest.approx(150)
    assert {m["case"]: 1 / m["probability"] for m in noted["members"]} == pytest.approx(weights)
    assert lab.cases[0].scores["groundedness"]["groundedness"].value == 0.1 + 0.2
    assert "0.30000" not in (out / TASKS).read_text()
    assert (draw.policy, draw.decisions, draw.unknown) == ("default", 90, 0)
    assert (out / TASKS).stat().st_mode & 0o077 == 0


def test_labels_and_feedback_are_exchanged_once(kept: tuple[str, Path], tmp_path: Path) -> None:
    """A second time nothing is new on either side."""
    out = tmp_path / "out"
    with reader(*kept) as stored:
        draw_sample(stored, out, "bob", flagged=2, random=2)
        cases = [task[0] for task in read_tasks(out / TASKS)]
        labels = [Label(cases[0], "fail", None, "ann"), Label(cases[1], "pass", "a.b", "bob")]
        (out / LABELS).write_text(labels_jsonl([*labels, Label("nobody", "pass")]))
        stored.add_feedback(word(int(cases[2].rpartition("-")[2]), "abstain", caller="eve"))
        assert exchange(stored, out) == (2, 1)
        assert exchange(stored, out) == (0, 0)
        (draw,) = stored.draws()
        said = [(w.caller, w.label, w.draw == draw["id"]) for _, w in stored.feedback()]
    assert said == [("eve", "abstain", False), ("ann", "fail", True), ("bob", "pass", True)]
    last = read_labels(out / LABELS)[-1]
    assert (last.case, last.label, last.annotator) == (cases[2], "abstain", "eve")


def test_a_store_without_texts_cannot_be_labelled(tmp_path: Path) -> None:
    """Nor an empty one, nor a folder that is in use."""
    url = f"sqlite:///{tmp_path / 'decisions.db'}"
    filled(url, 0)
    with reader(url) as stored:
        with pytest.raises(ConfigurationError, match="stored decisions"):
            draw_sample(stored, tmp_path / "out", "bob")
        filled(url, 3)
        with pytest.raises(ConfigurationError, match="GUARDRAIL_DECISIONS_TEXTS"):
            draw_sample(stored, tmp_path / "out", "bob")
        with pytest.raises(ConfigurationError, match="not empty"):
            draw_sample(stored, tmp_path, "bob")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "draw.json").write_text(json.dumps({"id": "x"}))
    with reader(url) as stored, pytest.raises(ConfigurationError, match="another store"):
        exchange(stored, tmp_path / "other")


def test_an_even_draw_gives_every_answer_the_same_weight(tmp_path: Path) -> None:
    """Whatever was decided; strata say how many of each there were."""
    url, keys_file = f"sqlite:///{tmp_path / 'decisions.db'}", tmp_path / "keys"
    keys_file.write_text(new_key())
    given = {"detectors": {"groundedness": SCORED, "looping": LATE}, "options": OPTIONS}
    with store(url, texts="full", keys_file=keys_file) as opened:
        for number in range(30):
            opened.offer(record(number, question=f"Who {number}?", **given))
    with reader(url, keys_file) as stored:
        draw = draw_sample(stored, tmp_path / "out", "bob", evenly=12)
    weights = {line["weight"] for line in read_records(tmp_path / "out" / SAMPLE)}
    assert weights == {30 / 12}
    assert sum(one.drawn for one in draw.strata.values()) == 12


def test_one_decision_stands_for_a_question(tmp_path: Path) -> None:
    """Whatever its case and spacing; what cannot be known is a question of its own."""
    url, keys_file = f"sqlite:///{tmp_path / 'decisions.db'}", tmp_path / "keys"
    keys_file.write_text(new_key())
    given = {"detectors": {"groundedness": SCORED, "looping": LATE}, "options": OPTIONS}
    asked = ("Who?", "who ?", " WHO? ", "Who  ?", None, "", "Why?")
    with store(url, texts="full", keys_file=keys_file) as opened:
        for number, question in enumerate(asked):
            opened.offer(record(number, question=question, **given))
    with reader(url, keys_file) as stored:
        list(stored.questions())
        assert not list(stored.views())
        draw = draw_sample(stored, tmp_path / "out", "bob")
    assert (draw.decisions, draw.unknown) == (7, 2)
    lab = read_lab(tmp_path / "out" / "lab.jsonl")
    assert len({case.group for case in lab.cases}) == len(lab.cases) == 5


def test_a_repeated_question_counts_the_same_whatever_was_decided(tmp_path: Path) -> None:
    """Where half of what passed is stored, half of the flagged decisions take part."""
    url, keys_file = f"sqlite:///{tmp_path / 'decisions.db'}", tmp_path / "keys"
    keys_file.write_text(new_key())
    given = {"detectors": {"groundedness": SCORED, "looping": LATE}, "options": OPTIONS}
    with store(url, texts="full", keys_file=keys_file) as opened:
        for number in range(120):
            share = 1.0 if number % 3 == 0 else 0.5
            question = "Who?" if number < 2 else f"Who {number}?"
            opened.offer(record(number, share=share, question=question, **given))
    with reader(url, keys_file) as stored:
        draw = draw_sample(stored, tmp_path / "out", "bob", flagged=200, random=200)
    flagged, passed = draw.strata["flagged"], draw.strata["passed"]
    assert 8 <= flagged.stored <= 32  # of 40
    assert passed.stored in (79, 80)
    assert (flagged.population, passed.population) == (2 * flagged.stored, 2 * passed.stored)


@pytest.fixture
def asked_again(tiny: Path, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """Return a policy, and the environment of a store: 120 questions, each answered three times.

    Some answers are bad and flagged, so many questions have answers of both kinds.
    """
    base = tmp_path / "base.json"
    thresholds = {"groundedness": {"groundedness": 0.5}}
    content = {"calibrated_thresholds": thresholds, "evaluator_ids": ["groundedness"]}
    base.write_text(json.dumps({**content, "policy": {"name": "tiny"}}))
    url, keys_file = f"sqlite:///{tmp_path / 'decisions.db'}", tmp_path / "keys"
    keys_file.write_text(new_key())
    judge = StudioJudge(Settings(config=(base,), model_pack=str(tiny)))
    policy = judge.policy(base)
    passages = (Passage("the pool opens at seven in the morning ."),)
    answers = (passages[0].text, "pool opens at seven in the morning .", "dogs cost five euros .")
    samples = [Sample(answer, "", passages) for answer in answers]
    with closing(judge):
        verdicts = [judge.runtime.guard.judge(policy, sample) for sample in samples]
        fingerprints = judge.serving.fingerprints
    with store(url, texts="full", keys_file=keys_file) as opened:
        recorder = Recorder(opened, settings(url), fingerprints, lambda _name, _hash: policy)
        for number in range(360):
            question, time = divmod(number, 3)
            is_bad = question % 5 == 1 or (question % 4 == 0 and time == 1)
            kind = 2 if is_bad else question % 2
            sample = replace(samples[kind], question=f"When, {question}?")
            request = CheckRequest(answer=sample.answer)
            recorder.keep(verdicts[kind], sample, request, f"request-{number}", "check")
    named = {"GUARDRAIL_DECISIONS_URL": url, "GUARDRAIL_DECISIONS_KEYS_FILE": str(keys_file)}
    return base, {"COLUMNS": "200", **named}


def test_repeated_questions_go_through_the_commands_to_a_fit(
    asked_again: tuple[Path, dict[str, str]], tiny: Path, tmp_path: Path
) -> None:
    """Drawn from both strata, labelled, fitted; the weights sum to the questions."""
    base, env = asked_again
    out = tmp_path / "out"

    def run(*words: str | Path) -> str:
        done = CliRunner().invoke(app, [*map(str, words)], env=env)
        assert done.exit_code == 0, done.output
        return str(done.output)

    with reader(env["GUARDRAIL_DECISIONS_URL"], tmp_path / "keys") as stored:
        asked = dict(stored.questions())
        kinds = {(asked[one.key], one.record.decision) for one in stored.decisions()}
    assert len(set(asked.values())) == 120
    assert len(kinds) > 120  # some questions were flagged and passed
    drawn = ("--flagged", "20", "--random", "60", "--viewer", "ann", "--out", out)
    assert "one decision a question, of 360 stored decisions" in run("decisions", "sample", *drawn)
    weights = [line["weight"] for line in read_records(out / SAMPLE)]
    assert len(weights) == 80
    assert sum(weights) == pytest.approx(120)
    said = [
        Label(case, "fail" if answer.startswith("dogs") else "pass", None, "ann")
        for case, _, answer, _ in read_tasks(out / TASKS)
    ]
    (out / LABELS).write_text(labels_jsonl(said))
    assert "80 labels stored" in run("decisions", "labels", out)
    fitted = run(
        "calibrate", "fit", out / "lab.jsonl", "--labels", out / LABELS, "--sample", out / SAMPLE,
        "--base", base, "--alpha", "0.2", "--out", tmp_path / "fitted.json", "--pack", tiny,
    )  # fmt: skip
    assert "Promise: a good answer to a new question" in fitted
