"""Scored labs: read back as written, joined from replies, refused where they do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.calibration.scored_lab import (
    Joined,
    ScoredLab,
    facts_of,
    fingerprints_of,
    join,
    read_lab,
    read_records,
    write_lab,
)
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import State
from tests.unit.offline.calibration import labs


def written(path: Path, lab: ScoredLab) -> Path:
    """Write a lab."""
    path.write_text("\n".join(write_lab(lab)) + "\n")
    return path


def test_a_lab_reads_back_as_it_was_written(tmp_path: Path) -> None:
    """States and reasons too; the hash looks at content alone."""
    cases = (
        labs.case("a", "g", labs.MISSING, labs.ABSTAINED, question="Q?", contexts=("x",)),
        labs.case("b", "g", 0.25, source="a"),
    )
    lab = ScoredLab("memory", cases, labs.FINGERPRINTS, {"groundedness": {"h2o_compatible": False}})
    found = read_lab(written(tmp_path / "lab.jsonl", lab))
    assert found.cases == lab.cases
    assert (found.fingerprints, found.parameters) == (lab.fingerprints, lab.parameters)
    assert found.sha256 == lab.sha256
    other = ScoredLab("memory", cases[:1], labs.FINGERPRINTS)
    assert other.sha256 != lab.sha256


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0c", "\x1e", "\r\n"])
def test_a_text_with_any_kind_of_line_end_reads_back(tmp_path: Path, mark: str) -> None:
    """A record ends at a line feed and nowhere else."""
    text = f"one{mark}two"
    cases = (labs.case("a", "g", question=text, answer=text, contexts=(text,)),)
    lab = ScoredLab("memory", cases, labs.FINGERPRINTS)
    assert read_lab(written(tmp_path / "lab.jsonl", lab)).cases == cases


def test_lines_may_end_as_windows_ends_them(tmp_path: Path) -> None:
    """And blank ones are passed over, yet counted."""
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"a": 2}\r\n')
    assert read_records(path) == [{"a": 1}, {"a": 2}]
    path.write_bytes(b'{"a": 1}\n\n[2]\n')
    with pytest.raises(ConfigurationError, match="line 3"):
        read_records(path)


def run_folder(folder: Path, **changes: Any) -> Path:
    """Write a run folder with two result files in the layout of guardrail evaluate."""
    (folder / "results").mkdir(parents=True)
    for name, key, value in (
        ("groundedness", "groundedness", 0.5),
        ("language_mismatch", "model_passes", None),
    ):
        row: dict[str, Any] = {
            "key": "c1",
            "model_key": "m",
            "group": "g1",
            "input": "Q?",
            "actual_output": "A short answer.",
            "context": ["one", {"id": "d", "text": "two"}],
            "categories": ["topic:leave", "plain"],
            "relationships": [{"type": "perturbation_source", "target": "c0", "target_type": "x"}],
            key: value,
            "missing": {}
            if value is not None
            else {key: {"state": "not_applicable", "reason": "language_undetermined"}},
        }
        about = {
            "name": name,
            "h2o_id": None,
            "fingerprints": {"segmenter": "segmenter/1", **changes.get(name, {})},
            "metrics_meta": [
                {
                    "key": key,
                    "higher_is_better": True,
                    "value_range": [-1.0, 1.0],
                    "threshold": 0.5,
                    "is_primary_metric": True,
                    "data_type": "float",
                }
            ],
        }
        rows = [row] * changes.get("times", 1)
        content = {"results": rows, "models": [], "evaluator": about}
        (folder / "results" / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_a_run_of_evaluate_is_a_lab(tmp_path: Path) -> None:
    """Cases joined over evaluators, categories that read name:value as facts."""
    lab = read_lab(run_folder(tmp_path / "run"))
    (case,) = lab.cases
    assert (case.key, case.group, case.source) == ("c1", "g1", "c0")
    assert case.scores["groundedness"]["groundedness"].value == 0.5
    assert case.scores["language_mismatch"]["model_passes"].reason == "language_undetermined"
    assert case.facts["topic"] == "leave"
    assert case.facts["passages"] == "2"
    assert case.contexts == ("one", "two")
    assert lab.fingerprints == {"segmenter": "segmenter/1"}


def test_a_run_scored_with_two_models_is_refused(tmp_path: Path) -> None:
    """Its scores do not belong together."""
    folder = run_folder(tmp_path / "run", language_mismatch={"segmenter": "segmenter/2"})
    with pytest.raises(ConfigurationError, match="another fingerprint of segmenter"):
        read_lab(folder)


def test_a_case_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    """Labels name cases by key."""
    with pytest.raises(ConfigurationError, match="'c1' twice"):
        read_lab(run_folder(tmp_path / "run", times=2))
    twice = ScoredLab("memory", (labs.case("a", "g"), labs.case("a", "h")), {})
    with pytest.raises(ConfigurationError, match="'a' twice"):
        read_lab(written(tmp_path / "lab.jsonl", twice))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"key": "a"}\n', "line 1: found no header"),
        ('{"scored_lab": "1", "fingerprints": {}, "parameters": {}}\n', "found no case"),
        ('{"scored_lab": "1", "fingerprints": {}, "parameters": {}}\n{"key": 1}\n', "KeyError"),
        ("[1]\n", "line 1: found list"),
        ("{\n", "line 1: found no JSON"),
        ("", "found no header"),
    ],
)
def test_what_is_no_lab_is_refused_by_line(tmp_path: Path, text: str, says: str) -> None:
    """With what was expected."""
    path = tmp_path / "lab.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=says):
        read_lab(path)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    """Nothing is read on a guess."""
    with pytest.raises(ConfigurationError, match=r"absent\.jsonl"):
        read_records(tmp_path / "absent.jsonl")


def test_facts_cover_length_language_and_passages() -> None:
    """And nothing is made up for texts that are not there."""
    facts = facts_of("The leave policy grants every employee eighteen weeks of paid leave.", 3, ())
    assert facts == {"length": "under 300 characters", "language": "en", "passages": "3"}
    assert facts_of("x" * 2000, None, ())["length"] == "1000 characters and more"
    assert facts_of(None, None, ["topic:a", "plain", ":x", "y:"]) == {"topic": "a"}


def reply(sha256: str, **more: Any) -> dict[str, Any]:
    """Return a reply of /v1/check, as far as it is read."""
    return {
        "id": None,
        "policy": {"name": "base", "version": "1", "sha256": sha256},
        "detectors": {
            "groundedness": {
                "state": "evaluated",
                "reason": None,
                "metrics": {"groundedness": {"score": 0.5}},
            },
            "answer_relevancy_sentence": {"state": "error", "reason": "row_failed", "metrics": {}},
        },
        **more,
    }


def joined(folder: Path, requests: list[dict[str, Any]], replies: list[dict[str, Any]]) -> Joined:
    """Write both files and join them."""
    for name, records in (("requests", requests), ("replies", replies)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(text)
    paths = (folder / f"{name}.jsonl" for name in ("requests", "replies"))
    return join(*paths, labs.policy(folder), labs.FINGERPRINTS)


def sha(folder: Path) -> str:
    """Return the hash of the policy the requests are served under."""
    return labs.policy(folder).sha256


def test_scores_and_states_come_from_the_replies(tmp_path: Path) -> None:
    """Texts, groups and categories from the requests."""
    asked = {
        "question": "Who?",
        "answer": "Somebody.",
        "contexts": ["p"],
        "categories": ["topic:staff"],
    }
    found = joined(tmp_path, [asked, {**asked, "group": "mine"}], [reply(sha(tmp_path))] * 2)
    one, two = found.lab.cases
    assert (one.key, two.key) == ("line-1", "line-2")
    assert two.group == "mine"
    assert len(one.group) == 16
    assert one.scores["groundedness"]["groundedness"].value == 0.5
    assert one.scores["answer_relevancy_sentence"]["*"].state is State.ERROR
    assert one.facts["topic"] == "staff"
    assert found.lab.parameters["groundedness"] == {"h2o_compatible": False}


def test_the_same_question_is_the_same_group(tmp_path: Path) -> None:
    """Unless the caller groups otherwise; without a question each line stands alone."""
    asked = [
        {"question": "Who  is it?", "answer": "A."},
        {"question": "Who is it?", "answer": "B."},
        {"answer": "C."},
    ]
    groups = [c.group for c in joined(tmp_path, asked, [reply(sha(tmp_path))] * 3).lab.cases]
    assert groups[0] == groups[1] != groups[2]


def test_requests_in_error_are_left_out_and_counted(tmp_path: Path) -> None:
    """They have no scores; an error is never one."""
    found = joined(
        tmp_path,
        [{"answer": "A."}, {"answer": "B."}],
        [{"error": {"code": "x"}}, reply(sha(tmp_path))],
    )
    assert [case.key for case in found.lab.cases] == ["line-2"]
    assert found.errors == 1


def test_a_lab_of_nothing_but_errors_is_refused(tmp_path: Path) -> None:
    """It would hold no case, and nothing could read it."""
    with pytest.raises(ConfigurationError, match="found 2 replies, all of them errors"):
        joined(tmp_path, [{"answer": "A."}] * 2, [{"error": {"code": "x"}}] * 2)
    with pytest.raises(ConfigurationError, match="found no reply; expected at least one"):
        joined(tmp_path, [], [])


@pytest.mark.parametrize(
    ("request_", "changes", "says"),
    [
        ({"id": "a", "answer": "A."}, {"id": "b"}, "a reply to another id"),
        ({"answer": "A."}, {"policy": {"sha256": "f" * 64}}, "under configuration ffffffffffff"),
        ({"answer": "A.", "detectors": {"looping": {}}}, {}, "changes detectors"),
        ({"answer": "A."}, {"detectors": None}, "no detectors"),
    ],
)
def test_replies_that_do_not_belong_are_refused(
    tmp_path: Path, request_: dict[str, Any], changes: dict[str, Any], says: str
) -> None:
    """By line."""
    with pytest.raises(ConfigurationError, match=says) as caught:
        joined(tmp_path, [request_], [reply(sha(tmp_path), **changes)])
    assert "replies.jsonl: line 1" in caught.value.where


def test_a_missing_reply_is_refused(tmp_path: Path) -> None:
    """Or every later score would go to the wrong answer."""
    with pytest.raises(ConfigurationError, match="1 replies to 2 requests"):
        joined(tmp_path, [{"answer": "A."}] * 2, [reply(sha(tmp_path))])


def test_fingerprints_come_from_the_service_that_scored(tmp_path: Path) -> None:
    """A saved GET /v1/info."""
    path = tmp_path / "info.json"
    path.write_text(json.dumps({"fingerprints": {"embedding": "e"}}))
    assert fingerprints_of(path) == {"embedding": "e"}
    path.write_text("{}")
    with pytest.raises(ConfigurationError, match="GET /v1/info"):
        fingerprints_of(path)
