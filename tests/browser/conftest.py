"""Run by `.ci/browser` only: needs a browser, which `make test` must not."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
