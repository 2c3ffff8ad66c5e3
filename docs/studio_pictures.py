"""Takes the pictures of `docs/studio.md` while `.ci/studio` walks through the loop.

    GUARDRAIL_WRITE_SCREENSHOT=1 .ci/run studio

Decisions, labels and layout are those of this checkout.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page, ViewportSize

IMAGES = Path(__file__).resolve().parent / "images"
NAMES = ("studio-decision.png", "studio-label.png", "studio-fit.png")
VIEWPORT: ViewportSize = {"width": 1280, "height": 800}


def shot(page: Page, name: str) -> None:
    """Write a picture of what a page shows now, if pictures are wanted.

    Args:
        page: At the place that the picture is of.
        name: One of `NAMES`.
    """
    if os.environ.get("GUARDRAIL_WRITE_SCREENSHOT"):
        page.mouse.move(0, 0)
        page.screenshot(path=IMAGES / name)
