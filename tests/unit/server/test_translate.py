"""Bodies to samples and verdicts to replies, without HTTP."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.errors import InputError, LimitExceeded, MalformedInput
from guardrail_service.server.schemas import CheckReply
from guardrail_service.server.translate import (
    MOST_VALUES,
    SMALL_BODY,
    decode,
    parse_check,
    to_overrides,
    to_reply,
    to_sample,
)
from guardrail_service.settings import Limits
from guardrail_service.types import (
    Action,
    Coverage,
    DetectorResult,
    Direction,
    Evidence,
    MetricResult,
    Passage,
    PolicyRef,
    Sample,
    Span,
    State,
    Timings,
    Verdict,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(JSON)
def test_json_is_read_as_the_standard_library_reads_it(value: Any) -> None:
    """Strictness only refuses; it changes no value."""
    assert decode(json.dumps(value).encode()) == value


@given(JSON)
def test_a_large_text_is_read_like_a_small_one(value: Any) -> None:
    """Another reader of the standard library, which lets other threads run between two values."""
    assert decode(json.dumps(value).encode() + b" " * SMALL_BODY) == value


@pytest.mark.parametrize(
    "body", [b"NaN", b"[1,]", b'{"a": }', b'"\xff"', b"[" * 5_000, b"1" * 5_000, b'"a', b"{} x"]
)
def test_a_large_text_is_refused_like_a_small_one(body: bytes) -> None:
    """In the same words."""
    found = []
    for padding in (b"", b" " * SMALL_BODY):
        with pytest.raises(MalformedInput) as caught:
            decode(body + padding)
        found.append(str(caught.value))
    assert found[0] == found[1]


def test_a_text_has_a_bounded_number_of_values() -> None:
    """However deep they lie; characters of a text are none."""
    most = MOST_VALUES - 1
    assert len(decode(json.dumps([1] * most).encode())) == most
    nested = json.dumps([[1] * 1_000] * (MOST_VALUES // 1_000)).encode()
    with pytest.raises(MalformedInput, match=f"more than {MOST_VALUES} values"):
        decode(nested)
    assert decode(json.dumps([",[{" * MOST_VALUES]).encode())


@given(st.binary(max_size=50))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """No other exception leaves the reader."""
    with suppress(MalformedInput):
        decode(body)


@pytest.mark.parametrize(
    "body",
    [
        b"NaN",
        b"-Infinity",
        b'{"a": Infinity}',
        b"1" * 5_000,
        b"[" * 100_000,
        '{"a": 1}'.encode("utf-16"),
        b"\xed\xa0\x80",
        b"",
        b"{} {}",
        b"{'a': 1}",
    ],
)
def test_what_is_no_json_in_utf_8_is_refused(body: bytes) -> None:
    """Also what the standard library would let through."""
    with pytest.raises(MalformedInput, match="line: "):
        decode(body, "line")


@given(JSON)
def test_any_value_is_a_request_or_an_input_error(value: Any) -> None:
    """Fields of any name and type; nothing else is raised."""
    for body in (value, {"answer": "a", "detectors": value}, {"answer": "a", "contexts": [value]}):
        with suppress(InputError):
            parse_check(body)


@given(st.text(min_size=1))
def test_a_name_is_repeated_only_if_it_could_be_ours(name: str) -> None:
    """At most 40 ASCII letters and underscores."""
    if name in ("answer", "id", "question", "contexts", "policy", "detectors", "deadline_ms",
                "mode", "include"):  # fmt: skip
        return
    with pytest.raises(InputError) as caught:
        parse_check({"answer": "a", name: 1})
    plain = name.isascii() and name.replace("_", "").isalpha() and len(name) <= 40
    assert (repr(name) in str(caught.value)) is plain


def test_passages_are_texts_or_objects_in_order() -> None:
    """With the caller's ids where there are some."""
    request = parse_check({"answer": "a", "contexts": ["one", {"text": "two", "id": "x"}]})
    assert to_sample(request, Limits()) == Sample(
        "a", None, (Passage("one"), Passage("two", "x")), None
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"answer": "a" * 11}, "answer: found 11 characters; expected at most 10"),
        ({"question": "a" * 6}, "question: found 6 characters; expected at most 5"),
        ({"contexts": ["a"] * 4}, "contexts: found 4 passages; expected at most 3"),
        ({"contexts": ["a" * 4] * 2}, "contexts: found 8 characters in all; expected at most 7"),
    ],
)
def test_a_limit_is_exact_and_names_both_numbers(body: dict[str, Any], message: str) -> None:
    """Characters are code points, whatever they take in UTF-8."""
    limits = Limits(answer_chars=10, question_chars=5, contexts=3, context_chars=7)
    with pytest.raises(LimitExceeded) as caught:
        to_sample(parse_check({"answer": "a", **body}), limits)
    assert str(caught.value) == message
    fits = {"answer": "👍" * 10, "question": "👍" * 5, "contexts": ["👍👍👍", "👍", "👍👍👍"]}
    assert to_sample(parse_check(fits), limits).question == "👍" * 5


@pytest.mark.parametrize(
    "change",
    [
        {"answer": "a\ud800"},
        {"question": "\udfff"},
        {"contexts": ["\ud800"]},
        {"contexts": [{"text": "\ud800"}]},
        {"contexts": [{"text": "a", "id": "\ud800"}]},
        {"id": "\ud800"},
        {"policy": "\ud800"},
        {"detectors": {"x": {"parameters": {"\ud800": 1}}}},
        {"detectors": {"x": {"parameters": {"deep": [{"a": "\udc00"}]}}}},
        {"\ud800": 1},
    ],
)
def test_a_lone_surrogate_is_refused_wherever_it_is(change: dict[str, Any]) -> None:
    """It has no UTF-8 form, so a reply could not even say what was wrong with it."""
    with pytest.raises(InputError, match="lone surrogate") as caught:
        to_sample(parse_check({"answer": "a", **change}), Limits())
    str(caught.value).encode()


def test_paired_surrogates_are_one_character() -> None:
    """JSON escapes them in pairs; that is valid Unicode."""
    request = parse_check(decode(b'{"answer": "\\ud83d\\udc4d"}'))
    assert to_sample(request, Limits()).answer == "👍"


@pytest.mark.parametrize("answer", ["", " ", "\n\t", "\0", "\u200b\ufeff", "\u00a0\u2003", "\x7f"])
def test_an_answer_that_shows_nothing_is_refused(answer: str) -> None:
    """Spaces, controls and zero-width characters."""
    with pytest.raises(InputError, match="answer: found no visible character"):
        parse_check({"answer": answer})


@pytest.mark.parametrize("answer", ["a", ".", "0", "水", "👍", "\0a", "\ue000"])
def test_an_answer_that_shows_something_is_taken(answer: str) -> None:
    """One character is enough."""
    assert parse_check({"answer": answer}).answer == answer


VERDICT = Verdict(
    decision="flag",
    action=Action.REDACT,
    status="complete",
    calibrated=True,
    policy=PolicyRef("p", "2", "0" * 64),
    detectors={
        "risk": DetectorResult(
            state=State.EVALUATED,
            reason=None,
            flagged=True,
            metrics={"good": MetricResult(0.1, Direction.HIGHER, 0.5, True, True)},
            spans=(
                Span(0, 4, "bad", 0.1, "good", (Evidence(1, 2, 3, 0.1),), "[X]", {"kind": "a"}),
            ),
            coverage=Coverage((4, 5), (6, 7)),
            latency_ms=1.5,
            action=Action.REDACT,
            explanation="risk: good is 0.1.",
        ),
        "other": DetectorResult(State.NOT_APPLICABLE, "missing_input", False, {}, (), None),
    },
    timings=Timings(1.0, 2.0, 3.0, 4.0),
    redacted_answer="[X] answer",
    summary="Shown with parts replaced: risk flagged it.",
    flagged=("risk",),
)


def reply(**body: Any) -> CheckReply:
    """Return the reply to a request with these fields."""
    return to_reply(VERDICT, parse_check({"answer": "some answer", **body}), "id-1")


def test_a_verdict_is_told_whole() -> None:
    """Every number under its documented name."""
    found = reply(id="mine", include=["spans", "evidence", "redacted_answer"])
    assert (found.request_id, found.id) == ("id-1", "mine")
    assert (found.decision, found.action, found.status) == ("flag", "redact", "complete")
    assert found.policy.model_dump() == {"name": "p", "version": "2", "sha256": "0" * 64}
    risk = found.detectors["risk"]
    assert risk.model_dump(mode="json") == {
        "state": "evaluated",
        "reason": None,
        "flagged": True,
        "action": "redact",
        "explanation": "risk: good is 0.1.",
        "metrics": {
            "good": {
                "score": 0.1,
                "threshold": 0.5,
                "direction": "higher_is_better",
                "flagged": True,
                "calibrated": True,
            }
        },
        "spans": [
            {
                "start": 0,
                "end": 4,
                "label": "bad",
                "score": 0.1,
                "evidence": [{"context": 1, "start": 2, "end": 3, "score": 0.1}],
                "attributes": {"kind": "a"},
            }
        ],
        "coverage": {"answer_chars": [4, 5], "context_chars": [6, 7]},
        "latency_ms": 1.5,
    }
    assert found.flagged == ["risk"]
    assert found.summary.startswith("Shown with parts replaced")
    assert found.detectors["other"].reason == "missing_input"
    assert found.detectors["other"].coverage is None
    assert found.redacted_answer == "[X] answer"
    assert found.timings_ms.total == 4.0


def test_a_reply_holds_what_was_asked_for() -> None:
    """Spans and evidence by default; a replacement is never shown."""
    assert reply().redacted_answer is None
    assert reply().detectors["risk"].spans[0].evidence
    assert not reply(include=["spans"]).detectors["risk"].spans[0].evidence
    assert not reply(include=[]).detectors["risk"].spans
    assert not reply(include=["evidence"]).detectors["risk"].spans
    assert "[X]" not in reply().model_dump_json()


def test_overrides_keep_the_detectors_names() -> None:
    """As they were sent; the guard knows which exist."""
    request = parse_check(
        {"answer": "a", "detectors": {"x": {"thresholds": {"m": 0.5}, "parameters": {"p": [1]}}}}
    )
    override = to_overrides(request)["x"]
    assert (override.thresholds, override.parameters) == ({"m": 0.5}, {"p": [1]})
