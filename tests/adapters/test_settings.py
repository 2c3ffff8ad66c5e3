"""A wrong set-up of an integration is refused at the start, by the name of what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flask
import openai
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from haystack.components.generators.chat import MockChatGenerator

from guardrail_client.integrations.answers import AnswerGuard
from guardrail_client.integrations.django import guarded_asgi_application, guarded_wsgi_application
from guardrail_client.integrations.flask import GuardrailExtension
from guardrail_client.integrations.haystack import GuardedChatGenerator, GuardrailChecker
from guardrail_client.integrations.langchain import GuardrailRunnable
from guardrail_client.integrations.langchain_agents import GuardrailAgentMiddleware
from guardrail_client.integrations.llamaindex import GuardedChatEngine, GuardedQueryEngine
from guardrail_client.integrations.openai_client import guarded
from guardrail_client.middleware import Route
from guardrail_offline.framework_evaluators.deepeval_metric import GuardrailMetric
from guardrail_offline.framework_evaluators.langsmith_evaluator import guardrail_evaluator
from guardrail_offline.framework_evaluators.llamaindex_evaluator import GuardrailEvaluator
from guardrail_service.errors import ConfigurationError
from tests.adapters import web
from tests.adapters.frameworks import index_of, model_of
from tests.unit.client.integrations.test_integrations import WRONG

ENGINE = index_of(["A passage."]).as_query_engine(llm=model_of("An answer."))
CHAT = index_of(["A passage."]).as_chat_engine(llm=model_of("An answer."), chat_mode="context")
HANDS: dict[str, Callable[..., Any]] = {
    "AnswerGuard": AnswerGuard,
    "GuardrailRunnable": GuardrailRunnable,
    "GuardrailAgentMiddleware": GuardrailAgentMiddleware,
    "GuardedQueryEngine": lambda **settings: GuardedQueryEngine(ENGINE, **settings),
    "GuardedChatEngine": lambda **settings: GuardedChatEngine(CHAT, **settings),
    "GuardrailChecker": GuardrailChecker,
    "GuardedChatGenerator": lambda **own: GuardedChatGenerator(MockChatGenerator("A"), **own),
}
"""Integrations that take the settings of an answer in hand."""


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("name", HANDS)
def test_every_framework_refuses_a_wrong_setting(name: str, case: str) -> None:
    """In the same words."""
    settings, told = WRONG[case]
    if name == "GuardrailRunnable" and "answer" in settings:
        return  # there it is the key of the answer
    with pytest.raises((TypeError, ValueError), match=told):
        HANDS[name](**settings)


SDK = openai.OpenAI(api_key="x")
OTHERS: dict[str, tuple[Callable[[], Any], str]] = {
    "no query engine": (lambda: GuardedQueryEngine("engine"), "engine: found str, expected a"),
    "a chat engine": (lambda: GuardedQueryEngine(CHAT), "engine: .*, expected a query engine"),
    "a query engine": (lambda: GuardedChatEngine(ENGINE), "engine: .*, expected a chat engine"),
    "no generator": (lambda: GuardedChatGenerator("llm"), "generator: found str, expected a chat"),
    "no client": (lambda: guarded("client"), "client: found str, expected OpenAI or AsyncOpenAI"),
    "no such word": (lambda: guarded(SDK, on_error="opne"), "on_error: found 'opne', expected"),
    "no such setting": (lambda: guarded(SDK, polcy="strict"), "polcy"),
    "a text for a list": (lambda: guarded(SDK, roles="system"), "roles: found 'system', expected"),
    "no address": (lambda: guarded(SDK, "guard:8080"), "base_url: expected http://"),
    "no routes": (lambda: GuardrailExtension(flask.Flask("a")), "routes: found none, expected"),
    "Flask without an address": (
        lambda: GuardrailExtension(flask.Flask("a"), ["/ask"], "guard"), "base_url: expected http://"),
    "a route's word": (lambda: Route("/ask", on_error="opne"), "on_error: found 'opne', expected"),  # type: ignore[arg-type]
    "no evaluator": (lambda: GuardrailMetric("halucination"), "did you mean 'hallucination'"),
    "no metric": (lambda: GuardrailEvaluator("toxicity", metric="tox"), "metric: found 'tox'"),
    "no parameter": (lambda: guardrail_evaluator("pii", settings=["pii.x=1"]), "pii"),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_what_an_integration_stands_around_is_checked(case: str) -> None:
    """So are its own settings."""
    make, told = OTHERS[case]
    with pytest.raises((TypeError, ValueError, ConfigurationError), match=told):
        make()


DJANGO: dict[str, tuple[Any, str]] = {
    "none": (None, "GUARDRAIL: found no routes, expected"),
    "no routes": ({"url": "http://127.0.0.1:1"}, "GUARDRAIL: found no routes, expected"),
    "an unknown key": (
        {"routes": ["/ask"], "polcy": "a"},
        r"GUARDRAIL: found \['polcy'\], expected",
    ),
    "a text for a list": ({"routes": "/ask"}, "routes: found str, expected a list"),
    "no address": ({"routes": ["/ask"], "url": "guard"}, "base_url: expected http://"),
}


@pytest.mark.parametrize("make", [guarded_wsgi_application, guarded_asgi_application])
@pytest.mark.parametrize("case", DJANGO)
def test_a_wrong_setting_of_a_project_stops_its_start(make: Callable[[], Any], case: str) -> None:
    """Of both applications."""
    web.set_up()
    setting, told = DJANGO[case]
    refused = (ImproperlyConfigured, TypeError, ValueError)
    with override_settings(GUARDRAIL=setting), pytest.raises(refused, match=told):
        make()
