"""Quantisation: smaller files, and what each rewriting does to a graph's numbers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

from guardrail_models import quantise as module
from guardrail_models.quantise import (
    QUANTISATIONS,
    Quantisation,
    gemms_to_products,
    quantise,
    small_tables,
    store_halves,
)
from guardrail_service.errors import MissingExtra
from tests import tiny_reference

BLOCKS = "onnxruntime.quantization.matmul_nbits_quantizer"
IDS = np.random.default_rng(2).integers(0, 400, size=(6, 12))


def graph(wide: int = 64) -> onnx.ModelProto:
    """Return look-up, average, product, affine layer: everything that is rewritten."""
    rng = np.random.default_rng(4)
    constants = {
        "table": rng.normal(size=(400, wide)).astype(np.float32),
        "weights": (rng.normal(size=(wide, wide)) / 8).astype(np.float32),
        "affine": (rng.normal(size=(3, wide)) / 8).astype(np.float32),
        "bias": rng.normal(size=3).astype(np.float32),
        "axis": np.array([1], dtype=np.int64),
    }
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["words"], name="words"),
        helper.make_node("MatMul", ["words", "weights"], ["states"], name="states"),
        helper.make_node("ReduceMean", ["states"], ["mean"], axes=[1], keepdims=0, name="mean"),
        helper.make_node("Gemm", ["mean", "affine", "bias"], ["logits"], name="last", transB=1),
    ]
    constants.pop("axis")
    return tiny_reference.graph_of(nodes, constants, ["input_ids"], "logits")


def run(model: onnx.ModelProto | Path) -> Any:
    """Return the logits of the rows."""
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    return ort.InferenceSession(source).run(None, {"input_ids": IDS})[0]


@pytest.mark.parametrize(
    ("how", "most"),
    [
        ("none", 0.0),
        ("fp16", 0.001),
        ("int8-dynamic", 0.06),
        ("int8-static", 0.06),
    ],
)
def test_a_quantised_graph_gives_nearly_the_same(
    how: Quantisation, most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is smaller, unless nothing was asked for. Weight-only needs more: `tests/export`."""
    monkeypatch.setattr(module, "TABLE_VALUES", 1000)
    nearly_the_same(how, most, tmp_path)


def test_weight_only_names_the_extra_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which the service does without."""
    monkeypatch.setitem(sys.modules, BLOCKS, None)
    plain = tmp_path / "plain.onnx"
    onnx.save(graph(), str(plain))
    with pytest.raises(MissingExtra, match="export"):
        quantise(plain, tmp_path / "small.onnx", "weight-only", lambda: ())


def nearly_the_same(how: Quantisation, most: float, tmp_path: Path) -> None:
    """Expect numbers close to the graph's own from a smaller file."""
    plain, small = tmp_path / "plain.onnx", tmp_path / "small.onnx"
    onnx.save(graph(), str(plain))
    quantise(plain, small, how, lambda: ({"input_ids": row[None]} for row in IDS))
    apart = np.abs(run(small) - run(plain)).max()
    assert apart <= most
    assert (apart > 0) == (how != "none")
    smaller = {"none": 1.0, "fp16": 0.6}.get(how, 0.45)
    assert small.stat().st_size <= smaller * plain.stat().st_size
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plain.onnx", "small.onnx"]


def test_every_quantisation_has_a_name_for_its_precision() -> None:
    """Which the manifest shows."""
    assert set(module.PRECISION) == set(QUANTISATIONS)


def test_a_large_table_is_scaled_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """One extreme word costs the others no precision; a row of zeros stays zero."""
    monkeypatch.setattr(module, "TABLE_VALUES", 1000)
    model = graph()
    (table,) = (c for c in model.graph.initializer if c.name == "table")
    array = numpy_helper.to_array(table).copy()
    array[7] *= 1000
    array[8] = 0
    table.CopyFrom(numpy_helper.from_array(array, "table"))
    small_tables(model)
    stored = {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}
    restored = stored["table"] * stored["table_scale"]
    assert stored["table"].dtype == np.int8
    step = np.abs(array).max(axis=1, keepdims=True) / 127
    assert (np.abs(restored - array) <= step / 2 + 1e-6).all()
    assert not restored[8].any()


def test_small_and_shared_tables_stay_as_they_are() -> None:
    """Positions and token types cost nothing; a table that is multiplied with, too, is needed."""
    model = graph()
    before = model.SerializeToString()
    small_tables(model)
    assert model.SerializeToString() == before


def test_an_affine_layer_becomes_a_product_and_a_sum() -> None:
    """The same numbers, in the form that quantisers take."""
    model = graph()
    expected = run(model)
    gemms_to_products(model)
    assert [node.op_type for node in model.graph.node] == [
        "Gather",
        "MatMul",
        "ReduceMean",
        "MatMul",
        "Add",
    ]
    np.testing.assert_allclose(run(model), expected, rtol=1e-5, atol=1e-6)


def test_a_weight_beyond_sixteen_bits_is_refused() -> None:
    """It would become infinite."""
    model = graph()
    for constant in model.graph.initializer:
        if constant.name == "weights":
            array = numpy_helper.to_array(constant) * 1e6
            constant.CopyFrom(numpy_helper.from_array(array.astype(np.float32), "weights"))
    with pytest.raises(ValueError, match="weights does not fit"):
        store_halves(model)
