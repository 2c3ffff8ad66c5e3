"""JUnit XML and Markdown: whole, escaped, and counted right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

from guardrail_offline.runs.bounds import BoundCheck
from guardrail_offline.runs.ci_reports import (
    JUnitCase,
    comparison_markdown,
    junit,
    junit_cases_of_comparison,
    junit_cases_of_run,
    run_markdown,
)
from guardrail_offline.runs.run_comparison import Comparison, Difference

HOSTILE = "<b>|a` [x](http://evil.example)\n## @all \x00\ud800"
MET = BoundCheck("rouge", "rouge_l", HOSTILE, 0.5, True, 0.6, 9, 10, {"missing_input": 1}, "met")
CHECKS = [MET, replace(MET, model="M", value=0.4, outcome="missed"),
          replace(MET, value=None, outcome="no value")]  # fmt: skip
LOSS = Difference(
    "rouge", "rouge_l", "higher_is_better", None, 20, 0.8, 0.6, -0.2, (-0.3, -0.1), 0.001, 0.002,
    2, 18, 0.01, 0,
)  # fmt: skip
GAIN = replace(LOSS, metric="rouge_1", difference=0.2, interval=(0.1, 0.3), model=HOSTILE)
SAME = replace(LOSS, metric="rouge_2", difference=0.0, interval=None, p_holm=1.0)
COMPARED = Comparison("key", (LOSS, GAIN, SAME), (), (), ("a note",), HOSTILE)


def board(key: str, value: float | None) -> dict[str, Any]:
    """Return a leaderboard with one model."""
    cell = {"value": value, "n": 3, "infinite": 0, "missing": {}}
    return {
        "evaluator": key,
        "primary_metric": key,
        "direction": "higher_is_better",
        "rows": [{"model": "m", "name": HOSTILE, "metrics": {key: cell}}],
    }


def test_a_junit_file_counts_its_tests_and_holds_any_name() -> None:
    """Missed bounds are failures, missing values errors, evaluators without any are skipped."""
    tests = junit_cases_of_run(CHECKS, {"byop": {"needs_judge": 3}}, ["byop"])
    root = ElementTree.fromstring(junit("run", tests))  # noqa: S314 - our own
    (suite,) = root
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    assert [case[0].tag for case in suite] == ["system-out", "failure", "error", "skipped"]
    assert suite[1][0].get("message") == "0.400 over 9 of 10 cases (1 missing_input)"
    assert suite[1].get("name") == "M: rouge.rouge_l >= 0.5"


def test_a_regression_fails_and_nothing_else_does() -> None:
    """One test per run, metric and model."""
    tests = junit_cases_of_comparison([COMPARED], 0.0, strict=False)
    assert [test.kind for test in tests] == ["failure", "", ""]
    assert {test.kind for test in junit_cases_of_comparison([COMPARED], 0.5, strict=False)} == {""}
    assert "0.800 to 0.600: -0.200 (-0.300 to -0.100), p 0.002" in tests[0].text
    text = junit("x", [*tests, JUnitCase("a", HOSTILE, HOSTILE, "error")])
    assert len(ElementTree.fromstring(text)[0]) == 4  # noqa: S314 - our own


def test_the_markdown_of_a_run_says_the_verdict_first() -> None:
    """Then bounds, scores, what has none, and problems."""
    problems = [{"severity": "high", "description": HOSTILE}] * 12
    text = run_markdown("out", CHECKS, [board("rouge", 0.5), board("byop", None)], problems)
    assert text.startswith("## ❌ out: 2 of 3 bounds not met\n")
    assert "| ❌ | M | `rouge.rouge_l >= 0.5` | 0.400 | 9 of 10 |" in text
    assert "| `rouge` ↑ | 0.500 (3) |" in text
    assert "Without a value: `byop`." in text
    assert "and 2 more in `problems.json`" in text
    assert run_markdown("out", [MET], [], []).startswith("## ✅ out: 1 bounds met")


def test_names_of_models_do_nothing_in_markdown() -> None:
    """No tag, link, mention, heading or further cell."""
    problems = [{"severity": "high", "description": HOSTILE}]
    run = run_markdown(HOSTILE, CHECKS, [board("rouge", 0.5)], problems)
    for text in (run, comparison_markdown(HOSTILE, [COMPARED], 0.0, strict=False)):
        assert "<b>" not in text
        assert "[x]" not in text
        assert "http://" not in text
        assert "@all" not in text
        assert "\x00" not in text
        assert "\n## &#64;" not in text
        text.encode("utf-8")


def test_the_markdown_of_a_comparison_has_regressions_first() -> None:
    """And keeps quiet about what did not change."""
    text = comparison_markdown("before", [replace(COMPARED, run="after")], 0.0, strict=False)
    assert text.startswith("## ❌ after against before: 1 regressions\n")
    assert text.index("❌ | `rouge.rouge_l`") < text.index("🔼 | `rouge.rouge_1`")
    assert "rouge_2" not in text
    kept = replace(COMPARED, differences=(SAME,), run="after")
    assert "✅ after against before: no regression" in comparison_markdown(
        "before", [kept], 0.0, strict=False
    )
