"""Answers about images: shares of claims, and no value from a judge that does not see."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.judge_forms import judge_backed
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.evaluators.result import Result
from guardrail_offline.judge.judge_client import open_judge
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.judge.stand_in import FakeJudge
from guardrail_offline.runs.result_files import row_json
from guardrail_service.types import Passage
from tests.unit.offline.hosts.server import Reply, serving

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
DATA = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
CASE = Case("k", "What is it?", "A red boat.", contexts=(Passage("A boat."),), images=(DATA,))


def judged(evaluator: str, case: Case, judge: Any) -> Result:
    """Return a result by a judge."""
    found = judge_backed(evaluator)
    (result,) = found.evaluate([CaseView(case, PackModels({}, judge=judge))], found.parameters())
    return result


def claims(*verdicts: str, seen: int = 1) -> dict[str, Any]:
    """Return the judge's answer about claims."""
    return {"images_seen": seen, "claims": [{"claim": "c", "verdict": one} for one in verdicts]}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (claims("shown", "shown", "not_shown", "contradicted"), 0.5),
        (claims("shown"), 1.0),
        (claims("contradicted"), 0.0),
        (claims(), "no_claim"),
        (claims("shown", seen=0), "needs_vision"),
        (FakeJudge.failing("error", "needs_vision"), "needs_vision"),
        (FakeJudge.failing("parse_failure"), "judge_parse_failure"),
    ],
    ids=["half", "all", "none", "no claim", "blind", "refused", "unreadable"],
)
def test_faithfulness_is_the_share_of_claims_that_are_shown(value: Any, found: Any) -> None:
    """And a judge that does not see is none."""
    score = judged("image_faithfulness", CASE, FakeJudge({"image_claims": value})).scores
    assert (score["image_faithfulness"].value or score["image_faithfulness"].reason or 0.0) == found


@pytest.mark.parametrize(("verdict", "value"), [("full", 1.0), ("part", 0.5), ("none", 0.0)])
def test_relevancy_is_how_much_of_the_question_is_answered(verdict: str, value: float) -> None:
    """Whether or not it is true."""
    says = {"images_seen": 1, "reason": "r", "verdict": verdict}
    found = judged("image_relevancy", CASE, FakeJudge({"image_relevancy": says}))
    assert found.scores["image_relevancy"].value == value


@pytest.mark.parametrize("evaluator", ["image_faithfulness", "image_relevancy"])
def test_the_judges_words_are_not_in_the_result(evaluator: str) -> None:
    """They quote the answer; results hold verdicts, transcripts hold words."""
    claim = {"claim": "private words", "verdict": "shown"}
    judge = FakeJudge({
        "image_claims": {"images_seen": 1, "claims": [claim]},
        "image_relevancy": {"images_seen": 1, "reason": "private words", "verdict": "full"},
    })  # fmt: skip
    found = judged(evaluator, CASE, judge)
    assert found.scores[evaluator].value == 1.0
    assert "private" not in json.dumps(row_json(CASE, found, texts=False))


def test_a_case_without_images_is_not_asked_about() -> None:
    """It has no value."""
    judge = FakeJudge({})
    found = judged("image_relevancy", Case("k", "q", "a"), judge).scores["image_relevancy"]
    assert (found.reason, judge.asked) == ("missing_input", [])


def test_images_are_parts_of_the_message_and_not_of_the_transcript(tmp_path: Path) -> None:
    """The key knows them: another picture is another question."""
    answer = json.dumps(claims("shown"))
    reply = Reply({"choices": [{"message": {"content": answer}}]})
    store = tmp_path / "transcripts.sqlite"
    other = f"data:image/png;base64,{base64.b64encode(PNG + b'2').decode()}"
    with serving(reply) as server:
        judge = open_judge(JudgeSettings(server.url, "m", store, marked=False))
        for image in (DATA, other, DATA):
            case = Case("k", "What is it?", "A red boat.", images=(image,))
            found = judged("image_faithfulness", case, judge)
            assert found.scores["image_faithfulness"].value == 1.0
        assert judge.store is not None
        judge.store.close()
    assert len(server.bodies) == 2
    text, image_part = server.bodies[0]["messages"][1]["content"]
    assert "images: 1" in text["text"]
    assert image_part == {"type": "image_url", "image_url": {"url": DATA}}
    assert DATA.partition(",")[2].encode() not in store.read_bytes()


def test_a_host_that_takes_no_images_needs_vision() -> None:
    """As llama.cpp says it for a model without eyes."""
    refused = {"error": {"code": 500, "message": "image input is not supported", "type": "x"}}
    with serving(Reply(refused, status=500)) as server:
        judge = open_judge(JudgeSettings(server.url, "m", mode="off"))
        found = judged("image_relevancy", CASE, judge).scores["image_relevancy"]
        assert (found.value, found.reason) == (None, "needs_vision")
        assert len(server.bodies) == 1
