"""Writes `acme_guardrail/pack`: a tiny model with its tokenizer, golden rows and manifest.

The model adds up a weight per word. Its few weights are chosen by hand and the rest drawn from a
fixed seed, so the same files come out every time: `python examples/plugin/make_model.py`.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from guardrail_service.inference.models.classifier import ClassifierSession
from guardrail_service.inference.pack import load_pack, write_manifest
from guardrail_service.types import Row

FOLDER = Path(__file__).parent / "acme_guardrail" / "pack"
LABEL = "pressure"
PRESSING = {"now": 3, "hurry": 4, "buy": 3, "today": 2, "last": 2, "chance": 3, "only": 1}
PLAIN = [
    "the",
    "room",
    "has",
    "a",
    "view",
    "and",
    "breakfast",
    "is",
    "served",
    "until",
    "ten",
    "guests",
    "may",
    "pay",
    "when",
    "they",
    "leave",
]
BIAS, SEED = -3.0, 7


def tokenizer(path: Path) -> list[str]:
    """Write a tokenizer of whole words and return its vocabulary."""
    words = ["[UNK]", *PRESSING, *dict.fromkeys(PLAIN)]
    fast = Tokenizer(models.WordLevel({w: n for n, w in enumerate(words)}, unk_token=words[0]))
    fast.normalizer = normalizers.Lowercase()
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    fast.save(str(path))
    return words


def model(path: Path, words: list[str]) -> None:
    """Write the graph: the sum of the words' weights, through a sigmoid."""
    drawn = np.random.default_rng(SEED).normal(scale=0.1, size=len(words))
    weights = np.array([PRESSING.get(w, n) for w, n in zip(words, drawn, strict=True)], np.float32)
    constants = {"weights": weights[:, None], "bias": np.array([BIAS], np.float32)}
    constants |= {"axis": np.array([2], np.int64), "tokens": np.array([1], np.int64)}
    nodes = [
        helper.make_node("Gather", ["weights", "input_ids"], ["each"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "axis"], ["column"]),
        helper.make_node("Mul", ["each", "column"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "tokens"], ["sum"], keepdims=0),
        helper.make_node("Add", ["sum", "bias"], ["logit"]),
        helper.make_node("Sigmoid", ["logit"], ["probabilities"]),
    ]
    ids, mask = (
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask")
    )
    output = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 1])
    kept = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "pressure", [ids, mask], [output], kept)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(made, str(path))


def manifest(golden: str) -> None:
    """Write what the pack holds; `write_manifest` seals it."""
    entry = described("model.onnx") | {
        "tokenizer": described("tokenizer.json"),
        "golden": described(golden),
        "card": "CARD.md",
        "kind": "classifier",
        "architecture": "a weight per word",
        "precision": "fp32",
        "opset": 18,
        "inputs": ["input_ids", "attention_mask"],
        "outputs": {"probabilities": ["batch", 1]},
        "max_tokens": 128,
        "batch_rule": "one_row",
        "languages": ["en"],
        "source": {"name": "acme", "revision": f"seed {SEED}", "license": "Apache-2.0"},
        "labels": [LABEL],
        "activation": "sigmoid",
    }
    write_manifest(FOLDER, {
        "schema_version": "1", "name": "acme-pressure", "version": "1",
        "models": {"words": entry}, "roles": {"acme_pressure": "words"},
    })  # fmt: skip


def described(name: str) -> dict[str, Any]:
    """Return path, hash and size of a file."""
    data = (FOLDER / name).read_bytes()
    return {"path": name, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


def golden(words: list[str]) -> None:
    """Write fifty texts and what the model gives for them on the machine at hand."""
    session = ClassifierSession(load_pack(FOLDER), "acme_pressure")
    rng = np.random.default_rng(SEED)
    rows = []
    for _ in range(50):
        text = " ".join(rng.choice(words[1:], size=6))
        outputs = session.run(Row("acme_pressure", text, outputs=())).outputs
        rows.append({"text": text, "probabilities": [float(outputs[LABEL])]})
    content = {"schema_version": "1", "role": "acme_pressure", "tolerance": 0.001, "rows": rows}
    (FOLDER / "golden.json").write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def main() -> None:
    """Write every file of the pack."""
    FOLDER.mkdir(exist_ok=True)
    words = tokenizer(FOLDER / "tokenizer.json")
    model(FOLDER / "model.onnx", words)
    (FOLDER / "CARD.md").write_text("A sum of weights per word; an example, not a judgement.\n")
    manifest("tokenizer.json")  # golden rows are computed through the session, which needs a pack
    golden(words)
    manifest("golden.json")


if __name__ == "__main__":
    main()
