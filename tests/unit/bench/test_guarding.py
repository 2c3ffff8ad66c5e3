"""Counting what a policy stops and shows, on five answers; openings of a sealed half."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from typer.testing import CliRunner

from guardrail_bench.guarding import (
    CorpusCase,
    JudgedCase,
    cases_of,
    figures,
    policy_files,
    read,
)
from guardrail_bench.quality import exact
from guardrail_service.commands.main import app
from guardrail_service.errors import ConfigurationError, InputError
from guardrail_service.types import Sample

SECRET = "Nobody may read this"
LOOP = "The pool opens at seven. " * 12
CARD = "Your card is 4111 1111¦ 1111 1111."


def row(number: int, answer: str, *, good: bool, **more: Any) -> dict[str, Any]:
    """Return a line of a corpus."""
    question, contexts = "When does the pool open?", ["The pool opens at seven."]
    return {"id": f"c{number}", "class": "a" if number < 3 else "b", "question": question,
            "contexts": contexts, "answer": answer, "good": good, **more}  # fmt: skip


ATTACKS = [
    row(1, LOOP, good=False),
    row(2, CARD, good=False, must="redact"),
    row(3, CARD, good=False),
]
ORDINARY = [
    row(4, "The pool opens at seven.", good=True),
    row(5, "Write to jane.doe@mail.example.", good=True),
]


def lines_of(rows: list[dict[str, Any]]) -> bytes:
    """Return a file's content."""
    return "".join(json.dumps(one) + "\n" for one in rows).encode()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a folder with both halves, the sealed one sealed as it lies there."""
    record: dict[str, Any] = {"opened": []}
    for half, rows in (("attacks", ATTACKS), ("ordinary", ORDINARY)):
        (tmp_path / half).mkdir()
        (tmp_path / half / "open.jsonl").write_bytes(lines_of(rows))
        sealed = gzip.compress(lines_of([one | {"question": SECRET} for one in rows]))
        (tmp_path / half / "sealed.jsonl.gz").write_bytes(sealed)
        record[half] = {"rows": len(rows), "sha256": hashlib.sha256(sealed).hexdigest()}
    (tmp_path / "SEALED.json").write_text(json.dumps(record))
    policy = {
        "evaluator_ids": ["looping", "pii"],
        "policy": {
            "name": "small",
            "version": "1",
            "actions": {"looping": "block", "pii": "redact"},
        },
    }
    (tmp_path / "small.json").write_text(json.dumps(policy))
    return tmp_path


def measured(corpus: Path, tiny: Path, *more: str) -> tuple[str, dict[str, Any]]:
    """Return what the command prints, and its report."""
    report = corpus / "report.json"
    arguments = ["--corpus", corpus, "--policy", corpus / "small.json", "--pack", tiny]
    told = ["bench", "guarding", *map(str, arguments), "--json", str(report), *more]
    shown = CliRunner().invoke(app, told, env={"COLUMNS": "300"})
    assert shown.exit_code == 0, shown.output
    return shown.output, json.loads(report.read_text("utf-8"))


def test_a_redaction_stops_a_bad_answer_only_where_it_is_the_right_outcome(
    corpus: Path, tiny: Path
) -> None:
    """Of the three bad answers one is blocked and one redacted as it must be."""
    output, report = measured(corpus, tiny, "--failures")
    found = report["policies"]["small"]
    assert [found["bad"][name]["right"] for name in ("a", "b", "all")] == [2, 0, 2]
    assert found["bad"]["all"]["by"] == {"pii": 2, "looping": 1}
    assert [found["good"]["all"][key] for key in ("n", "right")] == [2, 1]
    assert [one["id"] for one in found["failures"]] == ["c3", "c5"]
    assert "2 of 3 bad answers stopped" in output
    assert "small c5: redacted by pii" in output
    assert "jane.doe@mail.example" in output
    assert report["openings"] is None


def test_a_page_gets_its_part(corpus: Path, tiny: Path) -> None:
    """With both tables, and no failures."""
    page = corpus / "page.md"
    page.write_text("<!-- bench guarding -->\n<!-- /bench guarding -->\n")
    measured(corpus, tiny, "--doc", str(page))
    text = page.read_text("utf-8")
    assert "| class | n | small | stopped by, under small |" in text
    assert "| all | 2 | 1 (50.0 %, 1.3 to 98.7) | pii 1 |" in text


def test_sealed_texts_are_not_shown_and_every_opening_is_counted(corpus: Path, tiny: Path) -> None:
    """With date, commit and policy; what else stands in the record stays."""
    output, report = measured(corpus, tiny, "--sealed", "--failures")
    assert "opened 1 times" in output
    output, report = measured(corpus, tiny, "--sealed", "--failures")
    assert "opened 2 times" in output
    assert report["openings"] == 2
    assert [one["id"] for one in report["policies"]["small"]["failures"]] == ["c3", "c5"]
    for text in (output, json.dumps(report)):
        assert SECRET not in text
        assert "jane.doe" not in text
    record = json.loads((corpus / "SEALED.json").read_text("utf-8"))
    assert [sorted(one) for one in record["opened"]] == [["commit", "date", "policy"]] * 2
    assert record["opened"][0]["policy"] == "small"
    assert record["attacks"]["rows"] == 3


def test_a_changed_sealed_file_is_refused_and_not_counted(corpus: Path) -> None:
    """Whoever edits the sealed half has another half."""
    path = corpus / "ordinary" / "sealed.jsonl.gz"
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(InputError, match="not the sealed one"):
        cases_of(corpus, ["small"], sealed=True)
    assert json.loads((corpus / "SEALED.json").read_text("utf-8"))["opened"] == []


def test_the_hash_of_one_half_is_none_of_the_other(corpus: Path) -> None:
    """Two halves exchanged are two changed files."""
    attacks, ordinary = (corpus / half / "sealed.jsonl.gz" for half in ("attacks", "ordinary"))
    content = attacks.read_bytes()
    attacks.write_bytes(ordinary.read_bytes())
    ordinary.write_bytes(content)
    with pytest.raises(InputError, match="not the sealed one"):
        cases_of(corpus, ["small"], sealed=True)


@pytest.mark.parametrize("missing", ["SEALED.json", "attacks/sealed.jsonl.gz"])
def test_a_missing_sealed_file_is_named(corpus: Path, missing: str) -> None:
    """Instead of a measurement of one half only."""
    (corpus / missing).unlink()
    with pytest.raises(InputError, match=missing.rpartition("/")[2]):
        cases_of(corpus, ["small"], sealed=True)


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{",
        '{"opened": []}',
        '{"opened": 3, "attacks": {"sha256": ""}, "ordinary": {"sha256": ""}}',
    ],
)
def test_a_record_without_openings_is_refused(corpus: Path, content: str) -> None:
    """An opening that cannot be counted does not take place."""
    (corpus / "SEALED.json").write_text(content)
    with pytest.raises(InputError, match=r"SEALED\.json"):
        cases_of(corpus, ["small"], sealed=True)


def test_an_opening_counts_although_the_half_cannot_be_read(corpus: Path) -> None:
    """The error names the line and repeats nothing of it."""
    path = corpus / "attacks" / "sealed.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps({"answer": SECRET}).encode()))
    record = json.loads((corpus / "SEALED.json").read_text("utf-8"))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    record["attacks"]["sha256"] = digest
    (corpus / "SEALED.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"sealed\.jsonl\.gz:1: expected") as raised:
        cases_of(corpus, ["small"], sealed=True)
    assert SECRET not in str(raised.value)
    assert raised.value.__suppress_context__
    assert len(json.loads((corpus / "SEALED.json").read_text("utf-8"))["opened"]) == 1


def test_an_opening_names_the_commit(corpus: Path) -> None:
    """And says where files differ from it."""
    git = which("git")
    assert git is not None
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    for told in (["init", "-q"], ["add", "small.json"], [*who, "commit", "-qm", "One"]):
        subprocess.run([git, "-C", str(corpus), *told], check=True)
    (corpus / "small.json").write_text("{}")
    cases_of(corpus, ["small"], sealed=True)
    (opening,) = json.loads((corpus / "SEALED.json").read_text("utf-8"))["opened"]
    assert opening["commit"].endswith("-dirty")


@pytest.mark.parametrize(
    "changed",
    [{"good": "yes"}, {"contexts": None}, {"contexts": [3]}, {"answer": None}, {"class": 1}],
)
def test_a_line_that_is_no_case_is_named(tmp_path: Path, changed: dict[str, Any]) -> None:
    """By file and line."""
    path = tmp_path / "open.jsonl"
    path.write_bytes(lines_of([ATTACKS[0], ATTACKS[1] | changed]))
    with pytest.raises(InputError, match=r"open\.jsonl:2: expected an object"):
        read(path)


def test_an_empty_or_missing_file_is_refused(tmp_path: Path) -> None:
    """No case is no measurement."""
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "open.jsonl")
    (tmp_path / "open.jsonl").write_text("\n")
    with pytest.raises(InputError, match="found no case"):
        read(tmp_path / "open.jsonl")


def test_the_mark_that_cuts_secrets_is_left_out(corpus: Path) -> None:
    """What is judged is the whole secret."""
    (_, card, _) = read(corpus / "attacks" / "open.jsonl")
    assert card.sample.answer == "Your card is 4111 1111 1111 1111."


def test_a_policy_is_a_shipped_one_or_a_file(corpus: Path) -> None:
    """A wrong one is named beside those that exist."""
    assert list(policy_files(["strict", str(corpus / "small.json")])) == ["strict", "small"]
    with pytest.raises(ConfigurationError, match="one of default, strict, observe"):
        policy_files(["lenient"])


def test_bounds_are_exact() -> None:
    """None of 59 lost is below 5 %, none of 58 is not (0.95 ^ 58 = 0.051)."""
    case = CorpusCase("c", "a", True, False, Sample("x"))

    def of(shown: int, lost: int) -> float:
        good, bad = JudgedCase(case, "shown", (), 1.0), JudgedCase(case, "blocked", (), 1.0)
        return figures([good] * shown + [bad] * lost).wrong_at_most

    assert of(59, 0) < 0.05 < of(58, 0)
    assert of(0, 2) == 1.0
    share = exact(1, 2)
    assert (share.low, share.high) == pytest.approx((0.0126, 0.9874), abs=1e-4)
