"""A run as table, JSON, Markdown and archive; the archive is read again."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from guardrail_offline.report.archive import OURS, RESULTS
from guardrail_offline.report.run_data import read_run_data
from guardrail_service.commands.main import app
from tests.unit.offline.report.conftest import IDS, finished
from tests.unit.offline.report.test_page import HOSTILE, Elements, row


def report(*words: str | Path, status: int = 0) -> str:
    """Run `guardrail report`; return what it says."""
    shown = CliRunner().invoke(app, ["report", *map(str, words)])
    assert shown.exit_code == status, shown.output
    return " ".join(shown.output.split())


def test_the_table_has_every_value_of_every_case(lake: Path, tmp_path: Path) -> None:
    """And an empty cell where there is none."""
    out = tmp_path / "scores.csv"
    report(lake, "-o", out)
    with out.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    run = read_run_data(lake)
    assert [one["key"] for one in rows] == [case["key"] for case in run.cases]
    values = [float(one["rouge.rouge_l"] or "nan") for one in rows]
    np.testing.assert_array_equal(values, run.evaluators["rouge"].values["rouge_l"])


def test_a_key_is_no_formula(tmp_path: Path) -> None:
    """Of a spreadsheet that opens the table."""
    out = tmp_path / "scores.csv"
    report(finished(tmp_path, [row(1, key="=1+1")], ["rouge"]), "-o", out)
    assert "\n'=1+1," in out.read_text("utf-8")


def test_the_json_explains_itself(lake: Path, tmp_path: Path) -> None:
    """It says what the page says; every figure is that of a model."""
    out = tmp_path / "report.json"
    report(lake, "-o", out)
    content = json.loads(out.read_text("utf-8"))
    assert {"answer", "light", "threshold", "mean", "failing"} <= content["meaning"].keys()
    assert content.keys() - content["meaning"].keys() <= {
        "schema_version", "meaning", "name", "cases", "questions", "tolerated_share", "models",
        "metrics",
    }  # fmt: skip
    assert content["answer"]["light"] in ("fails", "unclear")
    assert {model["model"] for model in content["models"]} == {"heron", "magpie"}
    assert {one["evaluator"] for one in content["metrics"]} == set(IDS)
    assert content["eye"]["parts"][0]["name"] == "Generation"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_markdown_shows_a_hostile_name_as_text(tmp_path: Path, text: str) -> None:
    """No element, no link, no line of its own."""
    out = tmp_path / "report.md"
    report(finished(tmp_path, [row(1, model_key=text)], ["rouge"]), "-o", out)
    lines = out.read_text("utf-8").splitlines()
    assert not [line for line in lines if "<" in line.replace("\\<", "")]


def test_an_archive_is_the_run_again(lake: Path, tmp_path: Path) -> None:
    """The page made of it has the same scores, verdicts and cases."""
    packed, again, whole = (tmp_path / name for name in ("lake.zip", "again.json", "whole.json"))
    report(lake, "-o", packed)
    report(packed, "-o", again)
    report(lake, "-o", whole)
    assert json.loads(again.read_text("utf-8")) == json.loads(whole.read_text("utf-8"))
    report(packed)
    assert packed.with_suffix(".html").exists()


def test_an_archive_has_h2o_s_layout_with_texts_in_every_row(lake: Path, tmp_path: Path) -> None:
    """A program that reads H2O's archives finds results, boards and findings where it looks."""
    packed = tmp_path / "lake.zip"
    report(lake, "-o", packed)
    with zipfile.ZipFile(packed) as archive:
        names = archive.namelist()
        folders = {name.split("/")[0] for name in names if name.startswith("explainer_")}
        assert len(folders) == len(IDS)
        (folder,) = (name for name in folders if "RougeEvaluator" in name)
        content = json.loads(archive.read(f"{folder}/{RESULTS}"))
        assert list(content) == ["results", "models", "evaluator"]
        assert all(one["input"] and "actual_output" in one for one in content["results"])
        for kind in ("problems", "insights"):
            assert f"{folder}/{kind}/{kind}_and_actions.json" in names
        fragment = archive.read(f"{folder}/global_html_fragment/text_html/explanation.html")
        table = archive.read(f"{folder}/global_llm_eval_results/text_csv/explanation.csv")
        log = next(name for name in names if name.startswith(f"{folder}/log/"))
        assert archive.read(log).startswith(b"INFO rouge: ")
    assert b"ROUGE" in fragment
    rows = list(csv.DictReader(io.StringIO(table.decode("utf-8"), newline="")))
    assert len(rows) == len(content["results"])
    assert rows[0]["actual_output"] == content["results"][0]["actual_output"]
    assert {"interpretation.html", "interpretation.json", f"{OURS}/manifest.json"} <= set(names)


def garbled(path: Path) -> None:
    """Write what is no archive."""
    path.write_bytes(b"PK\x03\x04 and no more")


def foreign(path: Path) -> None:
    """Write an archive of something else, with a name that climbs out."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.json", "{}")


def corrupted(path: Path) -> None:
    """Write an archive whose compressed bytes were changed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"explainer_x/{RESULTS}", "abc" * 1000)
    content = bytearray(path.read_bytes())
    start = 30 + len(f"explainer_x/{RESULTS}")
    content[start : start + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(bytes(content))


def encrypted(path: Path) -> None:
    """Write an archive whose member says that it needs a password."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"explainer_x/{RESULTS}", "{}")
    content = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + flags] |= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (garbled, "BadZipFile"),
        (foreign, "no results"),
        (corrupted, "error"),
        (encrypted, "RuntimeError"),
    ],
    ids=["garbled", "foreign", "corrupted", "encrypted"],
)
def test_what_is_no_archive_of_a_run_is_an_error(tmp_path: Path, harm: object, said: str) -> None:
    """And nothing is written outside."""
    path = tmp_path / "x.zip"
    assert callable(harm)
    harm(path)
    assert said in report(path, "-o", tmp_path / "x.html", status=2)
    assert not list(tmp_path.parent.rglob("evil.json"))


@pytest.mark.parametrize(
    ("part", "ending", "said"),
    [
        ("summary", ".html", "Held against a threshold"),
        ("metrics", ".html", "Every model on every headline metric"),
        ("findings", ".html", "Differences beyond chance"),
        ("rouge", ".html", "Hardest questions"),
        ("summary", ".md", "should not go live"),
        ("not-judged", ".md", "JSON schema: 71 of 73"),
        ("findings", ".md", "is ahead of"),
        ("rouge", ".md", "| rouge_l |"),
        ("eye", ".json", '"name": "All checks"'),
        ("rouge", ".json", '"evaluator": "rouge"'),
        ("findings", ".json", '"fail_together"'),
    ],
)
def test_a_part_is_a_fragment(
    lake: Path, tmp_path: Path, part: str, ending: str, said: str
) -> None:
    """It brings its style, runs nothing, and links to the page."""
    out = tmp_path / f"part{ending}"
    report(lake, "--part", part, "-o", out)
    text = out.read_text("utf-8")
    assert said in " ".join(text.split())
    if ending == ".html":
        page = Elements(text)
        tags = {tag for tag, _ in page.tags}
        assert page.tags[0] == ("div", {"class": "guardrail-report"})
        assert not tags & {"html", "body", "script", "link", "img"}
        links = [attributes.get("href") or "" for tag, attributes in page.tags if tag == "a"]
        assert all(link.startswith("report.html#") for link in links)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_fragment_shows_a_hostile_text_as_text(tmp_path: Path, text: str) -> None:
    """Of a name, a category and a question."""
    rows = [row(n, model_key=text, category=[text], question=f"{text}{n}") for n in range(6)]
    folder = finished(tmp_path, rows, ["text_matching"])
    for part in ("summary", "text_matching", "findings", "data"):
        out = tmp_path / "part.html"
        report(folder, "--part", part, "-o", out)
        tags = [tag for tag, _ in Elements(out.read_text("utf-8", "backslashreplace")).tags]
        assert not {"script", "img", "b1"} & set(tags)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--part", "rogue", "-o", "x.html"], "--part"),
        (["--part", "eye", "-o", "x.html"], "--part"),
        (["--part", "cases", "-o", "x.md"], "--part"),
        (["--part", "x", "-o", "x.json"], "--part"),
        (["--part", "summary", "-o", "x.csv"], "--part"),
        (["--part", "summary"], "--part"),
    ],
)
def test_a_part_that_is_none_is_an_error(lake: Path, words: list[str], said: str) -> None:
    """Naming the option and those that exist."""
    assert said in report(lake, *words, status=2)


def test_an_unknown_ending_is_an_error(lake: Path, tmp_path: Path) -> None:
    """It names those that are known."""
    assert ".zip" in report(lake, "-o", tmp_path / "x.pdf", status=2)
