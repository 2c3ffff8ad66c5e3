"""The shapes of requests and replies. Unknown keys are refused; nothing is coerced."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

from guardrail_service.types import Decision, Mode, State, Status

Include = Literal["spans", "evidence", "redacted_answer"]
ActionName = Literal["allow", "flag", "redact", "block"]

_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
"""Unicode categories of characters that show nothing: controls, zero-width, spaces."""

EXAMPLE_REQUEST: dict[str, Any] = {
    "question": "How many days of paid leave do new employees get?",
    "answer": "New employees get 25 days of paid leave per year.",
    "contexts": [
        {"id": "hr-7#3", "text": "Paid leave: every new employee receives 25 days per year."}
    ],
    "policy": "default",
}


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class PassageIn(_Request):
    """One retrieved passage with the caller's own id."""

    text: str = Field(description="The passage.")
    id: str | None = Field(None, max_length=256, description="The caller's name for it.")


_TEXT, _PASSAGE = "<a passage's text>", "<a passage>"
TAGS = frozenset({_TEXT, _PASSAGE})
"""Stand between field names in validation errors and are none."""


def _passage_kind(value: object) -> str:
    return _TEXT if isinstance(value, str) else _PASSAGE


ContextIn = Annotated[
    Annotated[str, Tag(_TEXT)] | Annotated[PassageIn, Tag(_PASSAGE)],
    Discriminator(_passage_kind),
]


class OverrideIn(_Request):
    """What this request changes about one detector, as far as the policy lets it."""

    thresholds: dict[str, float] = Field({}, description="Thresholds by metric key.")
    parameters: dict[str, Any] = Field({}, description="The detector's parameters.")


class CheckRequest(_Request):
    """One answer to judge, with the question and the passages it came from."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_REQUEST]})

    id: str | None = Field(None, max_length=256, description="The caller's own id; not logged.")
    question: str | None = Field(None, description="What the user asked.")
    answer: str = Field(description="The answer to judge; at least one visible character.")
    contexts: list[ContextIn] = Field(
        [], description="The passages the answer came from: texts, or objects with id and text."
    )
    policy: str | None = Field(None, max_length=64, description="A policy; the default if unset.")
    detectors: dict[str, OverrideIn] = Field({}, description="Changes by detector id.")
    deadline_ms: int | None = Field(
        None, gt=0, le=600_000, description="Reply after this long with what is known by then."
    )
    mode: Mode = Field("enforce", description="`shadow` reports the decision and always allows.")
    include: list[Include] = Field(
        ["spans", "evidence"], description="What the reply holds beside scores."
    )

    @field_validator("answer")
    @classmethod
    def _has_text(cls, value: str) -> str:
        if all(unicodedata.category(character) in _INVISIBLE for character in value):
            raise ValueError("found no visible character; expected at least one")
        return value


class BatchRequest(_Request):
    """Several answers; each gets its own reply or error, in the same order."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [EXAMPLE_REQUEST]}]})

    items: list[Any] = Field(min_length=1, description="Bodies of `/v1/check`.")


class EvidenceOut(BaseModel):
    """The part of a passage a span was compared with; code points [start, end)."""

    context: int = Field(description="Index of the passage in the request.")
    start: int
    end: int
    score: float


class SpanOut(BaseModel):
    """A part of the answer a detector points at; code points [start, end)."""

    start: int
    end: int
    label: str
    score: float | None = None
    evidence: list[EvidenceOut] = []
    attributes: dict[str, str | int | float | bool] = {}


class MetricOut(BaseModel):
    """One score beside its threshold."""

    score: float
    threshold: float | None = Field(description="null: reported, never gates.")
    direction: Literal["higher_is_better", "lower_is_better"]
    flagged: bool
    calibrated: bool


class CoverageOut(BaseModel):
    """Code points read, out of code points submitted."""

    answer_chars: tuple[int, int]
    context_chars: tuple[int, int]


class DetectorOut(BaseModel):
    """One detector's part of the reply."""

    state: State
    reason: str | None = Field(description="Why there is no score, for every other state.")
    flagged: bool = Field(description="Whether this detector makes the decision a flag.")
    metrics: dict[str, MetricOut]
    spans: list[SpanOut]
    coverage: CoverageOut | None
    latency_ms: float = Field(description="From the start of the check to this outcome.")


class PolicyOut(BaseModel):
    """Which policy decided."""

    name: str
    version: str
    sha256: str


class TimingsOut(BaseModel):
    """Milliseconds; tokenize and inference are sums over rows that run in parallel."""

    queue: float
    tokenize: float
    inference: float
    total: float


class CheckReply(BaseModel):
    """The decision on one answer and everything it rests on."""

    request_id: str
    id: str | None = None
    decision: Decision
    action: ActionName
    status: Status
    calibrated: bool = Field(description="Whether every gating threshold was fitted on labels.")
    policy: PolicyOut
    detectors: dict[str, DetectorOut]
    redacted_answer: str | None = None
    timings_ms: TimingsOut


class ErrorBody(BaseModel):
    """What went wrong; never contains submitted text."""

    code: str
    message: str
    request_id: str


class ErrorReply(BaseModel):
    """Every reply that is not a result."""

    error: ErrorBody


class BatchReply(BaseModel):
    """A reply or an error per item, in the order of the request."""

    results: list[CheckReply | ErrorReply]


class PoliciesReply(BaseModel):
    """The loaded policies, the default one first."""

    default: str
    policies: list[dict[str, Any]]


class DetectorsReply(BaseModel):
    """Every published detector and whether this service can run it."""

    detectors: list[dict[str, Any]]


class InfoReply(BaseModel):
    """What runs here: versions, models, fingerprints, limits."""

    version: str
    runtime: dict[str, str]
    pack: dict[str, Any]
    fingerprints: dict[str, str]
    golden: dict[str, dict[str, float]]
    limits: dict[str, int]
    workers: int


class ReadyReply(BaseModel):
    """Whether the service can judge right now."""

    ready: bool
    detail: dict[str, str]
