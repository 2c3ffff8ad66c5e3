"""The model-risk report: every number is where the report says, and every text is a text."""

from __future__ import annotations

import json
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.model_risk import write_mrm_report
from guardrail_offline.model_risk.conclusions import conclude
from guardrail_offline.model_risk.drawings import ChartShape, Drawing, png_of, shown, svg_of
from guardrail_offline.model_risk.mrm_report import mrm_report
from guardrail_offline.model_risk.report_blocks import ReportChart, ReportSection
from guardrail_offline.model_risk.report_charts import LEFT, RIGHT
from guardrail_offline.model_risk.step_data import (
    STEP_FILES,
    WorkflowData,
    resolve,
    written,
)
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.model_risk.made_workflow import HOSTILE, RESULTS, make_workflow

DAY = date(2026, 11, 23)


class Page(HTMLParser):
    """Collects a page's tags, its numbers, and the text outside of them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.numbers: list[tuple[str, str, str]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Leave a tag."""
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Note a number's text, or other text."""
        if self.open and self.open[-1] == "data":
            about = self.tags[-1][1]
            self.numbers.append((data, about["value"] or "", about["data-form"] or ""))
        elif "style" not in self.open:
            self.text += data


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workflow whose nine steps were run."""
    return make_workflow(tmp_path_factory.mktemp("workflow") / "wf")


@pytest.fixture(scope="module")
def page(root: Path) -> Page:
    """The page of its report, read."""
    found = Page()
    found.feed(write_mrm_report(root, "html", day=DAY).read_text("utf-8"))
    return found


def follow(root: Path, place: str, form: Any) -> str | None:
    """Return what a place of the report holds, written in its form."""
    whole = place.partition(" of ")
    values = []
    for one in (whole[0], whole[2]):
        file, _, pointer = one.partition(" ")
        content = json.loads((root / file).read_text("utf-8")) if file else None
        values.append(resolve(content, pointer) if file else None)
    return written(values[0], form, values[1])


def test_every_number_of_the_page_stands_where_it_says(root: Path, page: Page) -> None:
    """File, JSON pointer and form give the very text."""
    assert len(page.numbers) > 120
    for text, place, form in page.numbers:
        assert follow(root, place, form) == text, place


def marks_of(page: Page) -> list[tuple[str, dict[str, str | None]]]:
    """Return the parts of a page's charts that stand for values."""
    return [(tag, about) for tag, about in page.tags if about.get("data-places")]


def test_every_mark_of_a_chart_stands_for_a_value(root: Path, page: Page) -> None:
    """Files and pointers are there, and the mark is where the value belongs on its axis."""
    pictures = [about for tag, about in page.tags if tag == "svg"]
    assert len(pictures) == 4
    assert all(one["role"] == "img" and one["aria-label"] for one in pictures)
    marks = marks_of(page)
    assert {tag for tag, _ in marks} == {"line", "circle"}
    for tag, about in marks:
        file, _, pointer = str(about["data-places"]).partition(" ")
        value = resolve(json.loads((root / file).read_text("utf-8")), pointer)
        ends = value if isinstance(value, list) else [value]
        names = ("cx",) if tag == "circle" else ("x1", "x2")[: len(ends)]
        for name, end in zip(names, ends, strict=True):  # every axis of these is from 0 to 1
            at = LEFT + (RIGHT - LEFT) * min(1.0, max(0.0, end))
            assert float(about[name] or "nan") == pytest.approx(at, abs=0.01), pointer


def test_the_pictures_of_word_are_those_of_the_page(root: Path) -> None:
    """The same bytes for the same drawing, whatever its labels say."""
    blocks = mrm_report(WorkflowData(root), DAY).blocks
    charts = [one for one in blocks if isinstance(one, ReportChart)]
    hostile = ChartShape("text", 1, 20, text=shown("$\\frac{$ \u202e\x00 {{7*7}} </svg><b>漢", 99))
    drawing = Drawing(100, 30, (*charts[0].drawing.shapes[:3], hostile))
    first = png_of(drawing)
    assert first.startswith(b"\x89PNG")
    assert png_of(drawing) == first
    assert "<b>" not in svg_of(drawing, '"><script>')
    assert "<script>" not in svg_of(drawing, '"><script>')
    assert not {"\u202e", "\x00"} & set(hostile.text)


def test_every_step_that_was_run_is_a_source(page: Page) -> None:
    """No step is only told about."""
    files = {place.split(" ")[0] for _, place, _ in page.numbers}
    assert files == {*STEP_FILES.values(), "workflow.json"}


def test_a_changed_result_changes_the_report(tmp_path: Path) -> None:
    """Numbers come from the files, not from words that steps wrote."""
    root = make_workflow(tmp_path / "wf")
    step = root / STEP_FILES["evaluation"]
    content = json.loads(step.read_text("utf-8"))
    content["results"]["metrics"][0]["mean"] = 0.123
    step.write_text(json.dumps(content), "utf-8")
    assert "0.123" in write_mrm_report(root, day=DAY).read_text("utf-8")


def test_texts_of_others_stay_texts(page: Page) -> None:
    """In the page there is no script, and nothing from elsewhere."""
    assert HOSTILE in page.text
    assert not any(tag in ("script", "img", "iframe", "link") for tag, _ in page.tags)
    for tag, about in page.tags:
        assert not (set(about) & {"src", "onclick", "onload", "style"}), tag
        assert (about.get("href") or "#").startswith("#")
    policy = next(about["content"] for _, about in page.tags if "http-equiv" in about)
    assert (policy or "").startswith("default-src 'none'")


def test_the_page_can_be_read_without_eyes(page: Page) -> None:
    """Language, landmarks, captions, heads of rows and columns, one first heading."""
    names = [tag for tag, _ in page.tags]
    assert ("html", {"lang": "en"}) in page.tags
    assert names.count("h1") == names.count("main") == 1
    assert names.count("table") == names.count("caption")
    assert all(about.get("scope") in ("row", "col") for tag, about in page.tags if tag == "th")
    ids = [about["id"] for _, about in page.tags if "id" in about]
    targets = {(about.get("href") or "#")[1:] for tag, about in page.tags if tag == "a"}
    assert len(ids) == len(set(ids))
    assert targets <= set(ids)


def test_a_grid_that_is_too_wide_becomes_a_list(tmp_path: Path) -> None:
    """Of the cells in which something fails, the worst first; one without any is a sentence."""
    root = make_workflow(tmp_path / "wf")
    step = root / STEP_FILES["weaknesses"]
    content = json.loads(step.read_text("utf-8"))
    (grid,) = content["results"]["grid"]
    grid["columns"] = [f"kind_{n}" for n in range(9)]
    line = [{"n": 10, "mean": 0.5, "failing": n, "scores": []} for n in range(9)]
    grid["cells"] = [line, [None] * 9]
    whole = [[{**cell, "failing": 0} for cell in line]]
    content["results"]["grid"].append({**grid, "metric": "a.b", "cells": whole})
    without = [[{**cell, "failing": None} for cell in line]]
    content["results"]["grid"].append({**grid, "metric": "c.d", "cells": without})
    step.write_text(json.dumps(content), "utf-8")
    found = Page()
    found.feed(write_mrm_report(root, day=DAY).read_text("utf-8"))
    assert found.text.rindex("kind 8") < found.text.rindex("kind 1")
    assert found.text.count("kind 0") == 1  # in the picture, and not in the table
    assert "a.b: no case that has both a topic and a kind of question fails." in found.text
    assert "c.d" not in found.text
    assert all(follow(root, place, form) == text for text, place, form in found.numbers)
    cells = [str(about["data-places"]) for tag, about in marks_of(found) if tag == "text"]
    assert len(cells) == 9  # the other grids have nothing that fails
    places = [one.partition(" ")[2] for both in cells for one in both.split("; ")]
    known = json.loads(step.read_text("utf-8"))
    assert all(isinstance(resolve(known, pointer), int) for pointer in places)


def test_the_same_workflow_gives_the_same_page(root: Path) -> None:
    """Byte for byte."""
    first = write_mrm_report(root, day=DAY).read_bytes()
    assert write_mrm_report(root, day=DAY).read_bytes() == first


def test_every_section_says_what_of_the_frameworks_it_speaks_to(root: Path) -> None:
    """Both of them are there; the appendices speak to none."""
    sections = [
        b for b in mrm_report(WorkflowData(root), DAY).blocks if isinstance(b, ReportSection)
    ]
    assert [one.title for one in sections][:2] == ["1 Summary", "2 Model description"]
    assert len(sections) == 14
    for one in sections:
        assert bool(one.tags) is not one.title.startswith("Appendix")
    said = {tag.partition(":")[0] for one in sections for tag in one.tags}
    assert said == {"sr11-7", "nist"}


@pytest.mark.parametrize("gone", [*STEP_FILES, "all"])
def test_a_step_that_was_not_run_is_said(tmp_path: Path, gone: str) -> None:
    """And so is one that was skipped; neither stops the report."""
    names = tuple(STEP_FILES) if gone == "all" else (gone,)
    missing = write_mrm_report(make_workflow(tmp_path / "a", without=names), day=DAY)
    assert f"not run ({names[0]})" in missing.read_text("utf-8")
    skipped = write_mrm_report(make_workflow(tmp_path / "b", skipped=names), day=DAY)
    assert "This step was skipped: there was nothing to do." in skipped.read_text("utf-8")


def test_a_folder_that_is_no_workflow_is_refused(tmp_path: Path) -> None:
    """With the file that is missing."""
    with pytest.raises(ConfigurationError, match=r"no workflow\.json"):
        write_mrm_report(tmp_path)


@pytest.mark.parametrize(
    ("low", "high", "origin", "stand", "word"),
    [
        (0.125, 0.353, "calibrated", "beyond", "not supported"),
        (0.01, 0.2, "calibrated", "open", "supported with conditions"),
        (0.0, 0.05, "calibrated", "within", "supported"),
        (0.0, 0.05, "fitted", "within", "supported with conditions"),
        (0.125, 0.353, "fitted", "beyond", "not supported"),
        (0.125, 0.353, "suite", "unfounded", "supported with conditions"),
        (0.0, 0.05, None, "unfounded", "supported with conditions"),
    ],
)
def test_the_conclusion_follows_the_rule(
    tmp_path: Path, low: float, high: float, origin: str | None, stand: str, word: str
) -> None:
    """By the whole interval; another suite's threshold decides nothing."""
    root = make_workflow(tmp_path / "wf")
    calibration = json.loads(json.dumps(RESULTS["calibration"]))
    (one,) = calibration["thresholds"] = calibration["thresholds"][:1]
    one["failing"]["interval95"], one["calibrated"] = [low, high], origin == "calibrated"
    one["origin"] = origin
    changed = {"calibration": calibration, "weaknesses": {"weak": []}, "adversarial": {}}
    for step, results in changed.items():
        path = root / STEP_FILES[step]
        content = json.loads(path.read_text("utf-8"))
        path.write_text(json.dumps({**content, "results": results}), "utf-8")
    found = conclude(WorkflowData(root))
    assert ([gate.stand for gate in found.gates], found.word) == ([stand], word)


@pytest.mark.parametrize(
    ("gone", "verdict"),
    [
        (tuple(STEP_FILES)[3:], "the system's answers were not evaluated (step 4 was not run)."),
        (tuple(STEP_FILES)[4:], "no metric has a threshold that decides (step 5 was not run)."),
    ],
    ids=["not evaluated", "no thresholds"],
)
def test_nothing_is_supported_that_was_not_judged(
    tmp_path: Path, gone: tuple[str, ...], verdict: str
) -> None:
    """Without answers or thresholds there is no conclusion, and the report gives none."""
    root = make_workflow(tmp_path / "wf", without=gone)
    found = conclude(WorkflowData(root))
    assert (found.word, found.verdict) == ("none", f"No conclusion: {verdict}")
    assert found.gates == ()
    page = Page()
    page.feed(write_mrm_report(root, day=DAY).read_text("utf-8"))
    assert page.text.count(found.verdict) == 3
    assert "The results support" not in page.text
    assert ("gave all numbers" in page.text) is ("evaluation" not in gone)
    assert any("No metric" in str(cell[0]) for cell in found.conditions)
