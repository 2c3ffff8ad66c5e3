"""What a detector is, and the one place that knows which exist."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.plugins import DETECTORS, named_classes
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Direction, Outcome, Role, Row, RowOutput
from guardrail_service.types import MetricSpec as MetricSpec

CostClass = Literal["text", "pattern", "model"]
CLASSIFIERS: frozenset[Role] = frozenset({"toxicity", "bias"})
"""Roles whose models give a probability per label; detectors report metrics of those names."""
Input = Literal["question", "answer", "contexts", "condition", "schema"]


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

    @property
    def names(self) -> tuple[str, ...]:
        """Return the id and its aliases: everything a configuration may call the detector."""
        return (self.id,) if self.h2o_id is None else (self.id, self.h2o_id)

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
    """Detectors by id. A duplicate is an error; an unknown name gets suggestions."""

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
        """Import the third-party detectors that `wanted` names, by id or by an alias.

        Raises:
            ConfigurationError: If a plug-in fails to import, is not what it says, or takes the id
                of another detector. A missing detector would be an open door, so start-up stops.
        """
        known = {name for spec in self.specs() for name in spec.names}
        names = set(wanted) - self._plugged
        base: type[AnyDetector] = Detector  # type: ignore[type-abstract]  # its subclasses are meant
        for found in named_classes(DETECTORS, base, DetectorSpec, names, known):
            self.register(found)
            self._plugged.add(found.spec.id)

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
            if evaluator_id in spec.names:
                return spec
        known = (name for spec in self.specs() for name in spec.names)
        hint = choices(evaluator_id, known, "detector id")
        raise ConfigurationError(where, f"unknown id {evaluator_id!r}", hint)

    def specs(self) -> tuple[DetectorSpec, ...]:
        """Return every published spec: the served ones, then the ones without code here."""
        return (*(d.spec for d in self), *self._planned.values())

    def _refuse_duplicate(self, spec: DetectorSpec) -> None:
        for other in self.specs():
            if not set(spec.names).isdisjoint(other.names):
                raise ConfigurationError(
                    f"detector {spec.id!r}", "an id that is already registered", "a new id"
                )


REGISTRY = Registry()
"""Where built-in detectors register themselves; tests make their own."""

detector: Callable[[D], D] = REGISTRY.register
