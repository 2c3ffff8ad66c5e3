"""The files of a workflow as values that know where they stand, so that a report can say so."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from guardrail_offline.intervals import exact_interval
from guardrail_service.errors import ConfigurationError

DEFINITION = "workflow.json"
STEP_FILES: Mapping[str, str] = {
    "topics": "1-topics.json",
    "generation": "2-generation.json",
    "validation": "3-validation.json",
    "evaluation": "4-evaluation.json",
    "calibration": "5-calibration.json",
    "failures": "6-failures.json",
    "weaknesses": "7-weaknesses.json",
    "variations": "8-variations.json",
    "adversarial": "9-adversarial.json",
}
NumberForm = Literal[
    "int", "count", "f2", "f3", "share", "p", "share_of", "exact_low", "exact_high"
]
"""How a number is written; the last three are of a count and what it is counted of."""
MISSING = "-"


@dataclass(frozen=True)
class ReportNumber:
    """A number as a report shows it, and the place where it stands.

    Attributes:
        text: As it is shown.
        file: Relative to the folder of the workflow.
        pointer: JSON pointer (RFC 6901) in that file.
        form: How the value became the text.
        of: File and pointer of what a count is counted of, for forms that need it.
    """

    text: str
    file: str
    pointer: str
    form: NumberForm
    of: tuple[str, str] | None = None


Run = str | ReportNumber


@dataclass(frozen=True)
class JsonPlace:
    """A value in a JSON file, with the way to it. A key that is not there has the value None."""

    file: str
    pointer: str
    value: Any

    def __getitem__(self, key: str | int) -> JsonPlace:
        """Return what stands under a key or a position."""
        found: Any = None
        if isinstance(self.value, Mapping) and isinstance(key, str):
            found = self.value.get(key)
        elif isinstance(self.value, Sequence) and not isinstance(self.value, str):
            found = self.value[key] if isinstance(key, int) and key < len(self.value) else None
        part = str(key).replace("~", "~0").replace("/", "~1")
        return JsonPlace(self.file, f"{self.pointer}/{part}", found)

    def __iter__(self) -> Iterator[JsonPlace]:
        """Yield the entries of a list or an object, in order; nothing for other values."""
        if isinstance(self.value, Mapping):
            yield from (self[key] for key in self.value)
        elif isinstance(self.value, list):
            yield from (self[position] for position in range(len(self.value)))

    @property
    def key(self) -> str:
        """Return the last part of the way."""
        return self.pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")

    @property
    def text(self) -> str:
        """Return the value as a text; empty for none."""
        return "" if self.value is None else str(self.value)

    def number(self, form: NumberForm, of: JsonPlace | None = None) -> Run:
        """Return the number to show; a dash where there is none."""
        text = written(self.value, form, None if of is None else of.value)
        if text is None:
            return MISSING
        other = None if of is None else (of.file, of.pointer)
        return ReportNumber(text, self.file, self.pointer, form, other)


def written(value: Any, form: NumberForm, of: Any = None) -> str | None:
    """Return a value in a form; None if it has no such form."""
    if form == "count":
        return f"{len(value):,}" if isinstance(value, list | Mapping) else None
    if form in ("share_of", "exact_low", "exact_high"):
        return _written_of(_counted(value), form, _counted(of))
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if form == "int":
        return f"{value:,}"
    if form == "share":
        return f"{100 * value:.1f}\u00a0%"
    if form == "p":
        return "<\u00a00.001" if value < 0.001 else f"{value:.3f}"
    return f"{value:.{form[1:]}f}"


def _written_of(count: int | None, form: NumberForm, whole: int | None) -> str | None:
    if count is None or not whole or count > whole:
        return None
    if form == "share_of":
        return f"{100 * count / whole:.1f}\u00a0%"
    return f"{100 * exact_interval(count, whole)[form == 'exact_high']:.1f}\u00a0%"


def _counted(value: Any) -> int | None:
    if isinstance(value, list | Mapping):
        return len(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def resolve(content: Any, pointer: str) -> Any:
    """Return what a JSON pointer points at.

    Raises:
        KeyError: If there is nothing.
    """
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(content, list):
            if not key.isdecimal() or int(key) >= len(content):
                raise KeyError(pointer)
            content = content[int(key)]
        elif isinstance(content, Mapping) and key in content:
            content = content[key]
        else:
            raise KeyError(pointer)
    return content


@dataclass(frozen=True)
class WorkflowData:
    """A workflow's folder, read.

    Args:
        root: The folder.
    """

    root: Path
    _read: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check that it is one.

        Raises:
            ConfigurationError: If it is none.
        """
        if not (self.root / DEFINITION).is_file():
            expected = "a folder of guardrail workflow"
            raise ConfigurationError(str(self.root), f"no {DEFINITION}", expected)

    def file(self, name: str) -> JsonPlace:
        """Return a JSON file of the folder; its value is None where there is none.

        Raises:
            ConfigurationError: If it is no JSON.
        """
        if name not in self._read:
            path = self.root / name
            try:
                self._read[name] = json.loads(path.read_text("utf-8")) if path.is_file() else None
            except (OSError, ValueError, RecursionError) as error:
                raise ConfigurationError(str(path), type(error).__name__, "JSON") from error
        return JsonPlace(name, "", self._read[name])

    def step(self, name: str) -> JsonPlace:
        """Return the file of a step."""
        return self.file(STEP_FILES[name])

    def results(self, name: str) -> JsonPlace:
        """Return the results of a step; with the value None where it was not run."""
        return self.step(name)["results"]

    @cached_property
    def definition(self) -> JsonPlace:
        """Return the definition."""
        return self.file(DEFINITION)

    def done(self, name: str) -> bool:
        """Return whether a step was run and not skipped."""
        return bool(self.step(name)["state"].value == "done")

    def missing(self, *names: str) -> str:
        """Return that the first of some steps without results was not run; empty if all were."""
        for number, name in enumerate(STEP_FILES, start=1):
            if name in names and not self.done(name):
                how = "not run" if self.step(name).value is None else "skipped"
                return f"step {number} was {how}"
        return ""

    @cached_property
    def present(self) -> tuple[str, ...]:
        """Return the steps whose files are there."""
        return tuple(name for name in STEP_FILES if self.step(name).value is not None)

    def sha256(self, name: str) -> str:
        """Return the hash of a file."""
        return hashlib.sha256((self.root / name).read_bytes()).hexdigest()
