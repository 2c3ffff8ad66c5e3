"""Read the secrets cases; `python -m tests.golden.secret_cases` writes them joined."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

CUT = "¦"
PATH = Path(__file__).with_name("secrets_cases.jsonl")


def load() -> list[dict[str, Any]]:
    """Return records `{"text", "spans"}` with the secrets in one piece."""
    lines = PATH.read_text(encoding="utf-8").splitlines()
    return [json.loads(line.replace(CUT, "")) for line in lines]


if __name__ == "__main__":
    for record in load():
        sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
