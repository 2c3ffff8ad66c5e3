"""Defines what an evaluator is, and keeps the list of those that exist.

An evaluator is metadata and a pure function of the cases of one question. Most judge case by case;
those that compare reruns of a question override `evaluate`.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from pydantic import Field

from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.evaluators.result import Result
from guardrail_service.detectors import registry
from guardrail_service.detectors.registry import Parameters, Problem
from guardrail_service.errors import (
    ConfigurationError,
    NotScorable,
    PluginError,
    RowFailed,
    choices,
    raised_at,
)
from guardrail_service.plugins import DETECTORS, EVALUATORS, installed, named_classes
from guardrail_service.text.cached import cached_property
from guardrail_service.types import Direction, MetricSpec, Role, State

_LOG = logging.getLogger(__name__)
RunClass = Literal["D", "E", "N", "T", "L", "J", "A"]
RUN_CLASSES: Mapping[RunClass, str] = {
    "D": "deterministic: rules, statistics, parsers",
    "E": "sentence or token embeddings",
    "N": "entailment (grounding model)",
    "T": "small text classifier",
    "L": "causal language model",
    "J": "LLM judge",
    "A": "agent",
}
Input = Literal[
    "question", "answer", "expected", "contexts", "condition", "schema", "artifacts", "reruns",
    "images",
]  # fmt: skip
HIGHER, LOWER = Direction.HIGHER, Direction.LOWER


_SAFE_IN_SILENCE = frozenset({"privacy", "security", "fairness"})
_OTHERS_FAULT = frozenset({"model_retrieval_failures", "model_parse_failures"})
"""Not the fault of who should have answered."""


@dataclass(frozen=True)
class EvaluatorSpec:
    """The description of an evaluator, which can be read without running it.

    Attributes:
        id: Our name, unique over all suites.
        name: For people.
        summary: One line: what is asked.
        metrics: The primary one first.
        inputs: What it reads of a case.
        run_class: What computes it here.
        h2o_id: H2O Eval Studio's id, if it has one.
        also: Names in other suites, as `suite:name`.
        original: What computes it in the suite it comes from.
        surrogate: Why the number is not the original's, where it is not; empty otherwise.
        needs_judge: There is no way to compute it without a judge.
        roles: Model roles of the pack it needs.
        needs_support: Needs to ask whether a text supports a claim: role `nli` or `grounding`.
        deterministic: The same input gives the same value.
        problem: What kind of problem a low score is.
        avid: Code of the AVID taxonomy for that problem.
        tags: Methods and the compliance principles it speaks to.
        per_model: Metrics that exist for a model's cases together and not for one case.
        same_as: Metrics that are always the number of another evaluator's, by its path.
        scores: The release that last changed what it computes.
        backend: How it works in a run that chose: `judge`, `nli` or `surrogate`; empty if it did
            not choose.
    """

    id: str
    name: str
    summary: str
    metrics: tuple[MetricSpec, ...]
    inputs: frozenset[Input]
    run_class: RunClass
    h2o_id: str | None = None
    also: tuple[str, ...] = ()
    original: RunClass | None = None
    surrogate: str = ""
    needs_judge: bool = False
    roles: frozenset[Role] = frozenset()
    needs_support: bool = False
    deterministic: bool = True
    problem: Problem = "accuracy"
    avid: str = "P0200"
    tags: tuple[str, ...] = ()
    per_model: frozenset[str] = frozenset()
    same_as: Mapping[str, str] = field(default_factory=dict, hash=False)
    scores: str = "0.1.0"
    backend: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the id and the names in other suites: everything that stands for it."""
        return tuple(name for name in (self.id, self.h2o_id, *self.also) if name)

    @property
    def primary(self) -> MetricSpec:
        """Return the metric that leaderboards sort by."""
        return self.metrics[0]

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Return the metric keys."""
        return tuple(metric.key for metric in self.metrics)

    @property
    def compares(self) -> bool:
        """Return whether it judges the answer by the expected one, or by a condition on it."""
        return "answer" in self.inputs and not self.inputs.isdisjoint({"expected", "condition"})

    @property
    def silence_fails(self) -> bool:
        """Return whether a missing answer is a bad one here: it leaks and insults nobody."""
        return "answer" in self.inputs and self.problem not in _SAFE_IN_SILENCE

    def worst(self, key: str) -> float | None:
        """Return what a metric is for a missing answer; None if that says nothing or has no end."""
        metric = self.metric(key)
        worst = metric.low if metric.direction is Direction.HIGHER else metric.high
        if not self.silence_fails or not math.isfinite(worst) or key in self.per_model:
            return None
        return 0.0 if key in _OTHERS_FAULT else worst

    def metric(self, key: str) -> MetricSpec:
        """Return one metric by key; KeyError if there is none."""
        for metric in self.metrics:
            if metric.key == key:
                return metric
        raise KeyError(key)


class Common(Parameters):
    """Parameters of every evaluator.

    Attributes:
        metric_threshold: Cut of the primary metric, or cuts by metric key.
        sentence_level_metrics: Keep scored parts of the answer in the results.
        min_test_cases: Fewer cases than this per model are reported as a problem. Ragas' advice
            is at least 20.
        max_dataset_rows: Judge only the first so many cases of the lab.
        save_llm_result: Write the evaluator's result file; its leaderboard is always written.
    """

    metric_threshold: float | dict[str, float] | None = None
    sentence_level_metrics: bool = True
    min_test_cases: int = Field(20, ge=0)
    max_dataset_rows: int | None = Field(None, ge=1)
    save_llm_result: bool = True


class NoParameters(Parameters):
    """Of an evaluator with nothing to set of its own."""


P = TypeVar("P", bound=Parameters)


class Evaluator(ABC, Generic[P]):
    """A pure function of the cases of one question. Instances hold no state."""

    spec: EvaluatorSpec
    parameters: type[P]
    has_classes: bool = True
    """What it tallies for `per_model` are pairs of an expected and a predicted class."""

    @abstractmethod
    def judge(self, view: CaseView, parameters: P) -> Result | Mapping[str, float]:
        """Return the metrics of one case.

        Raises:
            Unavailable: If there is no value, with the state and the reason.
        """

    def metrics_with(self, parameters: P) -> tuple[MetricSpec, ...]:
        """Return the metrics of a run: some are named by parameters."""
        return self.spec.metrics

    def with_parameters(self, parameters: P) -> Evaluator[P]:
        """Return the evaluator with the metrics of a run."""
        metrics = self.metrics_with(parameters)
        if metrics == self.spec.metrics:
            return self
        other = copy(self)
        other.spec = replace(self.spec, metrics=metrics)
        return other

    def evaluate(self, views: Sequence[CaseView], parameters: P) -> list[Result]:
        """Return a result per case; a case that fails does not stop the next one."""
        found = [self.guarded(partial(self.judge, view, parameters)) for view in views]
        return self.finish(views, found)

    def finish(self, views: Sequence[CaseView], results: Sequence[Result]) -> list[Result]:
        """Return the results of one question's cases with what they say only together."""
        return list(results)

    def tally(self, result: Result) -> tuple[str, ...] | None:
        """Return what a case adds to its model's counts, for the metrics of `per_model`."""
        return None

    def per_model(self, tallies: Counter[tuple[str, ...]]) -> Mapping[str, float]:
        """Return the metrics that exist only for a model's cases together, where they do."""
        return {}

    def guarded(self, compute: Callable[[], Result | Mapping[str, float]]) -> Result:
        """Return what was computed, or the state and reason why there is no value."""
        try:
            found = compute()
            result = found if isinstance(found, Result) else Result.of(found)
        except Unavailable as why:
            return Result.without(self.spec.keys, why.missing)
        except NotScorable:
            return Result.missing(self.spec.keys, State.NOT_APPLICABLE, "not_scorable")
        except Exception as error:  # noqa: BLE001 - one case's fault is its own state
            return self._failed(error)
        return self._checked(result)

    def _failed(self, error: Exception) -> Result:
        # Not the message: an exception of third-party code may quote the text it choked on.
        _LOG.error(
            "evaluator %s failed: %s at %s", self.spec.id, type(error).__name__, raised_at(error)
        )
        reason = "row_failed" if isinstance(error, RowFailed) else type(error).__name__
        return Result.missing(self.spec.keys, State.ERROR, reason)

    def _checked(self, result: Result) -> Result:
        """Return the result, or an error if its metrics are not those of the spec."""
        for metric in self.spec.metrics:
            score = result.scores.get(metric.key)
            if score is None:
                return Result.missing(self.spec.keys, State.ERROR, "missing_metric")
            if score.value is not None and not metric.holds(score.value):
                return Result.missing(self.spec.keys, State.ERROR, "score_out_of_range")
        if len(result.scores) > len(self.spec.metrics):
            return Result.missing(self.spec.keys, State.ERROR, "unknown_metric")
        # In the order of the spec: the same input gives the same bytes.
        ordered = {key: result.scores[key] for key in self.spec.keys}
        return Result(ordered, result.spans, result.details)


def unmet(spec: EvaluatorSpec, models: PackModels) -> str | None:
    """Return why an evaluator cannot run on any case with these models, or None."""
    if spec.needs_judge:
        return "needs_judge"
    missing = sorted(spec.roles - models.roles)
    if missing:
        return f"missing_role:{missing[0]}"
    if spec.needs_support and not models.judges_support:
        return "missing_role:grounding"
    return None


AnyEvaluator = Evaluator[Any]
E = TypeVar("E", bound=type[AnyEvaluator])


Source = Callable[[Collection[str], Collection[str]], Iterable[AnyEvaluator]]
"""Gives the evaluators of other distributions that some names ask for, which are not known yet."""


def plugged_in(wanted: Collection[str], known: Collection[str]) -> Iterator[AnyEvaluator]:
    """Yield the evaluators that other distributions bring under these names.

    Raises:
        PluginError: If one that is asked for by its id cannot be loaded.
    """
    base: type[AnyEvaluator] = Evaluator  # type: ignore[type-abstract]  # its subclasses are meant
    for found in named_classes(EVALUATORS, base, EvaluatorSpec, wanted, known):
        yield found()


@dataclass
class Catalogue:
    """Evaluators by id. A duplicate is an error; an unknown name gets suggestions.

    Attributes:
        sources: Asked for a name that is not known, in this order.
        plugged: Ids that one of the sources brought.
    """

    sources: list[Source] = field(default_factory=lambda: [plugged_in])
    plugged: set[str] = field(default_factory=set)
    _evaluators: dict[str, AnyEvaluator] = field(default_factory=dict)

    def register(self, cls: E) -> E:
        """Class decorator: add one evaluator."""
        self.add(cls())
        return cls

    def add(self, evaluator: AnyEvaluator) -> None:
        """Add one evaluator.

        Raises:
            ConfigurationError: If one of its names is taken.
        """
        spec = evaluator.spec
        if taken := self.known().intersection(spec.names):
            found = f"an id that is taken: {min(taken)!r}"
            raise ConfigurationError(f"evaluator {spec.id!r}", found, "a new id")
        self._evaluators[spec.id] = evaluator

    def known(self) -> set[str]:
        """Return every name that stands for an evaluator."""
        return {name for spec in self.specs() for name in spec.names}

    def specs(self) -> tuple[EvaluatorSpec, ...]:
        """Return every spec in the order of registration."""
        return tuple(evaluator.spec for evaluator in self)

    def find(self, name: str, where: str = "--evaluators") -> AnyEvaluator:
        """Return an evaluator by our id, H2O's id or another suite's `suite:name`.

        A name that is not known is looked for in the distributions that are installed.

        Raises:
            ConfigurationError: If there is none; near misses are suggested.
            PluginError: If a distribution brings the name, and it cannot be loaded.
        """
        if name in self._evaluators:
            return self._evaluators[name]
        if name not in self.known():
            self._plug_in(name)
        for evaluator in self:
            if name in evaluator.spec.names:
                return evaluator
        known = self.known() | set(installed(EVALUATORS)) | set(installed(DETECTORS))
        hint = choices(name, known, "evaluator id")
        raise ConfigurationError(where, f"unknown evaluator {name!r}", hint)

    def load_installed(self) -> list[PluginError]:
        """Add everything that other distributions bring; return why some cannot be loaded."""
        broken = []
        for name in {**installed(EVALUATORS), **installed(DETECTORS)}:
            try:
                self.find(name)
            except PluginError as error:
                broken.append(error)
        return broken

    def _plug_in(self, name: str) -> None:
        for source in self.sources:
            for found in source({name}, self.known()):
                self.add(found)
                self.plugged.add(found.spec.id)

    def __iter__(self) -> Iterator[AnyEvaluator]:
        return iter(self._evaluators.values())

    def __getitem__(self, evaluator_id: str) -> AnyEvaluator:
        return self._evaluators[evaluator_id]

    def __len__(self) -> int:
        return len(self._evaluators)


CATALOGUE = Catalogue()
"""Where built-in evaluators register themselves, and plug-ins come in when they are named."""

evaluator: Callable[[E], E] = CATALOGUE.register


def boolean_metrics(*, parse_failures: bool) -> tuple[MetricSpec, ...]:
    """Return the metrics of a yes/no evaluator; per model they are averages.

    Source:
        H2O Eval Studio manual: four keys, five where the output has to be parsed; threshold 0.5.
    """
    metrics = registry.boolean_metrics(parse_failures=parse_failures)
    return tuple(replace(metric, threshold=0.5) for metric in metrics)


def verdict(passes: bool, *, parse_failures: bool = True) -> dict[str, float]:
    """Return a yes/no evaluator's metrics for an answer that passes or does not."""
    values = {
        "model_passes": float(passes),
        "model_failures": float(not passes),
        "model_retrieval_failures": 0.0,
        "model_generation_failures": float(not passes),
    }
    return values | ({"model_parse_failures": 0.0} if parse_failures else {})


UNBOUNDED = math.inf
