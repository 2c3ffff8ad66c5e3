"""Request bodies to samples, verdicts to replies. Shared by the API and the command line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from email.message import Message
from json.decoder import JSONArray, JSONObject  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any, NoReturn

from pydantic import ValidationError

from guardrail_service.errors import InputError, LimitExceeded, MalformedInput
from guardrail_service.guard.overrides import Override
from guardrail_service.server.schemas import (
    TAGS,
    CheckReply,
    CheckRequest,
    ContextIn,
    CoverageOut,
    DetectorOut,
    EvidenceOut,
    Include,
    MetricOut,
    PassageIn,
    PolicyOut,
    SpanOut,
    TimingsOut,
)
from guardrail_service.settings import Limits
from guardrail_service.types import (
    Action,
    Coverage,
    DetectorResult,
    Passage,
    Sample,
    Span,
    Verdict,
)

_UNICODE = "expected valid Unicode text"
_NOT_UNICODE = f"found a lone surrogate; {_UNICODE}"
_JSON_TYPES = {
    "dict": "an object",
    "list": "a list",
    "str": "a text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "NoneType": "null",
}


_ACTIONS = {action: action.label for action in Action}
SMALL_BODY = 32_768
"""Bytes of JSON that are read on the event loop: under a millisecond. More goes to a thread."""
MOST_VALUES = 200_000
"""Values in one JSON text: a batch of a hundred samples with two hundred passages each has a fifth
of them."""
_WHOLE_OBJECT = frozenset({"model_type", "model_attributes_type", "dict_type"})


def decode(body: bytes, field: str = "body") -> Any:
    """Return the value of a JSON text, read strictly: UTF-8, no NaN, bounded depth and numbers.

    Raises:
        MalformedInput: If it is anything else.
    """
    expected = "expected a JSON object in UTF-8"
    try:
        text = body.decode("utf-8-sig")
        if len(body) > SMALL_BODY:
            return _ValueByValue().decode(text)
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_each_key_once)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise MalformedInput(f"not JSON ({error.msg}, {where}); {expected}", field) from None
    except UnicodeDecodeError as error:
        raise MalformedInput(f"not UTF-8 at byte {error.start}; {expected}", field) from None
    except _TooManyValues:
        found = f"found more than {MOST_VALUES} values"
        raise MalformedInput(f"{found}; {expected}", field) from None
    except _RepeatedKey as error:
        raise MalformedInput(
            f"found {error} twice in one object; expected it once", field
        ) from None
    except RecursionError:
        raise MalformedInput(f"nested too deeply; {expected}", field) from None
    except ValueError:
        found = "found NaN, Infinity or a number of too many digits"
        raise MalformedInput(f"{found}; {expected}", field) from None


def _refuse_constant(_name: str) -> NoReturn:
    raise ValueError


class _RepeatedKey(Exception):
    """Two readers of one text would take different values."""


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise _RepeatedKey(f"the key {twice!r}" if _is_plain_name(twice) else "a key")
    return found


def check_charset(content_type: str) -> None:
    """Raise MalformedInput if a Content-Type says that the text is not in UTF-8."""
    message = Message()
    message["Content-Type"] = content_type
    charset = message.get_content_charset()
    if charset not in (None, "utf-8", "utf8", "us-ascii"):
        raise MalformedInput("found another charset in Content-Type; expected UTF-8", "body")


class _TooManyValues(Exception):
    """More numbers, texts, lists and objects than any request needs."""


class _ValueByValue(json.JSONDecoder):
    """Reads one text as `json.loads` does, and lets other threads run between two values.

    The scanner in C keeps the interpreter's lock from the first byte to the last: 4 MB of numbers
    would stop the event loop for a tenth of a second, although a thread reads them.
    """

    def __init__(self) -> None:
        super().__init__(parse_constant=_refuse_constant, object_pairs_hook=_each_key_once)
        self._left = MOST_VALUES
        self.parse_array = lambda at, scan: JSONArray(at, self._counted(scan))
        self.parse_object = lambda at, strict, scan, *rest: JSONObject(
            at, strict, self._counted(scan), *rest
        )
        self.scan_once = py_make_scanner(self)

    def _counted(self, scan: Callable[[str, int], tuple[Any, int]]) -> Callable[..., Any]:
        def one(text: str, start: int) -> tuple[Any, int]:
            self._left -= 1
            if self._left < 0:
                raise _TooManyValues
            return scan(text, start)

        return one


def parse_check(body: object) -> CheckRequest:
    """Return a checked request from decoded JSON.

    Raises:
        InputError: Naming the first field that does not fit, without repeating its value.
    """
    try:
        return CheckRequest.model_validate(body)
    except ValidationError as error:
        raise validation_error(error.errors()[0]) from None


def validation_error(first: Mapping[str, Any]) -> InputError:
    """Return one pydantic error as ours: field, what was found, what was expected."""
    loc = list(first["loc"])
    if loc[:1] == ["contexts"] and loc[2:3] and loc[2] in TAGS:
        del loc[2]
    if first["type"] == "extra_forbidden":
        field = _path(loc[:-1])
        name = f"the field {loc[-1]!r}" if _is_plain_name(loc[-1]) else "a field"
        return InputError(f"{name} is not known here; expected only documented fields", field)
    return InputError(_expectation(first), _path(loc))


def _expectation(error: Mapping[str, Any]) -> str:
    if error["type"] == "missing":
        return "missing; expected a value"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] == "string_unicode":
        return _NOT_UNICODE
    found = _JSON_TYPES.get(type(error["input"]).__name__, "something else")
    if error["type"] in _WHOLE_OBJECT:
        is_passage = tuple(error["loc"][:1]) == ("contexts",)
        return f"found {found}; expected {'a text or an object' if is_passage else 'an object'}"
    return f"found {found}; expected: {error['msg']}"


def _path(loc: list[Any]) -> str:
    """Return a dotted path; names only the caller knows are not repeated unless they are plain."""
    return ".".join(str(p) if isinstance(p, int) or _is_plain_name(p) else "(key)" for p in loc)


def _is_plain_name(part: object) -> bool:
    text = str(part)
    return text.isascii() and text.replace("_", "").isalpha() and len(text) <= 40


def to_sample(request: CheckRequest, limits: Limits) -> Sample:
    """Return the sample of a request.

    Raises:
        LimitExceeded: Naming the field, its size and the limit.
        InputError: If a text is not valid Unicode.
    """
    for field, text in (("answer", request.answer), ("question", request.question or "")):
        check_characters(field, text)
    contexts = _passages(request.contexts)
    for override in request.detectors.values():
        check_characters("detectors", json.dumps(override.parameters, ensure_ascii=False))
    _limit("answer", len(request.answer), limits.answer_chars, "characters")
    _limit("question", len(request.question or ""), limits.question_chars, "characters")
    _limit_passages(contexts, limits)
    return Sample(request.answer, request.question, contexts, request.id)


def to_passages(contexts: Sequence[ContextIn], limits: Limits) -> tuple[Passage, ...]:
    """Return the passages of a request.

    Raises:
        LimitExceeded: Naming the field, its size and the limit.
        InputError: If a text is not valid Unicode.
    """
    passages = _passages(contexts)
    _limit_passages(passages, limits)
    return passages


def _passages(contexts: Sequence[ContextIn]) -> tuple[Passage, ...]:
    passages = tuple(
        Passage(c.text, c.id) if isinstance(c, PassageIn) else Passage(c) for c in contexts
    )
    for passage in passages:
        check_characters("contexts", passage.text)
    return passages


def _limit_passages(passages: Sequence[Passage], limits: Limits) -> None:
    characters = sum(len(passage.text) for passage in passages)
    _limit("contexts", len(passages), limits.contexts, "passages")
    _limit("contexts", characters, limits.context_chars, "characters in all")


def request_size(request: CheckRequest) -> int:
    """Return the code points of a request, as `guard.size` counts those of a sample."""
    passages = sum(len(c if isinstance(c, str) else c.text) for c in request.contexts)
    return len(request.answer) + len(request.question or "") + passages


def check_characters(field: str, text: str) -> None:
    """Raise InputError if a text has half of a surrogate pair: it is not Unicode text."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        where = "" if field == "detectors" else f" at character {error.start}"
        raise InputError(f"found a lone surrogate{where}; {_UNICODE}", field) from None


def _limit(field: str, found: int, allowed: int, unit: str) -> None:
    if found > allowed:
        raise LimitExceeded(f"found {found} {unit}; expected at most {allowed}", field)


def to_overrides(request: CheckRequest) -> dict[str, Override]:
    """Return the changes a request makes, by detector id."""
    return {
        name: Override(override.thresholds, override.parameters)
        for name, override in request.detectors.items()
    }


def to_reply(verdict: Verdict, request: CheckRequest, request_id: str) -> CheckReply:
    """Return a verdict as the reply to its request."""
    include = set(request.include)
    policy = verdict.policy
    return CheckReply(
        request_id=request_id,
        id=request.id,
        decision=verdict.decision,
        action=_ACTIONS[verdict.action],
        summary=verdict.summary,
        flagged=list(verdict.flagged),
        status=verdict.status,
        calibrated=verdict.calibrated,
        policy=PolicyOut(name=policy.name, version=policy.version, sha256=policy.sha256),
        detectors={name: to_detector(r, include) for name, r in verdict.detectors.items()},
        redacted_answer=verdict.redacted_answer if "redacted_answer" in include else None,
        timings_ms=TimingsOut(
            queue=verdict.timings.queue,
            tokenize=verdict.timings.tokenize,
            inference=verdict.timings.inference,
            total=verdict.timings.total,
        ),
    )


def to_detector(result: DetectorResult, include: set[Include]) -> DetectorOut:
    """Return one detector's result as a reply has it."""
    spans = result.spans if "spans" in include else ()
    return DetectorOut(
        state=result.state,
        reason=result.reason,
        flagged=result.flagged,
        action=_ACTIONS[result.action],
        explanation=result.explanation,
        metrics={
            key: MetricOut(
                score=metric.score,
                threshold=metric.threshold,
                direction=metric.direction.value,
                flagged=metric.flagged,
                calibrated=metric.calibrated,
            )
            for key, metric in result.metrics.items()
        },
        spans=[_span(span, evidence="evidence" in include) for span in spans],
        coverage=_coverage(result.coverage),
        latency_ms=result.latency_ms,
    )


def _span(span: Span, *, evidence: bool) -> SpanOut:
    return SpanOut(
        start=span.start,
        end=span.end,
        label=span.label,
        score=span.score,
        evidence=[
            EvidenceOut(context=e.context, start=e.start, end=e.end, score=e.score)
            for e in (span.evidence if evidence else ())
        ],
        attributes=dict(span.attributes),
    )


def _coverage(coverage: Coverage | None) -> CoverageOut | None:
    if coverage is None:
        return None
    return CoverageOut(answer_chars=coverage.answer, context_chars=coverage.contexts)
