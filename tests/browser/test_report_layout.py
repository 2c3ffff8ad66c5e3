"""Where the parts of the report stand: on a phone, a tablet, a desk, zoomed, printed, and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from guardrail_offline.calibration.report import page as calibration_page
from guardrail_offline.calibration.report import pictures
from guardrail_offline.report.page import PARTS
from tests.browser.visit import WAIT_MS, visited
from tests.unit.offline.calibration import labs
from tests.unit.offline.calibration.conftest import Files, files, run

__all__ = ["files"]
POSITIONS = Path(__file__).with_name("positions.js").read_text("utf-8").split("\n", 1)[1]
SIZES = [
    # width, height, cards across, columns of a metric, of the eye, of a category
    (360, 740, 1, 1, 1, 1),
    (640, 400, 1, 1, 1, 1),  # 1,280 by 800 pixels at 200 %
    (1024, 768, 2, 2, 2, 2),
    (1920, 1080, 2, 2, 2, 2),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("width", "height", "cards", "metric", "eye", "grid"),
    SIZES,
    ids=["phone", "zoom of 200 %", "tablet", "desk"],
)
def test_parts_stand_where_they_belong(
    browser: Browser, report: str, width: int, height: int,
    cards: int, metric: int, eye: int, grid: int, scheme: Any,
) -> None:  # fmt: skip
    """In order, side by side where there is room, nothing over another, nothing cut off."""
    opened = looked_at(browser, report, width, height, scheme)
    found = opened.evaluate(POSITIONS)
    shot = opened.screenshot()
    opened.close()
    assert shot.startswith(b"\x89PNG")
    assert found["order"] == [name for name, _ in PARTS]
    assert found["tops"] == sorted(found["tops"])
    assert (found["cards"], found["metric"], found["eye"], found["grid"]) == (
        cards, metric, eye, grid,
    )  # fmt: skip
    assert found["overlaps"] == []
    assert found["cut"] == []
    assert found["wide"] <= width
    assert abs(found["centred"]) <= 1
    assert found["answer"] < height  # the first screen has the answer


def looked_at(browser: Browser, address: str, width: int, height: int, scheme: Any) -> Page:
    """Return the page with everything unfolded."""
    size: Any = {"width": width, "height": height}
    opened = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    opened.set_default_timeout(WAIT_MS)
    opened.goto(address)
    opened.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    return opened


def test_on_paper_nothing_is_cut_off(browser: Browser, report: str) -> None:
    """A4 has 794 pixels; whatever is unfolded is printed."""
    opened = looked_at(browser, report, 794, 1123, "light")
    opened.emulate_media(media="print")
    found = opened.evaluate(POSITIONS)
    pages = opened.pdf(format="A4").count(b"/Type /Page\n")
    opened.close()
    assert found["cut"] == []
    assert found["wide"] <= 794
    assert found["order"] == [name for name, _ in PARTS]
    assert pages > 3


@pytest.mark.parametrize("width", [360, 1280])
def test_the_calibration_page_fits_too(
    browser: Browser, files: Files, tmp_path: Path, width: int
) -> None:
    """Its policy allows the pictures that it carries, and a phone shows them."""
    found = run(files, lab=labs.lab(160)[0])
    images = pictures(found.fitted, found.content["calibration"])
    out = tmp_path / "index.html"
    out.write_text(calibration_page(found.content, images), "utf-8")
    with visited(browser, out.as_uri()) as opened:
        said: list[str] = []
        opened.on("console", lambda message: said.append(message.text))
        opened.set_viewport_size({"width": width, "height": 800})
        opened.reload()
        loaded = "[...document.images].every((one) => one.complete && one.naturalWidth > 0)"
        assert opened.evaluate(loaded)
        assert opened.locator("img").count() == 3
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        assert said == []
