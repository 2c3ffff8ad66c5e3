"""Makes the pictures of the report in `docs/images` from the board, `examples/lab/board.jsonl`.

    GUARDRAIL_WRITE_SCREENSHOT=1 .ci/run browser

runs it in Debian's chromium. Scores and layout are those of this checkout.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.report.figures import RunFigures
from guardrail_offline.report.page import write_report
from guardrail_offline.report.pictures import picture
from guardrail_offline.report.plots import save
from guardrail_offline.report.run_data import read_run_data
from guardrail_offline.runs.execution import RunOptions, evaluate_lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
BOARD = ROOT / "examples" / "lab" / "board.jsonl"
EVALUATORS = (
    "hallucination", "facts", "answer_correctness", "ragchecker", "rouge", "looping", "pii",
    "toxicity",
)  # fmt: skip
CASE = "bank-overpayment-verbose"
WIDTH = 1000
SHOTS: dict[str, tuple[str, str]] = {
    "report.png": ("", ""),
    "report-eye.png": ("", "#eye"),
    "report-evaluator.png": ("#e-hallucination", "#e-hallucination .metric"),
    "report-case.png": (f"#case={CASE}", f"[id='case={CASE}']"),
}
"""Per picture the address within the page, and the element shown; the first screen if none."""
PLOTS: dict[str, tuple[str, str | None]] = {"report-heatmap.png": ("heatmap", None)}
"""Per picture its `--part` and `--evaluator`."""
NAMES: Sequence[str] = (*SHOTS, *PLOTS)


def report_of_the_board(folder: Path) -> Path:
    """Evaluate the board; return its page."""
    evaluate_lab(open_lab(BOARD), configure(list(EVALUATORS)), RunOptions(folder))
    page = folder / "report.html"
    write_report([folder], page)
    return page


def make(browser: Browser, page: Path, out: Path) -> None:
    """Write all pictures.

    Args:
        browser: A started one.
        page: From `report_of_the_board`.
        out: Folder of the pictures.
    """
    size: Any = {"width": WIDTH, "height": 760}
    for name, (address, element) in SHOTS.items():
        opened = browser.new_page(viewport=size, reduced_motion="reduce", color_scheme="light")
        opened.set_default_timeout(60_000)
        opened.goto(page.as_uri() + address)
        target = opened.locator(element) if element else None
        options: Any = {"path": out / name}
        if target is None:
            opened.screenshot(**options)
        else:
            target.evaluate("(one) => { one.blur(); if ('open' in one) one.open = true; }")
            target.screenshot(**options)
        opened.close()
    figures = RunFigures(read_run_data(page.parent))
    for name, (part, evaluator) in PLOTS.items():
        save(picture(figures, part, evaluator), out / name)
