"""Hostile scenarios: their texts are what they say, and what is judged is judged rightly."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from guardrail_bench import scenarios
from guardrail_bench.commands import bench_app
from guardrail_bench.hostile_texts import CHARS, KINDS, hostile_answer, hostile_body
from guardrail_bench.load import LoadRequest
from guardrail_bench.scenarios import FULL, SHORT, Bench, Expectation, ScenariosReport

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_as_long_as_an_answer_may_be(kind: str) -> None:
    """And the same for the same seed."""
    text = hostile_answer(kind, 1)
    assert 0.75 * CHARS < len(text) <= CHARS
    assert text == hostile_answer(kind, 1)
    body = json.loads(hostile_body(kind, 50))
    assert (body["answer"], body["deadline_ms"]) == (hostile_answer(kind, 0), 50)
    assert "deadline_ms" not in json.loads(hostile_body(kind, None))


def request(status: int, ms: float = 10.0, failure: str | None = None) -> LoadRequest:
    """One that is over."""
    now = time.perf_counter()
    return LoadRequest(0, now - ms / 1e3, now, now, status, failure)


@pytest.mark.parametrize(
    ("requests", "met"),
    [
        ([request(200), request(429), request(422)], True),
        ([request(200), request(500)], False),
        ([request(200), request(0, failure="ConnectionResetError")], False),
        ([request(0, failure="hung")], False),
        ([], False),
    ],
)
def test_a_verdict_and_a_refusal_are_answers(requests: list[LoadRequest], met: bool) -> None:
    """Nothing else is."""
    bench = Bench("burst", None, SHORT)  # type: ignore[arg-type]  # nothing is sent
    bench.nobody_lost("they", requests)
    assert [found.met for found in bench.results] == [met]


@pytest.mark.parametrize(
    ("refused", "of", "size", "met"),
    [(0, 8, SHORT, True), (2, 8, SHORT, True), (3, 8, SHORT, False), (0, 0, SHORT, False),
     (3, 60, FULL, True), (4, 60, FULL, False)],
)  # fmt: skip
def test_few_ordinary_requests_are_refused(refused: int, of: int, size: Any, met: bool) -> None:
    """At most 5 %; the short form, which has eight, has to be sure that there are more."""
    bench = Bench("hostile", None, size)  # type: ignore[arg-type]
    bench.few_refused([request(429)] * refused + [request(200)] * (of - refused))
    assert [found.met for found in bench.results] == [met]


def test_a_time_is_met_up_to_its_limit() -> None:
    """The share that counts is 95 of 100 verdicts; refusals have no time."""
    bench = Bench("hostile", None, FULL)  # type: ignore[arg-type]
    many = [request(200, ms) for ms in range(1, 101)] + [request(429, 9_000)]
    bench.within("p95", scenarios.p95(many), 95.5)
    bench.within("p95", scenarios.p95([request(429)]), 95.5)
    assert [(found.met, found.is_time) for found in bench.results] == [(True, True), (False, True)]


@pytest.mark.parametrize(("is_time", "status"), [(True, 0), (False, 1)])
def test_outcomes_decide_the_status_and_times_do_not(
    is_time: bool, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine must not fail a pipeline."""
    missed = Expectation("burst", "at once", "3 lost", "0 lost", met=False, is_time=is_time)
    monkeypatch.setattr(scenarios, "run", lambda *_a, **_k: ScenariosReport([missed], 0.1, 0.2))
    shown = CliRunner().invoke(bench_app, ["scenarios", "burst", "--json", "-"])
    assert shown.exit_code == status
    assert json.loads(shown.stdout)["results"][0]["found"] == "3 lost"


def test_an_unknown_scenario_is_named() -> None:
    """With those that there are."""
    shown = CliRunner().invoke(bench_app, ["scenarios", "flood"])
    assert shown.exit_code != 0
    assert "one of hostile, callers" in " ".join(shown.output.split())


def test_held_connections_are_closed_in_the_end() -> None:
    """A scenario leaves nothing behind."""
    seen: list[bytes] = []
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: Any) -> None:
        seen.append(await reader.read())
        writer.close()
        gone.set()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with scenarios.held(f"http://127.0.0.1:{port}", 1, b"GET /", b""):
            pass
        await gone.wait()
        server.close()

    asyncio.run(run())
    assert seen == [b"GET /"]


def test_the_page_has_a_place_for_the_table() -> None:
    """And the pipeline runs what has no times."""
    assert f"<!-- {scenarios.PART} -->" in (ROOT / "docs/performance.md").read_text("utf-8")
    assert "bench scenarios --short" in (ROOT / ".ci/load").read_text("utf-8")


def test_kinds_have_a_row_each_and_a_column_for_each_deadline() -> None:
    """A hundred lines would be read by nobody."""
    results = [
        scenarios.Expectation("kinds", f"digits, no blanks, {due}", found, "", None, is_time=False)
        for due in ("50 ms", "no deadline")
        for found in ("200, 0.1 CPU s", "60 ms")
    ]
    report = scenarios.ScenariosReport(results, 0.1, 0.2)
    cells = {"50 ms": "200, 0.1 CPU s, 60 ms", "no deadline": "200, 0.1 CPU s, 60 ms"}
    assert scenarios.kind_rows(report) == [("digits, no blanks", cells)]
    assert "| kind | 50 ms | no deadline |" in scenarios.markdown(report)
