"""The reviewers' page in Debian's chromium: marks where they belong, text that stays text."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.visit import WAIT_MS, visited
from tests.integration.conftest import running
from tests.integration.test_rag_app import ADDRESS, INVENTED, POOL, hosted

SHOT = Path(__file__).resolve().parents[2] / "docs" / "images" / "rag-app.png"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The application that calls the client itself, and its guard."""
    with (
        running("--port", "0") as guard,
        guard.client(),
        hosted("by_hand", guard.address) as client,
    ):
        yield str(client.base_url)


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A browser on the page."""
    with visited(browser, address) as opened:
        yield opened


def ask(page: Page, habit: str) -> None:
    """Ask the question that stands there."""
    page.select_option("#habit", habit)
    with page.expect_response("**/ask", timeout=WAIT_MS):
        page.click("#ask")
    page.wait_for_selector("#result:not([hidden])", timeout=WAIT_MS)
    expect(page.locator("#ask")).to_be_enabled(timeout=WAIT_MS)


def test_an_honest_answer_has_no_marks(page: Page) -> None:
    """And a green verdict."""
    ask(page, "honest")
    assert POOL in page.inner_text("#answer")
    assert page.locator("mark").count() == 0
    assert page.inner_text(".badge.pass") == "pass"


def test_the_flagged_sentences_are_marked(page: Page) -> None:
    """Exactly them, with the reason; the picture of it is the one in the documentation."""
    ask(page, "careless")
    marks = page.locator("mark").all_inner_texts()
    assert any(INVENTED in mark for mark in marks)
    assert any("•••" in mark for mark in marks)
    assert ADDRESS not in page.content()
    assert not any(POOL in mark for mark in marks)
    assert "hallucination" in page.inner_text("#why")
    assert page.inner_text(".badge.flag") == "flag"
    if os.environ.get("GUARDRAIL_WRITE_SCREENSHOT"):
        page.screenshot(path=SHOT, full_page=True)


def test_an_answer_is_text_and_never_markup(page: Page) -> None:
    """Offsets count code points, so an emoji before a mark does not shift it."""
    hostile = "<img src=x onerror=alert(1)> 😀 is <b>flagged</b>."
    reply: dict[str, Any] = {
        "answer": hostile,
        "decision": "flag",
        "action": "flag",
        "flagged": ["<i>x</i>"],
        "marks": [{"start": 31, "end": len(hostile), "why": ["<u>why</u>"], "contexts": []}],
        "contexts": [{"id": "<s>", "text": "<script>alert(2)</script>"}],
    }

    def answer(route: Route) -> None:
        route.fulfill(status=200, content_type="application/json", body=json.dumps(reply))

    page.route("**/ask", answer)
    ask(page, "honest")
    page.unroute("**/ask")
    assert (
        page.locator("#result img, #result b, #result u, #result i, #sources script").count() == 0
    )
    assert page.inner_text("#answer").startswith("<img src=x onerror=alert(1)> 😀 ")
    assert page.inner_text("mark").startswith("is <b>flagged</b>.")


def test_the_picture_in_the_documentation_is_small_enough() -> None:
    """Under 200 KB, as wide as the page."""
    data = SHOT.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < 200_000
    assert struct.unpack(">I", data[16:20])[0] == 900
