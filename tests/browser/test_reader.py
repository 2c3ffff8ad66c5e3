"""The readers' page of the example, behind the middleware: what a reader sees of each verdict."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visit import WAIT_MS, visited
from tests.integration.conftest import running
from tests.integration.test_rag_app import ADDRESS, CARD, INVENTED, POOL, QUESTION, hosted

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "what-users-see.png"
SHOTS: dict[str, str] = {}
"""What the page showed, by badge: a PNG in base64."""
BLOCKED = "Sorry, I cannot show an answer to this question."
OUTAGE = "Sorry, the answer could not be checked. Please try again later."
GERMAN = "Der Pool öffnet um sieben Uhr morgens und schließt um neun Uhr abends."


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """The application behind the middleware, and its guard."""
    with (
        running("--port", "0") as guard,
        guard.client(),
        hosted("guarded", guard.address) as client,
        visited(browser, str(client.base_url)) as opened,
    ):
        yield opened


def ask(page: Page, question: str, habit: str = "honest") -> None:
    """Ask, and wait until the answer has been streamed to its end."""
    page.fill("#question", question)
    page.select_option("#habit", habit)
    page.click("#ask")
    expect(page.locator("#ask")).to_be_enabled(timeout=WAIT_MS)
    expect(page.locator(".badge")).to_have_count(1, timeout=WAIT_MS)
    shot = page.locator("#result").screenshot()
    SHOTS[page.inner_text(".badge")] = base64.b64encode(shot).decode()


@pytest.mark.parametrize(
    ("question", "habit", "badge", "answer", "note"),
    [
        (QUESTION, "honest", "checked", f"{POOL} and closes", ""),
        (QUESTION, "careless", "stopped", f"{POOL} and closes", "did not pass our checks"),
        (QUESTION, "repetitive", "taken back", BLOCKED, "taken back"),
        ("How was the invoice of room 12 paid?", "honest", "redacted", "[CREDIT_CARD", "removed"),
        ("Wann öffnet der Pool?", "german", "not fully checked", GERMAN, "cannot read"),
    ],
    ids=["passed", "blocked", "retracted", "redacted", "marked"],
)
def test_each_verdict_is_seen(
    page: Page, question: str, habit: str, badge: str, answer: str, note: str
) -> None:
    """And nothing of what was stopped is anywhere in the document."""
    ask(page, question, habit)
    assert page.inner_text(".badge") == badge
    shown = page.inner_text("#answer")
    assert answer in shown
    assert note in page.inner_text("#note")
    assert (BLOCKED in shown) == (badge in ("stopped", "taken back"))
    assert badge != "taken back" or shown == BLOCKED
    for hidden in (INVENTED, ADDRESS, CARD):
        assert hidden not in page.content()


def test_an_outage_is_told_apart_from_a_block(browser: Browser) -> None:
    """Nobody answers where the guard should be."""
    with (
        hosted("guarded", "http://127.0.0.1:9") as client,
        visited(browser, str(client.base_url)) as page,
    ):
        ask(page, QUESTION)
        assert page.inner_text(".badge") == "unchecked"
        assert page.inner_text("#answer") == OUTAGE
        assert POOL not in page.content()


def test_the_picture_in_the_documentation_shows_every_ending(browser: Browser) -> None:
    """Made of what the tests before have seen."""
    endings = ("checked", "redacted", "not fully checked", "stopped", "taken back", "unchecked")
    assert set(SHOTS) == set(endings)
    if os.environ.get("GUARDRAIL_WRITE_SCREENSHOT"):
        page = browser.new_page(viewport={"width": 780, "height": 100})
        images = (f'<img src="data:image/png;base64,{SHOTS[ending]}">' for ending in endings)
        page.set_content(f'<body style="margin:0">{"".join(images)}</body>')
        page.screenshot(path=PICTURE, full_page=True)
        page.close()
    data = PICTURE.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < 200_000
