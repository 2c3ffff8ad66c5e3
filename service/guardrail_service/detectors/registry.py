"""What a detector is, and the one place that knows which exist."""

from __future__ import annotations

import difflib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from inspect import isabstract
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from guardrail_service.errors import ConfigurationError
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Direction, Outcome, Role, Row, RowOutput

PLUGIN_GROUP = "rag_guardrail.detectors"
CostClass = Literal["text", "pattern", "model"]
CLASSIFIERS: frozenset[Role] = frozenset({"toxicity", "bias"})
"""Roles whose models give a probability per label; detectors report metrics of those names."""
Input = Literal["question", "answer", "contexts", "condition", "schema"]


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One number a detector reports; `low` and `high` bound it, both inclusive.

    An `optional` one is a part that not every pack's model gives; its absence is no fault unless
    it gates, which start-up refuses.
    """

    key: str
    direction: Direction
    low: float = 0.0
    high: float = 1.0
    gating: bool = False
    boolean: bool = False
    optional: bool = False

    def holds(self, score: float) -> bool:
        """Return whether a score is a number inside this metric's range."""
        return math.isfinite(score) and self.low <= score <= self.high


@dataclass(frozen=True, slots=True)
class DetectorSpec:
    """Everything about a detector that can be said without running it.

    Attributes:
        id: Our name, unique over all suites.
        h2o_id: Evaluator id of the same risk in H2O Eval Studio, if it has one.
        summary: One line for tables.
        metrics: What it reports, gating metrics first.
        inputs: What it reads of a sample.
        roles: Model roles it needs from the pack.
        cost: `text` and `pattern` detectors run before `model` ones.
        skip_on_abstention: Not applicable when the whole answer abstains.
        request_parameters: Parameters that belong to the sample, so any request may set them.
        default_thresholds: Cuts that follow from the metric itself (0.5 for a boolean). Cuts that
            need data are shipped in `configs/defaults/thresholds.json`.
        replaces: Its findings say what to show in their place, so its action may be `redact`.
    """

    id: str
    h2o_id: str | None
    summary: str
    metrics: tuple[MetricSpec, ...]
    inputs: frozenset[Input]
    roles: frozenset[Role] = frozenset()
    cost: CostClass = "text"
    skip_on_abstention: bool = False
    request_parameters: frozenset[str] = frozenset()
    default_thresholds: Mapping[str, float] | None = None
    replaces: bool = False

    def metric(self, key: str) -> MetricSpec:
        """Return one metric by key; KeyError if the detector has no such metric."""
        for metric in self.metrics:
            if metric.key == key:
                return metric
        raise KeyError(key)

    def labels_needed(self, gates: Iterable[str] | None) -> frozenset[str]:
        """Return the labels a classifier must give: the metrics that gate, by default its own."""
        if gates is not None:
            return frozenset(gates)
        return frozenset(metric.key for metric in self.metrics if metric.gating)


def boolean_metrics(*, parse_failures: bool) -> tuple[MetricSpec, ...]:
    """Return the metrics of a yes/no detector, each 1.0 or 0.0 per answer.

    Source:
        H2O Eval Studio's boolean evaluators: four keys, five where the output has to be parsed.
    """
    failures = ["model_failures", "model_retrieval_failures", "model_generation_failures"]
    if parse_failures:
        failures.append("model_parse_failures")
    return (
        MetricSpec("model_passes", Direction.HIGHER, gating=True, boolean=True),
        *(MetricSpec(key, Direction.LOWER, boolean=True) for key in failures),
    )


class Parameters(BaseModel):
    """Base of every detector's parameters: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


P = TypeVar("P", bound=Parameters)


class Detector(ABC, Generic[P]):
    """Two pure functions around a model call. Instances hold no state."""

    spec: ClassVar[DetectorSpec]
    parameters: type[P]

    def load(self) -> None:
        """Prepare what every request needs, such as compiled patterns; called before serving."""

    def encode(self, sample: SegmentedSample, parameters: P) -> Sequence[Row]:
        """Return the model rows this sample needs; none for a pattern detector."""
        return ()

    @abstractmethod
    def reduce(
        self, sample: SegmentedSample, outputs: Sequence[RowOutput], parameters: P
    ) -> Outcome:
        """Return scores or a state from the outputs, which are in the order of `encode`'s rows.

        No rounding, clipping or thresholds here. A score that cannot be computed raises.
        """


AnyDetector = Detector[Any]
D = TypeVar("D", bound=type[AnyDetector])


class Registry:
    """Detectors by id. A duplicate is an error; an unknown name lists what exists."""

    def __init__(self) -> None:
        self._detectors: dict[str, AnyDetector] = {}
        self._planned: dict[str, DetectorSpec] = {}
        self._plugged: set[str] = set()

    def register(self, cls: D) -> D:
        """Class decorator: add one detector under its own id and its H2O id."""
        detector = cls()
        self._refuse_duplicate(detector.spec)
        self._detectors[detector.spec.id] = detector
        return cls

    def declare(self, spec: DetectorSpec) -> None:
        """Add a published id that this build has no code for, so that messages can tell."""
        self._refuse_duplicate(spec)
        self._planned[spec.id] = spec

    def load_plugins(self, wanted: Iterable[str]) -> None:
        """Import the third-party detectors that `wanted` needs.

        Those are the ones whose entry-point name is wanted. An id in H2O's dotted form that is
        still unknown after that may be a plug-in's, so the rest are imported, too.

        Raises:
            ConfigurationError: If a plug-in fails to import, is not what it says, or takes the id
                of another detector. A missing detector would be an open door, so start-up stops.
        """
        names = set(wanted)
        points = entry_points(group=PLUGIN_GROUP)
        self._plug_in(point for point in points if point.name in names)
        known = {name for spec in self.specs() for name in (spec.id, spec.h2o_id)}
        if any("." in name for name in names - known):
            self._plug_in(points)

    def _plug_in(self, points: Iterable[EntryPoint]) -> None:
        for point in points:
            if point.name not in self._plugged:
                self.register(_load_plugin(point))
                self._plugged.add(point.name)

    def __iter__(self) -> Iterator[AnyDetector]:
        """Yield detectors by id, whatever imported which first."""
        return (self._detectors[detector_id] for detector_id in sorted(self._detectors))

    def __getitem__(self, detector_id: str) -> AnyDetector:
        return self._detectors[detector_id]

    def __contains__(self, detector_id: str) -> bool:
        return detector_id in self._detectors

    def spec(self, evaluator_id: str, where: str) -> DetectorSpec:
        """Return the spec behind our id or H2O's id.

        Raises:
            ConfigurationError: If no detector has this id; near misses are suggested.
        """
        for spec in self.specs():
            if evaluator_id in (spec.id, spec.h2o_id):
                return spec
        raise ConfigurationError(where, f"unknown id {evaluator_id!r}", self._hint(evaluator_id))

    def specs(self) -> tuple[DetectorSpec, ...]:
        """Return every published spec: the served ones, then the ones without code here."""
        return (*(d.spec for d in self), *self._planned.values())

    def _hint(self, evaluator_id: str) -> str:
        known = [name for s in self.specs() for name in (s.id, s.h2o_id) if name]
        near = difflib.get_close_matches(evaluator_id, known, n=1, cutoff=0.8)
        if near:
            return f"a known id; did you mean {near[0]!r}?"
        return "one of " + ", ".join(sorted(s.id for s in self.specs()))

    def _refuse_duplicate(self, spec: DetectorSpec) -> None:
        for other in self.specs():
            if spec.id == other.id or (spec.h2o_id and spec.h2o_id == other.h2o_id):
                raise ConfigurationError(
                    f"detector {spec.id!r}", "an id that is already registered", "a new id"
                )


def _load_plugin(point: EntryPoint) -> type[AnyDetector]:
    where = f"plug-in {point.name!r} ({PLUGIN_GROUP})"
    try:
        loaded = point.load()
    except Exception as error:
        raise ConfigurationError(
            where, f"{type(error).__name__} on import", "a module that imports"
        ) from error
    if not (isinstance(loaded, type) and issubclass(loaded, Detector)):
        raise ConfigurationError(where, f"{type(loaded).__name__}", "a Detector class")
    if not isinstance(getattr(loaded, "spec", None), DetectorSpec) or isabstract(loaded):
        raise ConfigurationError(where, "an unfinished class", "one with `spec` and `reduce`")
    if loaded.spec.id != point.name:
        raise ConfigurationError(where, f"spec.id {loaded.spec.id!r}", "the entry point's own name")
    return loaded


REGISTRY = Registry()
"""Where built-in detectors register themselves; tests make their own."""

detector: Callable[[D], D] = REGISTRY.register
