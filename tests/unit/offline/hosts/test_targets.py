"""Targets of every kind answer a question; what they cannot read is an error of theirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.hosts.custom import Template, fill
from guardrail_offline.hosts.errors import BadReply, HostError, HostUnavailable
from guardrail_offline.hosts.openai_compatible import OpenAICompatible
from guardrail_offline.hosts.opening import HostChoice
from guardrail_offline.hosts.targets import (
    CallableTarget,
    ChatTarget,
    Question,
    SearchingTarget,
    TemplateTarget,
    open_target,
)
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.hosts.server import Reply, asked, serving

QUESTION = Question("When?", ("It opens at nine.", "Free."))


GOOD = '"url": "http://a.test", "body": {}, "answer": "a"'


def opened(spec: str, **options: Any) -> Any:
    """Return a target of the command's options."""
    return open_target(HostChoice(spec, **options))


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda q: f"{q}!", ("When?!", None)),
        (lambda q, contexts: contexts[0], ("It opens at nine.", None)),
        (lambda *given: str(len(given)), ("2", None)),
        (lambda q: {"answer": "A", "contexts": ["x", {"text": "y"}]}, ("A", ("x", "y"))),
        (lambda q: {"answer": "A"}, ("A", None)),
    ],
)
def test_a_function_is_a_target(function: Any, found: Any) -> None:
    """Of the question, or of question and passages."""
    answer = CallableTarget(function, "f").ask(QUESTION)
    assert answer[:2] == found
    assert answer.seconds is not None


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda q: 1 / 0, HostUnavailable),
        (lambda q: None, BadReply),
        (lambda q: {"text": "A"}, BadReply),
        (lambda q: {"answer": "A", "contexts": "one"}, BadReply),
    ],
)
def test_a_function_that_fails_says_how_and_not_what(function: Any, error: type[HostError]) -> None:
    """Its messages may hold texts."""
    with pytest.raises(error):
        CallableTarget(function, "f").ask(QUESTION)


def test_passages_may_bring_their_ids() -> None:
    """One without has none; where no passage has one, there are none."""
    said = {"answer": "A", "contexts": [{"text": "x", "id": 7}, "y"]}
    assert CallableTarget(lambda _: said, "f").ask(QUESTION).ids == ("7", None)
    assert CallableTarget(lambda _: {**said, "contexts": ["y"]}, "f").ask(QUESTION).ids == ()


def test_a_template_is_filled_and_never_evaluated() -> None:
    """Other braces stay, and a question that looks like a mark is not filled again."""
    template = {"q": "{question}", "all": "{contexts}", "p": "{contexts}: {question} {0}", "n": [1]}
    values = {"question": "{contexts} {x!r}", "contexts": ["a", "b"]}
    assert fill(template, values) == {
        "q": "{contexts} {x!r}",
        "all": ["a", "b"],
        "p": "a\n\nb: {contexts} {x!r} {0}",
        "n": [1],
    }


def test_a_service_is_asked_by_its_template() -> None:
    """And its answer and passages are found where the template says."""
    value = {"result": [{"text": "Nine."}], "docs": [{"text": "It opens."}]}
    with serving(Reply(value)) as server, asked(server.url) as endpoint:
        template = Template(endpoint, {"query": "{question}"}, "result.0.text", "docs")
        target = TemplateTarget(template)
        assert target.ask(QUESTION)[:2] == ("Nine.", ("It opens.",))
        with pytest.raises(BadReply, match=r"a value at result\.1\.text"):
            TemplateTarget(Template(endpoint, {}, "result.1.text")).ask(QUESTION)
        with pytest.raises(BadReply, match="the answer as a text"):
            TemplateTarget(Template(endpoint, {}, "result")).ask(QUESTION)
    assert server.bodies[0] == {"query": "When?"}


def test_a_model_is_given_the_passages_and_the_question() -> None:
    """With numbers; without passages it is only asked."""
    reply = Reply({"choices": [{"message": {"content": "Nine."}}]})
    with serving(reply) as server, asked(server.url) as endpoint:
        target = ChatTarget(OpenAICompatible(endpoint, "m"))
        assert target.ask(QUESTION).text == "Nine."
        assert target.ask(Question("When?")).text == "Nine."
    first, second = (body["messages"] for body in server.bodies)
    assert [message["role"] for message in first] == ["system", "user"]
    assert first[1]["content"] == "[1] It opens at nine.\n\n[2] Free.\n\nQuestion: When?"
    assert second == [{"role": "user", "content": "Question: When?"}]


def here(question: str) -> str:
    """Answer, for the test below."""
    return question.upper()


def test_a_command_names_any_of_them(tmp_path: Path) -> None:
    """A function, a template file, or a server with its model."""
    function = opened(f"python:{__name__}:here")
    assert function.ask(QUESTION).text == "WHEN?"
    with serving(Reply({"a": "Nine."})) as server:
        path = tmp_path / "service.json"
        template = {"url": server.url, "body": {"q": "{question}"}, "answer": "a"}
        path.write_text(json.dumps(template))
        assert opened(str(path)).ask(QUESTION)[:2] == ("Nine.", None)
    assert isinstance(opened("https://example.test/v1", model="m"), ChatTarget)
    assistant = opened("assistants+https://example.test/v1", model="asst_1")
    assert isinstance(assistant, SearchingTarget)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("nonsense", "JSONDecodeError"),
        ("[]", "another object"),
        ('{"url": "http://a.test", "body": {}}', "another object"),
        (f'{{"more": 1, {GOOD}}}', "the key 'more'"),
        ('{"url": "http://a.test", "body": [], "answer": "a"}', "values of other kinds"),
        ('{"url": "http://a.test", "body": {}, "answer": 1}', "values of other kinds"),
        (f'{{"headers": {{"X": "$NOT_SET_HERE"}}, {GOOD}}}', "nothing"),
    ],
)
def test_a_template_that_cannot_be_read_is_refused(
    content: str, found: str, tmp_path: Path
) -> None:
    """Naming what is wrong."""
    path = tmp_path / "service.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=found):
        opened(str(path))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ("python:no_such_module:f", "--target: found no module 'no_such_module'"),
        ("python:json:no_such_function", "--target"),
        ("python:json:__name__", "--target"),
        ("https://example.test/v1", "--target-model"),
        ("no-such-file.json", "no-such-file.json"),
        ("example.test", "address"),
        ("bedrock-rag:eu-west-1", "--target"),
    ],
)
def test_a_target_that_is_not_there_is_refused(spec: str, field: str) -> None:
    """Before anything is asked."""
    with pytest.raises(ConfigurationError, match=field):
        opened(spec)
