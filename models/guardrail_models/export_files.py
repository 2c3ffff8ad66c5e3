"""Writes the files beside an exported model: golden rows for start-up, and the model card."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from guardrail_models.original import Text
from guardrail_models.quantise import Quantisation
from guardrail_models.recipes import Recipe
from guardrail_models.verify import Export, Verification
from guardrail_service.inference.models.session import ModelSession
from guardrail_service.inference.pack import ModelFile, Pack
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


_SCORE = {
    "embedding": "cosines of all pairs of rows",
    "causal_lm": "mean log probabilities of the texts",
}


def card(name: str, recipe: Recipe, file: ModelFile, found: Verification) -> str:
    """Return the card as Markdown.

    Args:
        name: Of the model in the manifest.
        recipe: What was declared.
        file: Its manifest entry.
        found: How it compares with the original.
    """
    labels = ", ".join(f"`{ours}` = {theirs}" for ours, theirs in (recipe.labels or {}).items())
    languages = ", ".join(file.languages) if file.languages else "any"
    scores = _SCORE.get(recipe.role, "probabilities")
    return f"""# {name}

| | |
| --- | --- |
| role | {recipe.role} |
| source | {file.source.name} |
| revision | {file.source.revision} |
| licence | {file.source.license} |
| architecture | {file.architecture} |
| precision | {file.precision} |
| longest row | {file.max_tokens} tokens with special tokens; longer rows are refused, never cut |
| batch rule | {file.batch_rule} |
| languages | {languages} |
| activation | {file.activation or "none"} |
| labels | {labels or "none"} |
| pooling | {recipe.pooling or "none"} |
| template | {"see manifest" if recipe.template else "none"} |

Made by `guardrail models export`. The weights are the original's; only their precision and the end
of the graph are ours. What the original was trained on, and where it fails, its own card says.

## Compared with the original

{found.rows} rows of at most {found.longest} tokens, each alone, through the session that serves it.
Compared are {scores}: {found.scores} values.

| | |
| --- | --- |
| largest difference | {found.largest:.5f} |
| mean difference | {found.mean:.6f} |
| on the other side of {found.threshold:g} | {found.flips} of {found.scores} |
| largest change beside padded rows | {found.batch:.6f} |
| other side of {found.threshold:g} by that | {found.batch_flips} |

These are differences of arithmetic. They say nothing about how good the model is.
"""
