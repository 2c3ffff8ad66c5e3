"""The reply as frozen objects. Unknown keys are ignored; a missing or ill-typed key is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Required, Self, TypedDict, get_args

from guardrail_client.errors import UnexpectedReply
from guardrail_client.passages import Passage

Decision = Literal["pass", "flag"]
Action = Literal["allow", "mark", "flag", "redact", "block"]
Status = Literal["complete", "partial"]
Mode = Literal["enforce", "shadow"]
StopOn = Literal["block", "flag"]
State = Literal["evaluated", "not_applicable", "unverified", "not_evaluated", "error"]
Direction = Literal["higher_is_better", "lower_is_better"]
FeedbackLabel = Literal["pass", "fail", "abstain"]
_ABSENT: Any = object()


class CheckOptions(TypedDict, total=False):
    """The options of a check besides the answer; the same wherever an answer is checked.

    A key that is left out or None is not sent.

    Attributes:
        question: What the user asked.
        contexts: The retrieved passages, in the order of the prompt.
        policy: Name of a loaded policy; None takes the client's.
        detectors: Overrides by detector: `{"toxicity": {"thresholds": {"toxicity": 0.3}}}`.
        deadline_ms: The service stops here and names what it did not evaluate. The policy may have
            a deadline of its own.
        mode: `shadow` reports the decision and always allows.
        include: Any of `spans`, `evidence`, `redacted_answer`; empty leaves it to the service.
        id: Your name for this answer in the service's logs.
    """

    question: str | None
    contexts: Sequence[Passage]
    policy: str | None
    detectors: Mapping[str, Any] | None
    deadline_ms: int | None
    mode: Mode | None
    include: Sequence[str]
    id: str | None


class StreamOptions(CheckOptions, total=False):
    """`CheckOptions` and what only a stream has.

    Attributes:
        sentence_deadline_ms: For judging one part; a part that is not judged by then counts as the
            policy's `on_timeout` says.
        stop_on: The mildest action that ends the stream, `block` or `flag`. None leaves it to the
            service.
    """

    sentence_deadline_ms: int | None
    stop_on: StopOn | None


class CheckItem(CheckOptions, total=False):
    """One item of `check_many`: an answer and its options."""

    answer: Required[str]


class _MalformedError(ValueError):
    """A reply differs from the contract. Names keys and types, never values."""


@dataclass(frozen=True, slots=True)
class _Object:
    """A JSON object that knows its place in the reply, for messages."""

    data: Mapping[str, Any]
    place: str = "reply"

    def take(self, key: str, *kinds: type, default: Any = _ABSENT) -> Any:
        """Return the value under a key if it has one of these types."""
        value = self.data.get(key, default)
        if value is _ABSENT:
            raise _MalformedError(f"{self.place}.{key} is missing")
        if value is default:
            return value
        # bool is an int to Python and is not a number to JSON.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise self._wrong(key, type(value).__name__, "/".join(k.__name__ for k in kinds))
        return value

    def one_of(self, key: str, literal: Any) -> Any:
        """Return the value under a key if it is one of a Literal's."""
        value = self.take(key, str)
        if value not in get_args(literal):
            raise self._wrong(key, "another value", "one of " + ", ".join(get_args(literal)))
        return value

    def inner(self, key: str) -> _Object:
        """Return the object under a key."""
        return _Object(self.take(key, dict), f"{self.place}.{key}")

    def each(self, key: str) -> list[_Object]:
        """Return the objects of the list under a key; none if the key is absent or null."""
        items = self.take(key, list, type(None), default=()) or ()
        return [_object(item, f"{self.place}.{key}[{i}]") for i, item in enumerate(items)]

    def names(self, key: str) -> tuple[str, ...] | None:
        """Return the list of texts under a key; None if the key is absent or null."""
        items = self.take(key, list, type(None), default=None)
        if items is None or all(isinstance(item, str) for item in items):
            return items if items is None else tuple(items)
        raise self._wrong(key, "another value", "a list of str")

    def members(self, key: str) -> dict[str, _Object]:
        """Return the objects under a key whose own keys are names."""
        inner = self.inner(key)
        return {name: _object(value, f"{inner.place}.{name}") for name, value in inner.data.items()}

    def _wrong(self, key: str, found: str, expected: str) -> _MalformedError:
        return _MalformedError(f"{self.place}.{key}: found {found}, expected {expected}")


def _object(value: Any, place: str) -> _Object:
    if not isinstance(value, dict):
        raise _MalformedError(f"{place}: found {type(value).__name__}, expected an object")
    return _Object(value, place)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The part of a passage a span was compared with; offsets are code points [start, end)."""

    context: int
    start: int
    end: int
    score: float

    @classmethod
    def _parse(cls, data: _Object) -> Self:
        start, end = data.take("start", int), data.take("end", int)
        return cls(data.take("context", int), start, end, data.take("score", float, int))


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the answer a detector points at; offsets are code points [start, end).

    Attributes:
        label: What it is: `supported`, `not_mentioned` or `contradicted` for a claim, else a word
            of its detector's, such as the kind of personal data. Services before version 0.2 say
            `unsupported` where newer ones say which of the two it is.
        attributes: More about it; `found_by` says how a claim was found to be supported.
    """

    start: int
    end: int
    label: str
    score: float | None = None
    metric: str | None = None
    evidence: tuple[Evidence, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def _parse(cls, data: _Object) -> Self:
        return cls(
            start=data.take("start", int),
            end=data.take("end", int),
            label=data.take("label", str),
            score=data.take("score", float, int, type(None), default=None),
            metric=data.take("metric", str, type(None), default=None),
            evidence=tuple(Evidence._parse(item) for item in data.each("evidence")),
            attributes=data.take("attributes", dict, default={}),
        )


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One score beside the threshold it was compared with (None: reported only)."""

    score: float
    threshold: float | None
    direction: Direction
    flagged: bool
    calibrated: bool

    @classmethod
    def _parse(cls, data: _Object) -> Self:
        return cls(
            score=data.take("score", float, int),
            threshold=data.take("threshold", float, int, type(None)),
            direction=data.one_of("direction", Direction),
            flagged=data.take("flagged", bool),
            calibrated=data.take("calibrated", bool),
        )


@dataclass(frozen=True, slots=True)
class Coverage:
    """The code points that were judged, out of those submitted."""

    answer_chars: tuple[int, int]
    context_chars: tuple[int, int] = (0, 0)

    @property
    def complete(self) -> bool:
        """True if everything submitted was judged."""
        return len(set(self.answer_chars)) == 1 and len(set(self.context_chars)) == 1

    @classmethod
    def _parse(cls, data: _Object) -> Self:
        return cls(_pair(data, "answer_chars"), _pair(data, "context_chars", [0, 0]))


def _pair(data: _Object, key: str, default: Any = _ABSENT) -> tuple[int, int]:
    match data.take(key, list, default=default):
        case [int(read), int(submitted)]:
            return read, submitted
    raise _MalformedError(f"{data.place}.{key}: expected two whole numbers")


@dataclass(frozen=True, slots=True)
class DetectorResult:
    """One detector's part of a verdict.

    Attributes:
        state: Only `evaluated` carries scores; `reason` explains the others.
        flagged: Whether it counts towards the decision, through a metric or through the policy's
            rule for detectors that were not evaluated.
        action: What this detector alone asks for; None from a service that does not say.
        explanation: Why it flagged or could not judge, with places; None if it did neither, or
            from a service that explains nothing.
    """

    state: State
    flagged: bool
    metrics: Mapping[str, MetricResult]
    reason: str | None = None
    action: Action | None = None
    # Words of the answer may stand in it; a repr ends up in logs.
    explanation: str | None = field(default=None, repr=False)
    spans: tuple[Span, ...] = ()
    coverage: Coverage | None = None
    latency_ms: float | None = None

    @classmethod
    def _parse(cls, data: _Object) -> Self:
        metrics = {k: MetricResult._parse(v) for k, v in data.members("metrics").items()}
        by_metric = any(metric.flagged for metric in metrics.values())
        coverage = data.take("coverage", dict, type(None), default=None)
        return cls(
            state=data.one_of("state", State),
            flagged=data.take("flagged", bool, default=by_metric),
            metrics=metrics,
            reason=data.take("reason", str, type(None), default=None),
            action=None if data.data.get("action") is None else data.one_of("action", Action),
            explanation=data.take("explanation", str, type(None), default=None),
            spans=tuple(Span._parse(item) for item in data.each("spans")),
            coverage=None if coverage is None else Coverage._parse(data.inner("coverage")),
            latency_ms=data.take("latency_ms", float, int, type(None), default=None),
        )


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds inside the service. Tokenising and inference are summed over parallel rows."""

    queue: float
    tokenize: float
    inference: float
    total: float

    @classmethod
    def _parse(cls, data: _Object) -> Self:
        return cls(*(data.take(k, float, int) for k in ("queue", "tokenize", "inference", "total")))


@dataclass(frozen=True, slots=True)
class PolicyRef:
    """The policy that decided."""

    name: str
    version: str
    sha256: str

    @classmethod
    def _parse(cls, data: _Object) -> Self:
        return cls(*(data.take(key, str) for key in ("name", "version", "sha256")))


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The verdict on one answer.

    Attributes:
        decision: `flag` if a threshold or a rule of the policy says so, else `pass`.
        action: What the policy asks the application to do.
        status: `partial` if the deadline left detectors unevaluated; their `state` names them.
        calibrated: Whether every threshold used was fitted on labelled data and none overridden.
        summary: What happens to the answer and why, in one sentence; None from a service that does
            not say.
        flagged: Names of the detectors that count towards a `flag`, the worst first. From a service
            that does not order them, in the reply's order.
        redacted_answer: Present if asked for with `include=["redacted_answer"]`.
        raw: The reply as it came, with keys this version does not know.
    """

    request_id: str
    decision: Decision
    action: Action
    status: Status
    calibrated: bool
    policy: PolicyRef
    detectors: Mapping[str, DetectorResult]
    timings: Timings
    summary: str | None = None
    flagged: tuple[str, ...] = ()
    # Both may hold text of the answer; a repr ends up in logs.
    redacted_answer: str | None = field(default=None, repr=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def passed(self) -> bool:
        """True if the decision is `pass`."""
        return self.decision == "pass"

    @property
    def flagged_detectors(self) -> tuple[str, ...]:
        """Names of the detectors that count towards a `flag`, in the reply's order."""
        return tuple(name for name, detector in self.detectors.items() if detector.flagged)

    @classmethod
    def from_json(cls, raw: Any) -> Self:
        """Return a reply of `/v1/check`, or a line of `guardrail check`, as an object.

        Raises:
            UnexpectedReply: If a mandatory key is missing or a value has another type. The message
                names the key and never repeats the value.
        """
        try:
            return cls._parse(_object(raw, "reply"))
        except _MalformedError as error:
            raise UnexpectedReply(str(error), status=200, body=raw) from None

    @classmethod
    def _parse(cls, data: _Object) -> Self:
        detectors = {
            name: DetectorResult._parse(value) for name, value in data.members("detectors").items()
        }
        flagged = data.names("flagged")
        if flagged is None:
            flagged = tuple(name for name, detector in detectors.items() if detector.flagged)
        return cls(
            request_id=data.take("request_id", str),
            decision=data.one_of("decision", Decision),
            action=data.one_of("action", Action),
            status=data.one_of("status", Status),
            calibrated=data.take("calibrated", bool),
            policy=PolicyRef._parse(data.inner("policy")),
            detectors=detectors,
            timings=Timings._parse(data.inner("timings_ms")),
            summary=data.take("summary", str, type(None), default=None),
            flagged=flagged,
            redacted_answer=data.take("redacted_answer", str, type(None), default=None),
            raw=data.data,
        )


@dataclass(frozen=True, slots=True)
class StreamFinal:
    """The last word on a stream.

    Attributes:
        reason: `complete`, or `blocked`: what was still held must not be shown.
        processed_index: Code points of the answer, as it was written, that were decided.
        checked: The part of the answer that `result` is about, [start, end).
        result: On a complete stream the verdict on the whole answer; on a blocked one what
            stopped it.
    """

    reason: Literal["complete", "blocked"]
    processed_index: int
    checked: tuple[int, int]
    result: CheckResult

    @classmethod
    def from_json(cls, raw: Any) -> Self:
        """Return a `final` record as an object.

        Raises:
            UnexpectedReply: If a mandatory key is missing or a value has another type.
        """
        try:
            data = _object(raw, "final")
            return cls(
                data.one_of("reason", Literal["complete", "blocked"]),
                data.take("processed_index", int),
                _pair(data, "checked"),
                CheckResult._parse(data.inner("result")),
            )
        except _MalformedError as error:
            raise UnexpectedReply(str(error), status=200, body=raw) from None


@dataclass(frozen=True, slots=True)
class StreamPart:
    """A part of the answer that may be shown.

    Attributes:
        text: What to show, findings replaced; may hold text of the answer, so not in the repr.
        processed_index: Where the part ends in the answer as it was written, in code points.
        flagged: Detectors that flagged it and let it pass.
    """

    text: str = field(repr=False)
    processed_index: int
    flagged: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, raw: Any) -> Self:
        """Return a `release` record as an object.

        Raises:
            UnexpectedReply: If a mandatory key is missing or a value has another type.
        """
        try:
            data = _object(raw, "release")
            flagged = data.take("flagged", list, default=[])
            return cls(data.take("text", str), data.take("processed_index", int), tuple(flagged))
        except _MalformedError as error:
            raise UnexpectedReply(str(error), status=200, body=raw) from None


@dataclass(frozen=True, slots=True)
class CheckError:
    """An item that could not be judged; `check_many` returns it in place of a verdict."""

    code: str
    message: str
    request_id: str | None = None

    @property
    def passed(self) -> Literal[False]:
        """False: an error is never a pass."""
        return False

    @classmethod
    def from_json(cls, raw: Any) -> Self:
        """Return the `error` object of a batch item.

        Raises:
            UnexpectedReply: If it has no code or no message.
        """
        try:
            data = _object(raw, "error")
            identity = data.take("request_id", str, type(None), default=None)
            return cls(data.take("code", str), data.take("message", str), identity)
        except _MalformedError as error:
            raise UnexpectedReply(str(error), status=200, body=raw) from None
