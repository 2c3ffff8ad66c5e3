"""What a verdict means for an answer: shown, redacted or replaced."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail_client import CheckResult
from guardrail_client.middleware import FALLBACK, Route
from guardrail_client.middleware.outcome import decided
from tests.unit.client.conftest import make_verdict

ANSWER = "Write to Anna."
REDACTED = "Write to [NAME_1]."


def shown(redacted: str | None, state: str = "evaluated", **settings: Any) -> tuple[str, str]:
    """Return what happens to the answer whose verdict asks to redact, and what is sent."""
    verdict = {**make_verdict(), "redacted_answer": redacted}
    verdict["detectors"]["hallucination"]["state"] = state
    result = CheckResult.from_json(verdict)
    outcome, text = decided(Route("/ask", **settings), "/ask", ANSWER, result)
    return outcome.shown, text


def test_a_redacted_answer_is_sent_in_place_of_the_answer() -> None:
    """It says that something was replaced."""
    assert shown(REDACTED) == ("redacted", REDACTED)


@pytest.mark.parametrize("redacted", [ANSWER, None])
def test_an_answer_in_which_nothing_was_replaced_counts_as_blocked(redacted: str | None) -> None:
    """What was flagged would be shown, and called redacted."""
    assert shown(redacted) == ("replaced", FALLBACK)
    assert shown(redacted, mode="shadow") == ("as_is", ANSWER)


def test_a_detector_that_could_not_look_counts_as_blocked() -> None:
    """It may be the one that should redact."""
    assert shown(REDACTED, "error") == ("replaced", FALLBACK)
