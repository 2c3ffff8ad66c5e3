"""Asks policies in the shadow, on a thread of its own, after the reply has been made.

An answer waits for nothing here: a sample for which there is no room is counted, and nobody asked.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context, copy_context
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from guardrail_service.errors import raised_at
from guardrail_service.guard.guard import Guard
from guardrail_service.guard.shadow import CheckedSample, ShadowVerdict
from guardrail_service.types import Decision

_LOG = logging.getLogger(__name__)
MOST_WAITING = 256
"""Samples that wait to be asked about: each is kept with its texts and what its models said."""
Then = Callable[[Sequence[ShadowVerdict]], object]


class _Asked(NamedTuple):
    judged: CheckedSample
    decision: Decision
    then: Then | None
    context: Context


class Shadows(Collector):
    """Compares what policies in the shadow say with what was decided.

    Args:
        guard: Judges.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._waiting: queue.Queue[_Asked | None] = queue.Queue(MOST_WAITING)
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def offer(self, judged: CheckedSample, decision: Decision, then: Then | None) -> None:
        """Have the shadows of a sample asked, later.

        Args:
            judged: The sample, and what its check found.
            decision: What was decided.
            then: Called with what they say, in the context of this call; with nothing, and at
                once, where there is no room.
        """
        self._start()
        try:
            self._waiting.put_nowait(_Asked(judged, decision, then, copy_context()))
        except queue.Full:
            for policy in judged.shadows:
                self._note(policy.name, policy.version, "dropped")
            if then is not None:
                then(())

    def close(self, timeout_s: float) -> None:
        """Ask about what waits, for at most so many seconds."""
        if self._thread is None:
            return
        end = time.monotonic() + timeout_s
        try:
            self._waiting.put(None, timeout=timeout_s)
        except queue.Full:
            return
        self._thread.join(max(0.0, end - time.monotonic()))

    def collect(self) -> Iterator[Metric]:
        """Yield how often each policy in the shadow agreed."""
        counted = CounterMetricFamily(
            "guardrail_shadow_checks",
            "Answers about which a policy in the shadow was asked, by its agreement.",
            labels=["policy", "agreement"],
        )
        for labels, times in sorted(dict(self._counts).items()):
            counted.add_metric(labels, times)
        yield counted

    def _start(self) -> None:
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="shadow", daemon=True)
                    self._thread.start()

    def _run(self) -> None:
        while (asked := self._waiting.get()) is not None:
            try:
                asked.context.run(self._ask, asked)
            except Exception as error:  # noqa: BLE001 - the thread goes on for the next sample
                _LOG.error("shadow failed: %s at %s", type(error).__name__, raised_at(error))

    def _ask(self, asked: _Asked) -> None:
        said: list[ShadowVerdict] = []
        for policy in asked.judged.shadows:
            agreement = "failed"
            try:
                decided = self._guard.beside(policy, asked.judged)
                said.append(ShadowVerdict(policy.ref, decided.decision, decided.flagged))
                agreement = _agreement(asked.decision, decided.decision)
            except Exception as error:  # noqa: BLE001 - it is counted, and decides nothing
                _LOG.error("shadow failed: %s at %s", type(error).__name__, raised_at(error))
            self._note(policy.name, policy.version, agreement)
        if asked.then is not None:
            asked.then(said)

    def _note(self, name: str, version: str, agreement: str) -> None:
        with self._lock:
            self._counts[f"{name}@{version}", agreement] += 1


def _agreement(decided: Decision, said: Decision) -> str:
    if said == decided:
        return "same"
    return "stricter" if said == "flag" else "milder"
