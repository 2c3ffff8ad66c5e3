"""The shipped grounding branch and head give the same bits alone, under load and from memory."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from guardrail_service.inference.golden import check_golden
from guardrail_service.inference.models.encoder import GROUNDING_OUTPUTS
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.resources import packs_dir
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings
from guardrail_service.types import Passage, Row, Sample

PACK = packs_dir() / "embedded"
MANIFEST = json.loads((PACK / "manifest.json").read_text(encoding="utf-8"))
ENTRY = MANIFEST["models"][MANIFEST["roles"]["grounding"]]
STATES = MANIFEST["models"][ENTRY["encoder"]]
GOLDEN = json.loads((PACK / ENTRY["golden"]["path"]).read_text(encoding="utf-8"))
ROWS = [
    Row("grounding", row["text"], outputs=GROUNDING_OUTPUTS, evidence=tuple(row["evidence"]))
    for row in GOLDEN["rows"]
]
MAX_BYTES = 8_000_000
"""Branch and head together; a file may have 30 MB."""


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    """A service that runs hallucination and groundedness on the shipped pack."""
    path = tmp_path_factory.mktemp("config") / "policy.json"
    path.write_text(
        json.dumps(
            {
                "evaluator_ids": ["hallucination", "groundedness"],
                "calibrated_thresholds": {"hallucination": {"hallucination": 0.5}},
            }
        )
    )
    loaded = Runtime(Settings(config=(path,), workers=2))
    yield loaded
    loaded.close()


def test_the_manifest_names_the_files_byte_for_byte() -> None:
    """Weights, golden rows and the encoder they belong to, by way of the branch."""
    for described in (ENTRY, ENTRY["golden"], ENTRY["tokenizer"], STATES, STATES["golden"]):
        content = (PACK / described["path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == described["sha256"]
    assert ENTRY["bytes"] + STATES["bytes"] <= MAX_BYTES
    assert STATES["encoder"] == MANIFEST["roles"]["embedding"]
    assert STATES["inputs"] == ["middle_states", "attention_mask"]
    assert (PACK / ENTRY["card"]).read_text(encoding="utf-8").startswith("# ")


def test_the_golden_rows_come_out_within_tolerance(runtime: Runtime) -> None:
    """Torch-free: what the exported file computes is what training measured."""
    report = check_golden(PACK / ENTRY["golden"]["path"], runtime.sessions["grounding"].run)
    assert report.rows >= 50
    assert report.worst <= report.tolerance


def test_probabilities_sum_to_one(runtime: Runtime) -> None:
    """Three ways a claim can stand to its evidence, and no fourth."""
    for row in ROWS[:10]:
        found = runtime.sessions["grounding"].run(row).outputs
        assert found["probabilities"].sum() == pytest.approx(1.0, abs=1e-5)
        assert set(found["places"]) <= set(range(len(row.evidence)))


def test_a_row_is_bit_identical_alone_and_among_others(runtime: Runtime) -> None:
    """Fresh sessions without memory against a loaded scheduler that has seen everything."""
    ticket = runtime.scheduler.submit(tuple(ROWS * 2))
    loaded = [future.result(60).outputs for future in ticket.futures]
    alone = open_sessions(runtime.pack)["grounding"]
    for number, row in enumerate(ROWS):
        expected = alone.run(row).outputs
        for found in (loaded[number], loaded[number + len(ROWS)]):
            for name in GROUNDING_OUTPUTS:
                np.testing.assert_array_equal(found[name], expected[name])


def test_verdicts_are_bit_identical_under_concurrent_requests(runtime: Runtime) -> None:
    """32 requests at once, four times each, against the same ones in a row."""
    samples = [
        Sample(row["text"], None, tuple(Passage(text) for text in row["evidence"]))
        for row in GOLDEN["rows"][:8]
    ]

    def score(sample: Sample) -> float | str | None:
        found = runtime.guard.check(sample, deadline_ms=math.inf).detectors["hallucination"]
        metric = found.metrics.get("hallucination")
        return found.reason if metric is None else metric.score

    expected = [score(sample) for sample in samples]
    with ThreadPoolExecutor(32) as pool:
        assert list(pool.map(score, samples * 4)) == expected * 4
