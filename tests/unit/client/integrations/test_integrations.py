"""A wrong set-up is refused at once; a framework that is missing is named with its extra."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from guardrail_client.integrations.answers import AnswerGuard
from guardrail_client.integrations.chat_sources import ChatRule
from guardrail_client.integrations.flask import GuardrailExtension
from guardrail_client.integrations.proxy import proxy

MODULES = {
    "langchain": "langchain",
    "langchain_agents": "langchain",
    "llamaindex": "llamaindex",
    "haystack": "haystack",
    "django": "django",
}
IMPORTED = {"llamaindex": "llama_index", "langchain_agents": "langchain"}


@pytest.mark.parametrize(("module", "extra"), MODULES.items())
def test_a_missing_framework_is_named_with_its_extra(module: str, extra: str) -> None:
    """Nothing of it is imported with the client."""
    if find_spec(IMPORTED.get(module, module)):
        pytest.skip("installed here")
    with pytest.raises(ImportError, match=rf"pip install 'rag-guardrail-integrations\[{extra}\]'"):
        importlib.import_module(f"guardrail_client.integrations.{module}")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no such setting": ({"polcy": "strict"}, "settings: found polcy; expected .*policy"),
    "a place": ({"answer": "/answer"}, "settings: found answer; expected"),
    "a setting of streams over HTTP": ({"hold": "all"}, "settings: found hold; expected"),
    "no such word": ({"on_error": "opne"}, "on_error: found 'opne', expected closed or open"),
    "what would send unread": ({"tool_calls": "chek"}, "tool_calls: found 'chek', expected check"),
    "no such mode": ({"mode": "shadw"}, "mode: found 'shadw', expected enforce or shadow"),
    "an action": ({"stop_on": "redact"}, "stop_on: found 'redact', expected block or flag"),
    "no time": ({"timeout": 0.0}, "timeout: found 0.0, expected seconds above 0"),
    "no address": ({"url": "guard:8080"}, "base_url: expected http:// or https://"),
    "no key": ({"api_key": "schlüssel"}, "api_key: found characters that a header cannot carry"),
}
"""Settings of every integration, and what is said about them."""


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_setting_is_refused_before_the_first_answer(case: str) -> None:
    """By its name, with what was expected."""
    settings, told = WRONG[case]
    with pytest.raises((TypeError, ValueError), match=told) as error:
        AnswerGuard(**settings)
    assert "schlüssel" not in str(error.value)


@pytest.mark.parametrize(
    ("routes", "told"),
    [
        ((), "routes: found none, expected the paths to guard"),
        ("/ask", "routes: found str, expected a list of paths"),
        ([7], "routes: found int, expected a list of paths"),
    ],
)
def test_a_list_of_routes_that_guards_nothing_is_refused(routes: Any, told: str) -> None:
    """The application would only seem to be guarded."""
    app = SimpleNamespace(config={}, wsgi_app=None, extensions={})
    with pytest.raises((TypeError, ValueError), match=told):
        GuardrailExtension(app, routes)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"roles": "system"}, "roles: found 'system', expected a list"),
        ({"roles": ["sytem"]}, "roles: found 'sytem', expected some of system, developer"),
        ({"tags": "hits"}, "tags: found 'hits', expected a list"),
    ],
)
def test_a_rule_that_finds_no_passage_is_refused(rule: dict[str, Any], told: str) -> None:
    """Of the proxy and of OpenAI's SDK."""
    with pytest.raises(ValueError, match=told):
        ChatRule(**rule)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "--upstream"),
        (["--upstream", "model.test"], "expected http:// or https://"),
        (["--upstream", "http://me:secret@model.test"], "found a user or a query"),
        (["--upstream", "http://model.test", "--guard", "guard"], "base_url: expected http://"),
        (["--upstream", "http://model.test", "--role", "sytem"], "roles: found 'sytem'"),
        (["--upstream", "http://model.test", "--timeout", "0"], "timeout: found 0.0"),
    ],
)
def test_the_proxy_does_not_start_with_what_cannot_work(options: list[str], told: str) -> None:
    """And says no secret of it."""
    app = typer.Typer()
    app.command()(proxy)
    shown = CliRunner(env={"COLUMNS": "300", "NO_COLOR": "1"}).invoke(app, options)
    assert shown.exit_code == 2
    assert told in shown.output
    assert "secret" not in shown.output


def test_a_guard_is_a_dependency() -> None:
    """FastAPI calls it once per request."""
    guard = AnswerGuard("http://127.0.0.1:1")
    assert guard() is guard
