"""Every form with a judge keeps its promises: a prompt that is whole, and no made-up number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from guardrail_offline.datasets.cases import Case, Relationship
from guardrail_offline.evaluators.backends import backed
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.judge_forms import forms, judge_backed
from guardrail_offline.evaluators.result import Result
from guardrail_offline.judge.judge_replies import parse
from guardrail_offline.judge.judge_tasks import MARK, Task, data_block
from guardrail_offline.judge.results import STATUSES, JudgeStatus
from guardrail_offline.judge.stand_in import FakeJudge
from guardrail_service.types import Passage, State
from tests.unit.offline.judge.scripted import EACH, YES_NO, read_data
from tests.unit.offline.stand_ins import models

FORMS = forms()
TASKS = {task.name: task for form in FORMS.values() for task in form.tasks}
PROMPTS = Path(__file__).parents[4] / "golden" / "evaluators" / "prompts.json"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "byop": {"prompt": "Is {answer} polite?"},
    "rubric": {"criteria": {"tone": "Friendly?"}},
    "decision_list": {"conditions": [{"when": "A?", "score": 1}]},
    "self_check": {"samples": 1},
}
LINK = (Relationship("conversation", "c"),)
CASE = Case(
    "k", "What is it?", "It is red [1]. It is old.", "It is blue.", (Passage("Red.", "p1"),),
    relationships=LINK, model="m", group="g", images=("https://example.com/red.png",),
)  # fmt: skip
OTHER = Case("j", "What is it?", "It is green.", group="g", model="m")


def test_whatever_a_judge_computes_elsewhere_has_a_form_with_one() -> None:
    """And what needs one has one."""
    wanted = {s.id for s in CATALOGUE.specs() if s.original in ("J", "A") or s.needs_judge}
    assert wanted == FORMS.keys()


@pytest.mark.parametrize("name", sorted(TASKS))
def test_a_prompt_has_two_examples_that_are_right(name: str) -> None:
    """By its own schema and check; one of them is a text that gives orders to the judge."""
    task = TASKS[name]
    Draft202012Validator.check_schema(task.schema)
    assert len(task.examples) >= 2
    for example in task.examples:
        text = json.dumps({MARK: "0", **example.value})
        assert parse(text, task, example.inputs, "0").value == example.value
    system = task.system()
    assert all(f"`{key}" in system or f'"{key}"' in system for key in task.schema["properties"])


@pytest.mark.parametrize("name", sorted(TASKS))
def test_a_schema_is_one_that_strict_servers_take(name: str) -> None:
    """Every key is required, and no other is allowed, at every level."""

    def objects(schema: Any) -> Any:
        if isinstance(schema, dict):
            if schema.get("type") == "object":
                yield schema
            for value in schema.values():
                yield from objects(value)

    for found in objects(TASKS[name].schema):
        assert found["required"] == list(found["properties"])
        assert found["additionalProperties"] is False


def test_a_prompt_that_changes_has_another_version() -> None:
    """Answers to another prompt are none to this one. Write the new digest with the new version."""
    found = {
        name: hashlib.sha256(task.system().encode()).hexdigest()[:16]
        for name, task in sorted(TASKS.items())
    }
    known = json.loads(PROMPTS.read_text("utf-8"))
    assert {**known, **found} == known, json.dumps({**known, **found}, indent=1)


def judged(evaluator: str, judge: FakeJudge) -> Result:
    """Return an evaluator's result on one case that has everything."""
    one = judge_backed(evaluator)
    given_ = models("embedding")
    given_.judge = judge
    parameters = one.parameters.model_validate(SETTINGS.get(evaluator, {}))
    (found,) = one.evaluate([CaseView(CASE, given_, (OTHER, CASE))], parameters)
    return found


@pytest.mark.parametrize("status", [status for status in STATUSES if status != "ok"])
@pytest.mark.parametrize("evaluator", sorted(FORMS.keys() - {"grammar"}))
def test_without_an_answer_there_is_no_number(evaluator: str, status: JudgeStatus) -> None:
    """Only a parse failure is a number, in the metric that counts it.

    `grammar` asks about generated questions only; its own tests have some.
    """
    judge = FakeJudge(lambda *_: FakeJudge.failing(status))
    found = judged(evaluator, judge)
    assert len(judge.asked) >= 1
    reasons = {key: one.reason for key, one in found.scores.items() if one.value is None}
    numbers = {key: one.value for key, one in found.scores.items() if one.value is not None}
    assert set(reasons.values()) == {f"judge_{status}"}
    counts = status == "parse_failure" and "model_parse_failures" in found.scores
    assert numbers == ({"model_parse_failures": 1.0} if counts else {})
    assert found.details["judge"]["statuses"].keys() == {status}


@pytest.mark.parametrize("evaluator", sorted(FORMS))
def test_a_form_has_the_metrics_of_its_evaluator(evaluator: str) -> None:
    """And maybe more; without a judge it declines."""
    one = judge_backed(evaluator)
    assert set(CATALOGUE[evaluator].spec.keys) <= set(one.spec.keys)
    assert one.spec.backend == "judge"
    assert not one.spec.surrogate
    (found,) = one.evaluate([CaseView(CASE, models())], one.parameters())
    states = {score.state for score in found.scores.values()}
    assert states == {State.NOT_EVALUATED}
    assert backed(CATALOGUE[evaluator], None) is CATALOGUE[evaluator]


ANY_TEXT = st.text(st.characters(codec=None), max_size=200)


@given(ANY_TEXT, st.sampled_from([YES_NO, EACH]))
def test_any_message_is_an_answer_or_says_why_not(text: str, task: Task) -> None:
    """No text makes the reader fail, and none without the mark is an answer."""
    found = parse(text, task, {"words": ["a"]}, "0123abcd")
    assert (found.value is None) is (found.why is not None)
    assert found.why is not None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.sampled_from(["yes", "no", "0"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["verdict", "verdicts", "i", MARK]), inner, max_size=3
            )
        ),
        max_leaves=10,
    ),
    st.sampled_from([YES_NO, EACH]),
    ANY_TEXT,
)
def test_any_json_is_an_answer_only_if_it_follows_the_schema(
    value: Any, task: Task, around: str
) -> None:
    """Whatever stands around it."""
    inputs = {"words": ["a"]}
    found = parse(f"{around}\n{json.dumps(value)}", task, inputs, "0")
    if found.why is None:
        Draft202012Validator(dict(task.schema)).validate(found.value)
        assert task.check is None or task.check(inputs, found.value) is None


@given(st.dictionaries(st.sampled_from("abc"), ANY_TEXT | st.lists(ANY_TEXT, max_size=2)))
def test_any_data_comes_back_as_it_was(inputs: dict[str, Any]) -> None:
    """A line each, whatever separators, quotes or invisible characters are in it."""
    block = data_block(inputs, "mark")
    assert len(block.splitlines()) == len(inputs) + 2
    assert read_data(block) == (inputs, "mark")
