"""Writes an INT8 encoder's layers so that rows of one length share a call and keep their bits.

The weights stay as they are. Wherever a token is computed alone, the tokens of all rows lie below
each other, shape (batch * tokens, dim); attention alone sees rows. Every token has a scale of its
own, so nothing that is computed for a row depends on the rows beside it, if they have one length.

Nodes are those that ONNX Runtime computes fastest on a CPU: `SkipLayerNormalization` took five
times as long as the additions and the `LayerNormalization` that it stands for (1.31, AMD EPYC). The
service's sessions keep the optimiser from putting these together again.

    python models/row_graph.py PACK     rewrites a pack of before, with its golden rows, in place
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper

from embedding_graph import CONTRIB, HEADS, GraphEditor
from guardrail_service.inference.golden import OUTPUTS
from guardrail_service.inference.models.session import Session
from guardrail_service.inference.pack import MANIFEST, Manifest, Pack, write_manifest
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.types import Role, Row

MASK = "attention_mask"
MASK_READ = "mask_int32"
"""The mask as attention reads it."""
POOLED = "sentence_embedding"
EPSILON = 1e-12
MULTIPLE = 4
"""Rows are filled up to a multiple of so many tokens. Sentences of real texts have forty lengths,
which four at a time leave ten of: more rows share a call, and 6 % of what is computed fills up."""
TOGETHER = {
    "batch_rule": "same_length",
    "padding": {"side": "right", "id": 0, "multiple": MULTIPLE},
}


class Product(NamedTuple):
    """An INT8 product: names of its weight, shape (in, out), and of the scale of each column."""

    weight: str
    scale: str


class Norm(NamedTuple):
    """A sum and the layer norm of it: names of gain, shift and the bias that is added first."""

    gain: str
    shift: str
    bias: str


class Layer(NamedTuple):
    """Names of a layer's constants, and of its output in the graph that is rewritten."""

    projection: Product
    projection_bias: str
    attended: Product
    attended_norm: Norm
    wide: Product
    wide_bias: str
    narrow: Product
    narrow_norm: Norm
    output: str


def lay_out(source: Path, target: Path, *, masked: bool = False) -> None:
    """Write a graph with its layers laid out for rows.

    Args:
        source: A graph whose products were quantised token by token.
        target: Where it goes; may be the same file.
        masked: Whether a graph without an attention mask gets one, so that its rows can be filled.
    """
    editor = GraphEditor(source)
    nodes = list(editor.model.graph.node)
    if all(node.op_type != "SkipLayerNormalization" for node in nodes):
        raise SystemExit(f"{source}: found no SkipLayerNormalization; is it laid out already?")
    layers = list(_layers(nodes))
    first = next(place for place, node in enumerate(nodes) if node.op_type == "Abs")
    last = next(place for place, node in enumerate(nodes) if layers[-1].output in node.output)
    between = {name for node in nodes[first:last] for name in node.output}
    editor.nodes = nodes[:first]
    if masked:
        mask = helper.make_tensor_value_info(MASK, TensorProto.INT64, ["batch", "tokens"])
        editor.model.graph.input.append(mask)
        editor.node("Cast", [MASK], [MASK_READ], to=TensorProto.INT32)
    has_mask = any(value.name == MASK for value in editor.model.graph.input)
    read = {value.name for value in editor.model.graph.output}
    read |= {name for node in nodes[last + 1 :] for name in node.input} - between
    write_layers(editor, nodes[first].input[0], layers, MASK_READ if has_mask else "", read)
    rest = nodes[last + 1 :]
    if POOLED in read:
        pool(editor, layers[-1].output)
        rest = []
    editor.nodes += rest
    editor.save(target)


def _layers(nodes: Sequence[onnx.NodeProto]) -> Iterator[Layer]:
    """Yield the layers of a quantised graph, whose nodes stand in the order of computation."""

    def of(kind: str) -> list[onnx.NodeProto]:
        return [node for node in nodes if node.op_type == kind]

    products = [Product(node.input[1], node.input[3]) for node in of("MatMulIntegerToFloat")]
    norms = [Norm(*node.input[2:5]) for node in of("SkipLayerNormalization")]
    outputs = [node.output[0] for node in of("SkipLayerNormalization")][1::2]
    for number, (attention, gelu, output) in enumerate(
        zip(of("MultiHeadAttention"), of("BiasGelu"), outputs, strict=True)
    ):
        projection, attended, wide, narrow = products[4 * number : 4 * number + 4]
        inner, outer = norms[2 * number : 2 * number + 2]
        bias, wide_bias = attention.input[3], gelu.input[1]
        yield Layer(projection, bias, attended, inner, wide, wide_bias, narrow, outer, output)


def write_layers(
    editor: GraphEditor, values: str, layers: Sequence[Layer], mask: str, read: set[str]
) -> None:
    """Append layers over `values`, shape (batch, tokens, dim).

    Args:
        editor: Where they go.
        values: The name of what the first layer reads.
        layers: From below.
        mask: The name of the attention mask; empty: every token is read.
        read: Names of layers' outputs that others read; they get shape (batch, tokens, dim).
    """
    editor.arrays |= {
        "axis_1": np.array([1], dtype=np.int64),
        "any_length": np.array([-1], dtype=np.int64),
    }
    width = len(editor.arrays[layers[0].projection.weight])
    editor.arrays["below"] = np.array([-1, width], dtype=np.int64)
    editor.node("Shape", [values], ["rows_and_tokens"], start=0, end=2)
    editor.node("Concat", ["rows_and_tokens", "any_length"], ["rows_shape"], axis=0)
    editor.node("Reshape", [values, "below"], ["tokens_0"])
    for number, layer in enumerate(layers):
        _write_layer(editor, f"tokens_{number}", layer, mask, f"tokens_{number + 1}")
        if layer.output in read:
            editor.node("Reshape", [f"tokens_{number + 1}", "rows_shape"], [layer.output])


def _write_layer(editor: GraphEditor, values: str, layer: Layer, mask: str, output: str) -> None:
    projected = _product(editor, values, layer.projection)
    editor.node("Reshape", [projected, "rows_shape"], [f"{projected}_rows"])
    heads = [f"{projected}_{part}" for part in ("query", "key", "value")]
    editor.node("Split", [f"{projected}_rows"], heads, axis=-1)
    attended = f"{projected}_attended"
    inputs = [*heads, layer.projection_bias, mask]
    editor.node("MultiHeadAttention", inputs, [f"{attended}_rows"], domain=CONTRIB, num_heads=HEADS)
    editor.node("Reshape", [f"{attended}_rows", "below"], [attended])
    joined = _product(editor, attended, layer.attended)
    inner = _normalised(editor, joined, values, layer.attended_norm)
    wide = _product(editor, inner, layer.wide)
    editor.node("Add", [wide, layer.wide_bias], [f"{wide}_biased"])
    editor.node("Gelu", [f"{wide}_biased"], [f"{wide}_bent"], domain=CONTRIB)
    narrow = _product(editor, f"{wide}_bent", layer.narrow)
    _normalised(editor, narrow, inner, layer.narrow_norm, output)


def _product(editor: GraphEditor, values: str, product: Product) -> str:
    """Append a product over tokens below each other, each with its own scale; return its name.

    One rounding with a scale for each token would save the division, 3 % of the time, and cannot be
    run by OpenVINO.
    """
    name = f"{values}_times"
    editor.node("Abs", [values], [f"{name}_abs"])
    editor.node("ReduceMax", [f"{name}_abs"], [f"{name}_size"], axes=[-1], keepdims=1)
    editor.node("Div", [values, f"{name}_size"], [f"{name}_unit"])
    editor.node("QuantizeLinear", [f"{name}_unit", "step", "middle"], [f"{name}_rounded"])
    inputs = [f"{name}_rounded", product.weight, "step", product.scale, "middle"]
    editor.node("MatMulIntegerToFloat", inputs, [f"{name}_unscaled"], domain=CONTRIB)
    editor.node("Mul", [f"{name}_unscaled", f"{name}_size"], [name])
    return name


def _normalised(
    editor: GraphEditor, values: str, beside: str, norm: Norm, output: str | None = None
) -> str:
    """Append the layer norm of values, a bias and what they are added to; return its name."""
    output = output or f"{values}_normal"
    editor.node("Add", [values, norm.bias], [f"{values}_biased"])
    editor.node("Add", [f"{values}_biased", beside], [f"{values}_sum"])
    inputs = [f"{values}_sum", norm.gain, norm.shift]
    editor.node("LayerNormalization", inputs, [output], epsilon=EPSILON, axis=-1)
    return output


def pool(editor: GraphEditor, tokens: str) -> None:
    """Append the mean of a row's tokens at unit length.

    As a product, which is computed for each row alone: ONNX Runtime adds up one row's tokens in
    another order than several rows'.
    """
    editor.arrays["least"] = np.array(1e-12, dtype=np.float32)
    editor.node("Cast", [MASK], ["weights"], to=TensorProto.FLOAT)
    editor.node("Unsqueeze", ["weights", "axis_1"], ["weights_row"])
    editor.node("MatMul", ["weights_row", tokens], ["total_row"])
    editor.node("Squeeze", ["total_row", "axis_1"], ["total"])
    editor.node("ReduceL2", ["total"], ["total_length"], axes=[-1], keepdims=1)
    editor.node("Max", ["total_length", "least"], ["total_length_used"])
    editor.node("Div", ["total", "total_length_used"], [POOLED])


def renew(folder: Path) -> None:
    """Rewrite the encoder and the branches of a pack, with golden rows that it computes now."""
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    models: dict[str, Any] = manifest["models"]
    for entry in models.values():
        path = folder / entry["path"]
        if entry["kind"] in ("encoder", "branch"):
            # A branch that makes something of a whole text has no mask, and reads one at a time.
            is_masked = "tokens" in next(iter(entry["outputs"].values()))
            lay_out(path, path, masked=is_masked and MASK not in entry["inputs"])
            if is_masked:
                entry |= TOGETHER
                entry["inputs"] = list(dict.fromkeys([*entry["inputs"], MASK]))
        if entry["kind"] == "head":
            entry["batch_rule"] = TOGETHER["batch_rule"]
        entry |= described(path, folder)
    opened = Pack(folder, Manifest.model_validate(manifest))
    sessions = open_sessions(opened)
    for path in {opened.golden(role): role for role in reversed(opened.roles)}:
        renew_golden(path, sessions)
    for entry in models.values():
        entry["golden"] = described(folder / entry["golden"]["path"], folder)
    write_manifest(folder, manifest)


def renew_golden(path: Path, sessions: Mapping[Role, Session]) -> None:
    """Write what the sessions give for the texts of a golden file."""
    golden = json.loads(path.read_text(encoding="utf-8"))
    run = sessions[golden["role"]].run
    for row in golden["rows"]:
        outputs = run(_asked(golden["role"], row)).outputs
        if "pair" in row:
            other = run(Row(golden["role"], row["pair"], outputs=OUTPUTS)).outputs
            row["score"] = _rounded(np.dot(outputs[POOLED], other[POOLED]))
            row["token_mean_abs"] = _rounded(np.abs(outputs["token_embeddings"]).mean())
        elif "evidence" in row:
            row["probabilities"] = list(map(_rounded, outputs["probabilities"]))
        else:
            row["probabilities"] = list(map(_rounded, outputs.values()))
    path.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _asked(role: Role, row: Mapping[str, Any]) -> Row:
    if "evidence" in row:
        return Row(role, row["text"], None, ("probabilities",), tuple(row["evidence"]))
    return Row(role, row["text"], outputs=OUTPUTS if "pair" in row else ())


def _rounded(value: Any) -> float:
    return round(float(value), 6)


def described(path: Path, root: Path) -> dict[str, str | int]:
    """Return the manifest's path, hash and size of a file."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return {"path": path.relative_to(root).as_posix(), "sha256": digest, "bytes": len(content)}


def main() -> None:
    """Rewrite a pack in place."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("pack", type=Path, help="folder of a pack as it was before")
    renew(parser.parse_args().pack)


if __name__ == "__main__":
    main()
