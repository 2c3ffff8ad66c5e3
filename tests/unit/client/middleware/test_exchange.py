"""Finders: pointer, JMESPath, query, function; and putting an answer back."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail_client.middleware import Exchange, Route
from guardrail_client.middleware.exchange import compiled, queried

EXCHANGE = Exchange(
    "/ask",
    query={"q": "asked?"},
    request={"a/b": {"~": ["zero", "one"]}},
    response={"choices": [{"message": {"content": "yes"}}], "sources": [{"body": "p"}]},
)


@pytest.mark.parametrize(
    ("finder", "found"),
    [
        ("request:/a~1b/~0/1", "one"),
        ("/choices/0/message/content", "yes"),
        ("choices[0].message.content", "yes"),
        ("sources[].body", ["p"]),
        ("query:q", "asked?"),
        ("query:none", None),
        ("/choices/1/message", None),
        ("/choices/x", None),
        (lambda exchange: exchange.path, "/ask"),
    ],
)
def test_a_finder_returns_what_is_there(finder: Any, found: Any) -> None:
    """And None for what is not."""
    assert compiled(finder, "response")(EXCHANGE) == found


def test_a_finder_that_cannot_be_read_is_found_at_start_up() -> None:
    """Not at the first request."""
    with pytest.raises(ValueError, match="choices"):
        Route("/ask", answer="choices[0")
    with pytest.raises(ValueError, match="sse"):
        Route("/ask", sse="events")


def test_the_application_may_hand_its_passages_over() -> None:
    """Before anything that a finder finds; the question must be a text."""
    route = Route("/ask", question="request:/n", contexts="sources[].body")
    exchange = Exchange("/ask", request={"n": 7}, response=EXCHANGE.response)
    assert route.about(exchange)["contexts"] == ["p"]
    assert route.about(exchange)["question"] is None
    exchange.own["contexts"] = ["own"]
    assert route.about(exchange)["contexts"] == ["own"]


def test_routes_match_paths() -> None:
    """Exactly, or by what comes before a star."""
    assert Route("/ask").matches("/ask")
    assert not Route("/ask").matches("/ask/stream")
    assert Route("/v1/*").matches("/v1/chat")
    assert queried("q=a&q=b&c=%20") == {"q": "a", "c": " "}
