"""Decisions are drawn with known probabilities into the files that calibrate reads, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrail_decisions.keys import new_key
from guardrail_offline.calibration.labels import Label, labels_jsonl, read_labels
from guardrail_offline.calibration.sampling import read_tasks
from guardrail_offline.calibration.scored_lab import read_lab, read_records
from guardrail_offline.production.drawing import LABELS, SAMPLE, TASKS, draw_sample, exchange
from guardrail_service.errors import ConfigurationError
from tests.unit.decisions.made_up import LATE, SCORED, filled, reader, record, store, word

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
            opened.offer(record(number, answer=f"Answer {number}.", **given))
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
    assert draw.policy == "default"
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
            opened.offer(record(number, **given))
    with reader(url, keys_file) as stored:
        draw = draw_sample(stored, tmp_path / "out", "bob", evenly=12)
    weights = {line["weight"] for line in read_records(tmp_path / "out" / SAMPLE)}
    assert weights == {30 / 12}
    assert sum(one.drawn for one in draw.strata.values()) == 12
