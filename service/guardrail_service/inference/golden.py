"""Golden rows: does this model, on this CPU, still give the scores it was shipped with?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guardrail_service.errors import PackError
from guardrail_service.types import Role, Row, RowResult

OUTPUTS = ("sentence_embedding", "token_embeddings")


class GoldenRow(BaseModel):
    """Two texts and what the shipped file gives for them.

    Attributes:
        score: Cosine of the two sentence embeddings.
        token_mean_abs: Mean absolute value of the first text's token embeddings.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    text: str
    pair: str
    score: float
    token_mean_abs: float


class Golden(BaseModel):
    """The golden rows of one model file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal["1"]
    role: Role
    tolerance: float = Field(gt=0, lt=1)
    rows: tuple[GoldenRow, ...] = Field(min_length=50)


class GoldenClaim(BaseModel):
    """A claim, its evidence, and the probabilities the shipped head gives."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    text: str
    evidence: tuple[str, ...] = Field(min_length=1)
    probabilities: tuple[float, float, float]


class GoldenClaims(BaseModel):
    """The golden rows of a grounding head."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal["1"]
    role: Literal["grounding"]
    tolerance: float = Field(gt=0, lt=1)
    rows: tuple[GoldenClaim, ...] = Field(min_length=50)


class _Kind(BaseModel):
    """The one key that says which rows a golden file has."""

    role: str = ""


class GoldenReport(NamedTuple):
    """How far the model at hand is from its golden rows."""

    rows: int
    worst: float
    tolerance: float


def check_golden(path: Path, run: Callable[[Row], RowResult]) -> GoldenReport:
    """Run every golden row and compare.

    Args:
        path: The pack's golden file.
        run: The session's `run`.

    Returns:
        Number of rows and the largest difference found.

    Raises:
        PackError: If a score is further from its golden value than the file's tolerance, or the
            file is malformed.
    """
    golden = _read(path)
    # np.max, because max() steps over a NaN that is not the first.
    if isinstance(golden, GoldenClaims):
        worst = float(np.max([_claim_differences(row, run) for row in golden.rows]))
    else:
        worst = float(np.max([_differences(row, golden.role, run) for row in golden.rows]))
    if not worst <= golden.tolerance:
        raise PackError(
            f"{path}: golden rows differ by {worst:.4f}; expected at most {golden.tolerance}. "
            "This CPU or runtime computes other scores than the thresholds were fitted on"
        )
    return GoldenReport(len(golden.rows), worst, golden.tolerance)


def _differences(
    row: GoldenRow, role: Role, run: Callable[[Row], RowResult]
) -> tuple[float, float]:
    first = run(Row(role, row.text, outputs=OUTPUTS)).outputs
    second = run(Row(role, row.pair, outputs=OUTPUTS)).outputs
    cosine = float(np.dot(first["sentence_embedding"], second["sentence_embedding"]))
    tokens = float(np.abs(first["token_embeddings"]).mean())
    return abs(cosine - row.score), abs(tokens - row.token_mean_abs)


def _claim_differences(row: GoldenClaim, run: Callable[[Row], RowResult]) -> list[float]:
    asked = Row("grounding", row.text, outputs=("probabilities",), evidence=row.evidence)
    found = run(asked).outputs["probabilities"]
    return [abs(float(p) - kept) for p, kept in zip(found, row.probabilities, strict=True)]


def _read(path: Path) -> Golden | GoldenClaims:
    data = path.read_bytes()
    try:
        if _Kind.model_validate_json(data).role == "grounding":
            return GoldenClaims.model_validate_json(data)
        return Golden.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "(whole file)"
        raise PackError(f"{path}: {key}: {first['msg']}") from error
