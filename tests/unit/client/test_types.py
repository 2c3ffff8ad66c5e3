"""Typed replies: what is mandatory, what is ignored, what a broken reply says."""

from __future__ import annotations

import copy
import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from guardrail_client import CheckError, CheckResult, Evidence, UnexpectedReply

DETECTOR = "detectors.hallucination"
METRIC = f"{DETECTOR}.metrics.hallucination"
SPAN = f"{DETECTOR}.spans.0"
EVIDENCE = f"{SPAN}.evidence.0"
MANDATORY = [
    *("request_id", "decision", "action", "status", "calibrated"),
    *("policy", "policy.name", "policy.version", "policy.sha256"),
    *("timings_ms", "timings_ms.queue", "timings_ms.tokenize", "timings_ms.inference"),
    *("timings_ms.total", "detectors", f"{DETECTOR}.state", f"{DETECTOR}.metrics"),
    *(f"{METRIC}.{key}" for key in ("score", "threshold", "direction", "flagged", "calibrated")),
    *(f"{SPAN}.{key}" for key in ("start", "end", "label")),
    *(f"{EVIDENCE}.{key}" for key in ("context", "start", "end", "score")),
    f"{DETECTOR}.coverage.answer_chars",
]
OPTIONAL = [
    *("redacted_answer", "summary", "flagged"),
    *(f"{DETECTOR}.{key}" for key in ("reason", "flagged", "spans", "coverage", "latency_ms")),
    *(f"{DETECTOR}.{key}" for key in ("action", "explanation")),
    *(f"{SPAN}.{key}" for key in ("score", "metric", "evidence", "attributes")),
    f"{DETECTOR}.coverage.context_chars",
]
OBJECTS = ["", "policy", "timings_ms", DETECTOR, METRIC, SPAN, EVIDENCE, f"{DETECTOR}.coverage"]


def find(reply: Any, path: str) -> Any:
    """Return the part of a reply at a dotted path; the empty path is the reply."""
    for key in path.split(".") if path else ():
        reply = reply[int(key) if isinstance(reply, list) else key]
    return reply


def parent(reply: Any, path: str) -> tuple[Any, str]:
    """Return the object that holds the last key of a path, and that key."""
    above, _, key = path.rpartition(".")
    return find(reply, above), key


def test_every_field_of_a_reply_is_typed(verdict: dict[str, Any]) -> None:
    """Decision, policy, scores, spans, evidence, coverage and timings arrive as objects."""
    result = CheckResult.from_json(verdict)
    detector = result.detectors["hallucination"]
    metric, span = detector.metrics["hallucination"], detector.spans[0]
    assert (result.decision, result.action, result.status) == ("flag", "redact", "partial")
    assert (result.policy.name, result.policy.sha256) == ("default", "ab12")
    assert (metric.score, metric.threshold, metric.flagged) == (0.12, 0.5, True)
    assert (span.start, span.end, span.label, span.attributes) == (
        0,
        41,
        "not_mentioned",
        {"windows": 3},
    )
    assert span.evidence == (Evidence(context=1, start=10, end=80, score=0.12),)
    assert detector.coverage is not None
    assert detector.coverage.context_chars == (5120, 6000)
    assert not detector.coverage.complete
    assert result.timings.total == 27.1
    assert result.redacted_answer == "[redacted]"
    assert result.raw is verdict


def test_passed_and_flagged_detectors_follow_the_decision(verdict: dict[str, Any]) -> None:
    """`passed` repeats the decision, `flagged_detectors` says why."""
    result = CheckResult.from_json(verdict)
    assert not result.passed
    assert result.flagged_detectors == ("hallucination",)


def test_an_unscored_detector_can_flag(verdict: dict[str, Any]) -> None:
    """A policy rule for what was not evaluated shows up like any other reason."""
    verdict["detectors"]["toxicity"]["flagged"] = True
    assert CheckResult.from_json(verdict).flagged_detectors == ("hallucination", "toxicity")


def test_the_reasons_of_a_verdict_are_typed(verdict: dict[str, Any]) -> None:
    """One sentence, the worst detector first, and per detector its action and explanation."""
    result = CheckResult.from_json(verdict)
    assert result.summary == "Not shown as it is: hallucination, pii."
    assert result.flagged == ("pii", "hallucination")
    detector = result.detectors["hallucination"]
    assert (detector.action, detector.explanation) == ("redact", "Characters 0 to 41 ...")
    assert "Characters" not in repr(result)


def test_an_older_service_gives_no_reasons_and_is_read(verdict: dict[str, Any]) -> None:
    """What version 0.1 did not say is None, and `flagged` follows from the detectors."""
    for key in ("summary", "flagged"):
        del verdict[key]
    for key in ("action", "explanation"):
        del verdict["detectors"]["hallucination"][key]
    verdict["detectors"]["hallucination"]["spans"][0]["label"] = "unsupported"
    result = CheckResult.from_json(verdict)
    assert (result.summary, result.flagged) == (None, ("hallucination",))
    detector = result.detectors["hallucination"]
    assert (detector.action, detector.explanation) == (None, None)
    assert detector.spans[0].label == "unsupported"


@pytest.mark.parametrize("value", [3, "pii", [1], {}])
def test_flagged_is_a_list_of_names(verdict: dict[str, Any], value: object) -> None:
    """Anything else is a broken reply."""
    verdict["flagged"] = value
    with pytest.raises(UnexpectedReply, match="flagged"):
        CheckResult.from_json(verdict)


def test_without_a_detector_flag_its_metrics_decide(verdict: dict[str, Any]) -> None:
    """A service that does not repeat `flagged` per detector is still read."""
    del verdict["detectors"]["hallucination"]["flagged"]
    assert CheckResult.from_json(verdict).flagged_detectors == ("hallucination",)


@pytest.mark.parametrize("path", OBJECTS)
def test_unknown_keys_are_ignored(verdict: dict[str, Any], path: str) -> None:
    """A newer service may say more anywhere; `raw` has it."""
    before = CheckResult.from_json(copy.deepcopy(verdict))
    find(verdict, path)["from_the_future"] = {"x": 1}
    result = CheckResult.from_json(verdict)
    assert result == before
    assert find(result.raw, path)["from_the_future"] == {"x": 1}


@pytest.mark.parametrize("path", MANDATORY)
def test_a_missing_mandatory_key_is_named(verdict: dict[str, Any], path: str) -> None:
    """A reply without a mandatory key is an error, never a default."""
    holder, key = parent(verdict, path)
    del holder[key]
    with pytest.raises(UnexpectedReply, match=f"{key} is missing"):
        CheckResult.from_json(verdict)


@pytest.mark.parametrize("path", OPTIONAL)
def test_an_optional_key_may_be_missing(verdict: dict[str, Any], path: str) -> None:
    """What the caller did not ask for need not be there."""
    holder, key = parent(verdict, path)
    del holder[key]
    CheckResult.from_json(verdict)


@pytest.mark.parametrize("path", MANDATORY + OPTIONAL)
def test_a_value_of_another_type_is_named(verdict: dict[str, Any], path: str) -> None:
    """A value of another type is an error that names the key and never repeats the value."""
    holder, key = parent(verdict, path)
    secret = "something the user wrote"
    holder[key] = {secret: secret} if isinstance(holder[key], str | list) else secret
    if key in ("reason", "metric", "summary", "explanation"):
        holder[key] = [secret]
    with pytest.raises(UnexpectedReply, match=key) as caught:
        CheckResult.from_json(verdict)
    assert secret not in str(caught.value)


@pytest.mark.parametrize("key", ["decision", "action", "status"])
def test_a_verdict_in_unknown_words_is_an_error(verdict: dict[str, Any], key: str) -> None:
    """A decision this client does not know must not be mistaken for a pass."""
    verdict[key] = "maybe"
    with pytest.raises(UnexpectedReply, match=key) as caught:
        CheckResult.from_json(verdict)
    assert "maybe" not in str(caught.value)


@pytest.mark.parametrize("value", [True, "0.5", None, [1]])
def test_a_score_is_a_number(verdict: dict[str, Any], value: object) -> None:
    """A boolean, a text or nothing is not a score."""
    verdict["detectors"]["hallucination"]["metrics"]["hallucination"]["score"] = value
    with pytest.raises(UnexpectedReply, match="score"):
        CheckResult.from_json(verdict)


@pytest.mark.parametrize("raw", [None, [], "pass", 1])
def test_a_reply_is_an_object(raw: object) -> None:
    """JSON that is no object is not a verdict."""
    with pytest.raises(UnexpectedReply):
        CheckResult.from_json(raw)


def test_a_result_cannot_be_changed(verdict: dict[str, Any]) -> None:
    """Nobody downstream turns a flag into a pass."""
    result = CheckResult.from_json(verdict)
    with pytest.raises(FrozenInstanceError):
        result.decision = "pass"  # type: ignore[misc]


def test_a_repr_holds_no_text_of_the_answer(verdict: dict[str, Any]) -> None:
    """A result that is logged does not leak what it judged."""
    assert "[redacted]" not in repr(CheckResult.from_json(verdict))


def test_a_line_of_the_command_line_is_read_like_a_reply(verdict: dict[str, Any]) -> None:
    """Stored replies can be read back."""
    result = CheckResult.from_json(json.loads(json.dumps(verdict)))
    assert result == CheckResult.from_json(verdict)


def test_a_check_error_never_passes() -> None:
    """`passed` may be asked of every item of a batch."""
    error = CheckError.from_json({"code": "limit_exceeded", "message": "too long"})
    assert error.passed is False
    assert error.request_id is None


@pytest.mark.parametrize("raw", [None, {}, {"code": "x"}, {"code": 1, "message": "x"}])
def test_a_check_error_needs_a_code_and_a_message(raw: object) -> None:
    """A batch item that is neither verdict nor error is refused."""
    with pytest.raises(UnexpectedReply):
        CheckError.from_json(raw)
