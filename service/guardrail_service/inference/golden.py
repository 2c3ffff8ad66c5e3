"""Golden rows: does this model, on this CPU, still give the scores it was shipped with?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

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
AnyRow = GoldenRow | GoldenClaim | GoldenText | GoldenPair
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
TOGETHER = 8
"""Rows of one call where they are run together, in the file's order: short ones beside long."""
Run = Callable[[Row], RowResult]
RunMany = Callable[[Sequence[Row]], Sequence[RowResult]]


def check_golden(
    path: Path,
    run: Run,
    form: GoldenForm | None = None,
    most_rows: int | None = None,
    *,
    run_many: RunMany | None = None,
    tolerance: float | None = None,
    computing: str = "This CPU or runtime",
) -> GoldenReport:
    """Run golden rows and compare.

    Args:
        path: The pack's golden file.
        run: The session's `run`.
        form: What the rows look like; None: as those of our own role that the file names.
        most_rows: Rows to run, evenly spread over the file; None: all.
        run_many: The session's `run_many`, where rows will be served several in a call.
        tolerance: Largest difference allowed, where that is more than the file's own.
        computing: What computes the scores, for the message.

    Returns:
        Number of rows that ran and the largest difference found.

    Raises:
        PackError: If a score is further from its golden value than the tolerance, or the file is
            malformed.
    """
    golden, form = _read(path, form)
    if most_rows is not None:
        step = -(-len(golden.rows) // most_rows)
        golden = golden.model_copy(update={"rows": golden.rows[::step]})
    kept: Sequence[AnyRow] = golden.rows
    asked = [_asked(row, golden.role) for row in kept]
    if run_many is not None:
        run = _known(run_many, [row for rows in asked for row in rows])
    mean = form == "log_probabilities"
    found = [
        _differences(row, [run(one) for one in rows], mean=mean)
        for row, rows in zip(kept, asked, strict=True)
    ]
    # np.max, because max() steps over a NaN that is not the first.
    worst = float(np.max([difference for row in found for difference in row]))
    allowed = max(golden.tolerance, tolerance or 0.0)
    if not worst <= allowed:
        raise PackError(
            f"{path}: golden rows differ by {worst:.4f}; expected at most {allowed}. "
            f"{computing} computes other scores than the thresholds were fitted on"
        )
    return GoldenReport(len(kept), worst, allowed)


def _known(run_many: RunMany, rows: Sequence[Row]) -> Run:
    found: dict[Row, RowResult] = {}
    for start in range(0, len(rows), TOGETHER):
        some = rows[start : start + TOGETHER]
        found |= zip(some, run_many(some), strict=True)
    return found.__getitem__


def _asked(row: AnyRow, role: Role) -> list[Row]:
    """Return what a model is asked for one golden row."""
    match row:
        case GoldenRow():
            return [Row(role, text, outputs=OUTPUTS) for text in (row.text, row.pair)]
        case GoldenClaim():
            return [Row(role, row.text, outputs=("probabilities",), evidence=row.evidence)]
        case GoldenText():
            return [Row(role, row.text, outputs=())]
        case GoldenPair():
            return [Row(role, row.text, row.second, outputs=())]


def _differences(row: AnyRow, results: Sequence[RowResult], *, mean: bool) -> list[float]:
    first = results[0].outputs
    match row:
        case GoldenRow():
            second = results[1].outputs
            cosine = float(np.dot(first["sentence_embedding"], second["sentence_embedding"]))
            tokens = float(np.abs(first["token_embeddings"]).mean())
            return [abs(cosine - row.score), abs(tokens - row.token_mean_abs)]
        case GoldenClaim():
            return _apart(first["probabilities"], row.probabilities)
        case GoldenText():
            return _apart(first.values(), row.probabilities)
        case GoldenPair():
            (values,) = first.values()
            return _apart([values.mean()] if mean else values, row.values)


def _apart(found: Iterable[Any], kept: Sequence[float]) -> list[float]:
    return [abs(float(value) - golden) for value, golden in zip(found, kept, strict=True)]


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
