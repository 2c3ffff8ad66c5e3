"""A scored lab of served requests: joined by place and id, refused where they do not belong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.calibration.scored_lab import Joined, fingerprints_of, join
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import State
from tests.unit.offline.calibration import labs


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
