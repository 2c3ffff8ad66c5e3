"""The page of 5,000 answers and 12 evaluators: its size, its time beside an empty page, its use."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from guardrail_offline.report.page import report_page
from guardrail_offline.report.run_data import EvaluatorData, RunData, read_run_data
from tests.browser.visit import WAIT_MS, visited
from tests.unit.offline.report.conftest import ROOT, finished

pytestmark = pytest.mark.timeout(1200)
IDS = (
    "rouge", "bleu", "answer_strings", "facts", "no_answer", "looping", "pii",
    "contact_information", "encoding", "links", "sexism", "text_matching",
)  # fmt: skip
ROWS = 5000
OWN = 100
"""Rows that are evaluated; each stands 50 times in the page, with texts and scores of its own."""
MOST_BYTES = 6_000_000
MEASURED = ("ScriptDuration", "LayoutDuration")


def repeated(run: RunData, times: int) -> RunData:
    """Return a run many times over; questions, passages and values differ a little each time."""
    rng = np.random.default_rng(0)
    cases = [
        {
            **case,
            "key": f"{case['key']}-{turn}",
            "group": f"{case['group']}-{turn}",
            "input": f"{case['input']} ({turn})",
            "actual_output": f"{case.get('actual_output') or ''} ({turn})",
            "context": [f"{one} ({turn})" for one in 2 * texts_of(case)],
        }
        for turn in range(times)
        for case in run.cases
    ]
    evaluators = {name: _again(data, times, rng) for name, data in run.evaluators.items()}
    return replace(run, cases=cases, evaluators=evaluators)


def texts_of(case: Any) -> list[str]:
    """Return the passages of a case."""
    return [str(one.get("text") if isinstance(one, dict) else one) for one in case["context"]]


def _again(data: EvaluatorData, times: int, rng: np.random.Generator) -> EvaluatorData:
    values = {}
    for metric in data.metrics:
        column = np.tile(data.values[metric.key], times)
        noise = 0 if metric.boolean else rng.normal(0, 0.05, len(column))
        values[metric.key] = np.clip(column + noise, metric.low, metric.high)
    own = len(next(iter(data.values.values())))
    reasons = {key: list(why) * times for key, why in data.reasons.items()}
    spans = {place + own * turn: s for turn in range(times) for place, s in data.spans.items()}
    return replace(data, values=values, reasons=reasons, spans=spans)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, on a disk."""
    folder = tmp_path_factory.mktemp("large")
    lines = (ROOT / "examples" / "lab" / "board.jsonl").read_text("utf-8").splitlines()[:OWN]
    words = ('"the" OR "a"', '"zebra"')
    rows = [json.loads(line) | {"condition": words[n % 2]} for n, line in enumerate(lines)]
    run = repeated(read_run_data(finished(folder, rows, IDS)), ROWS // OWN)
    page = folder / "report.html"
    page.write_text(report_page(run), "utf-8", "backslashreplace")
    return page


def test_it_is_small_and_says_what_is_left_out(browser: Browser, large: Path) -> None:
    """Failing cases first; every one of the evaluators is there."""
    assert large.stat().st_size <= MOST_BYTES
    with visited(browser, large.as_uri()) as page:
        assert page.locator("#evaluators > details").count() == len(IDS)
        assert f"{ROWS} answers" in page.inner_text("#summary")
        assert "The rest is in cases.jsonl" in page.inner_text("#cases")


def measured(page: Page, address: str) -> dict[str, float]:
    """Return what DevTools counts until a page is shown, in ms of the browser's own thread."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(address)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    found = devtools.send("Performance.getMetrics")["metrics"]
    return {one["name"]: 1000 * one["value"] for one in found if one["name"] in MEASURED}


def say(line: str) -> None:
    """Show a line to whoever runs the group."""
    sys.stdout.write(f"{line}\n")


def test_its_time_is_told_beside_an_empty_page(
    browser: Browser, large: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed, never asserted: a machine that does much else is slow."""
    empty = large.with_name("empty.html")
    empty.write_text("<!doctype html><title>empty</title>", "utf-8")
    with capsys.disabled():
        say(f"\n{large.stat().st_size / 1e6:.1f} MB, {ROWS} answers, {len(IDS)} evaluators")
        for name, path in (("empty", empty), ("report", large)):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.set_default_timeout(WAIT_MS)
            times = measured(page, path.as_uri())
            page.close()
            assert set(times) == set(MEASURED)
            say(f"{name}: " + ", ".join(f"{key} {value:.0f} ms" for key, value in times.items()))


def test_it_is_used_by_keyboard(browser: Browser, large: Path) -> None:
    """From the first link to a case, and through the list."""
    with visited(browser, large.as_uri()) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.locator("#later").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#count")).to_contain_text("21 to 40 of ")
        page.locator("#wheel .part").first.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        expect(page.locator("#trail")).to_contain_text("Generation")
        page.locator("#evaluators summary").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#evaluators > details").first).to_have_attribute("open", "")


def test_nothing_keeps_people_from_reading_it(browser: Browser, large: Path) -> None:
    """No serious finding of axe-core."""
    from axe_playwright_python.sync_playwright import Axe

    with visited(browser, large.as_uri()) as page:
        found = Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
