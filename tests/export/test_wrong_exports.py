"""Exports that are wrong on purpose: each fails verification, and nothing is written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from guardrail_models import graph, heads, stand_ins
from guardrail_models.export import ExportOptions, _write_tokenizer, export_model, finish
from guardrail_models.original import Original, load
from guardrail_models.recipes import shipped_recipes
from guardrail_models.verify import ExportFailed

Build = Callable[[str], Path]
Damage = Callable[[onnx.ModelProto], None]


def exported(name: str, stand_in: Build, work: Path, damage: Damage, how: str = "none") -> None:
    """Export a stand-in, damage the fp32 graph, and let the rest of the pipeline go on."""
    recipe = stand_ins.tiny_recipe(shipped_recipes()[name])
    original = load(recipe, stand_in(name), stand_in(name))
    finished(original, work, damage, how)


def finished(original: Original, work: Path, damage: Damage, how: str = "none") -> None:
    """Go on with a graph after damaging it."""
    target = work / original.recipe.role
    target.mkdir(parents=True)
    _write_tokenizer(original, target / "tokenizer.json")
    plain = work / "plain.onnx"
    graph.export_graph(original, plain, work)
    model = onnx.load(str(plain))
    damage(model)
    onnx.save(model, str(plain))
    finish(original, plain, work, ExportOptions(out=work / "pack", quantisation=how))  # type: ignore[arg-type]


def swap_labels(model: onnx.ModelProto) -> None:
    """Put the first two labels in each other's place."""
    (order,) = (c for c in model.graph.initializer if c.name == "label_order")
    places = numpy_helper.to_array(order).copy()
    places[[0, 1]] = places[[1, 0]]
    order.CopyFrom(numpy_helper.from_array(places, order.name))


def other_side(model: onnx.ModelProto) -> None:
    """Export the opposite label of two: the direction is the wrong way round."""
    (order,) = (c for c in model.graph.initializer if c.name == "label_order")
    places = 1 - numpy_helper.to_array(order)
    order.CopyFrom(numpy_helper.from_array(places, order.name))


def count_padding(model: onnx.ModelProto) -> None:
    """Number the tokens from the row's first place, padding or not."""
    nodes = list(model.graph.node)
    for node in nodes:
        node.input[:] = ["counted" if name == "position_ids" else name for name in node.input]
    ones = helper.make_tensor("one", onnx.TensorProto.INT64, [1], [1])
    made = [
        helper.make_node("Mul", ["position_ids", "nothing"], ["zeros"]),
        helper.make_node("Add", ["zeros", "one"], ["ones"]),
        helper.make_node("CumSum", ["ones", "axis"], ["counts"]),
        helper.make_node("Sub", ["counts", "one"], ["counted"]),
    ]
    for name, value in (("nothing", 0), ("axis", 1)):
        array = np.array([value] if name == "nothing" else value, dtype=np.int64)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    model.graph.initializer.append(ones)
    del model.graph.node[:]
    model.graph.node.extend([*made, *nodes])


def cut_input(model: onnx.ModelProto) -> None:
    """Read only the first 48 tokens."""
    kept = 48
    nodes = []
    for value in model.graph.input:
        for node in model.graph.node:
            node.input[:] = [f"{name}_cut" if name == value.name else name for name in node.input]
        names = [value.name, "cut_start", "cut_end", "cut_axis"]
        nodes.append(helper.make_node("Slice", names, [f"{value.name}_cut"]))
    for name, place in (("cut_start", 0), ("cut_end", kept), ("cut_axis", 1)):
        array = np.array([place], dtype=np.int64)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    rest = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*nodes, *rest])


def softmax_for_sigmoid(model: onnx.ModelProto) -> None:
    """Apply the other activation."""
    for node in model.graph.node:
        if node.op_type == "Sigmoid" and node.input[0] == "logits":
            node.op_type = "Softmax"


@pytest.mark.parametrize("how", ["none", "int8-dynamic"])
def test_swapped_labels_fail(how: str, stand_in: Build, tmp_path: Path) -> None:
    """Support and contradiction in each other's place; also under quantisation's noise."""
    with pytest.raises(ExportFailed, match="largest difference"):
        exported("nli-distilroberta-base", stand_in, tmp_path, swap_labels, how)


@pytest.mark.parametrize("name", ["bias-detection-model", "hhem-2.1-open"])
def test_the_wrong_direction_fails(name: str, stand_in: Build, tmp_path: Path) -> None:
    """The probability of the opposite."""
    with pytest.raises(ExportFailed, match="flip at"):
        exported(name, stand_in, tmp_path, other_side)


@pytest.mark.parametrize("how", ["none", "int8-dynamic"])
def test_lost_token_types_fail(how: str, tmp_path: Path) -> None:
    """A BERT cross-encoder that takes premise and hypothesis for one text."""
    recipe = stand_ins.tiny_recipe(shipped_recipes()["nli-distilroberta-base"]).model_copy(
        update={"name": "nli-bert", "architecture": "bert"}
    )
    folder = stand_ins.build(recipe, tmp_path / "original")
    original = load(recipe, folder, folder)
    finished(original, tmp_path / "right", lambda model: None, how)
    with pytest.raises(ExportFailed, match="mean difference"):
        finished(original, tmp_path / "wrong", heads.fix_types_at_zero, how)


@pytest.mark.parametrize("how", ["none", "int8-dynamic"])
@pytest.mark.parametrize("name", ["all-minilm-l6-v2", "bge-small-en-v1.5"])
def test_wrong_pooling_fails(name: str, how: str, stand_in: Build, tmp_path: Path) -> None:
    """The first token for the mean, and the mean for the first token."""
    recipe = stand_ins.tiny_recipe(shipped_recipes()[name])
    pooling = {"mean": "cls", "cls": "mean"}[recipe.pooling or ""]
    original = load(recipe, stand_in(name), stand_in(name))
    wrong = Original(
        recipe.model_copy(update={"pooling": pooling}),
        original.model,
        original.tokenizer,
        original.weights,
    )
    target = tmp_path / recipe.role
    target.mkdir()
    _write_tokenizer(original, target / "tokenizer.json")
    graph.export_graph(wrong, tmp_path / "plain.onnx", tmp_path)
    options = ExportOptions(out=tmp_path / "pack", quantisation=how)  # type: ignore[arg-type]
    with pytest.raises(ExportFailed, match="mean difference"):
        finish(original, tmp_path / "plain.onnx", tmp_path, options)


@pytest.mark.parametrize(
    "name", ["detoxify-original", "hhem-1.0-open", "all-minilm-l6-v2", "hhem-2.1-open"]
)
def test_cut_input_fails(name: str, stand_in: Build, tmp_path: Path) -> None:
    """The shipped texts have rows near the longest that a model reads."""
    with pytest.raises(ExportFailed, match="scores differ"):
        exported(name, stand_in, tmp_path, cut_input)


def test_a_wrong_activation_fails(stand_in: Build, tmp_path: Path) -> None:
    """A softmax over labels that do not exclude each other."""
    with pytest.raises(ExportFailed, match="scores differ"):
        exported("detoxify-original", stand_in, tmp_path, softmax_for_sigmoid)


@pytest.mark.parametrize("name", ["detoxify-original", "hhem-2.1-open"])
def test_the_wrong_padding_side_fails(name: str, stand_in: Build, tmp_path: Path) -> None:
    """Rows filled up on the left: positions shift, or the first token is no longer first."""
    recipe = stand_ins.tiny_recipe(shipped_recipes()[name])
    original = load(recipe, stand_in(name), stand_in(name))
    original.tokenizer.padding_side = "left"
    with pytest.raises(ExportFailed, match="beside padded rows"):
        finished(original, tmp_path, lambda model: None)


def test_a_causal_lm_may_be_filled_up_on_the_left(stand_in: Build, tmp_path: Path) -> None:
    """Its rows say where each token stands, so padding moves nothing; without that, it does."""
    name = "distilgpt2"
    recipe = stand_ins.tiny_recipe(shipped_recipes()[name])
    original = load(recipe, stand_in(name), stand_in(name))
    original.tokenizer.padding_side = "left"
    finished(original, tmp_path / "right", lambda model: None)
    with pytest.raises(ExportFailed, match="beside padded rows"):
        finished(original, tmp_path / "wrong", count_padding)


def test_a_failed_export_leaves_the_pack_as_it_was(stand_in: Build, tmp_path: Path) -> None:
    """Nothing is written before the export has been verified."""
    name = "bias-detection-model"
    recipe = stand_ins.tiny_recipe(shipped_recipes()[name])
    pack = tmp_path / "pack"
    export_model(recipe, ExportOptions(out=pack, quantisation="none", local=stand_in(name)))
    before = {path.name: path.read_bytes() for path in pack.rglob("*") if path.is_file()}
    impossible = ExportOptions(out=pack, local=stand_in(name), limits=(1e-9, 1e-9))
    with pytest.raises(ExportFailed):
        export_model(recipe, impossible)
    assert before == {path.name: path.read_bytes() for path in pack.rglob("*") if path.is_file()}
    shutil.rmtree(pack)
    with pytest.raises(ExportFailed):
        export_model(recipe, impossible)
    assert not pack.exists()
