"""Runs the rows of some samples through bare sessions: what the service can at best reach.

`python -m guardrail_bench.bare_sessions` is a process of its own, so that cores and memory are laid
out as the service's are. It reads a `Task` as JSON from standard input and writes a `Bare`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

import guardrail_service.detectors  # noqa: F401 - registers the built-in detectors
from guardrail_bench.latency_results import Bare
from guardrail_bench.samples import SCENARIOS, Passages, SampleSource, read_texts
from guardrail_service.commands.console import settings_from
from guardrail_service.detectors.no_answer.detector import abstains
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.inference.models.session import Session
from guardrail_service.inference.pack import load_pack, resolve
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.policy.file import load_policies
from guardrail_service.resources import packs_dir
from guardrail_service.server.runtime import serving_for
from guardrail_service.text import language
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Passage, Role, Row, Sample


class BareJob(BaseModel):
    """Which samples' rows to run; the same numbers as the service was sent."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    scenario: str
    passages: Passages
    seed: int
    first: int
    count: int
    texts: Path
    config: tuple[Path, ...] = ()
    pack: str | None = None


class Planner:
    """The rows a policy's detectors ask for, found without running one.

    Args:
        config: Guardrail JSONs; the first one's policy counts. None: the shipped ones.
        pack: Name or folder of a model pack; None: what the environment says.
    """

    def __init__(self, config: tuple[Path, ...], pack: str | None) -> None:
        settings = settings_from(config=config, model_pack=pack)
        loaded = load_pack(resolve(settings.model_pack, packs_dir()))
        policies = load_policies(settings.config_files(), serving_for(loaded))
        language.load()
        self.pack = loaded
        self.sessions: dict[Role, Session] = open_sessions(loaded)
        self.policy = policies[settings.default_policy or next(iter(policies))]
        self.windowers = {role: session.tokenizer for role, session in self.sessions.items()}
        self.languages = {
            role: frozenset(session.file.languages)
            for role, session in self.sessions.items()
            if session.file.languages is not None
        }

    def segmented(self, body: dict[str, Any]) -> SegmentedSample:
        """Return the sample of a `/v1/check` body."""
        contexts = tuple(Passage(text) for text in body["contexts"])
        sample = Sample(body["answer"], body["question"], contexts)
        return SegmentedSample(sample, self.windowers, self.languages)

    def rows(self, body: dict[str, Any]) -> Iterator[Row]:
        """Yield the rows that the guard would queue for a body, with repetitions."""
        sample = self.segmented(body)
        abstained = abstains(sample)
        for rule in self.policy.rules.values():
            if rule.spec.cost == "model" and not (abstained and rule.spec.skip_on_abstention):
                yield from REGISTRY[rule.spec.id].encode(sample, rule.parameters)


def measure(task: BareJob) -> Bare:
    """Return what the rows of a task's samples cost without a service around them.

    A distinct row is run and counted once. Warm passages are run before the measurement, as the
    service has met them, too.
    """
    planner = Planner(task.config, task.pack)
    texts = read_texts(task.texts)
    source = SampleSource(texts, SCENARIOS[task.scenario], task.passages, task.seed)
    seen = set[Row]()
    _run(planner.sessions, _new(planner, source.shelf(), seen))
    numbers = range(task.first, task.first + task.count)
    rows = list(_new(planner, map(source.sample, numbers), seen))
    wall, cpu = time.perf_counter(), time.process_time()
    _run(planner.sessions, rows)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Bare(samples=task.count, rows=len(rows), cpu_s=cpu, wall_s=wall)


def _run(sessions: dict[Role, Session], rows: Iterable[Row]) -> None:
    for row in rows:
        sessions[row.role].run(row)


def _new(planner: Planner, bodies: Iterable[dict[str, Any]], seen: set[Row]) -> Iterator[Row]:
    """Yield the rows of some bodies that are not in `seen`, and put them there."""
    for body in bodies:
        for row in planner.rows(body):
            if row not in seen:
                seen.add(row)
                yield row


def main() -> None:
    """Read a task, write what it cost."""
    task = BareJob.model_validate_json(sys.stdin.read())
    sys.stdout.write(measure(task).model_dump_json() + "\n")


if __name__ == "__main__":
    main()
