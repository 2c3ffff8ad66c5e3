"""Trouble of one kind is told once a minute, with a count."""

from __future__ import annotations

import logging

from guardrail_service.server.log_lines import REPEAT_S, OncePerMinute


def record(message: str, level: int = logging.WARNING, name: str = "store") -> logging.LogRecord:
    """Return what a logger would hand over."""
    return logging.LogRecord(name, level, __file__, 1, message, ("value",), None)


def test_a_full_disk_is_one_line_a_minute() -> None:
    """The next line says how many were kept back."""
    now = [0.0]
    once = OncePerMinute(lambda: now[0])
    assert [once.filter(record("full: %s")) for _ in range(1_973)] == [True] + [False] * 1_972
    now[0] = REPEAT_S
    later = record("full: %s")
    assert once.filter(later)
    assert later.__dict__["repeated"] == 1_972
    now[0] = 2 * REPEAT_S
    last = record("full: %s")
    assert once.filter(last)
    assert last.__dict__["repeated"] == 0


def test_other_kinds_and_what_is_no_trouble_pass() -> None:
    """Access lines are one per request, whatever they say."""
    once = OncePerMinute()
    assert all(once.filter(record(text)) for text in ("one", "two"))
    assert once.filter(record("one", logging.ERROR))
    assert all(once.filter(record("{}", logging.INFO)) for _ in range(3))
    assert all(once.filter(record("{}", logging.ERROR, "guardrail.access")) for _ in range(3))
