"""Every documented limit: its default is the setting's, what is at it passes, what is above not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from guardrail_service.settings import Limits, Timeouts

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text("utf-8")
ROW = re.compile(r"^\| [^|]+ \| `GUARDRAIL_(MAX|TIMEOUT)_(\w+)` \| (\S+) \|", re.MULTILINE)
LIMITS = Limits()
SENTENCE = "The station number {} has four tracks and two platforms. "


def test_the_table_lists_every_limit_with_its_default() -> None:
    """And none that there is not."""
    found = {(kind, name.lower()): float(value) for kind, name, value in ROW.findall(TEXT)}
    expected = {("MAX", name): float(value) for name, value in LIMITS.model_dump().items()}
    expected |= {("TIMEOUT", name): float(v) for name, v in Timeouts().model_dump().items()}
    assert found == expected


def body(**changed: Any) -> dict[str, Any]:
    """Return a body whose texts are judged under a deadline that ends it soon."""
    return {"answer": "Yes.", "contexts": ["It is so."], "deadline_ms": 1, **changed}


def characters(count: int) -> str:
    """Return so many characters that take four bytes each."""
    return "\U0001d41a" * count


def passages(count: int, in_all: int) -> list[str]:
    """Return passages with so many characters together."""
    first = in_all - (count - 1) * (in_all // count)
    return [characters(first)] + [characters(in_all // count)] * (count - 1)


def sentences(count: int) -> list[str]:
    """Return passages with so many sentences together; the answer has one more."""
    return [
        "".join(SENTENCE.format(n) for n in range(first, min(first + 100, count)))
        for first in range(0, count, 100)
    ]


AT_LIMIT: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "answer": (
        body(answer=characters(LIMITS.answer_chars)),
        body(answer=characters(LIMITS.answer_chars + 1)),
        "answer",
    ),
    "question": (
        body(question=characters(LIMITS.question_chars)),
        body(question=characters(LIMITS.question_chars + 1)),
        "question",
    ),
    "characters of passages": (
        body(contexts=passages(LIMITS.contexts, LIMITS.context_chars)),
        body(contexts=passages(LIMITS.contexts, LIMITS.context_chars + 1)),
        "contexts",
    ),
    "passages": (
        body(contexts=["It is so."] * LIMITS.contexts),
        body(contexts=["It is so."] * (LIMITS.contexts + 1)),
        "contexts",
    ),
    "sentences": (
        body(contexts=sentences(LIMITS.sentences - 1), deadline_ms=60_000),
        body(contexts=sentences(LIMITS.sentences), deadline_ms=60_000),
        "contexts",
    ),
}


@pytest.mark.parametrize("limit", AT_LIMIT)
def test_what_is_at_a_limit_is_judged_and_what_is_above_is_refused(
    limit: str, http: TestClient
) -> None:
    """With the field's name and the shape of all errors."""
    fits, too_large, field = AT_LIMIT[limit]
    assert http.post("/v1/check", json=fits).status_code == 200
    refused = http.post("/v1/check", json=too_large)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (422, "limit_exceeded")
    assert error["message"].startswith(f"{field}: ")
    assert error["request_id"] == refused.headers["x-request-id"]


def test_a_batch_at_its_limit_is_judged(http: TestClient) -> None:
    """One more item is refused."""
    item = {"answer": "Yes.", "contexts": ["It is so."]}
    found = http.post("/v1/check/batch", json={"items": [item] * LIMITS.batch_items})
    assert len(found.json()["results"]) == LIMITS.batch_items
    refused = http.post("/v1/check/batch", json={"items": [item] * (LIMITS.batch_items + 1)})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "limit_exceeded")


def test_a_body_at_its_limit_is_read(http: TestClient) -> None:
    """One more byte is refused, and says so in the shape of all errors."""
    sent = json.dumps(body()).encode()
    sent += b" " * (LIMITS.body_bytes - len(sent))
    headers = {"Content-Type": "application/json"}
    assert http.post("/v1/check", content=sent, headers=headers).status_code == 200
    refused = http.post("/v1/check", content=sent + b" ", headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "body_too_large")


def test_the_limits_fit_together(http: TestClient) -> None:
    """All texts of a sample may be at their limits at once, with four bytes a character."""
    largest = body(
        answer=characters(LIMITS.answer_chars),
        question=characters(LIMITS.question_chars),
        contexts=passages(LIMITS.contexts, LIMITS.context_chars),
    )
    sent = json.dumps(largest, ensure_ascii=False).encode()
    assert len(sent) <= LIMITS.body_bytes
    headers = {"Content-Type": "application/json"}
    assert http.post("/v1/check", content=sent, headers=headers).status_code == 200
