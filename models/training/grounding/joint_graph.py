"""Writes a trained joint network as one INT8 graph: `joint_graph.py WEIGHTS TARGET`.

Its inputs, all of shape (batch, tokens): `input_ids`, `marks` and `sides` as `joint.py` makes them,
`claim_share` (1 over the claim's length at its tokens, else 0) and `attention_mask`. Its output is
`logits`, shape (batch, 3). Rows of one length share a call and keep their bits, as the encoder's.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
import torch
from joint import JointModel
from onnx import TensorProto, helper
from start import averaged
from torch import Tensor

from branch_graph import quantise
from embedding_graph import DIM, MAX_TOKENS, OPSET, GraphEditor, fuse, store_words
from row_graph import EPSILON, lay_out

EMBEDDED = "embedded"
TOKEN_INPUTS = ("input_ids", "marks", "sides")


class _Served(torch.nn.Module):
    """Layers and tail over embedded tokens, as the exporter reads them."""

    def __init__(self, model: JointModel) -> None:
        super().__init__()
        self.layers, self.out = model.bert.encoder.layer, model.out

    def forward(self, embedded: Tensor, claim_share: Tensor) -> Tensor:
        """Return logits; the mean over the claim is a product, which no other row changes."""
        states = embedded
        for layer in self.layers:
            found = layer(states)
            states = found[0] if isinstance(found, tuple) else found
        mean = (claim_share[:, None, :] @ states)[:, 0]
        return self.out(torch.cat([states[:, 0], mean], dim=-1))


def write_joint(model: JointModel, target: Path) -> None:
    """Write a network in INT8, its word table with a scale for each word."""
    with tempfile.TemporaryDirectory() as scratch:
        plain, fused = Path(scratch) / "plain.onnx", Path(scratch) / "fused.onnx"
        dynamic = {0: "batch", 1: "tokens"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tracing exporter, as in embedding_graph.export
            torch.onnx.export(
                _Served(model).eval(),
                (torch.randn(1, 7, DIM), torch.full((1, 7), 1 / 7)),
                str(plain),
                dynamo=False,
                opset_version=OPSET,
                input_names=[EMBEDDED, "claim_share"],
                output_names=["logits"],
                dynamic_axes={EMBEDDED: dynamic, "claim_share": dynamic, "logits": {0: "batch"}},
            )
        fuse(plain, fused, width=None)
        quantise(fused, target)
        lay_out(target, target, masked=True)
    _embed(model, target)


def _embed(model: JointModel, path: Path) -> None:
    """Let a graph of layers read tokens: put the look-up of its tables before it."""
    editor = GraphEditor(path)
    layers = list(editor.model.graph.node)
    parameters = model.bert.embeddings.named_parameters()
    tables = {name: value.detach().numpy() for name, value in parameters}
    store_words(editor, tables["word_embeddings.weight"], "int8")
    editor.arrays |= {
        "positions": tables["position_embeddings.weight"][:MAX_TOKENS],
        "side_table": tables["token_type_embeddings.weight"],
        "mark_table": model.flag.weight.detach().numpy(),
        "gain": tables["LayerNorm.weight"],
        "shift": tables["LayerNorm.bias"],
        "axis_0": np.zeros(1, dtype=np.int64),
    }
    editor.node("Shape", ["input_ids"], ["token_count"], start=1, end=2)
    editor.node("Slice", ["positions", "axis_0", "token_count", "axis_0"], ["positions_used"])
    editor.node("Gather", ["side_table", "sides"], ["side_found"])
    editor.node("Gather", ["mark_table", "marks"], ["mark_found"])
    editor.node("Add", ["words_found", "positions_used"], ["placed"])
    editor.node("Add", ["side_found", "mark_found"], ["told"])
    editor.node("Add", ["placed", "told"], ["summed"])
    norm = ["summed", "gain", "shift"]
    editor.node("LayerNormalization", norm, [EMBEDDED], epsilon=EPSILON, axis=-1)
    for node in editor.nodes:  # names are counted from 0, as those of the layers were
        node.name = f"embedding_{node.name}"
    editor.nodes += layers
    inputs = editor.model.graph.input
    kept = [value for value in inputs if value.name != EMBEDDED]
    del inputs[:]
    inputs.extend(
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in TOKEN_INPUTS
    )
    inputs.extend(kept)
    editor.save(path)
    onnx.checker.check_model(onnx.load(str(path)))


def main() -> None:
    """Write the averaged weights of a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path, help="what train.py kept (best.pt or state.pt)")
    parser.add_argument("target", type=Path, help="the ONNX file to write")
    arguments = parser.parse_args()
    model = JointModel()
    model.load_state_dict(averaged([arguments.weights]))
    write_joint(model, arguments.target)
    print(f"{arguments.target}: {arguments.target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
