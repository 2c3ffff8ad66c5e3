"""Turns the original PyTorch encoder into one fused ONNX graph and rewrites it in INT8."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.optimizer import optimize_model
from transformers import BertModel
from transformers import logging as transformers_logging

DIM = 384
HEADS = 12
MAX_TOKENS = 256  # the original's max_seq_length, special tokens included
MIDDLE = 3  # layers below `middle_states`, which small models read instead of text
OPSET = 17
# 255 * 63 * 2 = 32,130 fits 16 bits, so AVX2's pairwise multiply-add cannot saturate: the integer
# sums are the same with and without VNNI.
WEIGHT_MAX = 63
ACTIVATION_MAX = 127
CONTRIB = "com.microsoft"
Floats = npt.NDArray[np.float32]


class Encoding(torch.nn.Module):
    """The encoder with mean pooling and unit length, token types fixed at zero."""

    def __init__(self, bert: BertModel) -> None:
        super().__init__()
        self.bert = bert

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return token and sentence embeddings and the tokens' states after `MIDDLE` layers.

        Shapes (batch, tokens, dim), (batch, dim) and (batch, tokens, dim).
        """
        states = self.bert(
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=torch.zeros_like(input_ids),
            output_hidden_states=True,
        ).hidden_states
        tokens = states[-1]
        weight = attention_mask.unsqueeze(-1).to(tokens.dtype)
        mean = (tokens * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
        return tokens, torch.nn.functional.normalize(mean, dim=-1), states[MIDDLE]


def export(source: Path, target: Path) -> None:
    """Write the fp32 ONNX file of the original weights."""
    transformers_logging.set_verbosity_error()  # else it reports the pooling head left out
    bert = BertModel.from_pretrained(source, attn_implementation="eager", add_pooling_layer=False)
    ids = torch.tensor([[101, 2023, 2003, 102], [101, 2023, 102, 0]])
    dynamic = {0: "batch", 1: "tokens"}
    with warnings.catch_warnings():
        # The tracing exporter is deprecated, but its graph is the one the BERT fusions recognise.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Encoding(bert.eval()),
            (ids, (ids != 0).long()),
            str(target),
            dynamo=False,
            opset_version=OPSET,
            input_names=["input_ids", "attention_mask"],
            output_names=["token_embeddings", "sentence_embedding", "middle_states"],
            dynamic_axes={
                "input_ids": dynamic,
                "attention_mask": dynamic,
                "token_embeddings": dynamic,
                "sentence_embedding": {0: "batch"},
                "middle_states": dynamic,
            },
        )


def fuse(source: Path, target: Path, width: int | None = DIM) -> None:
    """Write the graph with attention, layer norm and GELU as one node each."""
    fused = optimize_model(str(source), "bert", num_heads=HEADS, hidden_size=DIM, opt_level=0)
    for output in fused.model.graph.output if width else ():
        # The exporter leaves the sentence embedding's width open.
        output.type.tensor_type.shape.dim[-1].dim_value = width
    fused.save_model_to_file(str(target))


class GraphEditor:
    """A graph being rewritten: nodes and constants are collected, then put in place at once."""

    def __init__(self, source: Path) -> None:
        self.model = onnx.load(str(source))
        self.nodes: list[onnx.NodeProto] = []
        self.arrays = {
            item.name: numpy_helper.to_array(item) for item in self.model.graph.initializer
        }

    def node(self, kind: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        """Append a node."""
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=name, **attributes))

    def needed_nodes(self) -> list[onnx.NodeProto]:
        """Return copies of the nodes that an output depends on, in order."""
        needed = {output.name for output in self.model.graph.output}
        kept = []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
                kept.append(onnx.NodeProto.FromString(node.SerializeToString()))
        return kept[::-1]

    def save(self, target: Path) -> None:
        """Write the needed nodes and the constants that they use."""
        graph, nodes = self.model.graph, self.needed_nodes()
        used = {name for node in nodes for name in node.input}
        del graph.node[:], graph.initializer[:]
        graph.node.extend(nodes)
        graph.initializer.extend(
            numpy_helper.from_array(array, name)
            for name, array in self.arrays.items()
            if name in used
        )
        onnx.save(self.model, str(target))


def store_words(editor: GraphEditor, table: Floats, kind: str) -> None:
    """Append the look-up of the word table, kept as INT8 with a scale per word or as fp16."""
    if kind == "fp16":
        editor.arrays["words"] = table.astype(np.float16)
        editor.node("Gather", ["words", "input_ids"], ["words_stored"])
        editor.node("Cast", ["words_stored"], ["words_found"], to=TensorProto.FLOAT)
        return
    scale = (np.abs(table).max(axis=1, keepdims=True) / 127).astype(np.float32)
    editor.arrays["words"] = np.rint(table / scale).astype(np.int8)
    editor.arrays["words_scale"] = scale
    editor.node("Gather", ["words", "input_ids"], ["words_stored"])
    editor.node("Cast", ["words_stored"], ["words_unscaled"], to=TensorProto.FLOAT)
    editor.node("Gather", ["words_scale", "input_ids"], ["words_scales"])
    editor.node("Mul", ["words_unscaled", "words_scales"], ["words_found"])


def lower_embeddings(source: Path, target: Path, words: str = "int8") -> None:
    """Write the graph with a small word table, and token type 0 added to the position table."""
    editor = GraphEditor(source)
    embed = next(n for n in editor.model.graph.node if n.op_type == "EmbedLayerNormalization")
    table, positions, types = (editor.arrays[name] for name in embed.input[2:5])
    store_words(editor, table, words)
    editor.arrays["positions"] = positions[:MAX_TOKENS] + types[0]
    editor.arrays["axis_0"] = np.zeros(1, dtype=np.int64)
    editor.node("Shape", ["input_ids"], ["token_count"], start=1, end=2)
    editor.node("Slice", ["positions", "axis_0", "token_count", "axis_0"], ["positions_used"])
    editor.node("Add", ["words_found", "positions_used"], ["embedded"])
    norm = ["embedded", embed.input[5], embed.input[6]]
    editor.node("LayerNormalization", norm, [embed.output[0]], epsilon=1e-12, axis=-1)
    editor.node("Cast", ["attention_mask"], ["mask_int32"], to=TensorProto.INT32)
    for node in editor.model.graph.node:
        if node is not embed:
            old = embed.output[1]
            node.input[:] = ["mask_int32" if name == old else name for name in node.input]
            editor.nodes.append(node)
    editor.save(target)


def quantise_tokens(source: Path, target: Path) -> None:
    """Write the graph with INT8 matrix products, one activation scale for each token.

    Each token's vector is divided by its largest magnitude before it is rounded to 8 bits, and the
    product is multiplied by it again. One extreme token therefore costs the others no precision,
    and the rounding of a row does not depend on the rows beside it.
    """
    editor = GraphEditor(source)
    start_quantising(editor)
    for node in editor.model.graph.node:
        if node.op_type == "Attention":
            quantise_attention(editor, node)
        elif node.op_type == "MatMul":
            quantise_product(editor, node.input[0], node.input[1], node.output[0])
        else:
            editor.nodes.append(node)
    editor.save(target)


def start_quantising(editor: GraphEditor) -> None:
    """Add the constants that every INT8 product shares."""
    editor.arrays["step"] = np.array(1 / ACTIVATION_MAX, dtype=np.float32)
    editor.arrays["middle"] = np.array(ACTIVATION_MAX + 1, dtype=np.uint8)


def quantise_product(editor: GraphEditor, values: str, weight: str, output: str) -> None:
    """Append `output = values @ weight` in INT8, weight columns scaled apart."""
    matrix = editor.arrays.pop(weight)
    scale = (np.abs(matrix).max(axis=0) / WEIGHT_MAX).astype(np.float32)
    editor.arrays[f"{output}_weight"] = np.rint(matrix / scale).astype(np.int8)
    editor.arrays[f"{output}_scale"] = scale
    size, unit = f"{output}_size", f"{output}_unit"
    rounded, product = f"{output}_rounded", f"{output}_product"
    editor.node("Abs", [values], [f"{output}_abs"])
    editor.node("ReduceMax", [f"{output}_abs"], [size], axes=[-1], keepdims=1)
    editor.node("Div", [values, size], [unit])
    editor.node("QuantizeLinear", [unit, "step", "middle"], [rounded])
    inputs = [rounded, f"{output}_weight", "step", f"{output}_scale", "middle"]
    editor.node("MatMulIntegerToFloat", inputs, [product], domain=CONTRIB)
    editor.node("Mul", [product, size], [output])


def quantise_attention(editor: GraphEditor, node: onnx.NodeProto) -> None:
    """Append attention as an INT8 projection and fp32 attention proper."""
    values, weight, bias = node.input[:3]
    mask = node.input[3] if len(node.input) > 3 else ""  # a branch reads rows without padding
    output = node.output[0]
    projected = f"{output}_projected"
    heads = [f"{output}_query", f"{output}_key", f"{output}_value"]
    quantise_product(editor, values, weight, projected)
    editor.node("Split", [projected], heads, axis=-1)
    inputs = [*heads, bias, mask]
    editor.node("MultiHeadAttention", inputs, [output], domain=CONTRIB, num_heads=HEADS)


def quantise_stock(weights: QuantType, per_channel: bool) -> Callable[[Path, Path], None]:
    """Return a quantiser with one activation scale for the whole call, to compare with."""

    def quantise(source: Path, target: Path) -> None:
        quantize_dynamic(
            source,
            target,
            op_types_to_quantize=["MatMul", "Attention"],
            per_channel=per_channel,
            reduce_range=weights == QuantType.QInt8,
            weight_type=weights,
            extra_options={"MatMulConstBOnly": True, "DefaultTensorType": TensorProto.FLOAT},
        )

    return quantise
