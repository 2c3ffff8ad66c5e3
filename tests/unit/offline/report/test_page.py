"""The page of a run: what it shows, what it may do, and texts that stay texts."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.report.page import (
    PARTS,
    command_line,
    number,
    report_page,
    write_report,
)
from guardrail_offline.report.run_data import read_run_data
from guardrail_offline.report.several_runs import side_by_side
from guardrail_offline.report.weaknesses import ways_of
from tests.unit.offline.report.conftest import IDS, finished

SCRIPT = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
HOSTILE = {
    "script": SCRIPT,
    "vector": "<svg onload=alert(3)><a href='javascript:alert(4)'>x</a>",
    "bidi": "user\u202e\u2066txt.exe\u2069 \u200f",
    "templates": "{{ 7 * 7 }} {% include 'x' %} ${8 * 8}",
    "quotes": "\"'><b>&amp;--> ]]> \u2028 \x00 \x07",
    "surrogate": "half \ud800 of it",
}


class Elements(HTMLParser):
    """The elements of a page and the texts of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.texts: list[str] = []
        self._within = self.texts
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it, and where its text goes."""
        self.tags.append((tag, dict(attrs)))
        self._within = {"script": self.scripts, "style": self.styles}.get(tag, self.texts)
        if self._within is not self.texts:
            self._within.append("")

    def handle_endtag(self, tag: str) -> None:
        """Text goes to the page again."""
        self._within = self.texts

    def handle_data(self, data: str) -> None:
        """Keep it."""
        if self._within is self.texts:
            self.texts.append(data)
        else:
            self._within[-1] += data

    @property
    def content(self) -> Any:
        """Return what the script reads."""
        return json.loads(self.scripts[0])


def page_of(*folders: Path) -> Elements:
    """Return the elements of a page."""
    return Elements(report_page(side_by_side([read_run_data(folder) for folder in folders])))


def row(number: int, **fields: Any) -> dict[str, Any]:
    """Return one row of a lab."""
    return {
        "key": f"k{number}",
        "question": f"Question {number}?",
        "answer": f"The answer is {number}.",
        "expected_output": "The answer is 1.",
        "condition": '"answer"',
        "contexts": [f"It is {number}."],
        "model_key": "heron",
    } | fields


def has_no_foreign_code(page: Elements) -> None:
    """Our two scripts, no handler, no address but those of the page itself."""
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert not [tag for tag, _ in page.tags if tag in ("img", "iframe", "object", "link", "base")]
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert (attributes.get("href") or "#").startswith("#")
        assert "src" not in attributes


def test_every_part_is_there(lake: Path) -> None:
    """In the order of the navigation, which names each of them."""
    page = page_of(lake)
    ids = [attributes.get("id") for _, attributes in page.tags]
    assert [name for name in ids if name in dict(PARTS)] == [name for name, _ in PARTS]
    links = [a.get("href") for tag, a in page.tags if tag == "a"]
    assert links[1 : len(PARTS) + 1] == [f"#{name}" for name, _ in PARTS]
    has_no_foreign_code(page)


STRUCTURE = Path(__file__).with_name("structure.txt")


class Outline(HTMLParser):
    """The elements of a page as an indented list: names, ids, classes and roles, but no texts."""

    EMPTY = frozenset({"meta", "input", "br", "rect", "circle", "line", "polygon"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._depth = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it."""
        known = dict(attrs)
        name = tag + (f"#{known['id']}" if known.get("id") else "")
        name += "".join(f".{one}" for one in (known.get("class") or "").split())
        name += f"[{known['role']}]" if known.get("role") else ""
        self.lines.append("  " * self._depth + name)
        self._depth += tag not in self.EMPTY

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one that holds nothing."""
        self.handle_starttag(tag, attrs)
        self._depth -= tag not in self.EMPTY

    def handle_endtag(self, tag: str) -> None:
        """Go up again."""
        self._depth -= tag not in self.EMPTY


def folded(lines: list[str]) -> list[str]:
    """Return an outline in which siblings that are alike stand once, with all that is in them."""
    found: list[str] = []
    seen: dict[str, set[str]] = {}
    path: list[str] = []
    for line in lines:
        depth = (len(line) - len(line.lstrip())) // 2
        path[depth:] = [line.strip()]
        parent = "/".join(path[:-1])
        if line.strip() not in seen.setdefault(parent, set()):
            seen[parent].add(line.strip())
            found.append(line)
    return found


def test_the_structure_of_the_page_is_the_one_that_was_looked_at(lake: Path) -> None:
    """Of the example lab; written anew where the environment asks for it."""
    found = "\n".join(folded(Outline(report_page(read_run_data(lake))).lines)) + "\n"
    if os.environ.get("GUARDRAIL_WRITE_GOLDEN"):
        STRUCTURE.write_text(found, "utf-8")
    assert found.splitlines() == STRUCTURE.read_text("utf-8").splitlines()


def test_an_evaluator_says_how_far_it_agrees_with_people(lake: Path) -> None:
    """Or why that was not measured."""
    text = " ".join("".join(page_of(lake).texts).split())
    assert text.count("Agreement with labels of people, with the embedded pack:") == len(IDS)


def test_the_policy_allows_exactly_our_two_texts(lake: Path) -> None:
    """Anything else that got into the page would not run, and nothing is fetched."""
    page = page_of(lake)
    meta = [a for tag, a in page.tags if tag == "meta" and "http-equiv" in a]
    policy = str(meta[0]["content"])
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    for text in (page.styles[0], page.scripts[1]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_the_same_run_gives_the_same_bytes(lake: Path, tmp_path: Path) -> None:
    """Bootstrap included: a run may be compared with its repetition."""
    first, second = tmp_path / "a.html", tmp_path / "b.html"
    write_report([lake], first)
    write_report([lake], second)
    assert first.read_bytes() == second.read_bytes()


def test_runs_stand_side_by_side(tmp_path: Path) -> None:
    """Models and cases carry the name of their run."""
    rows = [row(n) for n in range(12)]
    worse = [row(n, answer="Nothing at all.") for n in range(12)]
    folders = [
        finished(tmp_path / name, of_run, ["rouge"]).rename(tmp_path / f"run-{name}")
        for name, of_run in (("a", rows), ("b", worse))
    ]
    page = page_of(*folders)
    assert [model["key"] for model in page.content["models"]] == ["run-a/heron", "run-b/heron"]
    assert "is ahead of" in " ".join("".join(page.texts).split())


def test_findings_of_several_runs_name_their_run(lake: Path, tmp_path: Path) -> None:
    """Flips, insights and problems; links lead to the cases of that run."""
    other = Path(shutil.copytree(lake, tmp_path / "again"))
    run = side_by_side([read_run_data(lake), read_run_data(other)])
    keys = {case["key"] for case in run.cases}
    assert len(run.flips["flips"]) == 2 * len(read_run_data(lake).flips["flips"])
    assert {flip["source"] for flip in run.flips["flips"]} <= keys
    assert {one["model"] for one in run.flips["rates"]} <= {model.key for model in run.models}
    assert {str(one["description"]).split(": ")[0] for one in run.insights} == {"out", "again"}
    assert all(p["description"].startswith(("out: ", "again: ")) for p in run.problems)
    worst = next(
        p["problem_attrs"]["row_keys"] for p in run.problems if "row_keys" in p["problem_attrs"]
    )
    assert set(worst) <= keys
    text = " ".join("".join(page_of(lake, other).texts).split())
    assert "fastest model out: Heron" in text
    assert "fastest model again: Heron" in text


def test_the_data_overview_tells_languages_and_the_log_tells_what_happened(lake: Path) -> None:
    """Beside lengths, duplicates and columns that nothing read."""
    text = " ".join("".join(page_of(lake).texts).split())
    assert "Languages of questions: en (" in text
    assert "INFO rouge: " in text
    assert "WARNING json_schema: " in text


def test_a_column_that_nothing_read_is_named(tmp_path: Path) -> None:
    """And so are answers that were given twice."""
    twice = [row(n, question="Why?", answer="So.", mood="calm") for n in range(2)]
    text = "".join(page_of(finished(tmp_path, twice, ["rouge"])).texts)
    assert "Columns that nothing read" in text
    assert "mood" in text
    assert "to one question: 1" in text


def test_weakness_is_told_by_category_and_by_how_the_question_was_made(lake: Path) -> None:
    """A row per way, a cell per category; and no grid where the lab says only one of the two."""
    text = " ".join("".join(page_of(lake).texts).split())
    assert "By category and by how the question was made as it was asked question-answering" in text
    assert "perturbed_by:qwerty question-answering" in text
    assert ways_of([{"categories": ["a"]}, {}]) == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "no value"), (1.0, "1"), (0.12345, "0.123"), (float("inf"), "∞"), (1234.56, "1235")],
    ids=str,
)  # fmt: skip
def test_a_number_is_short(value: float | None, text: str) -> None:
    """And a missing one is words."""
    assert number(value) == text


def test_the_command_of_a_run_is_told(lake: Path) -> None:
    """With the evaluators that ran."""
    manifest: Mapping[str, Any] = read_run_data(lake).manifests[0]
    said = command_line(manifest)
    assert said.startswith("guardrail evaluate")
    assert all(name in said for name in IDS)
