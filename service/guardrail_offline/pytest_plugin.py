"""The pytest plug-in: the fixture `assert_rag` scores answers inside a test.

pytest loads this file wherever rag-guardrail-offline is installed, so it imports nothing large
before a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from guardrail_offline.evaluators.pack_models import PackModels
    from guardrail_offline.runs.bounds import BoundCheck

_CHECKS = pytest.StashKey[list["BoundCheck"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plug-in."""
    group = parser.getgroup("rag-guardrail")
    group.addoption("--rag-pack", default="embedded", help="Model pack that assert_rag asks.")
    group.addoption(
        "--rag-scores", action="store_true", help="Print every score that assert_rag computed."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make room for what is found."""
    config.stash[_CHECKS] = []


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the scores of all tests, where that is asked for."""
    found = config.stash[_CHECKS]
    if not found or not config.getoption("--rag-scores"):
        return
    terminalreporter.section("rag-guardrail")
    for check in found:
        terminalreporter.write_line(f"{check.outcome:14} {check.asked}: {check.found}")


@pytest.fixture(scope="session")
def rag_models(request: pytest.FixtureRequest) -> Callable[[], PackModels]:
    """Return what loads the pack's models, once for all tests."""
    loaded: list[PackModels] = []

    def models() -> PackModels:
        if not loaded:
            from guardrail_offline.evaluators.pack_models import load_models

            loaded.append(load_models(str(request.config.getoption("--rag-pack"))))
        return loaded[0]

    return models


class AssertRag:
    """Fails a test whose answers miss a bound."""

    def __init__(
        self,
        models: Callable[[], PackModels],
        record: Callable[[str, object], None],
        found: list[BoundCheck],
    ) -> None:
        self._models = models
        self._record = record
        self._found = found

    def __call__(
        self,
        dataset: Any,
        *bounds: str,
        min_coverage: float = 1.0,
        settings: Iterable[str] = (),
        **least: float,
    ) -> list[BoundCheck]:
        """Score answers and compare their means with bounds.

        Args:
            dataset: One row as a mapping, rows, columns, or the path of a lab; columns as
                docs/evaluation.md names them.
            bounds: Each `[MODEL:][EVALUATOR.]METRIC=VALUE`, as for `--fail-under`.
            min_coverage: Share of the cases that have to have a value.
            settings: Parameters, each `EVALUATOR.key=value`.
            least: Bounds whose names are words of Python: `faithfulness=0.8`. Where lower is
                better they are the most.

        Returns:
            What was found for each bound and model.

        Raises:
            AssertionError: If a bound is missed, or too few cases have a value.
            ConfigurationError: If a bound or a row cannot be read.
        """
        __tracebackhide__ = True
        from guardrail_offline.api import check

        wanted = [*bounds, *(f"{name}={value}" for name, value in least.items())]
        found = check(
            dataset,
            wanted,
            min_coverage=min_coverage,
            settings=settings,
            load=self._models,
        )
        self._found += found
        for one in found:
            self._record(f"{one.evaluator}.{one.metric}", one.value)
        if bad := [_text(one) for one in found if one.outcome != "met"]:
            raise AssertionError("\n".join(bad))
        return found


@pytest.fixture
def assert_rag(
    rag_models: Callable[[], PackModels],
    record_property: Callable[[str, object], None],
    pytestconfig: pytest.Config,
) -> AssertRag:
    """Return a function that scores answers and fails the test where a bound is missed."""
    return AssertRag(rag_models, record_property, pytestconfig.stash[_CHECKS])


def _text(check: BoundCheck) -> str:
    text = f"{check.asked}: {check.outcome}, {check.found}"
    if len(check.worst) > 1:
        text += "; worst " + ", ".join(f"{key} {value:.3f}" for key, value in check.worst)
    return text
