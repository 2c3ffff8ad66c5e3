"""Errors in the place of answers, and answers about errors."""

from __future__ import annotations

import pytest

from guardrail_offline.evaluators.shared.error_answers import is_error


@pytest.mark.parametrize(
    "text",
    [
        "ERROR: 500 Internal Server Error",
        "[ERROR] model unavailable",
        "503 Service Unavailable",
        "HTTP 429 Too Many Requests",
        "Traceback (most recent call last):\n  File",
        "openai.RateLimitError: Error code: 429",
        "TimeoutError()",
        "Request timed out.",
        "Rate limit exceeded, try again in 20 s",
        '{"error": {"message": "overloaded"}}',
        "<html><head><title>502 Bad Gateway</title>",
        "An error occurred while generating the response.",
    ],
)
def test_an_error_is_no_answer(text: str) -> None:
    """As SDKs, proxies and servers write them."""
    assert is_error(text)
    assert not is_error(text, expected=text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "500 Internal Server Error means that the server failed.",
        "Error 404 is shown when a page is missing.",
        "Error correction adds redundant bits.",
        "Errors: there are two kinds of them.",
        "Exception handling is done with try.",
        "Forbidden.",
        "The page was not found.",
        "Timeouts are set in the configuration.",
    ],
)
def test_an_answer_about_errors_is_one(text: str) -> None:
    """A sentence that goes on is an answer."""
    assert not is_error(text)
