"""Labelling in the browser: by keyboard, by two people, through a killed server, for everybody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from guardrail_offline.calibration.labels import read_labels, verdicts
from tests.browser.conftest import WAIT_MS
from tests.studio.conftest import RunningStudio, come_in, label_key, sample, studio_of
from tests.unit.decisions.made_up import filled
from tests.unit.decisions.monitor.test_watch import drawn

HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>{{7*7}}"
)


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[tuple[RunningStudio, Page, Path]]:
    """Ada's browser on a sample of six answers."""
    folder = sample(tmp_path / "answers", 6)
    with studio_of(folder, "--work", tmp_path / "work") as running:
        context = browser.new_context()
        page = come_in(context, running, "Ada")
        page.goto(f"{running.address}/label/answers")
        page.wait_for_selector("#case:not([hidden])")
        yield running, page, folder
        context.close()


def said(folder: Path) -> list[tuple[str, str]]:
    """Return annotators and labels in the order of the file."""
    path = folder / "labels.jsonl"
    return [(one.annotator, one.label) for one in read_labels(path)] if path.exists() else []


def test_labels_by_keyboard(opened: tuple[RunningStudio, Page, Path]) -> None:
    """Pass, flag, abstain, undo, a note, back; no key works within the note."""
    _, page, folder = opened
    for key in "pfa":
        label_key(page, key)
    assert said(folder) == [("Ada", "pass"), ("Ada", "fail"), ("Ada", "abstain")]
    page.keyboard.press("u")
    expect(page.locator("#saved")).to_have_text("Undone")
    assert said(folder) == [("Ada", "pass"), ("Ada", "fail")]
    expect(page.locator("#place")).to_have_text("Case 3 of 6")
    page.keyboard.press("n")
    page.keyboard.type("papaya")
    page.keyboard.press("Escape")
    expect(page.locator("#saved")).to_have_text("Saved")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#place")).to_contain_text("Case 2 of 6")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#place")).to_have_text("Case 3 of 6")
    expect(page.locator("#note")).to_have_value("papaya")
    label_key(page, "p")
    assert said(folder)[-1] == ("Ada", "pass")
    page.reload()
    expect(page.locator("#place")).to_contain_text("Case 4 of 6")


def test_two_people_disagree_and_settle(
    opened: tuple[RunningStudio, Page, Path], browser: Browser
) -> None:
    """Each sees the own labels only; the third word is final."""
    running, page, folder = opened
    for _ in range(6):
        label_key(page, "p")
    page.goto(running.address)
    page.click("#invite")
    expect(page.locator("#invitation")).to_contain_text("/enter?token=")
    other_context = browser.new_context()
    other = come_in(other_context, running, "Grace", page.inner_text("#invitation"))
    other.goto(f"{running.address}/label/answers")
    other.wait_for_selector("#case:not([hidden])")
    assert other.locator(".cell.pass").count() == 0
    for key in "fppppp":
        label_key(other, key)
    other.goto(f"{running.address}/label/answers/adjudicate")
    other.wait_for_selector("#case:not([hidden])")
    expect(other.locator("#words li")).to_have_count(2)
    other.keyboard.press("f")
    expect(other.locator("#done")).to_be_visible()
    found = verdicts(read_labels(folder / "labels.jsonl"), "labels")
    assert sum(found.passes.values()) == 5
    assert found.agreement is not None
    assert found.agreement.cases == 6
    other_context.close()


def test_of_two_tabs_the_second_is_told(opened: tuple[RunningStudio, Page, Path]) -> None:
    """It shows the label of the first; the next key decides."""
    running, page, folder = opened
    tab = page.context.new_page()
    tab.set_default_timeout(WAIT_MS)
    tab.goto(f"{running.address}/label/answers")
    tab.wait_for_selector("#case:not([hidden])")
    label_key(page, "p")
    tab.keyboard.press("f")
    expect(tab.locator("#trouble")).to_contain_text("is now labelled pass")
    assert said(folder) == [("Ada", "pass")]
    label_key(tab, "f")
    assert said(folder) == [("Ada", "fail")]


def test_a_killed_server_loses_nothing(browser: Browser, tmp_path: Path) -> None:
    """What was acknowledged is in the file; what was not is sent to the server that comes next."""
    folder = sample(tmp_path / "answers", 6)
    first = RunningStudio([folder, "--work", tmp_path / "work", "--port", "0"])
    context = browser.new_context()
    page = come_in(context, first, "Ada")
    page.goto(f"{first.address}/label/answers")
    page.wait_for_selector("#case:not([hidden])")
    label_key(page, "p")
    label_key(page, "f")
    first.kill()
    assert said(folder) == [("Ada", "pass"), ("Ada", "fail")]
    page.keyboard.press("a")
    expect(page.locator("#trouble")).to_contain_text("does not answer")
    page.close()
    second = RunningStudio([folder, "--work", tmp_path / "work", "--port", first.port])
    try:
        again = come_in(context, second, "Ada")
        again.goto(f"{second.address}/label/answers")
        expect(again.locator("#place")).to_contain_text("Case 4 of 6")
        assert said(folder) == [("Ada", "pass"), ("Ada", "fail"), ("Ada", "abstain")]
    finally:
        second.end()
        context.close()


def test_hostile_texts_and_names_are_shown_as_texts(browser: Browser, tmp_path: Path) -> None:
    """Nothing of them runs, in no page."""
    folder = sample(
        tmp_path / "answers", 2, question=HOSTILE, answer=HOSTILE, contexts=[HOSTILE, HOSTILE]
    )
    with studio_of(folder, "--work", tmp_path / "work") as running:
        context = browser.new_context()
        page = come_in(context, running, HOSTILE[:70])
        refused: list[str] = []
        page.on("console", lambda message: refused.append(message.text))
        for address in ("/label/answers", "/label", "/", "/calibrate", "/try"):
            page.goto(running.address + address)
            page.wait_for_load_state("networkidle")
            assert "owned" not in page.title()
            assert page.locator("main img[src=x], main script").count() == 0
        page.goto(f"{running.address}/label/answers")
        expect(page.locator("#answer")).to_have_text(HOSTILE)
        label_key(page, "f")
        context.close()
        assert [text for text in refused if "Content Security Policy" in text] == []
    assert json.loads((folder / "labels.jsonl").read_text())["annotator"].startswith("<img")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_and_use_it(browser: Browser, tmp_path: Path, scheme: Any) -> None:
    """No finding of axe, in light and dark, at both widths; nothing is cut off sideways."""
    folder, url = sample(tmp_path / "answers", 6), f"sqlite:///{tmp_path / 'decisions.db'}"
    filled(url, 1, texts="redacted")
    drawn(url, np.random.default_rng(1).normal(size=60).tolist(), 1)
    drawn(url, [-2.0] * 60, 61)
    with studio_of(folder, url, "--work", tmp_path / "work") as running:
        context = browser.new_context(
            color_scheme=scheme, bypass_csp=True, viewport={"width": 1280, "height": 800}
        )
        page = come_in(context, running, "Ada")
        for address in ("/", "/label", "/label/answers", "/calibrate", "/calibrate/answers",
                        "/compare", "/policies", "/decisions", "/decisions/1", "/promise",
                        "/try"):  # fmt: skip
            page.goto(running.address + address)
            page.wait_for_load_state("networkidle")
            found = Axe().run(page)
            assert found.violations_count == 0, (address, found.generate_report())
            for width in (1280, 1920):
                page.set_viewport_size({"width": width, "height": 1080})
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, (address, wide)
            if address == "/promise":
                expect(page.locator("main")).to_contain_text("have moved")
            if address == "/decisions/1":
                page.keyboard.press("c")
                page.keyboard.type("a fee")
                page.keyboard.press("Enter")
                page.keyboard.press("f")
                expect(page.locator("#said")).to_have_text("bad, you: “a fee”")
        context.close()
