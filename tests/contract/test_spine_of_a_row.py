"""The spine of an offline row in docs/architecture.md is the way a real row takes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from guardrail_offline.datasets.cases import Case, Lab
from guardrail_offline.datasets.labs import lab_source
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.runs.execution import RunOptions, evaluate_lab
from guardrail_service.types import Passage

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
SECTION = PAGE.split("## The spine of an offline row\n")[1].split("\n## ")[0]
SPINE = [
    (path, function)
    for path, functions in re.findall(r"^\| `([^`]+)` \| (.+?) \|", SECTION, re.MULTILINE)
    for function in re.findall(r"`([^`]+)`", functions)
]
CASE = Case(
    "k",
    "When does the pool open?",
    "The pool opens at seven in the morning.",
    contexts=(Passage("The pool opens at seven."),),
    model="m",
    group="g",
)


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """Return every function of ours that one row enters, in the order of its first call."""
    found: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT / "service")):
            path = Path(frame.f_code.co_filename).relative_to(ROOT).as_posix()
            found.setdefault((path, frame.f_code.co_qualname))

    lab, configured = lab_source(Lab((CASE,), name="lab")), configure(["groundedness"])
    options = RunOptions(tmp_path_factory.mktemp("spine") / "out")
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        evaluate_lab(lab, configured, options)
    finally:
        sys.setprofile(before)
    return list(found)


def test_the_spine_is_walked_in_the_order_of_the_page(called: list[tuple[str, str]]) -> None:
    """Every function of the table is entered, each first after the one above it."""
    assert [step for step in called if step in set(SPINE)] == SPINE


def test_the_spine_is_short(called: list[tuple[str, str]]) -> None:
    """At most fourteen files, of all that a row enters."""
    files = {path for path, _ in called}
    assert len({path for path, _ in SPINE}) <= 14
    assert {path for path, _ in SPINE} <= files
