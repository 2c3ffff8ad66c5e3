"""Layers that are laid out for rows compute what they did, and keep a row's bits beside others."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from transformers import BertConfig, BertModel

from guardrail_service.inference.models.session import NOT_FUSED

MODELS = Path(__file__).parents[2] / "models"
SCRIPTS = ("embedding_graph", "row_graph", "branch_graph")
LAYERS = 4
FEEDS = np.random.default_rng(3)


@pytest.fixture(scope="module")
def scripts() -> Iterator[Any]:
    """The scripts that build the shipped files, as modules."""
    sys.path.insert(0, str(MODELS))
    try:
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in SCRIPTS})
    finally:
        sys.path.remove(str(MODELS))
        for name in SCRIPTS:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def bert(scripts: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random encoder of four layers, as wide as the shipped one."""
    torch.manual_seed(5)
    size = {"hidden_size": scripts.embedding_graph.DIM, "num_hidden_layers": LAYERS}
    heads = {"num_attention_heads": scripts.embedding_graph.HEADS, "intermediate_size": 384}
    folder = tmp_path_factory.mktemp("bert")
    bert = BertModel(BertConfig(vocab_size=4_000, **size, **heads))
    bert.embeddings.word_embeddings.weight.data.normal_(
        std=0.02
    )  # also what fills up: it has a scale
    bert.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def encoder(scripts: Any, bert: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Its INT8 graph as it is fused, and laid out."""
    folder = tmp_path_factory.mktemp("encoder")
    names = ("original", "whole", "small", "fused", "rows")
    paths = {name: folder / f"{name}.onnx" for name in names}
    build = scripts.embedding_graph
    build.export(bert, paths["original"])
    build.fuse(paths["original"], paths["whole"])
    build.lower_embeddings(paths["whole"], paths["small"])
    build.quantise_tokens(paths["small"], paths["fused"])
    scripts.row_graph.lay_out(paths["fused"], paths["rows"])
    return paths


@pytest.fixture(scope="module")
def branch(scripts: Any, bert: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A layer above the middle, its tail for each token alone, with and without a mask."""

    class Tail(torch.nn.Linear):
        """A projection of each token."""

        def forward(self, states: torch.Tensor, _mask: torch.Tensor | None) -> torch.Tensor:
            """Return each token projected."""
            return super().forward(states)

    folder = tmp_path_factory.mktemp("branch")
    tail = Tail(scripts.embedding_graph.DIM, 16)
    made = scripts.branch_graph.Branch(scripts.branch_graph.upper_layers(bert), tail)
    paths = {name: folder / f"{name}.onnx" for name in ("masked", "bare")}
    for name, path in paths.items():
        scripts.branch_graph.write_branch(made, path, "states", masked=name == "masked")
    return paths


def opened(path: Path) -> ort.InferenceSession:
    """Return a session as the service opens it."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    names = ["CPUExecutionProvider"]
    return ort.InferenceSession(str(path), options, providers=names, disabled_optimizers=NOT_FUSED)


def rows(lengths: list[int], width: int) -> dict[str, np.ndarray[Any, Any]]:
    """Return rows of some lengths, filled up to a width."""
    ids = FEEDS.integers(1, 4_000, (len(lengths), width))
    mask = np.array([[n < length for n in range(width)] for length in lengths], dtype=np.int64)
    return {"input_ids": ids * mask, "attention_mask": mask}


def test_the_encoder_computes_what_it_did(encoder: dict[str, Path]) -> None:
    """But for additions in another order, which move a value over the edge of its eighth bit."""
    before, after = opened(encoder["fused"]), opened(encoder["rows"])
    for length in (3, 8, 21, 64):
        given = rows([length], length)
        for old, new in zip(before.run(None, given), after.run(None, given), strict=True):
            assert old.shape == new.shape
            assert np.abs(old - new).mean() < 0.01
            assert np.abs(old).mean() > 0.03


def test_a_row_has_its_bits_alone_and_beside_others(
    encoder: dict[str, Path], branch: dict[str, Path]
) -> None:
    """Of every length below the width that all of a call are filled up to."""
    session, upper = opened(encoder["rows"]), opened(branch["masked"])
    for width in (4, 8, 20, 32, 64):
        given = rows([width, width - 1, width - 2, width - 3, width], width)
        together = session.run(None, given)
        states = {"middle_states": together[2], "attention_mask": given["attention_mask"]}
        (above,) = upper.run(None, states)
        for line in range(5):
            alone = session.run(None, {name: v[line : line + 1] for name, v in given.items()})
            for one, beside in zip(alone, together, strict=True):
                np.testing.assert_array_equal(one[0], beside[line])
            (own,) = upper.run(None, {name: v[line : line + 1] for name, v in states.items()})
            np.testing.assert_array_equal(own[0], above[line])


def test_filling_up_changes_no_token_of_a_text(branch: dict[str, Path]) -> None:
    """Tokens behind a text are not read."""
    middle = FEEDS.standard_normal((1, 12, 384), dtype=np.float32)
    (whole,) = opened(branch["bare"]).run(None, {"middle_states": middle[:, :9]})
    mask = np.array([[1] * 9 + [0] * 3])
    given = {"middle_states": middle, "attention_mask": mask}
    (filled,) = opened(branch["masked"]).run(None, given)
    np.testing.assert_allclose(filled[:, :9], whole, atol=1e-4)


def test_a_graph_is_laid_out_once(scripts: Any, encoder: dict[str, Path], tmp_path: Path) -> None:
    """The second time there is nothing to be found, which is said."""
    kinds = {node.op_type for node in onnx.load(str(encoder["rows"])).graph.node}
    assert not {"SkipLayerNormalization", "BiasGelu"} & kinds
    with pytest.raises(SystemExit, match="laid out already"):
        scripts.row_graph.lay_out(encoder["rows"], tmp_path / "again.onnx")
