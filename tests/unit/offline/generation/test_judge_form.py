"""Cases that a judge makes: quoted places, checked as rules' cases are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.generation.chunks import DocumentChunk
from guardrail_offline.generation.generators import GenerationOptions, generate
from guardrail_offline.generation.judge_form import OUTSIDE, QUESTIONS
from guardrail_offline.generation.source_documents import SourceDocument
from guardrail_offline.generation.validation import validate
from guardrail_offline.judge.judge_tasks import Task
from guardrail_offline.judge.stand_in import FakeJudge
from guardrail_service.commands.main import app
from tests.unit.offline.generation.conftest import HANDBOOK
from tests.unit.offline.judge.scripted import judging

RIGHT = {
    "question": "How much does a customer pay for a reminder?",
    "answer": "12 euros",
    "statement": "A reminder costs 12 euros.",
    "quotes": ["A reminder   costs 12 euros."],
}
INVENTED = {**RIGHT, "quotes": ["A reminder costs nothing."]}
WRONG = {
    **RIGHT,
    "question": "How much is the price of a reminder for customers?",
    "answer": "90 euros",
    "statement": "A reminder costs 90 euros.",
}


def test_places_are_quoted_and_answers_checked(
    handbook: SourceDocument, chunks: list[DocumentChunk], models: PackModels
) -> None:
    """An invented quotation is no place; a wrong answer is refused by the grounding model."""

    def says(task: Task, inputs: Mapping[str, Any], _vote: int) -> Any:
        mine = "A reminder costs" in inputs["text"]
        return {"questions": [RIGHT, INVENTED, WRONG] if mine else []}

    judge = FakeJudge(says)
    options = GenerationOptions(("numerical_reasoning", "cloze"))
    drawn = generate(chunks, options, titles={handbook.id: handbook.title}, judge=judge)
    by_judge = [one for one in drawn.cases if one.form == "judge"]
    assert {one.expected for one in by_judge} == {"12 euros", "90 euros"}
    assert {one.generator for one in drawn.cases if one.form == "rule"} == {"cloze"}
    assert drawn.failed == {"no such place in the source": 1}
    for one in by_judge:
        (span,) = one.spans
        assert handbook.text[span.start : span.end] == span.text == "A reminder costs 12 euros."
    found = validate(by_judge, chunks, models)
    assert [one.expected for one in found.kept] == ["12 euros"]
    assert [one.check for one in found.rejected] == ["answerable"]


def test_what_the_judge_does_not_answer_is_counted(chunks: list[DocumentChunk]) -> None:
    """No case is made up for it; unanswerable questions need no quotation."""

    def says(task: Task, _inputs: Mapping[str, Any], _vote: int) -> Any:
        if task.id == OUTSIDE.id:
            return {"questions": [{"question": "Who repairs the bridges of Ghent?"}]}
        return FakeJudge.failing("timeout")

    options = GenerationOptions(("yes_or_no", "out_of_scope"))
    drawn = generate(chunks, options, judge=FakeJudge(says))
    assert {(one.generator, one.answerable) for one in drawn.cases} == {("out_of_scope", False)}
    assert drawn.failed == {"timeout": len(chunks)}


def test_a_judge_that_nobody_answers_for_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the output, beside what that leaves short, and by the exit code 3."""
    judge = FakeJudge(lambda *_: FakeJudge.failing("timeout"))
    monkeypatch.setattr("guardrail_offline.generation_commands._opened", lambda _: judge)
    words = ["generate", str(HANDBOOK), "-o", str(tmp_path / "lab.json"), "--no-validate"]
    ran = CliRunner().invoke(app, [*words, "--generators", "yes_or_no,cloze", "--count", "6"])
    assert ran.exit_code == 3
    told = " ".join(ran.output.split())
    assert "questions without a usable answer:" in told
    assert "yes_or_no: 0 of 3" in told
    assert "or the judge failed" in told


def test_a_judge_makes_only_what_it_is_named_for(chunks: list[DocumentChunk]) -> None:
    """Other generators stay with their rules."""
    judge = FakeJudge({QUESTIONS.id: {"questions": []}})
    options = GenerationOptions(("yes_or_no", "temporal_reasoning"), judge_for=("yes_or_no",))
    drawn = generate(chunks, options, judge=judge)
    assert {one.generator for one in drawn.cases} == {"temporal_reasoning"}
    assert {asked for asked, _, _ in judge.asked} == {QUESTIONS.id}


@pytest.mark.parametrize("task", [QUESTIONS, OUTSIDE])
def test_tasks_have_examples_in_their_own_form(task: Task) -> None:
    """As every task that is shipped."""
    assert len(task.examples) >= 2
    for example in task.examples:
        assert not list(task.plain_validator.iter_errors(example.value))


def test_a_replay_asks_nobody_and_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the judge said once is kept; without it the case is missing and counted."""
    monkeypatch.setenv("GUARDRAIL_JUDGE_API_KEY", "k")

    def says(_task: str, inputs: Mapping[str, Any]) -> Any:
        return {"questions": [RIGHT] if "A reminder costs" in inputs["text"] else []}

    words = ["generate", str(HANDBOOK), "--generators", "numerical_reasoning", "--no-validate",
             "--judge-model", "m", "--judge-store", str(tmp_path / "said.sqlite")]  # fmt: skip
    texts = []
    with judging(says) as (script, url):
        for name, mode in (("a", "read-write"), ("b", "replay")):
            out = tmp_path / f"{name}.json"
            options = ["-o", str(out), "--judge", url, "--judge-mode", mode]
            ran = CliRunner().invoke(app, [*words, *options])
            assert ran.exit_code == 0, ran.output
            texts.append((tmp_path / f"{name}.json.generated.jsonl").read_bytes())
        assert {task for task, _, _ in script.seen} == {QUESTIONS.id}
        assert len(script.seen) == 4  # one per chunk, and none in the replay
    assert texts[0] == texts[1]
    assert b"12 euros" in texts[0]
