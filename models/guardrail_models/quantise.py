"""Makes an fp32 graph smaller or faster. `verify` measures the cost in scores."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from guardrail_service.errors import ConfigurationError, MissingExtra

Quantisation = Literal["none", "fp16", "int8-dynamic", "int8-static", "weight-only"]
QUANTISATIONS: tuple[Quantisation, ...] = (
    "none",
    "fp16",
    "int8-dynamic",
    "int8-static",
    "weight-only",
)
PRECISION: dict[Quantisation, str] = {
    "none": "fp32",
    "fp16": "fp32 arithmetic, fp16 weights",
    "int8-dynamic": "int8-dynamic-7bit",
    "int8-static": "int8-static-7bit",
    "weight-only": "fp32 arithmetic, 8-bit weights in blocks of 32",
}
ONE_ROW: frozenset[Quantisation] = frozenset({"int8-dynamic"})
"""One activation scale for the whole call: batch-mates would move each other's scores."""
TABLE_VALUES = 200_000
"""Smaller look-up tables stay as they are: positions, token types, relative distances."""
BLOCK = 32
Feeds = Callable[[], Iterable[dict[str, Any]]]


def quantisation(name: str) -> Quantisation:
    """Return a quantisation by its name.

    Raises:
        ConfigurationError: If there is none of that name.
    """
    for known in QUANTISATIONS:
        if known == name:
            return known
    raise ConfigurationError("--quantise", repr(name), ", ".join(QUANTISATIONS))


def quantise(source: Path, target: Path, how: Quantisation, activations: Feeds) -> None:
    """Write a graph in another precision.

    Args:
        source: An fp32 graph.
        target: File to write.
        how: `fp16` stores large weights in 16 bits and computes in 32; `int8-dynamic` has 7-bit
            weights (so that processors with and without VNNI compute the same integers) and one
            activation scale per call; `int8-static` has fixed scales; `weight-only` has 8-bit
            weights in blocks.
        activations: Inputs over which `int8-static` takes the ranges of activations.
    """
    if how == "none":
        target.write_bytes(source.read_bytes())
        return
    model = onnx.load(str(source))
    if how == "fp16":
        store_halves(model)
        onnx.save(model, str(target))
        return
    small_tables(model)
    gemms_to_products(model)
    if how == "weight-only":
        _blocks(model, target)
        return
    lowered = target.with_suffix(".lowered.onnx")
    onnx.save(model, str(lowered))
    try:
        (_dynamic if how == "int8-dynamic" else _static)(lowered, target, activations)
    finally:
        lowered.unlink()


def store_halves(model: onnx.ModelProto) -> None:
    """Keep large constants in 16 bits; a cast brings them back when the model is loaded.

    Raises:
        ValueError: If a weight is beyond what 16 bits hold.
    """
    graph = model.graph
    casts = []
    for constant in graph.initializer:
        if constant.data_type != TensorProto.FLOAT or np.prod(constant.dims) < 1024:
            continue
        array = numpy_helper.to_array(constant)
        if np.abs(array).max() > np.finfo(np.float16).max:
            raise ValueError(f"{constant.name} does not fit into 16 bits")
        name, half = constant.name, f"{constant.name}_half"
        constant.CopyFrom(numpy_helper.from_array(array.astype(np.float16), half))
        casts.append(helper.make_node("Cast", [half], [name], name=f"{name}_cast", to=1))
    _prepend(graph, casts)


def small_tables(model: onnx.ModelProto) -> None:
    """Keep large look-up tables in 8 bits with a scale for each of their rows."""
    graph = model.graph
    constants = {constant.name: constant for constant in graph.initializer}
    used = [name for node in graph.node for name in node.input]
    nodes = []
    for node in graph.node:
        table = constants.get(node.input[0]) if node.op_type == "Gather" else None
        is_large = table is not None and len(table.dims) == 2 and np.prod(table.dims) > TABLE_VALUES
        if table is None or not is_large or used.count(table.name) > 1:
            nodes.append(node)
            continue
        array = numpy_helper.to_array(table)
        scale = np.abs(array).max(axis=1, keepdims=True) / 127
        scale = np.where(scale > 0, scale, 1).astype(np.float32)
        name, out = table.name, node.output[0]
        scales = f"{name}_scale"
        table.CopyFrom(numpy_helper.from_array(np.rint(array / scale).astype(np.int8), name))
        graph.initializer.append(numpy_helper.from_array(scale, scales))
        made = [
            helper.make_node("Gather", [name, node.input[1]], [f"{out}_stored"]),
            helper.make_node("Cast", [f"{out}_stored"], [f"{out}_unscaled"], to=TensorProto.FLOAT),
            helper.make_node("Gather", [scales, node.input[1]], [f"{out}_scales"]),
            helper.make_node("Mul", [f"{out}_unscaled", f"{out}_scales"], [out]),
        ]
        for place, new in enumerate(made):
            new.name = f"{out}_row_scaled_{place}"
        nodes.extend(made)
    del graph.node[:]
    graph.node.extend(nodes)


def gemms_to_products(model: onnx.ModelProto) -> None:
    """Write each affine layer as a product and a sum, the form that every quantiser takes."""
    graph = model.graph
    constants = {constant.name: constant for constant in graph.initializer}
    nodes = []
    for node in graph.node:
        options = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        weight = constants.get(node.input[1]) if node.op_type == "Gemm" else None
        plain = options.get("alpha", 1.0) == options.get("beta", 1.0) == 1.0
        if weight is None or not plain or options.get("transA") or len(node.input) < 3:
            nodes.append(node)
            continue
        matrix = numpy_helper.to_array(weight)
        name, out = f"{node.output[0]}_matrix", node.output[0]
        turned = np.ascontiguousarray(matrix.T) if options.get("transB") else matrix
        graph.initializer.append(numpy_helper.from_array(turned, name))
        product = helper.make_node("MatMul", [node.input[0], name], [f"{out}_product"])
        total = helper.make_node("Add", [f"{out}_product", node.input[2]], [out])
        product.name, total.name = f"{out}_product", f"{out}_sum"
        nodes += [product, total]
    del graph.node[:]
    graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input}
    kept = [constant for constant in graph.initializer if constant.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _dynamic(source: Path, target: Path, _: Feeds) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        source,
        target,
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True, "DefaultTensorType": TensorProto.FLOAT},
    )


def _static(source: Path, target: Path, activations: Feeds) -> None:
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        """One row after the other."""

        def __init__(self) -> None:
            self._rows = iter(activations())

        def get_next(self) -> dict[str, Any] | None:
            return next(self._rows, None)

    quantize_static(
        source,
        target,
        Reader(),
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        reduce_range=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True, "DefaultTensorType": TensorProto.FLOAT},
    )


def _blocks(model: onnx.ModelProto, target: Path) -> None:
    try:
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    except ImportError as error:
        raise MissingExtra("rag-guardrail-models[export]") from error
    # Accuracy level 1: activations stay in fp32, so a row does not depend on its neighbours.
    logging.getLogger(MatMulNBitsQuantizer.__module__).setLevel(logging.WARNING)
    quantizer = MatMulNBitsQuantizer(
        model, bits=8, block_size=BLOCK, is_symmetric=True, accuracy_level=1
    )
    quantizer.process()
    onnx.save(quantizer.model.model, str(target))


def _prepend(graph: onnx.GraphProto, made: list[onnx.NodeProto]) -> None:
    nodes = [*made, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
