"""The shipped safety branch gives the same bits alone, under load and for both of its roles."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from guardrail_service.detectors.safety import HATE, LABELS
from guardrail_service.inference.golden import check_golden
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.resources import packs_dir
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings
from guardrail_service.streaming.guarded import StreamedCheck
from guardrail_service.types import Row, RowOutput, Sample
from tests.unit.streaming.conftest import chunks, streamed

PACK = packs_dir() / "embedded"
MANIFEST = json.loads((PACK / "manifest.json").read_text(encoding="utf-8"))
ENTRY = MANIFEST["models"][MANIFEST["roles"]["toxicity"]]
GOLDEN = json.loads((PACK / ENTRY["golden"]["path"]).read_text(encoding="utf-8"))
TEXTS = [row["text"] for row in GOLDEN["rows"]]
MAX_BYTES = 30_000_000
BIAS = ("gender", "group", "framing")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    """A service that runs both detectors on the shipped pack."""
    path = tmp_path_factory.mktemp("config") / "policy.json"
    path.write_text(json.dumps({"evaluator_ids": ["toxicity", "bias"]}))
    loaded = Runtime(Settings(config=(path,), workers=2))
    yield loaded
    loaded.close()


def bits(outputs: RowOutput) -> dict[str, bytes]:
    """Return a row's outputs so that equal means bit for bit."""
    return {name: value.tobytes() for name, value in outputs.items()}


def test_the_manifest_names_the_files_byte_for_byte() -> None:
    """One small file serves both roles."""
    for described in (ENTRY, ENTRY["golden"], ENTRY["tokenizer"]):
        content = (PACK / described["path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == described["sha256"]
    assert ENTRY["bytes"] <= MAX_BYTES
    assert MANIFEST["roles"]["bias"] == MANIFEST["roles"]["toxicity"]
    assert ENTRY["labels"] == [*LABELS, "fairness_bias", *BIAS, HATE]
    assert (PACK / ENTRY["card"]).read_text(encoding="utf-8").startswith("# ")


def test_the_golden_rows_come_out_within_tolerance(runtime: Runtime) -> None:
    """What the exported file computes here is what it computed when it was shipped."""
    report = check_golden(PACK / ENTRY["golden"]["path"], runtime.sessions["toxicity"].run)
    assert report.rows >= 50
    assert report.worst <= report.tolerance


def test_every_output_is_a_probability_and_the_combined_one_is_the_worst_part(
    runtime: Runtime,
) -> None:
    """The combination lies inside the graph."""
    for text in TEXTS:
        found = runtime.sessions["bias"].run(Row("bias", text)).outputs
        assert all(0 <= float(value) <= 1 for value in found.values())
        assert float(found["fairness_bias"]) == max(float(found[part]) for part in BIAS)


def test_a_row_is_bit_identical_alone_and_among_others(runtime: Runtime) -> None:
    """Fresh sessions without memory against a loaded scheduler that has seen everything."""
    rows = [*(Row("toxicity", text) for text in TEXTS), *(Row("bias", text) for text in TEXTS)]
    ticket = runtime.scheduler.submit(tuple(rows * 2))
    loaded = [bits(future.result(60).outputs) for future in ticket.futures]
    alone = open_sessions(runtime.pack)["toxicity"]
    expected = [bits(alone.run(Row("toxicity", text)).outputs) for text in TEXTS]
    assert loaded == expected * 4


def test_verdicts_are_bit_identical_under_concurrent_requests(runtime: Runtime) -> None:
    """32 requests at once, four times each, against the same ones in a row."""
    samples = [Sample(" ".join(TEXTS[i : i + 3])) for i in range(8)]

    def scores(sample: Sample) -> dict[str, Any]:
        verdict = runtime.guard.check(sample, deadline_ms=math.inf)
        return {
            key: metric.score
            for result in verdict.detectors.values()
            for key, metric in result.metrics.items()
        }

    expected = [scores(sample) for sample in samples]
    with ThreadPoolExecutor(32) as pool:
        assert list(pool.map(scores, samples * 4)) == expected * 4


def test_a_short_insult_is_found_in_answers_and_streams(runtime: Runtime) -> None:
    """Between ordinary sentences; the part of a stream that holds it does not leave."""
    calm = "The pool opens at nine and closes at six."
    guard = runtime.guard
    (policy,) = guard.policies.values()
    for short, is_bad in (("Fuck you.", True), ("Yes.", False), ("Sure!", False), ("OK.", False)):
        answer = f"{calm} {short} {calm}"
        found = guard.check(Sample(answer), deadline_ms=math.inf).detectors["toxicity"]
        assert found.flagged is is_bad
        places = {answer[span.start : span.end] for span in found.spans}
        assert places == ({short} if is_bad else set())
        check = StreamedCheck(guard, policy, Sample(""), stop_on="flag", deadline_ms=math.inf)
        _, ended = streamed(check, chunks(answer, [5]))
        assert (ended.reason == "blocked") is is_bad
        assert ended.verdict.detectors["toxicity"].metrics["toxicity"].score == pytest.approx(
            found.metrics["toxicity"].score, abs=0
        )
