"""A wrong set-up is refused at once; a framework that is missing is named with its extra."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from guardrail_client.integrations.answers import AnswerGuard
from guardrail_client.integrations.flask import GuardrailExtension

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


@pytest.mark.parametrize("settings", [{"polcy": "strict"}, {"answer": 7}])
def test_a_wrong_setting_is_refused_before_the_first_answer(settings: dict[str, str]) -> None:
    """As the middleware refuses it."""
    with pytest.raises((TypeError, ValueError)):
        AnswerGuard(**settings)  # type: ignore[arg-type]


def test_an_extension_without_routes_would_only_seem_to_guard() -> None:
    """So it is refused."""
    with pytest.raises(ValueError, match="routes: found none"):
        GuardrailExtension(SimpleNamespace(config={}))


def test_a_guard_is_a_dependency() -> None:
    """FastAPI calls it once per request."""
    guard = AnswerGuard("http://127.0.0.1:1")
    assert guard() is guard
