"""Reads labelled files, and keeps evaluation texts out of a training mix."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a JSONL file, compressed or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def refuse_held_out(path: Path) -> None:
    """Raise unless a file may be trained on, by its name."""
    if "eval" in path.name or "dev" in path.name:
        raise SystemExit(
            f"{path.name}: a held-out file in the training mix; expected training data"
        )


def key(text: str) -> str:
    """Return a text as it is compared with evaluation texts."""
    return " ".join(re.findall(r"\w+", text.lower()))


def held_out_keys(paths: Iterable[Path], fields: tuple[str, ...], words: int) -> set[str]:
    """Return the texts of evaluation files, as keys.

    Args:
        paths: The files.
        fields: Where their records have texts.
        words: Shorter texts repeat by chance ("a man is outside") and are left out.
    """
    found = {key(row[name]) for path in paths for row in read(path) for name in fields}
    return {text for text in found if len(text.split()) >= words}
