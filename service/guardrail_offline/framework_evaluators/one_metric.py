"""One metric of one answer, as every framework asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from guardrail_offline.datasets.columns import RowPlace
from guardrail_offline.datasets.suites import RecordReader
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.runs.worker import models_for, score
from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.types import Direction


class MetricJudgement(NamedTuple):
    """One metric of one answer.

    Attributes:
        value: The score; None where there is none.
        passes: Whether it is on the good side of the threshold; None without score or threshold.
        reason: Why there is no score.
    """

    value: float | None
    passes: bool | None
    reason: str | None


class OneMetric:
    """Computes one metric of answers, one at a time; models are loaded once.

    Args:
        evaluator: By our id, H2O's or another suite's, such as `ragas:faithfulness`.
        metric: Key of the metric; None: the evaluator's first.
        threshold: Of the metric; None: the shipped one, if there is one.
        pack: Model pack.
        settings: Parameters, each `EVALUATOR.key=value`.
        load: Gives the models, so that several evaluators can share them.

    Raises:
        ConfigurationError: If there is no such evaluator or metric.
    """

    def __init__(
        self,
        evaluator: str,
        metric: str | None = None,
        *,
        threshold: float | None = None,
        pack: str = "embedded",
        settings: Sequence[str] = (),
        load: Callable[[], PackModels] | None = None,
    ) -> None:
        (self._configured,) = configure([evaluator], settings)
        spec = self._configured.evaluator.spec
        known = {found.key: found for found in spec.metrics}
        self.key = metric or spec.primary.key
        if self.key not in known:
            expected = choices(self.key, known, "metric", "guardrail evaluators list")
            raise ConfigurationError("metric", repr(self.key), expected)
        self.direction = known[self.key].direction
        given = self._configured.thresholds()[self.key]
        self.threshold = given if threshold is None else threshold
        self.name = self._configured.id if metric is None else f"{self._configured.id}.{self.key}"
        self._load = load or (lambda: models_for([self._configured], pack))

    @cached_property
    def _models(self) -> PackModels:
        return self._load()

    def __call__(self, row: Mapping[str, Any]) -> MetricJudgement:
        """Return the metric of one answer.

        Args:
            row: `question`, `answer`, `contexts` and, where the evaluator compares, `reference`.

        Raises:
            ConfigurationError: If it cannot be read.
        """
        given = {key: value for key, value in row.items() if value is not None}
        (case,) = RecordReader().cases(given, RowPlace("row", 1))
        found = score([(0, case)], [self._configured], self._models)[0][self._configured.id]
        result = found.scores[self.key]
        if result.value is None or self.threshold is None:
            return MetricJudgement(result.value, None, result.reason)
        higher = self.direction is Direction.HIGHER
        good = result.value >= self.threshold if higher else result.value <= self.threshold
        return MetricJudgement(result.value, good, None)
