"""A session: one row in, named outputs without the batch axis out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.models.session import ModelSession, session_options
from guardrail_service.inference.pack import load_pack
from guardrail_service.types import Row
from tests import tiny_pack


@pytest.fixture(scope="module")
def session(tiny: Path) -> ModelSession:
    """The tiny model."""
    return ModelSession(load_pack(tiny), "embedding")


@pytest.fixture
def pack(tiny: Path, tmp_path: Path) -> Path:
    """A copy of the tiny pack to damage."""
    return Path(shutil.copytree(tiny, tmp_path / "tiny"))


def test_a_row_gets_the_outputs_it_asks_for(session: ModelSession) -> None:
    """Without the batch axis, in float32, and with the time each part took."""
    both = ("sentence_embedding", "token_embeddings")
    result = session.run(Row("embedding", "the pool", outputs=both))
    assert set(result.outputs) == set(both)
    assert result.outputs["sentence_embedding"].shape == (tiny_pack.DIM,)
    assert result.outputs["token_embeddings"].shape == (4, tiny_pack.DIM)
    assert result.outputs["sentence_embedding"].dtype == np.float32
    assert result.tokenize_ms >= 0
    assert result.inference_ms >= 0
    assert set(session.run(Row("embedding", "the pool")).outputs) == {"sentence_embedding"}


def test_a_row_is_never_padded(session: ModelSession) -> None:
    """A longer neighbour or an earlier row leaves no trace."""
    row = Row("embedding", "the pool", outputs=("token_embeddings",))
    alone = session.run(row).outputs["token_embeddings"]
    session.run(Row("embedding", "the pool opens at seven in the morning", outputs=row.outputs))
    np.testing.assert_array_equal(session.run(row).outputs["token_embeddings"], alone)


def test_threads_share_a_session_without_mixing_rows(session: ModelSession) -> None:
    """Every row gets its own output, bit for bit."""
    rows = [Row("embedding", " ".join(tiny_pack.WORDS[n : n + 5])) for n in range(20)] * 5
    alone = [session.run(row).outputs["sentence_embedding"] for row in rows]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda row: session.run(row).outputs, rows))
    for expected, found in zip(alone, together, strict=True):
        np.testing.assert_array_equal(found["sentence_embedding"], expected)


def test_a_row_that_is_too_long_fails(session: ModelSession) -> None:
    """It is never cut to fit."""
    with pytest.raises(RowFailed):
        session.run(Row("embedding", "pool " * 100))


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.update(inputs=["input_ids"]),
        lambda model: model.update(inputs=["input_ids", "attention_mask", "token_type_ids"]),
        lambda model: model["outputs"].update(logits=["batch", 2]),
    ],
)
def test_a_model_unlike_its_manifest_is_refused(
    change: Callable[[dict[str, Any]], object], pack: Path
) -> None:
    """Found and expected names are both in the message."""
    manifest = json.loads((pack / "manifest.json").read_text())
    change(manifest["models"]["tiny"])
    (pack / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(PackError, match=r"found inputs .* expected"):
        ModelSession(load_pack(pack), "embedding")


def test_a_file_that_is_no_model_is_named(pack: Path) -> None:
    """Its hash may be right and its content still of no use."""
    (pack / "model.onnx").write_bytes(b"not a model")
    tiny_pack.write_manifest(pack, max_tokens=32, golden="golden.json")
    with pytest.raises(PackError, match=r"model\.onnx: .*expected an ONNX model"):
        ModelSession(load_pack(pack), "embedding")


def test_a_run_uses_one_thread_and_does_not_spin() -> None:
    """Rows run side by side on a fixed pool; more threads would starve each other."""
    options = session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert options.get_session_config_entry("session.inter_op.allow_spinning") == "0"
