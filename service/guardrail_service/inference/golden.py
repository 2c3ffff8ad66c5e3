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
    role: Role
    tolerance: float = Field(gt=0, lt=1)
    rows: tuple[GoldenClaim, ...] = Field(min_length=50)


class GoldenText(BaseModel):
    """A text and the probabilities the shipped classifier gives, in the manifest's order."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    text: str
    probabilities: tuple[float, ...] = Field(min_length=1)


class GoldenTexts(BaseModel):
    """The golden rows of a text classifier."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal["1"]
    role: Role
    tolerance: float = Field(gt=0, lt=1)
    rows: tuple[GoldenText, ...] = Field(min_length=50)


class GoldenPair(BaseModel):
    """Premise and hypothesis, or prompt and text, and what the shipped file gives.

    Attributes:
        values: What the model gives, such as three probabilities; of a causal language model the
            mean log probability.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    text: str
    second: str
    values: tuple[float, ...] = Field(min_length=1)


class GoldenPairs(BaseModel):
    """The golden rows of a model that reads two texts."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal["1"]
    role: Role
    tolerance: float = Field(gt=0, lt=1)
    rows: tuple[GoldenPair, ...] = Field(min_length=50)


AnyGolden = Golden | GoldenClaims | GoldenTexts | GoldenPairs
GoldenForm = Literal["vectors", "claims", "texts", "pairs", "log_probabilities"]
"""The form of the golden rows of a kind of session.

`vectors`: two texts, their cosine, and the size of the first one's token states.
`claims`: a claim, its evidence, three probabilities.
`texts`: a text and the value of each output, in order.
`pairs`: two texts and the values of the only output.
`log_probabilities`: two texts and the mean of the only output.
"""
_FORMS: dict[GoldenForm, type[AnyGolden]] = {
    "vectors": Golden,
    "claims": GoldenClaims,
    "texts": GoldenTexts,
    "pairs": GoldenPairs,
    "log_probabilities": GoldenPairs,
}
_OF_ROLES: dict[str, GoldenForm] = {
    "grounding": "claims",
    "toxicity": "texts",
    "bias": "texts",
    "nli": "pairs",
    "causal_lm": "log_probabilities",
}


class _Kind(BaseModel):
    """The one key that says which rows a golden file has."""

    role: str = ""


class GoldenReport(NamedTuple):
    """The distance of the loaded model from its golden rows."""

    rows: int
    worst: float
    tolerance: float


SOME_ROWS = 6
"""Rows that run again at a start after one at which all of them passed on the same machine."""


def check_golden(
    path: Path,
    run: Callable[[Row], RowResult],
    form: GoldenForm | None = None,
    most_rows: int | None = None,
) -> GoldenReport:
    """Run golden rows and compare.

    Args:
        path: The pack's golden file.
        run: The session's `run`.
        form: What the rows look like; None: as those of our own role that the file names.
        most_rows: Rows to run, evenly spread over the file; None: all.

    Returns:
        Number of rows that ran and the largest difference found.

    Raises:
        PackError: If a score is further from its golden value than the file's tolerance, or the
            file is malformed.
    """
    golden, form = _read(path, form)
    if most_rows is not None:
        step = -(-len(golden.rows) // most_rows)
        golden = golden.model_copy(update={"rows": golden.rows[::step]})
    # np.max, because max() steps over a NaN that is not the first.
    worst = float(np.max(_all_differences(golden, form, run)))
    if not worst <= golden.tolerance:
        raise PackError(
            f"{path}: golden rows differ by {worst:.4f}; expected at most {golden.tolerance}. "
            "This CPU or runtime computes other scores than the thresholds were fitted on"
        )
    return GoldenReport(len(golden.rows), worst, golden.tolerance)


def _all_differences(
    golden: AnyGolden, form: GoldenForm, run: Callable[[Row], RowResult]
) -> list[float]:
    if isinstance(golden, GoldenClaims):
        return [d for row in golden.rows for d in _claim_differences(row, golden.role, run)]
    if isinstance(golden, GoldenTexts):
        return [found for row in golden.rows for found in _text_differences(row, golden.role, run)]
    if isinstance(golden, GoldenPairs):
        mean = form == "log_probabilities"
        return [d for row in golden.rows for d in _pair_differences(row, golden.role, run, mean)]
    return [found for row in golden.rows for found in _differences(row, golden.role, run)]


def _text_differences(row: GoldenText, role: Role, run: Callable[[Row], RowResult]) -> list[float]:
    found = run(Row(role, row.text, outputs=())).outputs.values()
    return [abs(float(p) - kept) for p, kept in zip(found, row.probabilities, strict=True)]


def _pair_differences(
    row: GoldenPair, role: Role, run: Callable[[Row], RowResult], mean: bool
) -> list[float]:
    (found,) = run(Row(role, row.text, row.second, outputs=())).outputs.values()
    values = [found.mean()] if mean else found
    return [abs(float(p) - kept) for p, kept in zip(values, row.values, strict=True)]


def _differences(
    row: GoldenRow, role: Role, run: Callable[[Row], RowResult]
) -> tuple[float, float]:
    first = run(Row(role, row.text, outputs=OUTPUTS)).outputs
    second = run(Row(role, row.pair, outputs=OUTPUTS)).outputs
    cosine = float(np.dot(first["sentence_embedding"], second["sentence_embedding"]))
    tokens = float(np.abs(first["token_embeddings"]).mean())
    return abs(cosine - row.score), abs(tokens - row.token_mean_abs)


def _claim_differences(
    row: GoldenClaim, role: Role, run: Callable[[Row], RowResult]
) -> list[float]:
    asked = Row(role, row.text, outputs=("probabilities",), evidence=row.evidence)
    found = run(asked).outputs["probabilities"]
    return [abs(float(p) - kept) for p, kept in zip(found, row.probabilities, strict=True)]


def _read(path: Path, form: GoldenForm | None) -> tuple[AnyGolden, GoldenForm]:
    data = path.read_bytes()
    try:
        role = _Kind.model_validate_json(data).role
        form = form or _OF_ROLES.get(role, "vectors")
        return _FORMS[form].model_validate_json(data), form
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "(whole file)"
        raise PackError(f"{path}: {key}: {first['msg']}") from error
