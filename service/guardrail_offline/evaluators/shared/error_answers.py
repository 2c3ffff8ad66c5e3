"""Tells an error that stands in an answer's place from an answer."""

from __future__ import annotations

import re2

from guardrail_service.text.patterns.search import encodable

LONGEST = 4000
"""Longer texts are answers, whatever they begin with; a traceback may be long."""
_STATUS = (
    r"internal server error|bad gateway|service unavailable|gateway time-?out|too many requests|"
    r"request time-?out|payload too large"
)
_FAULTS = (
    r"(?:request|read|connection|gateway|operation|call|upstream)[ -]?(?:timed[ -]?out|time-?out)|"
    r"connection (?:error|refused|reset|aborted|closed)|rate limit (?:exceeded|reached)|"
    r"context length exceeded|quota exceeded|max(?:imum)? retries exceeded"
)
_END = r"\s*(?:[.:;,!(<\n-]|$)"
_ERROR = re2.compile(
    r"(?is)^\W*(?:"
    r"(?:internal |fatal |runtime |api |llm |model |server )?error\s*(?:\]|>|:|\(|#|code\b|$)|"
    rf"error\s*\d{{3}}\b{_END}|"
    r"an? (?:internal |unexpected |unknown )?error (?:has )?occurred\s*"
    r"(?:[.!:]|while\b|during\b|$)|"
    r"traceback \(most recent call last\)|"
    r"(?:[a-z_]\w*\.)*[a-z_]\w*(?:error|exception)\s*(?:[:(\[]|$)|"
    rf"(?:http(?:/[\d.]+|error)?\s*)?(?:status(?: code)?\s*:?\s*)?[45]\d\d\s*[:,-]?\s*"
    rf"(?:{_STATUS}|unauthorized|forbidden|not found|bad request){_END}|"
    rf"(?:{_STATUS})\s*[.!]?\s*$|"
    rf"(?:{_FAULTS})(?:{_END}|\s+after\b)|"
    r"\{?\s*\"?error\"?\s*:|"
    r"(?:<!doctype html[^>]*>|<html)[^\x00]{0,400}?<title>\s*(?:[45]\d\d|error)"
    r")"
)
"""Own list, read by eye: what SDKs, proxies and web servers write when a call fails."""


def is_error(answer: str, expected: str | None = None) -> bool:
    """Return whether an answer is nothing but an error of the system that was asked.

    Not where the expected answer begins like one: then the error is what was asked for.
    """
    plain = encodable(answer.strip())
    if not plain or len(plain) > LONGEST or _ERROR.match(plain) is None:
        return False
    return not (expected and _ERROR.match(encodable(expected.strip())))
