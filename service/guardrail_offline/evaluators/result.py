"""The result of one evaluator on one case: a number per metric, or why there is none."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from guardrail_service.types import NoValue, State

Details = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Score:
    """One metric of one case: a finite or infinite number, or why there is none.

    Raises:
        ValueError: If there is both a number and a reason for its absence, or neither, or NaN.
    """

    value: float | None = None
    why_missing: NoValue | None = None

    def __post_init__(self) -> None:
        """Refuse a score that is both a number and missing, or neither."""
        if (self.value is None) is (self.why_missing is None):
            raise ValueError("a score is a number or says why there is none")
        if self.value != self.value:
            raise ValueError("a score is not NaN")

    @property
    def state(self) -> State:
        """Return `evaluated`, or the state that says why there is no number."""
        return State.EVALUATED if self.why_missing is None else self.why_missing.state

    @property
    def reason(self) -> str | None:
        """Return why there is no number; None if there is one."""
        return None if self.why_missing is None else self.why_missing.reason

    @classmethod
    def missing(cls, state: State, reason: str) -> Score:
        """Return "no number", with its state and reason."""
        return cls(None, NoValue(state, reason))


@dataclass(frozen=True, slots=True)
class Result:
    """One evaluator on one case.

    Attributes:
        scores: Every metric of the evaluator.
        spans: Parts of the answer with a score each, as plain JSON values: start, end, score,
            label, metric and context (index of the passage compared with).
        details: What aggregation over cases needs, such as the two labels of a classified case.
    """

    scores: Mapping[str, Score]
    spans: Sequence[Details] = ()
    details: Details = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        values: Mapping[str, float],
        spans: Sequence[Details] = (),
        details: Details | None = None,
    ) -> Result:
        """Return a result in which every metric has a number."""
        scores = {key: Score(value) for key, value in values.items()}
        return cls(scores, spans, details or {})

    @classmethod
    def missing(cls, keys: Iterable[str], state: State, reason: str) -> Result:
        """Return a result in which no metric has a number, for one reason."""
        return cls.without(keys, NoValue(state, reason))

    @classmethod
    def without(cls, keys: Iterable[str], why: NoValue) -> Result:
        """Return a result in which no metric has a number, for one reason."""
        missing = Score(None, why)
        return cls(dict.fromkeys(keys, missing))


def result_json(result: Result) -> dict[str, Any]:
    """Return a result as plain JSON values; `result_from_json` reads it back."""
    scores = {
        key: {"value": json_number(s.value), "state": s.state.value, "reason": s.reason}
        for key, s in result.scores.items()
    }
    return {"scores": scores, "spans": list(result.spans), "details": dict(result.details)}


def result_from_json(record: Mapping[str, Any]) -> Result:
    """Return the result that `result_json` wrote."""
    scores = {key: score_from_json(s["value"], s) for key, s in record["scores"].items()}
    return Result(scores, record["spans"], record["details"])


def dumps(value: Any, *, compact: bool = False) -> str:
    """Return strict JSON on one line, readable where its text can be written as UTF-8."""
    separators = (",", ":") if compact else None
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=separators)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, which JSON can only hold escaped
        return json.dumps(value, allow_nan=False, separators=separators)
    return text


def json_number(value: float | None) -> float | str | None:
    """Return a number that strict JSON can hold; the infinite ones become text."""
    if value is None or math.isfinite(value):
        return value
    return "Infinity" if value > 0 else "-Infinity"


def score_from_json(value: float | str | None, why: Mapping[str, Any]) -> Score:
    """Return a value that was written as JSON, or what its row says about its absence."""
    if value is None:
        return _known_missing(why["state"], why["reason"])
    return Score(float(value))


@lru_cache(maxsize=256)
def _known_missing(state: str, reason: str) -> Score:
    return Score.missing(State(state), reason)
