"""Rows in one call: which may share it, and that none of them moves beside the others."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guardrail_models.verify import BATCH_TOLERANCE
from guardrail_service.errors import RowFailed
from guardrail_service.inference.models.session import TextModel
from guardrail_service.inference.pack import load_pack
from guardrail_service.inference.queue.batch import Batch, Batches
from guardrail_service.inference.queue.scheduler import Scheduler
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.server.runtime import batches
from guardrail_service.types import Role, Row, RowResult
from tests import tiny_reference

EVIDENCE = ("the pool opens at seven", "dogs are not allowed", "breakfast is served until ten")
OUTPUTS = ("probabilities", "places", "cosines")
ROWS: dict[Role, list[Row]] = {
    "toxicity": [Row("toxicity", t) for t in ("dogs", "the pool opens", "two weeks at most .")],
    "nli": [
        Row("nli", "dogs are not allowed", "dogs"),
        Row("nli", "the pool", "the pool opens at seven"),
        Row("nli", "breakfast is served", "ten"),
    ],
    "grounding": [
        Row("grounding", "the pool opens", None, OUTPUTS, EVIDENCE),
        Row("grounding", "dogs", None, OUTPUTS, EVIDENCE[1:]),
        Row("grounding", "breakfast at ten", None, OUTPUTS, EVIDENCE[:2]),
    ],
    "causal_lm": [
        Row("causal_lm", "", "the pool opens"),
        Row("causal_lm", "dogs are not", "allowed"),
        Row("causal_lm", "guests may", "stay for two"),
    ],
}


def add_all(folder: Path, **declared: Any) -> None:
    """Add a model behind every role that reads text itself."""
    three, toxicity = tiny_reference.THREE, tiny_reference.TOXICITY
    for role in ("nli", "grounding"):
        model = tiny_reference.pair(three)
        tiny_reference.add(folder, role, model, labels=three, activation="softmax", **declared)
    model = tiny_reference.classifier(toxicity)
    keys = {"labels": toxicity, "activation": "sigmoid", **declared}
    tiny_reference.add(folder, "toxicity", model, **keys)
    start = tiny_reference.START
    model = tiny_reference.causal()
    tiny_reference.add(folder, "causal_lm", model, start_token=start, **declared)


@pytest.fixture(scope="module", params=["left", "right"])
def pack(
    tiny: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """Four fp32 models whose manifest lets rows run together, padded on one side."""
    folder = Path(shutil.copytree(tiny, tmp_path_factory.mktemp("batch") / "tiny"))
    add_all(folder, padding={"side": request.param, "id": 9})
    return folder


@pytest.mark.parametrize("role", ROWS)
def test_a_row_beside_others_gives_what_it_gives_alone(role: Role, pack: Path) -> None:
    """Of every role, padded on either side; what is chosen is the same to the bit."""
    session = open_sessions(load_pack(pack))[role]
    assert isinstance(session, Batches)
    together = session.run_many(ROWS[role])
    for row, beside in zip(ROWS[role], together, strict=True):
        alone = session.run(row)
        assert beside.outputs.keys() == alone.outputs.keys()
        for name, expected in alone.outputs.items():
            assert beside.outputs[name].shape == expected.shape
            np.testing.assert_allclose(beside.outputs[name], expected, atol=BATCH_TOLERANCE / 100)
        if "places" in alone.outputs:
            np.testing.assert_array_equal(beside.outputs["places"], alone.outputs["places"])
        assert beside.inference_ms > 0


def test_a_row_too_long_fails_the_call(pack: Path) -> None:
    """Whoever asked for the call runs its rows one by one then."""
    session = open_sessions(load_pack(pack))["toxicity"]
    assert isinstance(session, Batches)
    with pytest.raises(RowFailed, match="at most 32"):
        session.run_many([Row("toxicity", "dogs"), Row("toxicity", "pool " * 40)])


@pytest.mark.parametrize("role", ROWS)
def test_waiting_rows_are_one_call_of_the_model(
    role: Role, pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the scheduler as the service builds it; the only worker was held up meanwhile."""
    sessions = open_sessions(load_pack(pack))
    alone = [sessions[role].run(row) for row in ROWS[role]]
    calls: list[int] = []
    entered, opened = threading.Event(), threading.Event()
    run = TextModel.run

    def counted(model: TextModel, rows: Sequence[Any], output: str) -> Any:
        calls.append(len(rows))
        return run(model, rows, output)

    def held_up(_row: Row) -> RowResult:
        entered.set()
        assert opened.wait(20)
        return RowResult({}, 0.0, 0.0)

    monkeypatch.setattr(TextModel, "run", counted)
    runners = {"embedding": held_up, role: sessions[role].run}
    scheduler = Scheduler(runners, 1, 100, batches=batches(sessions, 512))  # type: ignore[arg-type]
    scheduler.submit([Row("embedding", "first")])
    assert entered.wait(20)
    ticket = scheduler.submit(ROWS[role])
    opened.set()
    found = [future.result(20).outputs for future in ticket.futures]
    scheduler.close()
    assert calls == [len(ROWS[role])]
    for outputs, expected in zip(found, alone, strict=True):
        for name, values in expected.outputs.items():
            np.testing.assert_allclose(outputs[name], values, atol=BATCH_TOLERANCE / 100)


def test_what_may_share_a_call_is_bounded_and_of_one_length() -> None:
    """Padding counts; at most a quarter of what is computed is padding."""
    batch = Batch(lambda _rows: [], 100)
    assert batch.holds([100])
    assert not batch.holds([101])
    assert batch.holds([50, 50])
    assert not batch.holds([50, 51])
    assert batch.holds([20, 10])
    assert not batch.holds([21, 10])


def test_only_files_that_say_so_run_rows_together(tiny: Path, pack: Path, tmp_path: Path) -> None:
    """Dynamic INT8 takes one scale for the whole call, so its rows run alone."""
    assert not load_pack(tiny).model("embedding").may_batch
    assert load_pack(pack).model("nli").may_batch
    assert not load_pack(pack).model("nli").model_copy(update={"padding": None}).may_batch
    folder = Path(shutil.copytree(tiny, tmp_path / "alone"))
    add_all(folder, batch_rule="one_row")
    assert batches(open_sessions(load_pack(folder)), 512) == {}
