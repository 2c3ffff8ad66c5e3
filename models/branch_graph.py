"""Writes a branch: upper encoder layers and a tail as one INT8 graph that reads middle states."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertModel
from transformers.models.bert.modeling_bert import BertLayer

from embedding_graph import (
    DIM,
    MIDDLE,
    OPSET,
    GraphEditor,
    fuse,
    quantise_attention,
    quantise_product,
    start_quantising,
)
from row_graph import lay_out


class Branch(torch.nn.Module):
    """The encoder's upper layers, trained further, and a small tail that makes the output.

    Args:
        layers: Layers above the middle, each (batch, tokens, dim) to the same shape.
        tail: From (batch, tokens, dim) and the mask (batch, tokens) to the branch's output.
    """

    def __init__(self, layers: torch.nn.ModuleList, tail: torch.nn.Module) -> None:
        super().__init__()
        self.layers = layers
        self.tail = tail

    def forward(self, middle: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the tail's output; `mask` is 1 for tokens, 0 for padding; None: no padding."""
        added = None if mask is None else (1.0 - mask[:, None, None, :].to(middle.dtype)) * -1e4
        states = middle
        for layer in self.layers:
            found = layer(states, attention_mask=added)
            states = found[0] if isinstance(found, tuple) else found
        return self.tail(states, mask)


def upper_layers(source: Path, layers: int | None = None) -> torch.nn.ModuleList:
    """Return the original encoder's layers above the middle, to train further.

    Args:
        source: Folder of the original PyTorch weights.
        layers: How many of them, from below; all by default.
    """
    bert = BertModel.from_pretrained(source, attn_implementation="eager", add_pooling_layer=False)
    kept: list[BertLayer] = list(bert.encoder.layer)[MIDDLE:]
    return torch.nn.ModuleList(kept[:layers])


def write_branch(
    branch: Branch, target: Path, output: str, precision: str = "int8", *, masked: bool = False
) -> None:
    """Write a trained branch as ONNX with the input `middle_states` (batch, tokens, dim).

    The layers' matrix products become INT8 with a scale for each token, as in the encoder; the
    tail stays fp32. `precision` "fp32" leaves everything as it is, to measure against.

    Args:
        branch: What is written.
        target: Where.
        output: The output's name.
        precision: "int8" or "fp32".
        masked: Whether the INT8 graph has the input `attention_mask` (batch, tokens) besides, so
            that rows can be filled up. The tail must compute each token alone.
    """
    with tempfile.TemporaryDirectory() as scratch:
        plain, fused = Path(scratch) / "plain.onnx", Path(scratch) / "fused.onnx"
        _export(branch, plain, output)
        fuse(plain, fused, width=None)
        if precision == "fp32":
            target.write_bytes(fused.read_bytes())
        else:
            quantise(fused, target)
            lay_out(target, target, masked=masked)


def _export(branch: Branch, target: Path, output: str) -> None:
    dynamic = {0: "batch", 1: "tokens"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracing exporter, as in embedding_graph.export
        torch.onnx.export(
            branch.eval(),
            (torch.randn(1, 7, DIM),),
            str(target),
            dynamo=False,
            opset_version=OPSET,
            input_names=["middle_states"],
            output_names=[output],
            dynamic_axes={"middle_states": dynamic, output: dynamic},
        )


def quantise(source: Path, target: Path) -> None:
    """Write a graph of layers with INT8 products; what is narrower than they are stays fp32."""
    editor = GraphEditor(source)
    start_quantising(editor)
    for node in editor.model.graph.node:
        weight = editor.arrays.get(node.input[1]) if node.op_type == "MatMul" else None
        if node.op_type == "Attention":
            quantise_attention(editor, node)
        elif weight is not None and min(weight.shape) >= DIM:
            quantise_product(editor, node.input[0], node.input[1], node.output[0])
        else:
            editor.nodes.append(node)
    editor.save(target)
