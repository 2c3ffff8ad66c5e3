"""Reads the policies again while the service runs: all of them or none, one reading at a time."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from guardrail_service.errors import ConfigurationError, Overloaded, ReloadFailed, ServiceError
from guardrail_service.guard.guard import Guard
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.served import PolicySet
from guardrail_service.types import Passage, Sample, State

_LOG = logging.getLogger(__name__)
GOLDEN = Sample(
    answer="The warranty lasts two years. Write to help@example.com, and repairs cost 0 euros.",
    question="How long does the warranty last?",
    contexts=(Passage("Every device comes with a warranty of two years. Repairs are free."),),
)
"""Judged under every new policy before it serves: a detector that fails on it would on others."""
TRIES = 20
"""Times that a busy service is asked to judge it, a second apart."""


class Reloads(Collector):
    """Puts new policies in the place of those that a guard judges by.

    Many who ask at once share one reading: whoever asks while one runs gets the next.

    Attributes:
        error: Why the last reading failed and older policies are in force; None: it did not.
        after: Called with every set that comes into force; what they raise is logged.

    Args:
        guard: Judges by them.
        load: Reads and checks all policies, and prepares what they need.
    """

    def __init__(self, guard: Guard, load: Callable[[], PolicySet]) -> None:
        self.error: str | None = None
        self.after: list[Callable[[PolicySet], object]] = []
        self._guard = guard
        self._load = load
        self._one = threading.Lock()
        self._count = threading.Lock()
        self._asked = self._done = 0
        self._is_waiting = False
        self._results = {"ok": 0, "failed": 0}

    def ask(self) -> int:
        """Return the number of a question; `now` answers it, whenever it comes to that."""
        with self._count:
            self._asked += 1
            return self._asked

    def now(self, asked: int | None = None) -> PolicySet:
        """Return the policies in force after a reading that began after the question.

        Args:
            asked: The number of the question; None: it is asked by this call.

        Raises:
            ReloadFailed: If they cannot be served; those of before are in force.
        """
        mine = self.ask() if asked is None else asked
        with self._one:
            if self._done < mine:
                self._is_waiting = False
                self._done = self._asked
                self._read()
            if self.error is not None:
                raise ReloadFailed(f"the policies of before stay in force: {self.error}")
            return self._guard.served

    def soon(self, *_: object) -> None:
        """Read on a thread of its own, unless one waits to begin; fit for a signal's handler."""
        if not self._is_waiting:
            self._is_waiting = True
            threading.Thread(target=self.tried, name="reload", daemon=True).start()

    def tried(self) -> bool:
        """Return whether new policies are in force; `error` says why not."""
        try:
            self.now()
        except ReloadFailed:
            return False
        return True

    def collect(self) -> Iterator[Metric]:
        """Yield how often policies were read, and which are live."""
        counted = CounterMetricFamily(
            "guardrail_policy_reloads", "Readings of the policies.", labels=["result"]
        )
        for result, times in self._results.items():
            counted.add_metric([result], times)
        yield counted
        live = GaugeMetricFamily(
            "guardrail_policy_live", "1 for each policy in force.", labels=["policy", "version"]
        )
        for policy in self._guard.served.live.values():
            live.add_metric([policy.name, policy.version], 1.0)
        yield live

    def _read(self) -> None:
        try:
            new = self._load()
            if self._guard.default_policy not in new.live:
                found = f"no policy {self._guard.default_policy!r}"
                raise ConfigurationError("reload", found, "the default policy")
            known = {(p.name, p.version, p.sha256) for p in self._guard.served.all()}
            for policy in new.all():
                if (policy.name, policy.version, policy.sha256) not in known:
                    self._try(policy)
        except ServiceError as error:
            self.error = str(error)
            self._results["failed"] += 1
            _LOG.error("configuration reload failed, keeping the last good one: %s", error)
            return
        self._guard.served = new
        self.error = None
        self._results["ok"] += 1
        names = ", ".join(f"{policy.name}@{policy.version}" for policy in new.live.values())
        _LOG.warning("policies in force: %s", names)
        for listener in self.after:
            try:
                listener(new)
            except Exception as error:  # noqa: BLE001 - the switch is done, whoever listens
                _LOG.error("after a reload: %s", type(error).__name__)

    def _try(self, policy: Policy) -> None:
        """Judge the golden sample under a policy.

        Raises:
            ConfigurationError: If one of its detectors fails.
        """
        for left in reversed(range(TRIES)):
            try:
                verdict = self._guard.judge(policy, GOLDEN, math.inf)
                break
            except Overloaded:
                if not left:
                    raise
                time.sleep(1.0)
        for name, result in verdict.detectors.items():
            if result.state is State.ERROR:
                where = f"policy {policy.name}@{policy.version}: golden sample"
                found = f"a failure of {name} ({result.reason})"
                raise ConfigurationError(where, found, "detectors that can judge it")
