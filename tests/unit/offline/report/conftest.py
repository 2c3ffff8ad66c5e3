"""Small runs of real evaluators, none of which needs a model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.runs.execution import RunOptions, evaluate_lab

ROOT = Path(__file__).resolve().parents[4]
IDS = ("rouge", "pii", "text_matching", "classification", "answer_strings", "bleu", "json_schema")


def finished(
    folder: Path, rows: Iterable[Mapping[str, Any]], ids: Iterable[str] = IDS, **options: Any
) -> Path:
    """Return the folder of a run over some rows."""
    folder.mkdir(parents=True, exist_ok=True)
    lab = folder / "lab.jsonl"
    lab.write_text("".join(json.dumps(dict(row)) + "\n" for row in rows), "utf-8")
    out = folder / "out"
    evaluate_lab(open_lab(lab), configure(list(ids)), RunOptions(out, **options))
    return out


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run over the example lab."""
    out = tmp_path_factory.mktemp("lake") / "out"
    lab = open_lab(ROOT / "examples" / "lab" / "lab.json")
    evaluate_lab(lab, configure(list(IDS)), RunOptions(out))
    return out
