"""Runs the steps of a workflow that are missing or stale, and says which those are and why.

A step rests on parts of files, each with the hash that it had. It is current while all of them
have it still, and nothing that it rests on is stale itself. Steps end with their file, which is
whole or absent: a run that was stopped goes on with the step it was in.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from guardrail_offline.evaluators.pack_models import PackModels, load_models
from guardrail_offline.hosts.opening import SERVERS, parse_address
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.runs.shards import write_json
from guardrail_offline.workflow.definition import Definition, read_definition, refuse_received
from guardrail_offline.workflow.folder import (
    DEFINITION,
    STEPS,
    TITLES,
    Dependency,
    StepName,
    StepRecord,
    WorkflowFolder,
    file_of,
    locked,
)
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.provenance import sha256_of

State = Literal["current", "stale", "missing"]
Bar = tuple[Callable[[int], None], Callable[[int], None]]
"""Sets the total of a bar, and advances it."""
Bars = Callable[[str], AbstractContextManager[Bar]]
MODELS = "(models)"
VERSION = "(version)"


def _no_bar(_doing: str) -> AbstractContextManager[Bar]:
    return nullcontext((lambda _total: None, lambda _count: None))


@dataclass(frozen=True)
class Effort:
    """Settings of a run that move no result.

    Attributes:
        workers: Processes that score.
        concurrency: Questions to the target at a time.
    """

    workers: int = 1
    concurrency: int = 4


@dataclass(frozen=True)
class StepOutcome:
    """The findings of a step; see `StepRecord`."""

    results: Mapping[str, Any]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[str] = ()
    notes: Sequence[str] = ()
    judge: str | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    skipped: str | None = None


@dataclass(frozen=True)
class StepContext:
    """The surroundings of one step while it runs."""

    folder: WorkflowFolder
    definition: Definition
    step: StepName
    parameters: Any
    models_of: Callable[[str], PackModels]
    effort: Effort
    bars: Bars = _no_bar

    @property
    def models(self) -> PackModels:
        """Return the pack's models, loaded once in a run."""
        return self.models_of(self.definition.pack)

    @property
    def own(self) -> Path:
        """Return the step's folder; made if it is not there."""
        found = self.folder.step_folder(self.step)
        found.mkdir(exist_ok=True)
        return found

    def results(self, step: StepName) -> Mapping[str, Any]:
        """Return what another step found.

        Raises:
            ConfigurationError: If it has not run.
        """
        record = self.folder.record(step)
        if record is None:
            name = self.folder.step_file(step).name
            raise ConfigurationError(str(self.folder.root), f"no {name}", f"the step {step} first")
        return record.results

    def fresh(self, name: str, key: Any) -> Path:
        """Return a folder of the step that holds work for a key, or nothing yet.

        Work for another key is removed: what a step was at when it was stopped goes on only for the
        same thing.
        """
        place, note = self.own / name, self.own / f"{name}.key.json"
        wanted = sha256_of(key)
        if self.folder.content(f"{self.own.name}/{note.name}") != {"sha256": wanted}:
            if place.exists():
                shutil.rmtree(place)
            write_json(note, {"sha256": wanted})
        return place

    def relative(self, paths: Iterable[Path]) -> list[str]:
        """Return files as they stand in a step's file: relative to the workflow's folder."""
        return [path.relative_to(self.folder.root).as_posix() for path in paths]

    def judge(self) -> JudgeSettings | None:
        """Return the judge of the workflow; None for none."""
        chosen = self.definition.judge
        if chosen is None:
            return None
        kind = parse_address(chosen.url, chosen.kind, "--judge").kind
        if chosen.mode != "replay" or kind not in SERVERS:
            refuse_received(self.definition, "judge")
        return JudgeSettings(
            chosen.url,
            chosen.model,
            self.folder.root / chosen.store,
            chosen.mode,
            dict(chosen.options),
            kind=chosen.kind,
            concurrency=chosen.concurrency,
            timeout_s=chosen.timeout_s,
        )

    def judge_name(self) -> str | None:
        """Return the judge in words; None for none."""
        chosen = self.definition.judge
        return None if chosen is None else f"{chosen.model} ({chosen.mode})"


@dataclass(frozen=True)
class Step:
    """A step: what it rests on beside its own parameters, and what does it.

    Attributes:
        parts: Of other steps.
        chosen: Parts of the definition.
        stored: Parts of the definition that name files in the folder.
        models: Whether models of the pack are asked.
        version: Of its rules; another one makes older results stale.
    """

    name: StepName
    run: Callable[[StepContext], StepOutcome]
    parts: tuple[tuple[StepName, str], ...] = ()
    chosen: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    models: bool = False
    version: int = 1


class Why(NamedTuple):
    """A reason why a step is not current: a file, a part of it, and what is the matter."""

    file: str
    part: str
    what: str

    def __str__(self) -> str:
        place = f"{self.file}: {self.part}" if self.part else self.file
        return f"{place} {self.what}"


@dataclass(frozen=True)
class StepStatus:
    """A step as it stands."""

    step: StepName
    state: State
    why: tuple[Why, ...] = ()
    record: StepRecord | None = None

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        record = self.record
        return {
            "step": self.step,
            "title": TITLES[self.step],
            "state": self.state,
            "why": [one._asdict() for one in self.why],
            "skipped": record.reason if record and record.state == "skipped" else None,
            "notes": list(record.notes) if record else [],
        }


class StepEngine:
    """Knows the steps, and runs them over folders.

    Args:
        steps: By name, all nine.
    """

    def __init__(self, steps: Mapping[StepName, Step]) -> None:
        self._steps = steps
        self._models: dict[str, PackModels] = {}

    def status(self, folder: WorkflowFolder) -> list[StepStatus]:
        """Return every step as it stands, in order.

        Raises:
            ConfigurationError: If a file of the workflow is not readable.
        """
        definition, found = read_definition(folder), dict[StepName, StepStatus]()
        for step in STEPS:
            found[step] = self._status(folder, definition, self._steps[step], found)
        return list(found.values())

    def run(
        self,
        folder: WorkflowFolder,
        only: StepName | None = None,
        *,
        again: Iterable[StepName] = (),
        effort: Effort = Effort(),
        bars: Bars = _no_bar,
        told: Callable[[StepName, str], None] = lambda _step, _what: None,
    ) -> list[StepName]:
        """Run what is missing or stale, and return the steps that ran.

        Args:
            folder: Of the workflow; locked meanwhile.
            only: One step by itself; what it rests on has to be current.
            again: Steps to run although they are current; their folders are emptied first.
            effort: Processes and questions at a time.
            bars: Shows how far a step is.
            told: Told of each step what is done with it.

        Raises:
            ConfigurationError: If somebody else runs it, or a step cannot run.
        """
        with locked(folder):
            folder.sweep()
            for step in again:
                folder.step_file(step).unlink(missing_ok=True)
                if folder.step_folder(step).exists():
                    shutil.rmtree(folder.step_folder(step))
            return list(self._run(folder, only, effort, bars, told))

    def _run(
        self,
        folder: WorkflowFolder,
        only: StepName | None,
        effort: Effort,
        bars: Bars,
        told: Callable[[StepName, str], None],
    ) -> Iterator[StepName]:
        definition, found = read_definition(folder), dict[StepName, StepStatus]()
        for step in STEPS:
            found[step] = self._status(folder, definition, self._steps[step], found)
            if only not in (None, step):
                continue
            if found[step].state == "current":
                told(step, "is current")
            else:
                self._refuse_open(folder, step, found)
                told(step, "runs")
                self._do(folder, definition, self._steps[step], effort, bars)
                found[step] = StepStatus(step, "current")
                yield step
            if step == only:
                return

    def _do(
        self,
        folder: WorkflowFolder,
        definition: Definition,
        step: Step,
        effort: Effort,
        bars: Bars,
    ) -> None:
        parameters = definition.parameters(step.name)
        before = self._dependencies(folder, definition, step)
        context = StepContext(
            folder, definition, step.name, parameters, self._models_of, effort, bars
        )
        started = time.monotonic()
        outcome = step.run(context)
        spent = {"seconds": round(time.monotonic() - started, 3), **outcome.timings}
        if self._dependencies(folder, definition, step) != before:
            found = f"{step.name} changed while it ran"
            raise ConfigurationError(str(folder.root), found, "the same command again")
        folder.write(
            StepRecord(
                step=step.name,
                parameters=parameters.model_dump(mode="json"),
                depends_on=before,
                results=outcome.results,
                state="skipped" if outcome.skipped else "done",
                reason=outcome.skipped,
                judge=outcome.judge,
                inputs=outcome.inputs,
                files={name: folder.sha256(name) for name in outcome.files},
                notes=tuple(outcome.notes),
                timings=spent,
            )
        )

    def _refuse_open(
        self, folder: WorkflowFolder, step: StepName, status: Mapping[StepName, StepStatus]
    ) -> None:
        """Refuse to run a step while what it rests on is not there; so it is only for one alone.

        Raises:
            ConfigurationError: Naming the first such step.
        """
        for other, _ in self._steps[step].parts:
            if status[other].state != "current":
                found = f"{file_of(other)}, which is {status[other].state}"
                expected = f"the step {other} first: --step {other}, or all steps"
                raise ConfigurationError(f"{folder.root}: {step}", found, expected)

    def _status(
        self,
        folder: WorkflowFolder,
        definition: Definition,
        step: Step,
        before: Mapping[StepName, StepStatus],
    ) -> StepStatus:
        record = folder.record(step.name)
        if record is None:
            return StepStatus(step.name, "missing")
        why = [*self._changed(folder, definition, step, record)]
        for other in dict.fromkeys(name for name, _ in step.parts):
            if before[other].state != "current" and not any(
                one.file == file_of(other) for one in why
            ):
                why.append(Why(file_of(other), "", f"is {before[other].state}"))
        for name, sha256 in record.files.items():
            now = folder.sha256(name)
            if now != sha256:
                why.append(Why(name, "", "was changed" if now else "is gone"))
        return StepStatus(step.name, "stale" if why else "current", tuple(why), record)

    def _changed(
        self, folder: WorkflowFolder, definition: Definition, step: Step, record: StepRecord
    ) -> Iterator[Why]:
        then = {one.place: one.sha256 for one in record.depends_on}
        now = {one.place: one.sha256 for one in self._dependencies(folder, definition, step)}
        for place in sorted({*then, *now}):
            if then.get(place) != now.get(place):
                words = {None: "is new", "": "is new"}.get(then.get(place), "was changed")
                yield Why(*place, words if now.get(place) else "is gone")

    def _dependencies(
        self, folder: WorkflowFolder, definition: Definition, step: Step
    ) -> tuple[Dependency, ...]:
        found = [Dependency(VERSION, step.name, str(step.version))]
        parameters = definition.parameters(step.name).model_dump(mode="json")
        found.append(Dependency(DEFINITION, f"steps.{step.name}", sha256_of(parameters)))
        found += [
            Dependency(DEFINITION, part, folder.sha256(DEFINITION, part)) for part in step.chosen
        ]
        found += [Dependency(name, "", folder.sha256(name)) for name in _stored(definition, step)]
        found += [
            Dependency(file_of(other), part, folder.sha256(file_of(other), f"results.{part}"))
            for other, part in step.parts
        ]
        if step.models:
            found.append(Dependency(MODELS, definition.pack, _fingerprints(definition.pack)))
        return tuple(found)

    def _models_of(self, pack: str) -> PackModels:
        if pack not in self._models:
            self._models[pack] = load_models(pack)
        return self._models[pack]


def _stored(definition: Definition, step: Step) -> Iterator[str]:
    """Yield the files of the folder that a step reads because the definition names them."""
    for part in step.stored:
        if part == "documents":
            yield from (one.path for one in definition.documents)
        elif part == "target":
            target = definition.target
            yield from (name for name in (target and target.answers, target and target.template)
                        if name)  # fmt: skip
        elif (name := getattr(definition, part)) is not None:
            yield name


@lru_cache
def _fingerprints(pack: str) -> str:
    """Return the hash of what models and rules of a pack depend on; read once in a process."""
    from guardrail_service.server.runtime import pack_at_hand, serving_for

    return sha256_of(dict(serving_for(pack_at_hand(pack)).fingerprints))
