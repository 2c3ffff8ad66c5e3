"""Builds a tiny real model pack on the spot: a lookup table, mean-pooled, in ONNX."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

DIM = 16
WORDS = [
    "guests",
    "may",
    "stay",
    "for",
    "two",
    "weeks",
    "at",
    "most",
    "the",
    "pool",
    "opens",
    "seven",
    "in",
    "morning",
    "breakfast",
    "is",
    "served",
    "until",
    "ten",
    "dogs",
    "are",
    "not",
    "allowed",
    "parking",
    "costs",
    "five",
    "euros",
    "per",
    "night",
    ".",
    ",",
    "?",
    "fail",
]


def _tokenizer(path: Path) -> None:
    vocabulary = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}
    for word in WORDS:
        vocabulary.setdefault(word, len(vocabulary))
    for letter in "abcdefghijklmnopqrstuvwxyz0123456789":
        vocabulary.setdefault(letter, len(vocabulary))
        vocabulary.setdefault("##" + letter, len(vocabulary))
    fast = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    fast.normalizer = normalizers.BertNormalizer(lowercase=True)
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    fast.save(str(path))


def _model(path: Path, seed: int) -> None:
    table = np.random.default_rng(seed).normal(size=(200, DIM)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["token_embeddings"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Identity", ["token_embeddings"], ["middle_states"]),
        helper.make_node("Unsqueeze", ["mask", "last"], ["mask3"]),
        helper.make_node("Mul", ["token_embeddings", "mask3"], ["masked"]),
        helper.make_node("ReduceMean", ["masked", "second"], ["mean"], keepdims=0),
        helper.make_node("ReduceL2", ["mean", "second"], ["length"], keepdims=1),
        helper.make_node("Div", ["mean", "length"], ["sentence_embedding"]),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "t"]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["b", "t"]),
        ],
        [
            helper.make_tensor_value_info("token_embeddings", TensorProto.FLOAT, ["b", "t", DIM]),
            helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["b", DIM]),
            helper.make_tensor_value_info("middle_states", TensorProto.FLOAT, ["b", "t", DIM]),
        ],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([2], dtype=np.int64), "last"),
            numpy_helper.from_array(np.array([1], dtype=np.int64), "second"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(path))


def describe(folder: Path, name: str) -> dict[str, Any]:
    """Return a manifest's entry for one file as it lies there."""
    data = (folder / name).read_bytes()
    return {"path": name, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


def build(folder: Path, *, seed: int = 7, max_tokens: int = 32) -> Path:
    """Write a pack with the role `embedding`; its golden rows are what the model really gives."""
    folder.mkdir(parents=True, exist_ok=True)
    _tokenizer(folder / "tokenizer.json")
    _model(folder / "model.onnx", seed)
    (folder / "CARD.md").write_text("A lookup table.\n")
    write_manifest(folder, max_tokens=max_tokens, golden=None)
    _golden(folder)
    write_manifest(folder, max_tokens=max_tokens, golden="golden.json")
    return folder


def write_manifest(folder: Path, *, max_tokens: int, golden: str | None) -> None:
    """Write `manifest.json` for the files as they lie there."""
    model = describe(folder, "model.onnx") | {
        "tokenizer": describe(folder, "tokenizer.json"),
        "golden": describe(folder, golden or "tokenizer.json"),
        "card": "CARD.md",
        "architecture": "lookup",
        "precision": "fp32",
        "opset": 18,
        "inputs": ["input_ids", "attention_mask"],
        "outputs": {
            "token_embeddings": ["batch", "tokens", DIM],
            "sentence_embedding": ["batch", DIM],
            "middle_states": ["batch", "tokens", DIM],
        },
        "max_tokens": max_tokens,
        "batch_rule": "one_row",
        "languages": None,
        "source": {"name": "tests", "revision": "1", "license": "Apache-2.0"},
        "labels": None,
    }
    manifest = {
        "schema_version": "1",
        "name": "tiny",
        "version": "1",
        "models": {"tiny": model},
        "roles": {"embedding": "tiny"},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


def add_branch(folder: Path, *, roles: list[str], labels: list[str] | None) -> None:
    """Add a model that reads the middle states: one probability per label, from their mean."""
    width = len(labels or ["one"])
    weights = np.random.default_rng(11).normal(size=(DIM, width)).astype(np.float32)
    nodes = [
        helper.make_node("ReduceMean", ["middle_states", "tokens"], ["mean"], keepdims=0),
        helper.make_node("MatMul", ["mean", "weights"], ["logits"]),
        helper.make_node("Sigmoid", ["logits"], ["probabilities"]),
    ]
    states = helper.make_tensor_value_info("middle_states", TensorProto.FLOAT, ["b", "t", DIM])
    output = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["b", width])
    constants = [
        numpy_helper.from_array(weights, "weights"),
        numpy_helper.from_array(np.array([1], dtype=np.int64), "tokens"),
    ]
    graph = helper.make_graph(nodes, "branch", [states], [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(folder / "branch.onnx"))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["models"]["branch"] = {
        **manifest["models"]["tiny"],
        **describe(folder, "branch.onnx"),
        "inputs": ["middle_states"],
        "outputs": {"probabilities": ["batch", width]},
        "labels": labels,
        "encoder": "tiny",
    }
    manifest["roles"] |= dict.fromkeys(roles, "branch")
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _golden(folder: Path) -> None:
    from guardrail_service.inference.golden import OUTPUTS
    from guardrail_service.inference.models.session import ModelSession
    from guardrail_service.inference.pack import load_pack
    from guardrail_service.types import Row

    session = ModelSession(load_pack(folder), "embedding")
    rows = []
    for index in range(50):
        text = " ".join(WORDS[index % 20 : index % 20 + 4])
        pair = WORDS[index % len(WORDS)]
        left = session.run(Row("embedding", text, outputs=OUTPUTS)).outputs
        right = session.run(Row("embedding", pair, outputs=OUTPUTS)).outputs
        rows.append(
            {
                "text": text,
                "pair": pair,
                "score": float(left["sentence_embedding"] @ right["sentence_embedding"]),
                "token_mean_abs": float(np.abs(left["token_embeddings"]).mean()),
            }
        )
    golden = {"schema_version": "1", "role": "embedding", "tolerance": 0.001, "rows": rows}
    (folder / "golden.json").write_text(json.dumps(golden))
