"""Calls in flight: what was asked is known when the answer comes, in bounded memory."""

from __future__ import annotations

import pytest

from guardrail_service.server.dialects import litellm
from guardrail_service.server.dialects.litellm import KEPT_S, Calls
from guardrail_service.server.dialects.message_sources import AnswerSources

FOUND = AnswerSources("Why?", ("Because.",))


def test_a_call_is_known_until_its_time_is_over() -> None:
    """A stream asks several times."""
    now = [0.0]
    calls = Calls(lambda: now[0])
    calls.keep(("a", "1"), FOUND)
    now[0] = KEPT_S - 1
    assert calls.of(("a", "1")) == calls.of(("a", "1")) == FOUND
    assert calls.of(("b", "1")) is None
    now[0] = KEPT_S + 1
    assert calls.of(("a", "1")) is None


def test_the_oldest_calls_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """By size and by number; a call that is kept again counts once."""
    monkeypatch.setattr(litellm, "KEPT_CHARS", 3 * FOUND.size)
    calls = Calls()
    for name in "aabbccd":
        calls.keep((name,), FOUND)
    assert [bool(calls.of((name,))) for name in "abcd"] == [False, True, True, True]
    monkeypatch.setattr(litellm, "KEPT_CALLS", 2)
    calls.keep(("e",), FOUND)
    assert [bool(calls.of((name,))) for name in "bcde"] == [False, False, True, True]


def test_a_call_that_is_too_large_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer has no passages then, and the policy says what that means; others stay."""
    calls = Calls()
    calls.keep(("a",), FOUND)
    monkeypatch.setattr(litellm, "KEPT_CHARS", 2 * FOUND.size)
    calls.keep(("b",), AnswerSources("Why?", ("x" * 100,)))
    assert (calls.of(("a",)), calls.of(("b",))) == (FOUND, None)
