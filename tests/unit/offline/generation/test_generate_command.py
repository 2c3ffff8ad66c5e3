"""`guardrail generate`: documents in, a lab with manifest, rejected cases and picture out."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.generation.library import SUITES, library_cases
from guardrail_service.commands.main import app
from guardrail_service.detectors.text_matching.condition import parse_condition
from tests.unit.offline.generation.conftest import HANDBOOK
from tests.unit.offline.generation.files import encrypted_pdf, pdf_bytes, write


def generate(*words: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["generate", *map(str, words)], env={"COLUMNS": "200"})


def test_a_lab_comes_out_with_what_belongs_to_it(tmp_path: Path) -> None:
    """Twice the same bytes; the lab is read as any other."""
    written = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        out = tmp_path / name / "lab.json"
        ran = generate(HANDBOOK, "-o", out, "--count", 16, "--seed", 7)
        assert ran.exit_code == 0, ran.output
        written.append({p.name: p.read_bytes() for p in sorted(out.parent.iterdir())})
    assert written[0] == written[1]
    assert set(written[0]) == {
        "lab.json", "lab.json.coverage.svg", "lab.json.generated.jsonl", "lab.json.manifest.json",
        "lab.json.rejected.jsonl",
    }  # fmt: skip
    cases = list(open_lab(tmp_path / "a" / "lab.json").cases())
    lines = written[0]["lab.json.generated.jsonl"].decode().splitlines()
    assert [json.loads(line)["key"] for line in lines] == [case.key for case in cases]
    assert 16 <= len(cases) <= 18
    assert all(case.answer is None for case in cases)
    assert any(case.expected and case.reference_contexts for case in cases)
    manifest = json.loads(written[0]["lab.json.manifest.json"])
    (document,) = manifest["documents"]
    assert (document["id"], document["state"]) == ("handbook.md", "read")
    assert manifest["coverage"]["cases"] == len(cases)
    assert manifest["coverage"]["chunks"]["covered"] >= 3
    assert manifest["validation"]["thresholds"]["relevancy"]["source"]
    ElementTree.fromstring(written[0]["lab.json.coverage.svg"])  # noqa: S314 - our own picture


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they stand in docs/generation.md, without the pack's models."""
    page = (HANDBOOK.parents[4] / "docs" / "generation.md").read_text("utf-8")
    lines = [line for line in page.splitlines() if line.startswith("guardrail generate ")]
    assert len(lines) == 3
    monkeypatch.chdir(tmp_path)
    (tmp_path / "manuals").mkdir()
    write(tmp_path, "handbook.pdf", pdf_bytes([["The Linden pool opened in 1974."]]))
    write(tmp_path / "manuals", "handbook.md", HANDBOOK.read_text("utf-8"))
    for line in lines:
        ran = generate(
            *line.split()[2:], *(["--no-validate"] if "from-library" not in line else [])
        )
        assert ran.exit_code == 0, ran.output


def test_queries_alone_give_nothing_away(tmp_path: Path) -> None:
    """No expected answer, no condition, no passage that should be found."""
    out = tmp_path / "lab.json"
    ran = generate(HANDBOOK, "-o", out, "--count", 10, "--queries-only", "--no-validate")
    assert ran.exit_code == 0, ran.output
    for case in open_lab(out).cases():
        assert (case.expected, case.condition, case.answerable) == (None, None, None)
        assert case.reference_contexts == case.references == ()


def test_a_document_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """The others are used, and the command ends with 3."""
    write(tmp_path, "locked.pdf", encrypted_pdf("x"))
    write(tmp_path, "rules.txt", "The Linden pool opened in 1974. A ticket costs 6 euros per day.")
    out = tmp_path / "lab.json"
    ran = generate(tmp_path, "-o", out, "--no-validate", "--json")
    assert ran.exit_code == 3
    told = json.loads(ran.stdout)
    assert told["manifest"]["coverage"]["unread"] == {"locked.pdf": "encrypted"}
    assert told["cases"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "x.json"], "DOCUMENTS"),
        ([str(HANDBOOK)], "--out"),
        ([str(HANDBOOK), "-o", "x.csv"], "a .json file"),
        ([str(HANDBOOK), "-o", "x.json", "--generators", "clozes"], "clozes"),
        (["nothing.pdf", "-o", "x.json"], "no file"),
        (["-o", "x.json", "--from-library", "greeting"], "greetings"),
        ([str(HANDBOOK), "-o", "x.json", "--from-library", "greetings"], "one of the two"),
        (["-o", "x.json", "--from-library", "greetings", "--count", "900"], "at most"),
        ([str(HANDBOOK), "-o", "x.json", "--judge-model", "m"], "--judge"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], message: str) -> None:
    """With the option, what was found and what was expected."""
    ran = generate(*words)
    assert (ran.exit_code, message in " ".join(ran.output.split())) == (2, True), ran.output


def test_without_any_text_nothing_is_written(tmp_path: Path) -> None:
    """The states of the documents are in the message."""
    write(tmp_path, "locked.pdf", encrypted_pdf("x"))
    ran = generate(tmp_path, "-o", tmp_path / "lab.json")
    assert ran.exit_code == 2
    assert "1 encrypted" in ran.output
    assert not (tmp_path / "lab.json").exists()


def test_the_library_is_drawn_by_the_seed(tmp_path: Path) -> None:
    """Pairs stay whole; the same seed gives the same bytes."""
    texts = []
    for name in ("a.json", "b.json"):
        ran = generate("--from-library", "bias_pairs", "--count", 6, "--seed", 3, "-o",
                       tmp_path / name)  # fmt: skip
        assert ran.exit_code == 0, ran.output
        texts.append((tmp_path / name).read_bytes())
    assert texts[0] == texts[1]
    cases = list(open_lab(tmp_path / "a.json").cases())
    assert len(cases) == 6
    assert len({case.group for case in cases}) == 3
    assert library_cases("refusals", 5, 1) != library_cases("refusals", 5, 2)


def test_every_suite_of_the_library_says_its_licence() -> None:
    """No question stands twice, and expected answers meet their conditions."""
    assert len(SUITES) == 7
    for name, suite in SUITES.items():
        assert (suite.name, suite.license) == (name, "Apache-2.0")
        questions = [case.question for case in suite.cases]
        assert len(set(questions)) == len(questions) >= 16
        for case in suite.cases:
            if case.condition:
                assert parse_condition(case.condition).failure([case.expected or ""]) is None
    assert generate("--from-library", "list").exit_code == 0
    assert "simple_factual_questions" in generate("--generators", "list", "--json").stdout
