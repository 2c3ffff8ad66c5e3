"""Run by `.ci/browser` only: needs a browser, which `make test` must not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

WAIT_MS = 60_000
"""A machine that does much else is slow; nothing here measures time."""

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROWSER = os.environ.get("GUARDRAIL_BROWSER")
collect_ignore_glob = [] if BROWSER else ["test_*.py"]
QUIET = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's chromium."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=QUIET)
        yield started
        started.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the example lab's report."""
    from guardrail_offline.datasets.labs import open_lab
    from guardrail_offline.evaluators.configured import configure
    from guardrail_offline.report.page import write_report
    from guardrail_offline.runs.execution import RunOptions, evaluate_lab

    out = tmp_path_factory.mktemp("report") / "out"
    ids = ["rouge", "pii", "text_matching", "classification", "answer_strings", "facts", "looping"]
    lab = Path(__file__).resolve().parents[2] / "examples" / "lab" / "lab.json"
    evaluate_lab(open_lab(lab), configure(ids), RunOptions(out))
    write_report([out], out / "report.html")
    return (out / "report.html").as_uri()
