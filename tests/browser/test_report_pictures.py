"""The pictures of the documentation, made of the board by `docs/report_pictures.py`."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from docs.report_pictures import IMAGES, NAMES, WIDTH, make, report_of_the_board


@pytest.mark.timeout(1800)  # evaluates 360 answers
def test_the_pictures_of_the_documentation_can_be_made(browser: Browser, tmp_path: Path) -> None:
    """Written into the documentation where the environment asks for it."""
    out = IMAGES if os.environ.get("GUARDRAIL_WRITE_SCREENSHOT") else tmp_path
    make(browser, report_of_the_board(tmp_path / "run"), out)
    assert {name for name in NAMES if (out / name).stat().st_size > 5_000} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_of_the_documentation_is_small_enough(name: str) -> None:
    """Under 200 KB, as wide as the page at most, and shown."""
    data = (IMAGES / name).read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < 200_000
    assert struct.unpack(">I", data[16:20])[0] <= max(WIDTH, 1400)
    assert f"images/{name}" in (IMAGES.parent / "report.md").read_text("utf-8")
