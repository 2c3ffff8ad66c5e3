"""Tiny models that read text, one for each role, with the heads that exports get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, processors

from guardrail_models import heads
from guardrail_service.inference.models.session import METADATA_KEY
from guardrail_service.inference.pack import Manifest, ModelFile, seal_of
from tests import tiny_pack

DIM = 8
TOXICITY = ("toxicity", "severe_toxicity", "obscene", "threat", "insult", "identity_attack")
BIAS = ("fairness_bias",)
THREE = ("supported", "contradicted", "not_mentioned")
START = "[CLS]"


def logits_graph(width: int, *, seed: int, types: bool) -> onnx.ModelProto:
    """Return a graph from tokens to logits: a look-up table, averaged, times a matrix."""
    rng = np.random.default_rng(seed)
    constants = {
        "table": rng.normal(size=(200, DIM)).astype(np.float32),
        "type_table": rng.normal(size=(2, DIM)).astype(np.float32),
        "weights": rng.normal(size=(DIM, width)).astype(np.float32) * 3,
        "column": np.array([2], dtype=np.int64),
        "row": np.array([1], dtype=np.int64),
    }
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["words"]),
        helper.make_node("Gather", ["type_table", heads.TYPES], ["typed"]),
        # A product, so that which text a word is of changes what it means.
        helper.make_node("Mul", ["words", "typed"], ["states"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "column"], ["mask3"]),
        helper.make_node("Mul", ["states", "mask3"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "row"], ["sum"], keepdims=0),
        helper.make_node("ReduceSum", ["mask3", "row"], ["count"], keepdims=0),
        helper.make_node("Div", ["sum", "count"], ["mean"]),
        helper.make_node("MatMul", ["mean", "weights"], ["logits"]),
    ]
    model = graph_of(nodes, constants, ["input_ids", "attention_mask", heads.TYPES], "logits")
    if not types:
        heads.fix_types_at_zero(model)
    return model


def next_token_graph(*, seed: int) -> onnx.ModelProto:
    """Return a graph from tokens to the next token's logits, from the last token alone."""
    rng = np.random.default_rng(seed)
    constants = {
        "table": rng.normal(size=(200, DIM)).astype(np.float32),
        "weights": rng.normal(size=(DIM, 200)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["states"]),
        helper.make_node("MatMul", ["states", "weights"], ["logits"]),
    ]
    return graph_of(nodes, constants, ["input_ids"], "logits")


def graph_of(
    nodes: list[onnx.NodeProto], constants: dict[str, Any], inputs: list[str], output: str
) -> onnx.ModelProto:
    """Return a model of some nodes over rows of tokens; the output's shape is left open."""
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "t"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def classifier(labels: tuple[str, ...], *, seed: int = 3, order: list[int] | None = None) -> Any:
    """Return a sigmoid classifier's graph."""
    model = logits_graph(len(labels), seed=seed, types=False)
    heads.classify(model, "sigmoid", order or list(range(len(labels))))
    return model


def pair(labels: tuple[str, ...], *, seed: int = 5) -> Any:
    """Return a cross-encoder's graph: three probabilities, or one."""
    model = logits_graph(len(labels), seed=seed, types=True)
    heads.classify(model, "sigmoid" if len(labels) == 1 else "softmax", list(range(len(labels))))
    return model


def causal(*, seed: int = 7) -> Any:
    """Return a language model's graph."""
    model = next_token_graph(seed=seed)
    heads.log_probabilities(model)
    return model


def add(folder: Path, role: str, model: Any, **declared: Any) -> None:
    """Put a model into a pack and seal the manifest; a tokenizer that lies there is its own."""
    target = folder / role
    target.mkdir(parents=True, exist_ok=True)
    if not (target / "tokenizer.json").exists():
        _pair_tokenizer(folder, target / "tokenizer.json")
    inputs = [value.name for value in model.graph.input]
    (output,) = model.graph.output
    shape = [d.dim_param or d.dim_value for d in output.type.tensor_type.shape.dim]
    (target / "golden.json").write_text(json.dumps({"role": role}))
    (target / "CARD.md").write_text("Tiny.\n")
    keys: dict[str, Any] = {"labels": None, "max_tokens": 32, **declared}
    entry = {
        "tokenizer": tiny_pack.describe(folder, f"{role}/tokenizer.json"),
        "golden": tiny_pack.describe(folder, f"{role}/golden.json"),
        "card": f"{role}/CARD.md",
        "architecture": "lookup",
        "precision": "fp32",
        "opset": 17,
        "inputs": inputs,
        "outputs": {output.name: shape},
        "batch_rule": "token_budget",
        "languages": None,
        "source": {"name": "tests", "revision": "1", "license": "Apache-2.0"},
        "padding": {"side": "right", "id": 0},
        "path": "none",
        "sha256": "0" * 64,
        "bytes": 1,
        **keys,
    }
    heads.describe(model, METADATA_KEY, json.dumps(ModelFile.model_validate(entry).declared()))
    onnx.save(model, str(target / "model.onnx"))
    entry |= tiny_pack.describe(folder, f"{role}/model.onnx")
    change(folder, lambda m: (m["models"].update({role: entry}), m["roles"].update({role: role})))


def change(folder: Path, edit: Any, *, seal: bool = True) -> None:
    """Edit a manifest, and seal it again unless the edit is meant to show."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    edit(manifest)
    if seal:
        manifest.pop("seal", None)
        manifest["seal"] = seal_of(Manifest.model_validate(manifest))
    path.write_text(json.dumps(manifest))


def _pair_tokenizer(folder: Path, target: Path) -> None:
    fast = Tokenizer.from_file(str(folder / "tokenizer.json"))
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    fast.save(str(target))
