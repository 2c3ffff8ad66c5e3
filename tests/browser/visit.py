"""A page of the example in a browser; it may ask nobody but the example."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page

from tests.browser.conftest import WAIT_MS

__all__ = ["WAIT_MS", "visited"]


@contextmanager
def visited(browser: Browser, address: str) -> Iterator[Page]:
    """Open an address; a request to another host and a script that fails are errors."""
    elsewhere: list[str] = []
    broken: list[str] = []
    page = browser.new_page(viewport={"width": 900, "height": 720}, reduced_motion="reduce")
    page.set_default_timeout(WAIT_MS)
    page.on("request", lambda asked: elsewhere.append(asked.url))
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.goto(address)
    yield page
    page.close()
    assert [url for url in elsewhere if not url.startswith(address)] == []
    assert broken == []
