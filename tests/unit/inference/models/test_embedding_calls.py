"""Embedding rows in one call, where the manifest allows it: same outputs, no work twice."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from guardrail_models.verify import BATCH_TOLERANCE
from guardrail_service.errors import RowFailed
from guardrail_service.inference.models.encoder import MIDDLE, TOKENS, VECTOR, SharedEncoder
from guardrail_service.inference.models.session import ModelSession
from guardrail_service.inference.pack import load_pack
from guardrail_service.inference.queue.scheduler import Scheduler
from guardrail_service.server.runtime import batches
from guardrail_service.types import Role, Row, RowResult
from tests import tiny_reference

TEXTS = ("dogs are not", "the pool opens at seven in the morning", "guests may stay")
TOO_LONG = "pool " * 40
ROLES: tuple[Role, ...] = ("embedding", "toxicity")


class Counting(ModelSession):
    """A real session that notes the texts of every call."""

    def __init__(self, folder: Path) -> None:
        super().__init__(load_pack(folder), "embedding")
        self.calls: list[list[str]] = []

    def run_many(self, rows: Sequence[Row]) -> list[RowResult]:
        """Run rows together, or one."""
        self.calls.append([row.text for row in rows])
        return super().run_many(rows)


@pytest.fixture(scope="module", params=["left", "right"])
def folder(
    tiny: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """An fp32 encoder whose rows may run together; what fills them up is a word of its own."""
    target = Path(shutil.copytree(tiny, tmp_path_factory.mktemp("budget") / "tiny"))
    padding = {"side": request.param, "id": 9}
    batched = {"batch_rule": "token_budget", "padding": padding}
    tiny_reference.change(target, lambda m: m["models"]["tiny"].update(batched))
    return target


def encoder(folder: Path, *kept: str) -> tuple[SharedEncoder, Counting]:
    """Return an encoder that keeps some outputs, and its session."""
    session = Counting(folder)
    return SharedEncoder(session, kept or (VECTOR,)), session


def rows(*texts: str, outputs: tuple[str, ...] = (VECTOR,)) -> list[Row]:
    """Return a row for each text."""
    return [Row("embedding", text, outputs=outputs) for text in texts]


@pytest.mark.parametrize("asked", [(VECTOR,), (VECTOR, TOKENS), (MIDDLE,), (TOKENS,)])
@pytest.mark.parametrize("kept", [(VECTOR,), (VECTOR, TOKENS), (VECTOR, MIDDLE)])
def test_a_row_beside_others_gives_what_it_gives_alone(
    asked: tuple[str, ...], kept: tuple[str, ...], folder: Path
) -> None:
    """Padding moves neither the mean over a text's tokens nor where its own tokens are."""
    together, session = encoder(folder, *kept)
    found = together.run_many(rows(*TEXTS, outputs=asked))
    assert session.calls == [list(TEXTS)]
    for row, beside in zip(rows(*TEXTS, outputs=asked), found, strict=True):
        alone = encoder(folder, *kept)[0].run(row)
        assert beside.outputs.keys() == alone.outputs.keys() == set(asked)
        for name, expected in alone.outputs.items():
            assert beside.outputs[name].shape == expected.shape
            np.testing.assert_allclose(beside.outputs[name], expected, atol=BATCH_TOLERANCE / 100)
        assert beside.inference_ms > 0


def test_what_is_kept_of_a_row_does_not_hold_the_others(folder: Path) -> None:
    """A view would keep the whole call's outputs as long as one of its texts is remembered."""
    shared, _ = encoder(folder, VECTOR, TOKENS)
    for result in shared.run_many(rows(*TEXTS, outputs=(VECTOR, TOKENS))):
        assert all(values.base is None for values in result.outputs.values())


def test_only_what_is_not_at_hand_is_computed_and_that_once(folder: Path) -> None:
    """Neither a text met before nor one that comes twice is in the call."""
    shared, session = encoder(folder, VECTOR, TOKENS)
    shared.run_many(rows(TEXTS[0]))
    found = shared.run_many(rows(TEXTS[1], TEXTS[0], TEXTS[2], TEXTS[1]))
    assert session.calls == [[TEXTS[0]], [TEXTS[1], TEXTS[2]]]
    assert found[0].outputs[VECTOR] is found[3].outputs[VECTOR]
    assert (found[1].tokenize_ms, found[1].inference_ms) == (0.0, 0.0)
    shared.run_many(rows(*TEXTS, outputs=(VECTOR, TOKENS)))
    assert len(session.calls) == 2


def test_one_row_left_runs_as_it_would_alone(folder: Path) -> None:
    """To the bit: no padding, no neighbours."""
    shared, _ = encoder(folder)
    shared.run_many(rows(*TEXTS[:2]))
    found = shared.run_many(rows(*TEXTS))
    alone = encoder(folder)[0].run(rows(TEXTS[2])[0])
    np.testing.assert_array_equal(found[2].outputs[VECTOR], alone.outputs[VECTOR])


def test_a_row_too_long_fails_the_call_and_keeps_nothing(folder: Path) -> None:
    """Whoever asked for the call runs its rows one by one then."""
    shared, _ = encoder(folder)
    with pytest.raises(RowFailed, match="at most 32"):
        shared.run_many(rows(TEXTS[0], TOO_LONG))
    assert shared.peek(rows(TEXTS[0])) == [None]
    assert shared.memory.stats().texts == 0


def test_waiting_rows_of_several_requests_are_one_call(folder: Path) -> None:
    """As the service queues them; a row that fails is the only one that fails."""
    shared, session = encoder(folder)
    entered, opened = threading.Event(), threading.Event()

    def held_up(_row: Row) -> RowResult:
        entered.set()
        assert opened.wait(20)
        return RowResult({}, 0.0, 0.0)

    runners = {"embedding": shared.run, "toxicity": held_up}
    scheduler = Scheduler(
        {role: runners[role] for role in ROLES},
        1,
        100,
        peeks={"embedding": shared.peek},
        batches=batches({"embedding": shared}, 512),
    )
    scheduler.submit([Row("toxicity", "first")])
    assert entered.wait(20)
    too_long = "a" * 44  # one token each, though it looks as long as TEXTS[1]
    tickets = [scheduler.submit(rows(TEXTS[1])), scheduler.submit(rows(too_long, TEXTS[1]))]
    tickets.append(scheduler.submit(rows("breakfast is served until ten at night")))
    opened.set()
    with pytest.raises(RowFailed, match="at most 32"):
        tickets[1].futures[0].result(20)
    found = [t.futures[-1].result(20).outputs[VECTOR] for t in tickets]
    scheduler.close()
    assert set(session.calls[0]) == {TEXTS[1], too_long, "breakfast is served until ten at night"}
    assert found[0] is found[1]
    for values, text in zip(found[::2], (TEXTS[1], session.calls[0][-1]), strict=True):
        expected = encoder(folder)[0].run(rows(text)[0]).outputs[VECTOR]
        np.testing.assert_allclose(values, expected, atol=BATCH_TOLERANCE / 100)


def test_an_encoder_of_one_row_per_call_is_never_given_more(tiny: Path) -> None:
    """Dynamic INT8 takes one scale for the whole call."""
    shared = SharedEncoder(ModelSession(load_pack(tiny), "embedding"), (VECTOR,))
    assert batches({"embedding": shared}, 512) == {}
