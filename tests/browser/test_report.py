"""The page of a run in Debian's chromium: read, walked by keyboard, printed, on small screens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from guardrail_offline.report.page import PARTS, write_report
from tests.browser.visit import WAIT_MS, visited
from tests.unit.offline.report.conftest import finished
from tests.unit.offline.report.test_page import HOSTILE, row

CASE = "boats-magpie"
WIDER_THAN_THE_PAGE = """() => [...document.querySelectorAll('main *')]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('.scroll'))
  .map((one) => one.tagName + ' ' + one.className).slice(0, 5)"""
OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"


@pytest.fixture
def page(browser: Browser, report: str) -> Iterator[Page]:
    """A browser on the report; what the policy forbids is an error of the console."""
    with visited(browser, report) as opened:
        said: list[str] = []
        opened.on("console", lambda message: said.append(message.text))
        opened.reload()
        yield opened
        assert said == []


def test_every_part_is_seen(page: Page) -> None:
    """And the link of the navigation leads there."""
    for name, title in PARTS:
        page.click(f"nav a:text-is('{title}')")
        expect(page.locator(f"#{name}")).to_be_in_viewport()
    assert page.locator("#list .case").count() == 20
    assert page.locator("#wheel .part").count() > 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("width", "height", "scale"),
    [(360, 740, 3), (640, 400, 2), (1024, 768, 1), (1920, 1080, 1)],
    ids=["phone", "zoom of 200 %", "tablet", "desk"],
)
def test_nothing_has_to_be_scrolled_sideways(
    browser: Browser, report: str, width: int, height: int, scale: int, scheme: Any
) -> None:
    """With everything unfolded, in both schemes."""
    size: Any = {"width": width, "height": height}
    opened = browser.new_page(viewport=size, device_scale_factor=scale, color_scheme=scheme)
    opened.set_default_timeout(WAIT_MS)
    opened.goto(report)
    opened.evaluate(OPEN_ALL)
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.evaluate(WIDER_THAN_THE_PAGE) == []
    opened.close()


def test_the_eye_is_walked_by_keyboard(page: Page) -> None:
    """From the first domain down to a case, and up again."""
    part = page.locator("#wheel .part").first
    part.focus()
    names = []
    for _ in range(3):
        names.append(page.evaluate("document.activeElement.getAttribute('aria-label')"))
        page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator("#inside .dots")).to_be_visible()
    assert names[0].startswith("Generation")
    page.locator("#inside ol a").first.focus()
    page.evaluate(  # a block, so that the promise is not waited for here
        "() => { window.moved = new Promise("
        "(done) => addEventListener('hashchange', () => setTimeout(done))); }"
    )
    page.keyboard.press("Enter")
    page.evaluate("() => window.moved")  # the page moves the focus a second time then
    expect(page.locator(".case:focus")).to_be_visible()
    page.locator("#wheel .part").first.focus()
    for _ in range(4):
        page.keyboard.press("Escape")
    assert page.inner_text("#trail") == "All checks"


def test_a_link_leads_to_a_case(browser: Browser, report: str) -> None:
    """Also where the list does not show it at first."""
    with visited(browser, report) as opened:
        opened.goto(f"{report}#case={CASE}")
        case = opened.locator(f"[id='case={CASE}']")
        expect(case).to_be_in_viewport()
        expect(case).to_be_focused()
        opened.goto(f"{report}#case=nowhere")
        expect(opened.locator("#count")).to_contain_text("not on this page")


def test_a_coloured_part_names_its_evidence(page: Page) -> None:
    """By pointing and by focus; the passage is marked."""
    page.goto(page.url.split("#")[0] + f"#case={CASE}")
    case = page.locator(f"[id='case={CASE}']")
    wrong = case.locator("mark.bad").first
    wrong.focus()
    assert "fifty euros" in wrong.inner_text()
    assert "contradicted" in case.locator(".evidence").inner_text()
    assert case.locator(".passage.hit").count() == 1
    case.locator("mark.good").first.hover()
    assert "supported" in case.locator(".evidence").inner_text()


def test_the_list_is_filtered(page: Page) -> None:
    """By evaluator, model, verdict and words; a card's link does it, too."""
    page.locator("#summary a.act").first.click()
    assert page.locator("#list .case").count() > 0
    assert "failing" in page.locator("#filters select[name=state] option:checked").inner_text()
    page.select_option("#filters select[name=state]", "")
    page.select_option("#filters select[name=evaluator]", "")
    page.select_option("#filters select[name=model]", "")
    page.fill("#filters input", "thunderstorm")
    shown = page.locator("#list .case").all_inner_texts()
    assert shown
    assert all("thunderstorm" in text.lower() for text in shown)
    page.fill("#filters input", "no such words")
    expect(page.locator("#count")).to_have_text("No case of this page is like that.")


def test_it_prints(page: Page) -> None:
    """Without what only a screen can do."""
    page.emulate_media(media="print")
    assert not page.is_visible("nav")
    assert not page.is_visible("#filters")
    assert page.is_visible("#summary .card")
    assert page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_people_from_reading_it(browser: Browser, report: str, scheme: Any) -> None:
    """No serious finding of axe-core, with everything unfolded."""
    from axe_playwright_python.sync_playwright import Axe

    opened = browser.new_page(color_scheme=scheme)
    opened.set_default_timeout(WAIT_MS)
    opened.goto(report)
    opened.evaluate(OPEN_ALL)
    found = Axe().run(opened).response["violations"]
    opened.close()
    serious = [
        (one["id"], one["nodes"][0]["html"][:200], one["nodes"][0].get("failureSummary"))
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_hostile_texts_are_shown(browser: Browser, tmp_path: Path) -> None:
    """Nothing of them runs; bidirectional marks stay within their own place."""
    rows = [
        row(n, key=f"{n}{text}", question=text, answer=f"{text} a@example.org", category=[text],
            contexts=[text], expected_output=text, model_key=f"m{text}")
        for n, text in enumerate(HOSTILE.values())
    ]  # fmt: skip
    out = tmp_path / "report.html"
    write_report([finished(tmp_path, rows, ["rouge", "pii"])], out)
    with visited(browser, out.as_uri()) as opened:
        opened.on("dialog", lambda dialog: pytest.fail(dialog.message))
        opened.evaluate(OPEN_ALL)
        opened.select_option("#filters select[name=state]", "")
        assert opened.locator("main img, main a[href^=javascript], main b1").count() == 0
        assert opened.locator("script").count() == 2
        assert opened.locator("#list .case").count() == len(rows)
        shown = opened.locator("#list .case .text").all_inner_texts()
        assert any(HOSTILE["script"] in text for text in shown)
        fits(opened)


def fits(page: Page) -> None:
    """Nothing is wider than a phone."""
    page.set_viewport_size({"width": 360, "height": 740})
    page.evaluate(OPEN_ALL)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate(WIDER_THAN_THE_PAGE) == []


def test_long_names_of_sixty_models_fit_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    """Without a blank in them, and one a megabyte long; so are a key and a category."""
    rows = [row(n, model_key=f"{n}{'m' * 300}", category=["b"]) for n in range(60)]
    long = 2**20
    rows[7] |= {"key": "k" * long, "category": ["c" * long], "model_key": "m" * long}
    out = tmp_path / "report.html"
    write_report([finished(tmp_path, rows, ["text_matching", "rouge"])], out)
    with visited(browser, out.as_uri()) as opened:
        assert "48 more models" in opened.inner_text("#summary")
        fits(opened)
