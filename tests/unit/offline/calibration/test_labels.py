"""Labels: three file formats, one word per case, disagreements settled by a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.calibration.labels import (
    Label,
    counted,
    labels_csv,
    labels_jsonl,
    read_labels,
    verdicts,
)
from guardrail_service.errors import ConfigurationError

text = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1)
labels = st.builds(
    Label,
    case=text,
    label=st.sampled_from(["pass", "fail", "abstain"]),
    metric=st.none() | text,
    annotator=text,
    at=st.none() | text,
)


@given(st.lists(labels, min_size=1, max_size=5), st.sampled_from(["jsonl", "csv"]))
def test_labels_read_back_as_written(tmp_path_factory: Any, given_: list[Label], kind: str) -> None:
    """In both of our formats."""
    path = tmp_path_factory.mktemp("labels") / f"labels.{kind}"
    path.write_text(labels_csv(given_) if kind == "csv" else labels_jsonl(given_), "utf-8")
    assert read_labels(path) == given_


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"case": "a", "label": "good"}, "label: found 'good'; expected pass, fail, abstain"),
        ({"label": "pass"}, "case: found None"),
        ({"case": "a"}, "label: found ''"),
        ({"case": "a", "label": "pass", "score": 1}, "the key 'score'"),
        ({"case": "a", "label": "pass", "annotator": 3}, "annotator: found 3"),
    ],
)
def test_a_record_that_is_no_label_is_refused(
    tmp_path: Path, record: dict[str, Any], says: str
) -> None:
    """By file, record and field."""
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps({"case": "ok", "label": "pass"}) + "\n" + json.dumps(record) + "\n")
    with pytest.raises(ConfigurationError, match=says) as caught:
        read_labels(path)
    assert "record 2" in caught.value.where


def test_words_are_read_whatever_their_case(tmp_path: Path) -> None:
    """People type; and a file without labels is refused."""
    path = tmp_path / "labels.csv"
    path.write_text("case,label\na, PASS\n")
    assert read_labels(path) == [Label("a", "pass")]
    path.write_text("case,label\n")
    with pytest.raises(ConfigurationError, match="no label"):
        read_labels(path)


@pytest.mark.parametrize("key", ["=1+1", "@cmd", "'quoted", "''", "-5", "plain'"])
def test_a_spreadsheet_computes_nothing_and_keys_survive(tmp_path: Path, key: str) -> None:
    """Keys and answers are other people's text."""
    path = tmp_path / "labels.csv"
    path.write_text(labels_csv([Label(key, "pass")]))
    cell = path.read_text().splitlines()[1]
    assert not cell.startswith(("=", "@", "-"))
    assert read_labels(path) == [Label(key, "pass")]


def test_a_torn_row_is_refused(tmp_path: Path) -> None:
    """More cells than the header names."""
    path = tmp_path / "labels.csv"
    path.write_text("case,label\na,pass,extra\n")
    with pytest.raises(ConfigurationError, match="more cells than the header"):
        read_labels(path)


def test_texts_that_were_there_to_read_are_passed_over(tmp_path: Path) -> None:
    """The file that was sampled comes back as the file of labels."""
    path = tmp_path / "labels.jsonl"
    record = {"case": "a", "label": "fail", "question": "Q?", "answer": "A", "contexts": []}
    path.write_text(json.dumps(record))
    assert read_labels(path) == [Label("a", "fail")]


def test_annotators_must_agree_or_be_adjudicated() -> None:
    """The adjudicator's word is final and counts for no agreement."""
    votes = [
        Label("same", "pass", annotator="x"),
        Label("same", "pass", annotator="y"),
        Label("other", "pass", annotator="x"),
        Label("other", "fail", annotator="y"),
    ]
    with pytest.raises(ConfigurationError) as caught:
        verdicts(votes, "labels.jsonl")
    assert "1 cases on which annotators disagree ('other')" in caught.value.found
    assert "'adjudicator'" in caught.value.expected
    found = verdicts([*votes, Label("other", "fail", annotator="z")], "labels.jsonl", None, "z")
    assert found.passes == {"same": True, "other": False}
    assert found.annotators == 2
    assert found.agreement is not None
    assert (found.agreement.cases, found.agreement.share) == (2, 0.5)


def test_abstentions_are_kept_and_not_used() -> None:
    """Nobody could tell, or one could."""
    found = verdicts(
        [
            Label("a", "abstain", annotator="x"),
            Label("b", "abstain", annotator="x"),
            Label("b", "fail", annotator="y"),
            Label("c", "pass", annotator="x", at="2026-11-02"),
            Label("d", "pass", annotator="x", at="2026-11-01"),
        ],
        "labels.jsonl",
    )
    assert found.passes == {"b": False, "c": True, "d": True}
    assert found.abstained == ("a",)
    assert found.dates == ("2026-11-01", "2026-11-02")
    assert counted(found.passes.values()) == (2, 1)


def test_one_person_cannot_say_two_things_about_one_case() -> None:
    """Saying the same twice is no matter."""
    said = [Label("a", "pass"), Label("a", "pass")]
    assert verdicts(said, "f").passes == {"a": True}
    with pytest.raises(ConfigurationError, match="two different labels of 'unnamed'"):
        verdicts([*said, Label("a", "fail")], "f")


def test_labels_about_a_metric_speak_of_it_alone() -> None:
    """Words on the whole answer are asked for without one."""
    said = [Label("a", "pass"), Label("a", "fail", metric="toxicity.toxicity")]
    assert verdicts(said, "f").passes == {"a": True}
    assert verdicts(said, "f", "toxicity.toxicity").passes == {"a": False}
