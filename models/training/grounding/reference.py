"""Puts the encoder in fp32 into a copy of a pack: `reference.py PACK`, to measure flips against.

After it, `export.py --precision fp32 --pack PACK` and `ship.py PACK` put branch and head beside it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from build_embedding import source_folder, update_manifest, write_golden
from embedding_graph import export, fuse


def main() -> None:
    """Write the encoder's fp32 graph, its golden rows and its manifest entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pack", type=Path, help="a copy of the pack; its encoder is replaced")
    pack: Path = parser.parse_args().pack
    if "fp32" not in pack.name:
        raise SystemExit(f"{pack}: expected a copy whose name says fp32, not the pack that serves")
    source, folder = source_folder(), pack / "embedding"
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / "plain.onnx"
        export(source, plain)
        fuse(plain, folder / "model.onnx")
    write_golden(folder)
    update_manifest(pack, source / "model.safetensors")


if __name__ == "__main__":
    main()
