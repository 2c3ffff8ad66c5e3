"""The whole loop without a command line: from 200 production checks to a promoted policy."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from docs.studio_pictures import IMAGES, NAMES, VIEWPORT, shot
from guardrail_decisions.keys import new_key
from guardrail_service.policy.versions import add_version, promote, read_policy
from tests.integration.conftest import running, until
from tests.studio.conftest import ANSWERS, GOOD, ROOT, come_in, label_key, studio_of

CHECKS = 200


def in_turn(answers: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return the first answer to each question, then the second ones: one is drawn a question."""
    seen: Counter[object] = Counter()
    turns = []
    for place, answer in enumerate(answers):
        turns.append((seen[answer["question"]], place))
        seen[answer["question"]] += 1
    return [answers[place] for _, place in sorted(turns)]


CLICKS = 8
"""As docs/studio.md says; keys for labels and figures that are typed in do not count."""


class Hand:
    """Counts the clicks of one person."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, name: str, role: str = "button") -> None:
        """Click the only thing of that name."""
        found = self.page.get_by_role("link" if role == "link" else "button", name=name, exact=True)
        found.click()
        self.clicks += 1
        self.page.wait_for_load_state("networkidle")


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """A folder in which the example's policy is live."""
    folder = tmp_path / "policies"
    add_version(folder, ROOT / "examples" / "calibration" / "base.json", why="the first")
    promote(folder, "example", "1")
    return folder


@pytest.fixture
def production(tmp_path: Path, policies: Path) -> Iterator[tuple[httpx.Client, str, Path]]:
    """A service that keeps its decisions, and has made 200."""
    keys = tmp_path / "keys"
    keys.write_text(new_key())
    url = f"sqlite:///{tmp_path / 'decisions.db'}"
    environment = {
        "GUARDRAIL_POLICIES": str(policies),
        "GUARDRAIL_DECISIONS_URL": url,
        "GUARDRAIL_DECISIONS_TEXTS": "full",
        "GUARDRAIL_DECISIONS_KEYS_FILE": str(keys),
    }
    with running("--port", "0", **environment) as served, served.client() as client:
        check(client, in_turn(ANSWERS)[:CHECKS])
        yield client, url, keys


def check(client: httpx.Client, answers: list[dict[str, object]]) -> None:
    """Have answers judged, one by one."""
    for answer in answers:
        body = {name: answer[name] for name in ("question", "answer", "contexts")}
        reply = client.post("/v1/check", json=body)
        assert reply.status_code == 200


def shot_decision(page: Page, address: str) -> None:
    """Open a flagged decision: what led to it is marked."""
    page.goto(f"{address}/decisions?decision=flag&detector=hallucination")
    page.locator("tbody a").first.click()
    expect(page.locator("mark").first).to_be_visible()
    page.locator("mark").first.focus()
    shot(page, "studio-decision.png")
    page.close()


def test_the_pictures_of_the_page_are_there() -> None:
    """Small enough for the repository, and as wide as they were taken."""
    for name in NAMES:
        data = (IMAGES / name).read_bytes()
        assert len(data) < 200_000
        assert struct.unpack(">I", data[16:20])[0] == VIEWPORT["width"]


@pytest.mark.timeout(900)
def test_from_checks_to_a_promoted_policy(
    browser: Browser,
    tmp_path: Path,
    production: tuple[httpx.Client, str, Path],
    policies: Path,
) -> None:
    """Draw, label 50 by keyboard, fit, shadow, promote; the service follows without a restart."""
    client, url, keys = production
    arguments = ("--work", tmp_path / "work", "--policies", policies, "--decision-keys", keys)
    with studio_of(url, *arguments) as studio:
        page = come_in(browser.new_context(viewport=VIEWPORT), studio, "Ada")
        hand = Hand(page)
        hand.click("Open decisions", "link")
        expect(page.locator(".headline")).to_contain_text(f"{CHECKS} stored")
        hand.click("Draw and label")
        page.wait_for_selector("#case:not([hidden])")
        expect(page.locator("#place")).to_contain_text("of 50")
        for place in range(50):
            if place == 6:
                shot(page, "studio-label.png")
            label_key(page, "p" if GOOD[page.inner_text("#answer")] else "f")
        expect(page.locator("#done")).to_contain_text("Every case has your label")
        hand.click("Back to the samples", "link")
        page.locator("main").get_by_role("link", name="Calibrate", exact=True).click()
        hand.clicks += 1
        page.fill("input[name=alpha]", "15")
        hand.click("Fit the thresholds")
        expect(page.locator("main")).to_contain_text("with probability at most 15.0%")
        shot(page, "studio-fit.png")
        hand.click("Add the version")
        expect(page.locator("main")).to_contain_text("in the shadow")
        assert read_policy(policies, "example").alias.shadow == ("2",)
        shot_decision(page.context.new_page(), studio.address)

        def shadowed() -> bool:
            check(client, ANSWERS[:5])
            page.reload()
            return "Of the latest" in page.inner_text("main")

        until(shadowed, "the new version judges in the shadow")
        hand.click("Promote")
        assert read_policy(policies, "example").alias.live == "2"
        until(
            lambda: client.get("/v1/policies").json()["policies"][0]["version"] == "2",
            "the service follows",
        )
        hand.click("Roll back to the version before")
        assert read_policy(policies, "example").alias.live == "1"
    assert hand.clicks == CLICKS
    assert f"{CLICKS - 1} clicks" in (ROOT / "docs" / "studio.md").read_text("utf-8")
    assert json.loads((policies / "example" / "2.json").read_text())["calibration"]
