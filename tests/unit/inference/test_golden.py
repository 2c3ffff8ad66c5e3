"""Golden rows: a model that computes something else stops, whatever the difference looks like."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guardrail_service.errors import PackError
from guardrail_service.inference.golden import OUTPUTS, check_golden
from guardrail_service.types import Row, RowResult


def run(row: Row) -> RowResult:
    """Give every text the same unit vector."""
    assert row.outputs == OUTPUTS
    unit = np.array([0.6, 0.8], dtype=np.float32)
    tokens = np.full((3, 2), 0.5, dtype=np.float32)
    return RowResult({"sentence_embedding": unit, "token_embeddings": tokens}, 0.0, 0.0)


def rows(**changes: Any) -> list[dict[str, Any]]:
    """Return 50 golden rows that `run` reproduces."""
    return [
        {"text": f"t{n}", "pair": f"p{n}", "score": 1.0, "token_mean_abs": 0.5, **changes}
        for n in range(50)
    ]


@pytest.fixture
def golden(tmp_path: Path) -> Callable[..., Path]:
    """Write a golden file."""

    def write(found: list[dict[str, Any]], **changes: Any) -> Path:
        path = tmp_path / "golden.json"
        content = {"schema_version": "1", "role": "embedding", "tolerance": 0.01, "rows": found}
        path.write_text(json.dumps(content | changes))
        return path

    return write


def test_a_model_that_reproduces_its_rows_is_accepted(golden: Callable[..., Path]) -> None:
    """The report says how many rows ran and how far off the worst was."""
    report = check_golden(golden(rows()), run)
    assert report.rows == 50
    assert report.worst == pytest.approx(0.0, abs=1e-6)
    assert report.tolerance == 0.01


@pytest.mark.parametrize("key", ["score", "token_mean_abs"])
@pytest.mark.parametrize("index", [0, 25, 49])
def test_one_row_beyond_the_tolerance_stops(
    key: str, index: int, golden: Callable[..., Path]
) -> None:
    """Both numbers count, and no row is skipped."""
    found = rows()
    found[index][key] += 0.02
    path = golden(found)
    with pytest.raises(PackError, match=r"differ by 0\.02") as caught:
        check_golden(path, run)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("bad", ["t0", "t25", "t49"])
def test_a_model_that_computes_nan_stops(
    output: str, bad: str, golden: Callable[..., Path]
) -> None:
    """A NaN compares as neither larger nor smaller and must not slip through, wherever it is."""

    def broken(row: Row) -> RowResult:
        result = run(row)
        if row.text != bad:
            return result
        damaged = dict(result.outputs)
        damaged[output] = damaged[output] * np.nan
        return RowResult(damaged, 0.0, 0.0)

    with pytest.raises(PackError, match="differ by nan"):
        check_golden(golden(rows()), broken)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text("{"),
        lambda path: path.write_text("[]"),
        lambda path: path.write_bytes(b"\xff"),
        lambda path: path.write_text(path.read_text().replace('"rows"', '"lines"')),
    ],
)
def test_a_malformed_file_is_named(
    damage: Callable[[Path], object], golden: Callable[..., Path]
) -> None:
    """A golden file that cannot be read is a fault of the pack, not a traceback."""
    path = golden(rows())
    damage(path)
    with pytest.raises(PackError, match=r"golden\.json"):
        check_golden(path, run)


def test_fewer_than_fifty_rows_are_refused(golden: Callable[..., Path]) -> None:
    """Fewer would not notice a difference that moves few texts."""
    with pytest.raises(PackError, match="rows"):
        check_golden(golden(rows()[:49]), run)


@pytest.mark.parametrize("tolerance", [0, 1, -0.1])
def test_a_tolerance_that_accepts_anything_is_refused(
    tolerance: float, golden: Callable[..., Path]
) -> None:
    """Between 0 and 1, both exclusive."""
    with pytest.raises(PackError, match="tolerance"):
        check_golden(golden(rows(), tolerance=tolerance), run)


def pairs(role: str, *values: float) -> list[dict[str, Any]]:
    """Return 50 golden rows of two texts."""
    return [{"text": f"t{n}", "second": f"s{n}", "values": list(values)} for n in range(50)]


@pytest.mark.parametrize(
    ("role", "given", "values"),
    [
        ("nli", {"probabilities": np.array([0.7, 0.2, 0.1])}, (0.7, 0.2, 0.1)),
        ("causal_lm", {"log_probabilities": np.array([-1.0, -3.0])}, (-2.0,)),
    ],
)
def test_rows_of_two_texts_are_compared(
    role: str, given: Any, values: tuple[float, ...], golden: Callable[..., Path]
) -> None:
    """Three probabilities of an entailment, the mean log probability of a text."""
    report = check_golden(golden(pairs(role, *values), role=role), lambda _: RowResult(given, 0, 0))
    assert report.worst == pytest.approx(0.0)
    off = (values[0] + 0.02, *values[1:])
    with pytest.raises(PackError, match=r"differ by 0\.02"):
        check_golden(golden(pairs(role, *off), role=role), lambda _: RowResult(given, 0, 0))
