"""`guardrail bench latency` as a whole, on the tiny pack: real service, real load, small."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from guardrail_bench.growth import GrowthReport
from guardrail_bench.latency_results import LatencyReport, read_report
from guardrail_bench.peers import PeersReport
from tests.integration.conftest import here

SMALL = (
    "bench", "latency", "--scenario", "chat", "--passages", "warm", "--seconds", "1",
    "--requests", "5", "--concurrency", "1,2", "--load", "300",
)  # fmt: skip


@pytest.fixture
def options(tiny_options: tuple[str | Path, ...]) -> tuple[str | Path, ...]:
    """Return options with which a benchmark runs on the tiny pack, with one worker."""
    return (*tiny_options[:-1], "1")


def test_a_measurement_is_whole_and_goes_on_where_it_stopped(
    options: tuple[str | Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every request is accounted for, rows are those the service was sent, the page is written."""
    monkeypatch.setattr("guardrail_bench.latency.MOST_CALLERS", 2)  # no search beyond
    file, page = tmp_path / "latency.json", tmp_path / "page.md"
    page.write_text("before\n<!-- bench latency -->\n<!-- /bench latency -->\nafter\n")
    cores = os.sched_getaffinity(0)
    first = here(*SMALL, *options, "--json", file, "--doc", page)
    assert first.exit_code == 0, first.output
    assert "The budgets that end huge texts take" in first.output
    assert os.sched_getaffinity(0) == cores
    report = read_report(file)
    _check_run(report)
    assert "Short chat answer, warm passages" in page.read_text()
    assert page.read_text().endswith("<!-- /bench latency -->\nafter\n")
    assert (tmp_path / "images" / "performance-latency.png").is_file()

    other = here(*SMALL, *options, "--json", file, "--resume", "--soak", "30", "--seed", "18")
    assert other.exit_code == 2
    assert "other seed" in other.output

    again = here(*SMALL, *options, "--json", file, "--resume", "--soak", "30")
    assert again.exit_code == 0, again.output
    resumed = read_report(file)
    assert resumed.runs == report.runs
    assert resumed.soak is not None
    assert resumed.soak.cell.tally.complete == 30


def _check_run(report: LatencyReport) -> None:
    (run,) = report.runs
    (overload,) = run.open
    for cell in (*run.closed, overload):
        assert cell.tally.lost == cell.tally.hung == 0
        assert cell.tally.sent == cell.server_counted
    for cell in run.closed:
        assert cell.tally.complete == cell.tally.sent > 0
        assert cell.service_cpu_s > 0
        assert cell.stages["server"].p50 <= cell.stages["client"].p50
        assert {"queue", "tokenize", "inference", "total", "overhead"} <= cell.stages.keys()
    assert overload.offered_per_s == pytest.approx(3 * run.capacity_per_s)
    assert run.bare.samples == run.saturation().tally.sent
    assert run.bare.rows > 2 * run.bare.samples
    assert run.bare.cpu_s > 0
    assert report.service["pack"]["name"] == "tiny"


ECHO = """
import json, sys
for line in sys.stdin:
    job = json.loads(line)
    counted = {name: float(len(texts)) for name, texts in job.items()}
    print(json.dumps({"torch": counted, "onnx": counted}), flush=True)
"""
"""Stands in for the peers, which need torch: answers how many texts it was given."""


def test_peers_get_the_sentences_the_service_embeds(
    options: tuple[str | Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sample twice, cold and warm; the script itself runs only where torch is."""
    script, file = tmp_path / "echo.py", tmp_path / "peers.json"
    script.write_text(ECHO)
    monkeypatch.setattr("guardrail_bench.peers.SCRIPT", script)
    run = here(
        "bench", "peers", "--python", sys.executable, "--samples", "2", *options, "--json", file
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    report = PeersReport.model_validate_json(file.read_bytes())
    assert [t.passages for t in report.timed] == ["cold", "warm"] * 2
    for timed in report.timed:
        assert timed.service_ms > 0
        assert timed.peers_ms["torch"] == sum(timed.texts.values())
        assert timed.texts["sentences"] > 30
        assert timed.texts["pairs"] == timed.texts["classified"] == 0  # the tiny pack only embeds


def test_a_service_that_does_not_start_is_an_error_with_its_last_words(
    options: tuple[str | Path, ...], tmp_path: Path
) -> None:
    """Not a benchmark without numbers."""
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps({"evaluator_ids": ["nothing"]}))
    run = here(*SMALL, *options[:2], "--config", broken)
    assert run.exit_code == 2
    assert "the service ended with 2" in run.output
    assert "unknown id" in run.output


def test_growth_is_measured_on_a_service(
    options: tuple[str | Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one size of each kind: rows and processor time are the service's own."""
    named = dict(zip(options[::2], map(str, options[1::2]), strict=True))
    monkeypatch.setenv("GUARDRAIL_CONFIG", named["--config"])
    monkeypatch.setenv("GUARDRAIL_MODEL_PACK", named["--pack"])
    for name, few in {
        "PASSAGES": (1,), "WORDS": (20,), "CALLERS": (2,), "FORM_KINDS": ("chat:warm",),
        "FORMS": {"one": (1, ("--workers", "1"))},
    }.items():  # fmt: skip
        monkeypatch.setattr(f"guardrail_bench.growth.{name}", few)
    file = tmp_path / "growth.json"
    done = here("bench", "growth", "--seconds", "1", "--checks", "2", "--json", file)
    assert done.exit_code == 0, done.output
    report = GrowthReport.model_validate_json(file.read_bytes())
    assert {(point.grows, point.passages) for point in report.points} == {
        ("passages", "cold"), ("answer", "cold"), ("passages", "warm"), ("answer", "warm"),
    }  # fmt: skip
    rows = {(point.grows, point.passages): point.rows for point in report.points}
    assert rows["answer", "cold"] > rows["answer", "warm"] > 0
    assert all(point.cpu_ms > 0 for point in report.points)
    assert [rate.callers for rate in (*report.callers, *report.cores)] == [2, 16]
