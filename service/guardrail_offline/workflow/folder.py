"""The folder of a workflow: where its files lie, how they are written, hashed and locked."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from guardrail_offline.datasets.labs import file_sha256
from guardrail_offline.runs.shards import write_json, written_name
from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.policy.provenance import sha256_of

StepName = Literal[
    "topics", "generation", "validation", "evaluation", "calibration", "failures", "weaknesses",
    "variations", "adversarial",
]  # fmt: skip
STEPS: tuple[StepName, ...] = get_args(StepName)
TITLES: Mapping[StepName, str] = {
    "topics": "Topic modelling",
    "generation": "Test generation",
    "validation": "Test validation",
    "evaluation": "Automated evaluation",
    "calibration": "Human calibration",
    "failures": "Failure clustering",
    "weaknesses": "Weakness detection",
    "variations": "Robustness: input variations",
    "adversarial": "Robustness: adversarial inputs",
}
DEFINITION = "workflow.json"
DOCUMENTS = "documents"
REPORT = "report.html"
SCHEMA_VERSION = "1"
_LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class Dependency:
    """A file that a step rests on, or a part of one, and the hash that it had.

    Attributes:
        file: Relative to the folder.
        part: Dotted place in a JSON file; empty for a whole file.
        sha256: Empty where there is no such thing.
    """

    file: str
    part: str
    sha256: str

    @property
    def place(self) -> tuple[str, str]:
        """Return file and part."""
        return self.file, self.part


@dataclass(frozen=True)
class StepRecord:
    """A finished step, as its file has it.

    Attributes:
        state: `skipped` where there was nothing to do; `reason` says why.
        judge: The judge that this step asked; None for nobody.
        depends_on: Everything the results rest on.
        inputs: Counts of what was read.
        results: Parts that other steps depend on, by name.
        files: Hashes of further files of the step, by path relative to the folder.
        notes: Sentences for people.
        timings: Seconds; in no hash.
    """

    step: StepName
    parameters: Mapping[str, Any]
    depends_on: tuple[Dependency, ...]
    results: Mapping[str, Any]
    state: Literal["done", "skipped"] = "done"
    reason: str | None = None
    judge: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the content of the step's file."""
        return {
            "schema_version": SCHEMA_VERSION,
            "step": self.step,
            "number": STEPS.index(self.step) + 1,
            "title": TITLES[self.step],
            "state": self.state,
            "reason": self.reason,
            "parameters": dict(self.parameters),
            "judge": self.judge,
            "depends_on": [
                {"file": one.file, "part": one.part, "sha256": one.sha256}
                for one in self.depends_on
            ],
            "inputs": dict(self.inputs),
            "results": dict(self.results),
            "files": [{"path": path, "sha256": sha} for path, sha in sorted(self.files.items())],
            "notes": list(self.notes),
            "timings": dict(self.timings),
        }


@dataclass(frozen=True)
class WorkflowFolder:
    """The paths of a workflow, and its files as values."""

    root: Path

    @property
    def definition(self) -> Path:
        """Return the file with what people chose."""
        return self.root / DEFINITION

    def step_file(self, step: StepName) -> Path:
        """Return the file of a step."""
        return self.root / file_of(step)

    def step_folder(self, step: StepName) -> Path:
        """Return the folder for what is too much for the step's file."""
        return self.root / file_of(step).removesuffix(".json")

    def record(self, step: StepName) -> StepRecord | None:
        """Return a finished step; None where there is none.

        Raises:
            ConfigurationError: If its file is no such one.
        """
        content = self.content(file_of(step))
        return None if content is None else _record(self.step_file(step), content)

    def content(self, name: str) -> Any:
        """Return the JSON of a file; None where there is none.

        Raises:
            ConfigurationError: If it is not readable.
        """
        path = self.root / name
        if not path.exists():
            return None
        try:
            return json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigurationError(str(path), type(error).__name__, "JSON") from error

    def write(self, record: StepRecord) -> None:
        """Write a step's file, whole or not at all."""
        write_json(self.step_file(record.step), record.as_json())

    def sha256(self, name: str, part: str = "") -> str:
        """Return the hash of a file or of a part of a JSON file; empty where there is none."""
        path = self.root / name
        if not part:
            return file_sha256(path) if path.exists() else ""
        found = self.content(name)
        for key in part.split("."):
            if not isinstance(found, Mapping) or key not in found:
                return ""
            found = found[key]
        return sha256_of(found)

    def sweep(self) -> None:
        """Remove what a run was writing when it was stopped; only files of our own names."""
        names = {DEFINITION, REPORT, *map(file_of, STEPS)}
        for leftover in self.root.glob(".*.tmp"):
            if written_name(leftover) in names:
                leftover.unlink()


def leads_elsewhere(name: str) -> bool:
    """Return whether a name of a file in the folder leads out of it."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name


def file_of(step: StepName) -> str:
    """Return the name of a step's file."""
    return f"{STEPS.index(step) + 1}-{step}.json"


def step_named(name: str) -> StepName:
    """Return the step of a name or number.

    Raises:
        ConfigurationError: If there is none.
    """
    for number, step in enumerate(STEPS, start=1):
        if name in (step, str(number)):
            return step
    raise ConfigurationError("--step", repr(name)[:40], choices(name, STEPS, "step"))


def opened(root: Path) -> WorkflowFolder:
    """Return the folder of a workflow.

    Raises:
        ConfigurationError: If there is none.
    """
    found = WorkflowFolder(root)
    if not found.definition.is_file():
        raise ConfigurationError(str(root), f"no {DEFINITION}", "a folder of guardrail workflow")
    return found


@contextmanager
def locked(folder: WorkflowFolder) -> Iterator[None]:
    """Hold the folder: nobody else writes into it meanwhile. A killed process holds nothing.

    Raises:
        ConfigurationError: If somebody does.
    """
    path = folder.root / _LOCK
    with path.open("a+", encoding="ascii") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            stream.seek(0)
            holder = stream.read(20).strip()
            found = f"in use by process {holder}" if holder.isdecimal() else "in use"
            raise ConfigurationError(str(folder.root), found, "one writer at a time") from error
        stream.truncate(0)
        stream.write(str(os.getpid()))
        stream.flush()
        yield


def _record(path: Path, content: Any) -> StepRecord:
    try:
        found = StepRecord(
            step=step_named(content["step"]),
            parameters=content["parameters"],
            depends_on=tuple(
                Dependency(one["file"], one["part"], one["sha256"]) for one in content["depends_on"]
            ),
            results=content["results"],
            state="skipped" if content["state"] == "skipped" else "done",
            reason=content["reason"],
            judge=content["judge"],
            inputs=content["inputs"],
            files={one["path"]: one["sha256"] for one in content["files"]},
            notes=tuple(content["notes"]),
            timings=content["timings"],
        )
        outward = any(map(leads_elsewhere, found.files))
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(str(path), "another shape", "the file of a step") from error
    if outward:
        raise ConfigurationError(f"{path}: files", "a path that leads elsewhere", "names in it")
    return found
