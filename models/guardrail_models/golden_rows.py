"""Golden rows of an export: what the file just written gives, for start-up to compare with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from guardrail_models.original import Text
from guardrail_models.quantise import Quantisation
from guardrail_models.verify import Export
from guardrail_service.inference.models.session import ModelSession
from guardrail_service.inference.pack import Pack
from guardrail_service.types import Role, Row

OUTPUTS = ("sentence_embedding", "token_embeddings")
TOLERANCE: dict[Quantisation, float] = {
    "none": 0.001,
    "fp16": 0.001,
    "weight-only": 0.002,
    "int8-static": 0.02,
    "int8-dynamic": 0.02,
}
"""How far another processor may be: it sums in another order, and in INT8 a sum that falls on the
other side of a rounding step moves a score by about a hundredth."""
DIGITS = 6


def write_golden(
    path: Path, export: Export, pack: Pack, rows: Sequence[Text], how: Quantisation
) -> None:
    """Write the golden rows of a role.

    Args:
        path: File to write.
        export: The model, already verified.
        pack: Where it lies.
        rows: Texts it can read.
        how: Its precision, which says how far another machine may be.
    """
    made = (
        _embeddings(pack, rows)
        if export.role == "embedding"
        else [
            _row(export.role, row, values)
            for row, values in zip(rows, _values(export, rows), strict=True)
        ]
    )
    golden = {
        "schema_version": "1",
        "role": export.role,
        "tolerance": TOLERANCE[how],
        "rows": made,
    }
    path.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _values(export: Export, rows: Sequence[Text]) -> list[list[float]]:
    scores = export.scores(rows)
    if export.role in ("grounding", "nli") and scores.shape[1] == 1:
        scores = np.column_stack([scores[:, 0], np.zeros(len(scores)), 1 - scores[:, 0]])
    return [[round(float(value), DIGITS) for value in line] for line in scores]


def _row(role: Role, row: Text, values: list[float]) -> dict[str, Any]:
    if role == "grounding":
        return {"text": row.second, "evidence": [row.first], "probabilities": values}
    if role in ("nli", "causal_lm"):
        return {"text": row.first, "second": row.second, "values": values}
    return {"text": row.first, "probabilities": values}


def _embeddings(pack: Pack, rows: Sequence[Text]) -> list[dict[str, Any]]:
    session = ModelSession(pack, "embedding")
    found = [session.run(Row("embedding", row.first, outputs=OUTPUTS)).outputs for row in rows]
    made = []
    for place, row in enumerate(rows):
        other = (place + 1) % len(rows)
        cosine = float(found[place][OUTPUTS[0]] @ found[other][OUTPUTS[0]])
        tokens = float(np.abs(found[place][OUTPUTS[1]], dtype=np.float64).mean())
        made.append(
            {
                "text": row.first,
                "pair": rows[other].first,
                "score": round(cosine, DIGITS),
                "token_mean_abs": round(tokens, DIGITS),
            }
        )
    return made
