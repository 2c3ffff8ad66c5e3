"""Run by `.ci/studio` only: needs a browser, which `make test` must not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import QUIET, WAIT_MS
from tests.integration.conftest import COMMAND, environment

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

BROWSER = os.environ.get("GUARDRAIL_BROWSER")
collect_ignore_glob = [] if BROWSER else ["test_*.py"]
ROOT = Path(__file__).resolve().parents[2]
ANSWERS = [
    json.loads(line)
    for line in (ROOT / "models" / "thresholds" / "answers.jsonl").read_text("utf-8").splitlines()
]
GOOD = {answer["answer"]: answer["label"] == "pass" for answer in ANSWERS}
"""Whether each of the project's labelled answers may be shown."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's chromium."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=QUIET)
        yield started
        started.close()


class RunningStudio:
    """A `guardrail studio` of its own process."""

    def __init__(self, arguments: Sequence[str | Path]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *COMMAND[1:], "studio", *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        line = self.process.stdout.readline() if self.process.stdout else ""
        self.entrance = line.removeprefix("studio: ").strip()
        self.address = self.entrance.partition("/enter")[0]
        self.port = self.address.rpartition(":")[2]

    def kill(self) -> None:
        """End it at once, as the kernel does when memory is short."""
        self.process.kill()
        self._ended()

    def end(self) -> None:
        """End it as Ctrl+C does."""
        self.process.terminate()
        self._ended()

    def _ended(self) -> None:
        self.process.wait(60)
        if self.process.stdout:
            self.process.stdout.close()


@contextmanager
def studio_of(*arguments: str | Path) -> Iterator[RunningStudio]:
    """Run a studio on a free port and make sure that it ends."""
    running = RunningStudio([*arguments, "--port", "0"])
    try:
        yield running
    finally:
        running.end()


def sample(folder: Path, count: int, **texts: object) -> Path:
    """Write a folder with answers to label."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ("question", "answer", "contexts")
    lines = [{"case": a["id"], **{n: a[n] for n in names}, **texts} for a in ANSWERS[:count]]
    (folder / "to_label.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def come_in(context: BrowserContext, running: RunningStudio, name: str, entrance: str = "") -> Page:
    """Open the address of the terminal and give a name."""
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(entrance or running.entrance)
    page.wait_for_url("**/name")
    page.fill("input[name=name]", name)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{running.address}/")
    return page


def label_key(page: Page, key: str) -> None:
    """Press a label's key and wait until the page shows another case, or the end."""
    before = page.inner_text("#place")
    page.keyboard.press(key)
    page.wait_for_function(
        "before => document.getElementById('place').textContent !== before"
        " || !document.getElementById('done').hidden",
        arg=before,
    )
