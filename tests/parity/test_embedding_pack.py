"""The shipped embedding file is the one that the manifest and the golden rows describe."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
import pytest
from tokenizers import Tokenizer

PACK = Path(__file__).resolve().parents[2] / "models" / "embedded"
MANIFEST = json.loads((PACK / "manifest.json").read_text(encoding="utf-8"))
ENTRY = MANIFEST["models"][MANIFEST["roles"]["embedding"]]
GOLDEN = json.loads((PACK / ENTRY["golden"]["path"]).read_text(encoding="utf-8"))
DIM = ENTRY["outputs"]["sentence_embedding"][1]
MAX_BYTES = 25_000_000

Array = npt.NDArray[np.float32]


def open_session() -> ort.InferenceSession:
    """Return the file on one thread, as the service runs it."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    path = str(PACK / ENTRY["path"])
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def session() -> ort.InferenceSession:
    """Return one session for every test of the module."""
    return open_session()


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """Return the pack's tokenizer."""
    return Tokenizer.from_file(str(PACK / ENTRY["tokenizer"]["path"]))


def token_ids(tokenizer: Tokenizer, text: str) -> npt.NDArray[np.int64]:
    """Return one row of token ids. Shape (1, tokens)."""
    return np.array([tokenizer.encode(text).ids], dtype=np.int64)


def run(session: ort.InferenceSession, ids: npt.NDArray[np.int64]) -> tuple[Array, Array]:
    """Return token and sentence embeddings of a row without padding."""
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    tokens, sentence = session.run(["token_embeddings", "sentence_embedding"], feed)
    return tokens, sentence


@pytest.mark.parametrize("described", [ENTRY, ENTRY["tokenizer"], ENTRY["golden"]])
def test_the_manifest_names_the_file_byte_for_byte(described: dict[str, Any]) -> None:
    """A file that was changed without the manifest would serve scores nobody measured."""
    content = (PACK / described["path"]).read_bytes()
    assert len(content) == described["bytes"]
    assert hashlib.sha256(content).hexdigest() == described["sha256"]


def test_the_files_fit_the_size_promised() -> None:
    """The whole embedding folder stays within 25 MB."""
    folder = (PACK / ENTRY["path"]).parent
    assert sum(path.stat().st_size for path in folder.iterdir()) <= MAX_BYTES


def test_the_card_and_the_licence_lie_beside_the_weights() -> None:
    """Whoever copies the folder copies the terms too."""
    card = PACK / ENTRY["card"]
    assert ENTRY["source"]["name"] in card.read_text(encoding="utf-8")
    assert "Apache License" in (card.parent / "LICENSE").read_text(encoding="utf-8")


def test_the_graph_has_the_inputs_and_outputs_of_the_manifest(
    session: ort.InferenceSession,
) -> None:
    """Names and widths are what the loader relies on; nobody feeds token types."""
    assert [item.name for item in session.get_inputs()] == ENTRY["inputs"]
    assert {item.name: item.shape for item in session.get_outputs()} == ENTRY["outputs"]


def test_the_tokenizer_neither_cuts_nor_pads(tokenizer: Tokenizer) -> None:
    """A text that is too long has to be seen by the caller, not silently shortened."""
    assert tokenizer.truncation is None
    assert tokenizer.padding is None
    assert len(tokenizer.encode("word " * 1000).ids) == 1002


def test_the_sentence_is_the_unit_length_mean_of_its_tokens(
    session: ort.InferenceSession, tokenizer: Tokenizer
) -> None:
    """Heads that read the tokens see the same text as the sentence's cosine."""
    for row in GOLDEN["rows"]:
        ids = token_ids(tokenizer, row["text"])
        tokens, sentence = run(session, ids)
        assert tokens.shape == (1, ids.shape[1], DIM)
        assert sentence.shape == (1, DIM)
        mean = tokens[0].mean(axis=0)
        np.testing.assert_allclose(np.linalg.norm(sentence[0]), 1.0, atol=1e-5)
        np.testing.assert_allclose(sentence[0], mean / np.linalg.norm(mean), atol=1e-5)


def test_the_golden_rows_come_out_within_tolerance(
    session: ort.InferenceSession, tokenizer: Tokenizer
) -> None:
    """This processor computes what was measured when the file was made."""
    assert len(GOLDEN["rows"]) >= 60
    for row in GOLDEN["rows"]:
        tokens, sentence = run(session, token_ids(tokenizer, row["text"]))
        pair = run(session, token_ids(tokenizer, row["pair"]))[1]
        assert float(sentence[0] @ pair[0]) == pytest.approx(row["score"], abs=GOLDEN["tolerance"])
        size = float(np.abs(tokens, dtype=np.float64).mean())
        assert size == pytest.approx(row["token_mean_abs"], abs=GOLDEN["tolerance"])


def test_the_same_row_is_bit_identical_in_every_run_and_session(
    session: ort.InferenceSession, tokenizer: Tokenizer
) -> None:
    """A score can be reproduced exactly on the machine that gave it."""
    other = open_session()
    for row in GOLDEN["rows"]:
        ids = token_ids(tokenizer, row["text"])
        expected = run(session, ids)
        for again in (run(session, ids), run(other, ids)):
            np.testing.assert_array_equal(again[0], expected[0])
            np.testing.assert_array_equal(again[1], expected[1])


def test_the_longest_row_runs_and_a_longer_one_is_refused(session: ort.InferenceSession) -> None:
    """The limit in the manifest is the graph's own."""
    ids = np.full((1, ENTRY["max_tokens"]), 2023, dtype=np.int64)
    assert np.isfinite(run(session, ids)[0]).all()
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.Fail):
        run(session, np.full((1, ENTRY["max_tokens"] + 1), 2023, dtype=np.int64))
