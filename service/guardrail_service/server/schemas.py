"""The shapes of requests and replies. Unknown keys are refused; nothing is coerced."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from guardrail_service.types import Decision, Mode, State, Status

Include = Literal["spans", "evidence", "redacted_answer"]
ActionName = Literal["allow", "mark", "flag", "redact", "block"]

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


_MOST_KEYS = 40
_MOST_ENTRIES = 10_000
"""Beyond these sizes nothing is looked at: validation notes every fault before it tells the first,
40 ms for 13,000 of them and seconds for a million. The service's own limits are lower."""


def _short(most: int) -> BeforeValidator:
    """Return what refuses a list or an object of too many entries before they are read."""

    def check(value: object) -> object:
        if isinstance(value, list | dict) and len(value) > most:
            raise ValueError(f"found {len(value)} entries; expected at most {most}")
        return value

    return BeforeValidator(check)


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _has_few_keys(cls, value: object) -> object:
        if isinstance(value, dict) and len(value) > _MOST_KEYS:
            raise ValueError(f"found {len(value)} fields; expected only documented fields")
        return value


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


Contexts = Annotated[list[ContextIn], FailFast(), _short(_MOST_ENTRIES)]
Includes = Annotated[list[Include], FailFast(), _short(_MOST_KEYS)]


class OverrideIn(_Request):
    """Changes to one detector for this request, as far as the policy allows them."""

    thresholds: Annotated[dict[str, float], _short(_MOST_KEYS)] = Field(
        {}, description="Thresholds by metric key."
    )
    parameters: Annotated[dict[str, Any], _short(_MOST_KEYS)] = Field(
        {}, description="The detector's parameters."
    )


Overrides = Annotated[dict[str, OverrideIn], _short(_MOST_KEYS)]


class CheckRequest(_Request):
    """One answer to judge, with the question and the passages it came from."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_REQUEST]})

    id: str | None = Field(None, max_length=256, description="The caller's own id; not logged.")
    question: str | None = Field(None, description="What the user asked.")
    answer: str = Field(description="The answer to judge; at least one visible character.")
    contexts: Contexts = Field(
        [], description="The passages the answer came from: texts, or objects with id and text."
    )
    policy: str | None = Field(None, max_length=64, description="A policy; the default if unset.")
    detectors: Overrides = Field({}, description="Changes by detector id.")
    deadline_ms: int | None = Field(
        None, gt=0, le=600_000, description="Reply after this long with what is known by then."
    )
    mode: Mode = Field("enforce", description="`shadow` reports the decision and always allows.")
    include: Includes = Field(
        ["spans", "evidence"], description="What the reply holds beside scores."
    )

    @field_validator("answer")
    @classmethod
    def _has_text(cls, value: str) -> str:
        # Most answers begin with text. A set, because one may be a million times the same space.
        for part in (value[:64], value):
            if any(unicodedata.category(character) not in _INVISIBLE for character in set(part)):
                return value
        raise ValueError("found no visible character; expected at least one")


class BatchRequest(_Request):
    """Several answers; each gets its own reply or error, in the same order."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [EXAMPLE_REQUEST]}]})

    items: list[Any] = Field(min_length=1, description="Bodies of `/v1/check`.")


class ContextsRequest(_Request):
    """Passages to encode ahead of the answers that will come from them."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"contexts": EXAMPLE_REQUEST["contexts"]}]}
    )

    contexts: Contexts = Field(min_length=1, description="The passages, as for checks.")


class FeedbackRequest(_Request):
    """A person's word on a decision that was stored."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"request_id": "5f2c9d1e", "label": "fail"}]}
    )

    request_id: str = Field(
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z0-9_.-]+$",
        description="That of the reply, also in `X-Request-Id`.",
    )
    label: Literal["pass", "fail", "abstain"] = Field(
        description="The answer may be shown, may not, or this person cannot tell."
    )
    comment: str | None = Field(
        None, max_length=10_000, description="Why; kept as texts are, or not at all."
    )
    item: int | None = Field(
        None, ge=0, le=100_000, description="Place in the batch, from 0; needed for several items."
    )
    metric: str | None = Field(
        None,
        max_length=128,
        pattern=r"^[^\x00-\x1F\x7F]+$",
        description="The metric it is about, `detector.metric`; unset: all.",
    )


class StreamRequest(_Request):
    """The first line of a stream: everything about the answer but its text."""

    id: str | None = Field(None, max_length=256, description="The caller's own id; not logged.")
    question: str | None = Field(None, description="What the user asked.")
    contexts: Contexts = Field([], description="The passages, as for `/v1/check`.")
    policy: str | None = Field(None, max_length=64, description="A policy; the default if unset.")
    detectors: Overrides = Field({}, description="Changes by detector id.")
    deadline_ms: int | None = Field(
        None, gt=0, le=600_000, description="For the verdict on the whole answer."
    )
    sentence_deadline_ms: int | None = Field(
        None, gt=0, le=600_000, description="For judging one part before it leaves."
    )
    stop_on: Literal["block", "flag"] = Field(
        "block", description="The mildest action that ends the stream."
    )
    mode: Mode = Field("enforce", description="`shadow` lets everything pass as it is.")
    include: Includes = Field(["spans", "evidence"], description="As for `/v1/check`.")

    def whole(self, answer: str) -> dict[str, Any]:
        """Return the body of `/v1/check` for an answer of this stream."""
        own = self.model_dump(exclude={"sentence_deadline_ms", "stop_on"}, exclude_unset=True)
        return {**own, "answer": answer}


class StreamPiece(_Request):
    """Every later line: text as the model wrote it, or the word that it is done."""

    text: str = ""
    end: bool = False


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
    action: ActionName = Field(description="What this detector alone asks for.")
    explanation: str | None = Field(
        description="Why it flagged or could not judge, with places; null if it did neither."
    )
    metrics: dict[str, MetricOut]
    spans: list[SpanOut]
    coverage: CoverageOut | None
    latency_ms: float = Field(description="From the start of the check to this outcome.")


class PolicyOut(BaseModel):
    """The policy that decided."""

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
    summary: str = Field(description="What happens to the answer and why, in one sentence.")
    flagged: list[str] = Field(description="Detectors that flagged, the worst first.")
    status: Status
    calibrated: bool = Field(description="Whether every gating threshold was fitted on labels.")
    policy: PolicyOut
    detectors: dict[str, DetectorOut]
    redacted_answer: str | None = None
    timings_ms: TimingsOut


class ErrorBody(BaseModel):
    """An error: its code and a message, which never contains submitted text."""

    code: str
    message: str
    request_id: str


class ErrorReply(BaseModel):
    """Every reply that is not a result."""

    error: ErrorBody


class StreamStart(BaseModel):
    """The first record of a stream."""

    type: Literal["start"] = "start"
    request_id: str
    policy: PolicyOut
    in_flight: list[str] = Field(description="Detectors that judge before text leaves.")
    at_end: list[str] = Field(description="Detectors that need the whole answer.")


class StreamRelease(BaseModel):
    """A part of the answer that may be shown."""

    type: Literal["release"] = "release"
    text: str = Field(description="What to show, findings replaced.")
    start: int = Field(description="Where the part begins in the answer as it was written.")
    processed_index: int = Field(description="Where it ends; everything before is decided.")
    flagged: list[str] = Field(description="Detectors that flagged the part and let it pass.")
    judged_ms: float


class StreamFinal(BaseModel):
    """The last record; without one, nothing may be concluded about the answer."""

    type: Literal["final"] = "final"
    reason: Literal["complete", "blocked"]
    processed_index: int
    checked: tuple[int, int] = Field(description="The part that `result` is about.")
    result: CheckReply


class StreamError(BaseModel):
    """The last record where the stream could not be judged to its end; never a verdict."""

    type: Literal["error"] = "error"
    processed_index: int
    error: ErrorBody


class BatchReply(BaseModel):
    """A reply or an error per item, in the order of the request."""

    results: list[CheckReply | ErrorReply]


class ContextsReply(BaseModel):
    """The parts of some passages that are kept now. Parts kept before are left out: another caller
    may have sent them."""

    request_id: str
    sentences: int = Field(description="Distinct sentences of these passages.")
    failed: int = Field(description="Sentences that no model could read; checks will say so.")


class FeedbackReply(BaseModel):
    """Receipt for a person's word; the same word again is stored once."""

    request_id: str = Field(description="That of the decision.")
    state: Literal["stored", "known"] = Field(description="New, or said before.")


class PoliciesReply(BaseModel):
    """The loaded policies, the default one first."""

    default: str
    policies: list[dict[str, Any]]


class PolicyInForce(BaseModel):
    """One policy after a reload, and its part."""

    name: str
    version: str
    sha256: str
    part: Literal["live", "canary", "shadow"]


class ReloadReply(BaseModel):
    """The policies that are in force after a reload."""

    policies: list[PolicyInForce]


class DetectorsReply(BaseModel):
    """Every published detector and whether this service can run it."""

    detectors: list[dict[str, Any]]


class InfoReply(BaseModel):
    """Versions, models, fingerprints and limits of this service."""

    version: str
    runtime: dict[str, str]
    pack: dict[str, Any]
    fingerprints: dict[str, str]
    golden: dict[str, dict[str, float]]
    limits: dict[str, int]
    caches: dict[str, dict[str, int]]
    workers: int


class ReadyReply(BaseModel):
    """The service's readiness to judge right now."""

    ready: bool
    detail: dict[str, str]
