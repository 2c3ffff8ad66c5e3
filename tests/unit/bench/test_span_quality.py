"""The quality bench: counting, intervals, mapping of types, bad input."""

from __future__ import annotations

import gzip
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from guardrail_bench.quality import wilson
from guardrail_bench.span_quality import render, run
from guardrail_service.errors import InputError

RECORDS: list[dict[str, Any]] = [
    {"text": "a@example.com", "spans": [{"start": 0, "end": 13, "type": "EMAIL_ADDRESS"}]},
    {"text": "b@example.com", "spans": [{"start": 9, "end": 13, "type": "EMAIL_ADDRESS"}]},
    {"text": "c@example.com", "spans": []},
    {"text": "Ana d at e", "spans": [{"start": 0, "end": 3, "type": "PERSON"}]},
    {"text": "219-09-9998", "spans": []},
]


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    """Write records as JSON lines, compressed if the name says so."""
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_counts(tmp_path: Path, name: str) -> None:
    """Half of the union decides; unmapped labels and unlabelled findings stand apart."""
    report = run("pii", write(tmp_path / name, RECORDS))
    email, structured, everything = report.types
    assert (email.type, email.right, email.wrong, email.missed) == ("email", 1, 2, 1)
    assert email.precision.value == pytest.approx(1 / 3)
    assert email.recall.value == 0.5
    assert email.f1.value == pytest.approx(0.4)
    assert email.f1.low <= email.f1.value <= email.f1.high
    assert structured.right == everything.right == 1
    assert report.unmapped == {"PERSON": 1}
    assert report.unlabelled == {"us_ssn": 1}
    assert report.texts == 5


def test_a_report_is_deterministic_and_prints(tmp_path: Path) -> None:
    """The bootstrap has a fixed seed; JSON has no NaN; the table shows the rule."""
    path = write(tmp_path / "x.jsonl", RECORDS)
    first = run("pii", path)
    assert first == run("pii", path)
    assert json.loads(first.as_json())["types"][0]["type"] == "email"
    out = io.StringIO()
    render(first, Console(file=out, width=200))
    assert "EMAIL" not in out.getvalue()
    assert "email" in out.getvalue()
    assert "half of their union" in out.getvalue()


def test_nothing_labelled_is_not_a_perfect_score(tmp_path: Path) -> None:
    """Without labels there is nothing to report."""
    report = run("pii", write(tmp_path / "x.jsonl", RECORDS[2:3]))
    assert report.types == ()
    assert report.unlabelled == {"email": 1}


def test_a_missing_baseline_says_how_to_get_it(tmp_path: Path) -> None:
    """The reply never leaves the reader guessing."""
    report = run("pii", write(tmp_path / "x.jsonl", RECORDS))
    assert report.baseline or "pip install presidio-analyzer" in report.baseline_note


def test_wilson_intervals() -> None:
    """Textbook values; nothing counted is not a number."""
    rate = wilson(8, 10)
    assert rate.value == 0.8
    assert rate.low == pytest.approx(0.4901625, abs=1e-6)
    assert rate.high == pytest.approx(0.9433178, abs=1e-6)
    assert math.isnan(wilson(0, 0).value)


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[" * 100_000,
        "[]",
        '{"text": "a"}',
        '{"text": 1, "spans": []}',
        '{"text": "ab", "spans": [{"start": 1, "end": 3, "type": "x"}]}',
        '{"text": "ab", "spans": [{"start": 1, "end": 1, "type": "x"}]}',
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str) -> None:
    """File, line and what was expected; never the text."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "", "spans": []}\n' + line + "\n")
    with pytest.raises(InputError, match=r"x\.jsonl:2: expected"):
        run("pii", path)


def test_a_file_that_is_no_gzip_is_named(tmp_path: Path) -> None:
    """Nor is one that was cut off or damaged."""
    whole = write(tmp_path / "x.jsonl.gz", RECORDS * 99).read_bytes()
    flipped = whole[:60] + bytes(byte ^ 255 for byte in whole[60:80]) + whole[80:]
    for content in (b"not gzip", whole[:-20], flipped, whole[:-8] + b"12345678"):
        (tmp_path / "y.jsonl.gz").write_bytes(content)
        with pytest.raises(InputError, match=r"y\.jsonl\.gz: found .*; expected gzip") as refused:
            run("pii", tmp_path / "y.jsonl.gz")
        assert "example.com" not in str(refused.value)


def test_an_unknown_task_lists_what_exists(tmp_path: Path) -> None:
    """Two tasks exist."""
    with pytest.raises(InputError, match="pii, secrets"):
        run("phi", tmp_path / "x.jsonl")
