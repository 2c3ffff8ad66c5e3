"""Makes the texts written for this project from their patterns: `written.py --out FILE --dev FILE`.

Every fifth pattern, pair and polite answer goes to the development file, with all groups filled in,
so that no wording is in both. None is in `tests/golden/safety_functional.jsonl`, and no five words
in a row of a pair are.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from itertools import product
from pathlib import Path
from typing import Any

from texts import BIAS, TOXICITY

SOURCE = Path(__file__).with_name("written.json")
PAIRS = Path(__file__).with_name("pairs.json")
GROUPS_EACH = 16
FILLED_EACH = 10
"""Times that a pair with slots is filled in."""
GENDERED = ("women", "girls", "men", "mothers", "wives", "lesbians", "trans women")
NOTHING = dict.fromkeys((*TOXICITY, *BIAS, "hate"), 0)


def made(content: dict[str, Any], seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return training and development rows."""
    rng = random.Random(seed)
    rows: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for kind, pattern in content["patterns"].items():
        for number, text in enumerate(pattern["texts"]):
            place = rows[number % 5 == 4]
            if pattern["slot"] is None:
                place.append(_row(text, kind, pattern, ""))
                continue
            slots = content[pattern["slot"]]
            for group in rng.sample(slots, min(GROUPS_EACH, len(slots))):
                filled = text.replace("a {g}", _article(group)).replace("{g}", group)
                filled = filled[:1].upper() + filled[1:] if text[:1] != "f" else filled
                place.append(_row(filled, kind, pattern, group))
    for number, text in enumerate(content["polite"]):
        rows[number % 5 == 4].append(
            {"text": text, "labels": NOTHING, "fair": 0, "label": 0, "kind": "polite",
             "source": "written", "task": "written"}
        )  # fmt: skip
    return rows


def paired(content: dict[str, Any], seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return training and development rows of minimal pairs: a bad text, then its harmless twin.

    `share` is how often a row is drawn beside the others, so that slots do not outweigh wordings.
    """
    rng = random.Random(seed)
    rows: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for kind, pairs in content["kinds"].items():
        fair = {"bad": 1 if pairs["on"] in BIAS else -1, "good": 0}
        for number, texts in enumerate(pairs["texts"]):
            fills = _fills(" ".join(texts), content["slots"], rng)
            for fill, (text, side) in product(fills, zip(texts, fair, strict=True)):
                filled = text.format_map(fill)
                rows[number % 5 == 4].append(
                    {"text": filled[:1].upper() + filled[1:], "labels": pairs[side],
                     "fair": fair[side], "label": int(side == "bad"), "kind": kind,
                     "on": pairs["on"], "share": len(fills) ** -0.5, "source": "pairs",
                     "task": "written"}
                )  # fmt: skip
    return rows


def _fills(text: str, slots: dict[str, list[str]], rng: random.Random) -> list[dict[str, str]]:
    names = [name for name in slots if re.search(rf"{{a?{name}s?}}", text)]
    found: list[dict[str, str]] = []
    for _ in range(FILLED_EACH if names else 1):
        fill = {name: rng.choice(slots[name]) for name in names}
        fill |= {f"{name}s": f"{value}s" for name, value in fill.items()}
        fill |= {f"a{name}": _article(fill[name]) for name in names}
        if fill not in found:
            found.append(fill)
    return found


def _row(text: str, kind: str, pattern: dict[str, Any], group: str) -> dict[str, Any]:
    labels = dict(pattern["labels"])
    if kind in ("hate", "stereotype"):
        labels["gender" if group in GENDERED else "group"] = 1
    label = int(any(value >= 0.5 for value in labels.values()))
    return {"text": text, "labels": labels, "fair": pattern["fair"], "label": label, "kind": kind,
            "target": group or None, "source": "written", "task": "written"}  # fmt: skip


def _article(group: str) -> str:
    return f"{'an' if group[0].lower() in 'aeiou' else 'a'} {group}"


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=17)
    arguments = parser.parse_args()
    content = json.loads(SOURCE.read_text(encoding="utf-8"))
    pairs = json.loads(PAIRS.read_text(encoding="utf-8"))
    parts = zip(made(content, arguments.seed), paired(pairs, arguments.seed), strict=True)
    for path, (single, twins) in zip((arguments.out, arguments.dev), parts, strict=True):
        rows = single + twins
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {len(rows)} rows")


if __name__ == "__main__":
    main()
