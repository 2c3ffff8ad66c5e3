"""Online equals offline: the guard and the evaluators give the same scores, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.evaluators.case_view import WRONG_ABSTENTION
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.pack_models import PackModels, load_models
from guardrail_offline.runs.worker import score
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.guard.overrides import Override
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings

LAB = Path(__file__).parents[2] / "examples" / "lab" / "lab.json"
CASES = [case for case in open_lab(LAB).cases() if case.answer]


@pytest.fixture(scope="module")
def models() -> PackModels:
    """The embedded pack as the offline suite loads it."""
    return load_models("embedded")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory, models: PackModels) -> Iterator[Runtime]:
    """The embedded pack as the service loads it, with every detector that it can serve."""
    ids = [d.spec.id for d in REGISTRY if d.spec.roles <= models.roles]
    path = tmp_path_factory.mktemp("config") / "all.json"
    path.write_text(json.dumps({"calibrated_thresholds": {}, "evaluator_ids": ids}))
    found = Runtime(Settings(config=(path,), workers=2))
    yield found
    found.close()


def online(runtime: Runtime, case: Case) -> dict[str, Any]:
    """Return every detector's scores, or its state and reason, from the guard."""
    overrides: dict[str, Override] = {}
    if case.condition is not None:
        overrides["text_matching"] = Override(parameters={"condition": case.condition})
    if case.schema is not None:
        overrides["json_schema"] = Override(parameters={"schema": dict(case.schema)})
    verdict = runtime.guard.check(case.sample(), overrides=overrides)
    return {
        name: {key: metric.score for key, metric in result.metrics.items()}
        or (result.state.value, result.reason)
        for name, result in verdict.detectors.items()
    }


def offline(models: PackModels, case: Case, names: list[str]) -> dict[str, Any]:
    """Return the same from the evaluators."""
    results = score([(0, case)], configure(names), models)[0]
    found: dict[str, Any] = {}
    for name, result in results.items():
        values = {key: s.value for key, s in result.scores.items() if s.value is not None}
        first = next(iter(result.scores.values()))
        found[name] = values or (first.state.value, as_the_guard_says(first.reason))
    return found


def as_the_guard_says(reason: str | None) -> str | None:
    """Return the guard's reason: only a case with an expected answer makes abstaining wrong."""
    return "abstention" if reason == WRONG_ABSTENTION else reason


@pytest.mark.parametrize("case", CASES, ids=[case.key for case in CASES])
def test_a_case_scores_the_same_in_the_guard_and_in_the_suite(
    runtime: Runtime, models: PackModels, case: Case
) -> None:
    """All metrics of all detectors, states and reasons included."""
    expected = online(runtime, case)
    assert len(expected) >= 12
    assert offline(models, case, list(expected)) == expected
