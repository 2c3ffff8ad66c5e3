"""The spine of a fit is the one that docs/architecture.md names: a real fit is traced."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from guardrail_offline.calibration.fit import FitInputs, run_fit
from guardrail_offline.calibration.fit_options import FitOptions
from guardrail_offline.calibration.labels import Label, labels_jsonl
from guardrail_offline.calibration.scored_lab import write_lab
from tests.unit.offline.calibration import labs

ROOT = Path(__file__).resolve().parents[2]
SERVICE = ROOT / "service"
MOST_FILES, MOST_WAYS = 22, 48
"""Files of the project that one fit enters, and different ways from one of them into another."""


class Trace:
    """The functions of the project that are entered, and the moves between its files."""

    def __init__(self) -> None:
        """Start with nothing entered."""
        self.entered: dict[str, list[str]] = {}
        self.ways: set[tuple[str, str]] = set()
        self._stack: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call or a return of the project's own code, as sys.setprofile sends it."""
        path = Path(frame.f_code.co_filename)
        if event not in ("call", "return") or not path.is_relative_to(SERVICE):
            return
        name = str(path.relative_to(ROOT))
        if event == "return":
            self._stack.pop()
            return
        self.entered.setdefault(name, []).append(frame.f_code.co_name)
        if self._stack and self._stack[-1] != name:
            self.ways.add((self._stack[-1], name))
        self._stack.append(name)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """The trace of a fit from files to a guardrail file, with a lab of 160 questions."""
    folder = tmp_path_factory.mktemp("fit")
    lab, passes = labs.lab(160)
    words = [Label(key, "pass" if good else "fail") for key, good in passes.items()]
    (folder / "lab.jsonl").write_text("\n".join(write_lab(lab)) + "\n")
    (folder / "labels.jsonl").write_text(labels_jsonl(words))
    (folder / "base.json").write_text(json.dumps(labs.BASE))
    inputs = FitInputs(folder / "lab.jsonl", folder / "labels.jsonl", folder / "base.json")
    options, found, before = FitOptions(alpha=0.1), Trace(), sys.getprofile()
    sys.setprofile(found)
    try:
        run_fit(inputs, options, labs.SERVING)
    finally:
        sys.setprofile(before)
    return found


def page() -> list[tuple[str, list[str]]]:
    """Return the files and functions of the page's table, in order."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    section = text.split("## The spine of a fit", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", section, re.MULTILINE)
    return [(file, re.findall(r"`(?:\w+\.)?(\w+)`", names)) for file, names in rows]


def test_the_page_names_the_offline_files_in_the_order_they_are_entered(trace: Trace) -> None:
    """All of them and no other."""
    entered = [name for name in trace.entered if "/guardrail_offline/" in name]
    assert entered == [file for file, _ in page()]


def test_the_functions_on_the_page_run(trace: Trace) -> None:
    """Each in its file."""
    for file, functions in page():
        assert functions
        assert set(functions) <= set(trace.entered[file]), file


def test_a_fit_stays_in_few_files(trace: Trace) -> None:
    """A reader can follow it; version 0.1.0 took 26 files and 62 ways between them."""
    assert len(trace.entered) <= MOST_FILES
    assert len(trace.ways) <= MOST_WAYS
