"""Makes the training mix and its cache of encoded texts: `prepare.py CONFIG --pairs ...`."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from encode import encode_texts, known_texts
from texts import Pair, build_mix, pairs_of
from written import document_mix, written_development

HERE = Path(__file__).resolve().parent


def texts_of(sets: list[list[Pair]]) -> list[str]:
    """Return every distinct claim and sentence, in order of first use."""
    seen: dict[str, None] = {}
    for pairs in sets:
        for pair in pairs:
            seen[pair["claim"]] = None
            seen.update(dict.fromkeys(pair["sentences"]))
    return list(seen)


def write_pairs(pairs: list[Pair], index: dict[str, int], path: Path) -> None:
    """Write pairs as numbers of texts."""
    rows: list[dict[str, Any]] = [
        {
            "source": pair["source"],
            "claim": index[pair["claim"]],
            "sentences": [index[s] for s in pair["sentences"]],
            "label": pair["label"],
            **{name: pair[name] for name in ("record", "group") if name in pair},
        }
        for pair in pairs
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")


def main() -> None:
    """Read, augment, write pairs, encode."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--pairs", type=Path, required=True, help="training pairs (JSONL[.gz])")
    parser.add_argument("--qa", type=Path, help="questions with passages and answers (JSONL[.gz])")
    parser.add_argument("--dev", type=Path, required=True, help="development pairs")
    parser.add_argument("--written", type=Path, help="folder of written claims, a file a source")
    parser.add_argument("--held-out", type=Path, nargs="*", default=[], help="texts to refuse")
    parser.add_argument("--out", type=Path, required=True, help="folder of the cache")
    parser.add_argument("--pack", type=Path, default=HERE.parents[1] / "embedded")
    parser.add_argument("--subset", type=int, help="only so many pairs, for a smoke run")
    arguments = parser.parse_args()
    config = json.loads(arguments.config.read_text(encoding="utf-8"))
    data = {"pairs": arguments.pairs, **({"qa": arguments.qa} if arguments.qa else {})}
    held_out = [arguments.dev, *arguments.held_out]
    mix = build_mix(config, data, held_out)
    dev = pairs_of(arguments.dev, {}, random.Random(0))
    if arguments.written:
        mix += document_mix(config, arguments.written, held_out)
        dev += written_development(arguments.written, config, random.Random(0))
    if arguments.subset:
        count, draw = arguments.subset, random.Random(0)
        mix, dev = draw.sample(mix, min(count, len(mix))), dev[:count]
    texts = texts_of([mix, dev])
    arguments.out.mkdir(parents=True, exist_ok=True)
    print(f"{len(mix)} training pairs, {len(dev)} development pairs, {len(texts)} texts")
    encode_texts(texts, arguments.pack, arguments.out)
    index = {text: number for number, text in enumerate(known_texts(arguments.out))}
    write_pairs(mix, index, arguments.out / "train.jsonl")
    write_pairs(dev, index, arguments.out / "dev.jsonl")


if __name__ == "__main__":
    main()
