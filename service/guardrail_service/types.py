"""The values that travel from a request to a decision. No behaviour beyond construction."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np

Decision = Literal["pass", "flag"]
Mode = Literal["enforce", "shadow"]
OnMissing = Literal["flag", "pass"]
Status = Literal["complete", "partial"]
Role = str
"""Name of what a model is for; a pack maps roles to models, a detector asks for roles."""
ROLES: tuple[Role, ...] = (
    "embedding", "grounding", "toxicity", "bias", "nli", "similarity", "causal_lm",
)  # fmt: skip
"""The roles that our own detectors and evaluators read; those of others come with plug-ins."""
OtherProvider = Literal["cuda", "openvino", "dnnl", "coreml"]
Provider = Literal["cpu", OtherProvider]
PROVIDERS: tuple[Provider, ...] = ("cpu", "cuda", "openvino", "dnnl", "coreml")
"""The execution providers of onnxruntime that a model may run on."""
EVERY = "*"
"""In a choice of providers by role: every role that is not named."""


class Direction(StrEnum):
    """The end of a metric's range that is good."""

    HIGHER = "higher_is_better"
    LOWER = "lower_is_better"


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One number that a detector or an evaluator reports.

    Attributes:
        key: Its name in replies, policies and result files.
        direction: Which end is good.
        low: Smallest value, inclusive.
        high: Largest value, inclusive; an open end holds infinity.
        gating: Whether it decides by default. Only detectors have such metrics.
        boolean: 1.0 or 0.0 per answer.
        optional: A part that not every pack's model gives. Its absence is no fault unless it
            gates, which start-up refuses.
        threshold: Cut that the definition or the suite of the metric names; None where there is
            none that can be used, so that it has to be calibrated.
    """

    key: str
    direction: Direction = Direction.HIGHER
    low: float = 0.0
    high: float = 1.0
    gating: bool = False
    boolean: bool = False
    optional: bool = False
    threshold: float | None = None

    def holds(self, value: float) -> bool:
        """Return whether a value is a number inside the range."""
        return self.low <= value <= self.high


class State(StrEnum):
    """The state of one detector after one sample."""

    EVALUATED = "evaluated"
    NOT_APPLICABLE = "not_applicable"
    UNVERIFIED = "unverified"
    NOT_EVALUATED = "not_evaluated"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class NoValue:
    """The reason for a missing number, online and offline: a state other than `evaluated`.

    Raises:
        ValueError: If the state is `evaluated` or the reason is empty.
    """

    state: State
    reason: str

    def __post_init__(self) -> None:
        """Refuse a missing number that nobody can explain."""
        if self.state is State.EVALUATED or not self.reason:
            raise ValueError("a missing value needs a state other than evaluated, and a reason")


class Action(IntEnum):
    """The caller's next step with the answer, in order of severity."""

    ALLOW = 0
    MARK = 1
    FLAG = 2
    REDACT = 3
    BLOCK = 4

    @property
    def label(self) -> str:
        """Return the lower-case name used on the wire."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved text, with the caller's own id where it has one."""

    text: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer with the question and the passages it came from."""

    answer: str
    question: str | None = None
    contexts: tuple[Passage, ...] = ()
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The part of a passage that a span was compared with; offsets are code points [start, end)."""

    context: int
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the answer that a detector points at; offsets are code points [start, end).

    A span with a `metric` is kept only while its own score is on the wrong side of that metric's
    threshold, so a detector may propose every sentence and leave the comparison to the policy.
    Its label then becomes `crossed`. Which side a claim is on is the threshold's word alone: one
    that counts as supported is never called contradicted, however likely that seems beside it.
    """

    start: int
    end: int
    label: str
    score: float | None = None
    metric: str | None = None
    evidence: tuple[Evidence, ...] = ()
    replacement: str | None = None
    """The text `redacted_answer` shows in place of the span; None leaves the span as it is."""
    attributes: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """Further facts about the finding; never text of the answer or of a passage."""
    crossed: str | None = None
    """The label of a span whose score is on the wrong side; None: `label`, on either side."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The code points that the model or the rule read, out of those submitted."""

    answer: tuple[int, int]
    contexts: tuple[int, int] = (0, 0)

    @classmethod
    def whole(cls, sample: Sample, *, contexts: bool = False) -> Coverage:
        """Return the coverage of a rule that reads the answer, and on request every passage."""
        size = len(sample.answer)
        read = sum(len(passage.text) for passage in sample.contexts) if contexts else 0
        return cls((size, size), (read, read))


TENANT: ContextVar[str] = ContextVar("tenant", default="")
"""Whose rows are made in this context, where outputs are kept apart (GUARDRAIL_TENANT_CACHE)."""
CALLER: ContextVar[str] = ContextVar("caller", default="")
"""Whose work is done in this context: a key or, without keys, an address. Callers take turns."""


class Rate(NamedTuple):
    """The requests of one caller in a sliding window of so many seconds, at most."""

    requests: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, and what it may do.

    Attributes:
        id: Its name in records; never its key.
        rights: Of `check`, `feedback`, `decisions` and `admin`.
        policies: Those it may name: `NAME`, `NAME@VERSION`, or `NAME@*` for both. A request that
            names none gets the default policy or, where it may not, the first. None: every one.
        overrides: Whether its requests may change thresholds and parameters, as far as the policy
            lets them.
        rate: Its requests in a time, at most; None: no limit.
        concurrency: Its requests in work at the same time, at most; None: no limit.
        label: Its name in the log and in metrics.
    """

    id: str
    rights: frozenset[str] = frozenset({"check", "feedback"})
    policies: tuple[str, ...] | None = None
    overrides: bool = True
    rate: Rate | None = None
    concurrency: int | None = None
    label: str = ""

    def may_use(self, policy: str) -> bool:
        """Return whether it may name a policy, or a version of one."""
        own = self.policies
        return own is None or policy in own or f"{policy.partition('@')[0]}@*" in own


ANONYMOUS = Caller("anonymous")
IDENTITY: ContextVar[Caller] = ContextVar("identity", default=ANONYMOUS)
"""Who asked for the work that is done in this context; `anonymous` where there are no keys."""


@dataclass(frozen=True, slots=True)
class Row:
    """One model input. Equal rows run once, so a row holds everything its output depends on."""

    role: Role
    text: str
    second: str | None = None
    outputs: tuple[str, ...] = ("sentence_embedding",)
    evidence: tuple[str, ...] = ()
    """Texts a grounding row's claim is read against; the model chooses the nearest of them."""
    tenant: str = field(default_factory=TENANT.get)
    """Rows of others are not equal to it, and neither outputs nor calls are shared with them."""


RowOutput = Mapping[str, "np.ndarray[Any, np.dtype[Any]]"]
"""Named model outputs of one row, without the batch axis."""


class RowResult(NamedTuple):
    """Outputs of one row and how long each part took, in milliseconds."""

    outputs: RowOutput
    tokenize_ms: float
    inference_ms: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one detector on one sample: scores, or why there are none."""

    scores: Mapping[str, float] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()
    coverage: Coverage | None = None
    missing: NoValue | None = None

    @property
    def state(self) -> State:
        """Return `evaluated`, or the state that says why there are no scores."""
        return State.EVALUATED if self.missing is None else self.missing.state

    @property
    def reason(self) -> str | None:
        """Return why there are no scores; None if there are."""
        return None if self.missing is None else self.missing.reason

    @classmethod
    def evaluated(
        cls,
        scores: Mapping[str, float],
        spans: tuple[Span, ...] = (),
        coverage: Coverage | None = None,
    ) -> Outcome:
        """Return a scored outcome; every metric of the detector must be present."""
        return cls(dict(scores), spans, coverage)

    @classmethod
    def boolean(
        cls,
        passes: bool,
        *,
        retrieval_failure: bool = False,
        parse_failure: bool | None = None,
        spans: tuple[Span, ...] = (),
        coverage: Coverage | None = None,
    ) -> Outcome:
        """Return the outcome of a yes/no rule, each of its metrics 1.0 or 0.0.

        `model_passes` is about the answer alone. `model_generation_failures` repeats its failure,
        and `model_retrieval_failures` stands beside it: a passage may fail while the answer passes.

        Args:
            passes: Whether the answer passes.
            retrieval_failure: Whether the passages fail, whatever the answer does.
            parse_failure: Whether the output could not be parsed; None where the detector has no
                such metric.
            spans: Places to point at.
            coverage: How much was read.

        Source:
            H2O Eval Studio's boolean evaluators; there the numbers are averages over rows.
        """
        scores = {
            "model_passes": float(passes),
            "model_failures": float(not passes),
            "model_retrieval_failures": float(retrieval_failure),
            "model_generation_failures": float(not passes),
        }
        if parse_failure is not None:
            scores["model_parse_failures"] = float(parse_failure)
        return cls(scores, spans, coverage)

    @classmethod
    def not_applicable(cls, reason: str) -> Outcome:
        """Return "there is nothing to judge", which never flags."""
        return cls(missing=NoValue(State.NOT_APPLICABLE, reason))

    @classmethod
    def unverified(cls, reason: str, coverage: Coverage | None = None) -> Outcome:
        """Return "should be judged and cannot be"; the policy says what that means."""
        return cls(coverage=coverage, missing=NoValue(State.UNVERIFIED, reason))


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One score beside the threshold it was compared with (None: reported only)."""

    score: float
    direction: Direction
    threshold: float | None
    flagged: bool
    calibrated: bool


@dataclass(frozen=True, slots=True)
class DetectorResult:
    """One detector's part of a verdict.

    Attributes:
        action: What this detector alone asks for.
        explanation: One or two sentences on why it flagged or could not judge; None: neither.
            Names places, never the text that stands there.
    """

    state: State
    reason: str | None
    flagged: bool
    metrics: Mapping[str, MetricResult]
    spans: tuple[Span, ...]
    coverage: Coverage | None
    latency_ms: float = 0.0
    action: Action = Action.ALLOW
    explanation: str | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds. `tokenize` and `inference` are summed over rows, which run in parallel."""

    queue: float = 0.0
    tokenize: float = 0.0
    inference: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class PolicyRef:
    """The policy that decided."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The whole reply for one sample.

    Attributes:
        summary: One sentence: what happens to the answer and why.
        flagged: The detectors that flagged, the worst first.
        judged: For policies in the shadow, a `guard.shadow.CheckedSample`; None: there are none.
    """

    decision: Decision
    action: Action
    status: Status
    calibrated: bool
    policy: PolicyRef
    detectors: Mapping[str, DetectorResult]
    timings: Timings
    redacted_answer: str | None = None
    summary: str = ""
    flagged: tuple[str, ...] = ()
    judged: Any = field(default=None, compare=False, repr=False)
