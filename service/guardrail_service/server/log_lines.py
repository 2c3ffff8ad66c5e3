"""One JSON object per log line, and no more than one line of a kind of trouble a minute."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

OWN_LINES = ("guardrail.access", "guardrail.serve")
"""Loggers whose messages are JSON already; they say what happens, not what is wrong."""
REPEAT_S = 60.0
"""Seconds in which trouble of one kind is told once: a full disk fails every write."""


@contextmanager
def json_logging(level: str) -> Iterator[None]:
    """Send every log line to standard output as JSON; uvicorn's access log is ours instead.

    Afterwards logging is as it was: whoever started the service may close its standard output.
    """
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_JsonLines())
    handler.addFilter(OncePerMinute())
    root, access = logging.getLogger(), logging.getLogger("uvicorn.access")
    serving = logging.getLogger("guardrail.serve")
    before = root.handlers[:], root.level, access.disabled, serving.level
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    access.disabled = True
    serving.setLevel(logging.INFO)  # whoever starts it with port 0 needs the line with the address
    try:
        yield
    finally:
        root.handlers[:], level_before, access.disabled, own_before = before
        root.setLevel(level_before)
        serving.setLevel(own_before)


class OncePerMinute(logging.Filter):
    """Lets the first warning of a kind pass, and after a minute the next, with a count.

    A kind is a logger, a level and a message before its values are filled in.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._told: dict[tuple[str, int, str], float] = {}
        self._kept_back: dict[tuple[str, int, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written; `repeated` says how many were not before it."""
        if record.levelno < logging.WARNING or record.name in OWN_LINES:
            return True
        kind = (record.name, record.levelno, str(record.msg))
        now = self._clock()
        with self._lock:
            told = self._told.get(kind)
            if told is not None and now - told < REPEAT_S:
                self._kept_back[kind] = self._kept_back.get(kind, 0) + 1
                return False
            self._told[kind] = now
            record.repeated = self._kept_back.pop(kind, 0)
        return True


class _JsonLines(logging.Formatter):
    """Lines that are JSON already pass; the rest become an object. Tracebacks stay out.

    An exception's message may quote the text it choked on, so only its type is shown.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return one JSON line."""
        message = record.getMessage()
        if record.name in OWN_LINES:
            return message
        fields: dict[str, object] = {
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
        }
        if repeated := getattr(record, "repeated", 0):
            fields["repeated"] = repeated
        if record.exc_info and record.exc_info[0]:
            fields["exception"] = record.exc_info[0].__name__
        return json.dumps(fields)
