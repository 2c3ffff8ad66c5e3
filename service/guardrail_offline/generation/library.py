"""Shipped suites: cases that need no document, written for the project, under its licence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from guardrail_offline.datasets.cases import Case, Lab, question_group
from guardrail_offline.datasets.h2o_labs import lab_json
from guardrail_offline.evaluators.result import dumps
from guardrail_service.errors import ConfigurationError, choices

SUITE_NAMES = (
    "attacks", "bias_pairs", "common_knowledge", "greetings", "personal_data", "refusals",
    "unanswerable",
)  # fmt: skip


@dataclass(frozen=True)
class LibrarySuite:
    """A suite of the library.

    Attributes:
        name: What to call it on the command line.
        title: For people.
        description: What it is for.
        license: SPDX identifier.
        source: Where its cases come from.
        cases: In the order of its file.
    """

    name: str
    title: str
    description: str
    license: str
    source: str
    cases: tuple[Case, ...]

    def as_json(self) -> dict[str, Any]:
        """Return what lists of suites show."""
        return {
            "name": self.name, "title": self.title, "cases": len(self.cases),
            "license": self.license, "source": self.source, "description": self.description,
        }  # fmt: skip


@cache
def library_suite(name: str) -> LibrarySuite:
    """Return a suite by name.

    Raises:
        ConfigurationError: If there is none of this name.
    """
    if name not in SUITE_NAMES:
        raise ConfigurationError("--from-library", repr(name), choices(name, SUITE_NAMES, "suite"))
    text = files(__package__).joinpath("library", f"{name}.json").read_text("utf-8")
    content = json.loads(text)
    cases = tuple(
        _case(content, record, number) for number, record in enumerate(content["cases"], start=1)
    )
    shown = ("name", "title", "description", "license", "source")
    return LibrarySuite(**{key: content[key] for key in shown}, cases=cases)


def _case(suite: Mapping[str, Any], record: Mapping[str, Any], number: int) -> Case:
    group = record.get("group")
    return Case(
        key=f"{suite['name']}-{number}",
        question=record["question"],
        expected=record.get("expected"),
        condition=record.get("condition"),
        categories=("library", f"library:{suite['name']}", *suite["categories"]),
        group=f"{suite['name']}-{group}" if group else question_group(record["question"]),
        answerable=record.get("answerable"),
    )


class _Suites(Mapping[str, LibrarySuite]):
    """The suites by name, read when they are asked for."""

    def __getitem__(self, name: str) -> LibrarySuite:
        if name not in SUITE_NAMES:
            raise KeyError(name)
        return library_suite(name)

    def __iter__(self) -> Any:
        return iter(SUITE_NAMES)

    def __len__(self) -> int:
        return len(SUITE_NAMES)


SUITES: Mapping[str, LibrarySuite] = _Suites()


def library_cases(name: str, count: int | None = None, seed: int = 0) -> list[Case]:
    """Return cases of a suite in its order: all of them, or as many as wanted, drawn by the seed.

    Groups, such as the two questions of a pair, are drawn whole; the last one may go over `count`.

    Raises:
        ConfigurationError: If there is no such suite, or it has fewer cases.
    """
    suite = library_suite(name)
    if count is None:
        return list(suite.cases)
    if count > len(suite.cases):
        raise ConfigurationError(
            "--count", str(count), f"at most {len(suite.cases)}, all of {name}"
        )

    def rank(group: str) -> str:
        return hashlib.sha256(f"{seed}\0{name}\0{group}".encode()).hexdigest()

    taken: set[str] = set()
    for group in sorted({case.group for case in suite.cases}, key=rank):
        if sum(case.group in taken for case in suite.cases) >= count:
            break
        taken.add(group)
    return [case for case in suite.cases if case.group in taken]


def library_lab(name: str, count: int | None = None, seed: int = 0) -> Lab:
    """Return cases of a suite as a lab, as `library_cases` draws them.

    Raises:
        ConfigurationError: If there is no such suite, or it has fewer cases.
    """
    suite = library_suite(name)
    described = f"{suite.description} {suite.license}; {suite.source}."
    return Lab(tuple(library_cases(name, count, seed)), name=suite.title, description=described)


def write_library(lab: Lab, out_file: Path, *, queries_only: bool = False) -> None:
    """Write cases of the library as a lab.

    Raises:
        ConfigurationError: If the file cannot be written.
    """
    if queries_only:
        bare = (replace(c, expected=None, condition=None, answerable=None) for c in lab.cases)
        lab = replace(lab, cases=tuple(bare))
    try:
        out_file.write_text(dumps(lab_json(lab)) + "\n", "utf-8")
    except OSError as error:
        raise ConfigurationError("--out", type(error).__name__, "a file to write") from error
