"""Writes golden rows and manifest entries of branch and head: `ship.py PACK --texts FILE`.

Runs in the service's own environment: golden rows are what the serving code computes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import onnxruntime as ort

from guardrail_service.inference.pack import Manifest, Pack, write_manifest
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.text.segmentation.sentences import merge_short, split_sentences
from guardrail_service.types import Row

HEAD = "grounding-head"
STATES = "grounding_states"
WIDTH = 128
ROWS = 64
MASK = "attention_mask"
TOLERANCE = 0.05
"""Encoders on other processors move cosines by up to 0.0055; the head amplifies that."""


def described(path: Path, root: Path) -> dict[str, str | int]:
    """Return the manifest's path, hash and size of a file."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return {"path": path.relative_to(root).as_posix(), "sha256": digest, "bytes": len(content)}


def cut(text: str) -> list[str]:
    """Return a text's sentences."""
    return [s.text for s in merge_short(split_sentences(text), text)]


def golden_texts(path: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Return claims with evidence, spread evenly over a file of labelled answers."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found: list[tuple[str, tuple[str, ...]]] = []
    for row in rows[:: max(1, len(rows) // (2 * ROWS))]:
        evidence = tuple(dict.fromkeys(s for c in row["contexts"] for s in cut(c)))
        claims = [c for c in cut(row["answer"]) if len(c) > 20]
        if evidence and claims and len(found) < ROWS:
            found.append((claims[-1], evidence[:12]))
    return found


def shared_entry(pack: Path, manifest: dict[str, Any], revision: str) -> dict[str, Any]:
    """Return what the manifest says about both files; the golden rows go through both of them."""
    encoder = manifest["models"][manifest["roles"]["embedding"]]
    golden = pack / "grounding" / "golden.json"
    return {
        "tokenizer": encoder["tokenizer"],
        "golden": described(golden if golden.exists() else pack / encoder["path"], pack),
        "card": "grounding/MODEL_CARD.md",
        "opset": 17,
        "max_tokens": encoder["max_tokens"],
        "batch_rule": "one_row",
        "languages": ["en"],
        "source": {"name": "rag-guardrail", "revision": revision, "license": "Apache-2.0"},
    }


def states_entry(pack: Path, manifest: dict[str, Any], revision: str) -> dict[str, Any]:
    """Return what the manifest says about the branch; with a mask its rows run like sentences."""
    session = ort.InferenceSession(pack / STATES / "model.onnx")
    inputs = [value.name for value in session.get_inputs()]
    return {
        **described(pack / STATES / "model.onnx", pack),
        **shared_entry(pack, manifest, revision),
        "kind": "branch",
        "architecture": "bert-upper-layers",
        "precision": "int8-dynamic-7bit",
        "inputs": inputs,
        **(_together(manifest) if MASK in inputs else {}),
        "outputs": {"states": ["batch", "tokens", WIDTH]},
        "labels": None,
        "encoder": manifest["roles"]["embedding"],
    }


def _together(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return how the encoder's rows run together."""
    encoder = manifest["models"][manifest["roles"]["embedding"]]
    return {key: encoder[key] for key in ("batch_rule", "padding") if key in encoder}


def head_entry(pack: Path, manifest: dict[str, Any], revision: str) -> dict[str, Any]:
    """Return what the manifest says about the head."""
    return {
        **described(pack / "grounding" / "model.onnx", pack),
        **shared_entry(pack, manifest, revision),
        "kind": "head",
        "architecture": "late-interaction-head",
        "precision": "fp32 arithmetic, fp16 weights",
        "inputs": ["claim", "passage", "claim_features", "passage_features", "match", "pair"],
        "outputs": {"probabilities": [3]},
        "labels": ["supported", "contradicted", "not_mentioned"],
        "encoder": STATES,
        "batch_rule": manifest["models"][STATES]["batch_rule"],
    }


def enter(pack: Path, manifest: dict[str, Any], revision: str) -> None:
    """Put both files into the manifest."""
    manifest["models"][STATES] = states_entry(pack, manifest, revision)
    manifest["models"][HEAD] = head_entry(pack, manifest, revision)
    manifest["roles"]["grounding"] = HEAD


def main() -> None:
    """Compute golden rows, write the manifest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pack", type=Path)
    parser.add_argument("--texts", type=Path, required=True, help="labelled answers (JSONL)")
    parser.add_argument("--revision", required=True, help="which run made the weights")
    arguments = parser.parse_args()
    pack: Path = arguments.pack
    (pack / "grounding" / "golden.json").unlink(missing_ok=True)
    manifest = json.loads((pack / "manifest.json").read_text(encoding="utf-8"))
    enter(pack, manifest, arguments.revision)
    opened = Pack(pack, Manifest.model_validate(manifest))
    head = open_sessions(opened)["grounding"]
    rows = []
    for claim, evidence in golden_texts(arguments.texts):
        asked = Row("grounding", claim, outputs=("probabilities",), evidence=evidence)
        values = head.run(asked).outputs["probabilities"]
        rounded = [round(float(value), 6) for value in values]
        rows.append({"text": claim, "evidence": evidence, "probabilities": rounded})
    golden = {"schema_version": "1", "role": "grounding", "tolerance": TOLERANCE, "rows": rows}
    target = pack / "grounding" / "golden.json"
    target.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    enter(pack, manifest, arguments.revision)
    write_manifest(pack, manifest)
    print(f"{len(rows)} golden rows")


if __name__ == "__main__":
    main()
