"""Makes the texts written for this project from their patterns: `written.py --out FILE --dev FILE`.

Every fifth pattern and polite answer goes to the development file, with all groups filled in, so
that no wording is in both. None is in `tests/golden/safety_functional.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from texts import BIAS, TOXICITY

SOURCE = Path(__file__).with_name("written.json")
GROUPS_EACH = 16
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
    for path, rows in zip(
        (arguments.out, arguments.dev), made(content, arguments.seed), strict=True
    ):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {len(rows)} rows")


if __name__ == "__main__":
    main()
