"""Makes the training mix and its cache of encoded sentences: `prepare.py CONFIG --data ...`.

A comment is cut into sentences and read as the detector reads an answer. A folder is written per
source, and a finished one is kept, so an interrupted run goes on where it stopped. Runs in the
service's environment.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
from disguises import disguised, without_spaces
from encode import middle_states
from texts import TRAINED, Row, known, prose

from corpora import held_out_keys, key, read, refuse_held_out
from encoding import encoder_entry, open_encoder
from guardrail_service.inference.models.session import Tokenizer
from guardrail_service.text.decoding.disguise import undisguised
from guardrail_service.text.sample import windows
from guardrail_service.text.segmentation.sentences import Sentence, merge_short, split_sentences

HERE = Path(__file__).resolve().parent
MAX_ROW = 128
"""Tokens a sentence may have in training; longer ones are cut here, never in the service."""


class Reader:
    """Turns a text into the rows the detector would send to the model."""

    def __init__(self, pack: Path) -> None:
        entry = encoder_entry(pack)
        self.tokenizer = Tokenizer(pack / entry["tokenizer"]["path"], entry["max_tokens"])
        self._words: dict[str, bool] = {}

    def is_word(self, word: str) -> bool:
        """Return whether a word is in the vocabulary."""
        if word not in self._words:
            found = self.tokenizer.tokens(word)
            self._words[word] = len(found) == 1 and found[0].known
        return self._words[word]

    def sentences(self, text: str) -> list[str]:
        """Return a text's windows as the model reads them, repeated ones once."""
        found = merge_short(split_sentences(text), text)
        return list(dict.fromkeys(piece for one in found for piece in self.pieces(one.text)))

    def pieces(self, text: str) -> list[str]:
        """Return a text in as few windows as the model reads, disguises undone, in order."""
        found = []
        for window in windows(Sentence(0, len(text), text), self.tokenizer):
            plain = undisguised(window.text, self.is_word)
            if plain == window.text:
                found.append(plain)
            else:
                again = windows(Sentence(0, len(plain), plain), self.tokenizer)
                found += [piece.text for piece in again]
        return found

    def ids(self, sentence: str, most: int = MAX_ROW) -> list[int]:
        """Return a sentence's tokens, cut to `most`."""
        ids = self.tokenizer.ids(sentence)
        return ids if len(ids) <= most else [*ids[: most - 1], ids[-1]]


def shortened(ids: list[list[int]], budget: int) -> list[list[int]]:
    """Return the first sentences that fit a number of tokens, at least one."""
    kept: list[list[int]] = []
    for row in ids:
        if kept and sum(map(len, kept)) + len(row) > budget:
            break
        kept.append(row)
    return kept


def write_source(
    name: str, rows: list[Row], reader: Reader, encoder: Any, folder: Path, config: dict[str, Any],
    threads: int,
) -> None:  # fmt: skip
    """Encode one source's rows and write them, unless they are there."""
    target = folder / f"{name}.npz"
    if target.exists():
        return
    started = time.monotonic()
    all_ids: list[list[int]] = []
    counts, values, weights = [], [], []
    kept_rows = []
    for row in rows:
        ids = [reader.ids(s) for s in reader.sentences(row["text"])]
        if not ids:
            continue
        if not name.startswith("dev_"):
            ids = shortened(ids, config["positive_tokens" if row.get("label") else "tokens"])
        labels = known(row)
        all_ids += ids
        counts.append(len(ids))
        values.append([labels.get(label, (0.0, 0.0))[0] for label in TRAINED])
        weights.append([labels.get(label, (0.0, 0.0))[1] for label in TRAINED])
        kept_rows.append(row)
    cut = time.monotonic() - started
    tokens, lengths = middle_states(all_ids, encoder, threads)
    partial = target.with_suffix(".partial")
    with partial.open("wb") as stream:
        np.savez(
            stream,
            tokens=tokens,
            lengths=lengths,
            counts=np.array(counts),
            values=np.array(values, np.float32),
            weights=np.array(weights, np.float32),
        )
    partial.rename(target)
    folder.joinpath(f"{name}.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in kept_rows), encoding="utf-8"
    )
    encoded = time.monotonic() - started - cut
    print(
        f"{name}: {len(kept_rows)} texts, {len(all_ids)} sentences, {len(tokens)} tokens, "
        f"{cut:.0f} s to cut, {encoded:.0f} s to encode",
        flush=True,
    )


def spread(rows: list[Row], count: int | None) -> list[Row]:
    """Return so many rows, evenly spread, or all."""
    return rows if count is None else rows[:: max(1, len(rows) // count)][:count]


def by_source(rows: list[Row]) -> dict[str, list[Row]]:
    """Return rows apart by source."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["source"], []).append(row)
    return found


def augmented(rows: list[Row], config: dict[str, Any], rng: random.Random) -> list[Row]:
    """Return disguised copies of short texts, toxic or not."""
    short = [row for row in rows if 3 < len(row["text"].split()) < 40]
    picked = rng.sample(short, min(config["disguised"], len(short)))
    made = []
    for row in picked:
        change = without_spaces if rng.random() < 0.15 else disguised
        made.append({**row, "text": change(row["text"], rng)})
    return made


def main() -> None:
    """Read, augment, encode."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument(
        "--data", type=Path, nargs="+", required=True, help="training texts (JSONL[.gz])"
    )
    parser.add_argument("--dev", type=Path, nargs="+", required=True, help="development texts")
    parser.add_argument("--qa", type=Path, help="questions with passages and answers")
    parser.add_argument("--pairs", type=Path, help="premises and hypotheses, as plain prose")
    parser.add_argument("--held-out", type=Path, nargs="*", default=[], help="texts to refuse")
    parser.add_argument("--out", type=Path, required=True, help="folder of the cache")
    parser.add_argument("--pack", type=Path, default=HERE.parents[1] / "embedded")
    parser.add_argument("--subset", type=int, help="only so many texts a source, for a smoke run")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="only these sources")
    arguments = parser.parse_args()
    config = json.loads(arguments.config.read_text(encoding="utf-8"))
    sources = training_sources(arguments, config)
    for path in arguments.dev:
        for name, rows in by_source(list(read(path))).items():
            sources.setdefault(f"dev_{name}", []).extend(rows)
    arguments.out.mkdir(parents=True, exist_ok=True)
    reader, encoder = Reader(arguments.pack), open_encoder(arguments.pack)
    for name, rows in sources.items():
        rows = spread(rows, arguments.subset)
        if rows and (not arguments.only or name in arguments.only):
            write_source(name, rows, reader, encoder, arguments.out, config,
                         arguments.threads)  # fmt: skip


def training_sources(arguments: argparse.Namespace, config: dict[str, Any]) -> dict[str, list[Row]]:
    """Return the rows of each source, without those that evaluation files hold."""
    rng = random.Random(config["seed"])
    for path in (*arguments.data, *filter(None, (arguments.qa, arguments.pairs))):
        refuse_held_out(path)
    rows = [row for path in arguments.data for row in read(path)]
    forbidden = held_out_keys([*arguments.dev, *arguments.held_out], ("text",), 5)
    kept = [row for row in rows if key(row["text"]) not in forbidden]
    print(f"{len(rows) - len(kept)} texts are in the held-out files and are left out", flush=True)
    sources = by_source(kept)
    sources["prose"] = prose(arguments.qa, arguments.pairs, config["prose"], rng)
    everything = [row for name in config["disguised_sources"] for row in sources.get(name, ())]
    sources["disguised"] = augmented(everything, config, rng)
    return sources


if __name__ == "__main__":
    main()
