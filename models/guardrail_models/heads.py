"""Ends an exported graph with what serving reads: probabilities, embeddings, log probabilities.

Plain ONNX operators, so what is served does not depend on code beside the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Activation = Literal["sigmoid", "softmax"]
Pooling = Literal["mean", "cls"]
TYPES = "token_type_ids"


def classify(model: onnx.ModelProto, activation: Activation, order: Sequence[int]) -> None:
    """Replace the output `logits` by `probabilities` of the labels at `order`, in that order.

    The activation comes first: a softmax is over all of the original's labels.
    """
    graph = model.graph
    every = ["all_probabilities"]
    _constant(graph, "label_order", np.array(order, dtype=np.int64))
    if activation == "softmax":
        graph.node.append(helper.make_node("Softmax", ["logits"], every, axis=-1))
    else:
        graph.node.append(helper.make_node("Sigmoid", ["logits"], every))
    graph.node.append(
        helper.make_node("Gather", [*every, "label_order"], ["probabilities"], axis=-1)
    )
    _outputs(graph, {"probabilities": ["batch", len(order)]})


def embed(model: onnx.ModelProto, pooling: Pooling) -> None:
    """Replace `last_hidden_state` by `token_embeddings` and a unit-length `sentence_embedding`."""
    graph = model.graph
    width = graph.output[0].type.tensor_type.shape.dim[-1].dim_value
    node = graph.node.append
    node(helper.make_node("Identity", ["last_hidden_state"], ["token_embeddings"]))
    if pooling == "mean":
        _constant(graph, "axis_1", np.array([1], dtype=np.int64))
        _constant(graph, "axis_2", np.array([2], dtype=np.int64))
        node(helper.make_node("Cast", ["attention_mask"], ["mask_float"], to=TensorProto.FLOAT))
        node(helper.make_node("Unsqueeze", ["mask_float", "axis_2"], ["mask_column"]))
        node(helper.make_node("Mul", ["last_hidden_state", "mask_column"], ["masked"]))
        node(helper.make_node("ReduceSum", ["masked", "axis_1"], ["summed"], keepdims=0))
        node(helper.make_node("ReduceSum", ["mask_column", "axis_1"], ["counted"], keepdims=0))
        node(helper.make_node("Div", ["summed", "counted"], ["pooled"]))
    else:
        _constant(graph, "first", np.array(0, dtype=np.int64))
        node(helper.make_node("Gather", ["last_hidden_state", "first"], ["pooled"], axis=1))
    node(helper.make_node("LpNormalization", ["pooled"], ["sentence_embedding"], axis=-1, p=2))
    _outputs(
        graph,
        {
            "token_embeddings": ["batch", "tokens", width],
            "sentence_embedding": ["batch", width],
        },
    )


def log_probabilities(model: onnx.ModelProto) -> None:
    """Replace the next-token `logits` by each token's log probability given those before it."""
    graph = model.graph
    node = graph.node.append
    for name, value in (("zero", 0), ("one", 1), ("minus_one", -1), ("far", 2**31 - 1)):
        _constant(graph, name, np.array([value], dtype=np.int64))
    _constant(graph, "token_axis", np.array([1], dtype=np.int64))
    _constant(graph, "last_axis", np.array([-1], dtype=np.int64))
    node(helper.make_node("Slice", ["logits", "zero", "minus_one", "token_axis"], ["before"]))
    node(helper.make_node("Slice", ["input_ids", "one", "far", "token_axis"], ["next_ids"]))
    node(helper.make_node("LogSoftmax", ["before"], ["log_vocabulary"], axis=-1))
    node(helper.make_node("Unsqueeze", ["next_ids", "last_axis"], ["next_column"]))
    node(
        helper.make_node(
            "GatherElements", ["log_vocabulary", "next_column"], ["log_column"], axis=-1
        )
    )
    node(helper.make_node("Squeeze", ["log_column", "last_axis"], ["log_probabilities"]))
    _outputs(graph, {"log_probabilities": ["batch", "tokens_less_one"]})


def fix_types_at_zero(model: onnx.ModelProto) -> None:
    """Make `token_type_ids` zeros inside the graph: a row of one text has no second one."""
    graph = model.graph
    kept = [value for value in graph.input if value.name != TYPES]
    if len(kept) == len(graph.input):
        return
    del graph.input[:]
    graph.input.extend(kept)
    zero = helper.make_tensor("zero_type", TensorProto.INT64, [1], [0])
    made = [
        helper.make_node("Shape", ["input_ids"], ["ids_shape"], name="ids_shape"),
        helper.make_node("ConstantOfShape", ["ids_shape"], [TYPES], name="zero_types", value=zero),
    ]
    nodes = [*made, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)


def describe(model: onnx.ModelProto, key: str, value: str) -> None:
    """Write a note into the graph's metadata, and nothing else: no paths, no dates."""
    del model.metadata_props[:]
    helper.set_model_props(model, {key: value})
    model.producer_name = "rag-guardrail"
    model.doc_string = ""


def _constant(graph: onnx.GraphProto, name: str, value: np.ndarray[Any, Any]) -> None:
    graph.initializer.append(numpy_helper.from_array(value, name))


def _outputs(graph: onnx.GraphProto, shapes: dict[str, list[str | int]]) -> None:
    del graph.output[:]
    graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    )
