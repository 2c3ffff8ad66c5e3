"""Labels: three formats, one word per case, disagreements settled, every look paid for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.calibration.labels import (
    FORM,
    Label,
    Look,
    counted,
    labels_csv,
    labels_jsonl,
    ledger_of,
    read_labels,
    read_looks,
    record,
    spend,
    tasks,
    verdicts,
)
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.calibration import labs

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


CASE = labs.case("c1", "g", question="Q?", answer="A.", contexts=("one", "two"))


def export(folder: Path, *annotations: Any, **data: Any) -> Path:
    """Write an export with one task."""
    (task,) = tasks([CASE])
    task["data"] |= data
    path = folder / "export.json"
    path.write_text(json.dumps([{**task, "annotations": list(annotations)}]))
    return path


def annotation(choice: str, **more: Any) -> dict[str, Any]:
    """Return an annotation as Label Studio exports it."""
    result = {"from_name": "label", "to_name": "answer", "type": "choices"}
    return {
        "completed_by": 7,
        "created_at": "2026-11-20T10:00:00Z",
        "result": [{**result, "value": {"choices": [choice]}}],
        **more,
    }


def test_tasks_hold_texts_and_the_key_and_no_score() -> None:
    """A label given in sight of a score is not independent of it."""
    (task,) = tasks([CASE])
    assert task == {
        "data": {"case": "c1", "question": "Q?", "answer": "A.", "contexts": "one\n\ntwo"}
    }
    for name in ("$question", "$answer", "$contexts", 'name="label"'):
        assert name in FORM


def test_annotations_come_back_as_labels(tmp_path: Path) -> None:
    """Who, when and what; skipped tasks say nothing."""
    path = export(
        tmp_path,
        annotation("pass"),
        annotation("fail", completed_by={"id": 9, "email": "x@example.org"}),
        annotation("fail", was_cancelled=True),
    )
    assert read_labels(path) == [
        Label("c1", "pass", None, "7", "2026-11-20T10:00:00Z"),
        Label("c1", "fail", None, "9", "2026-11-20T10:00:00Z"),
    ]


@pytest.mark.parametrize("text", ["{}", "[1]", "[{}]", "nope"])
def test_what_is_no_export_is_refused(tmp_path: Path, text: str) -> None:
    """With the shape that was expected."""
    path = tmp_path / "export.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"export\.json"):
        read_labels(path)


FIRST = Look("rule-1", "data-1", 0.1, "fixed")


def test_the_first_look_costs_its_delta() -> None:
    """And the same again costs nothing more."""
    assert spend([], FIRST).delta == 0.1
    assert spend([FIRST, Look("rule-2", "data-1", 0.1, "fixed")], FIRST).count == 1


@pytest.mark.parametrize(("rule", "data"), [("rule-2", "data-1"), ("rule-1", "data-2")])
def test_another_rule_or_more_labels_are_another_look(rule: str, data: str) -> None:
    """Each promise may fail, so together they fail more often."""
    spent = spend([FIRST], Look(rule, data, 0.1, "fixed"))
    assert (spent.count, spent.delta) == (2, 0.2)
    assert spent.as_json("fixed") == {"mode": "fixed", "count": 2, "delta_total": 0.2}


def test_an_anytime_rule_pays_once_however_often_labels_grow() -> None:
    """Another rule pays again."""
    first = Look("rule-1", "data-1", 0.1, "anytime")
    assert spend([first], Look("rule-1", "data-9", 0.1, "anytime")).count == 1
    assert spend([first], Look("rule-2", "data-1", 0.1, "anytime")).count == 2


def test_labels_that_are_looked_at_out_prove_nothing() -> None:
    """No confidence is left."""
    looks = [Look(f"rule-{n}", "data", 0.1, "fixed") for n in range(9)]
    with pytest.raises(ConfigurationError, match="10 looks at these labels"):
        spend(looks, Look("rule-9", "data", 0.1, "fixed"))


def test_the_ledger_lies_beside_the_labels(tmp_path: Path) -> None:
    """One line a look; a damaged ledger stops everything."""
    ledger = ledger_of(tmp_path / "labels.jsonl")
    assert ledger.name == "labels.jsonl.looks.jsonl"
    assert read_looks(ledger) == []
    for _ in range(2):
        record(ledger, FIRST)
    assert read_looks(ledger) == [FIRST]
    ledger.write_text('{"rule": "x"}\n')
    with pytest.raises(ConfigurationError, match="the ledger as it was"):
        read_looks(ledger)
