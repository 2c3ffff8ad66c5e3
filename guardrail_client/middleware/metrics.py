"""Counts what becomes of guarded answers. Alone in importing prometheus_client, and only if asked.

Labels are paths of routes, as configured, and codes: never a request's path, never text.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from guardrail_client.middleware.outcome import NO_ANSWER, AnswerOutcome, is_severe

if TYPE_CHECKING:
    from guardrail_client.middleware.route_options import Route

Sink = Callable[[str, Mapping[str, str], float], None]
"""Takes the name of a metric, its labels and by how much it grows, or how long it took."""
COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "checked": ("Answers with a verdict.", ("route", "action")),
    "stopped": ("Answers that were replaced.", ("route", "reason")),
    "redacted": ("Answers of which values were replaced.", ("route",)),
    "marked": ("Answers that were shown with a mark.", ("route",)),
    "would_have_stopped": ("Flagged answers that were shown: nothing is enforced.", ("route",)),
    "unchecked": ("Answers without a verdict, shown or not.", ("route", "reason")),
    "failed_open": ("Answers that were shown because the guard failed.", ("route", "reason")),
}
WAIT, STREAM_WAIT, FIRST_TEXT = "wait_seconds", "stream_wait_seconds", "stream_first_text_seconds"
HISTOGRAMS: Mapping[str, str] = {
    WAIT: "Seconds that whole answers waited for the guard.",
    STREAM_WAIT: "Seconds that streamed texts waited for the guard in all, the model's excepted.",
    FIRST_TEXT: "Seconds from the first piece of a streamed text to the first that was shown.",
}
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
"""Seconds, around the tens of milliseconds that a check takes and up to a route's time-out."""
DECLARED = ("unchecked_type", "unchecked_websocket")
"""Codes of answers that the route lets pass unchecked."""
MAX_REASONS = 64
OTHER = "other"


class AnswerMetrics:
    """Counts outcomes.

    Args:
        target: A registry of prometheus_client, or a `Sink` for another system. Middlewares with
            one registry share its metrics.
        clock: Seconds that only grow; tests bring their own.
    """

    def __init__(self, target: Any, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._sink: Sink = _prometheus(target) if hasattr(target, "register") else target
        if not callable(self._sink):
            found = type(target).__name__
            raise TypeError(f"metrics: found {found}, expected a registry or a function")
        self._clock = clock
        self._lock = threading.Lock()
        self._reasons: set[str] = set()

    def count(self, route: Route, outcome: AnswerOutcome) -> None:
        """Count one outcome."""
        if outcome.error == NO_ANSWER:
            return
        at = {"route": route.path}
        if outcome.shown == "replaced":
            self._sink("stopped", {**at, "reason": outcome.reason}, 1)
        if outcome.result is None:
            self._count_unchecked(route, outcome)
            return
        action = outcome.result.action
        self._sink("checked", {**at, "action": action}, 1)
        if outcome.shown == "redacted":
            self._sink("redacted", at, 1)
        elif outcome.shown == "as_is" and _is_only_observed(route, outcome):
            self._sink("would_have_stopped", at, 1)
        elif outcome.shown == "as_is" and action == "mark":
            self._sink("marked", at, 1)

    def _count_unchecked(self, route: Route, outcome: AnswerOutcome) -> None:
        code = outcome.error or "unchecked"
        labels = {"route": route.path, "reason": self._reason(code)}
        self._sink("unchecked", labels, 1)
        if outcome.shown == "as_is" and route.mode == "enforce" and code not in DECLARED:
            self._sink("failed_open", labels, 1)

    def _reason(self, code: str) -> str:
        """Return a code as a label; a service that makes up codes does not fill the memory."""
        if not (code.isascii() and code.replace("_", "").isalnum()):
            return OTHER
        with self._lock:
            if len(self._reasons) < MAX_REASONS:
                self._reasons.add(code)
            return code if code in self._reasons else OTHER

    def begun(self, route: Route) -> StreamTimes:
        """Return what takes the times of a text whose first piece has come."""
        return StreamTimes(
            lambda name, value: self._sink(name, {"route": route.path}, value), self._clock
        )

    @contextmanager
    def timed(self, route: Route) -> Iterator[None]:
        """Take how long a block waits for the guard."""
        began = self._clock()
        try:
            yield
        finally:
            self._sink(WAIT, {"route": route.path}, self._clock() - began)


class StreamTimes:
    """Takes how long a streamed text is held back, and how long it waits for the guard.

    Args:
        take: Takes the name of a metric and seconds.
        clock: Seconds that only grow.
    """

    def __init__(self, take: Callable[[str, float], None], clock: Callable[[], float]) -> None:
        self._take = take
        self._clock = clock
        self._began: float | None = clock()

    def shown(self) -> None:
        """Note that something of the text is shown."""
        if self._began is not None:
            self._take(FIRST_TEXT, self._clock() - self._began)
            self._began = None

    def ended(self, waited: float) -> None:
        """Note that the text has come to its end, and the seconds it has waited."""
        self._take(STREAM_WAIT, waited)


def _is_only_observed(route: Route, outcome: AnswerOutcome) -> bool:
    """Return whether an answer was flagged and shown because nothing is enforced."""
    result = outcome.result
    if result is None or result.decision != "flag":
        return False
    return result.action == "allow" or (route.mode == "shadow" and is_severe(route, result.action))


_REGISTERED: WeakKeyDictionary[Any, Sink] = WeakKeyDictionary()
_REGISTERING = threading.Lock()


def _prometheus(registry: Any) -> Sink:
    """Return a sink that feeds a registry, one for each registry."""
    with _REGISTERING:
        if registry not in _REGISTERED:
            _REGISTERED[registry] = _registered(registry)
        return _REGISTERED[registry]


def _registered(registry: Any) -> Sink:
    from prometheus_client import Counter, Histogram

    prefix = "guardrail_middleware_"
    counters = {
        name: Counter(prefix + name, text, labels, registry=registry)
        for name, (text, labels) in COUNTERS.items()
    }
    histograms = {
        name: Histogram(prefix + name, text, ["route"], registry=registry, buckets=BUCKETS)
        for name, text in HISTOGRAMS.items()
    }

    def sink(name: str, labels: Mapping[str, str], value: float) -> None:
        if name in histograms:
            histograms[name].labels(**labels).observe(value)
        else:
            counters[name].labels(**labels).inc(value)

    return sink
