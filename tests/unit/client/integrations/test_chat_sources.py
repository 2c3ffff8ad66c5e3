"""Passages of a request: its own field, the header, its messages; the rule is the service's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guardrail_client.integrations.chat_sources import (
    ChatRule,
    ChatSources,
    WrongPassages,
    chat_sources,
    message_passages,
)
from guardrail_service.server.dialects.message_sources import PassageRule, sources
from tests.unit.server.dialects.test_message_sources import CASES

SYSTEM = {"role": "system", "content": "Two weeks."}
ASKED = {"role": "user", "content": "<context>Ours.</context> How long?"}
CHAT = {"model": "m", "messages": [SYSTEM, ASKED]}


@pytest.mark.parametrize("case", CASES)
def test_client_and_service_have_one_rule(case: str) -> None:
    """Neither may import the other."""
    messages, rule, _ = CASES[case]
    ours = ChatRule(**rule) if rule else ChatRule()
    expected = sources(messages, PassageRule.model_validate(rule)).contexts
    assert tuple(message_passages(messages, ours)) == expected


@pytest.mark.parametrize(
    ("document", "contexts"),
    [
        (CHAT, ["Two weeks."]),
        ({"instructions": "Two weeks.", "input": "How long?"}, ["Two weeks."]),
        ({"input": [SYSTEM, ASKED]}, ["Two weeks."]),
        ({"input": [{"type": "function_call_output", "output": "Seven."}]}, ["Seven."]),
        ({"prompt": "How long?"}, []),
        ({"messages": ["no message", {"role": "tool", "content": 7}]}, []),
        ([], []),
        ("text", []),
    ],
)
def test_passages_stand_in_what_is_asked(document: Any, contexts: list[str]) -> None:
    """The body goes on byte by byte."""
    body = json.dumps(document).encode()
    found = chat_sources(body, None, ChatRule())
    assert (found.body, found.contexts) == (body, contexts)


def test_a_request_may_bring_them_beside_its_messages() -> None:
    """In a field that goes no further, or in a header."""
    body = json.dumps({**CHAT, "guardrail": {"contexts": ["A", {"id": "1", "text": "B"}]}}).encode()
    found = chat_sources(body, '["C"]', ChatRule())
    assert json.loads(found.body) == CHAT
    assert found.contexts == ["A", {"id": "1", "text": "B"}]
    assert chat_sources(json.dumps(CHAT).encode(), '["C"]', ChatRule()).contexts == ["C"]


@pytest.mark.parametrize(
    ("own", "header"),
    [({"contexts": "Zanzibar"}, None), ({"context": ["Zanzibar"]}, None), (["Zanzibar"], None),
     ({"contexts": [{"Zanzibar": 1}]}, None), (None, "Zanzibar"), (None, '{"Zanzibar": 1}')],
)  # fmt: skip
def test_what_is_no_passage_is_refused(own: Any, header: str | None) -> None:
    """By place, without a word of it."""
    body = json.dumps(CHAT if own is None else {**CHAT, "guardrail": own}).encode()
    with pytest.raises(WrongPassages) as error:
        chat_sources(body, header, ChatRule())
    assert "Zanzibar" not in str(error.value)


@pytest.mark.parametrize("body", [b"\xff", b"{", b"[" * 100_000, b'{"messages":' + b"[" * 100_000])
def test_a_body_that_cannot_be_read_goes_on_as_it_is(body: bytes) -> None:
    """The upstream says what is wrong with it; it brought no passages."""
    assert chat_sources(body, None, ChatRule()) == ChatSources(body, [])
