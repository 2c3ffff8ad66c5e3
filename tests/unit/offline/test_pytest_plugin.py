"""`assert_rag` in tests of its own, run by pytest as users run it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import guardrail_offline

pytest_plugins = ["pytester"]
TESTS = """
ROW = {"question": "When?", "answer": "nine to five", "ground_truth": "nine to five daily"}
ROWS = [ROW | {"key": "a"}, ROW | {"key": "b", "answer": "closed"}]

def test_met(assert_rag):
    (found,) = assert_rag(ROW, rouge_1=0.8)
    assert found.outcome == "met"

def test_missed(assert_rag):
    assert_rag(ROWS, "rouge.rouge_2=.1", rouge_1=0.8)

def test_missing(assert_rag):
    assert_rag({"question": "When?", "answer": "nine"}, rouge=0.1)

def test_some_may_be_missing(assert_rag):
    assert_rag([ROW, {"question": "Why?", "answer": "so"}], rouge=0.1, min_coverage=0.5)

def test_parameters(assert_rag):
    schema = 'json_schema.schema={"type": "object"}'
    assert_rag({"answer": "[1, 2]"}, "json_schema=1", settings=[schema])
"""


@pytest.fixture
def plugged(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return a folder whose pytest loads this plug-in and no other."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p guardrail_offline.pytest_plugin")
    return pytester


def test_a_test_fails_where_a_bound_is_missed_or_a_value_is_missing(
    plugged: pytest.Pytester,
) -> None:
    """The message has numbers and keys, the JUnit file every score."""
    plugged.makepyfile(TESTS)
    result = plugged.runpytest_subprocess("--rag-scores", "--junitxml=junit.xml")
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines([
        "*AssertionError: rouge.rouge_1 >= 0.8: missed, 0.429 over 2 of 2 cases; "
        "worst b 0.000, a 0.857*",
        "*AssertionError: rouge.rouge_l >= 0.1: no value, no value over 0 of 1 cases "
        "(1 missing_input)*",
        "*AssertionError: json_schema.model_passes >= 1: missed, 0.000*",
        "*= rag-guardrail =*",
        "met * rouge.rouge_1 >= 0.8: 0.857 over 1 of 1 cases",
    ], consecutive=False)  # fmt: skip
    properties = (plugged.path / "junit.xml").read_text("utf-8")
    assert '<property name="rouge.rouge_2" value="0.4"' in properties


def test_the_plug_in_costs_nothing_where_it_is_not_used(plugged: pytest.Pytester) -> None:
    """pytest loads it everywhere: it imports no evaluator and no model."""
    plugged.makepyfile(
        """
        import sys
        def test_light():
            large = ("onnxruntime", "guardrail_service", "numpy", "scipy")
            assert not [name for name in sys.modules if name.startswith(large)]
        """
    )
    plugged.runpytest_subprocess().assert_outcomes(passed=1)


def test_pytest_finds_it_where_the_distribution_is_installed() -> None:
    """By the entry point that pytest looks for."""
    project = Path(guardrail_offline.__file__).with_name("pyproject.toml")
    declared = tomllib.loads(project.read_text("utf-8"))["project"]["entry-points"]
    assert declared["pytest11"] == {"rag_guardrail": "guardrail_offline.pytest_plugin"}
