"""Locust users who send the benchmark's scenarios; with a web page, or --headless.

Each class is one kind of sample and may be named on the command line; without names all take part.
A user waits for a reply before sending again. docs/performance.md shows the commands.
"""

from __future__ import annotations

from argparse import ArgumentParser
from itertools import count
from typing import Any, ClassVar

import gevent
import gevent.lock
from locust import HttpUser, constant, events, tag, task
from locust.env import Environment

from guardrail_bench.samples import (
    SCENARIOS,
    Passages,
    SampleSource,
    default_texts_file,
    read_texts,
)

PATH = "/v1/check"
APART = 10_000_000
"""Worker processes count from numbers this far apart, or their cold passages would be the same."""


@events.init_command_line_parser.add_listener
def _options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("guardrail")
    group.add_argument("--seed", type=int, default=17, help="Another seed gives other samples.")
    group.add_argument(
        "--deadline-ms", type=float, default=None, help="Deadline of every request; none if unset."
    )


class Checker(HttpUser):
    """Sends one kind of sample; a verdict or a refusal is an answer, all else a failure."""

    abstract = True
    wait_time = constant(0)
    scenario: ClassVar[str]
    passages: ClassVar[Passages]
    _lock: ClassVar[Any] = gevent.lock.BoundedSemaphore()
    _sources: ClassVar[dict[str, tuple[SampleSource, count[int]]]] = {}

    def on_start(self) -> None:
        """Make the samples' source once for all users; show the service the warm shelf."""
        self.kind = f"{self.scenario}, {self.passages}"
        with self._lock:
            if self.kind not in self._sources:
                self._sources[self.kind] = self._prepared(self.environment)
        self.source, self.numbers = self._sources[self.kind]

    def _prepared(self, environment: Environment) -> tuple[SampleSource, count[int]]:
        texts = read_texts(default_texts_file())
        seed = environment.parsed_options.seed
        source = SampleSource(texts, SCENARIOS[self.scenario], self.passages, seed)
        for body in source.shelf():
            self.client.post(PATH, json=body, name=f"{self.kind}: shelf")
        worker = getattr(environment.runner, "worker_index", 0)
        return source, count(max(0, worker) * APART)

    @task
    @tag("check")
    def check(self) -> None:
        """Send the next sample."""
        body = self.source.sample(next(self.numbers))
        body["deadline_ms"] = self.environment.parsed_options.deadline_ms
        with self.client.post(PATH, json=body, name=self.kind, catch_response=True) as response:
            if response.status_code == 429:
                response.request_meta["name"] = f"{self.kind}: refused"
                response.success()
                gevent.sleep(float(response.headers.get("Retry-After", 1)))
            elif response.status_code != 200:
                response.failure(f"status {response.status_code}")
            elif response.json()["status"] == "partial":
                response.request_meta["name"] = f"{self.kind}: partial"


class ChatCold(Checker):
    """Short chat answers over passages the service has never seen."""

    scenario, passages = "chat", "cold"


class ChatWarm(Checker):
    """Short chat answers over passages the service knows."""

    scenario, passages = "chat", "warm"


class RagCold(Checker):
    """Typical RAG answers over passages the service has never seen."""

    scenario, passages = "rag", "cold"


class RagWarm(Checker):
    """Typical RAG answers over passages the service knows."""

    scenario, passages = "rag", "warm"


class ReportCold(Checker):
    """Long reports over passages the service has never seen."""

    scenario, passages = "report", "cold"


class ReportWarm(Checker):
    """Long reports over passages the service knows."""

    scenario, passages = "report", "warm"
