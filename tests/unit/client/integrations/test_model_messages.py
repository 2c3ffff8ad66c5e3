"""A message is judged text by text; arguments for tools by what users said, too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from guardrail_client import AsyncGuardrailClient, GuardrailClient
from guardrail_client.integrations.answers import AnswerGuard
from guardrail_client.integrations.model_messages import (
    ModelMessage,
    ShownMessage,
    plain_metadata,
)
from guardrail_client.middleware.outcome import AnswerOutcome
from guardrail_client.middleware.route_options import FALLBACK, OUTAGE
from guardrail_client.middleware.shapes import Shape
from tests.unit.client.middleware.conftest import BAD, GOOD, Guard, reached

SHAPE = Shape("own", marks=("/content",), texts=("/content",), tool_calls=("/calls/*/args",))
QUESTION = "How long may I stay?"


def shown(value: Any, guard: Guard | None = None, **settings: Any) -> ShownMessage:
    """Ask both clients, which must agree."""
    asked = ModelMessage(value, SHAPE, QUESTION, ["Two weeks."], [QUESTION])
    both = guard or Guard()
    client = GuardrailClient(**reached(both))
    other = AsyncGuardrailClient(**reached(both))
    found = AnswerGuard(client=client, **settings).message(asked)
    later = asyncio.run(AnswerGuard(async_client=other, **settings).amessage(asked))
    assert (found.value, found.instead) == (later.value, later.instead)
    return found


def test_arguments_follow_from_passages_and_from_what_users_said() -> None:
    """An answer follows from passages alone."""
    guard = Guard()
    value = {"content": GOOD, "calls": [{"args": {"text": "Two weeks"}}], "id": "m-1"}
    assert shown(value, guard).value is value
    asked = {item["answer"]: item["contexts"] for item in guard.asked}
    assert asked == {GOOD: ["Two weeks."], '{"text": "Two weeks"}': ["Two weeks.", QUESTION]}


@pytest.mark.parametrize(
    ("value", "settings", "instead"),
    [
        ({"content": BAD}, {}, FALLBACK),
        ({"content": "", "calls": [{"args": {"text": BAD}}]}, {}, FALLBACK),
        ({"content": "", "calls": [{"args": {"text": BAD}}]}, {"tool_calls": "unchecked"}, None),
        ({"content": "", "calls": [{"args": {}}]}, {"tool_calls": "refuse"}, OUTAGE),
        ({"content": GOOD, "new_field": BAD}, {}, FALLBACK),
        ({"text": GOOD}, {}, OUTAGE),
        ({"text": GOOD}, {"on_error": "open"}, None),
        ({"content": BAD}, {"mode": "shadow"}, None),
        ({"content": ""}, {}, None),
    ],
)
def test_one_text_that_may_not_be_shown_stops_the_message(
    value: Any, settings: dict[str, Any], instead: str | None
) -> None:
    """And a message that cannot be read follows `on_error`."""
    assert shown(value, **settings).instead == instead


def test_what_comes_with_a_stopped_message_does_not_say_it() -> None:
    """Nor is a message without a text reported as an answer."""
    found = shown({"content": BAD})
    assert found.beside({"trace": BAD, "steps": 2}) == {"trace": "", "steps": 2}
    told: list[AnswerOutcome] = []
    shown({"content": ""}, on_outcome=told.append)
    assert told == []
    shown({"content": GOOD}, on_outcome=told.append)
    assert [outcome.shown for outcome in told] == ["as_is"] * 2


def test_metadata_of_a_changed_message_are_names_and_numbers() -> None:
    """Log probabilities would say its words."""
    kept = {"model": "m-1", "tokens": 7}
    assert plain_metadata({**kept, "logprobs": [{"token": "car"}], "note": "A car."}) == kept
