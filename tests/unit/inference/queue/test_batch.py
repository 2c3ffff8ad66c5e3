"""Rows in one call: which may share it, and that none of them moves beside the others."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import wait
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from guardrail_models.verify import BATCH_TOLERANCE
from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.models.encoder import SharedEncoder
from guardrail_service.inference.models.session import (
    ModelSession,
    TextModel,
    calls,
    own_outputs,
)
from guardrail_service.inference.pack import Padding, load_pack
from guardrail_service.inference.queue.backlog import may_share
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
    assert may_share(batch, [100])
    assert not may_share(batch, [101])
    assert may_share(batch, [50, 50])
    assert not may_share(batch, [50, 51])
    assert may_share(batch, [20, 10])
    assert not may_share(batch, [21, 10])


def test_only_files_that_say_so_run_rows_together(tiny: Path, pack: Path, tmp_path: Path) -> None:
    """Dynamic INT8 takes one scale for the whole call, so its rows run alone."""
    assert not load_pack(tiny).model("embedding").may_batch
    assert load_pack(pack).model("nli").may_batch
    assert not load_pack(pack).model("nli").model_copy(update={"padding": None}).may_batch
    folder = Path(shutil.copytree(tiny, tmp_path / "alone"))
    add_all(folder, batch_rule="one_row")
    assert batches(open_sessions(load_pack(folder)), 512) == {}


@pytest.fixture(scope="module", params=["left", "right"])
def same_length(
    tiny: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """An encoder whose rows are filled up to four tokens and share calls with their like."""
    folder = Path(shutil.copytree(tiny, tmp_path_factory.mktemp("lengths") / "tiny"))
    padding = {"side": request.param, "id": 9, "multiple": 4}
    rule = {"batch_rule": "same_length", "padding": padding}
    tiny_reference.change(folder, lambda m: m["models"]["tiny"].update(rule))
    return folder


SENTENCES = [
    "dogs",
    "the pool",
    "the pool opens at seven",
    "guests may stay for two weeks",
    "breakfast is served until ten in the pool",
    "dogs are not allowed",
    "two weeks at most",
]


def rows(*texts: str, outputs: tuple[str, ...] = ("token_embeddings",)) -> list[Row]:
    """Return rows of the encoder."""
    return [Row("embedding", text, outputs=outputs) for text in texts]


def test_rows_of_one_length_share_calls_and_keep_their_bits(
    same_length: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row is filled up the same way alone; what fills it up is not in its outputs."""
    session = open_sessions(load_pack(same_length))["embedding"]
    assert isinstance(session, SharedEncoder)
    shapes: list[tuple[int, ...]] = []
    run = session.session._session.run

    def noted(names: list[str], given: dict[str, Any]) -> Any:
        shapes.append(given["input_ids"].shape)
        return run(names, given)

    monkeypatch.setattr(session.session, "_session", SimpleNamespace(run=noted))
    outputs = ("token_embeddings", "middle_states")
    asked = rows(*SENTENCES, outputs=outputs)
    together = session.session.run_many(asked)
    lengths = session.row_lengths(asked)
    assert all(length % 4 == 0 for length in lengths)
    assert sorted(shapes) == sorted((n, length) for length, n in Counter(lengths).items())
    assert len(shapes) < len(asked)
    for row, beside in zip(asked, together, strict=True):
        alone = session.session.run(row)
        own = len(session.tokenizer.raw_ids(row.text)) + 2
        assert alone.outputs["token_embeddings"].shape[0] == own
        for name in outputs:
            np.testing.assert_array_equal(beside.outputs[name], alone.outputs[name])


def test_no_call_of_one_length_is_longer_than_the_longest_row(same_length: Path) -> None:
    """What is urgent waits for one call: no longer than before rows shared any."""
    file = load_pack(same_length).model("embedding")
    assert file.max_tokens == 32
    found = calls([7, 8, 5, 8, 6, 30, 31], file)
    assert found == [(8, [0, 1, 2, 3]), (8, [4]), (32, [5]), (32, [6])]
    batch = batches(open_sessions(load_pack(same_length)), 512)["embedding"]
    assert batch.tokens == 32


def test_the_scheduler_gives_a_call_only_rows_of_one_length(same_length: Path) -> None:
    """By their exact lengths, whatever the order in which they were asked for."""
    session = open_sessions(load_pack(same_length))["embedding"]
    batch = batches({"embedding": session}, 512)["embedding"]
    assert callable(batch.lengths)
    seen: list[list[str]] = []
    entered, opened = threading.Event(), threading.Event()

    def run_many(asked: Sequence[Row]) -> list[RowResult]:
        seen.append([row.text for row in asked])
        return batch.run(asked)

    def run(row: Row) -> RowResult:
        entered.set()
        assert opened.wait(20)
        return run_many([row])[0]

    together = {"embedding": batch._replace(run=run_many)}
    scheduler = Scheduler({"embedding": run}, 1, 100, batches=together)
    first = scheduler.submit(rows("first"))
    assert entered.wait(20)
    ticket = scheduler.submit(rows(*SENTENCES))
    dropped = scheduler.submit(rows("no pool"))
    dropped.cancel()
    opened.set()
    for future in (*first.futures, *ticket.futures):
        future.result(20)
    scheduler.close()
    lengths = [set(batch.lengths(rows(*texts))) for texts in seen]
    assert all(len(found) == 1 for found in lengths)
    assert sorted(text for texts in seen for text in texts) == sorted(["first", *SENTENCES])
    assert max(map(len, seen)) > 1
    assert not scheduler._backlog._alike


def test_rows_keep_to_themselves_where_their_bits_were_not_looked_at(same_length: Path) -> None:
    """Elsewhere than on the CPU, unless the manifest says more."""
    pack = load_pack(same_length)
    assert pack.model("embedding").one_length
    for provider in ("openvino", "dnnl"):
        elsewhere = pack.model("embedding").on(provider)
        assert not elsewhere.may_batch
        assert not elsewhere.one_length


def test_a_kind_that_cannot_sort_rows_by_length_is_refused(pack: Path, tmp_path: Path) -> None:
    """It would run rows of several lengths in one call, and move them."""
    folder = Path(shutil.copytree(pack, tmp_path / "wrong"))
    tiny_reference.change(
        folder, lambda m: [one.update(batch_rule="same_length") for one in m["models"].values()]
    )
    with pytest.raises(PackError, match=r"same_length of a \w+; expected it of branch,"):
        open_sessions(load_pack(folder))


def test_rows_of_two_requests_share_no_call_of_one_length(same_length: Path) -> None:
    """One may have to stand still while the other runs."""
    session = open_sessions(load_pack(same_length))["embedding"]
    batch = batches({"embedding": session}, 512)["embedding"]
    seen: list[list[str]] = []

    def run_many(asked: Sequence[Row]) -> list[RowResult]:
        seen.append([row.text for row in asked])
        return batch.run(asked)

    held = Barrier(2)

    def run(row: Row) -> RowResult:
        if row.text == "first":
            held.wait(20)
        return run_many([row])[0]

    together = {"embedding": batch._replace(run=run_many)}
    scheduler = Scheduler({"embedding": run}, 1, 100, batches=together)
    tickets = [scheduler.submit(rows("first"))]
    tickets += [scheduler.submit(rows("the pool", name)) for name in ("dogs stay", "ten weeks")]
    held.wait(20)
    for ticket in tickets:
        assert not wait(ticket.left(), 20).not_done
    scheduler.close()
    assert sorted(map(sorted, seen)) == [["dogs stay", "the pool"], ["first"], ["ten weeks"]]


def test_an_encoder_that_moves_its_rows_computes_what_others_read_one_by_one(tiny: Path) -> None:
    """Only the queue's calls are bounded."""
    session = ModelSession(load_pack(tiny), "embedding")
    padding = Padding(side="right", id=9)
    session.file = session.file.model_copy(
        update={"batch_rule": "token_budget", "padding": padding}
    )
    calls: list[int] = []
    run_many = session.run_many

    def noted(asked: Sequence[Row]) -> list[RowResult]:
        calls.append(len(asked))
        return run_many(asked)

    session.run_many = noted  # type: ignore[method-assign]
    encoder = SharedEncoder(session, ("sentence_embedding",))
    encoder.encode_all(SENTENCES)
    assert calls == [1] * len(SENTENCES)
    encoder.run_many(rows("two dogs", "ten pools", outputs=("sentence_embedding",)))
    assert calls[-1] == 2


def test_what_an_output_is_by_token_is_cut_only_where_something_filled_it_up(
    tiny: Path,
) -> None:
    """A manifest may give widths by name, or an output one number for each row."""
    file = load_pack(tiny).model("embedding")
    outputs = {"wide": ("batch", "dim"), "flat": ("batch",), "tokens": ("batch", "tokens", 2)}
    file = file.model_copy(update={"outputs": outputs, "padding": None})
    values = [np.ones((1, 16)), np.ones(1), np.ones((1, 4, 2))]
    (found,) = own_outputs(list(outputs), values, [4], file)
    assert [found[name].shape for name in outputs] == [(16,), (), (4, 2)]
    filled_up = file.model_copy(update={"padding": Padding(side="right", id=0, multiple=4)})
    (found,) = own_outputs(["tokens", "flat"], values[2:0:-1], [3], filled_up)
    assert (found["tokens"].shape, found["flat"].shape) == ((3, 2), ())
