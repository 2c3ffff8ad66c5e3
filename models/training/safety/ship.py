"""Writes golden rows and the manifest entry of an exported branch: `ship.py PACK --texts FILE...`.

Runs in the service's own environment: golden rows are what the serving code computes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from texts import BIAS, TOXICITY

from guardrail_service.inference.pack import Manifest, Pack, write_manifest
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.types import Row

NAME = "safety-branch"
LABELS = [*TOXICITY, "fairness_bias", *BIAS, "hate"]
ROWS = 60
TOLERANCE = 0.05
"""Encoders on other processors move their states; the branch and its sigmoid amplify that."""


def described(path: Path, root: Path) -> dict[str, str | int]:
    """Return the manifest's path, hash and size of a file."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return {"path": path.relative_to(root).as_posix(), "sha256": digest, "bytes": len(content)}


def golden_texts(paths: list[Path]) -> list[str]:
    """Return answers spread evenly over files of labelled answers."""
    found: list[str] = []
    for path in paths:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        share = -(-ROWS // len(paths))
        found += [row["answer"] for row in rows[:: max(1, len(rows) // share)]][:share]
    return list(dict.fromkeys(found))


def entry(pack: Path, manifest: dict[str, Any], revision: str) -> dict[str, Any]:
    """Return what the manifest says about the branch."""
    encoder = manifest["roles"]["embedding"]
    folder = pack / "safety"
    golden = folder / "golden.json"
    return {
        **described(folder / "model.onnx", pack),
        "tokenizer": manifest["models"][encoder]["tokenizer"],
        "golden": described(golden if golden.exists() else folder / "model.onnx", pack),
        "card": "safety/MODEL_CARD.md",
        "kind": "branch",
        "architecture": "bert, layers 4 to 6 of 6, on the encoder's middle states",
        "precision": "int8-dynamic-7bit",
        "opset": 17,
        "inputs": ["middle_states"],
        "outputs": {"probabilities": ["batch", len(LABELS)]},
        "max_tokens": manifest["models"][encoder]["max_tokens"],
        "batch_rule": "one_row",
        "languages": ["en"],
        "source": {"name": "rag-guardrail", "revision": revision, "license": "Apache-2.0"},
        "labels": LABELS,
        "encoder": encoder,
    }


def main() -> None:
    """Compute golden rows, write the manifest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pack", type=Path)
    parser.add_argument(
        "--texts", type=Path, nargs="+", required=True, help="labelled answers (JSONL)"
    )
    parser.add_argument("--revision", required=True, help="which run made the weights")
    arguments = parser.parse_args()
    pack: Path = arguments.pack
    manifest = json.loads((pack / "manifest.json").read_text(encoding="utf-8"))
    manifest["models"][NAME] = entry(pack, manifest, arguments.revision)
    manifest["roles"] |= {"toxicity": NAME, "bias": NAME}
    opened = Pack(pack, Manifest.model_validate(manifest))
    run = open_sessions(opened)["toxicity"].run
    rows = []
    for text in golden_texts(arguments.texts):
        values = run(Row("toxicity", text)).outputs.values()
        rows.append({"text": text, "probabilities": [round(float(v), 6) for v in values]})
    golden = {"schema_version": "1", "role": "toxicity", "tolerance": TOLERANCE, "rows": rows}
    target = pack / "safety" / "golden.json"
    target.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    manifest["models"][NAME] = entry(pack, manifest, arguments.revision)
    write_manifest(pack, manifest)
    print(f"{len(rows)} golden rows")


if __name__ == "__main__":
    main()
