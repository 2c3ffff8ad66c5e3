"""Defines what a detector is, and keeps the list of those that exist."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.plugins import DETECTORS, named_classes
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Direction, Outcome, Role, Row, RowOutput
from guardrail_service.types import MetricSpec as MetricSpec

CostClass = Literal["text", "pattern", "model"]
Input = Literal["question", "answer", "contexts", "condition", "schema"]
InFlight = Literal["search", "parts", "end"]
"""How a detector judges an answer that is still being written.

`search`: everything that has arrived, before any of it leaves; its findings may be redacted.
`parts`: each part that is about to leave, read together with the part before it. Only for scores
that are the worst sentence's, so that a part is flagged exactly if the whole is.
`end`: the whole answer, when it is complete.
"""
MAX_REACH = 20_000
"""Code points that a stream may hold back for one detector; the longest key block has as many."""
H2O_PREFIX = "h2o_sonar."
"""How the evaluator ids of H2O Eval Studio begin."""
Problem = Literal[
    "accuracy", "retrieval", "privacy", "security", "fairness", "data quality", "stability",
    "efficiency", "cost", "runtime",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Remedy:
    """Rules for the system prompt of an application whose answers a detector flags too often."""

    title: str
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """A detector's entry in lists of evaluators; serving reads none of it.

    Attributes:
        title: Name for people; empty: the id.
        tags: Methods, and the compliance principles it speaks to.
        problem: What kind of problem a bad score is.
        avid: Code of the AVID taxonomy for that problem.
        original: What computes it in the suite it comes from: the letter of a run class, such as
            "J" for an LLM judge; None: the same as here.
        surrogate: Why the number is not the original's, where it is not.
    """

    title: str = ""
    tags: tuple[str, ...] = ()
    problem: Problem = "accuracy"
    avid: str = "P0200"
    original: Literal["D", "E", "N", "T", "L", "J", "A"] | None = None
    surrogate: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorSpec:
    """The description of a detector, which can be read without running it.

    Attributes:
        id: Our name, unique over all suites.
        aliases: Names of the same risk elsewhere: evaluator ids of H2O Eval Studio, or
            `suite:name`. A configuration may use any of them.
        summary: One line for tables.
        metrics: What it reports, gating metrics first.
        inputs: What it reads of a sample.
        roles: Model roles it needs from the pack.
        classifier: The role whose model gives a probability per label, where the metrics are named
            after the labels: a pack whose model lacks a gating one is refused.
        cost: `text` and `pattern` detectors run before `model` ones.
        in_flight: How it judges an answer that is still being written.
        reach: Code points of the longest text that a `search` finds. A stream holds back as much
            behind each part that leaves, so that no finding is cut in two.
        skip_on_abstention: Not applicable when the whole answer abstains.
        needs: The parameter without which it has nothing to judge; while that is None, `reduce`
            says `not_applicable` with `missing_input`, and a guard does not ask.
        request_parameters: Parameters that belong to the sample, so any request may set them.
        default_thresholds: Cuts that follow from the metric itself (0.5 for a boolean). Cuts that
            need data are shipped in `configs/defaults/thresholds.json`.
        replaces: Its findings say what to show in their place, so its action may be `redact`.
        version: Of rules of its own that can move a score, raised with every change that may move
            one: thresholds fitted under another one are refused, and stored scores not replayed.
            Rules beside a role's model have their places in the fingerprints of all.
        remedy: What may help where it flags too often.
        listing: How lists of evaluators show it.
    """

    id: str
    aliases: tuple[str, ...] = ()
    summary: str
    metrics: tuple[MetricSpec, ...]
    inputs: frozenset[Input]
    roles: frozenset[Role] = frozenset()
    classifier: Role | None = None
    cost: CostClass = "text"
    in_flight: InFlight = "end"
    reach: int = 0
    skip_on_abstention: bool = False
    needs: str | None = None
    request_parameters: frozenset[str] = frozenset()
    default_thresholds: Mapping[str, float] | None = None
    replaces: bool = False
    version: str = ""
    remedy: Remedy | None = None
    listing: Listing = Listing()

    def __post_init__(self) -> None:
        """Refuse what no stream can do.

        Raises:
            ConfigurationError: If the reach is out of range, or nothing searches that far.
        """
        most = MAX_REACH if self.in_flight == "search" else 0
        if not 0 <= self.reach <= most:
            where = f"detector {self.id!r}: reach"
            raise ConfigurationError(where, str(self.reach), f"a number from 0 to {most}")

    @property
    def h2o_id(self) -> str | None:
        """Return the evaluator id of the same risk in H2O Eval Studio, if it has one."""
        return next((alias for alias in self.aliases if alias.startswith(H2O_PREFIX)), None)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the id and its aliases: everything a configuration may call the detector."""
        return (self.id, *self.aliases)

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
    pack: ClassVar[Path | None] = None
    """Folder of the pack that comes with the detector, for roles that the selected one lacks."""
    parameters: type[P]

    def load(self) -> None:
        """Prepare what every request needs, such as compiled patterns; called before serving."""

    def encode(self, sample: SegmentedSample, parameters: P) -> Sequence[Row]:
        """Return the model rows this sample needs; none for a pattern detector."""
        return ()

    def asked_by_case(
        self, condition: str | None, schema: Mapping[str, Any] | None, categories: Collection[str]
    ) -> dict[str, Any]:
        """Return the parameters that a case of a test suite sets itself; offline runs only.

        Args:
            condition: What the case says that its answer must contain.
            schema: The JSON schema its answer must satisfy.
            categories: Of the case.
        """
        own: dict[str, Any] = {}
        if condition is not None and "condition" in self.spec.inputs:
            own["condition"] = condition
        if schema is not None and "schema" in self.spec.inputs:
            own["schema"] = dict(schema)
        return own

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
    """Detectors by id. A duplicate is an error; an unknown name gets suggestions.

    Attributes:
        detectors: All of them, by id.
    """

    def __init__(self) -> None:
        self.detectors: dict[str, AnyDetector] = {}
        self._plugged: set[str] = set()

    def register(self, cls: D) -> D:
        """Class decorator: add one detector under its own id and its aliases."""
        detector = cls()
        self._refuse_duplicate(detector.spec)
        self.detectors[detector.spec.id] = detector
        return cls

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
        return (self.detectors[detector_id] for detector_id in sorted(self.detectors))

    def __getitem__(self, detector_id: str) -> AnyDetector:
        return self.detectors[detector_id]

    def __contains__(self, detector_id: str) -> bool:
        return detector_id in self.detectors

    def spec(self, evaluator_id: str, where: str) -> DetectorSpec:
        """Return the spec behind our id or H2O's id.

        Raises:
            ConfigurationError: If no detector has this id; near misses are suggested.
        """
        for spec in self.specs():
            if evaluator_id in spec.names:
                return spec
        known = [name for spec in self.specs() for name in spec.names]
        hint = choices(evaluator_id, known, "detector id or alias", "GET /v1/detectors")
        raise ConfigurationError(where, f"unknown id {evaluator_id!r}", hint)

    def specs(self) -> tuple[DetectorSpec, ...]:
        """Return the spec of every detector, by id."""
        return tuple(detector.spec for detector in self)

    def _refuse_duplicate(self, spec: DetectorSpec) -> None:
        for other in self.specs():
            if not set(spec.names).isdisjoint(other.names):
                raise ConfigurationError(
                    f"detector {spec.id!r}", "an id that is already registered", "a new id"
                )


REGISTRY = Registry()
"""Where built-in detectors register themselves; tests make their own."""

detector: Callable[[D], D] = REGISTRY.register
