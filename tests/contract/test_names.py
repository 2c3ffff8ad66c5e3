"""No public class and no file of a package stands for two things; what does is listed, and why."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import guardrail_client
from guardrail_service import errors

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "service/guardrail_service",
    "service/guardrail_offline",
    "guardrail_client",
    "models/guardrail_models",
    "load_tests/guardrail_bench",
)

ON_THE_WIRE = {
    "Coverage",
    "DetectorResult",
    "Evidence",
    "MetricResult",
    "PolicyRef",
    "Span",
    "StreamFinal",
    "Timings",
}
"""The client's types of a reply. It is installed without the service, so it states them itself, and
a program that reads a reply should find in it the words of the API."""
ERRORS_ON_THE_WIRE = {"NotReady", "Overloaded"}
"""Raised by the service, sent with their `code`, raised again by the client."""

IN_EVERY_PACKAGE = {"__init__.py", "setup.py", "commands.py", "errors.py", "types.py"}
"""Says the same of each package it stands in."""
IN_EVERY_FOLDER_OF_A_DETECTOR = {"detector.py"}
"""A detector of several files begins there."""


def files() -> Iterator[Path]:
    """Yield the source files of every package."""
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def twice(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return what stands in more than one place."""
    return {name: places for name, places in found.items() if len(places) > 1}


def test_a_public_class_name_stands_for_one_thing() -> None:
    """Whoever reads it in a message or an import need not ask which one is meant."""
    found = defaultdict[str, list[str]](list)
    for path in files():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(ROOT)))
    doubles = twice(found)
    assert doubles.keys() == ON_THE_WIRE | ERRORS_ON_THE_WIRE, doubles
    for name, places in doubles.items():
        roots = sorted(place.split("/")[0] for place in places)
        assert roots == ["guardrail_client", "service"], name


def test_an_error_of_two_packages_is_one_error() -> None:
    """The client raises what the service sent: the same code."""
    for name in ERRORS_ON_THE_WIRE:
        assert getattr(guardrail_client, name).code == getattr(errors, name).code


def test_a_file_name_stands_for_one_thing() -> None:
    """A stranger who is told a file's name finds one file, or one in each place of its kind."""
    found = defaultdict[str, list[str]](list)
    for path in files():
        found[path.name].append(str(path.relative_to(ROOT)))
    doubles = twice(found)
    assert doubles.keys() <= IN_EVERY_PACKAGE | IN_EVERY_FOLDER_OF_A_DETECTOR, doubles
    for name in IN_EVERY_FOLDER_OF_A_DETECTOR:
        folders = [Path(place).parent.parent.name for place in found[name]]
        assert set(folders) == {"detectors"}
