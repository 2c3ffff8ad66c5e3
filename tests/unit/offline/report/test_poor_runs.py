"""Runs that are poor, old, damaged or hostile: the page says so, and every text stays text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.report.archive import opened_run, write_archive
from guardrail_offline.report.content import page_content
from guardrail_offline.report.figures import RunFigures
from guardrail_offline.report.page import (
    html_fragment,
    write_report,
)
from guardrail_offline.report.plots import box_plots, save
from guardrail_offline.report.plotted_values import of_run
from guardrail_offline.report.run_data import read_run_data, short
from guardrail_offline.report.several_runs import side_by_side
from guardrail_offline.report.shown_cases import LONGEST_TEXT
from guardrail_offline.runs.execution import RunOptions, evaluate_lab
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.report.conftest import IDS, ROOT, finished
from tests.unit.offline.report.test_page import HOSTILE, Elements, has_no_foreign_code, page_of, row


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_shown_as_text(tmp_path: Path, text: str) -> None:
    """In question, answer, passage, expected answer, key, model and category."""
    rows = [
        row(n, key=f"{n}{text}", question=f"{text} {n}", answer=f"{text} {n}", category=[text],
            contexts=[text], expected_output=text, model_key=f"m{text}")
        for n in range(3)
    ]  # fmt: skip
    folder = finished(tmp_path, rows, ["rouge", "text_matching"])
    out = tmp_path / "report.html"
    write_report([folder], out)
    page = Elements(out.read_text("utf-8"))
    has_no_foreign_code(page)
    texts = page.content["texts"]
    assert text in texts
    assert f"{text} 1" in texts
    assert page.content["models"][0]["title"] == f"m{text}"


def test_a_very_long_text_is_shortened_and_says_so(tmp_path: Path) -> None:
    """A megabyte of answer does not make a megabyte of page."""
    long = "long " * 200_000
    page = page_of(finished(tmp_path, [row(1, answer=long), row(2)], ["rouge"]))
    kept = next(text for text in page.content["texts"] if isinstance(text, list))
    assert kept == [long[:LONGEST_TEXT], len(long) - LONGEST_TEXT]


@pytest.mark.parametrize("field", ["key", "model_key", "category", "question", "contexts"])
def test_a_megabyte_anywhere_leaves_the_page_small(tmp_path: Path, field: str) -> None:
    """A name is shortened with a digest, so that two long ones stay two."""
    long = "x" * 2**20
    rows = [
        row(n, **{field: f"{long}{n}" if field in ("key", "question") else [f"{long}{n % 2}"]})
        if field != "model_key"
        else row(n, model_key=f"{long}{n % 2}")
        for n in range(4)
    ]
    out = tmp_path / "report.html"
    write_report([finished(tmp_path, rows, ["rouge", "text_matching"])], out)
    assert out.stat().st_size < 400_000
    page = Elements(out.read_text("utf-8"))
    assert len({case["k"] for case in page.content["cases"]}) == 4
    if field == "model_key":
        assert len({model["title"] for model in page.content["models"]}) == 2


SIXTY = [row(n, model_key=f"model {n % 60}", key=str(n), question=str(n // 60)) for n in range(180)]


@pytest.mark.parametrize(
    ("rows", "ids", "said"),
    [
        ([row(1, expected_output=None)], ["rouge"], "No evaluator gave a number"),
        ([row(1)], IDS, "May heron go live?"),
        ([row(n) for n in range(4)], ["rouge"], "This report cannot say"),
        ([row(n, model_key="") for n in range(4)], ["rouge"], "(no model)"),
        (SIXTY, ["text_matching", "rouge"], "48 more models"),
        ([row(n, contexts=None, answer="") for n in range(4)], IDS, "no answer"),
        ([row(n) for n in range(30)], ["pii"], "May heron go live?"),
        ([{"question": "Why?", "answer": "So."}], ["rouge", "bleu"], "No evaluator gave a number"),
    ],
    ids=[
        "nothing judged",
        "one case",
        "no threshold",
        "no model",
        "60 models",
        "no answers",
        "one model",
        "all metrics missing",
    ],
)
def test_a_poor_run_has_a_page_that_says_so(
    tmp_path: Path, rows: list[dict[str, Any]], ids: list[str], said: str
) -> None:
    """Never a traceback, never an empty page."""
    page = page_of(finished(tmp_path, rows, ids))
    assert said in " ".join("".join(page.texts).split())
    assert len(page.content["cases"]) == len(rows)


def test_a_run_of_the_first_version_is_read(tmp_path: Path) -> None:
    """It has its texts in every row and lacks what came later."""
    folder = finished(tmp_path, [row(n) for n in range(30)], ["rouge", "pii"], layout="h2o")
    for name in ("manifest.json", "insights.json", "flips.json"):
        (folder / name).unlink()
    page = page_of(folder)
    assert "The answer is 7." in page.content["texts"]
    assert "The run has no manifest.json" in "".join(page.texts)


def test_a_folder_that_the_first_version_wrote_is_read() -> None:
    """As it lies in the tests of compatibility."""
    page = page_of(ROOT / "tests" / "compatibility" / "written_by_0_1_0" / "finished")
    assert len(page.content["cases"]) == 6
    assert "Looping" in "".join(page.texts)


def test_a_run_without_texts_shows_keys(tmp_path: Path) -> None:
    """As `--no-texts` asks."""
    page = page_of(finished(tmp_path, [row(n) for n in range(3)], ["rouge"], texts=False))
    assert page.content["texts"] == []
    assert [case["k"] for case in page.content["cases"]] == ["k0", "k1", "k2"]


def unfinished(folder: Path) -> None:
    """Leave what a run leaves that was stopped while it scored."""
    for path in (folder / "results").iterdir():
        path.unlink()


def damaged(folder: Path) -> None:
    """Leave half of a file."""
    (folder / "problems.json").write_text("[{", "utf-8")


def emptied(folder: Path) -> None:
    """Leave nothing."""
    unfinished(folder)
    (folder / "manifest.json").unlink()


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (unfinished, "an unfinished run, 1 of 1 shards; give its command again"),
        (damaged, "JSONDecodeError"),
        (emptied, "no results"),
    ],
    ids=["unfinished", "damaged", "no run"],
)
def test_what_is_no_run_is_an_error_that_says_what_it_is(
    tmp_path: Path, harm: Any, message: str
) -> None:
    """The command ends with 2 and this message."""
    folder = finished(tmp_path, [row(1)], ["rouge"])
    harm(folder)
    with pytest.raises(ConfigurationError, match=message):
        read_run_data(folder)


NAMES = {
    "script": "<script>alert(1)<script>",
    "vector": "<svg onload=alert(2)>",
    "bidi": "run\u202egpj.exe",
    "quotes": "\"'><b>&amp;",
    "long": "x" * 200,
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_hostile_file_name_is_shown_as_text(tmp_path: Path, name: str) -> None:
    """Of a lab, of a run's folder and of an archive; on the page, in a fragment and in a plot."""
    folder = tmp_path / name
    lab = tmp_path / f"{name}.jsonl"
    lab.write_text("".join(json.dumps(row(n)) + "\n" for n in range(3)), "utf-8")
    evaluate_lab(open_lab(lab), configure(["rouge"]), RunOptions(folder))
    other = Path(shutil.copytree(folder, tmp_path / f"{name}2"))
    write_archive(folder, tmp_path / f"{name}.zip")
    with opened_run(tmp_path / f"{name}.zip") as unpacked:
        page = page_of(folder, other, unpacked)
    has_no_foreign_code(page)
    assert page.content["models"][1]["title"] == short(f"{name}2 / heron")
    run = side_by_side([read_run_data(folder), read_run_data(other)])
    content = page_content(RunFigures(run))
    for part in ("summary", "rouge", "data", "run"):
        fragment = Elements(html_fragment(content, part, "report.html"))
        assert not {"script", "img", "b1"} & {tag for tag, _ in fragment.tags}
    save(box_plots(of_run(run, "rouge")), tmp_path / "plot.svg")
    assert "<script" not in (tmp_path / "plot.svg").read_text("utf-8")
